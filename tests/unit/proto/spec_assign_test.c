/* spec_assign_test.c: what a sweep file may say fits into the message that hands it to a worker: its limits are those of ASSIGN. */
#include "proto/spec.h"

#include "common/buf.h"
#include "common/mem.h"
#include "proto/msg.h"
#include "tests/unit/proto/spec_help.h"

#include <stdlib.h>
#include <string.h>

/* n times c. */
static void add_many(struct buf *out, char c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_add_char(out, c);
    }
}

/* The first variant and workload of the text are no more than ASSIGN carries. */
static void expect_fits(const char *text)
{
    size_t n = 0;
    struct spec *spec = help_read(text, NULL);
    const struct spec_workload *w = spec_workloads(spec, &n);
    const struct spec_variant *v = spec_variants(spec, &n);
    const char **env = mem_xarray(v->env_count + 1, sizeof(*env));
    struct mem_arena *arena = mem_arena_new(0);
    struct diag *diag = diag_new(1);
    for (size_t i = 0; i < v->env_count; i++) {
        env[i] = mem_arena_printf(arena, "%s=%s", v->env[i].name, v->env[i].value);
    }
    struct msg m = {.type = MSG_ASSIGN};
    m.u.assign.sweep = spec_name(spec);
    m.u.assign.workload = w->name;
    m.u.assign.variant = v->name;
    m.u.assign.host_dir = w->source.kind == SPEC_SOURCE_HOST_DIR ? w->source.path : NULL;
    m.u.assign.command = w->run;
    m.u.assign.env = env;
    m.u.assign.env_count = v->env_count;
    cr_expect_eq(msg_check(&m, diag), 0, "%s", diag_first(diag));
    free(env);
    diag_free(&diag);
    mem_arena_free(&arena);
    spec_free(&spec);
}

static void expect_refused(const char *text, const char *message)
{
    struct buf messages = BUF_INIT;
    struct spec *spec = help_read(text, &messages);
    cr_expect_null(spec, "not refused: %s", message);
    cr_expect_str_eq(buf_str(&messages), message);
    spec_free(&spec);
    buf_fini(&messages);
}

Test(spec_assign, a_variable_fits_with_its_name)
{
    static const char *const begins[] = {
        "sweep: s\nworkload: {run: x}\nvariants: [{name: a, env: {OPT: ",
        "sweep: s\nworkload: {run: x}\naxes: {o: [{name: a, env: {OPT: ",
    };
    static const char *const ends[] = {"}}]\n", "}}]}\n"};
    for (size_t i = 0; i < ARRAY_LEN(begins); i++) {
        struct buf text = BUF_INIT;
        buf_add_str(&text, begins[i]);
        add_many(&text, 'v', SPEC_MAX_VALUE - strlen("OPT="));
        size_t fits = text.len;
        buf_add_str(&text, ends[i]);
        expect_fits(buf_str(&text));
        text.len = fits;
        add_many(&text, 'v', 1);
        buf_add_str(&text, ends[i]);
        expect_refused(buf_str(&text), "s.yaml:3:33: env: `OPT` with its value has more than 4096 bytes\n");
        buf_fini(&text);
    }
}

Test(spec_assign, the_variables_of_all_axes_fit)
{
    struct buf text = BUF_INIT;
    buf_add_str(&text, "sweep: s\nworkload: {run: x}\naxes:\n");
    for (int axis = 0; axis < 2; axis++) {
        buf_printf(&text, "  x%d: [{name: n%d, env: {", axis, axis);
        for (int i = 0; i < SPEC_MAX_ENV / 2; i++) {
            buf_printf(&text, "%sV%d_%d: w", i == 0 ? "" : ", ", axis, i);
        }
        buf_add_str(&text, "}}]\n");
    }
    expect_fits(buf_str(&text));
    buf_add_str(&text, "  y: [{name: one, env: {Z: w}}]\n");
    expect_refused(buf_str(&text), "s.yaml:6:7: the variant `n0,n1,one` has more than 64 variables\n");
    buf_fini(&text);
}

Test(spec_assign, a_folder_of_the_host_fits)
{
    struct buf text = BUF_INIT;
    buf_add_str(&text, "sweep: s\nworkload: {run: x, source: {host_dir: /");
    add_many(&text, 'd', SPEC_MAX_PATH - 1);
    size_t fits = text.len;
    buf_add_str(&text, "}}\n");
    expect_fits(buf_str(&text));
    text.len = fits;
    buf_add_str(&text, "d}}\n");
    expect_refused(buf_str(&text), "s.yaml:2:39: host_dir: longer than 1023 bytes\n");
    buf_fini(&text);
}

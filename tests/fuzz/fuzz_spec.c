/* fuzz_spec.c: any bytes as a sweep file: a refusal says why and where; what is read keeps its
 * promises, resolves, and prints settings that are read back as the same. */
#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/str.h"
#include "proto/spec.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANGE_COMMITS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void check_records(const struct spec *spec)
{
    size_t n = 0;
    size_t workloads = 0;
    require(str_is_name(spec_name(spec)));
    const struct spec_workload *w = spec_workloads(spec, &workloads);
    require(workloads >= 1 && workloads <= SPEC_MAX_WORKLOADS);
    for (size_t i = 0; i < workloads; i++) {
        require(w[i].index == i && str_is_name(w[i].name) && w[i].run != NULL &&
                strlen(w[i].run) <= SPEC_MAX_COMMAND);
        require(w[i].source.path != NULL &&
                (w[i].source.rev != NULL) == (w[i].source.kind == SPEC_SOURCE_GIT));
    }
    const struct spec_host *h = spec_hosts(spec, &n);
    for (size_t i = 0; i < n; i++) {
        require(str_is_name(h[i].name));
    }
    const struct spec_expr *e = spec_exprs(spec, &n);
    for (size_t i = 0; i < n; i++) {
        require(e[i].index == i && e[i].pos.line >= 1);
        require((e[i].source.kind == SPEC_SOURCE_GIT) == (e[i].text != NULL));
        if (e[i].text != NULL) {
            require(e[i].to.a[0] != '\0' && e[i].to.a[0] != '-');
            require(!e[i].range || (e[i].from.a[0] != '\0' && e[i].from.a[0] != '-'));
        }
    }
}

static void give_revs(struct spec *spec)
{
    size_t n = 0;
    const struct spec_expr *e = spec_exprs(spec, &n);
    for (size_t i = 0; i < n; i++) {
        struct spec_rev revs[RANGE_COMMITS] = {0};
        size_t count = e[i].range ? RANGE_COMMITS : 1;
        for (size_t k = 0; k < count && e[i].source.kind == SPEC_SOURCE_GIT; k++) {
            snprintf(revs[k].commit, sizeof(revs[k].commit), "%08zx%032zx", i, k);
            snprintf(revs[k].tree, sizeof(revs[k].tree), "%040zx", i);
            revs[k].commit[8] = (char)('0' + k);
        }
        require(spec_set_revs(spec, i, revs, count, NULL) == 0);
    }
}

static void check_resolved(struct spec *spec)
{
    size_t variants = 0;
    size_t workloads = 0;
    size_t pairs = 0;
    const struct spec_workload *w = spec_workloads(spec, &workloads);
    const struct spec_variant *v = spec_variants(spec, &variants);
    require(variants >= 1 && variants <= SPEC_MAX_VARIANTS && spec_base(spec) < variants);
    for (size_t i = 0; i < variants; i++) {
        require(v[i].index == i && !v[i].range && str_is_name(v[i].name));
        for (size_t k = 0; k < workloads; k++) {
            bool looked_up =
                w[k].source.kind != SPEC_SOURCE_HOST_DIR && w[k].source.kind != SPEC_SOURCE_NONE;
            require((spec_rev_of(spec, i, k) != NULL) == looked_up);
        }
    }
    const struct spec_pair *p = spec_pairs(spec, &pairs);
    for (size_t i = 0; i < pairs; i++) {
        require(p[i].base < variants && p[i].head < variants && p[i].base != p[i].head);
    }
}

/* What is printed for a host is, as `per` of a small sweep, the same again. */
static void check_print(const struct spec *spec)
{
    struct buf text = BUF_INIT;
    struct buf first = BUF_INIT;
    struct buf again = BUF_INIT;
    struct spec_settings s;
    struct spec *small = NULL;
    spec_settings_for(spec, "p6", &(const char *){"old"}, 1, 0, &s);
    spec_print_settings(&s, &first);
    buf_add_str(&text, "sweep: s\nworkload: {run: make}\nper:\n  h:\n    ");
    for (size_t i = 0; i < first.len; i++) {
        buf_add_char(&text, (char)first.data[i]);
        buf_add_str(&text, first.data[i] == '\n' ? "    " : "");
    }
    require(spec_parse("again", text.data, text.len, NULL, 0, &small, NULL) == 0);
    spec_settings_for(small, "h", NULL, 0, 0, &s);
    spec_print_settings(&s, &again);
    require(str_eq(buf_str(&first), buf_str(&again)));
    spec_free(&small);
    buf_fini(&text);
    buf_fini(&first);
    buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct spec_set set = {"opt", "it's \"$x\" `y` \\"};
    struct diag *diag = diag_new(64);
    struct spec *spec = NULL;
    int rc = spec_parse("fuzz", data, n, n > 0 && data[0] == 's' ? &set : NULL,
                        n > 0 && data[0] == 's' ? 1 : 0, &spec, diag);
    require((rc < 0) == (spec == NULL) && (rc < 0) == (diag_errors(diag) > 0));
    if (spec != NULL) {
        check_records(spec);
        check_print(spec);
        give_revs(spec);
        if (spec_resolve(spec, diag) == 0) {
            check_resolved(spec);
        }
    }
    spec_free(&spec);
    diag_free(&diag);
    return 0;
}

/* submit.c: reads a sweep file, finds its mistakes, puts local sources, and sends it. */
#include "coordinator/ctl/submit.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/mem.h"
#include "common/yaml.h"
#include "coordinator/ctl/call.h"
#include "coordinator/ctl/ctl.h"
#include "coordinator/ctl/opts.h"
#include "coordinator/ctl/sources.h"
#include "proto/msg.h"
#include "proto/spec.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_stdin(struct buf *out)
{
    char piece[65536];
    size_t n;

    while ((n = fread(piece, 1, sizeof piece, stdin)) > 0 && out->len <= YAML_MAX_BYTES)
        buf_add(out, piece, n);
    return ferror(stdin) != 0 ? -ERR_IO : out->err;
}

static int read_file(struct ctl *ctl, const char *file, struct buf *out)
{
    int err = strcmp(file, "-") == 0 ? read_stdin(out) : file_read_all(file, 4 * (size_t)YAML_MAX_BYTES, out);

    if (err == -ERR_LIMIT || (err == 0 && out->len > YAML_MAX_BYTES))
        return diag_error(ctl->diag, ERR_LIMIT, "%s: a sweep file has at most 1 MiB", file);
    if (err == -ERR_INVAL)
        return diag_error(ctl->diag, ERR_INVAL, "%s cannot be read: it is no file, but a folder or below a file", file);
    return err == 0 ? 0 : diag_error(ctl->diag, ERR_INVAL, "%s cannot be read: %s", file, err_text(err));
}

/* --set NAME=VALUE. */
static int read_sets(struct ctl *ctl, const struct opts *opts, struct spec_set *sets, struct rec_setting *records, size_t *n)
{
    const char *text;

    for (*n = 0; (text = opts_nth(opts, "set", *n)) != NULL; (*n)++) {
        const char *equals = strchr(text, '=');

        if (equals == NULL || equals == text)
            return diag_error(ctl->diag, ERR_INVAL, "--set %s: it is written as NAME=VALUE", text);
        sets[*n].name = mem_xstrndup(text, (size_t)(equals - text));
        sets[*n].value = equals + 1;
        records[*n].name = sets[*n].name;
        records[*n].value = sets[*n].value;
    }
    return 0;
}

#define PIECE ((size_t)256 * 1024)

static bool fits(const struct msg *request)
{
    struct buf frame = BUF_INIT;
    int err = msg_encode(request, &frame);

    buf_fini(&frame);
    return err == 0;
}

/* A file of almost 1 MiB goes before its request, in pieces; many settings or thousands of revisions may be too much even then. */
static int send_parts(struct ctl *ctl, struct call *call, struct msg *request)
{
    struct msg_sweep_put *put = &request->u.sweep_put;
    struct msg_bytes text = put->text;

    if (fits(request))
        return 0;
    put->text.len = 0;
    if (!fits(request)) {
        diag_error(ctl->diag, ERR_LIMIT,
                   "%s: its settings and %zu revisions do not fit into one request, which holds 1 MiB: make several sweeps of it", put->file,
                   put->revisions_count);
        return CTL_USAGE;
    }
    for (size_t at = 0; at < text.len; at += PIECE) {
        struct msg part = {.type = MSG_SWEEP_PART};

        part.u.sweep_part.call = put->call;
        part.u.sweep_part.offset = at;
        part.u.sweep_part.bytes = (struct msg_bytes){.data = text.data + at, .len = text.len - at < PIECE ? text.len - at : PIECE};
        if (call_send(call, &part) != 0) {
            if (diag_errors(ctl->diag) == 0)
                diag_error(ctl->diag, ERR_CLOSED, "%s: the connection ended before the sweep file was sent", call_address(call));
            return CTL_INFRASTRUCTURE;
        }
    }
    return 0;
}

static int send_sweep(struct ctl *ctl, const struct submit *submit, struct call *call, const struct buf *text,
                      const struct rec_setting *records, size_t n, const struct sources *sources, struct buf *out)
{
    struct msg m = {.type = MSG_SWEEP_PUT};
    struct msg_sweep_put *r = &m.u.sweep_put;
    int status;

    r->call = call_number(call);
    r->action = submit->action;
    r->file = submit->file;
    r->text = (struct msg_bytes){.data = text->data, .len = text->len};
    r->sets = records;
    r->sets_count = n;
    r->revisions = sources_revisions(sources, &r->revisions_count);
    r->yes = submit->yes;
    r->format = ctl->json || submit->document ? "json" : "text";
    r->key = submit->key;
    r->host = submit->host;
    status = send_parts(ctl, call, &m);
    return status != 0 ? status : call_document(call, r->call, &m, out);
}

static int submit_spec(struct ctl *ctl, const struct submit *submit, struct call **call, const struct spec *spec, const struct buf *text,
                       const struct rec_setting *records, size_t n, struct buf *out)
{
    struct sources *sources = NULL;
    bool put = strcmp(submit->action, "check") != 0; /* a plan says what archives take */
    int status = 0;

    if (submit->host == NULL && spec_require_hosts(spec, ctl->diag) != 0)
        return CTL_USAGE;
    if (*call == NULL)
        status = call_open(ctl, call);
    if (status == 0)
        status = sources_read(ctl, spec, put ? *call : NULL, &sources);
    if (status == 0)
        status = send_sweep(ctl, submit, *call, text, records, n, sources, out);
    sources_free(&sources);
    return status;
}

/* Reads and parses; what the caller frees is in *in. */
struct input {
    struct spec_set sets[OPTS_MAX_VALUES];
    struct rec_setting records[OPTS_MAX_VALUES];
    size_t set_count;
    struct buf text;
    struct spec *spec;
};

static int read_input(struct ctl *ctl, const struct opts *opts, const char *file, struct input **out)
{
    struct input *in = mem_xzalloc(sizeof *in);

    *out = in;
    if (read_sets(ctl, opts, in->sets, in->records, &in->set_count) != 0 || read_file(ctl, file, &in->text) != 0 ||
        spec_parse(file, in->text.data, in->text.len, in->sets, in->set_count, &in->spec, ctl->diag) != 0)
        return CTL_USAGE;
    diag_clear(ctl->diag); /* warnings come from the coordinator, once */
    return 0;
}

static void free_input(struct input **in)
{
    for (size_t i = 0; i < OPTS_MAX_VALUES; i++)
        free((void *)(uintptr_t)(*in)->sets[i].name);
    spec_free(&(*in)->spec);
    buf_fini(&(*in)->text);
    free(*in);
    *in = NULL;
}

int submit_check(struct ctl *ctl, const struct opts *opts, const char *file)
{
    struct input *in;
    int status = strcmp(file, "-") == 0 ? CTL_USAGE : read_input(ctl, opts, file, &in);

    if (strcmp(file, "-") == 0)
        diag_error(ctl->diag, ERR_INVAL, "the sweep file must be a file here, not standard input");
    else
        free_input(&in);
    return status;
}

int submit_sweep(struct ctl *ctl, const struct opts *opts, const struct submit *submit, struct call **call, struct buf *out)
{
    struct input *in;
    int status = read_input(ctl, opts, submit->file, &in);

    if (status == 0)
        status = submit_spec(ctl, submit, call, in->spec, &in->text, in->records, in->set_count, out);
    free_input(&in);
    return status;
}

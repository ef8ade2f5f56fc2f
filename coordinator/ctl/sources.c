/* sources.c: reads local sources by proto/source.c and uploads their archives. Owns a temporary folder. */
#include "coordinator/ctl/sources.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "coordinator/ctl/call.h"
#include "coordinator/ctl/ctl.h"
#include "proto/msg.h"
#include "proto/source.h"
#include "proto/spec.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE ((size_t)128 * 1024)

struct sources {
    struct ctl *ctl;
    struct call *call;
    struct mem_arena *arena;
    char work[FILE_PATH_MAX];
    struct rec_revision *revisions;
    size_t count, room;
    /* the expression that is being read */
    const struct spec *spec;
    const struct spec_expr *expr;
    bool done;
    bool interrupted; /* SIGINT or SIGTERM: what was begun is ended, and the folder removed */
    int status;
    struct upload {
        char *path;
        char *what; /* "git: . at 8f3c1d2abcde" */
        uint8_t hash[SOURCE_HASH];
        uint64_t size;
    } * uploads;
    size_t upload_count;
};

static void fail(struct sources *s, int status)
{
    if (s->status == 0)
        s->status = status;
}

static void on_interrupt(int number, void *arg)
{
    struct sources *s = arg;

    (void)number;
    s->interrupted = true;
    if (s->call != NULL)
        call_interrupt(s->call);
}

static void fail_interrupted(struct sources *s)
{
    if (s->status == 0)
        diag_error(s->ctl->diag, ERR_STATE, "interrupted: nothing was submitted");
    fail(s, CTL_UNDECIDED);
}

/* The first workload with this source: what the coordinator finds the expression by. */
static uint32_t workload_of(const struct sources *s)
{
    size_t n;
    const struct spec_workload *w = spec_workloads(s->spec, &n);

    for (size_t i = 0; i < n; i++)
        if (w[i].source.kind == s->expr->source.kind && strcmp(w[i].source.path, s->expr->source.path) == 0 &&
            w[i].source.dirty == s->expr->dirty)
            return (uint32_t)i;
    return 0;
}

static void add_revision(struct sources *s, const struct source_rev *rev, uint32_t ordinal)
{
    struct rec_revision *r;

    if (s->count == s->room) {
        s->room = s->room == 0 ? 16 : 2 * s->room;
        s->revisions = mem_xrealloc(s->revisions, s->room, sizeof *s->revisions);
    }
    r = &s->revisions[s->count++];
    memset(r, 0, sizeof *r);
    r->workload = workload_of(s);
    r->expr = s->expr->text == NULL ? "" : s->expr->text;
    r->ordinal = ordinal;
    r->commit = mem_arena_strdup(s->arena, rev->commit);
    r->tree = mem_arena_strdup(s->arena, rev->tree);
    r->subject = mem_arena_strdup(s->arena, rev->subject);
    r->blob.data = memcpy(mem_arena_alloc(s->arena, SOURCE_HASH), rev->hash, SOURCE_HASH);
    r->blob.len = SOURCE_HASH;
    r->size = rev->size;
    r->dirty = rev->dirty;
}

/* What the archive is of, as the sweep file names it; freed by the caller. */
static char *describe(const struct sources *s, const struct source_rev *rev)
{
    static const char *const KINDS[] = {[SPEC_SOURCE_GIT] = "git", [SPEC_SOURCE_DIR] = "dir", [SPEC_SOURCE_ARCHIVE] = "archive"};
    struct buf text = BUF_INIT;
    char *what;

    buf_printf(&text, "%s: ", KINDS[s->expr->source.kind]);
    str_show(&text, s->expr->source.path, strlen(s->expr->source.path));
    if (rev->commit[0] != '\0')
        buf_printf(&text, " at %.12s", rev->commit);
    if (rev->dirty)
        buf_add_str(&text, " with what is not committed");
    what = mem_xstrdup(buf_str(&text));
    buf_fini(&text);
    return what;
}

static void add_upload(struct sources *s, const struct source_rev *rev)
{
    struct upload *u;

    if (rev->path == NULL || s->call == NULL)
        return;
    s->uploads = mem_xrealloc(s->uploads, s->upload_count + 1, sizeof *s->uploads);
    u = &s->uploads[s->upload_count++];
    if (s->expr->source.kind == SPEC_SOURCE_ARCHIVE) {
        u->path = mem_xstrdup(rev->path);
    } else {
        /* The file in the work folder is gone after the callback: it is given a name of ours. */
        u->path = mem_xasprintf("%s/upload-%zu", s->work, s->upload_count);
        if (file_rename(rev->path, u->path) != 0) {
            diag_error(s->ctl->diag, ERR_IO, "%s cannot be renamed", rev->path);
            fail(s, CTL_INFRASTRUCTURE);
        }
    }
    memcpy(u->hash, rev->hash, sizeof u->hash);
    u->size = rev->size;
    u->what = describe(s, rev);
}

static void on_source(const struct source_result *result, void *arg)
{
    struct sources *s = arg;

    s->done = true;
    if (result->warning != NULL)
        diag_warn_at(s->ctl->diag, spec_file(s->spec), s->expr->pos.line, s->expr->pos.column, "%s", result->warning);
    if (result->code != 0) {
        diag_error_at(s->ctl->diag, result->code, spec_file(s->spec), s->expr->pos.line, s->expr->pos.column, "%s", result->text);
        fail(s, CTL_USAGE);
        return;
    }
    for (size_t i = 0; i < result->count; i++) {
        add_revision(s, &result->revs[i], (uint32_t)i);
        add_upload(s, &result->revs[i]);
    }
}

static void read_one(struct sources *s, const struct spec_expr *expr)
{
    struct source_spec what = {.path = expr->source.path,
                               .dirty = expr->dirty,
                               .archive = s->call != NULL,
                               .rev_max = SPEC_MAX_VARIANTS,
                               .work = s->work};
    struct source *source;

    s->expr = expr;
    s->done = false;
    what.kind = expr->source.kind == SPEC_SOURCE_GIT ? SOURCE_GIT : expr->source.kind == SPEC_SOURCE_DIR ? SOURCE_DIR : SOURCE_FILE;
    what.expr = (struct source_expr){.range = expr->range,
                                     .from = {.a = expr->from.a, .b = expr->from.b},
                                     .to = {.a = expr->to.a, .b = expr->to.b}};
    if (source_start(s->ctl->loop, &what, on_source, s, &source, s->ctl->diag) != 0) {
        fail(s, CTL_USAGE);
        return;
    }
    while (!s->done && !s->interrupted)
        loop_turn(s->ctl->loop, CLOCK_SEC);
    if (!s->done) {
        source_cancel(&source);
        fail_interrupted(s);
    }
}

static int send_piece(struct sources *s, struct file *file, const struct upload *u, uint64_t offset, uint32_t number,
                      struct call_answer *answer)
{
    struct msg m = {.type = MSG_BLOB_DATA};
    uint8_t *bytes = mem_xarray(PIECE, 1);
    size_t got = 0;
    int status = CTL_INFRASTRUCTURE;

    if (file_read_at(file, offset, bytes, PIECE, &got) != 0 || got == 0) {
        diag_error(s->ctl->diag, ERR_IO, "%s cannot be read, or became shorter", u->path);
    } else {
        m.u.blob_data.hash = (struct msg_bytes){.data = u->hash, .len = sizeof u->hash};
        m.u.blob_data.offset = offset;
        m.u.blob_data.total = u->size;
        m.u.blob_data.bytes = (struct msg_bytes){.data = bytes, .len = got};
        status = call_ask(s->call, number, &m, NULL, NULL, answer);
    }
    free(bytes);
    return status;
}

/* WANT, then pieces from where the coordinator says, until it has all. */
static int upload(struct sources *s, const struct upload *u)
{
    struct msg m = {.type = MSG_BLOB_WANT};
    struct call_answer answer;
    struct file *file = NULL;
    uint32_t number = call_number(s->call);
    char size[32];
    int status;

    m.u.blob_want.call = number;
    m.u.blob_want.hash = (struct msg_bytes){.data = u->hash, .len = sizeof u->hash};
    m.u.blob_want.total = u->size;
    status = call_ask(s->call, number, &m, NULL, NULL, &answer);
    if (status == 0 && !answer.done && file_open(u->path, FILE_READ, 0, &file) != 0) {
        diag_error(s->ctl->diag, ERR_IO, "%s cannot be read", u->path);
        status = CTL_INFRASTRUCTURE;
    }
    if (status == 0 && !answer.done)
        fprintf(stderr, "sending the archive of %s (%s)\n", u->what, num_size_text(size, sizeof size, u->size));
    while (status == 0 && answer.next && !answer.done)
        status = send_piece(s, file, u, answer.have, number, &answer);
    file_close(&file);
    if (s->interrupted) {
        fail_interrupted(s);
        return CTL_UNDECIDED;
    }
    return status;
}

static int make_work(struct sources *s)
{
    const char *tmp = getenv("TMPDIR");

    if (snprintf(s->work, sizeof s->work, "%s/makespan-XXXXXX", tmp == NULL || tmp[0] != '/' ? "/tmp" : tmp) >= (int)sizeof s->work ||
        mkdtemp(s->work) == NULL) {
        s->work[0] = '\0';
        diag_error(s->ctl->diag, ERR_IO, "no temporary folder can be made: TMPDIR names where");
        return CTL_INFRASTRUCTURE;
    }
    return 0;
}

static void read_all(struct sources *s)
{
    size_t n;
    const struct spec_expr *exprs = spec_exprs(s->spec, &n);
    struct loop_signal *intr = loop_signal_new(s->ctl->loop, SIGINT, on_interrupt, s);
    struct loop_signal *term = loop_signal_new(s->ctl->loop, SIGTERM, on_interrupt, s);

    for (size_t i = 0; i < n && !s->interrupted; i++) {
        if (!exprs[i].source.local)
            continue;
        if (s->work[0] == '\0')
            fail(s, make_work(s));
        if (s->work[0] != '\0')
            read_one(s, &exprs[i]);
    }
    for (size_t i = 0; i < s->upload_count && s->status == 0; i++)
        fail(s, upload(s, &s->uploads[i]));
    loop_signal_free(&term);
    loop_signal_free(&intr);
}

int sources_read(struct ctl *ctl, const struct spec *spec, struct call *call, struct sources **out)
{
    struct sources *s = mem_xzalloc(sizeof *s);
    int status;

    s->ctl = ctl;
    s->call = call;
    s->spec = spec;
    s->arena = mem_arena_new(0);
    read_all(s);
    status = s->status;
    *out = s;
    if (status != 0)
        sources_free(out);
    return status;
}

const struct rec_revision *sources_revisions(const struct sources *sources, size_t *n)
{
    *n = sources->count;
    return sources->revisions;
}

void sources_free(struct sources **sources)
{
    struct sources *s = *sources;

    if (s == NULL)
        return;
    for (size_t i = 0; i < s->upload_count; i++) {
        free(s->uploads[i].path);
        free(s->uploads[i].what);
    }
    free(s->uploads);
    free(s->revisions);
    if (s->work[0] != '\0' && file_remove_tree(s->work) != 0)
        diag_warn(s->ctl->diag, "the temporary folder %s could not be removed", s->work);
    mem_arena_free(&s->arena);
    free(s);
    *sources = NULL;
}

/* resolve.c: one job of coordinator/blob a ticket of the planner. */
#include "coordinator/resolve.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "coordinator/blob/blob.h"
#include "proto/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ticket {
    struct ticket *next;
    struct resolve *resolve;
    uint64_t number;
    struct blob_job *job;
};

struct resolve {
    struct blob *blob;
    resolve_f *f;
    void *arg;
    struct ticket *tickets;
};

struct resolve *resolve_new(struct blob *blob, resolve_f *f, void *arg)
{
    struct resolve *r = mem_xzalloc(sizeof *r);

    r->blob = blob;
    r->f = f;
    r->arg = arg;
    return r;
}

static void drop(struct ticket *t)
{
    struct ticket **at = &t->resolve->tickets;

    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    free(t);
}

void resolve_free(struct resolve **resolve)
{
    if (*resolve == NULL)
        return;
    while ((*resolve)->tickets != NULL) {
        blob_git_cancel(&(*resolve)->tickets->job);
        drop((*resolve)->tickets);
    }
    free(*resolve);
    *resolve = NULL;
}

static void on_git(int code, const char *text, const struct blob_rev *revs, size_t count, const char *warning, void *arg)
{
    struct ticket *t = arg;
    struct resolve *r = t->resolve;
    uint64_t number = t->number;
    struct spec_rev *out = mem_xarray(count + 1, sizeof *out);

    drop(t);
    if (warning != NULL)
        log_warn("%s", warning);
    for (size_t i = 0; i < count; i++) {
        snprintf(out[i].commit, sizeof out[i].commit, "%s", revs[i].commit);
        snprintf(out[i].tree, sizeof out[i].tree, "%s", revs[i].tree);
        if (revs[i].has_blob)
            str_hex(out[i].blob, revs[i].blob, MODEL_HASH);
        out[i].size = (int64_t)revs[i].size;
        out[i].subject = revs[i].subject;
    }
    r->f(r->arg, number, code, out, count, text);
    free(out);
}

static struct source_end end_of(struct spec_rev_end end)
{
    return (struct source_end){.a = end.a, .b = end.b};
}

int resolve_start(struct resolve *resolve, uint64_t ticket, const struct spec_expr *expr, bool archive, struct diag *diag)
{
    struct source_expr what = {.range = expr->range, .from = end_of(expr->from), .to = end_of(expr->to)};
    struct ticket *t;
    int err;

    if (expr->source.kind != SPEC_SOURCE_GIT)
        return diag_error(diag, ERR_INVAL, "%s is read where the operator's command runs, not by the coordinator", expr->source.path);
    t = mem_xzalloc(sizeof *t);
    t->resolve = resolve;
    t->number = ticket;
    t->next = resolve->tickets;
    resolve->tickets = t;
    err = blob_git_resolve(resolve->blob, expr->source.path, &what, SPEC_MAX_VARIANTS, archive, on_git, t, &t->job, diag);
    if (err != 0)
        drop(t);
    return err;
}

void resolve_cancel(struct resolve *resolve, uint64_t ticket)
{
    for (struct ticket *t = resolve->tickets; t != NULL; t = t->next) {
        if (t->number == ticket) {
            blob_git_cancel(&t->job);
            drop(t);
            return;
        }
    }
}

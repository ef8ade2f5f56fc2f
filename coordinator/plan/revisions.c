/* revisions.c: look-ups of expressions: those that the operator's command made, and those that the
 * coordinator's git is asked for. Owns the answers until they are in the spec. */
#include "coordinator/plan/revisions.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "coordinator/store/blobs.h"

#include <stdlib.h>
#include <string.h>

struct lookup {
    uint64_t ticket;       /* 0: not asked for, or answered */
    struct spec_rev *revs; /* subjects owned */
    size_t count;
    bool failed;
};

struct revisions {
    struct lookup *lookups; /* by index of the expression */
    size_t count;
    size_t pending;
    size_t infra;
};

static int mistake(const struct spec *spec, const struct spec_expr *expr, int code,
                   const char *text, struct diag *diag)
{
    return diag_error_at(diag, code, spec_file(spec), expr->pos.line, expr->pos.column, "%s", text);
}

static void drop_revs(struct lookup *l)
{
    for (size_t i = 0; i < l->count; i++) {
        free((char *)(uintptr_t)l->revs[i].subject);
    }
    free(l->revs);
    l->revs = NULL;
    l->count = 0;
}

static void keep_revs(struct lookup *l, const struct spec_rev *revs, size_t n)
{
    drop_revs(l);
    l->revs = mem_xarray(n + 1, sizeof(*l->revs));
    for (size_t i = 0; i < n; i++) {
        l->revs[i] = revs[i];
        l->revs[i].subject = mem_xstrdup(revs[i].subject != NULL ? revs[i].subject : "");
    }
    l->count = n;
}

/* --- from the operator --- */

static int compare_ordinals(const void *pa, const void *pb)
{
    const struct plan_revision *const *a = pa;
    const struct plan_revision *const *b = pb;
    return (*a)->ordinal < (*b)->ordinal ? -1 : (*a)->ordinal > (*b)->ordinal;
}

static bool is_here(struct plan *plan, const struct plan_revision *r)
{
    struct store_blob blob;
    int rc = store_blob_get(plan->store, r->blob, &blob);
    if (rc < 0 && rc != -ERR_NOTFOUND) {
        plan_fail(plan, rc);
    }
    return rc == 0 && blob.size == r->size;
}

static void fill_rev(const struct plan_revision *from, struct spec_rev *to)
{
    memset(to, 0, sizeof(*to));
    str_copy(to->commit, sizeof(to->commit), from->commit);
    str_copy(to->tree, sizeof(to->tree), from->tree);
    str_hex(to->blob, from->blob, MODEL_HASH);
    to->size = from->size <= INT64_MAX ? (int64_t)from->size : INT64_MAX;
    to->dirty = from->dirty;
    to->subject = from->subject;
}

/* What was given for one expression, in order; the list is the caller's. */
static size_t pick_given(const struct spec *spec, const struct spec_expr *expr,
                         const struct revisions_given *given, const struct plan_revision **list)
{
    size_t n = 0;
    size_t workloads;
    spec_workloads(spec, &workloads);
    for (size_t i = 0; i < given->count; i++) {
        const struct plan_revision *r = &given->revisions[i];
        size_t index;
        if (r->workload < workloads &&
            spec_find_expr(spec, r->workload, r->expr, expr->dirty, &index) == 0 &&
            index == expr->index) {
            list[n++] = r;
        }
    }
    qsort(list, n, sizeof(*list), compare_ordinals);
    /* Workloads that share a source share its revisions. */
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || list[kept - 1]->ordinal != list[i]->ordinal) {
            list[kept++] = list[i];
        }
    }
    return kept;
}

static void take_given(struct plan *plan, struct lookup *l, const struct spec *spec,
                       const struct spec_expr *expr, const struct revisions_given *given,
                       struct diag *diag)
{
    const struct plan_revision **list = mem_xarray(given->count + 1, sizeof(*list));
    size_t n = pick_given(spec, expr, given, list);
    struct spec_rev *revs = mem_xarray(n + 1, sizeof(*revs));
    l->failed = n == 0;
    for (size_t i = 0; i < n; i++) {
        fill_rev(list[i], &revs[i]);
        if (given->archives && !is_here(plan, list[i])) {
            l->failed = true;
            mistake(spec, expr, ERR_NOTFOUND, "its archive was not put before the sweep", diag);
            break;
        }
    }
    if (n == 0) {
        char *text = mem_xasprintf("`%s` is read where the operator's command runs, and the "
                                   "command sent nothing for it",
                                   expr->source.path);
        mistake(spec, expr, ERR_NOTFOUND, text, diag);
        free(text);
    }
    keep_revs(l, revs, n);
    free(revs);
    free(list);
}

/* --- from git --- */

static bool is_infra(int code)
{
    switch (-code) {
    case ERR_INVAL:
    case ERR_NOTFOUND:
    case ERR_LIMIT:
    case ERR_RANGE:
    case ERR_SYNTAX:
    case ERR_NOTYET:
    case ERR_UNSUP:
        return false;
    default:
        return true;
    }
}

bool revisions_answer(struct revisions *revisions, uint64_t ticket, int code,
                      const struct spec_rev *revs, size_t n, const char *text,
                      const struct spec *spec, struct diag *diag)
{
    size_t count;
    const struct spec_expr *exprs = spec_exprs(spec, &count);
    for (size_t i = 0; i < revisions->count; i++) {
        struct lookup *l = &revisions->lookups[i];
        if (l->ticket != ticket || ticket == 0) {
            continue;
        }
        l->ticket = 0;
        revisions->pending--;
        if (code < 0) {
            l->failed = true;
            revisions->infra += is_infra(code);
            mistake(spec, &exprs[i], code, text != NULL ? text : err_text(code), diag);
        } else {
            keep_revs(l, revs, n);
        }
        return true;
    }
    return false;
}

/* Tickets of look-ups are of the same sequence as those of requests. */
static void ask(struct plan *plan, struct revisions *revisions, struct lookup *l,
                const struct spec *spec, const struct spec_expr *expr, bool archive,
                struct diag *diag)
{
    l->ticket = ++plan->last_ticket;
    revisions->pending++;
    struct diag *why = diag_new(4);
    int rc = plan->ops->resolve(plan->arg, l->ticket, expr, archive, why);
    if (rc < 0 && l->ticket != 0) {
        const char *text = diag_first(why);
        revisions_answer(revisions, l->ticket, rc, NULL, 0, text[0] != '\0' ? text : NULL, spec,
                         diag);
    }
    diag_free(&why);
}

/* --- a request's --- */

void revisions_begin(struct plan *plan, const struct spec *spec,
                     const struct revisions_given *given, struct diag *diag, struct revisions **out)
{
    struct revisions *revisions = mem_xzalloc(sizeof(*revisions));
    *out = revisions;
    const struct spec_expr *exprs = spec_exprs(spec, &revisions->count);
    revisions->lookups = mem_xarray(revisions->count + 1, sizeof(*revisions->lookups));
    for (size_t i = 0; i < revisions->count; i++) {
        if (exprs[i].source.local) {
            take_given(plan, &revisions->lookups[i], spec, &exprs[i], given, diag);
        } else {
            ask(plan, revisions, &revisions->lookups[i], spec, &exprs[i], given->archives, diag);
        }
    }
}

void revisions_free(struct plan *plan, struct revisions **out)
{
    struct revisions *revisions = *out;
    if (revisions == NULL) {
        return;
    }
    for (size_t i = 0; i < revisions->count; i++) {
        struct lookup *l = &revisions->lookups[i];
        if (l->ticket != 0) {
            plan->ops->resolve_cancel(plan->arg, l->ticket);
        }
        drop_revs(l);
    }
    free(revisions->lookups);
    free(revisions);
    *out = NULL;
}

size_t revisions_pending(const struct revisions *revisions)
{
    return revisions->pending;
}

size_t revisions_infra(const struct revisions *revisions)
{
    return revisions->infra;
}

int revisions_set(struct revisions *revisions, struct spec *spec, struct diag *diag)
{
    int result = 0;
    for (size_t i = 0; i < revisions->count; i++) {
        const struct lookup *l = &revisions->lookups[i];
        int rc = l->failed ? -ERR_INVAL : spec_set_revs(spec, i, l->revs, l->count, diag);
        if (rc < 0) {
            result = rc == -ERR_INVAL && result < 0 ? result : rc;
        }
    }
    return result;
}

/* verdicts.c: rows of comparisons and retractions. */
#include "coordinator/store/verdicts.h"

#include "common/err.h"
#include "coordinator/store/db.h"
#include "coordinator/store/rows.h"
#include "coordinator/store/store.h"

#include <math.h>

static bool is_ratio(double x)
{
    return isfinite(x) && x > 0;
}

int store_comparison_insert(struct store *store, const struct model_comparison *row, int64_t *id)
{
    if (row->has_ratio && !(is_ratio(row->ratio) && is_ratio(row->low) && is_ratio(row->high))) {
        return db_fail(store, -ERR_INVAL, "a ratio must be a positive finite number");
    }
    struct stmt *q = stmt_open(store, ST_COMPARISON_INSERT);
    stmt_put_i64(q, row->sweep);
    stmt_put_i64(q, row->host);
    stmt_put_i64(q, row->workload);
    stmt_put_i64(q, row->jobs);
    stmt_put_i64(q, row->base);
    stmt_put_i64(q, row->head);
    stmt_put_i64(q, row->look);
    stmt_put_i64(q, row->n_base);
    stmt_put_i64(q, row->n_head);
    stmt_put_double(q, row->has_ratio, row->ratio);
    stmt_put_double(q, row->has_ratio, row->low);
    stmt_put_double(q, row->has_ratio, row->high);
    stmt_put_text(q, row->verdict);
    stmt_put_i64(q, row->open);
    stmt_put_text(q, row->because);
    stmt_put_i64(q, row->stale);
    stmt_put_i64(q, row->wall_ns);
    return stmt_insert(q, id);
}

static void read_comparison(struct stmt *q, void *out)
{
    struct model_comparison *c = out;
    bool has = false;
    c->id = stmt_i64(q);
    c->sweep = stmt_i64(q);
    c->host = stmt_i64(q);
    c->workload = stmt_i64(q);
    c->jobs = (int32_t)stmt_i64(q);
    c->base = stmt_i64(q);
    c->head = stmt_i64(q);
    c->look = stmt_i64(q);
    c->n_base = stmt_i64(q);
    c->n_head = stmt_i64(q);
    c->ratio = stmt_double(q, &c->has_ratio);
    c->low = stmt_double(q, &has);
    c->high = stmt_double(q, &has);
    c->verdict = stmt_text(q);
    c->open = stmt_i64(q) != 0;
    c->because = stmt_text(q);
    c->stale = stmt_i64(q) != 0;
    c->wall_ns = stmt_i64(q);
}

struct visit_comparison {
    struct model_comparison row;
    store_comparison_f *f;
    void *arg;
};

static int visit_comparison(void *arg)
{
    struct visit_comparison *v = arg;
    return v->f(&v->row, v->arg);
}

int store_comparisons_each(struct store *store, int64_t sweep, store_comparison_f *f, void *arg)
{
    struct visit_comparison v = {.f = f, .arg = arg};
    struct stmt *q = stmt_open(store, ST_COMPARISONS_EACH);
    stmt_put_i64(q, sweep);
    return stmt_each(q, read_comparison, &v.row, visit_comparison, &v);
}

int store_comparisons_set_stale(struct store *store, int64_t sweep)
{
    struct stmt *q = stmt_open(store, ST_COMPARISONS_STALE);
    stmt_put_i64(q, sweep);
    return stmt_run(q, NULL);
}

int store_retraction_insert(struct store *store, const struct model_retraction *row, int64_t *id)
{
    struct stmt *q = stmt_open(store, ST_RETRACTION_INSERT);
    stmt_put_i64(q, row->sweep);
    stmt_put_i64(q, row->cell);
    stmt_put_i64(q, row->run);
    stmt_put_i64(q, row->attempt);
    stmt_put_text(q, row->because);
    stmt_put_text(q, row->who);
    stmt_put_i64(q, row->wall_ns);
    return stmt_insert(q, id);
}

void rows_read_retraction(struct stmt *q, void *out)
{
    struct model_retraction *r = out;
    r->id = stmt_i64(q);
    r->sweep = stmt_i64(q);
    r->cell = stmt_i64(q);
    r->run = stmt_i64(q);
    r->attempt = (uint32_t)stmt_i64(q);
    r->because = stmt_text(q);
    r->who = stmt_text(q);
    r->wall_ns = stmt_i64(q);
}

struct visit_retraction {
    struct model_retraction row;
    store_retraction_f *f;
    void *arg;
};

static int visit_retraction(void *arg)
{
    struct visit_retraction *v = arg;
    return v->f(&v->row, v->arg);
}

int store_retractions_each(struct store *store, int64_t sweep, store_retraction_f *f, void *arg)
{
    struct visit_retraction v = {.f = f, .arg = arg};
    struct stmt *q = stmt_open(store, ST_RETRACTIONS_EACH);
    stmt_put_i64(q, sweep);
    return stmt_each(q, rows_read_retraction, &v.row, visit_retraction, &v);
}

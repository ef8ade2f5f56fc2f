/* runs.c: rows of runs. */
#include "coordinator/store/runs.h"

#include "coordinator/store/db.h"
#include "coordinator/store/rows.h"
#include "coordinator/store/store.h"

void rows_read_run(struct stmt *q, void *out)
{
    struct model_run *r = out;
    r->id = stmt_i64(q);
    r->sweep = stmt_i64(q);
    r->host = stmt_i64(q);
    r->cell = stmt_i64(q);
    r->block = stmt_i64(q);
    r->look = stmt_i64(q);
    r->slot = stmt_i64(q);
    r->warmup = stmt_i64(q) != 0;
    r->state = (enum run_state)stmt_i64(q);
    r->state_wall_ns = stmt_i64(q);
    r->expect_wall_ns = stmt_i64(q);
    r->attempts = (uint32_t)stmt_i64(q);
    r->counted = (uint32_t)stmt_i64(q);
    r->tries_invalid = (uint32_t)stmt_i64(q);
    r->tries_interrupted = (uint32_t)stmt_i64(q);
    r->tries_failed = (uint32_t)stmt_i64(q);
    r->reason = stmt_text(q);
    r->replaced_by = stmt_i64(q);
}

int store_run_insert(struct store *store, const struct model_run *run, int64_t *id)
{
    struct stmt *q = stmt_open(store, ST_RUN_INSERT);
    stmt_put_i64(q, run->sweep);
    stmt_put_i64(q, run->host);
    stmt_put_i64(q, run->cell);
    stmt_put_i64(q, run->block);
    stmt_put_i64(q, run->look);
    stmt_put_i64(q, run->slot);
    stmt_put_i64(q, run->warmup);
    stmt_put_i64(q, run->state);
    stmt_put_i64(q, run->state_wall_ns);
    stmt_put_i64(q, run->expect_wall_ns);
    stmt_put_i64(q, run->attempts);
    stmt_put_i64(q, run->counted);
    stmt_put_i64(q, run->tries_invalid);
    stmt_put_i64(q, run->tries_interrupted);
    stmt_put_i64(q, run->tries_failed);
    stmt_put_text(q, run->reason);
    stmt_put_i64(q, run->replaced_by);
    return stmt_insert(q, id);
}

int store_run_put(struct store *store, const struct model_run *run)
{
    struct stmt *q = stmt_open(store, ST_RUN_PUT);
    stmt_put_i64(q, run->look);
    stmt_put_i64(q, run->state);
    stmt_put_i64(q, run->state_wall_ns);
    stmt_put_i64(q, run->expect_wall_ns);
    stmt_put_i64(q, run->attempts);
    stmt_put_i64(q, run->counted);
    stmt_put_i64(q, run->tries_invalid);
    stmt_put_i64(q, run->tries_interrupted);
    stmt_put_i64(q, run->tries_failed);
    stmt_put_text(q, run->reason);
    stmt_put_i64(q, run->replaced_by);
    stmt_put_i64(q, run->id);
    return stmt_run_one(q);
}

int store_run_get(struct store *store, int64_t id, struct mem_arena *arena, struct model_run *out)
{
    struct stmt *q = stmt_open(store, ST_RUN_GET);
    stmt_put_i64(q, id);
    return stmt_get(q, arena, rows_read_run, out);
}

int store_run_next(struct store *store, int64_t sweep, int64_t host, int64_t from_block,
                   struct mem_arena *arena, struct model_run *out)
{
    struct stmt *q = stmt_open(store, ST_RUN_NEXT);
    stmt_put_i64(q, sweep);
    stmt_put_i64(q, host);
    stmt_put_i64(q, from_block);
    return stmt_get(q, arena, rows_read_run, out);
}

int store_run_lost(struct store *store, int64_t sweep, int64_t host, int64_t from_block,
                   struct mem_arena *arena, struct model_run *out)
{
    struct stmt *q = stmt_open(store, ST_RUN_LOST);
    stmt_put_i64(q, sweep);
    stmt_put_i64(q, host);
    stmt_put_i64(q, from_block);
    return stmt_get(q, arena, rows_read_run, out);
}

struct visit {
    struct model_run run;
    store_run_f *f;
    void *arg;
};

static int visit(void *arg)
{
    struct visit *v = arg;
    return v->f(&v->run, v->arg);
}

static int each(struct stmt *q, store_run_f *f, void *arg)
{
    struct visit v = {.f = f, .arg = arg};
    return stmt_each(q, rows_read_run, &v.run, visit, &v);
}

int store_runs_of_sweep(struct store *store, int64_t sweep, store_run_f *f, void *arg)
{
    struct stmt *q = stmt_open(store, ST_RUNS_OF_SWEEP);
    stmt_put_i64(q, sweep);
    return each(q, f, arg);
}

int store_runs_of_host(struct store *store, int64_t sweep, int64_t host, int64_t from_slot,
                       int64_t limit, store_run_f *f, void *arg)
{
    struct stmt *q = stmt_open(store, ST_RUNS_OF_HOST);
    stmt_put_i64(q, sweep);
    stmt_put_i64(q, host);
    stmt_put_i64(q, from_slot);
    stmt_put_i64(q, limit > 0 ? limit : -1);
    return each(q, f, arg);
}

int store_runs_of_block(struct store *store, int64_t sweep, int64_t host, int64_t block,
                        store_run_f *f, void *arg)
{
    struct stmt *q = stmt_open(store, ST_RUNS_OF_BLOCK);
    stmt_put_i64(q, sweep);
    stmt_put_i64(q, host);
    stmt_put_i64(q, block);
    return each(q, f, arg);
}

int store_runs_of_cell(struct store *store, int64_t cell, store_run_f *f, void *arg)
{
    struct stmt *q = stmt_open(store, ST_RUNS_OF_CELL);
    stmt_put_i64(q, cell);
    return each(q, f, arg);
}

int store_runs_held(struct store *store, int64_t host, store_run_f *f, void *arg)
{
    struct stmt *q = stmt_open(store, host != 0 ? ST_RUNS_HELD_OF : ST_RUNS_HELD);
    if (host != 0) {
        stmt_put_i64(q, host);
    }
    return each(q, f, arg);
}

int store_runs_open(struct store *store, int64_t sweep, int64_t host, store_run_f *f, void *arg)
{
    struct stmt *q = stmt_open(store, host != 0 ? ST_RUNS_OPEN_OF : ST_RUNS_OPEN);
    stmt_put_i64(q, sweep);
    if (host != 0) {
        stmt_put_i64(q, host);
    }
    return each(q, f, arg);
}

static void read_count(struct stmt *q, void *out)
{
    struct store_run_count *c = out;
    c->sweep = stmt_i64(q);
    c->host = stmt_i64(q);
    c->state = (enum run_state)stmt_i64(q);
    c->warmup = stmt_i64(q) != 0;
    c->count = stmt_i64(q);
}

struct visit_count {
    struct store_run_count count;
    store_run_count_f *f;
    void *arg;
};

static int visit_count(void *arg)
{
    struct visit_count *v = arg;
    return v->f(&v->count, v->arg);
}

int store_run_counts(struct store *store, int64_t sweep, store_run_count_f *f, void *arg)
{
    struct visit_count v = {.f = f, .arg = arg};
    struct stmt *q = stmt_open(store, ST_RUN_COUNTS);
    stmt_put_i64(q, sweep);
    return stmt_each(q, read_count, &v.count, visit_count, &v);
}

static void read_sum(struct stmt *q, void *out)
{
    struct store_run_sum *s = out;
    s->host = stmt_i64(q);
    s->block = stmt_i64(q);
    s->slot = stmt_i64(q);
    s->cell = stmt_i64(q);
    s->warmup = stmt_i64(q) != 0;
    s->state = (enum run_state)stmt_i64(q);
    s->counted = (uint32_t)stmt_i64(q);
    s->tries_invalid = (uint32_t)stmt_i64(q);
    s->real_ns = stmt_opt(q);
    s->begin_wall_ns = stmt_opt(q);
    s->end_wall_ns = stmt_opt(q);
}

struct visit_sum {
    struct store_run_sum sum;
    store_run_sum_f *f;
    void *arg;
};

static int visit_sum(void *arg)
{
    struct visit_sum *v = arg;
    return v->f(&v->sum, v->arg);
}

int store_run_sums(struct store *store, int64_t sweep, const int64_t after[3], int64_t limit,
                   store_run_sum_f *f, void *arg)
{
    struct visit_sum v = {.f = f, .arg = arg};
    struct stmt *q = stmt_open(store, ST_RUN_SUMS_PAGE);
    stmt_put_i64(q, sweep);
    for (int i = 0; i < 3; i++) {
        stmt_put_i64(q, after[i]);
    }
    stmt_put_i64(q, limit);
    return stmt_each(q, read_sum, &v.sum, visit_sum, &v);
}

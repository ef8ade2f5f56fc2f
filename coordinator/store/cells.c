/* cells.c: rows of what a sweep does on a host: its progress there, its cells, its blocks. */
#include "coordinator/store/cells.h"

#include "coordinator/store/db.h"
#include "coordinator/store/rows.h"
#include "coordinator/store/store.h"

/* --- a sweep on a host --- */

void rows_read_sweep_host(struct stmt *q, void *out)
{
    struct model_sweep_host *h = out;
    *h = (struct model_sweep_host){0};
    h->sweep = stmt_i64(q);
    h->host = stmt_i64(q);
    h->selector = stmt_text(q);
    h->seed = (uint64_t)stmt_i64(q);
    h->order = (int)stmt_i64(q);
    h->until_runs = stmt_i64(q);
    h->warmup = stmt_i64(q);
    h->budget_ns = stmt_i64(q);
    h->retry_invalid = stmt_i64(q);
    h->retry_interrupted = stmt_i64(q);
    h->retry_failed = stmt_i64(q);
    h->settle_timeout_ns = stmt_i64(q);
    h->next_block = stmt_i64(q);
    h->next_slot = stmt_i64(q);
    h->used_ns = stmt_i64(q);
    h->finished = stmt_i64(q) != 0;
    h->skipped = stmt_text(q);
    h->settings = stmt_text(q);
}

int store_sweep_host_insert(struct store *store, const struct model_sweep_host *row)
{
    struct stmt *q = stmt_open(store, ST_SWEEP_HOST_INSERT);
    stmt_put_i64(q, row->sweep);
    stmt_put_i64(q, row->host);
    stmt_put_text(q, row->selector);
    stmt_put_i64(q, (int64_t)row->seed);
    stmt_put_i64(q, row->order);
    stmt_put_i64(q, row->until_runs);
    stmt_put_i64(q, row->warmup);
    stmt_put_i64(q, row->budget_ns);
    stmt_put_i64(q, row->retry_invalid);
    stmt_put_i64(q, row->retry_interrupted);
    stmt_put_i64(q, row->retry_failed);
    stmt_put_i64(q, row->settle_timeout_ns);
    stmt_put_i64(q, row->next_block);
    stmt_put_i64(q, row->next_slot);
    stmt_put_i64(q, row->used_ns);
    stmt_put_i64(q, row->finished);
    stmt_put_text(q, row->skipped);
    stmt_put_text(q, row->settings);
    return stmt_run(q, NULL);
}

int store_sweep_host_get(struct store *store, int64_t sweep, int64_t host, struct mem_arena *arena,
                         struct model_sweep_host *out)
{
    struct stmt *q = stmt_open(store, ST_SWEEP_HOST_GET);
    stmt_put_i64(q, sweep);
    stmt_put_i64(q, host);
    return stmt_get(q, arena, rows_read_sweep_host, out);
}

struct visit_sweep_host {
    struct model_sweep_host row;
    store_sweep_host_f *f;
    void *arg;
};

static int visit_sweep_host(void *arg)
{
    struct visit_sweep_host *v = arg;
    return v->f(&v->row, v->arg);
}

int store_sweep_hosts_each(struct store *store, int64_t sweep, store_sweep_host_f *f, void *arg)
{
    struct visit_sweep_host v = {.f = f, .arg = arg};
    struct stmt *q = stmt_open(store, ST_SWEEP_HOSTS_EACH);
    stmt_put_i64(q, sweep);
    return stmt_each(q, rows_read_sweep_host, &v.row, visit_sweep_host, &v);
}

int store_sweep_hosts_open(struct store *store, int64_t host, store_sweep_host_f *f, void *arg)
{
    struct visit_sweep_host v = {.f = f, .arg = arg};
    struct stmt *q = stmt_open(store, host != 0 ? ST_SWEEP_HOSTS_OPEN_OF : ST_SWEEP_HOSTS_OPEN);
    if (host != 0) {
        stmt_put_i64(q, host);
    }
    return stmt_each(q, rows_read_sweep_host, &v.row, visit_sweep_host, &v);
}

int store_sweep_host_progress(struct store *store, const struct model_sweep_host *row)
{
    struct stmt *q = stmt_open(store, ST_SWEEP_HOST_PROGRESS);
    stmt_put_i64(q, row->next_block);
    stmt_put_i64(q, row->next_slot);
    stmt_put_i64(q, row->used_ns);
    stmt_put_i64(q, row->finished);
    stmt_put_text(q, row->skipped);
    stmt_put_i64(q, row->sweep);
    stmt_put_i64(q, row->host);
    return stmt_run_one(q);
}

/* --- cells --- */

void rows_read_cell(struct stmt *q, void *out)
{
    struct model_cell *c = out;
    *c = (struct model_cell){0};
    c->id = stmt_i64(q);
    c->sweep = stmt_i64(q);
    c->host = stmt_i64(q);
    c->workload = stmt_i64(q);
    c->variant = stmt_i64(q);
    c->jobs = (int32_t)stmt_i64(q);
    c->state = (enum cell_state)stmt_i64(q);
    c->reason = stmt_text(q);
    c->setup_timeout_ns = stmt_i64(q);
    c->reset_timeout_ns = stmt_i64(q);
    c->run_timeout_ns = stmt_i64(q);
    c->check_timeout_ns = stmt_i64(q);
    c->fingerprint = stmt_text(q);
}

int store_cell_insert(struct store *store, const struct model_cell *cell, int64_t *id)
{
    struct stmt *q = stmt_open(store, ST_CELL_INSERT);
    stmt_put_i64(q, cell->sweep);
    stmt_put_i64(q, cell->host);
    stmt_put_i64(q, cell->workload);
    stmt_put_i64(q, cell->variant);
    stmt_put_i64(q, cell->jobs);
    stmt_put_i64(q, cell->state);
    stmt_put_text(q, cell->reason);
    stmt_put_i64(q, cell->setup_timeout_ns);
    stmt_put_i64(q, cell->reset_timeout_ns);
    stmt_put_i64(q, cell->run_timeout_ns);
    stmt_put_i64(q, cell->check_timeout_ns);
    stmt_put_text(q, cell->fingerprint);
    return stmt_insert(q, id);
}

int store_cell_get(struct store *store, int64_t id, struct mem_arena *arena, struct model_cell *out)
{
    struct stmt *q = stmt_open(store, ST_CELL_GET);
    stmt_put_i64(q, id);
    return stmt_get(q, arena, rows_read_cell, out);
}

struct visit_cell {
    struct model_cell cell;
    store_cell_f *f;
    void *arg;
};

static int visit_cell(void *arg)
{
    struct visit_cell *v = arg;
    return v->f(&v->cell, v->arg);
}

int store_cells_each(struct store *store, int64_t sweep, int64_t host, store_cell_f *f, void *arg)
{
    struct visit_cell v = {.f = f, .arg = arg};
    struct stmt *q = stmt_open(store, host != 0 ? ST_CELLS_OF_HOST : ST_CELLS_EACH);
    stmt_put_i64(q, sweep);
    if (host != 0) {
        stmt_put_i64(q, host);
    }
    return stmt_each(q, rows_read_cell, &v.cell, visit_cell, &v);
}

int store_cell_set_state(struct store *store, int64_t id, enum cell_state state, const char *reason)
{
    struct stmt *q = stmt_open(store, ST_CELL_SET_STATE);
    stmt_put_i64(q, state);
    stmt_put_text(q, reason);
    stmt_put_i64(q, id);
    return stmt_run_one(q);
}

int store_cell_set_fingerprint(struct store *store, int64_t id, const char *fingerprint)
{
    struct stmt *q = stmt_open(store, ST_CELL_SET_FINGERPRINT);
    stmt_put_text(q, fingerprint);
    stmt_put_i64(q, id);
    return stmt_run_one(q);
}

/* --- blocks --- */

static void read_block(struct stmt *q, void *out)
{
    struct model_block *b = out;
    b->sweep = stmt_i64(q);
    b->host = stmt_i64(q);
    b->number = stmt_i64(q);
    b->seed = (uint64_t)stmt_i64(q);
    b->mirror_of = stmt_i64(q);
    b->look = stmt_i64(q);
    b->drawn_wall_ns = stmt_i64(q);
    b->broken = stmt_i64(q) != 0;
}

int store_block_insert(struct store *store, const struct model_block *block)
{
    struct stmt *q = stmt_open(store, ST_BLOCK_INSERT);
    stmt_put_i64(q, block->sweep);
    stmt_put_i64(q, block->host);
    stmt_put_i64(q, block->number);
    stmt_put_i64(q, (int64_t)block->seed);
    stmt_put_i64(q, block->mirror_of);
    stmt_put_i64(q, block->look);
    stmt_put_i64(q, block->drawn_wall_ns);
    stmt_put_i64(q, block->broken);
    return stmt_run(q, NULL);
}

/* A statement whose parameters are the key of a block. */
static struct stmt *open_block(struct store *store, enum statement which, int64_t sweep,
                               int64_t host, int64_t number)
{
    struct stmt *q = stmt_open(store, which);
    stmt_put_i64(q, sweep);
    stmt_put_i64(q, host);
    stmt_put_i64(q, number);
    return q;
}

int store_block_get(struct store *store, int64_t sweep, int64_t host, int64_t number,
                    struct model_block *out)
{
    return stmt_get(open_block(store, ST_BLOCK_GET, sweep, host, number), NULL, read_block, out);
}

int store_block_set_broken(struct store *store, int64_t sweep, int64_t host, int64_t number)
{
    return stmt_run_one(open_block(store, ST_BLOCK_SET_BROKEN, sweep, host, number));
}

struct visit_block {
    struct model_block block;
    store_block_f *f;
    void *arg;
};

static int visit_block(void *arg)
{
    struct visit_block *v = arg;
    return v->f(&v->block, v->arg);
}

int store_blocks_each(struct store *store, int64_t sweep, int64_t host, store_block_f *f, void *arg)
{
    struct visit_block v = {.f = f, .arg = arg};
    struct stmt *q = stmt_open(store, ST_BLOCKS_EACH);
    stmt_put_i64(q, sweep);
    stmt_put_i64(q, host);
    return stmt_each(q, read_block, &v.block, visit_block, &v);
}

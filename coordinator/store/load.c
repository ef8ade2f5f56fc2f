/* load.c: a whole sweep in memory, page by page, and its progress. Small lists are read by one
 * statement each; cells by their key; runs by ranges of ids, each range with all that hangs on its
 * runs, so that what is read of one run is of one moment. */
#include "coordinator/store/load.h"

#include "common/err.h"
#include "common/mem.h"
#include "coordinator/store/db.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/list.h"
#include "coordinator/store/rows.h"
#include "coordinator/store/store.h"
#include "coordinator/store/sweeps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define LOAD_MAGIC 0x6c6f6164u
enum {
    IDS_A_ROW = 16, /* ids of runs that cost as much as a row */
    GAP_A_RUN = 4,  /* how far apart the ids of a range may be: between them are other sweeps' */
};

/* An array that grows in the arena while rows come. */
struct rows {
    char *data;
    size_t size; /* of one row */
    size_t count;
    size_t room;
};

enum load_stage { LOAD_LISTS, LOAD_CELLS, LOAD_IDS, LOAD_RUNS, LOAD_DONE };

struct store_load {
    unsigned magic;
    struct store *store;
    int64_t sweep;
    struct mem_arena *arena;
    struct model_sweep_data *out;
    enum load_stage stage;
    size_t read; /* rows of the last step */
    struct rows cells, runs, attempts, marks, facts;
    int64_t last[4]; /* key of the last cell or run: what comes after it is next */
    int64_t *ids;    /* of runs */
    size_t id_count, id_room;
    size_t at; /* the first one whose run is not read */
};

static void *next_row(struct rows *r, struct mem_arena *arena)
{
    if (r->count == r->room) {
        size_t room = r->room != 0 ? 2 * r->room : 64;
        char *data = mem_arena_array(arena, room, r->size);
        if (data == NULL) {
            return NULL;
        }
        if (r->count > 0) {
            memcpy(data, r->data, r->count * r->size);
        }
        r->data = data;
        r->room = room;
    }
    void *row = r->data + r->count * r->size;
    memset(row, 0, r->size);
    r->count++;
    return row;
}

/* Reads the rows of a statement, whose parameters are put, behind those of the array. */
static int add_rows(struct stmt *q, struct mem_arena *arena, stmt_row_f *row, struct rows *rows)
{
    struct store *store = stmt_store(q);
    int rc;
    stmt_copy_into(q, arena);
    while ((rc = stmt_next(q)) == 1) {
        void *at = next_row(rows, arena);
        if (at == NULL) {
            rc = db_fail(store, -ERR_LIMIT, "the sweep is larger than the memory allowed for it");
            break;
        }
        row(q, at);
    }
    return stmt_close(q, rc);
}

/* Reads every row of a statement whose parameter is the sweep. *out is NULL when there is none. */
static int load(struct store *store, enum statement which, int64_t sweep, struct mem_arena *arena,
                stmt_row_f *row, size_t size, void **out, size_t *count)
{
    struct rows rows = {.size = size};
    struct stmt *q = stmt_open(store, which);
    stmt_put_i64(q, sweep);
    int rc = add_rows(q, arena, row, &rows);
    *out = rc == 0 ? rows.data : NULL;
    *count = rc == 0 ? rows.count : 0;
    return rc;
}

static int load_hosts(struct store *store, int64_t sweep, struct mem_arena *arena,
                      struct model_sweep_data *out)
{
    void *rows = NULL;
    int rc = load(store, ST_HOSTS_OF_SWEEP, sweep, arena, rows_read_host, sizeof(struct model_host),
                  &rows, &out->host_count);
    struct model_host *hosts = rows;
    for (size_t i = 0; i < out->host_count && rc == 0; i++) {
        struct model_host *h = &hosts[i];
        rc = list_load(store, ST_HOST_CLASSES, h->id, arena, &h->classes, &h->class_count);
        if (rc == 0) {
            rc = store_host_facts(store, h->id, arena, &h->facts, &h->fact_count);
        }
    }
    out->hosts = hosts;
    return rc;
}

static int load_variants(struct store *store, int64_t sweep, struct mem_arena *arena,
                         struct model_sweep_data *out)
{
    void *rows = NULL;
    int rc = load(store, ST_VARIANTS_EACH, sweep, arena, rows_read_variant,
                  sizeof(struct model_variant), &rows, &out->variant_count);
    struct model_variant *variants = rows;
    for (size_t i = 0; i < out->variant_count && rc == 0; i++) {
        struct model_variant *v = &variants[i];
        rc = list_load(store, ST_VARIANT_ENV, v->id, arena, &v->env, &v->env_count);
    }
    out->variants = variants;
    return rc;
}

/* The lists that are short. */
static int load_lists(struct store *store, int64_t sweep, struct mem_arena *arena,
                      struct model_sweep_data *out)
{
    void *sweep_hosts = NULL;
    void *workloads = NULL;
    void *inputs = NULL;
    void *retractions = NULL;
    const struct {
        enum statement which;
        stmt_row_f *row;
        size_t size;
        void **rows;
        size_t *count;
    } parts[] = {
        {ST_SWEEP_HOSTS_EACH, rows_read_sweep_host, sizeof(*out->sweep_hosts), &sweep_hosts,
         &out->sweep_host_count},
        {ST_WORKLOADS_EACH, rows_read_workload, sizeof(*out->workloads), &workloads,
         &out->workload_count},
        {ST_INPUTS_EACH, rows_read_input, sizeof(*out->inputs), &inputs, &out->input_count},
        {ST_RETRACTIONS_EACH, rows_read_retraction, sizeof(*out->retractions), &retractions,
         &out->retraction_count},
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(parts); i++) {
        rc = load(store, parts[i].which, sweep, arena, parts[i].row, parts[i].size, parts[i].rows,
                  parts[i].count);
    }
    out->sweep_hosts = sweep_hosts;
    out->workloads = workloads;
    out->inputs = inputs;
    out->retractions = retractions;
    if (rc == 0) {
        rc = load_hosts(store, sweep, arena, out);
    }
    return rc == 0 ? load_variants(store, sweep, arena, out) : rc;
}

/* --- page by page --- */

static int step_lists(struct store_load *l)
{
    int rc = store_sweep_get(l->store, l->sweep, l->arena, &l->out->sweep);
    if (rc == 0) {
        rc = store_sweep_text(l->store, l->sweep, l->arena, &l->out->sweep.text);
    }
    if (rc == 0) {
        rc = load_lists(l->store, l->sweep, l->arena, l->out);
    }
    l->read = l->out->sweep_host_count + l->out->workload_count + l->out->variant_count +
              l->out->input_count + l->out->host_count + l->out->retraction_count;
    return rc;
}

/* Cells by host, workload, jobs, variant. 1: there may be more. */
static int step_cells(struct store_load *l, size_t page)
{
    size_t before = l->cells.count;
    struct stmt *q = stmt_open(l->store, ST_CELLS_PAGE);
    stmt_put_i64(q, l->sweep);
    for (size_t i = 0; i < 4; i++) {
        stmt_put_i64(q, l->last[i]);
    }
    stmt_put_i64(q, (int64_t)page);
    int rc = add_rows(q, l->arena, rows_read_cell, &l->cells);
    l->read = l->cells.count - before;
    if (rc == 0 && l->read > 0) {
        const struct model_cell *c = (const struct model_cell *)(void *)l->cells.data;
        c += l->cells.count - 1;
        l->last[0] = c->host;
        l->last[1] = c->workload;
        l->last[2] = c->jobs;
        l->last[3] = c->variant;
    }
    return rc < 0 ? rc : l->read == page;
}

static int compare_ids(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa;
    int64_t b = *(const int64_t *)pb;
    return a < b ? -1 : a > b;
}

/* Ids of the runs, by host, block, slot; sorted at their end. 1: there may be more. */
static int step_ids(struct store_load *l, size_t page)
{
    size_t n = 0;
    int rc;
    struct stmt *q = stmt_open(l->store, ST_RUN_IDS_PAGE);
    stmt_put_i64(q, l->sweep);
    for (size_t i = 0; i < 3; i++) {
        stmt_put_i64(q, l->last[i]);
    }
    stmt_put_i64(q, (int64_t)(page * IDS_A_ROW));
    while ((rc = stmt_next(q)) == 1) {
        if (l->id_count == l->id_room) {
            l->id_room = l->id_room == 0 ? 1024 : 2 * l->id_room;
            l->ids = mem_xrealloc(l->ids, l->id_room, sizeof(*l->ids));
        }
        l->ids[l->id_count++] = stmt_i64(q);
        for (size_t i = 0; i < 3; i++) {
            l->last[i] = stmt_i64(q);
        }
        n++;
    }
    rc = stmt_close(q, rc);
    l->read = n / IDS_A_ROW;
    if (rc == 0 && n < page * IDS_A_ROW && l->id_count > 0) {
        qsort(l->ids, l->id_count, sizeof(*l->ids), compare_ids);
    }
    return rc < 0 ? rc : n == page * IDS_A_ROW;
}

static int load_range(struct store_load *l, enum statement which, int64_t first, int64_t last,
                      stmt_row_f *row, struct rows *rows)
{
    size_t before = rows->count;
    struct stmt *q = stmt_open(l->store, which);
    stmt_put_i64(q, first);
    stmt_put_i64(q, last);
    stmt_put_i64(q, l->sweep);
    int rc = add_rows(q, l->arena, row, rows);
    l->read += rows->count - before;
    return rc;
}

/* A range of runs with all of theirs. 1: there are more. */
static int step_runs(struct store_load *l, size_t page)
{
    l->read = 0;
    while (l->at < l->id_count && l->read < page) {
        size_t most = (page - l->read + 3) / 4; /* most runs have one attempt, and few marks */
        size_t end = l->at + 1;
        int64_t first = l->ids[l->at];
        while (end < l->id_count && end - l->at < most &&
               l->ids[end] - first < (int64_t)(GAP_A_RUN * page)) {
            end++;
        }
        int64_t last = l->ids[end - 1];
        int rc = load_range(l, ST_RUNS_RANGE, first, last, rows_read_run, &l->runs);
        if (rc == 0) {
            rc = load_range(l, ST_ATTEMPTS_RANGE, first, last, rows_read_attempt, &l->attempts);
        }
        if (rc == 0) {
            rc = load_range(l, ST_MARKS_RANGE, first, last, rows_read_mark, &l->marks);
        }
        if (rc == 0) {
            rc = load_range(l, ST_FACTS_RANGE, first, last, rows_read_fact, &l->facts);
        }
        if (rc < 0) {
            return rc;
        }
        l->at = end;
    }
    return l->at < l->id_count;
}

static int compare_runs(const void *pa, const void *pb)
{
    const struct model_run *a = pa;
    const struct model_run *b = pb;
    if (a->host != b->host) {
        return a->host < b->host ? -1 : 1;
    }
    if (a->block != b->block) {
        return a->block < b->block ? -1 : 1;
    }
    return a->slot < b->slot ? -1 : a->slot > b->slot;
}

static void finish(struct store_load *l)
{
    struct model_sweep_data *d = l->out;
    if (l->runs.count > 0) {
        qsort(l->runs.data, l->runs.count, l->runs.size, compare_runs);
    }
    d->cells = (const void *)l->cells.data;
    d->cell_count = l->cells.count;
    d->runs = (const void *)l->runs.data;
    d->run_count = l->runs.count;
    d->attempts = (const void *)l->attempts.data;
    d->attempt_count = l->attempts.count;
    d->marks = (const void *)l->marks.data;
    d->mark_count = l->marks.count;
    d->facts = (const void *)l->facts.data;
    d->fact_count = l->facts.count;
}

static void enter(struct store_load *l, enum load_stage stage)
{
    l->stage = stage;
    for (size_t i = 0; i < ARRAY_LEN(l->last); i++) {
        l->last[i] = INT64_MIN;
    }
}

struct store_load *store_load_new(struct store *store, int64_t sweep, struct mem_arena *arena,
                                  struct model_sweep_data *out)
{
    struct store_load *l = mem_xzalloc(sizeof(*l));
    l->magic = LOAD_MAGIC;
    l->store = store;
    l->sweep = sweep;
    l->arena = arena;
    l->out = out;
    l->cells.size = sizeof(struct model_cell);
    l->runs.size = sizeof(struct model_run);
    l->attempts.size = sizeof(struct model_attempt);
    l->marks.size = sizeof(struct model_mark);
    l->facts.size = sizeof(struct model_attempt_fact);
    *out = (struct model_sweep_data){0};
    enter(l, LOAD_LISTS);
    return l;
}

int store_load_step(struct store_load *l, size_t page)
{
    int rc = 0;
    assert(l->magic == LOAD_MAGIC && page > 0);
    switch (l->stage) {
    case LOAD_LISTS:
        rc = step_lists(l);
        break;
    case LOAD_CELLS:
        rc = step_cells(l, page);
        break;
    case LOAD_IDS:
        rc = step_ids(l, page);
        break;
    case LOAD_RUNS:
        rc = step_runs(l, page);
        break;
    case LOAD_DONE:
        return 0;
    }
    if (rc == 0) {
        enter(l, (enum load_stage)(l->stage + 1));
    }
    if (l->stage == LOAD_DONE) {
        finish(l);
        return 0;
    }
    return rc < 0 ? rc : 1;
}

size_t store_load_read(const struct store_load *l)
{
    return l->read;
}

void store_load_free(struct store_load **load)
{
    if (*load == NULL) {
        return;
    }
    assert((*load)->magic == LOAD_MAGIC);
    free((*load)->ids);
    (*load)->magic = 0;
    free(*load);
    *load = NULL;
}

int store_load_sweep(struct store *store, int64_t sweep, struct mem_arena *arena,
                     struct model_sweep_data *out)
{
    enum { PAGE = 4096 };
    struct store_load *l = store_load_new(store, sweep, arena, out);
    int rc;
    do {
        rc = store_load_step(l, PAGE);
    } while (rc > 0);
    store_load_free(&l);
    return rc;
}

/* --- progress --- */

static void read_cell_progress(struct stmt *q, void *out)
{
    struct store_cell_progress *c = out;
    c->cell = stmt_i64(q);
    c->counted = stmt_i64(q);
    c->real_ns = stmt_i64(q);
    c->span_ns = stmt_i64(q);
    c->measured = stmt_i64(q);
}

/* Turns rows (sweep, host, state, warmup, count), which come by host, into one row a host. */
static int load_counts(struct store *store, int64_t sweep, struct mem_arena *arena,
                       struct rows *rows)
{
    struct store_host_progress *last = NULL;
    int rc;
    struct stmt *q = stmt_open(store, ST_RUN_COUNTS);
    stmt_put_i64(q, sweep);
    while ((rc = stmt_next(q)) == 1) {
        (void)stmt_i64(q); /* the sweep */
        int64_t host = stmt_i64(q);
        int64_t state = stmt_i64(q);
        bool warmup = stmt_i64(q) != 0;
        int64_t count = stmt_i64(q);
        if (last == NULL || last->host != host) {
            last = next_row(rows, arena);
            if (last == NULL) {
                rc = db_fail(store, -ERR_LIMIT,
                             "the sweep is larger than the memory allowed for it");
                break;
            }
            last->host = host;
        }
        if (state >= 0 && state < STORE_RUN_STATES) {
            (warmup ? last->warmups : last->runs)[state] = count;
        }
    }
    return stmt_close(q, rc);
}

int store_progress(struct store *store, int64_t sweep, struct mem_arena *arena,
                   struct store_progress *out)
{
    struct rows rows = {.size = sizeof(struct store_host_progress)};
    void *cells = NULL;
    *out = (struct store_progress){0};
    int rc = load_counts(store, sweep, arena, &rows);
    if (rc == 0) {
        out->hosts = (const void *)rows.data;
        out->host_count = rows.count;
    }
    if (rc == 0) {
        rc = load(store, ST_CELL_PROGRESS, sweep, arena, read_cell_progress,
                  sizeof(struct store_cell_progress), &cells, &out->cell_count);
    }
    out->cells = cells;
    return rc;
}

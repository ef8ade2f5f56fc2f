/* load.c: a whole sweep in memory, and its progress. Each kind of row is read by one statement
 * into one array. */
#include "coordinator/store/load.h"

#include "common/err.h"
#include "common/mem.h"
#include "coordinator/store/db.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/list.h"
#include "coordinator/store/rows.h"
#include "coordinator/store/store.h"
#include "coordinator/store/sweeps.h"

#include <stdlib.h>
#include <string.h>

/* An array that grows while rows come, and goes to the arena at its end. */
struct rows {
    char *data;
    size_t size; /* of one row */
    size_t count;
    size_t room;
};

static void *next_row(struct rows *r)
{
    if (r->count == r->room) {
        r->room = r->room != 0 ? 2 * r->room : 64;
        r->data = mem_xrealloc(r->data, r->room, r->size);
    }
    void *row = r->data + r->count * r->size;
    memset(row, 0, r->size);
    r->count++;
    return row;
}

/* Reads every row of a statement whose parameter is the sweep. *out is NULL when there is none. */
static int load(struct store *store, enum statement which, int64_t sweep, struct mem_arena *arena,
                stmt_row_f *row, size_t size, void **out, size_t *count)
{
    struct rows rows = {.size = size};
    int rc;
    *out = NULL;
    *count = 0;
    struct stmt *q = stmt_open(store, which);
    stmt_put_i64(q, sweep);
    stmt_copy_into(q, arena);
    while ((rc = stmt_next(q)) == 1) {
        row(q, next_row(&rows));
    }
    rc = stmt_close(q, rc);
    if (rc == 0 && rows.count > 0) {
        *out = mem_arena_array(arena, rows.count, size);
        if (*out == NULL) {
            rc = db_fail(store, -ERR_LIMIT, "the sweep is larger than the memory allowed for it");
        } else {
            memcpy(*out, rows.data, rows.count * size);
            *count = rows.count;
        }
    }
    free(rows.data);
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

/* The arrays whose rows hang on nothing else. */
static int load_plain(struct store *store, int64_t sweep, struct mem_arena *arena,
                      struct model_sweep_data *out)
{
    void *sweep_hosts = NULL;
    void *workloads = NULL;
    void *inputs = NULL;
    void *cells = NULL;
    void *runs = NULL;
    void *attempts = NULL;
    void *marks = NULL;
    void *facts = NULL;
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
        {ST_CELLS_EACH, rows_read_cell, sizeof(*out->cells), &cells, &out->cell_count},
        {ST_RUNS_OF_SWEEP, rows_read_run, sizeof(*out->runs), &runs, &out->run_count},
        {ST_ATTEMPTS_OF_SWEEP, rows_read_attempt, sizeof(*out->attempts), &attempts,
         &out->attempt_count},
        {ST_MARKS_OF_SWEEP, rows_read_mark, sizeof(*out->marks), &marks, &out->mark_count},
        {ST_FACTS_OF_SWEEP, rows_read_fact, sizeof(*out->facts), &facts, &out->fact_count},
        {ST_RETRACTIONS_EACH, rows_read_retraction, sizeof(*out->retractions), &retractions,
         &out->retraction_count},
    };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        int rc = load(store, parts[i].which, sweep, arena, parts[i].row, parts[i].size,
                      parts[i].rows, parts[i].count);
        if (rc < 0) {
            return rc;
        }
    }
    out->sweep_hosts = sweep_hosts;
    out->workloads = workloads;
    out->inputs = inputs;
    out->cells = cells;
    out->runs = runs;
    out->attempts = attempts;
    out->marks = marks;
    out->facts = facts;
    out->retractions = retractions;
    return 0;
}

int store_load_sweep(struct store *store, int64_t sweep, struct mem_arena *arena,
                     struct model_sweep_data *out)
{
    *out = (struct model_sweep_data){0};
    int rc = store_sweep_get(store, sweep, arena, &out->sweep);
    if (rc == 0) {
        rc = store_sweep_text(store, sweep, arena, &out->sweep.text);
    }
    if (rc == 0) {
        rc = load_plain(store, sweep, arena, out);
    }
    if (rc == 0) {
        rc = load_hosts(store, sweep, arena, out);
    }
    if (rc == 0) {
        rc = load_variants(store, sweep, arena, out);
    }
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
static int load_counts(struct store *store, int64_t sweep, struct rows *rows)
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
            last = next_row(rows);
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
    int rc = load_counts(store, sweep, &rows);
    if (rc == 0 && rows.count > 0) {
        struct store_host_progress *hosts = mem_arena_array(arena, rows.count, sizeof(hosts[0]));
        if (hosts == NULL) {
            rc = db_fail(store, -ERR_LIMIT, "the sweep is larger than the memory allowed for it");
        } else {
            memcpy(hosts, rows.data, rows.count * sizeof(hosts[0]));
            out->hosts = hosts;
            out->host_count = rows.count;
        }
    }
    free(rows.data);
    if (rc == 0) {
        rc = load(store, ST_CELL_PROGRESS, sweep, arena, read_cell_progress,
                  sizeof(struct store_cell_progress), &cells, &out->cell_count);
    }
    out->cells = cells;
    return rc;
}

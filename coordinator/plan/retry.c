/* retry.c: makes the runs of a sweep again that have no result. */
#include "coordinator/plan/retry.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "coordinator/plan/run.h"
#include "coordinator/plan/send.h"
#include "coordinator/plan/tally.h"
#include "coordinator/store/attempts.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/runs.h"
#include "coordinator/store/sweeps.h"

#include <stdlib.h>

struct retrying {
    struct plan *plan;
    struct plan_now now;
    const struct model_sweep *row;
    struct plan_sweep *sweep;
    struct plan_node *node; /* of the host that is gone through */
    int64_t *cells;         /* that are opened again there */
    size_t cell_count;
    size_t cell_room;
    int64_t n;
    struct diag *diag;
};

static int failed(struct retrying *r, int code)
{
    return code < 0 ? plan_fail(r->plan, code) : code;
}

static bool is_reopened(const struct retrying *r, int64_t cell)
{
    for (size_t i = 0; i < r->cell_count; i++) {
        if (r->cells[i] == cell) {
            return true;
        }
    }
    return false;
}

/* --- cells --- */

static int has_run(const struct model_run *run, void *arg)
{
    bool *found = arg;
    (void)run;
    *found = true;
    return 1;
}

/* A cell that was skipped when the sweep was accepted never had a run, and stays so. */
static int reopen_cell(const struct model_cell *cell, void *arg)
{
    struct retrying *r = arg;
    bool open = cell->state == CELL_FAILED;
    if (cell->state == CELL_SKIPPED) {
        int rc = store_runs_of_cell(r->plan->store, cell->id, has_run, &open);
        if (rc < 0) {
            return rc;
        }
    }
    if (!open) {
        return 0;
    }
    if (r->cell_count == r->cell_room) {
        r->cell_room = r->cell_room == 0 ? 16 : r->cell_room * 2;
        r->cells = mem_xrealloc(r->cells, r->cell_room, sizeof(*r->cells));
    }
    r->cells[r->cell_count++] = cell->id;
    tally_set_cell(r->plan, cell->sweep, cell->id, CELL_OPEN, NULL);
    return store_cell_set_state(r->plan->store, cell->id, CELL_OPEN, NULL);
}

/* --- runs --- */

static bool is_missing(const struct retrying *r, const struct model_run *run)
{
    if (run->counted != 0) {
        return false;
    }
    switch (run->state) {
    case RUN_NODATA:
    case RUN_SKIPPED:
        return true;
    case RUN_DONE: /* a warm-up is done with whatever came out, but where there was no tree */
        return !run->warmup || is_reopened(r, run->cell);
    default:
        return false;
    }
}

struct warmup {
    int64_t run;
    int64_t cell;
};

/* What is found in the runs of the host. */
struct found {
    struct retrying *r;
    int64_t *ids; /* of runs that are missing */
    size_t count;
    size_t room;
    struct warmup *warmups; /* that are done, with whatever came out */
    size_t warmup_count;
    size_t warmup_room;
    bool *measured; /* a cell, as in the node: it has runs to measure */
};

static void add_missing(struct found *f, int64_t run)
{
    if (f->count == f->room) {
        f->room = f->room == 0 ? 64 : f->room * 2;
        f->ids = mem_xrealloc(f->ids, f->room, sizeof(*f->ids));
    }
    f->ids[f->count++] = run;
}

static void add_warmup(struct found *f, const struct model_run *run)
{
    if (f->warmup_count == f->warmup_room) {
        f->warmup_room = f->warmup_room == 0 ? 64 : f->warmup_room * 2;
        f->warmups = mem_xrealloc(f->warmups, f->warmup_room, sizeof(*f->warmups));
    }
    f->warmups[f->warmup_count++] = (struct warmup){run->id, run->cell};
}

static int find_missing(const struct model_run *run, void *arg)
{
    struct found *f = arg;
    bool missing = is_missing(f->r, run);
    const struct plan_cell *cell = plan_find_cell(f->r->node, run->cell);
    if (missing) {
        add_missing(f, run->id);
    } else if (run->warmup && run->state == RUN_DONE) {
        add_warmup(f, run);
    }
    if (!run->warmup && cell != NULL && (missing || !model_run_is_end((int)run->state))) {
        f->measured[cell - f->r->node->cells] = true;
    }
    return 0;
}

/* The command ran to its end: what it reads has been read, also where the time is good for
 * nothing. */
static int find_warm(const struct model_attempt *attempt, void *arg)
{
    bool *warm = arg;
    *warm = attempt->whole && (attempt->reported == OUTCOME_OK ||
                               (attempt->reported == OUTCOME_INVALID && attempt->real_ns.has));
    return *warm ? 1 : 0;
}

/* Warm-ups that never warmed anything are missing where something is measured after them: the next
 * measured run of the cell would be its first. */
static int add_cold(struct found *f)
{
    const struct plan_node *node = f->r->node;
    bool drawn = plan_node_exhausted(node);
    int rc = 0;
    bool any = false;
    for (size_t i = 0; rc >= 0 && i < f->warmup_count; i++) {
        const struct plan_cell *cell = plan_find_cell(node, f->warmups[i].cell);
        bool warm = false;
        if (cell == NULL || !cell->open || (drawn && !f->measured[cell - node->cells])) {
            continue;
        }
        rc = store_attempts_of_run(f->r->plan->store, f->warmups[i].run, find_warm, &warm);
        if (rc >= 0 && !warm) {
            add_missing(f, f->warmups[i].run);
            any = true;
        }
    }
    if (rc >= 0 && any) { /* what waits at the worker comes after them */
        plan_send_withdraw(f->r->plan, node->host, f->r->row->id);
    }
    return rc < 0 ? rc : 0;
}

static int requeue(struct retrying *r)
{
    struct found f = {.r = r};
    f.measured = mem_xzalloc(r->node->cell_count + 1);
    int rc =
        store_runs_of_host(r->plan->store, r->row->id, r->node->row.host, 0, 0, find_missing, &f);
    if (rc == 0) {
        rc = add_cold(&f);
    }
    for (size_t i = 0; rc == 0 && i < f.count; i++) {
        struct model_run run;
        rc = plan_run_get(r->plan, f.ids[i], &run);
        if (rc == 0) {
            run.tries_invalid = run.tries_interrupted = run.tries_failed = 0;
            rc = plan_run_enter(r->plan, r->now, &run, RUN_QUEUED, "made again on request");
            r->n += rc == 0;
        }
    }
    free(f.ids);
    free(f.warmups);
    free(f.measured);
    return rc;
}

/* --- runs that were drawn without the cells that are open again --- */

struct block_list {
    int64_t *numbers;
    size_t count;
    size_t room;
};

static int list_block(const struct model_block *block, void *arg)
{
    struct block_list *list = arg;
    if (block->broken) {
        return 0;
    }
    if (list->count == list->room) {
        list->room = list->room == 0 ? 32 : list->room * 2;
        list->numbers = mem_xrealloc(list->numbers, list->room, sizeof(*list->numbers));
    }
    list->numbers[list->count++] = block->number;
    return 0;
}

struct presence {
    int64_t block;
    bool there;
};

static int look(const struct model_run *run, void *arg)
{
    struct presence *p = arg;
    p->there = run->block == p->block;
    return p->there ? 1 : 0;
}

static int add_run(struct retrying *r, int64_t cell, int64_t block)
{
    struct presence p = {block, false};
    struct plan_node *node = r->node;
    int rc = store_runs_of_cell(r->plan->store, cell, look, &p);
    if (rc < 0 || p.there) {
        return rc < 0 ? rc : 0;
    }
    struct model_run run = {.sweep = r->row->id,
                            .host = node->row.host,
                            .cell = cell,
                            .block = block,
                            .slot = node->row.next_slot,
                            .state = RUN_QUEUED,
                            .state_wall_ns = r->now.wall_ns};
    int64_t id;
    rc = store_run_insert(r->plan->store, &run, &id);
    if (rc == 0) {
        node->row.next_slot++;
        node->open_runs++;
        node->queued++;
        node->from_block = run.block < node->from_block ? run.block : node->from_block;
        r->n++;
    }
    return rc;
}

/* Block by block, so that every cell gets block i before any gets i + 1. */
static int make_up(struct retrying *r)
{
    struct block_list list = {NULL, 0, 0};
    int rc = store_blocks_each(r->plan->store, r->row->id, r->node->row.host, list_block, &list);
    for (size_t b = 0; rc == 0 && b < list.count; b++) {
        bool warmups = r->node->row.warmup > 0 && list.numbers[b] == 0;
        for (size_t i = 0; rc == 0 && !warmups && i < r->cell_count; i++) {
            rc = add_run(r, r->cells[i], list.numbers[b]);
        }
    }
    free(list.numbers);
    return rc;
}

/* --- a host, a sweep --- */

static int open_sweep(struct retrying *r)
{
    r->sweep = plan_find_sweep(r->plan, r->row->id);
    if (r->sweep != NULL) {
        return 0;
    }
    struct model_sweep row = *r->row;
    row.state = SWEEP_ACTIVE;
    row.ended_wall_ns = 0;
    r->sweep = plan_add_sweep(r->plan, &row, r->now);
    return store_sweep_set_state(r->plan->store, row.id, SWEEP_ACTIVE, 0, NULL);
}

static int find_host(struct retrying *r, int64_t id, struct plan_host **out)
{
    struct model_host row;
    *out = plan_find_host(r->plan, id);
    if (*out != NULL) {
        return 0;
    }
    int rc = store_host_get(r->plan->store, id, plan_scratch(r->plan), &row);
    if (rc == 0) {
        *out = plan_keep_host(r->plan, &row, r->now);
    }
    return rc;
}

/* The node as it is after its cells were opened, added if it had ended. */
static int open_node(struct retrying *r, const struct model_sweep_host *row, struct plan_host *host)
{
    r->node = plan_find_node(r->plan, row->sweep, row->host);
    if (r->node != NULL) {
        for (size_t i = 0; i < r->cell_count; i++) {
            plan_set_cell_open(r->node, r->cells[i], true);
        }
        return 0;
    }
    struct model_sweep_host fresh = *row;
    fresh.finished = false;
    return plan_add_node(r->plan, r->sweep, host, &fresh, r->now, &r->node);
}

static int retry_host(const struct model_sweep_host *row, void *arg)
{
    struct retrying *r = arg;
    struct plan_host *host = NULL;
    int rc = row->skipped == NULL ? find_host(r, row->host, &host) : 0;
    if (rc < 0 || row->skipped != NULL) {
        return rc;
    }
    if (host->state == HOST_REVOKED) { /* it would be waited for in vain */
        diag_note(r->diag, "host `%s` was revoked: its runs are not made again", host->name);
        return 0;
    }
    int64_t before = r->n;
    bool ended = plan_find_node(r->plan, row->sweep, row->host) == NULL;
    r->cell_count = 0;
    rc = store_cells_each(r->plan->store, row->sweep, row->host, reopen_cell, r);
    if (rc == 0) {
        rc = open_sweep(r);
    }
    if (rc == 0) {
        rc = open_node(r, row, host);
    }
    if (rc == 0) {
        rc = requeue(r);
    }
    if (rc == 0) {
        rc = make_up(r);
    }
    if (rc < 0) {
        return rc;
    }
    if (ended && !plan_node_exhausted(r->node)) {
        r->n++; /* blocks that were never drawn */
    }
    if (ended && r->n == before) {
        plan_drop_node(r->plan, r->node); /* nothing is missing there */
        return 0;
    }
    r->node->row.finished = false;
    return store_sweep_host_progress(r->plan->store, &r->node->row);
}

int64_t plan_retry(struct plan *plan, struct plan_now now, const struct model_sweep *sweep,
                   struct diag *diag)
{
    struct retrying r = {.plan = plan, .now = now, .row = sweep, .diag = diag};
    int rc = store_sweep_hosts_each(plan->store, sweep->id, retry_host, &r);
    free(r.cells);
    if (rc < 0) {
        return failed(&r, rc);
    }
    if (r.sweep != NULL && r.sweep->open_nodes == 0) {
        plan_drop_sweep(plan, r.sweep);
        rc = store_sweep_set_state(plan->store, sweep->id, sweep->state, sweep->ended_wall_ns,
                                   sweep->end_reason);
    }
    return rc < 0 ? failed(&r, rc) : r.n;
}

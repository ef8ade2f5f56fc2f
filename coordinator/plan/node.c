/* node.c: blocks, cells and the end of a sweep on one host. */
#include "coordinator/plan/node.h"

#include "common/buf.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/num.h"
#include "coordinator/plan/lease.h"
#include "coordinator/plan/order.h"
#include "coordinator/plan/run.h"
#include "coordinator/plan/tally.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/runs.h"
#include "coordinator/store/sweeps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- drawing --- */

struct cell_list {
    struct order_cell *cells;
    size_t count;
    size_t room;
};

static int list_cell(const struct model_cell *row, void *arg)
{
    struct cell_list *list = arg;
    if (list->count == list->room) {
        return -ERR_CORRUPT;
    }
    /* Rows of workloads and variants are numbered in the order of the file. */
    list->cells[list->count++] =
        (struct order_cell){row->id, row->workload, row->variant, row->jobs};
    return 0;
}

static int make_order(struct plan *plan, struct plan_node *node)
{
    if (node->order != NULL) {
        return 0;
    }
    struct cell_list list = {.room = node->cell_count};
    list.cells = mem_xarray(node->cell_count + 1, sizeof(*list.cells));
    int rc = store_cells_each(plan->store, node->row.sweep, node->row.host, list_cell, &list);
    if (rc == 0) {
        node->order = order_new(node->row.seed, node->row.order, (uint32_t)node->row.warmup,
                                list.cells, list.count);
        rc = node->order != NULL ? 0 : -ERR_NOMEM;
    }
    free(list.cells);
    return rc < 0 ? plan_fail(plan, rc) : 0;
}

static bool cell_is_open(int64_t id, void *arg)
{
    const struct plan_cell *cell = plan_find_cell(arg, id);
    return cell != NULL && cell->open;
}

static int insert_runs(struct plan *plan, struct plan_now now, struct plan_node *node,
                       const struct order_block *drawn, int64_t number, bool warmup)
{
    struct model_run run = {.sweep = node->row.sweep,
                            .host = node->row.host,
                            .block = number,
                            .warmup = warmup,
                            .state = RUN_QUEUED,
                            .state_wall_ns = now.wall_ns};
    for (size_t i = 0; i < drawn->count; i++) {
        int64_t id;
        run.cell = drawn->cells[i];
        run.slot = node->row.next_slot + (int64_t)i;
        int rc = store_run_insert(plan->store, &run, &id);
        if (rc < 0) {
            return plan_fail(plan, rc);
        }
    }
    return 0;
}

/* Tells the runs of the broken block which new ones replace them. */
struct replacing {
    struct plan *plan;
    struct plan_node *node;
    int64_t number; /* of the new block */
    int64_t cell;
    int64_t found;
};

static int find_new(const struct model_run *run, void *arg)
{
    struct replacing *r = arg;
    if (run->cell == r->cell) {
        r->found = run->id;
        return 1;
    }
    return 0;
}

static int tell_old(const struct model_run *row, void *arg)
{
    struct replacing *r = arg;
    if (row->state != RUN_REPLACED || row->replaced_by != 0) {
        return 0;
    }
    r->cell = row->cell;
    r->found = 0;
    int rc = store_runs_of_block(r->plan->store, row->sweep, row->host, r->number, find_new, r);
    if (rc < 0 || r->found == 0) {
        return rc < 0 ? rc : 0;
    }
    struct model_run run = *row;
    run.replaced_by = r->found;
    return store_run_put(r->plan->store, &run);
}

static int link_replaced(struct plan *plan, struct plan_node *node, int64_t number)
{
    struct replacing r = {.plan = plan, .node = node, .number = number};
    int rc =
        store_runs_of_block(plan->store, node->row.sweep, node->row.host, number - 1, tell_old, &r);
    return rc < 0 ? plan_fail(plan, rc) : 0;
}

/* Stores one block and what it moves on. */
static int store_block(struct plan *plan, struct plan_now now, struct plan_node *node,
                       const struct order_block *drawn)
{
    int64_t number = node->row.next_block;
    int64_t index = plan_node_index(node);
    struct model_block block = {.sweep = node->row.sweep,
                                .host = node->row.host,
                                .number = number,
                                .seed = drawn->seed,
                                .mirror_of = drawn->mirror_of >= 0 ? node->last_whole : -1,
                                .drawn_wall_ns = now.wall_ns};
    int rc = store_block_insert(plan->store, &block);
    if (rc < 0) {
        return plan_fail(plan, rc);
    }
    rc = insert_runs(plan, now, node, drawn, number, index == 0);
    if (rc == 0 && node->redraw) {
        rc = link_replaced(plan, node, number);
    }
    if (rc < 0) {
        return rc;
    }
    if (node->queued == 0) {
        node->from_block = number;
    }
    node->block_slot = node->row.next_slot;
    node->queued += (int64_t)drawn->count;
    node->open_runs += (int64_t)drawn->count;
    node->row.next_block = number + 1;
    node->row.next_slot += (int64_t)drawn->count;
    node->last_whole = number;
    node->redraw = false;
    rc = store_sweep_host_progress(plan->store, &node->row);
    return rc < 0 ? plan_fail(plan, rc) : 0;
}

int64_t plan_node_draw(struct plan *plan, struct plan_now now, struct plan_node *node)
{
    if (plan_node_exhausted(node)) {
        return 0;
    }
    int rc = make_order(plan, node);
    if (rc < 0) {
        return rc;
    }
    struct order_block drawn;
    order_draw(node->order, plan_node_index(node), cell_is_open, node, &drawn);
    assert(drawn.count > 0); /* some cell is open, and block 0 is there only with warm-ups */
    rc = store_block(plan, now, node, &drawn);
    return rc < 0 ? rc : (int64_t)drawn.count;
}

/* --- breaking --- */

struct block_look {
    bool begun;
    bool waits;
};

static int look_at(const struct model_run *run, void *arg)
{
    struct block_look *look = arg;
    look->begun = look->begun || run->attempts > 0;
    look->waits = look->waits || run->state == RUN_QUEUED;
    return 0;
}

struct breaking {
    struct plan *plan;
    struct plan_now now;
};

static int replace_run(const struct model_run *row, void *arg)
{
    struct breaking *b = arg;
    if (row->state != RUN_QUEUED && row->state != RUN_DONE) {
        return 0;
    }
    struct model_run run = *row;
    run.counted = 0;
    return plan_run_enter(b->plan, b->now, &run, RUN_REPLACED, PLAN_BROKEN_TEXT);
}

int plan_node_break(struct plan *plan, struct plan_now now, struct plan_node *node)
{
    int64_t number = node->row.next_block - 1;
    bool warmups = node->row.warmup > 0 && number == 0;
    if (number < 0 || warmups || node->redraw || node->queued == 0) {
        return 0;
    }
    struct block_look look = {false, false};
    int rc =
        store_runs_of_block(plan->store, node->row.sweep, node->row.host, number, look_at, &look);
    if (rc == 0 && look.begun && look.waits) {
        struct breaking b = {plan, now};
        rc = store_block_set_broken(plan->store, node->row.sweep, node->row.host, number);
        if (rc == 0) {
            rc = store_runs_of_block(plan->store, node->row.sweep, node->row.host, number,
                                     replace_run, &b);
        }
        node->broken++;
        node->redraw = true;
        /* The block before it is the last whole one: broken blocks stand alone or in a row. */
        struct model_block before;
        node->last_whole = number - 1;
        while (rc == 0 && node->last_whole >= 0) {
            rc = store_block_get(plan->store, node->row.sweep, node->row.host, node->last_whole,
                                 &before);
            if (rc == 0 && !before.broken) {
                break;
            }
            node->last_whole--;
        }
        if (rc == -ERR_NOTFOUND) { /* without warm-ups there is no block 0 */
            node->last_whole = -1;
            rc = 0;
        }
    }
    return rc < 0 ? plan_fail(plan, rc) : 0;
}

/* --- the end --- */

/* What was lost at once has one reason, and stands in the last blocks that were drawn. */
enum { LOST_BLOCKS = 2 };

int plan_node_lost(struct plan *plan, const struct model_sweep_host *row, struct mem_arena *arena,
                   const char **reason)
{
    struct model_run run;
    int rc = store_run_lost(plan->store, row->sweep, row->host, row->next_block - LOST_BLOCKS,
                            arena, &run);
    *reason = rc == 0 ? run.reason : NULL;
    if (rc == -ERR_NOTFOUND) {
        const struct plan_host *host = plan_find_host(plan, row->host);
        bool undrawn = row->skipped == NULL && row->next_block <= row->until_runs;
        *reason = host != NULL && host->state == HOST_REVOKED && undrawn ? PLAN_REVOKED_TEXT : NULL;
        rc = 0;
    }
    return rc;
}

/* Hosts that stopped at their budget or were lost, as the reason of the sweep's end. */
struct sweep_end {
    struct plan *plan;
    struct buf reason;
};

static int tell_host(const struct model_sweep_host *row, void *arg)
{
    struct sweep_end *e = arg;
    const struct plan_host *host = plan_find_host(e->plan, row->host);
    const char *name = host != NULL ? host->name : "?";
    const char *also = e->reason.len > 0 ? "; " : "";
    char span[32];
    const char *lost;
    int rc = plan_node_lost(e->plan, row, plan_scratch(e->plan), &lost);
    if (rc == 0 && plan_over_budget(row) && row->next_block <= row->until_runs) {
        buf_printf(&e->reason, "%s%s: its budget of %s is used up", also, name,
                   num_duration_text(span, sizeof(span), row->budget_ns));
    } else if (rc == 0 && lost != NULL) {
        buf_printf(&e->reason, "%s%s: %s", also, name, lost);
    }
    return rc;
}

static int end_sweep(struct plan *plan, struct plan_now now, struct plan_sweep *sweep)
{
    struct sweep_end e = {plan, BUF_INIT};
    int rc = store_sweep_hosts_each(plan->store, sweep->id, tell_host, &e);
    const char *reason = e.reason.len > 0 ? buf_str(&e.reason) : NULL;
    if (rc == 0) {
        rc = store_sweep_set_state(plan->store, sweep->id, SWEEP_DONE, now.wall_ns, reason);
    }
    if (rc < 0) {
        plan_fail(plan, rc);
    } else {
        rc = plan_event(plan, now, EVENT_SWEEP_ENDED, sweep->id, 0, 0, NULL, "%s is done%s%s",
                        sweep->ref, reason != NULL ? ": " : "", reason != NULL ? reason : "");
        plan_drop_sweep(plan, sweep);
    }
    buf_fini(&e.reason);
    return rc;
}

int plan_node_end(struct plan *plan, struct plan_now now, struct plan_node *node)
{
    struct plan_sweep *sweep = node->sweep;
    node->row.finished = true;
    int rc = store_sweep_host_progress(plan->store, &node->row);
    if (rc < 0) {
        return plan_fail(plan, rc);
    }
    plan_drop_node(plan, node);
    return sweep->open_nodes > 0 ? 0 : end_sweep(plan, now, sweep);
}

int plan_node_settle(struct plan *plan, struct plan_now now, struct plan_node *node)
{
    if (node->open_runs > 0 || !plan_node_exhausted(node)) {
        return 0;
    }
    int rc = plan_node_end(plan, now, node);
    return rc < 0 ? rc : 1;
}

/* --- cells that cannot be measured --- */

struct failing {
    struct plan *plan;
    struct plan_now now;
    struct plan_node *node;
    int64_t workload;
    int64_t variant;
    enum cell_state state;
    const char *reason;
};

static int skip_run(const struct model_run *row, void *arg)
{
    struct failing *f = arg;
    if (row->state != RUN_QUEUED) {
        return 0;
    }
    struct model_run run = *row;
    return plan_run_enter(f->plan, f->now, &run, RUN_SKIPPED, f->reason);
}

static void withdraw_cell(struct failing *f, int64_t cell)
{
    struct plan_host *host = f->node->host;
    for (size_t i = 0; i < host->flight_count; i++) {
        struct plan_flight *flight = &host->flights[i];
        if (flight->cell == cell && flight->state <= FLIGHT_HELD && !flight->leaving) {
            flight->leaving = true;
            plan_add_message(f->plan, MESSAGE_WITHDRAW, host->id, flight->run, flight->attempt,
                             NULL);
        }
    }
}

static int fail_cell(const struct model_cell *cell, void *arg)
{
    struct failing *f = arg;
    if (cell->workload != f->workload || cell->variant != f->variant || cell->state != CELL_OPEN) {
        return 0;
    }
    int rc = store_cell_set_state(f->plan->store, cell->id, f->state, f->reason);
    if (rc == 0) {
        tally_set_cell(f->plan, cell->sweep, cell->id, f->state, f->reason);
        plan_set_cell_open(f->node, cell->id, false);
        rc = store_runs_of_cell(f->plan->store, cell->id, skip_run, f);
    }
    if (rc == 0) {
        withdraw_cell(f, cell->id);
        rc = plan_event(f->plan, f->now, EVENT_CELL_CLOSED, cell->sweep, cell->host, 0, NULL,
                        "cell %lld: %s", (long long)cell->id, f->reason);
    }
    return rc;
}

int plan_node_fail_cells(struct plan *plan, struct plan_now now, struct plan_node *node,
                         int64_t cell, enum cell_state state, const char *reason)
{
    struct model_cell row;
    int rc = store_cell_get(plan->store, cell, plan_scratch(plan), &row);
    if (rc == 0) {
        struct failing f = {plan, now, node, row.workload, row.variant, state, reason};
        rc = store_cells_each(plan->store, row.sweep, row.host, fail_cell, &f);
    }
    return rc < 0 ? plan_fail(plan, rc) : 0;
}

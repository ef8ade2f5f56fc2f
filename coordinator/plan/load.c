/* load.c: reads what is not ended from the store into memory: open sweeps, their nodes, held runs.
 * Times of which nothing is known but the wall clock's begin anew: after a restart every deadline
 * counts from the restart. */
#include "common/err.h"
#include "common/mem.h"
#include "coordinator/plan/lease.h"
#include "coordinator/plan/run.h"
#include "coordinator/plan/state.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/runs.h"
#include "coordinator/store/sweeps.h"

#include <assert.h>
#include <stdlib.h>

/* What a callback of the store needs. */
struct load {
    struct plan *plan;
    struct plan_now now;
    struct plan_node *node;
};

static int load_host(const struct model_host *row, void *arg)
{
    struct load *load = arg;
    plan_keep_host(load->plan, row, load->now);
    return 0;
}

static int load_sweep(const struct model_sweep *row, void *arg)
{
    struct load *load = arg;
    plan_add_sweep(load->plan, row, load->now);
    return 0;
}

static int load_cell(const struct model_cell *row, void *arg)
{
    struct plan_node *node = arg;
    if (node->cell_count % 64 == 0) {
        node->cells = mem_xrealloc(node->cells, node->cell_count + 64, sizeof(*node->cells));
    }
    bool open = row->state == CELL_OPEN;
    node->cells[node->cell_count++] = (struct plan_cell){row->id, open};
    node->open_cells += open;
    return 0;
}

static int compare_ids(const void *pa, const void *pb)
{
    const struct plan_cell *a = pa;
    const struct plan_cell *b = pb;
    return a->id < b->id ? -1 : a->id > b->id;
}

static int load_block(const struct model_block *row, void *arg)
{
    struct plan_node *node = arg;
    if (row->broken) {
        node->broken++;
    } else {
        node->last_whole = row->number;
    }
    node->redraw = row->broken;
    return 0;
}

static int load_run(const struct model_run *row, void *arg)
{
    struct plan_node *node = arg;
    node->open_runs++;
    if (row->state == RUN_QUEUED) {
        node->queued++;
        if (node->queued == 1 || row->block < node->from_block) {
            node->from_block = row->block;
        }
    }
    return 0;
}

static int load_top(const struct model_run *row, void *arg)
{
    struct plan_node *node = arg;
    if (row->block == node->row.next_block - 1 && row->slot < node->block_slot) {
        node->block_slot = row->slot;
    }
    if (row->attempts > 0 && row->slot > node->top_slot) {
        node->top_slot = row->slot;
    }
    return 0;
}

/* The last slot that was handed out is in one of the last two blocks. */
static int load_top_slot(struct plan *plan, struct plan_node *node)
{
    int rc = 0;
    for (int64_t b = node->row.next_block - 1, n = 0; rc == 0 && b >= 0 && n < 2; b--, n++) {
        rc = store_runs_of_block(plan->store, node->row.sweep, node->row.host, b, load_top, node);
    }
    return rc;
}

int plan_add_node(struct plan *plan, struct plan_sweep *sweep, struct plan_host *host,
                  const struct model_sweep_host *row, struct plan_now now, struct plan_node **out)
{
    struct plan_node *node = mem_xzalloc(sizeof(*node));
    node->sweep = sweep;
    node->host = host;
    node->row = *row;
    node->row.selector = NULL;
    node->row.settings = NULL;
    node->row.skipped = NULL;
    node->last_whole = -1;
    node->top_slot = -1;
    node->from_block = row->next_block;
    node->block_slot = row->next_slot;
    node->since_mono_ns = now.mono_ns;
    if (host->node_count == host->node_room) {
        host->node_room = host->node_room == 0 ? 4 : host->node_room * 2;
        host->nodes = mem_xrealloc(host->nodes, host->node_room, sizeof(*host->nodes));
    }
    host->nodes[host->node_count++] = node;
    sweep->open_nodes++;

    int rc = store_cells_each(plan->store, row->sweep, row->host, load_cell, node);
    if (rc == 0) {
        qsort(node->cells, node->cell_count, sizeof(*node->cells), compare_ids);
        rc = store_blocks_each(plan->store, row->sweep, row->host, load_block, node);
    }
    if (rc == 0) {
        rc = store_runs_open(plan->store, row->sweep, row->host, load_run, node);
    }
    if (rc == 0) {
        rc = load_top_slot(plan, node);
    }
    if (rc < 0) {
        plan_drop_node(plan, node);
        return plan_fail(plan, rc);
    }
    *out = node;
    return 0;
}

static int load_node(const struct model_sweep_host *row, void *arg)
{
    struct load *load = arg;
    struct plan_sweep *sweep = plan_find_sweep(load->plan, row->sweep);
    struct plan_host *host = plan_find_host(load->plan, row->host);
    assert(sweep != NULL && host != NULL);
    struct plan_node *node;
    int rc = plan_add_node(load->plan, sweep, host, row, load->now, &node);
    /* What it was serving is what it has begun and not ended. */
    bool held = rc == 0 && node->open_runs > node->queued;
    if (held || (rc == 0 && host->serving == 0 && plan_node_in_block(node))) {
        host->serving = sweep->id;
    }
    return rc;
}

/* A run that its host holds, as far as the store knows: what the host says of it comes later. */
static int load_flight(struct plan *plan, struct plan_now now, int64_t id)
{
    struct model_run run;
    int rc = plan_run_get(plan, id, &run);
    if (rc < 0) {
        return plan_fail(plan, rc);
    }
    struct plan_host *host = plan_find_host(plan, run.host);
    assert(host != NULL);
    struct plan_flight *flight = plan_find_flight(host, run.id, run.attempts);
    if (flight == NULL) {
        flight = plan_add_flight(host, run.id, run.attempts, now);
        /* Nobody knows how far it is: it may be in the making until its limits say otherwise. */
        flight->state = run.state == RUN_AWAY ? FLIGHT_AWAY : FLIGHT_HELD;
        struct plan_node *node = plan_find_node(plan, run.sweep, run.host);
        flight->out_of_order = run.attempts > 1 && node != NULL && run.slot < node->top_slot;
    }
    flight->unsent = false;
    return plan_lease_attach(plan, now, host, flight, &run);
}

int plan_load(struct plan *plan, struct plan_now now)
{
    struct load load = {.plan = plan, .now = now};
    int rc = store_hosts_each(plan->store, load_host, &load);
    if (rc == 0) {
        static const struct store_sweep_filter open = {.open_only = true};
        rc = store_sweeps_each(plan->store, &open, load_sweep, &load);
    }
    if (rc == 0) {
        rc = store_sweep_hosts_open(plan->store, 0, load_node, &load);
    }
    for (size_t i = 0; i < plan->host_count; i++) {
        for (size_t k = 0; k < plan->hosts[i]->flight_count; k++) {
            plan->hosts[i]->flights[k].wanted = false; /* until a run says otherwise */
        }
    }
    int64_t *ids = NULL;
    size_t count = 0;
    if (rc == 0) {
        rc = plan_runs_open(plan, 0, 0, NULL, NULL, &ids, &count);
    }
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = load_flight(plan, now, ids[i]);
    }
    return rc < 0 ? plan_fail(plan, rc) : 0;
}

void plan_unload(struct plan *plan)
{
    for (size_t i = 0; i < plan->host_count; i++) {
        struct plan_host *host = plan->hosts[i];
        while (host->node_count > 0) {
            plan_drop_node(plan, host->nodes[host->node_count - 1]);
        }
    }
    while (plan->sweep_count > 0) {
        plan_drop_sweep(plan, plan->sweeps[plan->sweep_count - 1]);
    }
    free(plan->sweeps);
    plan->sweeps = NULL;
    plan->sweep_room = 0;
}

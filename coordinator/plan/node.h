/* node.h: what a sweep does on one host: drawing its blocks, breaking one, its end. Private to
 * coordinator/plan. */
#ifndef MAKESPAN_COORDINATOR_PLAN_NODE_H
#define MAKESPAN_COORDINATOR_PLAN_NODE_H

#include "coordinator/plan/state.h"

/* Draws the next block that has a run in it, and stores block, runs and progress. Returns how many
 * runs were drawn, 0: nothing is left to draw; or a failure of the store. */
int64_t plan_node_draw(struct plan *plan, struct plan_now now, struct plan_node *node) MUST_CHECK;

/* Another sweep comes between: the node's last block, if it is begun and not over, is
 * broken. Its runs are REPLACED (those at the host when they are over) and the block is drawn
 * again. Warm-ups are not broken: they go on where they were. 0 or a failure of the store. */
int plan_node_break(struct plan *plan, struct plan_now now, struct plan_node *node) MUST_CHECK;

/* If every run is at its end and nothing is left to draw, the node ends, and with the last node the
 * sweep; the pointer is dead then. 1: it ended, 0: not, or a failure of the store. */
int plan_node_settle(struct plan *plan, struct plan_now now, struct plan_node *node) MUST_CHECK;
/* Why a host that has finished has no data of some runs: *reason in the arena, NULL: it has all, or
 * that is not known. 0 or a failure of the store. */
int plan_node_lost(struct plan *plan, const struct model_sweep_host *row, struct mem_arena *arena,
                   const char **reason) MUST_CHECK;
/* Ends it in any case. */
int plan_node_end(struct plan *plan, struct plan_now now, struct plan_node *node) MUST_CHECK;

/* The tree of a workload and variant cannot be made on the host, or the host will not: the open
 * cells of both get the state and reason, their QUEUED runs are SKIPPED, what is in the worker's
 * queue of them is withdrawn. 0 or a failure of the store. */
int plan_node_fail_cells(struct plan *plan, struct plan_now now, struct plan_node *node,
                         int64_t cell, enum cell_state state, const char *reason) MUST_CHECK;

#endif

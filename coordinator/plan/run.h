/* run.h: the one writer of a run's state. Private to coordinator/plan.
 *
 * Every step is one of model.def's table, is written with its reason, and becomes an event. */
#ifndef MAKESPAN_COORDINATOR_PLAN_RUN_H
#define MAKESPAN_COORDINATOR_PLAN_RUN_H

#include "coordinator/plan/state.h"

#define PLAN_BROKEN_TEXT "another sweep broke its block"

/* Reads a run into the turn's scratch memory. 0; -ERR_NOTFOUND; or a failure of the store, which is
 * kept. */
int plan_run_get(struct plan *plan, int64_t id, struct model_run *out) MUST_CHECK;

/* Steps to another state and writes the whole row: attempts, counted, tries, replaced_by and
 * expect_wall_ns as they stand in `run` (expect_wall_ns becomes 0 where nothing is expected). The
 * node's counts follow. `reason` is borrowed, NULL: none. A step that is not in the table is our
 * bug. 0 or a failure of the store. */
int plan_run_enter(struct plan *plan, struct plan_now now, struct model_run *run,
                   enum run_state state, const char *reason) MUST_CHECK;
/* Writes the row without a step. */
int plan_run_write(struct plan *plan, const struct model_run *run) MUST_CHECK;

/* An attempt of the run is over or was not made, and the run still wants one: QUEUED again, at its
 * old place; SKIPPED when its cell is no longer open; REPLACED when its block was broken. */
int plan_run_again(struct plan *plan, struct plan_now now, struct model_run *run,
                   const char *reason) MUST_CHECK;
/* The run is over with what it has: DONE, or REPLACED when its block was broken. */
int plan_run_finish(struct plan *plan, struct plan_now now, struct model_run *run,
                    const char *reason) MUST_CHECK;

typedef bool plan_run_pick_f(const struct model_run *run, void *arg);
/* Ids, in scratch memory, of the runs that `pick` takes (NULL: all) of those that are not at their
 * end, of a sweep on a host (0: on every host). With sweep 0: of those that the host holds or may
 * hold. 0 or a failure of the store. */
int plan_runs_open(struct plan *plan, int64_t sweep, int64_t host, plan_run_pick_f *pick, void *arg,
                   int64_t **ids, size_t *count) MUST_CHECK;

#endif

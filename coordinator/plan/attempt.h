/* attempt.h: what follows from a whole attempt. Private to coordinator/plan; its door is
 * plan_attempt_whole() of fleet.h. */
#ifndef MAKESPAN_COORDINATOR_PLAN_ATTEMPT_H
#define MAKESPAN_COORDINATOR_PLAN_ATTEMPT_H

#include "coordinator/plan/state.h"

/* A measured run whose attempts come back as warm-ups, since the tree was made again for each, is
 * measured in a fresh tree after this many. */
enum { PLAN_FRESH_MAX = 3 };

/* Whether the next attempt of a run is a warm-up when its tree is fresh. 0 or a failure of the
 * store. */
int plan_attempt_fresh(struct plan *plan, const struct plan_node *node, const struct model_run *run,
                       bool *fresh_warmup) MUST_CHECK;

#endif

/* now.h: what a host does at this moment and what a sweep waits for there, as JSON. Private to
 * coordinator/plan. */
#ifndef MAKESPAN_COORDINATOR_PLAN_NOW_H
#define MAKESPAN_COORDINATOR_PLAN_NOW_H

#include "common/json.h"
#include "coordinator/plan/state.h"

/* The host's flights of a sweep (0: of every one), as a list. */
int now_flights(struct plan *plan, struct plan_now now, const struct plan_host *host, int64_t sweep,
                json_t **out) MUST_CHECK;
/* What the node waits for, or null while it has something at the host. */
json_t *now_wait(const struct plan *plan, struct plan_now now, const struct plan_node *node);

#endif

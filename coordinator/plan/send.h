/* send.h: handing out: the next run of a node becomes an assignment. Private to coordinator/plan. */
#ifndef MAKESPAN_COORDINATOR_PLAN_SEND_H
#define MAKESPAN_COORDINATOR_PLAN_SEND_H

#include "coordinator/plan/state.h"

/* Hands out whatever the scheduler allows, drawing blocks where none is left, and withdraws what
 * has not begun where a sweep of higher priority waits. 0 or a failure of the store. */
int plan_send_turn(struct plan *plan, struct plan_now now) MUST_CHECK;
/* The messages of this turn leave. */
void plan_send_messages(struct plan *plan);
/* Withdraws what is in the host's queue and has not begun, of a sweep (0: of every one). */
void plan_send_withdraw(struct plan *plan, struct plan_host *host, int64_t sweep);

#endif

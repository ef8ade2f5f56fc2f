/* submit.h: requests on their way up the ladder. Private to coordinator/plan; its doors are in
 * sweep.h. */
#ifndef MAKESPAN_COORDINATOR_PLAN_SUBMIT_H
#define MAKESPAN_COORDINATOR_PLAN_SUBMIT_H

#include "coordinator/plan/state.h"

/* Takes every request as far as it goes in this turn. */
void plan_requests_turn(struct plan *plan, struct plan_now now);
/* Hands out the answers that are ready: code 0: the turn is committed; negative: its rows are gone,
 * and whoever counted on them is told so. */
void plan_requests_answer(struct plan *plan, int code);
/* Answers everybody -ERR_CLOSED. */
void plan_requests_free(struct plan *plan);

#endif

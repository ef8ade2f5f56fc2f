/* retry.h: runs that ended without an attempt that counts are made again. Private to
 * coordinator/plan. */
#ifndef MAKESPAN_COORDINATOR_PLAN_RETRY_H
#define MAKESPAN_COORDINATOR_PLAN_RETRY_H

#include "coordinator/plan/state.h"

/* Of a sweep that is open or done: cells whose setup failed, or which the worker refused, are open
 * again, and get the runs that were drawn without them; every run that is DONE, SKIPPED or NODATA
 * without a counted attempt is QUEUED with fresh tries; what was not drawn for a lost host is drawn.
 * A warm-up whose command never ran to its end is made again, before them, where its cell has runs
 * to measure; one that did is not, but in a cell whose tree could not be made.
 * A host that was revoked is left out, with a note in diag. A sweep that was done is active again. Returns how many runs are made again, or a failure of the
 * store. */
int64_t plan_retry(struct plan *plan, struct plan_now now, const struct model_sweep *sweep,
                   struct diag *diag) MUST_CHECK;

#endif

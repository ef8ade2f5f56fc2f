/* lease.h: limits of every wait for a host: an assignment that is not taken, an attempt past its
 * expected end, a host that is away too long. Private to coordinator/plan.
 *
 * All deadlines are monotonic. After a restart they count from the restart, since the wall clock
 * may have been stepped. */
#ifndef MAKESPAN_COORDINATOR_PLAN_LEASE_H
#define MAKESPAN_COORDINATOR_PLAN_LEASE_H

#include "coordinator/plan/state.h"

#define PLAN_REVOKED_TEXT "the host was revoked"

enum { PLAN_LEASE_SLACK_S = 600 }; /* for the archive's way, flushing and the clock's grain */

/* Ties a flight to its run: sweep, cell, limits, whether it is wanted. 0 or a failure of the
 * store. */
int plan_lease_attach(struct plan *plan, struct plan_now now, struct plan_host *host,
                      struct plan_flight *flight, const struct model_run *run) MUST_CHECK;
/* How long the attempt may take from the begin of a phase on. */
int64_t plan_lease_span(const struct plan_flight *flight, enum phase phase);
/* The flight is in a new state or phase: its deadline, and that of the host's head. */
void plan_lease_arm(struct plan_host *host, struct plan_flight *flight, struct plan_now now);
/* A flight left the list: the next one's time begins. */
void plan_lease_arm_head(struct plan_host *host, struct plan_now now);

/* Whether the host may still be measuring, so that no other of its machine may. */
bool plan_lease_keeps(const struct plan_host *host, struct plan_now now);

/* Does what is due. Returns the next monotonic deadline, PLAN_NEVER: none. */
int64_t plan_lease_turn(struct plan *plan, struct plan_now now);

/* The host's leases end at once, those of ended sweeps too: what it holds is called off, its open
 * runs become NODATA, and nothing of it is waited for. 0 or a failure of the store. */
int plan_lease_revoke(struct plan *plan, struct plan_now now, struct plan_host *host) MUST_CHECK;
/* Every run of the node that is not at its end becomes NODATA, and the node ends. */
int plan_lease_lose(struct plan *plan, struct plan_now now, struct plan_node *node,
                    const char *reason) MUST_CHECK;

#endif

/* status.h: what the planner knows, as JSON with `schema: 1`: for `sweep list|show`, `host
 * list|show` and `watch`. Reads only.
 *
 * Members are only added. A time that is not known is null; ages and times left are integer
 * nanoseconds (_ns), points of wall time too
 * (_wall_ns). */
#ifndef MAKESPAN_COORDINATOR_PLAN_STATUS_H
#define MAKESPAN_COORDINATOR_PLAN_STATUS_H

#include "coordinator/plan/plan.h"

struct buf;

/* All sweeps, newest first:
 *   {"schema": 1, "sweeps": [{
 *     "id", "sweep": "NAME/N", "state", "priority", "file", "submitted_by", "submitted_wall_ns",
 *     "ended_wall_ns", "end_reason", "because"}]}
 * `because` is why it is in its state: of its end, or of its pause, as somebody said it.
 * 0 or a negative code. */
int plan_status_sweeps(struct plan *plan, struct plan_now now, struct buf *out) MUST_CHECK;

/* One sweep (NAME, NAME/N or id): the members above beside "schema", and
 *   "wanted", "have", "failed", "eta_ns",
 *   "hosts": [{
 *     "host", "selector", "skipped", "finished", "wanted", "have", "warmups_wanted", "warmups_have",
 *     "failed", "no_data", "cancelled", "over_budget", "skipped_runs", "used_ns", "mean_ns",
 *     "eta_ns", "lost",
 *     "wait": {"for", "owner", "age_ns"} or null,
 *     "now": [{
 *       "run", "attempt", "workload", "variant", "jobs", "warmup", "state", "phase", "text",
 *       "age_ns", "overdue_ns"}]}],
 *   "cells": [{
 *     "host", "workload", "variant", "jobs", "state", "reason", "wanted", "have", "failed",
 *     "invalid", "real_mean_ns"}]
 * `wanted` counts measured runs that are planned, `have` those with an attempt that counts, `failed`
 * those that ended without one; `lost` is why there is no data of some, or null. 0; 1: a large
 * sweep is being counted, a page with each call: ask again in the next turn; -ERR_NOTFOUND with text
 * in diag. */
int plan_status_sweep(struct plan *plan, struct plan_now now, const char *sweep, struct buf *out,
                      struct diag *diag) MUST_CHECK;

/* Hosts by name:
 *   {"schema": 1, "hosts": [{
 *     "id", "host", "state", "link", "link_age_ns", "classes", "cpus", "memory_bytes", "boot_id",
 *     "machine_id", "version", "joined_wall_ns", "seen_wall_ns", "room", "now": [as above]}]}
 * With `name` this one alone, and "facts": {…}. -ERR_NOTFOUND with text in diag. */
int plan_status_hosts(struct plan *plan, struct plan_now now, const char *name, struct buf *out,
                      struct diag *diag) MUST_CHECK;

#endif

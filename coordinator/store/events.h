/* events.h: rows of the one event table. news/ writes them. See store.h for what holds for all
 * functions. */
#ifndef MAKESPAN_COORDINATOR_STORE_EVENTS_H
#define MAKESPAN_COORDINATOR_STORE_EVENTS_H

#include "common/attr.h"
#include "coordinator/model.h"

#include <stddef.h>
#include <stdint.h>

struct store;

/* Takes everything but the id; ids rise, and none is given twice. */
int store_event_append(struct store *store, const struct model_event *event,
                       int64_t *id) MUST_CHECK;
/* The highest id given so far, 0 when there is none. */
int store_event_last(struct store *store, int64_t *id) MUST_CHECK;
typedef int store_event_f(const struct model_event *event, void *arg);
/* Those with a higher id than `after`, of a sweep (0: all), in the order of ids; at most `limit`
 * (0: all). */
int store_events_each(struct store *store, int64_t after, int64_t sweep, int64_t limit,
                      store_event_f *f, void *arg) MUST_CHECK;
/* Removes those from before that time; *count (may be NULL) says how many. */
int store_events_prune(struct store *store, int64_t before_wall_ns, size_t *count) MUST_CHECK;

#endif

/* meter.h: samples during a run, in memory that is there before it begins.
 *
 * At most METER_ROWS rows: when they are full every second one is dropped and the interval
 * doubles. The first sample's own cost sets the interval too: at least 1 s and at least 2000
 * times what a sample takes, so that a slow machine is sampled less often. */
#ifndef MAKESPAN_WORKER_RUN_METER_H
#define MAKESPAN_WORKER_RUN_METER_H

#include "common/attr.h"
#include "worker/probe/probe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct meter;

/* Adds what the instruments of probe.h do not know: the tree's own time. Allocates nothing. */
typedef void meter_extra_f(struct probe_row *row, void *arg);

#define METER_ROWS 512
#define METER_INTERVAL_NS (INT64_C(1000000000))
#define METER_POINTS_MAX 8192 /* of SAMPLES */

struct meter *meter_new(void) MUST_CHECK;
void meter_free(struct meter **meter);
/* Forgets all rows and takes the readings that counters are counted from. interval_ns 0:
 * METER_INTERVAL_NS. `extra` may be NULL. */
void meter_start(struct meter *meter, int64_t interval_ns, meter_extra_f *extra, void *arg);
/* The instant that times of points are counted from: the spawn. */
void meter_zero(struct meter *meter, int64_t start_ns);
/* Takes a sample when one is due. Returns the nanoseconds until the next one. */
int64_t meter_tick(struct meter *meter);
void meter_stop(struct meter *meter);
/* The longest time by which a sample came late: this process was stopped or could not run. */
int64_t meter_longest_gap(const struct meter *meter);

struct meter_point {
    int64_t at_ns;
    enum instrument what;
    int64_t value; /* of a counter: since meter_start() */
};
/* All points in the order of time, at most METER_POINTS_MAX. Valid until the meter changes. */
size_t meter_count(const struct meter *meter);
void meter_get(const struct meter *meter, size_t index, struct meter_point *out);

#endif

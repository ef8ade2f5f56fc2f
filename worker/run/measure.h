/* measure.h: the timed command: a step with its window.
 *
 * Owns what happens between the last instant before the spawn and the first after the end: log
 * lines are held, samples go into memory that is there, nothing else of this process runs but
 * what its caller lets run. Before and after the window: the machine's CPU time, the clocks,
 * this process's own use. */
#ifndef MAKESPAN_WORKER_RUN_MEASURE_H
#define MAKESPAN_WORKER_RUN_MEASURE_H

#include "common/attr.h"
#include "worker/run/step.h"

#include <stdint.h>

struct measure;
struct meter;

struct measure_result {
    struct step_result step; /* its marks hold those of the window: CLOCK_STEP, SUSPEND, PAUSED */
    int64_t foreign_ns;  /* -1: unknown */
    int64_t observer_ns; /* -1: unknown */
    int64_t kernel_ns;   /* -1: unknown */
    int64_t steal_ns;    /* -1: unknown */
    const struct meter *meter;
};
typedef void measure_end_f(const struct measure_result *result, void *arg);

/* As step_start(); the hooks of spec are this module's and must be NULL. `meter` is borrowed;
 * interval_ns 0: METER_INTERVAL_NS. */
int measure_start(struct loop *loop, const struct step_spec *spec, struct meter *meter,
                  int64_t interval_ns, measure_end_f *f, void *arg, struct measure **out,
                  struct diag *diag) MUST_CHECK;
void measure_cancel(struct measure *measure);
/* True from the spawn until the end is seen: the caller starts nothing, writes nothing, sends at
 * most its beat. */
bool measure_in_window(const struct measure *measure);
void measure_free(struct measure **measure); /* as step_free() */

#endif

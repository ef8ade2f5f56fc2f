/* probe.h: one row of observations during a run, and the instruments that fill it: each a file
 * of its own, each cheap and without allocation.
 *
 * An instrument reads one thing of the system into its places of a row. What it cannot read
 * stays absent: absent is not 0. */
#ifndef MAKESPAN_WORKER_PROBE_PROBE_H
#define MAKESPAN_WORKER_PROBE_PROBE_H

#include "common/vocab.h"

#include <stdbool.h>
#include <stdint.h>

enum { PROBE_PLACES = 32 }; /* instruments have the numbers 1 to 31 */

struct probe_row {
    int64_t at_ns;               /* clock_mono_ns() */
    uint32_t present;            /* bit i: value[i] was read */
    int64_t value[PROBE_PLACES]; /* by enum instrument */
};

void probe_set(struct probe_row *row, enum instrument what, int64_t value);
bool probe_has(const struct probe_row *row, enum instrument what);

void probe_cpu(struct probe_row *row);      /* INSTRUMENT_BUSY, _STEAL: of the whole machine */
void probe_observer(struct probe_row *row); /* INSTRUMENT_OBSERVER: this process itself */
void probe_load(struct probe_row *row);     /* INSTRUMENT_LOAD, _RUNNING */
void probe_memory(struct probe_row *row);   /* INSTRUMENT_AVAILABLE, _SWAP_IN, _SWAP_OUT */
void probe_pressure(struct probe_row *row); /* INSTRUMENT_WAIT_CPU, _WAIT_MEMORY, _WAIT_IO */
/* All of them, and the time. */
void probe_take(struct probe_row *row);

#endif

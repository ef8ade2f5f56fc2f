/* probe.c: a row of observations, and all instruments in one go. */
#include "worker/probe/probe.h"

#include "common/clock.h"

#include <string.h>

void probe_set(struct probe_row *row, enum instrument what, int64_t value)
{
    row->value[what] = value;
    row->present |= UINT32_C(1) << what;
}

bool probe_has(const struct probe_row *row, enum instrument what)
{
    return (row->present >> what & 1) != 0;
}

void probe_take(struct probe_row *row)
{
    memset(row, 0, sizeof(*row));
    row->at_ns = clock_mono_ns();
    probe_cpu(row);
    probe_observer(row);
    probe_load(row);
    probe_memory(row);
    probe_pressure(row);
}

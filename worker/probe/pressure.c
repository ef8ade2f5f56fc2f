/* pressure.c: the instrument of waiting: time in which at least one task waited for processor,
 * memory or input and output. */
#include "worker/os/os.h"
#include "worker/probe/probe.h"

void probe_pressure(struct probe_row *row)
{
    int64_t ns;

    if (os_pressure(OS_PRESSURE_CPU, &ns) == 0)
        probe_set(row, INSTRUMENT_WAIT_CPU, ns);
    if (os_pressure(OS_PRESSURE_MEMORY, &ns) == 0)
        probe_set(row, INSTRUMENT_WAIT_MEMORY, ns);
    if (os_pressure(OS_PRESSURE_IO, &ns) == 0)
        probe_set(row, INSTRUMENT_WAIT_IO, ns);
}

/* load.c: the instrument of the load: its average of one minute, and how many threads can run
 * now. */
#include "worker/os/os.h"
#include "worker/probe/probe.h"

void probe_load(struct probe_row *row)
{
    struct os_load load;

    if (os_load(&load) != 0)
        return;
    probe_set(row, INSTRUMENT_LOAD, load.milli[0]);
    if (load.running >= 0)
        probe_set(row, INSTRUMENT_RUNNING, load.running);
}

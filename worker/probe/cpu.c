/* cpu.c: the instrument of the processors: busy and stolen time of the whole machine. */
#include "worker/os/os.h"
#include "worker/probe/probe.h"

void probe_cpu(struct probe_row *row)
{
    struct os_ticks t;

    if (os_ticks(&t) != 0)
        return;
    probe_set(row, INSTRUMENT_BUSY, t.user + t.system + t.irq);
    if (t.steal >= 0)
        probe_set(row, INSTRUMENT_STEAL, t.steal);
}

/* memory.c: the instrument of memory: what could be had without swapping, and the pages swapped. */
#include "worker/os/os.h"
#include "worker/probe/probe.h"

void probe_memory(struct probe_row *row)
{
    struct os_memory memory;
    struct os_paging paging;

    if (os_memory(&memory) == 0 && memory.available >= 0)
        probe_set(row, INSTRUMENT_AVAILABLE, memory.available);
    if (os_paging(&paging) == 0) {
        probe_set(row, INSTRUMENT_SWAP_IN, paging.swap_in);
        probe_set(row, INSTRUMENT_SWAP_OUT, paging.swap_out);
    }
}

/* observer.c: the instrument of this process itself: what the observing costs. */
#include "worker/os/os.h"
#include "worker/probe/probe.h"

void probe_observer(struct probe_row *row)
{
    struct os_usage u;

    if (os_self_usage(&u) == 0)
        probe_set(row, INSTRUMENT_OBSERVER, u.user_ns + u.sys_ns);
}

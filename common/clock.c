/* clock.c: the clocks of the system in nanoseconds. Owns no state. */
#include "common/clock.h"

#include "common/compat/compat.h"

#include <stdlib.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;
    if (clock_gettime(id, &ts) != 0) {
        abort(); /* no system that we run on lacks these two clocks */
    }
    return (int64_t)ts.tv_sec * CLOCK_SEC + ts.tv_nsec;
}

int64_t clock_mono_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t clock_boot_ns(void)
{
    return compat_boot_ns();
}

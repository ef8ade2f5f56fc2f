/* clock.c: the clocks of the system in nanoseconds. Owns no state. */
#include "common/clock.h"

#include "common/compat/compat.h"

#include <stdlib.h>
#include <time.h>

/* No system that we run on lacks these two clocks. */

int64_t clock_mono_ns(void)
{
    struct timespec ts;
    if (clock_gettime(CLOCK_MONOTONIC, &ts) != 0) {
        abort();
    }
    return (int64_t)ts.tv_sec * CLOCK_SEC + ts.tv_nsec;
}

int64_t clock_wall_ns(void)
{
    struct timespec ts;
    int64_t late;
    if (clock_gettime(CLOCK_REALTIME, &ts) == 0) {
        return (int64_t)ts.tv_sec * CLOCK_SEC + ts.tv_nsec;
    }
    if (compat_late_wall_ns(&late) != 0) {
        abort();
    }
    return late;
}

int64_t clock_boot_ns(void)
{
    return compat_boot_ns();
}

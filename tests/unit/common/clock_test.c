/* clock_test.c: the clocks run forward and have the units that they say, also when the wall clock stands beyond a narrow time_t. */
#include "common/compat/compat.h"
#include "common/err.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>
#include <time.h>

/* As clock_gettime() with a time_t of 32 bits after 2038. */
static bool too_late;

static int get_time(clockid_t id, struct timespec *ts)
{
    if (too_late && id == CLOCK_REALTIME) {
        errno = EOVERFLOW;
        return -1;
    }
    return clock_gettime(id, ts);
}

#define clock_gettime get_time
#include "common/clock.c"
#undef clock_gettime

Test(clock, units)
{
    cr_assert_eq(CLOCK_SEC, INT64_C(1000000000));
    cr_assert_eq(CLOCK_DAY, INT64_C(86400) * CLOCK_SEC);
    cr_assert_eq(CLOCK_MIN, 60 * CLOCK_SEC);
    cr_assert_eq(CLOCK_HOUR, 60 * CLOCK_MIN);
}

Test(clock, monotonic_never_goes_back)
{
    int64_t last = clock_mono_ns();
    int64_t first = last;
    for (int i = 0; i < 100000; i++) {
        int64_t now = clock_mono_ns();
        cr_assert_geq(now, last);
        last = now;
    }
    cr_assert_gt(last, first);
}

static int64_t direct(clockid_t id)
{
    struct timespec ts;
    cr_assert_eq(clock_gettime(id, &ts), 0);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

Test(clock, each_is_the_clock_it_says)
{
    int64_t a = direct(CLOCK_MONOTONIC);
    int64_t b = clock_mono_ns();
    int64_t c = direct(CLOCK_MONOTONIC);
    cr_assert(a <= b && b <= c);
    a = direct(CLOCK_REALTIME);
    b = clock_wall_ns();
    c = direct(CLOCK_REALTIME);
    cr_assert(a <= b && b <= c);
    a = direct(CLOCK_MONOTONIC);
    cr_assert_geq(clock_boot_ns(), a, "suspended time only adds to it");
}

Test(clock, a_wall_clock_beyond_a_narrow_time_t)
{
    int64_t late;
    int err = compat_late_wall_ns(&late);
    if (err != 0) {
        cr_assert_eq(err, -ERR_UNSUP);
        cr_assert_gt(sizeof(time_t), 4, "nothing tells the time after 2038");
        return;
    }
    int64_t a = direct(CLOCK_REALTIME);
    too_late = true;
    int64_t b = clock_wall_ns();
    too_late = false;
    int64_t c = direct(CLOCK_REALTIME);
    cr_assert(a <= b && b <= c);
}

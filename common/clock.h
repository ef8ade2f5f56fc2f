/* clock.h: the clocks. A seam: the simulation replaces this module by virtual time. */
#ifndef MAKESPAN_COMMON_CLOCK_H
#define MAKESPAN_COMMON_CLOCK_H

#include <stdint.h>

#define CLOCK_US INT64_C(1000)
#define CLOCK_MS INT64_C(1000000)
#define CLOCK_SEC INT64_C(1000000000)
#define CLOCK_MIN (60 * CLOCK_SEC)
#define CLOCK_HOUR (3600 * CLOCK_SEC)
#define CLOCK_DAY (24 * CLOCK_HOUR)

/* Monotonic time in nanoseconds: all durations and deadlines. Its zero is arbitrary. */
int64_t clock_mono_ns(void);

/* Wall-clock time in nanoseconds since 1970 UTC: data to be shown, never used for a deadline. */
int64_t clock_wall_ns(void);

/* Monotonic time that goes on while the system is suspended, in nanoseconds; the same as clock_mono_ns() where the system has none. */
int64_t clock_boot_ns(void);

#endif

/* stop.h: what ends a daemon: a signal, or the end of standard input for one that was started with --guard. */
#ifndef MAKESPAN_COMMON_STOP_H
#define MAKESPAN_COMMON_STOP_H

#include "common/attr.h"

#include <stdbool.h>

struct stop;
struct loop;

/* `guard`: whoever started this program has ended, or wants it to end. `why`: "signal 15", "standard input has ended", "standard input cannot be
 * watched"; borrowed for the call. */
typedef void stop_f(void *arg, bool guard, const char *why);

/* Waits for SIGTERM, SIGINT and SIGHUP, and with `guard` for the end of standard input; calls f each time. A standard input that cannot be
 * watched (a file, /dev/null) has ended. Aborts when memory or descriptors are out. */
struct stop *stop_new(struct loop *loop, bool guard, stop_f *f, void *arg) MUST_CHECK;
void stop_free(struct stop **stop); /* NULL inside is fine */

#endif

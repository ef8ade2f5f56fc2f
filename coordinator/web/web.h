/* web.h: the process of the dashboard: where it is forked, and the socket pair between it and the coordinator.
 *
 * It is forked before any event loop exists, keeps no key but the web server's own, and reads the database read-only. What it asks of the coordinator goes over the
 * socket pair. */
#ifndef MAKESPAN_COORDINATOR_WEB_WEB_H
#define MAKESPAN_COORDINATOR_WEB_WEB_H

#include "common/attr.h"

#include <stdint.h>

struct diag;
struct web;

/* What the child does with its end of the pair; its result is the child's exit status. The descriptor is closed after it. */
typedef int web_child_f(int fd, void *arg);

/* Makes the pair (stream, close-on-exec) and forks. In the parent: 0 and *out. In the child f(fd, arg) is called and the process ends. A negative code with text when the system
 * refuses. Call before loop_new(). */
int web_fork(web_child_f *f, void *arg, struct web **out, struct diag *diag) MUST_CHECK;
/* The coordinator's end, non-blocking. */
int web_fd(const struct web *web);
int64_t web_pid(const struct web *web);
/* Closes the coordinator's end, upon which the child ends by itself, and waits for it. Returns its exit status, or 128 + the signal. NULL inside is fine (0). */
int web_free(struct web **web);

#endif

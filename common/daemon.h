/* daemon.h: going to the background before any loop exists, pid file, readiness for systemd and s6 (NOTIFY_SOCKET, notification descriptor). */
#ifndef MAKESPAN_COMMON_DAEMON_H
#define MAKESPAN_COMMON_DAEMON_H

#include "common/attr.h"

#include <stdbool.h>

struct diag;

/* Forks; the parent waits until the child calls daemon_ready() or ends, and exits with its verdict:
 * 0, or the child's exit status, or 3 when it ended otherwise. In the child returns 0 and, in *ready_fd, what
 * daemon_ready() wants. Call before a loop is made. */
int daemon_start(int *ready_fd, struct diag *diag) MUST_CHECK;
/* Says "started" to systemd (NOTIFY_SOCKET) and to ready_fd, which it closes: the parent of daemon_start(), or s6's notification descriptor. With
 * a ready_fd standard input and output become /dev/null; with -1 (in the foreground) they stay. */
void daemon_ready(int ready_fd);
/* Writes the process id; -ERR_BUSY when a live process holds the file. Held as long as this process lives; once a process, after daemon_start(). */
int daemon_pidfile(const char *path, struct diag *diag) MUST_CHECK;
/* Raises the soft limit of descriptors to the hard one; returns the limit, 0 when there is none to be had. */
unsigned long daemon_max_files(void);

#endif

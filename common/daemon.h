/* daemon.h: going to the background before any loop exists, pid file, readiness for systemd and s6 (NOTIFY_SOCKET, notification descriptor). */
#ifndef MAKESPAN_COMMON_DAEMON_H
#define MAKESPAN_COMMON_DAEMON_H

#include "common/attr.h"

#include <stdbool.h>

struct diag;

/* Forks; the parent waits until the child calls daemon_ready() or ends, and exits with its verdict. In the child returns 0 and, in *ready_fd, what
 * daemon_ready() wants. Call before a loop is made. */
int daemon_start(int *ready_fd, struct diag *diag) MUST_CHECK;
/* Says "started" to the parent (ready_fd may be -1) and to systemd; detaches standard input and output. */
void daemon_ready(int ready_fd);
/* Writes the process id; -ERR_BUSY when a live process holds the file. */
int daemon_pidfile(const char *path, struct diag *diag) MUST_CHECK;
/* Raises the soft limit of descriptors to the hard one; returns the limit. */
unsigned long daemon_max_files(void);

#endif

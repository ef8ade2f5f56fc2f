/* compat.h: the few calls that only some systems have, as functions that every system answers. One file a system: linux.c; generic.c answers
 * for the others with what POSIX offers. Nothing here decides anything. */
#ifndef MAKESPAN_COMMON_COMPAT_COMPAT_H
#define MAKESPAN_COMMON_COMPAT_COMPAT_H

#include "common/attr.h"

#include <stdint.h>

/* Monotonic nanoseconds that go on while the system is suspended; where there are none, the monotonic clock. */
int64_t compat_boot_ns(void);

/* A descriptor that becomes readable when the child ends (close-on-exec), or -ERR_UNSUP or another negative code. */
int compat_pidfd_open(int64_t pid) MUST_CHECK;

/* For a child between vfork() and exec; each gives 0 or an errno value. No exec may add privileges from now on (ENOSYS: no such thing here). */
int compat_no_new_privs(void) MUST_CHECK;
/* As above: no further groups, this group, this user, for good. */
int compat_become_user(uint32_t uid, uint32_t gid) MUST_CHECK;

/* Orphaned descendants become children of this process. 0 or a negative code. */
int compat_subreaper(void) MUST_CHECK;

/* Closes every descriptor from `first` on. Safe between vfork() and exec. */
void compat_close_from(int first);

#endif

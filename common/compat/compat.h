/* compat.h: the few calls that only some systems have, as functions that every system answers. One file a system: linux.c; generic.c answers
 * for the others with what POSIX offers. Nothing here decides anything. */
#ifndef MAKESPAN_COMMON_COMPAT_COMPAT_H
#define MAKESPAN_COMMON_COMPAT_COMPAT_H

#include "common/attr.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Monotonic nanoseconds that go on while the system is suspended; where there are none, the monotonic clock. */
int64_t compat_boot_ns(void);

/* The wall clock in nanoseconds since 1970, for a moment that does not fit into a narrow time_t, so that clock_gettime() fails. 0 or -ERR_UNSUP. */
int compat_late_wall_ns(int64_t *ns) MUST_CHECK;

/* As fstatat(at, path, out, flags), with path NULL as fstat(at, out); also where a time of the file does not fit into a narrow time_t: the times in
 * *out are then 0. *mtime_ns, unless NULL: when it was last changed, in nanoseconds since 1970, within the range of int64_t. 0 or a negative code. */
int compat_stat(int at, const char *path, int flags, struct stat *out, int64_t *mtime_ns) MUST_CHECK;

/* A descriptor that becomes readable when the child ends (close-on-exec), or -ERR_UNSUP or another negative code. */
int compat_pidfd_open(int64_t pid) MUST_CHECK;

/* For a child between vfork() and exec; each gives 0 or an errno value. No exec may add privileges from now on (ENOSYS: no such thing here). */
int compat_no_new_privs(void) MUST_CHECK;
/* As above: no further groups, this group, this user, for good. */
int compat_become_user(uint32_t uid, uint32_t gid) MUST_CHECK;

/* A child with a copy of this process's memory; this process stands still until the child executes or ends, as after vfork(). As fork(); -1 with
 * errno where there is no such thing. The child makes system calls only. */
pid_t compat_fork_waiting(void);
/* In such a child: gives back the memory that the copy has and that only the parent needs (large private anonymous areas, without the stack and
 * what lies within `keep`), and takes what is left as the peak of its memory. The system accounts this peak to the program that the child
 * executes. 0, or an errno value: then the peak stays that of the copy, or of the parent. */
int compat_shed_memory(const void *keep, size_t n) MUST_CHECK;

/* Orphaned descendants become children of this process. 0 or a negative code. */
int compat_subreaper(void) MUST_CHECK;

/* Closes every descriptor from `first` on. Safe between vfork() and exec. */
void compat_close_from(int first);

#endif

/* generic.c: the calls of compat.h on a system about which nothing more than POSIX is known. */
#include "common/compat/compat.h"

#include "common/clock.h"
#include "common/err.h"

#include <errno.h>
#include <grp.h>
#include <unistd.h>

#define FILES_MAX_DEFAULT 1024

int64_t compat_boot_ns(void)
{
    return clock_mono_ns();
}

int compat_late_wall_ns(int64_t *ns)
{
    *ns = 0;
    return -ERR_UNSUP;
}

int compat_stat(int at, const char *path, int flags, struct stat *out, int64_t *mtime_ns)
{
    if ((path == NULL ? fstat(at, out) : fstatat(at, path, out, flags)) != 0) {
        return err_from_errno(errno);
    }
    if (mtime_ns != NULL) {
        int64_t s = out->st_mtim.tv_sec;
        *mtime_ns = s >= INT64_MAX / CLOCK_SEC   ? INT64_MAX
                    : s <= INT64_MIN / CLOCK_SEC ? INT64_MIN
                                                 : s * CLOCK_SEC + out->st_mtim.tv_nsec;
    }
    return 0;
}

int compat_pidfd_open(int64_t pid)
{
    (void)pid;
    return -ERR_UNSUP;
}

int compat_no_new_privs(void)
{
    return ENOSYS;
}

int compat_become_user(uint32_t uid, uint32_t gid)
{
    if (setgroups(0, NULL) != 0 || setgid((gid_t)gid) != 0 || setuid((uid_t)uid) != 0) {
        return errno;
    }
    return 0;
}

pid_t compat_fork_waiting(void)
{
    errno = ENOSYS;
    return -1;
}

int compat_shed_memory(const void *keep, size_t n)
{
    (void)keep;
    (void)n;
    return ENOSYS;
}

int compat_subreaper(void)
{
    return -ERR_UNSUP;
}

void compat_close_from(int first)
{
    long end = sysconf(_SC_OPEN_MAX);
    if (end < 0) {
        end = FILES_MAX_DEFAULT;
    }
    for (long fd = first; fd < end; fd++) {
        close((int)fd);
    }
}

/* linux.c: the calls of compat.h as Linux has them. Kernels older than a call answer -ERR_UNSUP, or take the slower way. */
#include "common/compat/compat.h"

#include "common/clock.h"
#include "common/err.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int64_t compat_boot_ns(void)
{
    struct timespec ts;
    if (clock_gettime(CLOCK_BOOTTIME, &ts) != 0) {
        return clock_mono_ns();
    }
    return (int64_t)ts.tv_sec * CLOCK_SEC + ts.tv_nsec;
}

int compat_pidfd_open(int64_t pid)
{
    long fd = syscall(SYS_pidfd_open, (pid_t)pid, 0);
    return fd >= 0 ? (int)fd : err_from_errno(errno);
}

int compat_no_new_privs(void)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : errno;
}

/* The calls that take 32-bit ids have names of their own on the oldest architectures. */
#ifdef SYS_setuid32
#define CALL_SETGROUPS SYS_setgroups32
#define CALL_SETRESGID SYS_setresgid32
#define CALL_SETRESUID SYS_setresuid32
#else
#define CALL_SETGROUPS SYS_setgroups
#define CALL_SETRESGID SYS_setresgid
#define CALL_SETRESUID SYS_setresuid
#endif

/* By system calls of its own: the library's functions would change all threads of the process, which after vfork() is the parent's memory. */
int compat_become_user(uint32_t uid, uint32_t gid)
{
    if (syscall(CALL_SETGROUPS, 0, NULL) != 0 || syscall(CALL_SETRESGID, gid, gid, gid) != 0 ||
        syscall(CALL_SETRESUID, uid, uid, uid) != 0) {
        return errno;
    }
    return 0;
}

int compat_subreaper(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 ? 0 : err_from_errno(errno);
}

/* What getdents64 writes. */
struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

/* The descriptor number that a name in /proc/self/fd spells, or -1. */
static int fd_of_name(const char *name)
{
    int fd = 0;
    if (*name == '\0') {
        return -1;
    }
    for (; *name != '\0'; name++) {
        if (*name < '0' || *name > '9' || fd > (INT_MAX - 9) / 10) {
            return -1;
        }
        fd = fd * 10 + (*name - '0');
    }
    return fd;
}

/* Closes what /proc/self/fd lists, without memory allocation; false when it cannot be read. Starts again until nothing is left: closing while
 * reading may hide entries. */
static bool close_listed(int first)
{
    int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) {
        return false;
    }
    bool again = true;
    bool whole = true;
    while (again) {
        _Alignas(struct entry) char space[2048];
        long n;
        again = false;
        if (lseek(dir, 0, SEEK_SET) != 0) {
            whole = false;
        }
        while ((n = syscall(SYS_getdents64, dir, space, sizeof(space))) > 0) {
            for (long at = 0; at < n;) {
                const struct entry *e = (const void *)(space + at);
                int fd = fd_of_name(e->name);
                if (fd >= first && fd != dir && close(fd) == 0) {
                    again = true;
                }
                at += e->length;
            }
        }
        whole = whole && n == 0;
    }
    close(dir);
    return whole;
}

void compat_close_from(int first)
{
    if (syscall(SYS_close_range, (unsigned)first, UINT_MAX, 0) == 0 || close_listed(first)) {
        return;
    }
    struct rlimit limit;
    rlim_t end = 1024;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max != RLIM_INFINITY) {
        end = limit.rlim_max;
    }
    for (rlim_t fd = (rlim_t)first; fd < end; fd++) {
        close((int)fd);
    }
}

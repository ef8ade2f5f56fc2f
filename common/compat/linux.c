/* linux.c: the calls of compat.h as Linux has them. Kernels older than a call answer -ERR_UNSUP, or take the slower way. */
#include "common/compat/compat.h"

#include "common/clock.h"
#include "common/err.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
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

/* Only architectures with a narrow time_t have this call. */
int compat_late_wall_ns(int64_t *ns)
{
#ifdef SYS_clock_gettime64
    struct {
        int64_t s;
        int64_t ns;
    } wide;
    if (syscall(SYS_clock_gettime64, CLOCK_REALTIME, &wide) == 0) {
        *ns = wide.s * CLOCK_SEC + wide.ns;
        return 0;
    }
#endif
    *ns = 0;
    return -ERR_UNSUP;
}

/* A file may be of any time: what nanoseconds cannot say becomes the end of their range. */
static int64_t to_ns(int64_t s, int64_t ns)
{
    if (s >= INT64_MAX / CLOCK_SEC) {
        return INT64_MAX;
    }
    return s <= INT64_MIN / CLOCK_SEC ? INT64_MIN : s * CLOCK_SEC + ns;
}

/* compat_stat() by a call whose times are wide everywhere. */
static int stat_wide(int at, const char *path, int flags, struct stat *out, int64_t *mtime_ns)
{
    struct statx wide;
    int more = path == NULL ? AT_EMPTY_PATH : 0;
    if (statx(at, path == NULL ? "" : path, flags | more, STATX_BASIC_STATS, &wide) != 0) {
        return err_from_errno(errno);
    }
    memset(out, 0, sizeof(*out));
    out->st_dev = makedev(wide.stx_dev_major, wide.stx_dev_minor);
    out->st_ino = wide.stx_ino;
    out->st_mode = wide.stx_mode;
    out->st_nlink = wide.stx_nlink;
    out->st_uid = wide.stx_uid;
    out->st_gid = wide.stx_gid;
    out->st_rdev = makedev(wide.stx_rdev_major, wide.stx_rdev_minor);
    out->st_size = (off_t)wide.stx_size;
    out->st_blksize = (blksize_t)wide.stx_blksize;
    out->st_blocks = (blkcnt_t)wide.stx_blocks;
    *mtime_ns = to_ns(wide.stx_mtime.tv_sec, wide.stx_mtime.tv_nsec);
    return 0;
}

int compat_stat(int at, const char *path, int flags, struct stat *out, int64_t *mtime_ns)
{
    int64_t mtime = 0;
    int rc = 0;
    if ((path == NULL ? fstat(at, out) : fstatat(at, path, out, flags)) == 0) {
        mtime = to_ns(out->st_mtim.tv_sec, out->st_mtim.tv_nsec);
    } else {
        rc = errno == EOVERFLOW ? stat_wide(at, path, flags, out, &mtime) : err_from_errno(errno);
    }
    if (mtime_ns != NULL) {
        *mtime_ns = mtime;
    }
    return rc;
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

pid_t compat_fork_waiting(void)
{
    unsigned long flags = (unsigned long)CLONE_VFORK | (unsigned long)SIGCHLD;
#if defined(__s390__) || defined(__CRIS__)
    return (pid_t)syscall(SYS_clone, 0L, flags, 0L, 0L, 0L); /* there the stack comes first */
#else
    return (pid_t)syscall(SYS_clone, flags, 0L, 0L, 0L, 0L);
#endif
}

/* A sanitizer keeps its own state in such areas: they stay. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWNS_ITS_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define OWNS_ITS_MEMORY 0
#endif
#endif
#ifndef OWNS_ITS_MEMORY
#define OWNS_ITS_MEMORY 1
#endif

/* Smaller areas are data of libraries and of threads, which the child still needs. */
#define SHED_LEAST (256UL * 1024)

struct area {
    uintptr_t from;
    uintptr_t to;
    bool writable_private;
    bool anonymous;
};

static bool is_within(const struct area *area, const void *p)
{
    return (uintptr_t)p >= area->from && (uintptr_t)p < area->to;
}

static uintptr_t read_hex(const char **at)
{
    uintptr_t n = 0;
    for (;; (*at)++) {
        char c = **at;
        if (c >= '0' && c <= '9') {
            n = n * 16 + (uintptr_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            n = n * 16 + (uintptr_t)(c - 'a' + 10);
        } else {
            return n;
        }
    }
}

/* "55d0a000-55d1b000 rw-p 00000000 00:00 0    [heap]": a line without its newline. */
static struct area area_of(const char *line)
{
    struct area area;
    area.from = read_hex(&line);
    line += *line == '-';
    area.to = read_hex(&line);
    line += *line == ' ';
    area.writable_private = line[0] == 'r' && line[1] == 'w' && line[2] != '\0' && line[3] == 'p';
    for (int field = 0; field < 4 && *line != '\0'; line++) { /* modes, offset, device, inode */
        field += *line == ' ';
    }
    while (*line == ' ') {
        line++;
    }
    area.anonymous = *line == '\0' || strcmp(line, "[heap]") == 0;
    return area;
}

/* Gives back one area, unless it is needed. `here` lies on the stack, errno with what the library keeps for this thread. */
static void shed(const char *line, const void *keep, size_t n, const void *here)
{
    struct area area = area_of(line);
    if (!area.writable_private || !area.anonymous || area.to < area.from + SHED_LEAST || is_within(&area, here) ||
        is_within(&area, &errno) || is_within(&area, keep) || is_within(&area, (const char *)keep + n - 1)) {
        return;
    }
    int rc = madvise((void *)area.from, area.to - area.from, MADV_DONTNEED);
    (void)rc; /* it is the larger for it, no more */
}

/* Reads the list of areas into the stack, without memory allocation. A line that is too long names a file: it is passed over. */
static int shed_all(const void *keep, size_t n)
{
    char text[1024];
    size_t len = 0;
    bool skip = false;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    for (;;) {
        ssize_t got = read(fd, text + len, sizeof(text) - 1 - len);
        if (got <= 0) {
            break;
        }
        len += (size_t)got;
        text[len] = '\0';
        char *line = text;
        for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            if (!skip) {
                shed(line, keep, n, text);
            }
            skip = false;
        }
        len -= (size_t)(line - text);
        memmove(text, line, len);
        if (len == sizeof(text) - 1) {
            len = 0;
            skip = true;
        }
    }
    close(fd);
    return 0;
}

int compat_shed_memory(const void *keep, size_t n)
{
    if (!OWNS_ITS_MEMORY) {
        return ENOSYS;
    }
    int rc = shed_all(keep, n);
    if (rc != 0) {
        return rc;
    }
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    rc = write(fd, "5", 1) == 1 ? 0 : errno; /* the peak is what there is */
    close(fd);
    return rc;
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

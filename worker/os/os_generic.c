/* os_generic.c: answers to os.h for a system without a file of its own: what POSIX knows, and an
 * honest "unknown" for the rest. */
#include "worker/os/os.h"

#include "common/clock.h"
#include "common/err.h"
#include "common/num.h"
#include "common/str.h"

#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

extern char **environ;

int os_cpus(struct os_cpus *out)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);

    memset(out, 0, sizeof(*out));
    out->online = online > 0 && online <= INT32_MAX ? (int32_t)online : -1;
    out->affinity = -1;
    out->quota_milli = -1;
    out->sockets = -1;
    out->cores = -1;
    out->threads = out->online;
    out->numa = -1;
    return out->online > 0 ? 0 : -ERR_UNSUP;
}

int os_memory(struct os_memory *out)
{
    out->total = -1;
    out->available = -1;
    out->swap_total = -1;
    out->swap_free = -1;
    return -ERR_UNSUP;
}

int os_load(struct os_load *out)
{
    memset(out, 0, sizeof(*out));
    out->running = -1;
    return -ERR_UNSUP;
}

int os_ticks(struct os_ticks *out)
{
    memset(out, 0, sizeof(*out));
    return -ERR_UNSUP;
}

int os_paging(struct os_paging *out)
{
    out->swap_in = -1;
    out->swap_out = -1;
    return -ERR_UNSUP;
}

int os_pressure(enum os_pressure what, int64_t *some_ns)
{
    (void)what;
    *some_ns = -1;
    return -ERR_UNSUP;
}

static int64_t from_timeval(const struct timeval *t)
{
    return (int64_t)t->tv_sec * CLOCK_SEC + (int64_t)t->tv_usec * CLOCK_US;
}

int os_self_usage(struct os_usage *out)
{
    struct rusage u;

    if (getrusage(RUSAGE_SELF, &u) != 0)
        return err_from_errno(errno);
    out->user_ns = from_timeval(&u.ru_utime);
    out->sys_ns = from_timeval(&u.ru_stime);
    out->max_rss_bytes = (int64_t)u.ru_maxrss * 1024;
    out->major_faults = u.ru_majflt;
    return 0;
}

int os_ident(struct os_ident *out)
{
    struct utsname u;

    memset(out, 0, sizeof(*out));
    if (uname(&u) < 0)
        return err_from_errno(errno);
    (void)str_copy(out->name, sizeof(out->name), u.sysname);
    (void)str_copy(out->release, sizeof(out->release), u.release);
    (void)str_copy(out->version, sizeof(out->version), u.version);
    (void)str_copy(out->machine, sizeof(out->machine), u.machine);
    (void)str_copy(out->hostname, sizeof(out->hostname), u.nodename);
    (void)snprintf(out->kernel, sizeof(out->kernel), "%s %s %s %s", u.sysname, u.release, u.version,
                   u.machine);
    return 0;
}

static int64_t soft_limit(const struct rlimit *l)
{
    return l->rlim_cur == RLIM_INFINITY || (uint64_t)l->rlim_cur > INT64_MAX ? OS_NO_LIMIT
                                                                             : (int64_t)l->rlim_cur;
}

int os_limits(struct os_limits *out)
{
    struct rlimit l;

    out->processes = -1;
    out->files = getrlimit(RLIMIT_NOFILE, &l) == 0 ? soft_limit(&l) : -1;
    out->stack = getrlimit(RLIMIT_STACK, &l) == 0 ? soft_limit(&l) : -1;
    out->core = getrlimit(RLIMIT_CORE, &l) == 0 ? soft_limit(&l) : -1;
    out->pids = OS_NO_LIMIT;
    out->memory = OS_NO_LIMIT;
    return 0;
}

bool os_is_root(void)
{
    return geteuid() == 0;
}

uint32_t os_uid(void)
{
    return (uint32_t)geteuid();
}

uint32_t os_gid(void)
{
    return (uint32_t)getegid();
}

int64_t os_pid(void)
{
    return getpid();
}

int os_user_find(const char *name, struct os_user *out)
{
    const struct passwd *p = getpwnam(name);
    uint64_t number;

    if (p == NULL && num_parse_u64(name, &number) == 0 && number < UINT32_MAX) {
        p = getpwuid((uid_t)number);
        if (p == NULL) {
            out->uid = (uint32_t)number;
            out->gid = (uint32_t)number;
            return 0;
        }
    }
    if (p == NULL)
        return -ERR_NOTFOUND;
    out->uid = (uint32_t)p->pw_uid;
    out->gid = (uint32_t)p->pw_gid;
    return 0;
}

int os_chown(const char *path, uint32_t uid, uint32_t gid)
{
    return lchown(path, uid, gid) == 0 ? 0 : err_from_errno(errno);
}

char *const *os_environ(void)
{
    return environ;
}

int os_procs(os_proc_f *f, void *arg)
{
    (void)f;
    (void)arg;
    return -ERR_UNSUP;
}

int os_proc_get(int64_t pid, struct os_proc *out)
{
    memset(out, 0, sizeof(*out));
    out->pid = pid;
    return -ERR_UNSUP;
}

bool os_proc_is_of(int64_t pid, uint32_t uid)
{
    (void)pid;
    (void)uid;
    return false;
}

bool os_proc_has_env(int64_t pid, const char *name_value)
{
    (void)pid;
    (void)name_value;
    return false;
}

int os_kill(int64_t pid, int signal)
{
    /* Never "every process" (-1), a group (below 0) or this one's own group (0). */
    if (pid <= 1)
        return -ERR_INVAL;
    if (kill((pid_t)pid, signal) == 0)
        return 0;
    return errno == ESRCH ? -ERR_NOTFOUND : err_from_errno(errno);
}

int os_cgroups(struct os_cgroups *out)
{
    memset(out, 0, sizeof(*out));
    return 0;
}

const char *os_lock_path(void)
{
    struct stat st;

    if (stat("/run/lock", &st) == 0 && S_ISDIR(st.st_mode))
        return "/run/lock/makespan.lock";
    return "/tmp/makespan.lock";
}

int os_fs_kind(const char *path, char *dst, size_t room)
{
    (void)path;
    (void)str_copy(dst, room, "");
    return -ERR_UNSUP;
}

int os_punch(int fd, uint64_t offset, uint64_t length)
{
    (void)fd;
    (void)offset;
    (void)length;
    return -ERR_UNSUP;
}

int os_fd_chown(int fd, uint32_t uid, uint32_t gid)
{
    return fchown(fd, uid, gid) == 0 ? 0 : err_from_errno(errno);
}

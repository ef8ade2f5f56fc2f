/* os_linux.c: Linux's answers to os.h: files of /proc and /sys read whole, and system calls.
 * What the texts mean is parse_*.c's. */
#include "worker/os/os.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/compat/compat.h"
#include "common/err.h"
#include "common/num.h"
#include "common/str.h"
#include "worker/os/parse_cgroup.h"
#include "worker/os/parse_cpu.h"
#include "worker/os/parse_proc.h"
#include "worker/os/parse_text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#define TEXT_CAP (4 * 1024 * 1024)
#define CPUS_MAX 8192

/* Reads the first room - 1 bytes of a file; the text ends with a NUL. Allocates nothing. */
static int read_small(const char *path, char *dst, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;

    dst[0] = '\0';
    if (fd < 0)
        return err_from_errno(errno);
    while (n < room - 1) {
        ssize_t r = read(fd, dst + n, room - 1 - n);

        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0) {
            int code = err_from_errno(errno);

            (void)close(fd);
            return code;
        }
        if (r == 0)
            break;
        n += (size_t)r;
    }
    dst[n] = '\0';
    (void)close(fd);
    return 0;
}

/* Appends a whole file. */
static int read_all(const char *path, struct buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int code = 0;

    if (fd < 0)
        return err_from_errno(errno);
    for (;;) {
        uint8_t *room = buf_reserve(out, 16384);
        ssize_t r;

        if (room == NULL) {
            code = out->err;
            break;
        }
        r = read(fd, room, 16384);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            code = err_from_errno(errno);
        if (r <= 0)
            break;
        buf_grew(out, (size_t)r);
    }
    (void)close(fd);
    return code;
}

static int64_t hz(void)
{
    return sysconf(_SC_CLK_TCK);
}

/* --- processors --- */

static int32_t affinity(void)
{
    cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
    size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    int32_t n = -1;

    if (set == NULL)
        return -1;
    if (sched_getaffinity(0, size, set) == 0)
        n = CPU_COUNT_S(size, set);
    CPU_FREE(set);
    return n;
}

/* Asks /sys where each CPU sits: for processors whose cpuinfo does not say. */
static void topology(struct os_cpus *out)
{
    struct parse_cpu_place places[1024];
    size_t n = 0;

    for (int i = 0; i < out->online && n < ARRAY_LEN(places); i++) {
        char path[128], text[32];
        uint64_t id;

        places[n] = (struct parse_cpu_place){-1, -1};
        (void)snprintf(path, sizeof(path),
                       "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", i);
        if (read_small(path, text, sizeof(text)) == 0 &&
            num_parse_digits(text, strspn(text, "0123456789"), &id) == 0)
            places[n].package = (int64_t)id;
        (void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/core_id", i);
        if (read_small(path, text, sizeof(text)) == 0 &&
            num_parse_digits(text, strspn(text, "0123456789"), &id) == 0)
            places[n].core = (int64_t)id;
        n++;
    }
    parse_cpu_places(places, n, &out->sockets, &out->cores);
}

/* Calls f with a file of each group from this one up to the top of what is mounted. */
static void walk_up(const char *folder, const char *file,
                    void (*f)(const char *folder, const char *text, void *arg), void *arg)
{
    char at[1024], path[1200], text[256];

    (void)str_copy(at, sizeof(at), folder);
    while (at[0] == '/') {
        char *slash;

        (void)snprintf(path, sizeof(path), "%s/cgroup.procs", at);
        if (access(path, F_OK) != 0)
            return;
        (void)snprintf(path, sizeof(path), "%s/%s", at, file);
        if (read_small(path, text, sizeof(text)) == 0)
            f(at, text, arg);
        slash = strrchr(at, '/');
        *slash = '\0';
    }
}

static void least_cpu_max(const char *folder, const char *text, void *arg)
{
    int64_t *least = arg, milli;

    (void)folder;
    if (parse_cgroup_cpu_max(text, &milli) == 0 && milli > 0 && (*least < 0 || milli < *least))
        *least = milli;
}

static void least_cfs(const char *folder, const char *text, void *arg)
{
    int64_t *least = arg, milli;
    char path[1200], period[64];

    (void)snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
    if (read_small(path, period, sizeof(period)) == 0 &&
        parse_cgroup_cfs(text, period, &milli) == 0 && milli > 0 && (*least < 0 || milli < *least))
        *least = milli;
}

static void least_max(const char *folder, const char *text, void *arg)
{
    int64_t *least = arg, value;

    (void)folder;
    if (parse_cgroup_max(text, &value) == 0 && value < *least)
        *least = value;
}

int os_cpus(struct os_cpus *out)
{
    struct buf text = BUF_INIT;
    struct parse_cpu seen;
    struct os_cgroups groups;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    char nodes[256];

    memset(out, 0, sizeof(*out));
    out->online = online > 0 && online <= INT32_MAX ? (int32_t)online : -1;
    out->affinity = affinity();
    out->quota_milli = -1;
    out->sockets = -1;
    out->cores = -1;
    out->threads = -1;
    buf_init(&text, TEXT_CAP);
    if (read_all("/proc/cpuinfo", &text) == 0) {
        parse_cpu_info(buf_str(&text), &seen);
        out->sockets = seen.sockets;
        out->cores = seen.cores;
        out->threads = seen.processors;
        (void)str_copy(out->model, sizeof(out->model), seen.model);
    }
    buf_fini(&text);
    if (out->sockets < 0)
        topology(out);
    if (out->threads < 0)
        out->threads = out->online;
    /* A kernel without nodes has the one that every machine has. */
    out->numa = read_small("/sys/devices/system/node/online", nodes, sizeof(nodes)) == 0
                    ? parse_cpu_list(nodes)
                : access("/sys/devices/system/cpu", F_OK) == 0 ? 1
                                                               : -1;
    if (os_cgroups(&groups) == 0) {
        walk_up(groups.v2, "cpu.max", least_cpu_max, &out->quota_milli);
        walk_up(groups.cpu, "cpu.cfs_quota_us", least_cfs, &out->quota_milli);
    }
    return out->online > 0 || out->affinity > 0 ? 0 : -ERR_SYS;
}

/* --- memory, load, time --- */

int os_memory(struct os_memory *out)
{
    char text[4096];
    int r = read_small("/proc/meminfo", text, sizeof(text));

    return r != 0 ? r : parse_proc_meminfo(text, out);
}

int os_load(struct os_load *out)
{
    char text[128];
    int r = read_small("/proc/loadavg", text, sizeof(text));

    return r != 0 ? r : parse_proc_loadavg(text, out);
}

int os_ticks(struct os_ticks *out)
{
    char text[512];
    int r = read_small("/proc/stat", text, sizeof(text));

    return r != 0 ? r : parse_proc_stat(text, hz(), out);
}

int os_paging(struct os_paging *out)
{
    char text[8192];
    int r = read_small("/proc/vmstat", text, sizeof(text));

    return r != 0 ? r : parse_proc_vmstat(text, out);
}

int os_pressure(enum os_pressure what, int64_t *some_ns)
{
    static const char *const path[] = {
        [OS_PRESSURE_CPU] = "/proc/pressure/cpu",
        [OS_PRESSURE_MEMORY] = "/proc/pressure/memory",
        [OS_PRESSURE_IO] = "/proc/pressure/io",
    };
    char text[256];

    if (read_small(path[what], text, sizeof(text)) != 0)
        return -ERR_UNSUP;
    return parse_proc_pressure(text, some_ns);
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

/* --- who this is --- */

static void first_line_of(const char *path, char *dst, size_t room)
{
    char text[512];

    if (read_small(path, text, sizeof(text)) == 0)
        (void)parse_line(text, dst, room);
}

int os_ident(struct os_ident *out)
{
    struct buf text = BUF_INIT;
    struct utsname u;

    memset(out, 0, sizeof(*out));
    if (uname(&u) != 0)
        return err_from_errno(errno);
    (void)str_copy(out->name, sizeof(out->name), u.sysname);
    (void)str_copy(out->release, sizeof(out->release), u.release);
    (void)str_copy(out->version, sizeof(out->version), u.version);
    (void)str_copy(out->machine, sizeof(out->machine), u.machine);
    (void)str_copy(out->hostname, sizeof(out->hostname), u.nodename);
    (void)snprintf(out->kernel, sizeof(out->kernel), "%s %s %s %s", u.sysname, u.release, u.version,
                   u.machine);
    buf_init(&text, TEXT_CAP);
    if (read_all("/etc/os-release", &text) == 0 || read_all("/usr/lib/os-release", &text) == 0)
        (void)parse_release(buf_str(&text), "PRETTY_NAME", out->system, sizeof(out->system));
    buf_fini(&text);
    first_line_of("/proc/sys/kernel/random/boot_id", out->boot_id, sizeof(out->boot_id));
    first_line_of("/etc/machine-id", out->machine_id, sizeof(out->machine_id));
    if (out->machine_id[0] == '\0')
        first_line_of("/var/lib/dbus/machine-id", out->machine_id, sizeof(out->machine_id));
    first_line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                  out->clock_source, sizeof(out->clock_source));
    return 0;
}

static int64_t soft_limit(const struct rlimit *l)
{
    return l->rlim_cur == RLIM_INFINITY || l->rlim_cur > INT64_MAX ? OS_NO_LIMIT
                                                                   : (int64_t)l->rlim_cur;
}

int os_limits(struct os_limits *out)
{
    struct os_cgroups groups;
    struct rlimit l;

    out->processes = getrlimit(RLIMIT_NPROC, &l) == 0 ? soft_limit(&l) : -1;
    out->files = getrlimit(RLIMIT_NOFILE, &l) == 0 ? soft_limit(&l) : -1;
    out->stack = getrlimit(RLIMIT_STACK, &l) == 0 ? soft_limit(&l) : -1;
    out->core = getrlimit(RLIMIT_CORE, &l) == 0 ? soft_limit(&l) : -1;
    out->pids = OS_NO_LIMIT;
    out->memory = OS_NO_LIMIT;
    if (os_cgroups(&groups) == 0) {
        walk_up(groups.v2, "pids.max", least_max, &out->pids);
        walk_up(groups.pids, "pids.max", least_max, &out->pids);
        walk_up(groups.v2, "memory.max", least_max, &out->memory);
        walk_up(groups.memory, "memory.limit_in_bytes", least_max, &out->memory);
    }
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
    struct buf text = BUF_INIT;
    uint64_t number;
    bool found;
    int r;

    buf_init(&text, TEXT_CAP);
    r = read_all("/etc/passwd", &text);
    found = r == 0 && parse_passwd(buf_str(&text), name, out);
    if (!found && num_parse_u64(name, &number) == 0 && number < UINT32_MAX) {
        out->uid = (uint32_t)number;
        if (!parse_passwd_gid(buf_str(&text), out->uid, &out->gid))
            out->gid = out->uid;
        found = true;
    }
    buf_fini(&text);
    return found ? 0 : r != 0 ? r : -ERR_NOTFOUND;
}

int os_chown(const char *path, uint32_t uid, uint32_t gid)
{
    return lchown(path, uid, gid) == 0 ? 0 : err_from_errno(errno);
}

char *const *os_environ(void)
{
    return environ;
}

/* --- processes --- */

static int gone(int code)
{
    /* A process that ends while its file is read gives ESRCH. */
    return code == err_from_errno(ESRCH) ? -ERR_NOTFOUND : code;
}

int os_proc_get(int64_t pid, struct os_proc *out)
{
    char path[64], text[1024];
    int r;

    (void)snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
    r = read_small(path, text, sizeof(text));
    return r != 0 ? gone(r) : parse_proc_pid_stat(text, hz(), out);
}

int os_procs(os_proc_f *f, void *arg)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    int r = 0;

    if (dir == NULL)
        return err_from_errno(errno);
    while (r == 0 && (entry = readdir(dir)) != NULL) {
        struct os_proc proc;
        uint64_t pid;

        if (num_parse_u64(entry->d_name, &pid) != 0 || os_proc_get((int64_t)pid, &proc) != 0)
            continue;
        r = f(&proc, arg);
    }
    (void)closedir(dir);
    return r;
}

bool os_proc_is_of(int64_t pid, uint32_t uid)
{
    char path[64], text[4096];

    (void)snprintf(path, sizeof(path), "/proc/%" PRId64 "/status", pid);
    return read_small(path, text, sizeof(text)) == 0 && parse_proc_status_is_of(text, uid);
}

bool os_proc_has_env(int64_t pid, const char *name_value)
{
    struct buf block = BUF_INIT;
    char path[64];
    bool has;

    buf_init(&block, TEXT_CAP);
    (void)snprintf(path, sizeof(path), "/proc/%" PRId64 "/environ", pid);
    has = read_all(path, &block) == 0 &&
          parse_proc_environ_has(buf_str(&block), block.len, name_value);
    buf_fini(&block);
    return has;
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

/* --- control groups, files --- */

int os_cgroups(struct os_cgroups *out)
{
    struct buf self = BUF_INIT, mounts = BUF_INIT;
    int r;

    memset(out, 0, sizeof(*out));
    buf_init(&self, TEXT_CAP);
    buf_init(&mounts, TEXT_CAP);
    r = read_all("/proc/self/cgroup", &self);
    if (r == 0)
        r = read_all("/proc/self/mountinfo", &mounts);
    if (r == 0)
        parse_cgroup_folders(buf_str(&self), buf_str(&mounts), out);
    buf_fini(&self);
    buf_fini(&mounts);
    return r;
}

const char *os_lock_path(void)
{
    struct stat st;

    if (compat_stat(AT_FDCWD, "/run/lock", 0, &st, NULL) == 0 && S_ISDIR(st.st_mode))
        return "/run/lock/makespan.lock";
    return "/tmp/makespan.lock";
}

int os_fs_kind(const char *path, char *dst, size_t room)
{
    struct buf mounts = BUF_INIT;
    struct statfs fs;
    struct stat st;
    char *real = realpath(path, NULL);
    char device[64];
    int r;

    r = real == NULL ? err_from_errno(errno) : compat_stat(AT_FDCWD, real, 0, &st, NULL);
    if (r == 0 && statfs(real, &fs) != 0)
        r = err_from_errno(errno);
    if (r != 0) {
        free(real);
        return r;
    }
    (void)snprintf(device, sizeof(device), "%u:%u", (unsigned)((st.st_dev >> 8) & 0xfff),
                   (unsigned)((st.st_dev & 0xff) | ((st.st_dev >> 12) & 0xfff00)));
    buf_init(&mounts, TEXT_CAP);
    if (read_all("/proc/self/mountinfo", &mounts) != 0 ||
        !parse_mount_kind(buf_str(&mounts), real, device, dst, room))
        (void)snprintf(dst, room, "%#lx", (unsigned long)fs.f_type);
    buf_fini(&mounts);
    free(real);
    return 0;
}

int os_punch(int fd, uint64_t offset, uint64_t length)
{
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)length) ==
        0)
        return 0;
    return errno == EOPNOTSUPP || errno == ENOSYS ? -ERR_UNSUP : err_from_errno(errno);
}

int os_fd_chown(int fd, uint32_t uid, uint32_t gid)
{
    return fchown(fd, uid, gid) == 0 ? 0 : err_from_errno(errno);
}

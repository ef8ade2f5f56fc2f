/* proc_start.c: making a child process by vfork(). Owns the way from a description to exec; what becomes of the child is proc.c's.
 *
 * With `own_memory` it is a copy of this process that is made smaller before it executes: the peak of the parent's memory would count as the
 * child's. Then all that the child needs lies in a block of its own, since it gives the rest of the memory back.
 *
 * vfork() costs the same whatever the size of this process, and the child runs in this process's memory until it executes: it only makes
 * system calls, on what the parent has prepared in a plan, and says in the plan which step failed. All signals are blocked meanwhile. */
#include "common/proc_start.h"

#include "common/clock.h"
#include "common/compat/compat.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIGNALS 65
#define EXIT_NOT_STARTED 127
#define STANDARD_FDS 3

static const char path_default[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
static const char *const env_default[] = {
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL=C",
    "TZ=UTC",
    NULL,
};

enum step {
    STEP_NONE,
    STEP_SESSION,
    STEP_JOIN,
    STEP_FDS,
    STEP_NICE,
    STEP_LIMITS,
    STEP_USER,
    STEP_PRIVILEGES,
    STEP_CWD,
    STEP_EXEC,
};

static const char *const step_texts[] = {
    [STEP_NONE] = "start",
    [STEP_SESSION] = "start a session for",
    [STEP_JOIN] = "put into its control group",
    [STEP_FDS] = "set up the standard descriptors of",
    [STEP_NICE] = "set the niceness of",
    [STEP_LIMITS] = "set the limits of",
    [STEP_USER] = "change the user of",
    [STEP_PRIVILEGES] = "forbid new privileges to",
    [STEP_CWD] = "enter the folder of",
    [STEP_EXEC] = "execute",
};

/* What the parent prepares, and what the child reports. */
struct plan {
    const struct proc_spec *spec;
    char *const *argv;
    const char *const *env;
    const void *block; /* own_memory: where all of this lies; else NULL */
    size_t block_size;
    char **programs; /* paths to try in turn */
    size_t program_count;
    int fds[STANDARD_FDS]; /* all above the standard ones, so that none is overwritten before it is used */
    int temporary[STANDARD_FDS + 1];
    size_t temporary_count;
    int resets[SIGNALS]; /* signals that are not at their default */
    size_t reset_count;
    int64_t start_ns;
    volatile enum step failed;
    volatile int errno_value;
    volatile bool shed; /* the child counts its own memory alone */
};

NORETURN static void fail(struct plan *plan, enum step step, int errno_value)
{
    plan->errno_value = errno_value;
    plan->failed = step;
    _exit(EXIT_NOT_STARTED);
}

static struct rlimit lowered(struct rlimit limit, rlim_t value)
{
    if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > value) {
        limit.rlim_max = value;
    }
    limit.rlim_cur = limit.rlim_max;
    return limit;
}

static void limit_child(struct plan *plan)
{
    struct rlimit limit;
    if (plan->spec->file_size_limit != 0) {
        if (getrlimit(RLIMIT_FSIZE, &limit) != 0) {
            fail(plan, STEP_LIMITS, errno);
        }
        limit = lowered(limit, (rlim_t)plan->spec->file_size_limit);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) {
            fail(plan, STEP_LIMITS, errno);
        }
    }
    if (plan->spec->no_core) {
        limit = (struct rlimit){0, 0};
        if (setrlimit(RLIMIT_CORE, &limit) != 0) {
            fail(plan, STEP_LIMITS, errno);
        }
    }
}

/* The child's credentials and limits: what is given up, in an order in which each step may still be taken. */
static void confine_child(struct plan *plan)
{
    const struct proc_spec *spec = plan->spec;
    if (spec->nice != 0) {
        errno = 0;
        if (nice(spec->nice) == -1 && errno != 0) {
            fail(plan, STEP_NICE, errno);
        }
    }
    limit_child(plan);
    if (spec->set_user) {
        int e = compat_become_user(spec->uid, spec->gid);
        if (e != 0) {
            fail(plan, STEP_USER, e);
        }
    }
    if (spec->no_new_privs) {
        int e = compat_no_new_privs();
        if (e != 0 && e != ENOSYS) {
            fail(plan, STEP_PRIVILEGES, e);
        }
    }
}

/* Tries the programs in turn, as a shell does: what is not there is passed over, a denied one is remembered. */
NORETURN static void execute(struct plan *plan)
{
    int reason = ENOENT;
    for (size_t i = 0; i < plan->program_count; i++) {
        execve(plan->programs[i], plan->argv, (char *const *)(uintptr_t)plan->env);
        if (errno == EACCES) {
            reason = EACCES;
        } else if (errno != ENOENT && errno != ENOTDIR) {
            fail(plan, STEP_EXEC, errno);
        }
    }
    fail(plan, STEP_EXEC, reason);
}

NORETURN static void run_child(struct plan *plan)
{
    const struct proc_spec *spec = plan->spec;
    struct sigaction dflt;
    sigset_t none;
    if (plan->block != NULL) {
        plan->shed = compat_shed_memory(plan->block, plan->block_size) == 0;
        plan->start_ns = clock_mono_ns();
    }
    memset(&dflt, 0, sizeof(dflt));
    dflt.sa_handler = SIG_DFL;
    for (size_t i = 0; i < plan->reset_count; i++) {
        sigaction(plan->resets[i], &dflt, NULL);
    }
    if (spec->new_session && setsid() < 0) {
        fail(plan, STEP_SESSION, errno);
    }
    for (size_t i = 0; i < spec->join_count; i++) {
        if (write(spec->join_fds[i], "0\n", 2) != 2) {
            fail(plan, STEP_JOIN, errno);
        }
    }
    for (int i = 0; i < STANDARD_FDS; i++) {
        if (dup2(plan->fds[i], i) < 0) {
            fail(plan, STEP_FDS, errno);
        }
    }
    confine_child(plan);
    if (spec->cwd != NULL && chdir(spec->cwd) != 0) {
        fail(plan, STEP_CWD, errno);
    }
    compat_close_from(STANDARD_FDS);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execute(plan);
}

/* A frame of its own, of which the child changes nothing. */
__attribute__((noinline)) static pid_t make_child(struct plan *plan)
{
    plan->start_ns = clock_mono_ns();
    pid_t pid = plan->block != NULL ? compat_fork_waiting() : vfork();
    if (pid == 0) {
        run_child(plan);
    }
    return pid;
}

/* --- a plan that lies in a block of its own --- */

/* What is laid into the block; with a NULL block it is only counted. */
struct laying {
    char *block;
    size_t used;
};

static void *lay(struct laying *l, const void *bytes, size_t n)
{
    size_t at = (l->used + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
    l->used = at + n;
    return l->block == NULL ? NULL : memcpy(l->block + at, bytes, n);
}

/* `count` strings and a NULL behind them. */
static void *lay_texts(struct laying *l, const char *const *texts, size_t count)
{
    size_t size = (count + 1) * sizeof(char *);
    size_t at = (l->used + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
    char **list = l->block == NULL ? NULL : (void *)(l->block + at);
    l->used = at + size;
    for (size_t i = 0; i < count; i++) {
        char *copy = lay(l, texts[i], strlen(texts[i]) + 1);
        if (list != NULL) {
            list[i] = copy;
        }
    }
    if (list != NULL) {
        list[count] = NULL;
    }
    return list;
}

static size_t count_texts(const char *const *texts)
{
    size_t n = 0;
    while (texts[n] != NULL) {
        n++;
    }
    return n;
}

static struct plan *lay_plan(struct laying *l, const struct plan *plan)
{
    struct plan *p = lay(l, plan, sizeof(*plan));
    struct proc_spec *spec = lay(l, plan->spec, sizeof(*plan->spec));
    void *argv = lay_texts(l, plan->spec->argv, count_texts(plan->spec->argv));
    void *env = lay_texts(l, plan->env, count_texts(plan->env));
    void *programs = lay_texts(l, (const char *const *)plan->programs, plan->program_count);
    char *cwd = plan->spec->cwd == NULL ? NULL : lay(l, plan->spec->cwd, strlen(plan->spec->cwd) + 1);
    if (p != NULL) {
        spec->cwd = cwd;
        p->spec = spec;
        p->argv = argv;
        p->env = env;
        p->programs = programs;
        p->block = l->block;
        p->block_size = l->used;
    }
    return p;
}

/* Makes the child from a copy of the plan that both see. -1 when there can be no such child: the plan says nothing of it. */
static pid_t make_own_memory_child(struct plan *plan)
{
    struct laying count = {NULL, 0};
    (void)lay_plan(&count, plan);
    void *block = mmap(NULL, count.used, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) {
        return -1;
    }
    struct laying l = {block, 0};
    struct plan *copy = lay_plan(&l, plan);
    pid_t pid = make_child(copy);
    plan->start_ns = copy->start_ns;
    plan->failed = copy->failed;
    plan->errno_value = copy->errno_value;
    plan->shed = copy->shed;
    munmap(block, count.used);
    return pid;
}

static const char *path_of(const char *const *env)
{
    for (size_t i = 0; env[i] != NULL; i++) {
        if (strncmp(env[i], "PATH=", 5) == 0) {
            return env[i] + 5;
        }
    }
    return path_default;
}

/* The paths at which the program may be. Of PATH only absolute folders count: the child's working folder is no place to look for programs. */
static void list_programs(struct plan *plan, const char *name)
{
    if (strchr(name, '/') != NULL) {
        plan->programs = mem_xarray(1, sizeof(plan->programs[0]));
        plan->programs[plan->program_count++] = mem_xstrdup(name);
        return;
    }
    const char *path = path_of(plan->env);
    size_t parts = 1;
    for (const char *p = path; *p != '\0'; p++) {
        parts += *p == ':';
    }
    plan->programs = mem_xarray(parts, sizeof(plan->programs[0]));
    while (*name != '\0' && *path != '\0') {
        size_t n = strcspn(path, ":");
        if (n > 0 && path[0] == '/') {
            plan->programs[plan->program_count++] = mem_xasprintf("%.*s/%s", (int)n, path, name);
        }
        path += n + (path[n] == ':');
    }
}

/* A descriptor above the standard ones for the child's descriptor i: the given one, a copy of it, or /dev/null (*null). */
static int place_fd(struct plan *plan, int given, int *null)
{
    int fd = given;
    if (fd < 0) {
        if (*null >= 0) {
            return *null;
        }
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (fd < 0) {
            return -1;
        }
    }
    int high = fd;
    if (fd < STANDARD_FDS) {
        high = fcntl(fd, F_DUPFD_CLOEXEC, STANDARD_FDS);
        if (given < 0) {
            close(fd);
        }
    }
    if (high != given && high >= 0) {
        plan->temporary[plan->temporary_count++] = high;
    }
    if (given < 0) {
        *null = high;
    }
    return high;
}

static bool place_fds(struct plan *plan)
{
    const int given[STANDARD_FDS] = {plan->spec->in_fd, plan->spec->out_fd, plan->spec->err_fd};
    int null = -1;
    for (int i = 0; i < STANDARD_FDS; i++) {
        plan->fds[i] = place_fd(plan, given[i], &null);
        if (plan->fds[i] < 0) {
            return false;
        }
    }
    return true;
}

/* Lists the signals to reset. A parent that ignores SIGCHLD never learns how a child ended: that is mended here, for this process too. */
static void list_signals(struct plan *plan)
{
    struct sigaction action;
    for (int s = 1; s < SIGNALS; s++) {
        if (sigaction(s, NULL, &action) != 0) {
            continue; /* a number that the library keeps to itself */
        }
        if (s == SIGCHLD && (action.sa_handler == SIG_IGN || (action.sa_flags & SA_NOCLDWAIT) != 0)) {
            memset(&action, 0, sizeof(action));
            action.sa_handler = SIG_DFL;
            sigaction(s, &action, NULL);
        }
        if (action.sa_handler != SIG_DFL) {
            plan->resets[plan->reset_count++] = s;
        }
    }
}

/* Bytes that this process had at most. */
static int64_t own_peak(void)
{
    struct rusage ru;
    return getrusage(RUSAGE_SELF, &ru) == 0 ? (int64_t)ru.ru_maxrss * 1024 : INT64_MAX;
}

static int report(const struct plan *plan, struct diag *diag)
{
    const struct proc_spec *spec = plan->spec;
    int code = err_from_errno(plan->errno_value);
    const char *why = strerror(plan->errno_value);
    if (plan->failed == STEP_CWD) {
        return diag_error(diag, code, "cannot enter %s to execute %s: %s", spec->cwd, spec->argv[0], why);
    }
    return diag_error(diag, code, "cannot %s %s: %s", step_texts[plan->failed], spec->argv[0], why);
}

int proc_start_child(const struct proc_spec *spec, struct proc_started *out, struct diag *diag)
{
    struct plan plan = {.spec = spec,
                        .argv = (char *const *)(uintptr_t)spec->argv,
                        .env = spec->env != NULL ? spec->env : env_default};
    sigset_t all;
    sigset_t before;
    pid_t child = -1;
    assert(spec->argv != NULL && spec->argv[0] != NULL && spec->join_count <= PROC_JOIN_MAX);
    list_programs(&plan, spec->argv[0]);
    if (place_fds(&plan)) {
        list_signals(&plan);
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &before);
        if (spec->own_memory) {
            child = make_own_memory_child(&plan);
        }
        if (child < 0) {
            child = make_child(&plan);
        }
        plan.errno_value = child < 0 ? errno : plan.errno_value;
        sigprocmask(SIG_SETMASK, &before, NULL);
    } else {
        plan.failed = STEP_FDS;
        plan.errno_value = errno;
    }
    for (size_t i = 0; i < plan.temporary_count; i++) {
        close(plan.temporary[i]);
    }
    for (size_t i = 0; i < plan.program_count; i++) {
        free(plan.programs[i]);
    }
    free(plan.programs);
    if (child > 0 && plan.failed == STEP_NONE) {
        *out = (struct proc_started){.pid = child, .start_ns = plan.start_ns, .rss_floor = -1};
        if (spec->own_memory && !plan.shed) {
            out->rss_floor = own_peak();
        }
        return 0;
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    return report(&plan, diag);
}

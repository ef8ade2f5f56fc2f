/* proc.c: child processes on the loop. Owns every child between its start and the delivery of its end, and the reaping of orphans. How a
 * child is made: proc_start.c; a child with its output: proc_collect.c.
 *
 * A child is watched by a descriptor of the process (pidfd) where there is one, which wakes for this child alone; else SIGCHLD wakes for all. Whoever
 * waits for any child (the reaper of orphans) first looks whom it is, and takes no other's status. */
#include "common/proc.h"

#include "common/clock.h"
#include "common/compat/compat.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/proc_start.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROC_MAGIC 0x50524f43U
#define CHILDREN_MAGIC 0x43484c44U
#define STATUS_UNKNOWN 255

/* All children of one loop. */
struct children {
    unsigned magic;
    struct loop *loop;
    struct proc *first;
    struct loop_signal *sigchld;
    proc_orphan_f *orphan;
    void *orphan_arg;
};

struct proc {
    unsigned magic;
    struct children *children;
    struct proc *next;
    pid_t pid;
    int pidfd; /* -1: none, SIGCHLD it is */
    struct loop_fd *watch;
    bool reaped;    /* `end` is whole; the process is no more */
    bool delivered; /* the callback was called; no longer in the list */
    bool forgotten; /* by proc_free(): nobody waits for its end */
    int64_t rss_floor; /* see proc_start.h */
    proc_end_f *f;
    void *arg;
    struct proc_end end;
};

static int64_t ns_of(struct timeval tv)
{
    return (int64_t)tv.tv_sec * CLOCK_SEC + (int64_t)tv.tv_usec * CLOCK_US;
}

/* Fills what wait4() gave into end. */
static void fill_end(struct proc_end *end, int status, const struct rusage *ru)
{
    end->signaled = WIFSIGNALED(status);
    end->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    end->signal = end->signaled ? WTERMSIG(status) : 0;
    end->usage = (struct proc_usage){
        .user_ns = ns_of(ru->ru_utime),
        .sys_ns = ns_of(ru->ru_stime),
        .max_rss_bytes = (int64_t)ru->ru_maxrss * 1024,
        .minor_faults = ru->ru_minflt,
        .major_faults = ru->ru_majflt,
        .voluntary_switches = ru->ru_nvcsw,
        .involuntary_switches = ru->ru_nivcsw,
        .block_in = ru->ru_inblock,
        .block_out = ru->ru_oublock,
    };
}

/* Takes the status of the child when it has ended. now: when that was seen. */
static void reap(struct proc *proc, int64_t now)
{
    struct rusage ru;
    int status = 0;
    if (proc->reaped) {
        return;
    }
    pid_t pid = wait4(proc->pid, &status, WNOHANG, &ru);
    if (pid == 0 || (pid < 0 && errno == EINTR)) {
        return; /* not yet */
    }
    proc->reaped = true;
    proc->end.end_ns = now;
    if (pid == proc->pid) {
        fill_end(&proc->end, status, &ru);
        if (proc->end.usage.max_rss_bytes <= proc->rss_floor) {
            proc->end.usage.max_rss_bytes = -1;
        }
        return;
    }
    proc->end.exit_status = STATUS_UNKNOWN;
    proc->end.errno_value = errno;
    log_error("the status of child %ld is lost: %s", (long)proc->pid, strerror(proc->end.errno_value));
}

static void leave_list(struct proc *proc)
{
    for (struct proc **p = &proc->children->first; *p != NULL; p = &(*p)->next) {
        if (*p == proc) {
            *p = proc->next;
            break;
        }
    }
    loop_fd_free(&proc->watch);
    if (proc->pidfd >= 0) {
        close(proc->pidfd);
        proc->pidfd = -1;
    }
}

static void destroy(struct proc *proc)
{
    proc->magic = 0;
    free(proc);
}

/* Tells the end of a reaped child. The callback may free the proc. */
static void deliver(struct proc *proc)
{
    struct proc_end end = proc->end;
    leave_list(proc);
    proc->delivered = true;
    if (proc->forgotten) {
        destroy(proc);
        return;
    }
    proc->f(proc, &end, proc->arg);
}

static void on_pidfd(int fd, int what, void *arg)
{
    int64_t now = clock_mono_ns();
    struct proc *proc;
    (void)fd;
    (void)what;
    CAST_OBJ(proc, arg, PROC_MAGIC);
    reap(proc, now);
    if (proc->reaped) {
        deliver(proc);
    }
}

static void children_free(void *arg)
{
    struct children *c;
    CAST_OBJ(c, arg, CHILDREN_MAGIC);
    while (c->first != NULL) {
        struct proc *proc = c->first;
        assert(proc->forgotten);
        reap(proc, 0); /* one that still runs is left to whoever inherits it */
        leave_list(proc);
        destroy(proc);
    }
    loop_signal_free(&c->sigchld);
    c->magic = 0;
    free(c);
}

static struct children *children_of(struct loop *loop)
{
    struct children *c = loop_attached(loop, children_free);
    if (c == NULL) {
        c = mem_xzalloc(sizeof(*c));
        c->magic = CHILDREN_MAGIC;
        c->loop = loop;
        loop_attach(loop, children_free, c);
    }
    return c;
}

/* The child with this id, of whichever loop of this process, or NULL. */
static struct proc *find_proc(pid_t pid)
{
    for (struct loop *loop = loop_next(NULL); loop != NULL; loop = loop_next(loop)) {
        struct children *c = loop_attached(loop, children_free);
        for (struct proc *p = c != NULL ? c->first : NULL; p != NULL; p = p->next) {
            if (p->pid == pid && !p->reaped) {
                return p;
            }
        }
    }
    return NULL;
}

/* Takes the status of every child that has ended, each for whom it belongs to. */
static void reap_any(struct children *c)
{
    for (;;) {
        siginfo_t info;
        memset(&info, 0, sizeof(info));
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
            return;
        }
        int64_t now = clock_mono_ns();
        struct proc *proc = find_proc(info.si_pid);
        if (proc != NULL) {
            reap(proc, now);
            if (proc->reaped && proc->children == c) {
                deliver(proc);
            } /* else its own loop wakes for it, too, and tells */
            continue;
        }
        struct proc_end end = {.end_ns = now};
        struct rusage ru;
        int status = 0;
        if (wait4(info.si_pid, &status, WNOHANG, &ru) == info.si_pid) {
            fill_end(&end, status, &ru);
            c->orphan(info.si_pid, &end, c->orphan_arg);
        }
    }
}

/* The first child of the list, not watched by a descriptor, whose end is there to be told. */
static struct proc *find_ended(struct children *c)
{
    for (struct proc *p = c->first; p != NULL; p = p->next) {
        if (p->pidfd < 0) {
            reap(p, clock_mono_ns());
            if (p->reaped) {
                return p;
            }
        }
    }
    return NULL;
}

static void look_for_ends(void *arg)
{
    struct children *c;
    struct proc *proc;
    CAST_OBJ(c, arg, CHILDREN_MAGIC);
    if (c->orphan != NULL) {
        reap_any(c);
    }
    while ((proc = find_ended(c)) != NULL) { /* from the start again: a callback may have changed the list */
        deliver(proc);
    }
}

static void on_sigchld(int number, void *arg)
{
    (void)number;
    look_for_ends(arg);
}

/* Looks for ends at each SIGCHLD, and once at the end of this turn for those that came before. */
static bool watch_sigchld(struct children *c)
{
    if (c->sigchld == NULL) {
        c->sigchld = loop_signal_new(c->loop, SIGCHLD, on_sigchld, c);
    }
    if (c->sigchld == NULL) {
        return false;
    }
    loop_defer(c->loop, look_for_ends, c);
    return true;
}

/* Has the loop wake for the end of the child. */
static bool watch(struct proc *proc)
{
    proc->pidfd = compat_pidfd_open(proc->pid);
    if (proc->pidfd >= 0) {
        proc->watch = loop_fd_new(proc->children->loop, proc->pidfd, LOOP_READ | LOOP_URGENT, on_pidfd, proc);
        if (proc->watch != NULL) {
            return true;
        }
        close(proc->pidfd);
    }
    proc->pidfd = -1;
    return watch_sigchld(proc->children);
}

int proc_spawn(struct loop *loop, const struct proc_spec *spec, proc_end_f *f, void *arg, struct proc **out,
               struct diag *diag)
{
    struct proc_started started;
    int rc = proc_start_child(spec, &started, diag);
    if (rc != 0) {
        return rc;
    }
    struct proc *proc = mem_xzalloc(sizeof(*proc));
    proc->magic = PROC_MAGIC;
    proc->children = children_of(loop);
    proc->pid = started.pid;
    proc->rss_floor = started.rss_floor;
    proc->f = f;
    proc->arg = arg;
    proc->end.start_ns = started.start_ns;
    if (!watch(proc)) {
        rc = diag_error(diag, ERR_SYS, "cannot watch the child %s: %s", spec->argv[0], strerror(errno));
        kill(started.pid, SIGKILL);
        while (waitpid(started.pid, NULL, 0) < 0 && errno == EINTR) {
        }
        destroy(proc);
        return rc;
    }
    proc->next = proc->children->first;
    proc->children->first = proc;
    *out = proc;
    return 0;
}

int64_t proc_pid(const struct proc *proc)
{
    return proc->pid;
}

int proc_signal(struct proc *proc, int number, bool group)
{
    if (proc->reaped) {
        return -ERR_NOTFOUND; /* the id may be another's by now */
    }
    return kill(group ? -proc->pid : proc->pid, number) == 0 ? 0 : err_from_errno(errno);
}

void proc_free(struct proc **proc)
{
    struct proc *p = *proc;
    if (p == NULL) {
        return;
    }
    *proc = NULL;
    if (p->delivered) {
        destroy(p);
    } else {
        p->forgotten = true;
    }
}

int proc_reap_orphans(struct loop *loop, proc_orphan_f *f, void *arg)
{
    int rc = compat_subreaper();
    if (rc != 0) {
        return rc;
    }
    struct children *c = children_of(loop);
    c->orphan = f;
    c->orphan_arg = arg;
    return watch_sigchld(c) ? 0 : -ERR_SYS;
}

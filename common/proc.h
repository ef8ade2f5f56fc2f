/* proc.h: child processes on the loop. A seam: the simulation runs none and scripts their ends. */
#ifndef MAKESPAN_COMMON_PROC_H
#define MAKESPAN_COMMON_PROC_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct diag;
struct loop;
struct proc;

#define PROC_JOIN_MAX 16

struct proc_spec {
    const char *const *argv; /* argv[0] is the program: with a slash a path, else looked up in the absolute folders of PATH of `env` */
    const char *const *env;  /* NAME=VALUE …, NULL at the end; NULL: a fixed small environment (PATH, LC_ALL=C, TZ=UTC) */
    const char *cwd;         /* NULL: stay */
    int in_fd;               /* -1: /dev/null */
    int out_fd;              /* -1: /dev/null */
    int err_fd;              /* -1: /dev/null */
    bool new_session;        /* setsid() */
    bool set_user;           /* setgroups(none), setgid, setuid: for a worker that is root */
    uint32_t uid;
    uint32_t gid;
    int nice;                   /* added to the present niceness; 0: none */
    int join_fds[PROC_JOIN_MAX]; /* descriptors that get "0\n" written in the child before it drops privileges (cgroup.procs) */
    size_t join_count;
    uint64_t file_size_limit; /* RLIMIT_FSIZE in bytes; 0: leave */
    bool no_core;             /* RLIMIT_CORE 0 */
    bool no_new_privs;        /* PR_SET_NO_NEW_PRIVS where there is one */
    bool own_memory;          /* usage.max_rss_bytes is to be the child's alone, else -1: see proc_usage */
};

#define PROC_SPEC_INIT {.in_fd = -1, .out_fd = -1, .err_fd = -1}

/* What wait4() says of one child and its waited-for children.
 *
 * A system may count the memory that a process has until it executes its program (Linux: the peak of this process, in whose memory a child of
 * vfork() runs) to max_rss_bytes, which hides what a small program needs. With `own_memory` in its spec a child gets a copy of this process's
 * memory and gives all that is large of it back before it executes, so that not much more than 1 MiB is counted; its start_ns is taken after
 * that. Where this cannot be done, a value that may be this process's own is -1, unknown, and one that is larger than that is the child's. */
struct proc_usage {
    int64_t user_ns;
    int64_t sys_ns;
    int64_t max_rss_bytes;
    int64_t minor_faults;
    int64_t major_faults;
    int64_t voluntary_switches;
    int64_t involuntary_switches;
    int64_t block_in;
    int64_t block_out;
};

struct proc_end {
    bool signaled;
    int exit_status; /* when not signaled: 0 to 255 */
    int signal;      /* when signaled */
    bool exec_failed; /* the program could not be started: exit_status 127 and errno_value say why (the real module says so at once) */
    int errno_value;  /* not 0 without exec_failed: another took the child's status; exit_status is 255 and nothing else is known */
    int64_t start_ns; /* clock_mono_ns() just before the spawn */
    int64_t end_ns;   /* clock_mono_ns() taken first thing when its end is seen */
    struct proc_usage usage;
};

typedef void proc_end_f(struct proc *proc, const struct proc_end *end, void *arg);

/* Starts a child. Everything in spec is borrowed for the call. All descriptors but 0, 1, 2 are closed in the child; signal mask and handlers
 * are reset to the default. `f` is called once, from the loop, when it has ended; the proc stays until proc_free(), which `f` may call. 0 and
 * *out, or a negative code with text in diag. A program that cannot be executed is reported through `f` (exec_failed) or at once as an error, as
 * is every other step that fails before (user, folder, control group). */
int proc_spawn(struct loop *loop, const struct proc_spec *spec, proc_end_f *f, void *arg, struct proc **out,
               struct diag *diag) MUST_CHECK;
int64_t proc_pid(const struct proc *proc);
/* Sends a signal to the child, or to its process group (new_session made it the leader). A child that has ended is left alone. 0 or a negative code. */
int proc_signal(struct proc *proc, int signal, bool group);
/* Forgets the child: its end is reaped without a callback. Kills nothing. NULL inside is fine. */
void proc_free(struct proc **proc);

/* Makes this process the reaper of orphaned descendants where the system can (Linux: PR_SET_CHILD_SUBREAPER); 0 or -ERR_UNSUP. `f` is called for each
 * child that ended and was not started by proc_spawn(): an orphan of some build. */
typedef void proc_orphan_f(int64_t pid, const struct proc_end *end, void *arg);
int proc_reap_orphans(struct loop *loop, proc_orphan_f *f, void *arg);

/* Runs a helper program (git, tar, …) and collects its output. */
struct proc_output {
    struct proc_end end;
    bool timed_out;
    bool truncated; /* more than out_max bytes came: it was killed */
    const struct buf *out;
    const struct buf *err; /* at most 64 KiB, the head */
};
typedef void proc_output_f(const struct proc_output *output, void *arg);
struct proc_collect;
/* Standard output is collected up to out_max bytes (spec->out_fd < 0) or goes to spec->out_fd; after timeout_ns (> 0) its group is killed. `f` is
 * called once. `spec->new_session` is set by itself. What a process left behind writes after the child's end is not waited for. *out, for which
 * `out` may be NULL, is gone when `f` returns. */
int proc_collect(struct loop *loop, const struct proc_spec *spec, size_t out_max, int64_t timeout_ns, proc_output_f *f, void *arg,
                 struct proc_collect **out, struct diag *diag) MUST_CHECK;
/* Kills the child's group and forgets it; `f` is not called. NULL inside is fine. */
void proc_collect_cancel(struct proc_collect **collect);

#endif

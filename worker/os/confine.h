/* confine.h: a build's whole tree of processes: who belongs to it, what it used, and its sure
 * end.
 *
 * Owns: the control groups of this worker (v2, v1, or both side by side), the following of
 * processes where there are none, the killing. Does not start the build: it gives common/proc
 * the descriptors to join by. Ways, probed once:
 *     kill    v2 (cgroup.kill), v1 (freezer, then signals), or following: every descendant of
 *             this process (which becomes the reaper of orphans) that began after the group, and
 *             every member of the leader's session
 *     usage   v2 cpu.stat, v1 cpuacct, or wait4() of the leader and of the reaped orphans
 * What left its control groups, as root can, and a user within what was delegated to it, is found
 * by following, too. In every way, when `uid_is_ours` is set, a process of the build's user that
 * no other worker on this machine is an ancestor of belongs to the build too: cron and at cannot
 * hide it.
 *
 * At most one group is open at a time. While one is open the worker starts no other child
 * (helpers such as tar run when none is open). */
#ifndef MAKESPAN_WORKER_OS_CONFINE_H
#define MAKESPAN_WORKER_OS_CONFINE_H

#include "common/attr.h"
#include "common/vocab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct confine;
struct confine_group;
struct diag;
struct loop;
struct proc_spec;
struct proc_usage;

enum confine_use { CONFINE_V2 = 1, CONFINE_V1 = 2, CONFINE_FOLLOW = 4, CONFINE_ALL = 7 };

struct confine_opts {
    /* [a-z0-9]{1,32}: names this worker among those of the machine and stays the same over
     * restarts; copied */
    const char *tag;
    /* CONFINE_*: the ways that may be used; 0: all. CONFINE_FOLLOW is always there in the end */
    unsigned use;
    bool set_user; /* builds run as uid */
    uint32_t uid;
    /* that user owns nothing else: whatever it runs after a build is the build's */
    bool uid_is_ours;
};

/* Probes what works. Never fails for want of control groups: why a way is not used is a note in
 * diag. -ERR_SYS only when this process can neither make groups nor list processes. */
int confine_new(struct loop *loop, const struct confine_opts *opts, struct confine **out,
                struct diag *diag) MUST_CHECK;
void confine_free(struct confine **confine); /* no group may be open; NULL inside is fine */

/* "cgroup2", "cgroup2+cgroup1", "cgroup1", "follow": for facts. Static text. */
const char *confine_way_text(const struct confine *confine);
/* Whether control groups hold the build; if not, attempts get the mark UNCONFINED. */
bool confine_is_confined(const struct confine *confine);
/* NAME=VALUE that a build's environment has to have, so that processes left by a worker that
 * died are found. Borrowed. */
const char *confine_env(const struct confine *confine);

/* Kills and forgets what earlier runs of this worker left: old groups, processes with
 * confine_env() in their environment, processes of the build's own user. `f` is called once from
 * the loop. To be called at start and before a run when confine_begin() said -ERR_BUSY. */
struct confine_left {
    size_t killed;     /* processes that were found and are gone */
    size_t stuck;      /* processes that could not be ended */
    const char *names; /* "cc1 (4711), sleep (4712), …", at most 256 bytes; "" when none */
};
typedef void confine_f(const struct confine_left *left, void *arg);
int confine_sweep(struct confine *confine, confine_f *f, void *arg, struct diag *diag) MUST_CHECK;

/* Opens a group, empty. `name` ([A-Za-z0-9._-]{1,64}) is unique among those of the worker that
 * are not ended. -ERR_BUSY with the names in diag when processes of an earlier group could not
 * be ended: the run must not begin. */
int confine_begin(struct confine *confine, const char *name, struct confine_group **out,
                  struct diag *diag) MUST_CHECK;
/* Fills in join_fds, join_count of a spec for the leader. The descriptors stay the group's,
 * until confine_end(). */
void confine_join(const struct confine_group *group, struct proc_spec *spec);
/* The leader has been spawned. */
void confine_led_by(struct confine_group *group, int64_t pid);

/* Each number is -1 when this way cannot say it. */
struct confine_usage {
    enum cpu_way way;
    int64_t user_ns;
    int64_t sys_ns;
    int64_t peak_bytes; /* memory of all together, page cache included */
};
/* What the tree used so far. `leader` NULL: while it runs (allocates nothing, may be asked in
 * the timed window; CPU_WAY_NONE without control groups); else what wait4() said of it: to be
 * asked at once when it has ended, and in the ways WAIT4 and REAPER again after confine_kill(). */
void confine_usage(const struct confine_group *group, const struct proc_usage *leader,
                   struct confine_usage *out);
/* Page faults, context switches and block I/O of orphans that were reaped in the group's name,
 * to be added to the leader's. */
void confine_orphans(const struct confine_group *group, struct proc_usage *out);

/* Ends every process of the group, however it hides, and waits until it is empty. Processes that
 * end by themselves within `grace_ns` (at least 20 ms) do not count as killed. At most limit_ns
 * (0: 10 s): what is left then is `stuck`. `f` is called once, from the loop, never from within. */
void confine_kill(struct confine_group *group, int64_t grace_ns, int64_t limit_ns, confine_f *f,
                  void *arg);
/* Sends a signal to every process of the group once, without waiting: for a polite SIGTERM. */
void confine_signal(struct confine_group *group, int signal);
/* Closes the group. What is stuck in it is remembered, and confine_begin() refuses while it
 * lives. NULL inside is fine; not while a kill is under way. */
void confine_end(struct confine_group **group);
/* Closes the group at once, without waiting and without the callback of a kill that is under
 * way: when the process ends. NULL inside is fine. */
void confine_abandon(struct confine_group **group);

#endif

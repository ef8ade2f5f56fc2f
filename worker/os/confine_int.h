/* confine_int.h: what the files of confine share. Not for others.
 *
 *     confine.c          the worker's object, one open group, killing in rounds, the sweep
 *     confine_groups.c   control groups: folders, joining, usage, members, kill
 *     confine_abandoned.c  the lock of a worker's folder, folders that lost their worker
 *     confine_follow.c   processes that belong to a build though no control group says so */
#ifndef MAKESPAN_WORKER_OS_CONFINE_INT_H
#define MAKESPAN_WORKER_OS_CONFINE_INT_H

#include "common/attr.h"
#include "common/vocab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct os_proc;

/* --- confine_groups.c --- */
enum { CG_V2, CG_CPUACCT, CG_MEMORY, CG_FREEZER, CG_KINDS };
enum { CG_PATH = 1024 };

/* Hierarchies that can be used, each with the folder that holds the groups of this worker. */
struct cg {
    struct cg_place {
        bool on;
        char parent[CG_PATH]; /* …/makespan-TAG */
        int own_fd;           /* cg_own(); -1 */
    } place[CG_KINDS];
    bool v2_cpu; /* v2 counts processor time */
};

/* The folders of one group. */
struct cg_group {
    const struct cg *cg;
    char path[CG_KINDS][CG_PATH]; /* "" where the hierarchy is not used */
    int join_fd[CG_KINDS];        /* of cgroup.procs, -1 */
};

/* Finds and tries what works; says in diag why not. */
void cg_probe(struct cg *cg, const char *tag, unsigned use, struct diag *diag);
void cg_fini(struct cg *cg); /* removes the worker's folders where they are empty */
bool cg_any(const struct cg *cg);
const char *cg_text(const struct cg *cg);
int cg_open(const struct cg *cg, const char *name, struct cg_group *out,
            struct diag *diag) MUST_CHECK;
/* Closes the descriptors and removes the folders. False when one is busy still: it stays for
 * cg_leftover(). */
bool cg_close(struct cg_group *group);
/* CPU time and memory peak; -1 for what is not known. CPU_WAY_NONE when no hierarchy counts. */
enum cpu_way cg_usage(const struct cg_group *group, int64_t *user_ns, int64_t *sys_ns,
                      int64_t *peak_bytes);
/* Calls f for each process in the group and below. */
typedef void cg_pid_f(int64_t pid, void *arg);
void cg_pids(const struct cg_group *group, cg_pid_f *f, void *arg);
bool cg_empty(const struct cg_group *group);
/* One round: everything in the group gets SIGKILL, at once where the system can. */
void cg_kill(const struct cg_group *group);
void cg_signal(const struct cg_group *group, int signal);
/* A group of this worker that nobody closed, other than `open` (NULL: any); false when there is
 * none. Made for cg_pids, cg_kill, cg_close. `skip` of them are passed over. */
bool cg_leftover(const struct cg *cg, const struct cg_group *open, size_t skip,
                 struct cg_group *out);

/* --- confine_abandoned.c --- */

/* Makes the folder of control groups, unless it is there, and takes part in its ownership. A
 * descriptor to be kept as long as it is in use, and closed; -1 with errno. */
int cg_own(const char *path) MUST_CHECK;
/* Removes the folders makespan-TAG beside `own`, where TAG is 16 hex digits, that nobody owns, as far
 * as they are empty. How many are gone. */
size_t cg_remove_abandoned(const char *own);

/* --- confine_follow.c --- */
struct follow_rule {
    int64_t self;         /* this process */
    int64_t leader;       /* 0: none */
    int64_t leader_start; /* os_proc.start; -1: unknown */
    /* descendants of the leader, its session and group, and every child of `self` that began
     * after it */
    bool descend;
    /* with descend: also children of `self` that ended and that it has not waited for, the
     * leader excepted */
    bool zombies;
    bool of_user; /* every process of uid, unless another worker is above it */
    uint32_t uid;
    const char *mark; /* every process with this NAME=VALUE in its environment; NULL: none */
};
typedef void follow_f(const struct os_proc *proc, void *arg);
/* Calls f for each process that lives and belongs to the rule, never for `self`, kernel threads
 * or process 1. 0 or negative when the system does not list. */
int follow_each(const struct follow_rule *rule, follow_f *f, void *arg) MUST_CHECK;
/* Whether a program of this name is a worker. */
bool follow_is_worker_name(const char *name);

#endif

/* step.h: runs one command of an attempt, from the spawn until its whole tree is dead.
 *
 * Owns: the shell (`/bin/sh -c`, for setup `/bin/sh -e -c`: its lines stop at the first that
 * fails), standard input from /dev/null, a session of its own, the output file, the confine
 * group, the time limit (SIGTERM to all, after `kill_grace_ns` SIGKILL), the cancel (the same),
 * the report. Does not know what the command is for: environment, folder and user come from the
 * slot. */
#ifndef MAKESPAN_WORKER_RUN_STEP_H
#define MAKESPAN_WORKER_RUN_STEP_H

#include "common/attr.h"
#include "common/proc.h"
#include "common/vocab.h"
#include "worker/os/confine.h"
#include "worker/run/marks.h"

#include <stdbool.h>
#include <stdint.h>

struct diag;
struct loop;
struct output;
struct step;

#define STEP_KILL_GRACE_NS (INT64_C(2000000000))

struct step_spec {
    const char *name; /* of the confine group: "RUN.ATTEMPT.PHASE" */
    const char *command;
    bool stop_on_error;     /* setup */
    const char *const *env; /* env_list() */
    const char *cwd;
    struct output *output; /* borrowed until step_free(); NULL: /dev/null */
    bool set_user;
    uint32_t uid;
    uint32_t gid;
    int nice;
    int64_t timeout_ns;      /* 0: none */
    int64_t kill_grace_ns;   /* between SIGTERM and SIGKILL; 0: STEP_KILL_GRACE_NS */
    struct confine *confine; /* borrowed until step_free() */
    /* Called now and then while the command runs (at least once a second); returns the
     * nanoseconds until the next. NULL: none. */
    int64_t (*tick)(void *arg);
    /* Just before the spawn, and first thing when the leader has ended, with what the tree used.
     * NULL: none. */
    void (*before)(void *arg);
    void (*after)(const struct proc_end *end, void *arg);
    void *hook_arg;
};

struct step_result {
    enum ending ending;
    /* ENDING_EXIT; of NOEXEC, TIMEOUT and CANCEL what the leader gave, -1 when a signal ended it */
    int exit_status;
    int signal; /* ENDING_SIGNAL, and of TIMEOUT and CANCEL the one that ended the leader; else 0 */
    bool ok;    /* ENDING_EXIT with status 0 */
    int64_t start_ns; /* clock_mono_ns() at the spawn */
    int64_t real_ns;  /* from the spawn until the leader's end was seen */
    int64_t start_wall_ns;
    int64_t clear_ns; /* from then until all of its tree was dead */
    /* by wait4(): the leader's, with the orphans' where the way is REAPER; max_rss_bytes -1: not known */
    struct proc_usage wait;
    struct confine_usage usage; /* of the whole tree; user and sys are never -1 */
    size_t survivors;           /* processes left at the end, and killed */
    size_t stuck;               /* of them those that could not be */
    struct marks marks; /* SURVIVORS, OUTPUT_CUT, OUTPUT_TRUNCATED, UNCONFINED, CPU_DISAGREE */
    char text[512];     /* one sentence that says what happened; "" when ok */
};

typedef void step_end_f(const struct step_result *result, void *arg);

/* Starts. 0, and `f` is called once from the loop when the tree is dead (or given up as stuck);
 * a shell that could not be started is ENDING_NOEXEC. -ERR_BUSY: processes of an earlier run are
 * there (diag names them): confine_sweep(), and no start. Everything but what is said to be
 * borrowed is copied. */
int step_start(struct loop *loop, const struct step_spec *spec, step_end_f *f, void *arg,
               struct step **out, struct diag *diag) MUST_CHECK;
/* Ends it: `f` comes with ENDING_CANCEL, unless the leader had ended by itself before. */
void step_cancel(struct step *step);
/* The leader's process id, 0 before and after. */
int64_t step_pid(const struct step *step);
/* What the tree used so far, where control groups say it. Allocates nothing. */
void step_usage(const struct step *step, struct confine_usage *out);
/* After `f`, or from within it. Before `f`, only where the loop is given up too (the process
 * ends): kills what it can without waiting. */
void step_free(struct step **step); /* NULL inside is fine */

#endif

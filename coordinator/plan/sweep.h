/* sweep.h: an operator's wishes about sweeps: check, plan and accept a sweep file; pause, resume,
 * cancel, retry. */
#ifndef MAKESPAN_COORDINATOR_PLAN_SWEEP_H
#define MAKESPAN_COORDINATOR_PLAN_SWEEP_H

#include "coordinator/plan/plan.h"

enum plan_action { PLAN_CHECK, PLAN_PLAN, PLAN_RUN };
/* The action of a word (check, plan, run): 0 or -ERR_INVAL. */
int plan_action_of(const char *word, enum plan_action *out) MUST_CHECK;

/* A revision of a source that the operator's command read and put: REC(revision) of the protocol.
 */
struct plan_revision {
    uint32_t workload; /* index in the sweep file of a workload with this source */
    const char *expr;  /* as written; "" for a folder or an archive */
    uint32_t ordinal;  /* place within a range, from 0, from the oldest */
    const char *commit;
    const char *tree;
    const char *subject;
    uint8_t blob[MODEL_HASH];
    uint64_t size;
    bool dirty;
};

struct plan_setting {
    const char *name;
    const char *value;
};

/* A request; copied as far as it is needed after the call. */
struct plan_request {
    enum plan_action action;
    const char *file; /* name of the sweep file, for messages */
    const void *text;
    size_t size;
    const struct plan_setting *sets;
    size_t set_count;
    const struct plan_revision *revisions;
    size_t revision_count;
    bool yes;         /* more than a day of work was agreed to */
    bool json;        /* the answer is JSON, not text */
    const char *key;  /* the same key and file submits once; NULL */
    const char *who;  /* the operator */
    const char *host; /* on this host alone, whatever hosts the file names; NULL */
};

/* The answer. Borrowed for the call of plan_answer_f. */
struct plan_answer {
    int code;         /* 0 or a negative code */
    int exit;         /* status for the operator's command: 0, 3, 64 */
    const char *body; /* standard output: the plan, or of an accepted sweep its NAME/N; "" */
    const char *talk; /* standard error: mistakes and warnings, for `run` the plan too; "" */
    int64_t sweep;    /* id of the accepted sweep; 0: none */
};
typedef void plan_answer_f(void *arg, const struct plan_answer *answer);

/* Goes up the ladder: read the file, look up revisions, choose hosts, multiply out; for PLAN_RUN
 * everything is written in one turn. All mistakes are told at once and nothing is written then. `f`
 * is called once, never from within this call, and for an accepted sweep after the commit. Returns
 * a ticket (above 0) for plan_submit_cancel(). */
uint64_t plan_submit(struct plan *plan, struct plan_now now, const struct plan_request *request,
                     plan_answer_f *f, void *arg);
/* The asker is gone: `f` will not be called. What was written in this turn stays. A ticket that is
 * answered already is fine. */
void plan_submit_cancel(struct plan *plan, uint64_t ticket);
/* The answer to ops->resolve: code 0 and n revisions (hash texts in lower-case hex), or a negative
 * code and a sentence that names the repository and the revision. */
struct spec_rev;
void plan_resolved(struct plan *plan, struct plan_now now, uint64_t ticket, int code,
                   const struct spec_rev *revs, size_t n, const char *text);

enum plan_sweep_action { PLAN_SWEEP_PAUSE, PLAN_SWEEP_RESUME, PLAN_SWEEP_CANCEL, PLAN_SWEEP_RETRY };
/* The action of a word (pause, resume, cancel, retry): 0 or -ERR_INVAL. */
int plan_sweep_action_of(const char *word, enum plan_sweep_action *out) MUST_CHECK;
/* pause: nothing more is handed out, what has not begun is withdrawn. cancel: what runs is
 * cancelled, the rest is not made; the sweep has ended. retry: every run that ended without an
 * attempt that counts is made again with fresh tries (also in a sweep that is done; not in a
 * cancelled one). `sweep` is NAME, NAME/N or an id; `why` may be NULL, and is shown with
 * `who`. The caller answers after the commit. *id may be NULL. 0, or a negative code with text in
 * diag. */
int plan_sweep_set(struct plan *plan, struct plan_now now, const char *sweep,
                   enum plan_sweep_action action, const char *why, const char *who, int64_t *id,
                   struct diag *diag) MUST_CHECK;

#endif

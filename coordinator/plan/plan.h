/* plan.h: the planner: which run of which sweep goes to which host, and when.
 *
 * Owns: the rows of sweeps, cells, blocks and runs; the live picture of the fleet (links, room,
 * what each host holds), the leases, the order. Does not own: connections and messages
 * (coordinator/net), attempts and their records (coordinator/result), git and archives
 * (coordinator/blob), the table of events (coordinator/news): it reaches them through the functions
 * of struct plan_ops.
 *
 * No clock, no loop, no socket: time is passed in, and nothing blocks. Everything of record is in
 * the store; memory holds what is live and what was read from the store.
 *
 * A turn of the loop:
 *   1. What happened is told by the functions of plan/fleet.h and plan/sweep.h: they write rows and
 *      queue messages.
 *   2. plan_turn() does what is due, hands out work and says when it wants to be called again.
 *   3. The owner commits the store.
 *   4. plan_committed(): the queued messages and answers leave through ops. When the commit failed:
 *      plan_rolled_back(), and the owner closes the links of the workers whose records were in that
 *      turn, so that they are delivered again.
 * A failure of the store within 1 and 2 is kept: the turn then does nothing more, and must end with
 * a rollback (plan_failed()). */
#ifndef MAKESPAN_COORDINATOR_PLAN_PLAN_H
#define MAKESPAN_COORDINATOR_PLAN_PLAN_H

#include "common/attr.h"
#include "coordinator/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct plan;
struct spec_expr;
struct store;

enum {
    PLAN_AHEAD = 1,           /* assignments that a host holds besides the one being made */
    PLAN_MAX_CELLS = 250000,  /* of one sweep */
    PLAN_MAX_RUNS = 10000000, /* planned runs of one sweep */
    PLAN_MAX_POINTS = 4098,   /* job counts of a host: none, 1 to 4096, max */
};

/* The time of an event: monotonic for every deadline, wall clock for what is stored and shown.
 * Nanoseconds. */
struct plan_now {
    int64_t mono_ns;
    int64_t wall_ns;
};

/* One attempt to be made by a host. Borrowed for the call. */
struct plan_assignment {
    int64_t host;
    int64_t run;
    uint32_t attempt;
    const char *sweep; /* NAME/N */
    const struct model_workload *workload;
    const struct model_variant *variant;
    const struct model_input *input;
    const struct model_cell *cell; /* jobs, timeouts, fingerprint of its earlier attempts */
    bool warmup;
    bool fresh_warmup; /* an attempt in a tree that was just made is a warm-up */
    bool tree_exact;   /* the unpacked archive has the tree hash of the input */
    int64_t block;
    int64_t slot;
    int64_t settle_timeout_ns;
};

/* What must go up or to a neighbour. Messages leave in plan_committed() only; the others are called
 * at any time within a turn. */
struct plan_ops {
    void (*assign)(void *arg, const struct plan_assignment *assignment);
    void (*withdraw)(void *arg, int64_t host, int64_t run, uint32_t attempt);
    void (*cancel)(void *arg, int64_t host, int64_t run, uint32_t attempt, const char *text);
    void (*away_ok)(void *arg, int64_t host, int64_t run, uint32_t attempt);
    /* Writes an event in this turn; id is 0. 0 or a negative code. */
    int (*event)(void *arg, const struct model_event *event);
    /* Starts to look up what an expression of a sweep file stands for (never one that is local to
     * the operator); with `archive` its archives are made too. The answer comes, also at once, by
     * plan_resolved(). 0 or a negative code with text in diag. `expr` lives until the answer or
     * resolve_cancel(). */
    int (*resolve)(void *arg, uint64_t ticket, const struct spec_expr *expr, bool archive,
                   struct diag *diag);
    void (*resolve_cancel)(void *arg, uint64_t ticket);
    /* A random number, for the seed of a sweep whose file gives none. */
    uint64_t (*random)(void *arg);
};

struct plan_conf {
    int64_t lost_after_ns; /* a host that is away this long has lost its runs */
    int64_t take_ns; /* an assignment that the worker has not confirmed after this time of link is
                        sent again */
};
#define PLAN_CONF_DEFAULT                                                                          \
    {                                                                                              \
        INT64_C(86400000000000), INT64_C(60000000000)                                              \
    }

/* `store`, `ops` and arg are kept; conf is copied. Reads what is not ended from the store. 0 and
 * *out, or a negative code with text in diag. */
int plan_new(struct store *store, const struct plan_ops *ops, void *arg,
             const struct plan_conf *conf, struct plan_now now, struct plan **out,
             struct diag *diag) MUST_CHECK;
/* Sends nothing; unanswered requests are answered -ERR_CLOSED. NULL inside is fine. */
void plan_free(struct plan **plan);

/* Does what is due: leases, the ends of sweeps, new blocks, assignments. Returns the monotonic time
 * of the next thing that falls due without an event, INT64_MAX: nothing. */
int64_t plan_turn(struct plan *plan, struct plan_now now);
/* 0, or the first failure of the store in this turn: it must be rolled back. */
int plan_failed(const struct plan *plan);
/* The turn's rows are committed: messages and answers leave. */
void plan_committed(struct plan *plan);
/* The turn's rows are gone: forgets the turn's messages, answers its requests with `code`
 * (negative) and reads the store again. The live picture of the fleet stays. 0 or a negative code:
 * the store cannot be read; the next turn tries again. */
int plan_rolled_back(struct plan *plan, struct plan_now now, int code) MUST_CHECK;

/* Draws every block of a sweep at once and stores it, as it would be block by block: for
 * measurements of speed and for tests. Returns the number of runs stored or a negative code. */
int64_t plan_draw_all(struct plan *plan, struct plan_now now, int64_t sweep) MUST_CHECK;

#endif

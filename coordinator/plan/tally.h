/* tally.h: how far a sweep is: counts a host and a cell, and the time that is left. Private to
 * coordinator/plan.
 *
 * Owns: the counts of the sweeps that somebody looked at lately. They are read from the runs once,
 * page by page, and then kept up to date as runs change, so that to look again costs little however
 * many runs there are. */
#ifndef MAKESPAN_COORDINATOR_PLAN_TALLY_H
#define MAKESPAN_COORDINATOR_PLAN_TALLY_H

#include "coordinator/plan/state.h"

struct mem_arena;

struct tally_cell {
    int64_t id;
    int64_t host;
    int64_t workload;
    int64_t variant;
    int32_t jobs;
    enum cell_state state;
    const char *reason; /* NULL */
    int64_t wanted;     /* measured runs that are planned */
    int64_t have;       /* of these, with an attempt that counts */
    int64_t failed;     /* ended without one, or will not be made */
    int64_t invalid;    /* attempts */
    int64_t skipped;    /* SKIPPED runs, warm-ups too */
    int64_t warm_have;  /* warm-ups that are done */
    int64_t warm_wanted;
    int64_t measured;    /* attempts that count and have a time */
    int64_t real_sum_ns; /* of these */
    int64_t span_sum_ns; /* of the attempts that count, from begin to end */
    size_t host_index;
};

struct tally_host {
    struct model_sweep_host row; /* texts in the arena */
    size_t first_cell, end_cell; /* its cells stand together */
    int64_t wanted, have, failed, warm_wanted, warm_have;
    int64_t skipped_runs; /* SKIPPED ones */
    int64_t no_data;      /* planned, and the host was lost */
    int64_t cancelled;    /* planned, and the sweep was cancelled */
    int64_t over_budget;  /* planned, and the host's budget was used up */
    bool has_mean;
    int64_t mean_ns; /* of a whole attempt */
    bool has_eta;
    int64_t eta_ns;
};

struct tally {
    struct tally_host *hosts; /* in the order of the sweep */
    size_t host_count;
    struct tally_cell *cells; /* by id */
    size_t cell_count;
    int64_t wanted, have, failed;
    bool has_eta;
    int64_t eta_ns;
};

/* 0, everything in the arena; 1: the runs of the sweep are counted, a page with each call: ask again
 * in the next turn; or a failure of the store. */
int tally_read(struct plan *plan, const struct model_sweep *sweep, struct mem_arena *arena,
               struct tally *out) MUST_CHECK;

/* --- kept counts (tally_keep.c) --- */

/* The sweep's cells with their counts as they are now, by id; `wanted` and what follows from it
 * is not set. Borrowed until the next change. 0; 1: as tally_read(); or a failure of the store. */
int tally_cells(struct plan *plan, int64_t sweep, const struct tally_cell **cells,
                size_t *count) MUST_CHECK;
/* Around each write of a run's row: its old row is taken out of the counts, its new one put in. 0
 * or a failure of the store. */
int tally_take_run(struct plan *plan, int64_t sweep, int64_t run) MUST_CHECK;
int tally_put_run(struct plan *plan, const struct model_run *run) MUST_CHECK;
/* A cell has another state; reason may be NULL. */
void tally_set_cell(struct plan *plan, int64_t sweep, int64_t cell, enum cell_state state,
                    const char *reason);
enum { TALLY_PAGE = 2048 }; /* runs that are counted in a turn */
/* The counts of a sweep (0: of every one) are read anew when they are asked for. */
void tally_forget(struct plan *plan, int64_t sweep);

#endif

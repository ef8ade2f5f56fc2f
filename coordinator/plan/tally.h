/* tally.h: how far a sweep is: counts a host and a cell, and the time that is left. Private to
 * coordinator/plan. Reads every run of the sweep once. */
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
    int64_t warm_have;  /* warm-ups that are done */
    int64_t warm_wanted;
    bool has_mean;
    int64_t real_mean_ns; /* of the attempts that count */
    int64_t span_mean_ns; /* likewise, of the whole attempts */
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

/* 0 or a failure of the store. Everything lives in the arena. */
int tally_read(struct plan *plan, const struct model_sweep *sweep, struct mem_arena *arena,
               struct tally *out) MUST_CHECK;

#endif

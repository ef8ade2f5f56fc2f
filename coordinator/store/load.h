/* load.h: a whole sweep in memory, for reports, comparisons and exports; and its progress, for
 * watch. See store.h for what holds for all functions. */
#ifndef MAKESPAN_COORDINATOR_STORE_LOAD_H
#define MAKESPAN_COORDINATOR_STORE_LOAD_H

#include "common/attr.h"
#include "coordinator/model.h"

#include <stddef.h>
#include <stdint.h>

struct mem_arena;
struct store;

/* Everything of a sweep that a report reads, in the orders that model.h states, in time
 * proportional to its rows. The sweep has its text; the hosts have their facts; attempts that
 * are not whole are left out, and so are their marks and facts. -ERR_LIMIT when the arena is
 * full. */
int store_load_sweep(struct store *store, int64_t sweep, struct mem_arena *arena,
                     struct model_sweep_data *out) MUST_CHECK;

/* The same, a page at a time: for a loop that has others to serve between the pages. What is read
 * of one run (its attempts, marks, facts) is of one moment; different runs may be of different
 * ones. `arena` and `out` are borrowed until the end. */
struct store_load;
struct store_load *store_load_new(struct store *store, int64_t sweep, struct mem_arena *arena,
                                  struct model_sweep_data *out) MUST_CHECK;
/* Reads about `page` rows of the long lists (above 0), or all of the short ones. 1: there are more;
 * 0: *out is filled; or negative, as store_load_sweep(). */
int store_load_step(struct store_load *load, size_t page) MUST_CHECK;
/* Rows that the last step read. */
size_t store_load_read(const struct store_load *load);
void store_load_free(struct store_load **load); /* NULL inside is fine */

enum { STORE_RUN_STATES = 16 };

struct store_host_progress {
    int64_t host;
    int64_t runs[STORE_RUN_STATES];    /* by enum run_state: measured runs */
    int64_t warmups[STORE_RUN_STATES]; /* likewise warm-ups */
};

struct store_cell_progress {
    int64_t cell;
    int64_t counted;  /* attempts that count, without warm-ups */
    int64_t real_ns;  /* sum of their real times */
    int64_t span_ns;  /* sum of their whole times, from the attempt's begin to its end */
    int64_t measured; /* how many of them have a real time */
};

struct store_progress {
    const struct store_host_progress *hosts; /* by host */
    size_t host_count;
    const struct store_cell_progress *cells; /* by cell; those with no such attempt are absent */
    size_t cell_count;
};

/* Reads every run and every attempt of the sweep once. */
int store_progress(struct store *store, int64_t sweep, struct mem_arena *arena,
                   struct store_progress *out) MUST_CHECK;

#endif

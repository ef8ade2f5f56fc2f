/* runs.h: rows of runs, the planned places in a host's order. plan/run.c alone writes them. See
 * store.h for what holds for all functions. */
#ifndef MAKESPAN_COORDINATOR_STORE_RUNS_H
#define MAKESPAN_COORDINATOR_STORE_RUNS_H

#include "common/attr.h"
#include "coordinator/model.h"

#include <stdbool.h>
#include <stdint.h>

struct mem_arena;
struct store;

/* "By slot" is by block, and within it by slot. Slots rise with the numbers of blocks, but for runs
 * that were added to a block after later ones were drawn. */

/* Takes everything but the id, which it gives: ids rise. A slot that is taken in its block is
 * -ERR_EXISTS. Fast: meant for a hundred thousand in one turn. */
int store_run_insert(struct store *store, const struct model_run *run, int64_t *id) MUST_CHECK;
/* Writes look, state, state_wall_ns, expect_wall_ns, attempts, counted, the tries, reason and
 * replaced_by of the row with this id; what else a run holds never changes. */
int store_run_put(struct store *store, const struct model_run *run) MUST_CHECK;
int store_run_get(struct store *store, int64_t id, struct mem_arena *arena,
                  struct model_run *out) MUST_CHECK;
/* The first QUEUED run of a sweep on a host, by slot, from from_block on; -ERR_NOTFOUND when none
 * is left. It passes over every run between, so a caller remembers the block before which none is
 * QUEUED. */
int store_run_next(struct store *store, int64_t sweep, int64_t host, int64_t from_block,
                   struct mem_arena *arena, struct model_run *out) MUST_CHECK;

/* The last NODATA run of a sweep on a host, from from_block on; -ERR_NOTFOUND when there is none. */
int store_run_lost(struct store *store, int64_t sweep, int64_t host, int64_t from_block,
                   struct mem_arena *arena, struct model_run *out) MUST_CHECK;

typedef int store_run_f(const struct model_run *run, void *arg);
/* Of a sweep, by host and slot. */
int store_runs_of_sweep(struct store *store, int64_t sweep, store_run_f *f, void *arg) MUST_CHECK;
/* Of a sweep on a host, by slot, from from_slot on; at most `limit` (0: all). */
int store_runs_of_host(struct store *store, int64_t sweep, int64_t host, int64_t from_slot,
                       int64_t limit, store_run_f *f, void *arg) MUST_CHECK;
/* Of a sweep on a host, of one block, by slot. */
int store_runs_of_block(struct store *store, int64_t sweep, int64_t host, int64_t block,
                        store_run_f *f, void *arg) MUST_CHECK;
/* Of a cell, by slot. Reads every run of the sweep on that host. */
int store_runs_of_cell(struct store *store, int64_t cell, store_run_f *f, void *arg) MUST_CHECK;
/* Those that a worker has or may have: SENT, RUNNING, AWAY; of a host (0: of every host), by
 * host, sweep and slot. */
int store_runs_held(struct store *store, int64_t host, store_run_f *f, void *arg) MUST_CHECK;
/* Those that are not at their end (QUEUED too), of a sweep on a host (0: on every host), by host
 * and slot. */
int store_runs_open(struct store *store, int64_t sweep, int64_t host, store_run_f *f,
                    void *arg) MUST_CHECK;

/* What a count of runs needs of one, with the times of the attempt that counts. */
struct store_run_sum {
    int64_t host, block, slot; /* where it stands */
    int64_t cell;
    bool warmup;
    enum run_state state;
    uint32_t counted;
    uint32_t tries_invalid;
    struct opt_i64 real_ns; /* these three are absent when no attempt counts */
    struct opt_i64 begin_wall_ns, end_wall_ns;
};
typedef int store_run_sum_f(const struct store_run_sum *sum, void *arg);
/* Of a sweep, by host, block and slot, those behind the place (`after`: host, block, slot); at most
 * `limit`, above 0. */
int store_run_sums(struct store *store, int64_t sweep, const int64_t after[3], int64_t limit,
                   store_run_sum_f *f, void *arg) MUST_CHECK;

struct store_run_count {
    int64_t sweep;
    int64_t host;
    enum run_state state;
    bool warmup;
    int64_t count;
};
typedef int store_run_count_f(const struct store_run_count *count, void *arg);
/* How many runs of a sweep are in each state, warm-ups apart, by host and state. Reads every run
 * of the sweep. */
int store_run_counts(struct store *store, int64_t sweep, store_run_count_f *f,
                     void *arg) MUST_CHECK;

#endif

/* cells.h: rows of what a sweep does on a host: its progress there, its cells, its blocks. See
 * store.h for what holds for all functions. */
#ifndef MAKESPAN_COORDINATOR_STORE_CELLS_H
#define MAKESPAN_COORDINATOR_STORE_CELLS_H

#include "common/attr.h"
#include "coordinator/model.h"

#include <stdint.h>

struct mem_arena;
struct store;

int store_sweep_host_insert(struct store *store, const struct model_sweep_host *row) MUST_CHECK;
int store_sweep_host_get(struct store *store, int64_t sweep, int64_t host, struct mem_arena *arena,
                         struct model_sweep_host *out) MUST_CHECK;
typedef int store_sweep_host_f(const struct model_sweep_host *row, void *arg);
/* Of a sweep, in the order of insertion. */
int store_sweep_hosts_each(struct store *store, int64_t sweep, store_sweep_host_f *f,
                           void *arg) MUST_CHECK;
/* Of a host (0: of every host): those not finished of sweeps that have not ended, by host, priority
 * (the most urgent first), age of the sweep (the oldest first). */
int store_sweep_hosts_open(struct store *store, int64_t host, store_sweep_host_f *f,
                           void *arg) MUST_CHECK;
/* Writes next_block, next_slot, used_ns, finished and skipped of the row. */
int store_sweep_host_progress(struct store *store, const struct model_sweep_host *row) MUST_CHECK;

/* A cell is one workload, host, variant and jobs of a sweep; a second is -ERR_EXISTS. */
int store_cell_insert(struct store *store, const struct model_cell *cell, int64_t *id) MUST_CHECK;
int store_cell_get(struct store *store, int64_t id, struct mem_arena *arena,
                   struct model_cell *out) MUST_CHECK;
typedef int store_cell_f(const struct model_cell *cell, void *arg);
/* Of a sweep on a host (0: on every host), by host, workload, jobs and variant, as they were
 * inserted. */
int store_cells_each(struct store *store, int64_t sweep, int64_t host, store_cell_f *f,
                     void *arg) MUST_CHECK;
/* reason: of SKIPPED and FAILED; NULL: none. */
int store_cell_set_state(struct store *store, int64_t id, enum cell_state state,
                         const char *reason) MUST_CHECK;
int store_cell_set_fingerprint(struct store *store, int64_t id, const char *fingerprint) MUST_CHECK;

int store_block_insert(struct store *store, const struct model_block *block) MUST_CHECK;
int store_block_get(struct store *store, int64_t sweep, int64_t host, int64_t number,
                    struct model_block *out) MUST_CHECK;
typedef int store_block_f(const struct model_block *block, void *arg);
/* Of a sweep on a host, by number. */
int store_blocks_each(struct store *store, int64_t sweep, int64_t host, store_block_f *f,
                      void *arg) MUST_CHECK;
int store_block_set_broken(struct store *store, int64_t sweep, int64_t host,
                           int64_t number) MUST_CHECK;

#endif

/* sweeps.h: rows of sweeps, workloads, variants and inputs. See store.h for what holds for all
 * functions. */
#ifndef MAKESPAN_COORDINATOR_STORE_SWEEPS_H
#define MAKESPAN_COORDINATOR_STORE_SWEEPS_H

#include "common/attr.h"
#include "coordinator/model.h"

#include <stdbool.h>
#include <stdint.h>

struct mem_arena;
struct store;

/* Takes everything but id and number, which it gives: the number is one above the highest of
 * that name, from 1. -ERR_EXISTS when the idempotency key is taken. */
int store_sweep_insert(struct store *store, const struct model_sweep *sweep, int64_t *id,
                       int64_t *number) MUST_CHECK;
/* ended_wall_ns 0 and end_reason NULL: it has not ended. */
int store_sweep_set_state(struct store *store, int64_t id, enum sweep_state state,
                          int64_t ended_wall_ns, const char *end_reason) MUST_CHECK;
/* Without the text of the sweep file, as the three below. */
int store_sweep_get(struct store *store, int64_t id, struct mem_arena *arena,
                    struct model_sweep *out) MUST_CHECK;
/* What a person wrote: NAME (its newest), NAME/N, or an id; a name of digits alone goes before
 * an id. */
int store_sweep_find(struct store *store, const char *text, struct mem_arena *arena,
                     struct model_sweep *out) MUST_CHECK;
int store_sweep_by_key(struct store *store, const char *key, struct mem_arena *arena,
                       struct model_sweep *out) MUST_CHECK;
/* The sweep file as it was accepted. */
int store_sweep_text(struct store *store, int64_t id, struct mem_arena *arena,
                     const char **text) MUST_CHECK;

struct store_sweep_filter {
    bool open_only;   /* those that have not ended */
    const char *name; /* NULL: every name */
    int64_t limit;    /* 0: all */
};
typedef int store_sweep_f(const struct model_sweep *sweep, void *arg);
/* The newest first, without texts. filter NULL: all. */
int store_sweeps_each(struct store *store, const struct store_sweep_filter *filter,
                      store_sweep_f *f, void *arg) MUST_CHECK;

int store_workload_insert(struct store *store, const struct model_workload *workload,
                          int64_t *id) MUST_CHECK;
int store_workload_get(struct store *store, int64_t id, struct mem_arena *arena,
                       struct model_workload *out) MUST_CHECK;
typedef int store_workload_f(const struct model_workload *workload, void *arg);
/* Of a sweep, by index. */
int store_workloads_each(struct store *store, int64_t sweep, store_workload_f *f,
                         void *arg) MUST_CHECK;

int store_variant_insert(struct store *store, const struct model_variant *variant,
                         int64_t *id) MUST_CHECK;
int store_variant_get(struct store *store, int64_t id, struct mem_arena *arena,
                      struct model_variant *out) MUST_CHECK;
typedef int store_variant_f(const struct model_variant *variant, void *arg);
/* Of a sweep, by index. */
int store_variants_each(struct store *store, int64_t sweep, store_variant_f *f,
                        void *arg) MUST_CHECK;

/* When it has an archive, the archive's row must be there. */
int store_input_insert(struct store *store, const struct model_input *input) MUST_CHECK;
int store_input_get(struct store *store, int64_t workload, int64_t variant,
                    struct mem_arena *arena, struct model_input *out) MUST_CHECK;
typedef int store_input_f(const struct model_input *input, void *arg);
/* Of a sweep, by workload and variant. */
int store_inputs_each(struct store *store, int64_t sweep, store_input_f *f, void *arg) MUST_CHECK;

#endif

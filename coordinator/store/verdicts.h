/* verdicts.h: rows of comparisons and retractions. See store.h for what holds for all functions. */
#ifndef MAKESPAN_COORDINATOR_STORE_VERDICTS_H
#define MAKESPAN_COORDINATOR_STORE_VERDICTS_H

#include "common/attr.h"
#include "coordinator/model.h"

#include <stdint.h>

struct store;

/* Takes everything but the id. A ratio that is no positive finite number is -ERR_INVAL. */
int store_comparison_insert(struct store *store, const struct model_comparison *row,
                            int64_t *id) MUST_CHECK;
typedef int store_comparison_f(const struct model_comparison *row, void *arg);
/* Of a sweep, in the order of insertion: of several of one pair and look the last holds. */
int store_comparisons_each(struct store *store, int64_t sweep, store_comparison_f *f,
                           void *arg) MUST_CHECK;
/* Marks every comparison of a sweep as stale. */
int store_comparisons_set_stale(struct store *store, int64_t sweep) MUST_CHECK;

int store_retraction_insert(struct store *store, const struct model_retraction *row,
                            int64_t *id) MUST_CHECK;
typedef int store_retraction_f(const struct model_retraction *row, void *arg);
/* Of a sweep, in the order of insertion. */
int store_retractions_each(struct store *store, int64_t sweep, store_retraction_f *f,
                           void *arg) MUST_CHECK;

#endif

/* rows.h: how a row of each kind is read from a statement: for the "get", the "each" and the
 * loading of a whole sweep. Each takes the columns of the statements of its kind in their order.
 * Not for other folders. */
#ifndef MAKESPAN_COORDINATOR_STORE_ROWS_H
#define MAKESPAN_COORDINATOR_STORE_ROWS_H

#include "coordinator/store/db.h"

/* `out` is the model's struct. Lists that hang on a row are left empty. */
void rows_read_host(struct stmt *q, void *out);
void rows_read_sweep(struct stmt *q, void *out);
void rows_read_workload(struct stmt *q, void *out);
void rows_read_variant(struct stmt *q, void *out);
void rows_read_input(struct stmt *q, void *out);
void rows_read_sweep_host(struct stmt *q, void *out);
void rows_read_cell(struct stmt *q, void *out);
void rows_read_run(struct stmt *q, void *out);
void rows_read_attempt(struct stmt *q, void *out);
void rows_read_mark(struct stmt *q, void *out);
void rows_read_fact(struct stmt *q, void *out);
void rows_read_retraction(struct stmt *q, void *out);

#endif

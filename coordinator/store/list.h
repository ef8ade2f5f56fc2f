/* list.h: lists of texts that hang on a row: classes, environments. Not for other folders. */
#ifndef MAKESPAN_COORDINATOR_STORE_LIST_H
#define MAKESPAN_COORDINATOR_STORE_LIST_H

#include "common/attr.h"
#include "coordinator/store/db.h"

#include <stddef.h>
#include <stdint.h>

/* Reads the one column of a statement whose parameter is `of` into an array in the arena; NULL
 * when empty. */
int list_load(struct store *store, enum statement which, int64_t of, struct mem_arena *arena,
              const char *const **items, size_t *count) MUST_CHECK;
/* Inserts them by a statement (of, place, text). */
int list_insert(struct store *store, enum statement which, int64_t of, const char *const *items,
                size_t count) MUST_CHECK;

#endif

/* list.c: lists of texts that hang on a row. */
#include "coordinator/store/list.h"

#include "common/err.h"
#include "common/mem.h"

#include <stdlib.h>
#include <string.h>

int list_load(struct store *store, enum statement which, int64_t of, struct mem_arena *arena,
              const char *const **items, size_t *count)
{
    const char **list = NULL;
    size_t n = 0;
    size_t room = 0;
    int rc;
    *items = NULL;
    *count = 0;
    struct stmt *q = stmt_open(store, which);
    stmt_put_i64(q, of);
    stmt_copy_into(q, arena);
    while ((rc = stmt_next(q)) == 1) {
        if (n == room) {
            room = room != 0 ? 2 * room : 8;
            list = mem_xrealloc(list, room, sizeof(list[0]));
        }
        list[n++] = stmt_text(q);
    }
    rc = stmt_close(q, rc);
    if (rc == 0 && n > 0) {
        const char **copy = mem_arena_array(arena, n, sizeof(copy[0]));
        if (copy == NULL) {
            rc = -ERR_LIMIT;
        } else {
            memcpy(copy, list, n * sizeof(copy[0]));
            *items = copy;
            *count = n;
        }
    }
    free(list);
    return rc;
}

int list_insert(struct store *store, enum statement which, int64_t of, const char *const *items,
                size_t count)
{
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        struct stmt *q = stmt_open(store, which);
        stmt_put_i64(q, of);
        stmt_put_i64(q, (int64_t)i);
        stmt_put_text(q, items[i]);
        rc = stmt_run(q, NULL);
    }
    return rc;
}

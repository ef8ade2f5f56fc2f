/* stmt.c: the usual ways of using a statement: one change, one row, every row. */
#include "common/err.h"
#include "coordinator/store/db.h"
#include "coordinator/store/store.h"

#include <assert.h>

int stmt_run(struct stmt *q, int64_t *changes)
{
    struct store *store = stmt_store(q);
    int rc = stmt_next(q);
    assert(rc <= 0); /* a statement that is run gives no rows */
    rc = stmt_close(q, rc);
    if (changes != NULL) {
        *changes = rc == 0 ? db_changes(store) : 0;
    }
    return rc;
}

int stmt_run_one(struct stmt *q)
{
    int64_t changes = 0;
    int rc = stmt_run(q, &changes);
    return rc == 0 && changes == 0 ? -ERR_NOTFOUND : rc;
}

int stmt_insert(struct stmt *q, int64_t *id)
{
    struct store *store = stmt_store(q);
    int rc = stmt_run(q, NULL);
    if (id != NULL) {
        *id = rc == 0 ? db_last_id(store) : 0;
    }
    return rc;
}

int stmt_get(struct stmt *q, struct mem_arena *arena, stmt_row_f *row, void *out)
{
    if (arena != NULL) {
        stmt_copy_into(q, arena);
    }
    int rc = stmt_next(q);
    if (rc == 1) {
        row(q, out);
        return stmt_close(q, 0);
    }
    return stmt_close(q, rc == 0 ? -ERR_NOTFOUND : rc);
}

int stmt_each(struct stmt *q, stmt_row_f *row, void *out, stmt_visit_f *visit, void *arg)
{
    int rc;
    while ((rc = stmt_next(q)) == 1) {
        row(q, out);
        rc = stmt_check(q);
        rc = rc != 0 ? rc : visit(arg);
        if (rc != 0) {
            break;
        }
    }
    return stmt_close(q, rc);
}

int db_end(struct store *store, int savepoint, int result)
{
    if (savepoint < 0) {
        return savepoint;
    }
    if (result == 0) {
        return store_release(store, savepoint);
    }
    store_revert(store, savepoint);
    return result;
}

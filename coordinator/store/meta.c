/* meta.c: named values of the database. */
#include "coordinator/store/db.h"
#include "coordinator/store/store.h"

static void read_value(struct stmt *q, void *out)
{
    const char **value = out;
    *value = stmt_text(q);
}

int store_meta_get(struct store *store, const char *key, struct mem_arena *arena,
                   const char **value)
{
    *value = NULL;
    struct stmt *q = stmt_open(store, ST_META_GET);
    stmt_put_text(q, key);
    return stmt_get(q, arena, read_value, value);
}

int store_meta_set(struct store *store, const char *key, const char *value)
{
    struct stmt *q = stmt_open(store, ST_META_SET);
    stmt_put_text(q, key);
    stmt_put_text(q, value);
    return stmt_run(q, NULL);
}

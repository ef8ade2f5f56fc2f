/* hosts.c: rows of hosts, their classes and facts. */
#include "coordinator/store/hosts.h"

#include "common/err.h"
#include "common/mem.h"
#include "coordinator/store/db.h"
#include "coordinator/store/list.h"
#include "coordinator/store/rows.h"
#include "coordinator/store/store.h"

#include <stdlib.h>

/* The host's own columns, in the order of HOSTS; lists stay empty. */
void rows_read_host(struct stmt *q, void *out)
{
    struct model_host *h = out;
    *h = (struct model_host){0};
    h->id = stmt_i64(q);
    h->name = stmt_text(q);
    h->state = (enum host_state)stmt_i64(q);
    h->boot_id = stmt_text(q);
    h->machine_id = stmt_text(q);
    h->key_hash = stmt_text(q);
    h->version = stmt_text(q);
    h->cpus_milli = stmt_i64(q);
    h->memory_bytes = stmt_i64(q);
    h->visit = (uint64_t)stmt_i64(q);
    h->joined_wall_ns = stmt_i64(q);
    h->seen_wall_ns = stmt_i64(q);
}

int store_host_insert(struct store *store, const struct model_host *host, int64_t *id)
{
    int savepoint = store_savepoint(store);
    struct stmt *q = stmt_open(store, ST_HOST_INSERT);
    stmt_put_text(q, host->name);
    stmt_put_i64(q, host->state);
    stmt_put_text(q, host->boot_id);
    stmt_put_text(q, host->machine_id);
    stmt_put_text(q, host->key_hash);
    stmt_put_text(q, host->version);
    stmt_put_i64(q, host->cpus_milli);
    stmt_put_i64(q, host->memory_bytes);
    stmt_put_i64(q, (int64_t)host->visit);
    stmt_put_i64(q, host->joined_wall_ns);
    stmt_put_i64(q, host->seen_wall_ns);
    int rc = stmt_insert(q, id);
    for (size_t i = 0; i < host->class_count && rc == 0; i++) {
        rc = store_host_add_class(store, *id, host->classes[i]);
    }
    return db_end(store, savepoint, rc);
}

/* Ends a look-up of one host: reads its row and its classes. */
static int get(struct store *store, struct stmt *q, struct mem_arena *arena, struct model_host *out)
{
    int rc = stmt_get(q, arena, rows_read_host, out);
    if (rc == 0) {
        rc = list_load(store, ST_HOST_CLASSES, out->id, arena, &out->classes, &out->class_count);
    }
    return rc;
}

int store_host_get(struct store *store, int64_t id, struct mem_arena *arena, struct model_host *out)
{
    struct stmt *q = stmt_open(store, ST_HOST_GET);
    stmt_put_i64(q, id);
    return get(store, q, arena, out);
}

int store_host_by_name(struct store *store, const char *name, struct mem_arena *arena,
                       struct model_host *out)
{
    struct stmt *q = stmt_open(store, ST_HOST_BY_NAME);
    stmt_put_text(q, name);
    return get(store, q, arena, out);
}

int store_host_by_key(struct store *store, const char *key_hash, struct mem_arena *arena,
                      struct model_host *out)
{
    struct stmt *q = stmt_open(store, ST_HOST_BY_KEY);
    stmt_put_text(q, key_hash);
    return get(store, q, arena, out);
}

struct visit {
    struct store *store;
    struct model_host host;
    store_host_f *f;
    void *arg;
};

static int visit(void *arg)
{
    struct visit *v = arg;
    struct mem_arena *arena = mem_arena_new(0);
    int rc = list_load(v->store, ST_HOST_CLASSES, v->host.id, arena, &v->host.classes,
                       &v->host.class_count);
    if (rc == 0) {
        rc = v->f(&v->host, v->arg);
    }
    mem_arena_free(&arena);
    return rc;
}

int store_hosts_each(struct store *store, store_host_f *f, void *arg)
{
    struct visit v = {.store = store, .f = f, .arg = arg};
    return stmt_each(stmt_open(store, ST_HOSTS_EACH), rows_read_host, &v.host, visit, &v);
}

int store_host_set_state(struct store *store, int64_t id, enum host_state state)
{
    struct stmt *q = stmt_open(store, ST_HOST_SET_STATE);
    stmt_put_i64(q, state);
    stmt_put_i64(q, id);
    return stmt_run_one(q);
}

int store_host_set_key(struct store *store, int64_t id, const char *key_hash,
                       int64_t joined_wall_ns)
{
    struct stmt *q = stmt_open(store, ST_HOST_SET_KEY);
    stmt_put_text(q, key_hash);
    stmt_put_i64(q, joined_wall_ns);
    stmt_put_i64(q, id);
    return stmt_run_one(q);
}

int store_host_add_class(struct store *store, int64_t id, const char *name)
{
    struct stmt *q = stmt_open(store, ST_HOST_CLASS_ADD);
    stmt_put_i64(q, id);
    stmt_put_text(q, name);
    return stmt_run(q, NULL);
}

int store_host_remove_class(struct store *store, int64_t id, const char *name)
{
    struct stmt *q = stmt_open(store, ST_HOST_CLASS_REMOVE);
    stmt_put_i64(q, id);
    stmt_put_text(q, name);
    return stmt_run_one(q);
}

int store_host_seen(struct store *store, int64_t id, int64_t wall_ns, const char *boot_id,
                    uint64_t visit_number)
{
    struct stmt *q = stmt_open(store, boot_id != NULL ? ST_HOST_SEEN_BOOT : ST_HOST_SEEN);
    stmt_put_i64(q, wall_ns);
    if (boot_id != NULL) {
        stmt_put_text(q, boot_id);
        stmt_put_i64(q, (int64_t)visit_number);
    }
    stmt_put_i64(q, id);
    return stmt_run_one(q);
}

int store_host_set_identity(struct store *store, int64_t id, const char *machine_id,
                            const char *version)
{
    struct stmt *q = stmt_open(store, ST_HOST_SET_IDENTITY);
    stmt_put_text(q, machine_id);
    stmt_put_text(q, version);
    stmt_put_i64(q, id);
    return stmt_run_one(q);
}

int store_host_set_capacity(struct store *store, int64_t id, int64_t cpus_milli,
                            int64_t memory_bytes)
{
    struct stmt *q = stmt_open(store, ST_HOST_SET_CAPACITY);
    stmt_put_i64(q, cpus_milli);
    stmt_put_i64(q, memory_bytes);
    stmt_put_i64(q, id);
    return stmt_run_one(q);
}

int store_host_set_facts(struct store *store, int64_t id, const struct model_fact *facts,
                         size_t count)
{
    int savepoint = store_savepoint(store);
    struct stmt *q = stmt_open(store, ST_HOST_FACTS_CLEAR);
    stmt_put_i64(q, id);
    int rc = stmt_run(q, NULL);
    for (size_t i = 0; i < count && rc == 0; i++) {
        q = stmt_open(store, ST_HOST_FACT_ADD);
        stmt_put_i64(q, id);
        stmt_put_text(q, facts[i].key);
        stmt_put_text(q, facts[i].value);
        rc = stmt_run(q, NULL);
    }
    return db_end(store, savepoint, rc);
}

int store_host_facts(struct store *store, int64_t id, struct mem_arena *arena,
                     const struct model_fact **facts, size_t *count)
{
    struct model_fact *list = NULL;
    size_t n = 0;
    size_t room = 0;
    int rc;
    *facts = NULL;
    *count = 0;
    struct stmt *q = stmt_open(store, ST_HOST_FACTS);
    stmt_put_i64(q, id);
    stmt_copy_into(q, arena);
    while ((rc = stmt_next(q)) == 1) {
        if (n == room) {
            room = room != 0 ? 2 * room : 32;
            list = mem_xrealloc(list, room, sizeof(list[0]));
        }
        list[n].key = stmt_text(q);
        list[n++].value = stmt_text(q);
    }
    rc = stmt_close(q, rc);
    if (rc == 0 && n > 0) {
        struct model_fact *copy = mem_arena_array(arena, n, sizeof(copy[0]));
        if (copy == NULL) {
            rc = -ERR_LIMIT;
        } else {
            for (size_t i = 0; i < n; i++) {
                copy[i] = list[i];
            }
            *facts = copy;
            *count = n;
        }
    }
    free(list);
    return rc;
}

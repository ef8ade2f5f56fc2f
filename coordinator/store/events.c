/* events.c: rows of the one event table. */
#include "coordinator/store/events.h"

#include "coordinator/store/db.h"
#include "coordinator/store/store.h"

int store_event_append(struct store *store, const struct model_event *event, int64_t *id)
{
    struct stmt *q = stmt_open(store, ST_EVENT_INSERT);
    stmt_put_i64(q, event->wall_ns);
    stmt_put_i64(q, event->kind);
    stmt_put_i64(q, event->sweep);
    stmt_put_i64(q, event->host);
    stmt_put_i64(q, event->run);
    stmt_put_text(q, event->who);
    stmt_put_text(q, event->text);
    return stmt_insert(q, id);
}

static void read_id(struct stmt *q, void *out)
{
    int64_t *id = out;
    *id = stmt_i64(q);
}

int store_event_last(struct store *store, int64_t *id)
{
    return stmt_get(stmt_open(store, ST_EVENT_LAST), NULL, read_id, id);
}

struct visit {
    struct model_event event;
    store_event_f *f;
    void *arg;
};

static void read_event(struct stmt *q, void *out)
{
    struct model_event *e = out;
    e->id = stmt_i64(q);
    e->wall_ns = stmt_i64(q);
    e->kind = (enum event_kind)stmt_i64(q);
    e->sweep = stmt_i64(q);
    e->host = stmt_i64(q);
    e->run = stmt_i64(q);
    e->who = stmt_text(q);
    e->text = stmt_text(q);
}

static int visit(void *arg)
{
    struct visit *v = arg;
    return v->f(&v->event, v->arg);
}

int store_events_each(struct store *store, int64_t after, int64_t sweep, int64_t limit,
                      store_event_f *f, void *arg)
{
    struct visit v = {.f = f, .arg = arg};
    struct stmt *q = stmt_open(store, sweep != 0 ? ST_EVENTS_OF_SWEEP : ST_EVENTS_EACH);
    if (sweep != 0) {
        stmt_put_i64(q, sweep);
    }
    stmt_put_i64(q, after);
    stmt_put_i64(q, limit > 0 ? limit : -1);
    return stmt_each(q, read_event, &v.event, visit, &v);
}

int store_events_prune(struct store *store, int64_t before_wall_ns, size_t *count)
{
    int64_t changes = 0;
    struct stmt *q = stmt_open(store, ST_EVENTS_PRUNE);
    stmt_put_i64(q, before_wall_ns);
    int rc = stmt_run(q, &changes);
    if (count != NULL) {
        *count = (size_t)changes;
    }
    return rc;
}

/* sweeps.c: rows of sweeps: what was submitted, its numbers and states, and how a person's text
 * finds it. */
#include "coordinator/store/sweeps.h"

#include "common/err.h"
#include "common/num.h"
#include "coordinator/store/db.h"
#include "coordinator/store/rows.h"
#include "coordinator/store/store.h"

#include <stdio.h>
#include <string.h>

void rows_read_sweep(struct stmt *q, void *out)
{
    struct model_sweep *s = out;
    *s = (struct model_sweep){0};
    s->id = stmt_i64(q);
    s->name = stmt_text(q);
    s->number = stmt_i64(q);
    s->state = (enum sweep_state)stmt_i64(q);
    s->priority = (int)stmt_i64(q);
    s->seed = (uint64_t)stmt_i64(q);
    s->file = stmt_text(q);
    s->sets = stmt_text(q);
    s->base = stmt_text(q);
    s->compare = stmt_text(q);
    s->tolerance_ppm = stmt_i64(q);
    s->key = stmt_text(q);
    s->submitted_by = stmt_text(q);
    s->submitted_wall_ns = stmt_i64(q);
    s->ended_wall_ns = stmt_i64(q);
    s->end_reason = stmt_text(q);
}

static void read_number(struct stmt *q, void *out)
{
    int64_t *number = out;
    *number = stmt_i64(q);
}

int store_sweep_insert(struct store *store, const struct model_sweep *sweep, int64_t *id,
                       int64_t *number)
{
    struct stmt *q = stmt_open(store, ST_SWEEP_NEXT_NUMBER);
    stmt_put_text(q, sweep->name);
    int rc = stmt_get(q, NULL, read_number, number);
    if (rc < 0) {
        return rc;
    }
    q = stmt_open(store, ST_SWEEP_INSERT);
    stmt_put_text(q, sweep->name);
    stmt_put_i64(q, *number);
    stmt_put_i64(q, sweep->state);
    stmt_put_i64(q, sweep->priority);
    stmt_put_i64(q, (int64_t)sweep->seed);
    stmt_put_text(q, sweep->file);
    stmt_put_text(q, sweep->sets);
    stmt_put_text(q, sweep->base);
    stmt_put_text(q, sweep->compare);
    stmt_put_i64(q, sweep->tolerance_ppm);
    stmt_put_text(q, sweep->key);
    stmt_put_text(q, sweep->submitted_by);
    stmt_put_i64(q, sweep->submitted_wall_ns);
    stmt_put_i64(q, sweep->ended_wall_ns);
    stmt_put_text(q, sweep->end_reason);
    stmt_put_text(q, sweep->text);
    return stmt_insert(q, id);
}

int store_sweep_set_state(struct store *store, int64_t id, enum sweep_state state,
                          int64_t ended_wall_ns, const char *end_reason)
{
    struct stmt *q = stmt_open(store, ST_SWEEP_SET_STATE);
    stmt_put_i64(q, state);
    stmt_put_i64(q, ended_wall_ns);
    stmt_put_text(q, end_reason);
    stmt_put_i64(q, id);
    return stmt_run_one(q);
}

int store_sweep_get(struct store *store, int64_t id, struct mem_arena *arena,
                    struct model_sweep *out)
{
    struct stmt *q = stmt_open(store, ST_SWEEP_GET);
    stmt_put_i64(q, id);
    return stmt_get(q, arena, rows_read_sweep, out);
}

int store_sweep_by_key(struct store *store, const char *key, struct mem_arena *arena,
                       struct model_sweep *out)
{
    struct stmt *q = stmt_open(store, ST_SWEEP_BY_KEY);
    stmt_put_text(q, key);
    return stmt_get(q, arena, rows_read_sweep, out);
}

/* NAME/N. A name holds no slash. */
static int find_numbered(struct store *store, const char *text, const char *slash,
                         struct mem_arena *arena, struct model_sweep *out)
{
    char name[128];
    int64_t number = 0;
    size_t n = (size_t)(slash - text);
    if (n >= sizeof(name) || num_parse_i64(slash + 1, &number) < 0) {
        return -ERR_NOTFOUND;
    }
    memcpy(name, text, n);
    name[n] = '\0';
    struct stmt *q = stmt_open(store, ST_SWEEP_BY_NUMBER);
    stmt_put_text(q, name);
    stmt_put_i64(q, number);
    return stmt_get(q, arena, rows_read_sweep, out);
}

int store_sweep_find(struct store *store, const char *text, struct mem_arena *arena,
                     struct model_sweep *out)
{
    const char *slash = strrchr(text, '/');
    if (slash != NULL) {
        return find_numbered(store, text, slash, arena, out);
    }
    struct stmt *q = stmt_open(store, ST_SWEEP_NEWEST);
    stmt_put_text(q, text);
    int rc = stmt_get(q, arena, rows_read_sweep, out);
    int64_t id = 0;
    if (rc == -ERR_NOTFOUND && num_parse_i64(text, &id) == 0) {
        rc = store_sweep_get(store, id, arena, out);
    }
    return rc;
}

static void read_text(struct stmt *q, void *out)
{
    const char **text = out;
    *text = stmt_text(q);
}

int store_sweep_text(struct store *store, int64_t id, struct mem_arena *arena, const char **text)
{
    *text = NULL;
    struct stmt *q = stmt_open(store, ST_SWEEP_TEXT);
    stmt_put_i64(q, id);
    return stmt_get(q, arena, read_text, text);
}

struct visit {
    struct model_sweep sweep;
    store_sweep_f *f;
    void *arg;
};

static int visit(void *arg)
{
    struct visit *v = arg;
    return v->f(&v->sweep, v->arg);
}

int store_sweeps_each(struct store *store, const struct store_sweep_filter *filter,
                      store_sweep_f *f, void *arg)
{
    static const struct store_sweep_filter all = {0};
    const struct store_sweep_filter *by = filter != NULL ? filter : &all;
    struct visit v = {.f = f, .arg = arg};
    enum statement which = by->open_only
                               ? (by->name != NULL ? ST_SWEEPS_OPEN_BY_NAME : ST_SWEEPS_OPEN)
                               : (by->name != NULL ? ST_SWEEPS_BY_NAME : ST_SWEEPS_EACH);
    struct stmt *q = stmt_open(store, which);
    if (by->name != NULL) {
        stmt_put_text(q, by->name);
    }
    stmt_put_i64(q, by->limit > 0 ? by->limit : -1);
    return stmt_each(q, rows_read_sweep, &v.sweep, visit, &v);
}

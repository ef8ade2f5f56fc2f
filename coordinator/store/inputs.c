/* inputs.c: rows of what a sweep is made of: workloads, variants, and what each is built from. */
#include "common/mem.h"
#include "coordinator/store/db.h"
#include "coordinator/store/list.h"
#include "coordinator/store/rows.h"
#include "coordinator/store/store.h"
#include "coordinator/store/sweeps.h"

/* --- workloads --- */

void rows_read_workload(struct stmt *q, void *out)
{
    struct model_workload *w = out;
    *w = (struct model_workload){0};
    w->id = stmt_i64(q);
    w->sweep = stmt_i64(q);
    w->index = (uint32_t)stmt_i64(q);
    w->name = stmt_text(q);
    w->source_kind = (int)stmt_i64(q);
    w->source = stmt_text(q);
    w->setup = stmt_text(q);
    w->reset = stmt_text(q);
    w->run = stmt_text(q);
    w->check = stmt_text(q);
    w->fingerprint = stmt_text(q);
}

int store_workload_insert(struct store *store, const struct model_workload *workload, int64_t *id)
{
    struct stmt *q = stmt_open(store, ST_WORKLOAD_INSERT);
    stmt_put_i64(q, workload->sweep);
    stmt_put_i64(q, workload->index);
    stmt_put_text(q, workload->name);
    stmt_put_i64(q, workload->source_kind);
    stmt_put_text(q, workload->source);
    stmt_put_text(q, workload->setup);
    stmt_put_text(q, workload->reset);
    stmt_put_text(q, workload->run);
    stmt_put_text(q, workload->check);
    stmt_put_text(q, workload->fingerprint);
    return stmt_insert(q, id);
}

int store_workload_get(struct store *store, int64_t id, struct mem_arena *arena,
                       struct model_workload *out)
{
    struct stmt *q = stmt_open(store, ST_WORKLOAD_GET);
    stmt_put_i64(q, id);
    return stmt_get(q, arena, rows_read_workload, out);
}

struct visit_workload {
    struct model_workload workload;
    store_workload_f *f;
    void *arg;
};

static int visit_workload(void *arg)
{
    struct visit_workload *v = arg;
    return v->f(&v->workload, v->arg);
}

int store_workloads_each(struct store *store, int64_t sweep, store_workload_f *f, void *arg)
{
    struct visit_workload v = {.f = f, .arg = arg};
    struct stmt *q = stmt_open(store, ST_WORKLOADS_EACH);
    stmt_put_i64(q, sweep);
    return stmt_each(q, rows_read_workload, &v.workload, visit_workload, &v);
}

/* --- variants --- */

void rows_read_variant(struct stmt *q, void *out)
{
    struct model_variant *x = out;
    *x = (struct model_variant){0};
    x->id = stmt_i64(q);
    x->sweep = stmt_i64(q);
    x->index = (uint32_t)stmt_i64(q);
    x->name = stmt_text(q);
    x->kernel = stmt_text(q);
    x->storage = stmt_text(q);
}

int store_variant_insert(struct store *store, const struct model_variant *variant, int64_t *id)
{
    int savepoint = store_savepoint(store);
    struct stmt *q = stmt_open(store, ST_VARIANT_INSERT);
    stmt_put_i64(q, variant->sweep);
    stmt_put_i64(q, variant->index);
    stmt_put_text(q, variant->name);
    stmt_put_text(q, variant->kernel);
    stmt_put_text(q, variant->storage);
    int rc = stmt_insert(q, id);
    if (rc == 0) {
        rc = list_insert(store, ST_VARIANT_ENV_ADD, *id, variant->env, variant->env_count);
    }
    return db_end(store, savepoint, rc);
}

int store_variant_get(struct store *store, int64_t id, struct mem_arena *arena,
                      struct model_variant *out)
{
    struct stmt *q = stmt_open(store, ST_VARIANT_GET);
    stmt_put_i64(q, id);
    int rc = stmt_get(q, arena, rows_read_variant, out);
    if (rc == 0) {
        rc = list_load(store, ST_VARIANT_ENV, id, arena, &out->env, &out->env_count);
    }
    return rc;
}

struct visit_variant {
    struct store *store;
    struct model_variant variant;
    store_variant_f *f;
    void *arg;
};

static int visit_variant(void *arg)
{
    struct visit_variant *v = arg;
    struct mem_arena *arena = mem_arena_new(0);
    int rc = list_load(v->store, ST_VARIANT_ENV, v->variant.id, arena, &v->variant.env,
                       &v->variant.env_count);
    if (rc == 0) {
        rc = v->f(&v->variant, v->arg);
    }
    mem_arena_free(&arena);
    return rc;
}

int store_variants_each(struct store *store, int64_t sweep, store_variant_f *f, void *arg)
{
    struct visit_variant v = {.store = store, .f = f, .arg = arg};
    struct stmt *q = stmt_open(store, ST_VARIANTS_EACH);
    stmt_put_i64(q, sweep);
    return stmt_each(q, rows_read_variant, &v.variant, visit_variant, &v);
}

/* --- inputs --- */

void rows_read_input(struct stmt *q, void *out)
{
    struct model_input *i = out;
    *i = (struct model_input){0};
    i->workload = stmt_i64(q);
    i->variant = stmt_i64(q);
    i->expr = stmt_text(q);
    i->commit = stmt_text(q);
    i->tree = stmt_text(q);
    i->subject = stmt_text(q);
    i->has_blob = stmt_i64(q) != 0;
    stmt_fixed_bytes(q, i->blob, sizeof(i->blob));
    i->size = (uint64_t)stmt_i64(q);
    i->dirty = stmt_i64(q) != 0;
    i->host_dir = stmt_text(q);
}

int store_input_insert(struct store *store, const struct model_input *input)
{
    struct stmt *q = stmt_open(store, ST_INPUT_INSERT);
    stmt_put_i64(q, input->workload);
    stmt_put_i64(q, input->variant);
    stmt_put_text(q, input->expr);
    stmt_put_text(q, input->commit);
    stmt_put_text(q, input->tree);
    stmt_put_text(q, input->subject);
    stmt_put_bytes(q, input->has_blob ? input->blob : NULL, sizeof(input->blob));
    stmt_put_i64(q, (int64_t)input->size);
    stmt_put_i64(q, input->dirty);
    stmt_put_text(q, input->host_dir);
    return stmt_run(q, NULL);
}

int store_input_get(struct store *store, int64_t workload, int64_t variant, struct mem_arena *arena,
                    struct model_input *out)
{
    struct stmt *q = stmt_open(store, ST_INPUT_GET);
    stmt_put_i64(q, workload);
    stmt_put_i64(q, variant);
    return stmt_get(q, arena, rows_read_input, out);
}

struct visit_input {
    struct model_input input;
    store_input_f *f;
    void *arg;
};

static int visit_input(void *arg)
{
    struct visit_input *v = arg;
    return v->f(&v->input, v->arg);
}

int store_inputs_each(struct store *store, int64_t sweep, store_input_f *f, void *arg)
{
    struct visit_input v = {.f = f, .arg = arg};
    struct stmt *q = stmt_open(store, ST_INPUTS_EACH);
    stmt_put_i64(q, sweep);
    return stmt_each(q, rows_read_input, &v.input, visit_input, &v);
}

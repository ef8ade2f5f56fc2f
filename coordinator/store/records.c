/* records.c: reading attempts and their records. */
#include "common/err.h"
#include "coordinator/store/attempt.def"
#include "coordinator/store/attempts.h"
#include "coordinator/store/db.h"
#include "coordinator/store/points.h"
#include "coordinator/store/rows.h"

/* --- attempts --- */

#define READ_I64(q, a, field, type) (a)->field = (type)stmt_i64(q)
#define READ_OPT(q, a, field, type) (a)->field = stmt_opt(q)
#define READ_TEXT(q, a, field, type) (a)->field = stmt_text(q)
#define READ(kind, field, type) READ_##kind(q, a, field, type);

void rows_read_attempt(struct stmt *q, void *out)
{
    struct model_attempt *a = out;
    a->run = stmt_i64(q);
    a->attempt = (uint32_t)stmt_i64(q);
    a->cell = stmt_i64(q);
    ATTEMPT_FIELDS(READ)
    a->next_seq = (uint32_t)stmt_i64(q);
    a->count = (uint32_t)stmt_i64(q);
    a->whole = stmt_i64(q) != 0;
}

/* A statement whose parameters are an attempt. */
static struct stmt *open_attempt(struct store *store, enum statement which, int64_t run,
                                 uint32_t attempt)
{
    struct stmt *q = stmt_open(store, which);
    stmt_put_i64(q, run);
    stmt_put_i64(q, attempt);
    return q;
}

int store_attempt_get(struct store *store, int64_t run, uint32_t attempt, struct mem_arena *arena,
                      struct model_attempt *out)
{
    return stmt_get(open_attempt(store, ST_ATTEMPT_GET, run, attempt), arena, rows_read_attempt,
                    out);
}

struct visit_attempt {
    struct model_attempt attempt;
    store_attempt_f *f;
    void *arg;
};

static int visit_attempt(void *arg)
{
    struct visit_attempt *v = arg;
    return v->f(&v->attempt, v->arg);
}

static int each_attempt(struct store *store, enum statement which, int64_t of, store_attempt_f *f,
                        void *arg)
{
    struct visit_attempt v = {.f = f, .arg = arg};
    struct stmt *q = stmt_open(store, which);
    stmt_put_i64(q, of);
    return stmt_each(q, rows_read_attempt, &v.attempt, visit_attempt, &v);
}

int store_attempts_of_run(struct store *store, int64_t run, store_attempt_f *f, void *arg)
{
    return each_attempt(store, ST_ATTEMPTS_OF_RUN, run, f, arg);
}

int store_attempts_of_cell(struct store *store, int64_t cell, store_attempt_f *f, void *arg)
{
    return each_attempt(store, ST_ATTEMPTS_OF_CELL, cell, f, arg);
}

/* --- marks and facts --- */

void rows_read_mark(struct stmt *q, void *out)
{
    struct model_mark *m = out;
    m->run = stmt_i64(q);
    m->attempt = (uint32_t)stmt_i64(q);
    m->mark = (enum mark)stmt_i64(q);
    m->invalid = stmt_i64(q) != 0;
    m->text = stmt_text(q);
}

struct visit_mark {
    struct model_mark mark;
    store_mark_f *f;
    void *arg;
};

static int visit_mark(void *arg)
{
    struct visit_mark *v = arg;
    return v->f(&v->mark, v->arg);
}

int store_marks_of_attempt(struct store *store, int64_t run, uint32_t attempt, store_mark_f *f,
                           void *arg)
{
    struct visit_mark v = {.f = f, .arg = arg};
    struct stmt *q = open_attempt(store, ST_MARKS_OF_ATTEMPT, run, attempt);
    return stmt_each(q, rows_read_mark, &v.mark, visit_mark, &v);
}

void rows_read_fact(struct stmt *q, void *out)
{
    struct model_attempt_fact *f = out;
    f->run = stmt_i64(q);
    f->attempt = (uint32_t)stmt_i64(q);
    f->key = stmt_text(q);
    f->value = stmt_text(q);
}

struct visit_fact {
    struct model_attempt_fact fact;
    store_fact_f *f;
    void *arg;
};

static int visit_fact(void *arg)
{
    struct visit_fact *v = arg;
    return v->f(&v->fact, v->arg);
}

int store_facts_of_attempt(struct store *store, int64_t run, uint32_t attempt, store_fact_f *f,
                           void *arg)
{
    struct visit_fact v = {.f = f, .arg = arg};
    struct stmt *q = open_attempt(store, ST_FACTS_OF_ATTEMPT, run, attempt);
    return stmt_each(q, rows_read_fact, &v.fact, visit_fact, &v);
}

/* --- samples and output --- */

struct packed {
    const uint8_t *bytes;
    size_t n;
    store_point_f *f;
    void *arg;
};

static void read_packed(struct stmt *q, void *out)
{
    struct packed *p = out;
    p->bytes = stmt_bytes(q, &p->n);
}

static int visit_packed(void *arg)
{
    struct packed *p = arg;
    return points_unpack(p->bytes, p->n, p->f, p->arg);
}

int store_points_of_attempt(struct store *store, int64_t run, uint32_t attempt, store_point_f *f,
                            void *arg)
{
    struct packed p = {.f = f, .arg = arg};
    struct stmt *q = open_attempt(store, ST_SAMPLES_OF_ATTEMPT, run, attempt);
    return stmt_each(q, read_packed, &p, visit_packed, &p);
}

static void read_output(struct stmt *q, void *out)
{
    struct store_output *o = out;
    o->phase = (enum phase)stmt_i64(q);
    o->offset = (uint64_t)stmt_i64(q);
    o->bytes = stmt_bytes(q, &o->n);
    o->total = (uint64_t)stmt_i64(q);
}

struct visit_output {
    struct store_output output;
    store_output_f *f;
    void *arg;
};

static int visit_output(void *arg)
{
    struct visit_output *v = arg;
    return v->f(&v->output, v->arg);
}

int store_output_of_attempt(struct store *store, int64_t run, uint32_t attempt, int phase,
                            store_output_f *f, void *arg)
{
    struct visit_output v = {.f = f, .arg = arg};
    enum statement which = phase != 0 ? ST_OUTPUT_OF_PHASE : ST_OUTPUT_OF_ATTEMPT;
    struct stmt *q = open_attempt(store, which, run, attempt);
    if (phase != 0) {
        stmt_put_i64(q, phase);
    }
    return stmt_each(q, read_output, &v.output, visit_output, &v);
}

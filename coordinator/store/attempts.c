/* attempts.c: writing attempts: each numbered record of a worker once, in its order. */
#include "coordinator/store/attempts.h"

#include "common/buf.h"
#include "common/err.h"
#include "coordinator/store/attempt.def"
#include "coordinator/store/db.h"
#include "coordinator/store/points.h"
#include "coordinator/store/store.h"

/* --- intake --- */

static void read_intake(struct stmt *q, void *out)
{
    struct store_intake *i = out;
    i->run = stmt_i64(q);
    i->attempt = (uint32_t)stmt_i64(q);
    i->cell = stmt_i64(q);
    i->begin_wall_ns = stmt_i64(q);
    i->next_seq = (uint32_t)stmt_i64(q);
    i->count = (uint32_t)stmt_i64(q);
    i->has_result = stmt_i64(q) != 0;
    i->whole = stmt_i64(q) != 0;
}

int store_intake_get(struct store *store, int64_t run, uint32_t attempt, struct store_intake *out)
{
    struct stmt *q = stmt_open(store, ST_INTAKE_GET);
    stmt_put_i64(q, run);
    stmt_put_i64(q, attempt);
    return stmt_get(q, NULL, read_intake, out);
}

int store_attempt_begin(struct store *store, int64_t run, uint32_t attempt, int64_t wall_ns)
{
    struct store_intake there;
    int64_t changes = 0;
    int rc = store_intake_get(store, run, attempt, &there);
    if (rc != -ERR_NOTFOUND) {
        return rc;
    }
    struct stmt *q = stmt_open(store, ST_INTAKE_BEGIN);
    stmt_put_i64(q, attempt);
    stmt_put_i64(q, wall_ns);
    stmt_put_i64(q, run);
    rc = stmt_run(q, &changes);
    return rc == 0 && changes == 0 ? db_fail(store, -ERR_CONFLICT, "there is no such run") : rc;
}

struct visit {
    struct store_intake intake;
    store_intake_f *f;
    void *arg;
};

static int visit(void *arg)
{
    struct visit *v = arg;
    return v->f(&v->intake, v->arg);
}

int store_intakes_open(struct store *store, int64_t host, store_intake_f *f, void *arg)
{
    struct visit v = {.f = f, .arg = arg};
    struct stmt *q = stmt_open(store, host != 0 ? ST_INTAKES_OPEN_OF : ST_INTAKES_OPEN);
    if (host != 0) {
        stmt_put_i64(q, host);
    }
    return stmt_each(q, read_intake, &v.intake, visit, &v);
}

/* --- one record --- */

/* A record on its way in. */
struct put {
    struct store *store;
    struct store_intake intake;
    int savepoint;
};

/* Looks where the record belongs. 1: it is the next one, and end_put() must follow; 0: it is
 * known; or negative. */
static int begin_put(struct put *p, struct store *store, int64_t run, uint32_t attempt,
                     uint32_t seq, bool *stored)
{
    p->store = store;
    if (stored != NULL) {
        *stored = false;
    }
    int rc = store_intake_get(store, run, attempt, &p->intake);
    if (rc < 0) {
        return rc;
    }
    if (seq < p->intake.next_seq) {
        return 0;
    }
    if (p->intake.whole || seq > p->intake.next_seq) {
        return db_fail(store, -ERR_PROTO, "record %u came where %s", seq,
                       p->intake.whole ? "the attempt is whole" : "an earlier one is missing");
    }
    p->savepoint = store_savepoint(store);
    return p->savepoint < 0 ? p->savepoint : 1;
}

/* Counts the record in when its rows were written, or takes them back. */
static int end_put(struct put *p, int rc, bool *stored)
{
    if (rc == 0) {
        struct stmt *q = stmt_open(p->store, ST_INTAKE_ADVANCE);
        stmt_put_i64(q, p->intake.has_result);
        stmt_put_i64(q, p->intake.count);
        stmt_put_i64(q, p->intake.whole);
        stmt_put_i64(q, p->intake.run);
        stmt_put_i64(q, p->intake.attempt);
        rc = stmt_run_one(q);
    }
    rc = db_end(p->store, p->savepoint, rc);
    if (rc == 0 && stored != NULL) {
        *stored = true;
    }
    return rc;
}

/* --- the kinds of records --- */

#define PUT_I64(q, a, field) stmt_put_i64(q, (int64_t)(a)->field)
#define PUT_OPT(q, a, field) stmt_put_opt(q, (a)->field)
#define PUT_TEXT(q, a, field) stmt_put_text(q, (a)->field)
#define PUT(kind, field, type) PUT_##kind(q, a, field);

static int insert_attempt(struct store *store, const struct model_attempt *a, int64_t cell)
{
    struct stmt *q = stmt_open(store, ST_ATTEMPT_INSERT);
    stmt_put_i64(q, a->run);
    stmt_put_i64(q, a->attempt);
    stmt_put_i64(q, cell);
    ATTEMPT_FIELDS(PUT)
    return stmt_run(q, NULL);
}

static int insert_fact(struct store *store, const struct model_attempt *a,
                       const struct model_fact *fact)
{
    struct stmt *q = stmt_open(store, ST_FACT_INSERT);
    stmt_put_i64(q, a->run);
    stmt_put_i64(q, a->attempt);
    stmt_put_text(q, fact->key);
    stmt_put_text(q, fact->value);
    return stmt_run(q, NULL);
}

int store_attempt_put_result(struct store *store, uint32_t seq, const struct model_attempt *attempt,
                             const struct model_fact *facts, size_t fact_count, bool *stored)
{
    struct put p;
    int rc = begin_put(&p, store, attempt->run, attempt->attempt, seq, stored);
    if (rc <= 0) {
        return rc;
    }
    if (p.intake.has_result) {
        rc = db_fail(store, -ERR_PROTO, "record %u is a second result", seq);
    } else {
        rc = insert_attempt(store, attempt, p.intake.cell);
    }
    for (size_t i = 0; i < fact_count && rc == 0; i++) {
        rc = insert_fact(store, attempt, &facts[i]);
    }
    p.intake.has_result = true;
    return end_put(&p, rc, stored);
}

/* seq below 0: none. */
static int insert_mark(struct store *store, const struct model_mark *mark, int64_t seq)
{
    struct stmt *q = stmt_open(store, ST_MARK_INSERT);
    stmt_put_i64(q, mark->run);
    stmt_put_i64(q, mark->attempt);
    stmt_put_opt(q, (struct opt_i64){.has = seq >= 0, .v = seq});
    stmt_put_i64(q, mark->mark);
    stmt_put_i64(q, mark->invalid);
    stmt_put_text(q, mark->text);
    return stmt_run(q, NULL);
}

int store_attempt_put_mark(struct store *store, uint32_t seq, const struct model_mark *mark,
                           bool *stored)
{
    struct put p;
    int rc = begin_put(&p, store, mark->run, mark->attempt, seq, stored);
    return rc <= 0 ? rc : end_put(&p, insert_mark(store, mark, seq), stored);
}

int store_attempt_add_mark(struct store *store, const struct model_mark *mark)
{
    return insert_mark(store, mark, -1);
}

int store_attempt_put_samples(struct store *store, int64_t run, uint32_t attempt, uint32_t seq,
                              const struct model_point *points, size_t count, int64_t wall_ns,
                              bool *stored)
{
    struct put p;
    int rc = begin_put(&p, store, run, attempt, seq, stored);
    if (rc <= 0) {
        return rc;
    }
    struct buf packed = BUF_INIT;
    points_pack(points, count, &packed);
    rc = packed.err;
    if (rc == 0) {
        struct stmt *q = stmt_open(store, ST_SAMPLES_INSERT);
        stmt_put_i64(q, run);
        stmt_put_i64(q, attempt);
        stmt_put_i64(q, seq);
        stmt_put_bytes(q, packed.data, packed.len);
        stmt_put_i64(q, wall_ns);
        rc = stmt_run(q, NULL);
    }
    buf_fini(&packed);
    return end_put(&p, rc, stored);
}

int store_attempt_put_output(struct store *store, int64_t run, uint32_t attempt, uint32_t seq,
                             const struct store_output *output, int64_t wall_ns, bool *stored)
{
    struct put p;
    int rc = begin_put(&p, store, run, attempt, seq, stored);
    if (rc <= 0) {
        return rc;
    }
    struct stmt *q = stmt_open(store, ST_OUTPUT_INSERT);
    stmt_put_i64(q, run);
    stmt_put_i64(q, attempt);
    stmt_put_i64(q, seq);
    stmt_put_i64(q, output->phase);
    stmt_put_i64(q, (int64_t)output->offset);
    stmt_put_i64(q, (int64_t)output->total);
    stmt_put_i64(q, wall_ns);
    stmt_put_bytes(q, output->n != 0 ? (const void *)output->bytes : "", output->n);
    return end_put(&p, stmt_run(q, NULL), stored);
}

int store_attempt_put_end(struct store *store, int64_t run, uint32_t attempt, uint32_t seq,
                          uint32_t count, bool *stored)
{
    struct put p;
    int rc = begin_put(&p, store, run, attempt, seq, stored);
    if (rc <= 0) {
        return rc;
    }
    if (count != seq + 1) {
        rc = db_fail(store, -ERR_PROTO, "the end is record %u and says that there are %u", seq,
                     count);
    } else if (!p.intake.has_result) {
        rc = db_fail(store, -ERR_PROTO, "the attempt ended without a result");
    } else {
        rc = 0;
    }
    p.intake.count = count;
    p.intake.whole = true;
    return end_put(&p, rc, stored);
}

int store_attempt_settle(struct store *store, int64_t run, uint32_t attempt, enum outcome outcome,
                         bool late, bool out_of_order)
{
    struct stmt *q = stmt_open(store, ST_ATTEMPT_SETTLE);
    stmt_put_i64(q, outcome);
    stmt_put_i64(q, late);
    stmt_put_i64(q, out_of_order);
    stmt_put_i64(q, run);
    stmt_put_i64(q, attempt);
    return stmt_run_one(q);
}

/* --- retention --- */

static int prune(struct store *store, enum statement which, int64_t before_wall_ns, size_t *count)
{
    int64_t changes = 0;
    struct stmt *q = stmt_open(store, which);
    stmt_put_i64(q, before_wall_ns);
    int rc = stmt_run(q, &changes);
    if (count != NULL) {
        *count = (size_t)changes;
    }
    return rc;
}

int store_prune_samples(struct store *store, int64_t before_wall_ns, size_t *count)
{
    return prune(store, ST_SAMPLES_PRUNE, before_wall_ns, count);
}

int store_prune_output(struct store *store, int64_t before_wall_ns, size_t *count)
{
    return prune(store, ST_OUTPUT_PRUNE, before_wall_ns, count);
}

/* ingest.c: takes records in. Owns what is to be acknowledged and which attempts were refused
 * lately. */
#include "coordinator/result/ingest.h"

#include "common/buf.h"
#include "common/err.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "coordinator/result/acks.h"
#include "coordinator/result/settle.h"
#include "coordinator/store/attempts.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/runs.h"
#include "coordinator/store/store.h"
#include "coordinator/store/sweeps.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define INGEST_MAGIC 0x696e6773u
enum { REFUSED_MAX = 64 };

#define NO_SUCH_RUN "there is no such run"
#define NOT_OF_THIS_HOST "it is a run of another host"
#define NOT_HANDED_OUT "it was never handed out"

/* An attempt that cannot be filed, and of which an event was written. */
struct refused {
    int64_t host;
    int64_t run;
    uint32_t attempt;
    const char
        *why; /* one of the host's own: its further records are refused too; NULL: it is not */
};

struct ingest {
    uint32_t magic;
    struct store *store;
    const struct ingest_ops *ops;
    void *arg;
    struct acks acks;
    struct refused refused[REFUSED_MAX]; /* a ring */
    size_t refused_next;
};

struct ingest *ingest_new(struct store *store, const struct ingest_ops *ops, void *arg)
{
    struct ingest *ingest = mem_xzalloc(sizeof(*ingest));
    ingest->magic = INGEST_MAGIC;
    ingest->store = store;
    ingest->ops = ops;
    ingest->arg = arg;
    return ingest;
}

void ingest_free(struct ingest **ingest)
{
    if (*ingest == NULL) {
        return;
    }
    assert((*ingest)->magic == INGEST_MAGIC);
    acks_fini(&(*ingest)->acks);
    (*ingest)->magic = 0;
    free(*ingest);
    *ingest = NULL;
}

/* --- where a record belongs --- */

/* A record on its way in. */
struct arrival {
    struct ingest *ingest;
    int64_t wall_ns;
    int64_t host;
    int64_t run_id;
    uint32_t attempt;
    uint32_t seq;
    struct mem_arena *arena;
    struct model_run run;
    const char *why; /* it cannot be part of its attempt */
};

static const struct refused *find_refused(const struct ingest *ingest, int64_t host, int64_t run,
                                          uint32_t attempt)
{
    for (size_t i = 0; i < REFUSED_MAX; i++) {
        const struct refused *r = &ingest->refused[i];
        if (r->host == host && r->run == run && r->attempt == attempt) {
            return r;
        }
    }
    return NULL;
}

/* Says once that it cannot be filed, and lets the worker set it aside. */
static int turn_away(struct arrival *a, int code, const char *why)
{
    struct ingest *ingest = a->ingest;
    struct ingest_ack ack = {.run = a->run_id,
                             .attempt = a->attempt,
                             .seq = a->seq < UINT32_MAX ? a->seq + 1 : a->seq,
                             .whole = true,
                             .refused = why};
    int rc = 0;
    if (find_refused(ingest, a->host, a->run_id, a->attempt) == NULL) {
        bool own = a->run.host == a->host; /* a run that was not found has no host */
        struct buf text = BUF_INIT;
        buf_printf(&text,
                   "a record of attempt %" PRIu32 " of run %" PRId64
                   " was refused: %s; the worker keeps the attempt's records in its spool",
                   a->attempt, a->run_id, why);
        struct model_event event = {.wall_ns = a->wall_ns,
                                    .kind = EVENT_REFUSED,
                                    .sweep = own ? a->run.sweep : 0,
                                    .host = a->host,
                                    .run = own ? a->run_id : 0,
                                    .text = buf_str(&text)};
        log_warn("%s", buf_str(&text));
        rc = ingest->ops->event(ingest->arg, &event);
        buf_fini(&text);
        ingest->refused[ingest->refused_next++ % REFUSED_MAX] =
            (struct refused){a->host, a->run_id, a->attempt, NULL};
    }
    acks_add(&ingest->acks, a->host, &ack);
    return rc < 0 ? rc : code;
}

/* The record cannot be part of its attempt, so that the attempt will never be whole. */
static int reject(struct arrival *a, const char *why)
{
    struct ingest *ingest = a->ingest;
    int rc = turn_away(a, -ERR_DENIED, why);
    if (rc != -ERR_DENIED) {
        return rc;
    }
    for (size_t i = 0; i < REFUSED_MAX; i++) {
        struct refused *r = &ingest->refused[i];
        if (r->host == a->host && r->run == a->run_id && r->attempt == a->attempt) {
            r->why = why;
        }
    }
    int told = ingest->ops->rejected(ingest->arg, a->host, a->run_id, a->attempt, why);
    return told < 0 ? told : rc;
}

/* Finds the run and makes room for the attempt. 0, or what the record is answered with. */
static int find_run(struct arrival *a)
{
    int rc = store_run_get(a->ingest->store, a->run_id, a->arena, &a->run);
    if (rc == -ERR_NOTFOUND) {
        return turn_away(a, -ERR_NOTFOUND, NO_SUCH_RUN);
    }
    if (rc < 0) {
        return rc;
    }
    if (a->run.host != a->host) {
        return turn_away(a, -ERR_DENIED, NOT_OF_THIS_HOST);
    }
    if (a->attempt == 0 || a->attempt > a->run.attempts) {
        return turn_away(a, -ERR_NOTFOUND, NOT_HANDED_OUT);
    }
    return store_attempt_begin(a->ingest->store, a->run_id, a->attempt, a->wall_ns);
}

/* The record is stored, or was before. */
static int acknowledge(struct arrival *a)
{
    struct store_intake intake;
    int rc = store_intake_get(a->ingest->store, a->run_id, a->attempt, &intake);
    if (rc == 0) {
        struct ingest_ack ack = {
            .run = a->run_id, .attempt = a->attempt, .seq = intake.next_seq, .whole = intake.whole};
        acks_add(&a->ingest->acks, a->host, &ack);
    }
    return rc;
}

/* What comes too early is sent again in its order, and what comes after the end is not needed: only
 * the record that should be next can spoil its attempt. */
static int misfit(struct arrival *a)
{
    struct store_intake intake;
    int rc = store_intake_get(a->ingest->store, a->run_id, a->attempt, &intake);
    if (rc < 0) {
        return rc;
    }
    return intake.whole || a->seq > intake.next_seq ? -ERR_PROTO : reject(a, a->why);
}

typedef int put_f(struct arrival *a, void *record, bool *stored);

/* The way of every record. */
static int take_in(struct ingest *ingest, int64_t now_wall_ns, int64_t host, int64_t run,
                   uint32_t attempt, uint32_t seq, put_f *put, void *record)
{
    struct arrival a = {.ingest = ingest,
                        .wall_ns = now_wall_ns,
                        .host = host,
                        .run_id = run,
                        .attempt = attempt,
                        .seq = seq,
                        .arena = mem_arena_new(0),
                        .why = "it does not fit the records before it"};
    bool stored = false;
    const struct refused *before = find_refused(ingest, host, run, attempt);
    int rc = find_run(&a);
    if (rc == 0 && before != NULL && before->why != NULL) {
        rc = turn_away(&a, -ERR_DENIED, before->why);
    } else if (rc == 0) {
        rc = put(&a, record, &stored);
        if (rc == -ERR_PROTO) {
            rc = misfit(&a);
        }
    }
    if (rc == 0) {
        rc = acknowledge(&a);
    }
    mem_arena_free(&a.arena);
    return rc;
}

/* --- the kinds of records --- */

struct result_record {
    const struct model_attempt *attempt;
    const struct model_fact *facts;
    size_t fact_count;
};

static int put_result(struct arrival *a, void *record, bool *stored)
{
    const struct result_record *r = record;
    struct model_attempt row = *r->attempt;
    settle_clean(&row);
    row.outcome = row.reported;
    row.warmup = row.warmup || a->run.warmup;
    row.late = row.out_of_order = false;
    row.stored_wall_ns = a->wall_ns;
    return store_attempt_put_result(a->ingest->store, a->seq, &row, r->facts, r->fact_count,
                                    stored);
}

static int put_mark(struct arrival *a, void *record, bool *stored)
{
    return store_attempt_put_mark(a->ingest->store, a->seq, record, stored);
}

struct samples_record {
    const struct model_point *points;
    size_t count;
};

static int put_samples(struct arrival *a, void *record, bool *stored)
{
    const struct samples_record *r = record;
    return store_attempt_put_samples(a->ingest->store, a->run_id, a->attempt, a->seq, r->points,
                                     r->count, a->wall_ns, stored);
}

static int put_output(struct arrival *a, void *record, bool *stored)
{
    return store_attempt_put_output(a->ingest->store, a->run_id, a->attempt, a->seq, record,
                                    a->wall_ns, stored);
}

/* --- a whole attempt --- */

static int look_at_mark(const struct model_mark *mark, void *arg)
{
    struct settle_input *in = arg;
    in->invalid_mark = in->invalid_mark || mark->invalid;
    in->fingerprint_mark = in->fingerprint_mark || mark->mark == MARK_FINGERPRINT;
    return 0;
}

static int add_mark(struct arrival *a, enum mark kind, bool invalid, const char *text)
{
    struct model_mark mark = {a->run_id, a->attempt, kind, invalid, text};
    return store_attempt_add_mark(a->ingest->store, &mark);
}

static int add_marks(struct arrival *a, const struct settle_result *s)
{
    int rc = 0;
    if (s->wrong != NULL) {
        rc = add_mark(a, MARK_NOT_AS_ASKED, true, s->wrong);
    }
    if (rc == 0 && s->toolchain) {
        rc = add_mark(a, MARK_FINGERPRINT, true,
                      "its fingerprint is not that of the cell's first attempt");
    }
    if (rc == 0 && s->cancelled_late) {
        rc = add_mark(a, MARK_CANCELLED_LATE, false, "it had ended when it was cancelled");
    }
    return rc;
}

static int tell(struct arrival *a, const struct model_attempt *attempt)
{
    struct buf text = BUF_INIT;
    char seconds[32];
    buf_printf(&text, "attempt %" PRIu32 " %s", a->attempt, vocab_outcome((int)attempt->outcome));
    if (attempt->real_ns.has) {
        buf_printf(&text, ", %s s",
                   num_seconds_text(seconds, sizeof(seconds), attempt->real_ns.v, 2));
    }
    buf_printf(&text, "%s%s%s%s", attempt->warmup ? ", warm-up" : "", attempt->late ? ", late" : "",
               attempt->text != NULL && attempt->text[0] != '\0' ? ": " : "",
               attempt->text != NULL ? attempt->text : "");
    struct model_event event = {.wall_ns = a->wall_ns,
                                .kind = EVENT_ATTEMPT,
                                .sweep = a->run.sweep,
                                .host = a->host,
                                .run = a->run_id,
                                .text = buf_str(&text)};
    int rc = a->ingest->ops->event(a->ingest->arg, &event);
    buf_fini(&text);
    return rc;
}

static int read_context(struct arrival *a, struct model_attempt *attempt, struct model_cell *cell,
                        struct model_input *input, struct settle_input *in)
{
    struct store *store = a->ingest->store;
    int rc = store_attempt_get(store, a->run_id, a->attempt, a->arena, attempt);
    if (rc == 0) {
        rc = store_cell_get(store, a->run.cell, a->arena, cell);
    }
    if (rc == 0) {
        rc = store_input_get(store, cell->workload, cell->variant, a->arena, input);
    }
    if (rc == 0) {
        rc = store_marks_of_attempt(store, a->run_id, a->attempt, look_at_mark, in);
    }
    return rc;
}

static int settle(struct arrival *a)
{
    struct ingest *ingest = a->ingest;
    struct model_attempt attempt;
    struct model_cell cell;
    struct model_input input;
    struct settle_input in = {.attempt = &attempt, .run = &a->run, .cell = &cell, .input = &input};
    struct settle_result s;
    int rc = read_context(a, &attempt, &cell, &input, &in);
    if (rc < 0) {
        return rc;
    }
    settle_attempt(&in, &s);
    attempt.outcome = s.outcome;
    attempt.late = s.late;
    attempt.out_of_order = ingest->ops->out_of_order(ingest->arg, a->run_id, a->attempt);
    rc = store_attempt_settle(ingest->store, a->run_id, a->attempt, attempt.outcome, attempt.late,
                              attempt.out_of_order);
    if (rc == 0) {
        rc = add_marks(a, &s);
    }
    if (rc == 0) {
        rc = tell(a, &attempt);
    }
    return rc == 0 ? ingest->ops->whole(ingest->arg, a->host, &attempt) : rc;
}

static int put_nothing(struct arrival *a, void *record, bool *stored)
{
    const char *const *why = record;
    *stored = false;
    a->why = *why;
    return -ERR_PROTO;
}

/* END is stored with all that follows from it, or not at all: it would be a repetition when it comes
 * again, and the run would wait for ever. */
static int put_end(struct arrival *a, void *record, bool *stored)
{
    struct store *store = a->ingest->store;
    const uint32_t *count = record;
    int savepoint = store_savepoint(store);
    if (savepoint < 0) {
        return savepoint;
    }
    int rc = store_attempt_put_end(store, a->run_id, a->attempt, a->seq, *count, stored);
    if (rc == 0 && *stored) {
        rc = settle(a);
    }
    if (rc == 0) {
        return store_release(store, savepoint);
    }
    store_revert(store, savepoint);
    return rc;
}

/* --- the doors --- */

int ingest_result(struct ingest *ingest, int64_t now_wall_ns, int64_t host, uint32_t seq,
                  const struct model_attempt *a, const struct model_fact *facts, size_t fact_count)
{
    struct result_record r = {a, facts, fact_count};
    return take_in(ingest, now_wall_ns, host, a->run, a->attempt, seq, put_result, &r);
}

int ingest_mark(struct ingest *ingest, int64_t now_wall_ns, int64_t host, uint32_t seq,
                const struct model_mark *mark)
{
    struct model_mark m = *mark;
    return take_in(ingest, now_wall_ns, host, m.run, m.attempt, seq, put_mark, &m);
}

int ingest_samples(struct ingest *ingest, int64_t now_wall_ns, int64_t host, int64_t run,
                   uint32_t attempt, uint32_t seq, const struct model_point *points, size_t n)
{
    struct samples_record r = {points, n};
    return take_in(ingest, now_wall_ns, host, run, attempt, seq, put_samples, &r);
}

int ingest_output(struct ingest *ingest, int64_t now_wall_ns, int64_t host, int64_t run,
                  uint32_t attempt, uint32_t seq, enum phase phase, uint64_t offset,
                  const void *bytes, size_t n, uint64_t total)
{
    struct store_output r = {phase, offset, bytes, n, total};
    return take_in(ingest, now_wall_ns, host, run, attempt, seq, put_output, &r);
}

int ingest_end(struct ingest *ingest, int64_t now_wall_ns, int64_t host, int64_t run,
               uint32_t attempt, uint32_t seq, uint32_t count)
{
    return take_in(ingest, now_wall_ns, host, run, attempt, seq, put_end, &count);
}

int ingest_reject(struct ingest *ingest, int64_t now_wall_ns, int64_t host, int64_t run,
                  uint32_t attempt, uint32_t seq, const char *why)
{
    return take_in(ingest, now_wall_ns, host, run, attempt, seq, put_nothing, &why);
}

/* --- acknowledgements --- */

int ingest_known(struct ingest *ingest, int64_t host, int64_t run, uint32_t attempt,
                 struct ingest_ack *out)
{
    struct model_run row;
    struct store_intake intake;
    *out = (struct ingest_ack){.run = run, .attempt = attempt};
    const struct refused *refused = find_refused(ingest, host, run, attempt);
    if (refused != NULL && refused->why != NULL) {
        out->whole = true;
        out->refused = refused->why;
        return 0;
    }
    struct mem_arena *arena = mem_arena_new(0);
    int rc = store_run_get(ingest->store, run, arena, &row);
    mem_arena_free(&arena);
    if (rc == -ERR_NOTFOUND ||
        (rc == 0 && (row.host != host || attempt == 0 || attempt > row.attempts))) {
        out->whole = true; /* nobody will ever file it */
        out->refused = rc < 0 ? NO_SUCH_RUN : row.host != host ? NOT_OF_THIS_HOST : NOT_HANDED_OUT;
        return 0;
    }
    if (rc == 0) {
        rc = store_intake_get(ingest->store, run, attempt, &intake);
    }
    if (rc == 0) {
        out->seq = intake.next_seq;
        out->whole = intake.whole;
    }
    return rc == -ERR_NOTFOUND ? 0 : rc;
}

bool ingest_is_rejected(const struct ingest *ingest, int64_t host, int64_t run, uint32_t attempt)
{
    const struct refused *r = find_refused(ingest, host, run, attempt);
    return r != NULL && r->why != NULL;
}

void ingest_committed(struct ingest *ingest)
{
    acks_commit(&ingest->acks);
}

void ingest_rolled_back(struct ingest *ingest)
{
    acks_drop(&ingest->acks);
    memset(ingest->refused, 0, sizeof(ingest->refused)); /* their events are gone too */
}

size_t ingest_take_acks(struct ingest *ingest, int64_t host, ingest_ack_f *f, void *arg)
{
    return acks_take(&ingest->acks, host, f, arg);
}

size_t ingest_hosts_due(const struct ingest *ingest, int64_t *hosts, size_t room)
{
    return acks_hosts(&ingest->acks, hosts, room);
}

void ingest_host_down(struct ingest *ingest, int64_t host)
{
    acks_forget(&ingest->acks, host);
}

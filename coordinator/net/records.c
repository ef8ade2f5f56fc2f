/* records.c: translates RESULT, SAMPLES, OUTPUT, MARK and END and hands them to ingest. What a number may be is checked here: behind this file every enum is one of its own. */
#include "coordinator/net/records.h"

#include "common/buf.h"
#include "common/err.h"
#include "common/jobs.h"
#include "common/mem.h"
#include "common/str.h"
#include "coordinator/model.h"
#include "coordinator/result/ingest.h"
#include "proto/msg.h"

#include <stdlib.h>
#include <string.h>

#define UNKNOWN_WORD "it has a number that no vocabulary of this makespand knows"

static struct opt_i64 opt(bool has, int64_t v)
{
    return (struct opt_i64){.has = has, .v = v};
}

/* A number that cannot be below 0: a time, a count, a size. */
static int opt_natural(bool has, int64_t v, struct opt_i64 *out)
{
    *out = opt(has, v);
    return has && v < 0 ? -ERR_PROTO : 0;
}

static int read_numbers(const struct msg_result *r, struct model_attempt *a)
{
    int bad = 0;

    bad |= opt_natural(r->has_exit_status, r->exit_status, &a->exit_status);
    bad |= opt_natural(r->has_signal, r->signal, &a->signal);
    bad |= opt_natural(r->has_real_ns, r->real_ns, &a->real_ns);
    bad |= opt_natural(r->has_user_ns, r->user_ns, &a->user_ns);
    bad |= opt_natural(r->has_sys_ns, r->sys_ns, &a->sys_ns);
    bad |= opt_natural(r->has_wait_user_ns, r->wait_user_ns, &a->wait_user_ns);
    bad |= opt_natural(r->has_wait_sys_ns, r->wait_sys_ns, &a->wait_sys_ns);
    bad |= opt_natural(r->has_max_rss_bytes, r->max_rss_bytes, &a->max_rss_bytes);
    bad |= opt_natural(r->has_tree_peak_bytes, r->tree_peak_bytes, &a->tree_peak_bytes);
    bad |= opt_natural(r->has_minor_faults, r->minor_faults, &a->minor_faults);
    bad |= opt_natural(r->has_major_faults, r->major_faults, &a->major_faults);
    bad |= opt_natural(r->has_voluntary_switches, r->voluntary_switches, &a->voluntary_switches);
    bad |= opt_natural(r->has_involuntary_switches, r->involuntary_switches, &a->involuntary_switches);
    bad |= opt_natural(r->has_read_bytes, r->read_bytes, &a->read_bytes);
    bad |= opt_natural(r->has_write_bytes, r->write_bytes, &a->write_bytes);
    bad |= opt_natural(r->has_observer_ns, r->observer_ns, &a->observer_ns);
    bad |= opt_natural(r->has_foreign_ns, r->foreign_ns, &a->foreign_ns);
    bad |= opt_natural(r->has_setup_ns, r->setup_ns, &a->setup_ns);
    bad |= opt_natural(r->has_reset_ns, r->reset_ns, &a->reset_ns);
    bad |= opt_natural(r->has_settle_ns, r->settle_ns, &a->settle_ns);
    bad |= opt_natural(r->has_check_ns, r->check_ns, &a->check_ns);
    bad |= opt_natural(r->has_calibrate_before_ns, r->calibrate_before_ns, &a->calibrate_before_ns);
    bad |= opt_natural(r->has_calibrate_after_ns, r->calibrate_after_ns, &a->calibrate_after_ns);
    bad |= opt_natural(r->has_cpus_milli, r->cpus_milli, &a->cpus_milli);
    a->start_wall_ns = opt(r->has_start_wall_ns, r->start_wall_ns);
    a->output_bytes = opt(r->has_output_bytes, (int64_t)(r->output_bytes > INT64_MAX ? INT64_MAX : r->output_bytes));
    /* A clean run took some time: 0 would be an absent number in disguise. */
    if (r->outcome == OUTCOME_OK && (!r->has_real_ns || r->real_ns <= 0))
        bad = -ERR_PROTO;
    return bad != 0 ? -ERR_PROTO : 0;
}

static int read_words(const struct msg_result *r, struct model_attempt *a)
{
    if (vocab_outcome((int)r->outcome) == NULL || r->outcome == OUTCOME_SUPERSEDED || vocab_phase((int)r->phase) == NULL ||
        vocab_ending((int)r->ending) == NULL || vocab_cpu_way((int)r->cpu_way) == NULL)
        return -ERR_PROTO;
    if (r->jobs < JOBS_MAX || r->jobs > JOBS_LIMIT || (r->has_blob_seen && r->blob_seen.len != MODEL_HASH))
        return -ERR_PROTO;
    a->reported = (enum outcome)r->outcome;
    a->outcome = a->reported;
    a->phase = (enum phase)r->phase;
    a->ending = (enum ending)r->ending;
    a->cpu_way = (enum cpu_way)r->cpu_way;
    a->jobs = (int32_t)r->jobs;
    a->text = r->text;
    a->warmup = r->warmup;
    a->fresh_tree = r->fresh_tree;
    a->begin_wall_ns = r->begin_wall_ns;
    a->end_wall_ns = r->end_wall_ns;
    a->boot_id = r->boot_id;
    a->visit = r->visit;
    a->tree_key = r->tree_key;
    a->tree_seen = r->tree_seen;
    a->fingerprint = r->fingerprint;
    a->fingerprint_text = r->fingerprint_text;
    a->kernel_seen = r->kernel_seen;
    a->worker_version = r->worker_version;
    return 0;
}

static int take_result(struct ingest *ingest, int64_t now, int64_t host, const struct msg_result *r)
{
    struct model_attempt a = {.run = (int64_t)r->run, .attempt = r->attempt};
    struct model_fact *facts;
    struct buf dropped = BUF_INIT;
    char blob[2 * MODEL_HASH + 1];
    int err;

    if (read_words(r, &a) != 0)
        return ingest_reject(ingest, now, host, a.run, a.attempt, r->seq, UNKNOWN_WORD);
    if (read_numbers(r, &a) != 0)
        return ingest_reject(ingest, now, host, a.run, a.attempt, r->seq, "a number of the result is out of its range");
    facts = mem_try_array(r->facts_count + 1, sizeof *facts, 1024 * 1024);
    if (facts == NULL)
        return -ERR_NOMEM;
    for (size_t i = 0; i < r->facts_count; i++)
        facts[i] = (struct model_fact){.key = r->facts[i].key, .value = r->facts[i].value};
    if (r->has_blob_seen) {
        str_hex(blob, r->blob_seen.data, MODEL_HASH);
        a.blob_seen = blob;
    }
    for (size_t i = 0; i < r->dropped_env_count; i++)
        buf_printf(&dropped, "%s%s", i == 0 ? "" : " ", r->dropped_env[i]);
    a.dropped_env = dropped.len == 0 ? NULL : buf_str(&dropped);
    err = ingest_result(ingest, now, host, r->seq, &a, facts, r->facts_count);
    buf_fini(&dropped);
    free(facts);
    return err;
}

static int take_samples(struct ingest *ingest, int64_t now, int64_t host, const struct msg_samples *s)
{
    struct model_point *points = mem_try_array(s->points_count + 1, sizeof *points, 1024 * 1024);
    int err;

    if (points == NULL)
        return -ERR_NOMEM;
    for (size_t i = 0; i < s->points_count; i++)
        points[i] = (struct model_point){.at_ns = s->points[i].at_ns, .what = s->points[i].what, .value = s->points[i].value};
    err = ingest_samples(ingest, now, host, (int64_t)s->run, s->attempt, s->seq, points, s->points_count);
    free(points);
    return err;
}

static int take_mark(struct ingest *ingest, int64_t now, int64_t host, const struct msg_mark *m)
{
    struct model_mark mark = {.run = (int64_t)m->run, .attempt = m->attempt, .invalid = m->invalid, .text = m->text};

    if (vocab_mark((int)m->mark) == NULL)
        return ingest_reject(ingest, now, host, mark.run, mark.attempt, m->seq, UNKNOWN_WORD);
    mark.mark = (enum mark)m->mark;
    return ingest_mark(ingest, now, host, m->seq, &mark);
}

int records_take(struct ingest *ingest, int64_t now_wall_ns, int64_t host, const struct msg *msg)
{
    const struct msg_output *o = &msg->u.output;
    struct msg_record_id id;

    if (!msg_record_id(msg, &id) || id.run > INT64_MAX)
        return -ERR_PROTO;
    switch (msg->type) {
    case MSG_RESULT:
        return take_result(ingest, now_wall_ns, host, &msg->u.result);
    case MSG_SAMPLES:
        return take_samples(ingest, now_wall_ns, host, &msg->u.samples);
    case MSG_OUTPUT:
        if (vocab_phase((int)o->phase) == NULL)
            return ingest_reject(ingest, now_wall_ns, host, (int64_t)o->run, o->attempt, o->seq, UNKNOWN_WORD);
        return ingest_output(ingest, now_wall_ns, host, (int64_t)o->run, o->attempt, o->seq, (enum phase)o->phase, o->offset, o->bytes.data,
                             o->bytes.len, o->total);
    case MSG_MARK:
        return take_mark(ingest, now_wall_ns, host, &msg->u.mark);
    case MSG_END:
        return ingest_end(ingest, now_wall_ns, host, (int64_t)msg->u.end.run, msg->u.end.attempt, msg->u.end.seq, msg->u.end.count);
    default:
        return -ERR_PROTO;
    }
}

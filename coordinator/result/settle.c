/* settle.c: the table of ingest.h, which outcome an attempt gets. */
#include "coordinator/result/settle.h"

#include "common/str.h"

#include <string.h>

static void drop_negative(struct opt_i64 *n)
{
    if (n->has && n->v < 0) {
        n->has = false;
        n->v = 0;
    }
}

void settle_clean(struct model_attempt *a)
{
    struct opt_i64 *all[] = {
        &a->real_ns,         &a->user_ns,
        &a->sys_ns,          &a->wait_user_ns,
        &a->wait_sys_ns,     &a->max_rss_bytes,
        &a->tree_peak_bytes, &a->minor_faults,
        &a->major_faults,    &a->voluntary_switches,
        &a->read_bytes,      &a->involuntary_switches,
        &a->write_bytes,     &a->observer_ns,
        &a->foreign_ns,      &a->setup_ns,
        &a->reset_ns,        &a->settle_ns,
        &a->check_ns,        &a->calibrate_before_ns,
        &a->cpus_milli,      &a->calibrate_after_ns,
        &a->output_bytes,
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        drop_negative(all[i]);
    }
}

static bool is_awaited(const struct model_run *run, uint32_t attempt)
{
    bool held = run->state == RUN_SENT || run->state == RUN_RUNNING || run->state == RUN_AWAY;
    return held && run->attempts == attempt;
}

/* What was not made as the coordinator asked for it, NULL when all was. */
static const char *what_is_wrong(const struct settle_input *in)
{
    const struct model_attempt *a = in->attempt;
    if (a->jobs != in->cell->jobs) {
        return "it was made with another job count than the one that was asked for";
    }
    if (in->input->has_blob && a->blob_seen != NULL) {
        char want[2 * MODEL_HASH + 1];
        str_hex(want, in->input->blob, MODEL_HASH);
        if (strcmp(want, a->blob_seen) != 0) {
            return "another archive was unpacked than the one that was sent";
        }
    }
    if (!a->real_ns.has || a->real_ns.v == 0) {
        return "it has no time";
    }
    return NULL;
}

static bool other_toolchain(const struct settle_input *in)
{
    const char *known = in->cell->fingerprint;
    const char *seen = in->attempt->fingerprint;
    return known != NULL && seen != NULL && strcmp(known, seen) != 0 && !in->fingerprint_mark;
}

static bool is_taken(const struct model_run *run, uint32_t attempt)
{
    return (run->counted != 0 && run->counted != attempt) || run->state == RUN_REPLACED ||
           run->state == RUN_SKIPPED;
}

void settle_attempt(const struct settle_input *in, struct settle_result *out)
{
    const struct model_attempt *a = in->attempt;
    const struct model_run *run = in->run;
    *out = (struct settle_result){.outcome = a->reported};
    out->late = !is_awaited(run, a->attempt);
    if (a->reported != OUTCOME_OK) {
        return;
    }
    out->wrong = what_is_wrong(in);
    out->toolchain = other_toolchain(in);
    if (out->wrong != NULL || out->toolchain || in->invalid_mark) {
        out->outcome = OUTCOME_INVALID;
    } else if (a->warmup || run->warmup) {
        return;
    } else if (run->state == RUN_CANCELLED) {
        out->outcome = OUTCOME_CANCELLED;
        out->cancelled_late = true;
    } else if (is_taken(run, a->attempt)) {
        out->outcome = OUTCOME_SUPERSEDED;
    }
}

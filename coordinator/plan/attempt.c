/* attempt.c: an attempt is whole: it counts, it is made again, or it ends its run. Writes runs and
 * cells; the attempt's own row is coordinator/result's. */
#include "coordinator/plan/attempt.h"

#include "common/buf.h"
#include "common/err.h"
#include "common/num.h"
#include "common/str.h"
#include "coordinator/plan/fleet.h"
#include "coordinator/plan/lease.h"
#include "coordinator/plan/node.h"
#include "coordinator/plan/run.h"
#include "coordinator/store/attempts.h"
#include "coordinator/store/cells.h"

#include <stdio.h>
#include <string.h>

enum { TAIL_MAX = 1024 };

struct whole {
    struct plan *plan;
    struct plan_now now;
    struct plan_host *host;
    struct plan_node *node; /* NULL: the sweep has ended there */
    const struct model_attempt *attempt;
    struct model_run run;
};

/* --- a tree that was just made --- */

struct fresh_count {
    int n;
};

static int count_fresh(const struct model_attempt *attempt, void *arg)
{
    struct fresh_count *count = arg;
    count->n += attempt->whole && attempt->warmup && attempt->fresh_tree;
    return 0;
}

int plan_attempt_fresh(struct plan *plan, const struct plan_node *node, const struct model_run *run,
                       bool *fresh_warmup)
{
    *fresh_warmup = !run->warmup && node->row.warmup > 0;
    if (!*fresh_warmup || run->attempts < PLAN_FRESH_MAX) {
        return 0;
    }
    struct fresh_count count = {0};
    int rc = store_attempts_of_run(plan->store, run->id, count_fresh, &count);
    *fresh_warmup = count.n < PLAN_FRESH_MAX;
    return rc < 0 ? plan_fail(plan, rc) : 0;
}

/* --- a tree that cannot be made --- */

static int add_tail(const struct store_output *piece, void *arg)
{
    struct buf *tail = arg;
    buf_add(tail, piece->bytes, piece->n);
    if (tail->len > TAIL_MAX) {
        buf_consume(tail, tail->len - TAIL_MAX);
    }
    return tail->err;
}

/* "setup failed: exit status 2: <the end of what it printed>". */
static int setup_reason(struct whole *w, struct buf *reason)
{
    struct buf tail = BUF_INIT;
    int rc = store_output_of_attempt(w->plan->store, w->run.id, w->attempt->attempt,
                                     (int)w->attempt->phase, add_tail, &tail);
    const char *phase = vocab_phase((int)w->attempt->phase);
    buf_printf(reason, "%s failed", phase != NULL ? phase : "setup");
    if (w->attempt->text != NULL && w->attempt->text[0] != '\0') {
        buf_printf(reason, ": %s", w->attempt->text);
    }
    while (tail.len > 0 && (tail.data[tail.len - 1] == '\n' || tail.data[tail.len - 1] == ' ')) {
        tail.len--;
    }
    if (tail.len > 0) {
        buf_add_str(reason, ": ");
        str_escape(reason, tail.data, tail.len);
    }
    buf_fini(&tail);
    return rc < 0 ? plan_fail(w->plan, rc) : reason->err;
}

static int fail_tree(struct whole *w)
{
    struct buf reason = BUF_INIT;
    int rc = setup_reason(w, &reason);
    if (rc == 0 && w->node != NULL) {
        rc = plan_node_fail_cells(w->plan, w->now, w->node, w->run.cell, CELL_FAILED,
                                  buf_str(&reason));
    }
    if (rc == 0) {
        rc = plan_run_finish(w->plan, w->now, &w->run, buf_str(&reason));
    }
    buf_fini(&reason);
    return rc;
}

/* --- outcomes --- */

/* One more try is used up; the run is made again while there are some left. */
static int try_again(struct whole *w, uint32_t *used, int64_t allowed)
{
    const char *text = w->attempt->text != NULL ? w->attempt->text : "";
    const char *word = vocab_outcome((int)w->attempt->outcome);
    char reason[512];
    (*used)++;
    if ((int64_t)*used <= allowed) {
        snprintf(reason, sizeof(reason), "attempt %u %s%s%.400s", w->attempt->attempt, word,
                 text[0] != '\0' ? ": " : "", text);
        return plan_run_again(w->plan, w->now, &w->run, reason);
    }
    snprintf(reason, sizeof(reason), "%u attempt%s %s, no more tries%s%.400s", *used,
             *used == 1 ? "" : "s", word, text[0] != '\0' ? ": " : "", text);
    return plan_run_finish(w->plan, w->now, &w->run, reason);
}

static bool tree_failed(const struct model_attempt *attempt)
{
    return attempt->outcome == OUTCOME_FAILED &&
           (attempt->phase == PHASE_FETCH || attempt->phase == PHASE_SETUP);
}

/* The attempt that the run waited for is over and does not count. */
static int unclean(struct whole *w)
{
    const struct model_attempt *a = w->attempt;
    struct model_sweep_host none = {0};
    const struct model_sweep_host *row = w->node != NULL ? &w->node->row : &none;
    if (tree_failed(a)) {
        return fail_tree(w);
    }
    /* What was cut short has warmed nothing, or not all; any other has run to its end. */
    if (w->run.warmup && a->outcome != OUTCOME_INTERRUPTED && a->outcome != OUTCOME_SUPERSEDED) {
        char reason[64];
        snprintf(reason, sizeof(reason), "warm-up %s", vocab_outcome((int)a->outcome));
        return plan_run_finish(w->plan, w->now, &w->run, reason);
    }
    switch (a->outcome) {
    case OUTCOME_OK:
        if (a->fresh_tree) {
            return plan_run_again(w->plan, w->now, &w->run,
                                  "the tree was just made: that attempt was a warm-up");
        }
        return try_again(w, &w->run.tries_invalid, row->retry_invalid);
    case OUTCOME_FAILED:
        return try_again(w, &w->run.tries_failed, row->retry_failed);
    case OUTCOME_INVALID:
        return try_again(w, &w->run.tries_invalid, row->retry_invalid);
    case OUTCOME_INTERRUPTED:
    case OUTCOME_CANCELLED:
    case OUTCOME_SUPERSEDED:
        break;
    }
    return try_again(w, &w->run.tries_interrupted, row->retry_interrupted);
}

/* The run has its attempt; another that is under way for it is not needed. */
static int count_it(struct whole *w)
{
    w->run.counted = w->attempt->attempt;
    struct plan_flight *other = plan_find_flight(w->host, w->run.id, w->run.attempts);
    if (other != NULL && other->attempt != w->attempt->attempt && !other->leaving) {
        other->wanted = false;
        other->leaving = true;
        plan_add_message(w->plan, MESSAGE_CANCEL, w->host->id, other->run, other->attempt,
                         "an earlier attempt of this run came in");
    }
    if (w->run.state == RUN_DONE) {
        return plan_run_write(w->plan, &w->run);
    }
    if (w->run.state == RUN_NODATA) {
        return plan_run_enter(w->plan, w->now, &w->run, RUN_DONE, "it came late");
    }
    return plan_run_finish(w->plan, w->now, &w->run, NULL);
}

static int settle_run(struct whole *w)
{
    const struct model_attempt *a = w->attempt;
    bool counts = a->outcome == OUTCOME_OK && !a->warmup && !w->run.warmup;
    bool open = !model_run_is_end((int)w->run.state);
    if (counts && w->run.counted == 0 &&
        (open || w->run.state == RUN_NODATA || w->run.state == RUN_DONE)) {
        return count_it(w);
    }
    if (!open || a->attempt != w->run.attempts) {
        return 0; /* it is kept, and changes nothing */
    }
    if (w->run.state == RUN_QUEUED) {
        /* It was given up, and here it is after all: to end or to repeat the run it must be held. */
        int rc = plan_run_enter(w->plan, w->now, &w->run, RUN_SENT, "its last attempt came late");
        if (rc < 0) {
            return rc;
        }
    }
    return unclean(w);
}

static int keep_fingerprint(struct whole *w)
{
    if (w->attempt->fingerprint == NULL || w->attempt->outcome == OUTCOME_CANCELLED) {
        return 0;
    }
    struct model_cell cell;
    int rc = store_cell_get(w->plan->store, w->run.cell, plan_scratch(w->plan), &cell);
    if (rc == 0 && cell.fingerprint == NULL) {
        rc = store_cell_set_fingerprint(w->plan->store, cell.id, w->attempt->fingerprint);
    }
    return rc < 0 ? plan_fail(w->plan, rc) : 0;
}

/* Time that the host spent on it: the sum of its parts, each by the worker's monotonic clock. */
static void add_time(struct whole *w)
{
    const struct model_attempt *a = w->attempt;
    const struct opt_i64 parts[] = {a->setup_ns, a->reset_ns, a->settle_ns, a->real_ns,
                                    a->check_ns};
    for (size_t i = 0; w->node != NULL && i < sizeof(parts) / sizeof(parts[0]); i++) {
        int64_t sum;
        if (parts[i].has && parts[i].v > 0 &&
            num_add_i64(w->node->row.used_ns, parts[i].v, &sum) == 0) {
            w->node->row.used_ns = sum;
        }
    }
}

/* The flight is over. */
static void land(struct whole *w)
{
    struct plan_flight *flight = plan_find_flight(w->host, w->attempt->run, w->attempt->attempt);
    if (flight != NULL) {
        plan_remove_flight(w->host, flight);
        plan_lease_arm_head(w->host, w->now);
    }
}

int plan_attempt_rejected(struct plan *plan, struct plan_now now, int64_t host, int64_t run,
                          uint32_t attempt, const char *why)
{
    if (plan->failed != 0) {
        return plan->failed;
    }
    char text[320];
    snprintf(text, sizeof(text), "its records were refused: %.256s", why);
    struct model_attempt none = {
        .run = run, .attempt = attempt, .outcome = OUTCOME_INVALID, .text = text};
    struct whole w = {.plan = plan, .now = now, .attempt = &none};
    w.host = plan_find_host(plan, host);
    int rc = w.host == NULL ? -ERR_NOTFOUND : plan_run_get(plan, run, &w.run);
    if (rc < 0) {
        return rc;
    }
    land(&w);
    bool waits = w.run.host == host && w.run.attempts == attempt && w.run.state != RUN_QUEUED &&
                 !model_run_is_end((int)w.run.state);
    if (!waits) {
        return 0;
    }
    w.node = plan_find_node(plan, w.run.sweep, host);
    rc = unclean(&w);
    if (rc == 0 && w.node != NULL) {
        rc = plan_node_settle(plan, now, w.node);
    }
    return rc < 0 ? rc : 0;
}

int plan_attempt_whole(struct plan *plan, struct plan_now now, int64_t host,
                       const struct model_attempt *attempt)
{
    if (plan->failed != 0) {
        return plan->failed;
    }
    struct whole w = {.plan = plan, .now = now, .attempt = attempt};
    w.host = plan_find_host(plan, host);
    int rc = w.host == NULL ? -ERR_NOTFOUND : plan_run_get(plan, attempt->run, &w.run);
    if (rc < 0) {
        return rc;
    }
    if (w.run.host != host) {
        return -ERR_DENIED;
    }
    land(&w);
    w.node = plan_find_node(plan, w.run.sweep, host);
    add_time(&w);
    rc = keep_fingerprint(&w);
    if (rc == 0) {
        rc = settle_run(&w);
    }
    if (rc == 0 && w.node != NULL) {
        rc = store_sweep_host_progress(plan->store, &w.node->row);
        rc = rc < 0 ? plan_fail(plan, rc) : plan_node_settle(plan, now, w.node);
    }
    return rc < 0 ? rc : 0;
}

/* change.c: pause, resume, cancel and retry of sweeps. */
#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "coordinator/plan/retry.h"
#include "coordinator/plan/run.h"
#include "coordinator/plan/send.h"
#include "coordinator/plan/state.h"
#include "coordinator/plan/sweep.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/sweeps.h"

#include <string.h>

static const struct {
    const char *word;
    enum plan_sweep_action action;
} actions[] = {
    {"pause", PLAN_SWEEP_PAUSE},
    {"resume", PLAN_SWEEP_RESUME},
    {"cancel", PLAN_SWEEP_CANCEL},
    {"retry", PLAN_SWEEP_RETRY},
};

int plan_sweep_action_of(const char *word, enum plan_sweep_action *out)
{
    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        if (strcmp(word, actions[i].word) == 0) {
            *out = actions[i].action;
            return 0;
        }
    }
    return -ERR_INVAL;
}

struct change {
    struct plan *plan;
    struct plan_now now;
    struct model_sweep row;
    struct plan_sweep *sweep; /* NULL: it has ended */
    const char *why;          /* "" */
    const char *who;
    struct diag *diag;
};

/* "paused by boss: the disk is changed", in scratch memory. */
static const char *reason_of(struct change *c, const char *done)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, "%s by %s%s%s", done, c->who, c->why[0] != '\0' ? ": " : "", c->why);
    const char *copy = mem_arena_strdup(plan_scratch(c->plan), buf_str(&text));
    buf_fini(&text);
    return copy != NULL ? copy : done;
}

static int set_state(struct change *c, enum sweep_state state, const char *done)
{
    c->sweep->state = state;
    c->sweep->since_mono_ns = c->now.mono_ns;
    int rc = store_sweep_set_state(c->plan->store, c->row.id, state, 0, reason_of(c, done));
    return rc < 0 ? plan_fail(c->plan, rc) : 0;
}

static int has_ended(struct change *c)
{
    return diag_error(c->diag, ERR_STATE, "%s/%lld is %s: it has ended", c->row.name,
                      (long long)c->row.number, model_sweep_word((int)c->row.state));
}

static int pause_it(struct change *c)
{
    if (c->sweep == NULL) {
        return has_ended(c);
    }
    if (c->sweep->state == SWEEP_PAUSED) {
        diag_note(c->diag, "%s is paused already", c->sweep->ref);
        return 0;
    }
    for (size_t i = 0; i < c->plan->host_count; i++) {
        plan_send_withdraw(c->plan, c->plan->hosts[i], c->row.id);
    }
    return set_state(c, SWEEP_PAUSED, "paused");
}

static int resume(struct change *c)
{
    if (c->sweep == NULL) {
        return has_ended(c);
    }
    if (c->sweep->state == SWEEP_ACTIVE) {
        diag_note(c->diag, "%s is not paused", c->sweep->ref);
        return 0;
    }
    return set_state(c, SWEEP_ACTIVE, "resumed");
}

/* --- cancel --- */

static int cancel_runs(struct change *c, const char *reason)
{
    int64_t *ids;
    size_t count;
    int rc = plan_runs_open(c->plan, c->row.id, 0, NULL, NULL, &ids, &count);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct model_run run;
        rc = plan_run_get(c->plan, ids[i], &run);
        if (rc == 0) {
            rc = plan_run_enter(c->plan, c->now, &run, RUN_CANCELLED, reason);
        }
    }
    return rc;
}

/* What the hosts hold of it is called off; those that are away are told when they come back. */
static void cancel_flights(struct change *c, const char *reason)
{
    for (size_t i = 0; i < c->plan->host_count; i++) {
        struct plan_host *host = c->plan->hosts[i];
        for (size_t k = 0; k < host->flight_count; k++) {
            struct plan_flight *flight = &host->flights[k];
            if (flight->sweep != c->row.id) {
                continue;
            }
            flight->wanted = false;
            if (host->up && flight->state != FLIGHT_SPOOLED) {
                flight->leaving = true;
                plan_add_message(c->plan, MESSAGE_CANCEL, host->id, flight->run, flight->attempt,
                                 reason);
            }
        }
    }
}

static int end_nodes(struct change *c)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->plan->host_count; i++) {
        struct plan_node *node = plan_find_node(c->plan, c->row.id, c->plan->hosts[i]->id);
        if (node != NULL) {
            node->row.finished = true;
            rc = store_sweep_host_progress(c->plan->store, &node->row);
            plan_drop_node(c->plan, node);
        }
    }
    return rc < 0 ? plan_fail(c->plan, rc) : 0;
}

static int cancel(struct change *c)
{
    if (c->sweep == NULL) {
        return has_ended(c);
    }
    const char *reason = reason_of(c, "cancelled");
    int rc = cancel_runs(c, reason);
    if (rc == 0) {
        cancel_flights(c, reason);
        rc = end_nodes(c);
    }
    if (rc < 0) {
        return rc;
    }
    rc = store_sweep_set_state(c->plan->store, c->row.id, SWEEP_CANCELLED, c->now.wall_ns, reason);
    if (rc < 0) {
        return plan_fail(c->plan, rc);
    }
    rc = plan_event(c->plan, c->now, EVENT_SWEEP_ENDED, c->row.id, 0, 0, c->who, "%s: %s",
                    c->sweep->ref, reason);
    plan_drop_sweep(c->plan, c->sweep);
    c->sweep = NULL;
    return rc;
}

/* --- retry --- */

static int retry(struct change *c)
{
    if (c->row.state == SWEEP_CANCELLED) {
        return diag_error(c->diag, ERR_STATE,
                          "%s/%lld was cancelled: submit its file again to measure the rest",
                          c->row.name, (long long)c->row.number);
    }
    int64_t n = plan_retry(c->plan, c->now, &c->row, c->diag);
    if (n < 0) {
        return (int)n;
    }
    if (n == 0) {
        return diag_error(c->diag, ERR_STATE, "%s/%lld has no %srun that ended without a result",
                          c->row.name, (long long)c->row.number,
                          diag_count(c->diag) > 0 ? "other " : "");
    }
    diag_note(c->diag, "%lld run%s made again", (long long)n, n == 1 ? " is" : "s are");
    c->sweep = plan_find_sweep(c->plan, c->row.id);
    /* A paused one stays so, for the reason that it has. */
    return c->sweep->state == SWEEP_ACTIVE ? set_state(c, SWEEP_ACTIVE, "retried") : 0;
}

static int carry_out(struct change *c, enum plan_sweep_action action)
{
    switch (action) {
    case PLAN_SWEEP_PAUSE:
        return pause_it(c);
    case PLAN_SWEEP_RESUME:
        return resume(c);
    case PLAN_SWEEP_CANCEL:
        return cancel(c);
    case PLAN_SWEEP_RETRY:
        return retry(c);
    }
    return -ERR_INVAL;
}

int plan_sweep_set(struct plan *plan, struct plan_now now, const char *sweep,
                   enum plan_sweep_action action, const char *why, const char *who, int64_t *id,
                   struct diag *diag)
{
    if (plan->failed != 0) {
        return plan->failed;
    }
    struct change c = {
        .plan = plan, .now = now, .why = why != NULL ? why : "", .who = who, .diag = diag};
    int rc = store_sweep_find(plan->store, sweep, plan_scratch(plan), &c.row);
    if (rc == -ERR_NOTFOUND) {
        return diag_error(diag, rc, "there is no sweep `%s`: `makespan sweep list` shows them",
                          sweep);
    }
    if (rc < 0) {
        return plan_fail(plan, rc);
    }
    c.sweep = plan_find_sweep(plan, c.row.id);
    rc = carry_out(&c, action);
    if (rc < 0) {
        return rc;
    }
    if (id != NULL) {
        *id = c.row.id;
    }
    return plan_event(plan, now, EVENT_SWEEP_CHANGED, c.row.id, 0, 0, who, "%s/%lld: %s%s%s",
                      c.row.name, (long long)c.row.number, actions[action].word,
                      c.why[0] != '\0' ? ": " : "", c.why);
}

/* lease.c: deadlines of flights and hosts. */
#include "coordinator/plan/lease.h"

#include "common/clock.h"
#include "common/err.h"
#include "common/num.h"
#include "coordinator/plan/node.h"
#include "coordinator/plan/run.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/sweeps.h"

#include <stdio.h>

/* --- how long an attempt may take --- */

int plan_lease_attach(struct plan *plan, struct plan_now now, struct plan_host *host,
                      struct plan_flight *flight, const struct model_run *run)
{
    struct model_cell cell;
    struct model_sweep_host row;
    int rc = store_cell_get(plan->store, run->cell, plan_scratch(plan), &cell);
    if (rc == 0) {
        rc = store_sweep_host_get(plan->store, run->sweep, run->host, plan_scratch(plan), &row);
    }
    if (rc < 0) {
        return plan_fail(plan, rc);
    }
    flight->sweep = run->sweep;
    flight->cell = run->cell;
    flight->setup_ns = cell.setup_timeout_ns;
    flight->reset_ns = cell.reset_timeout_ns;
    flight->run_ns = cell.run_timeout_ns;
    flight->check_ns = cell.check_timeout_ns;
    flight->settle_ns = row.settle_timeout_ns;
    flight->wanted = !model_run_is_end((int)run->state) && run->attempts == flight->attempt;
    plan_lease_arm(host, flight, now);
    return 0;
}

int64_t plan_lease_span(const struct plan_flight *flight, enum phase phase)
{
    struct {
        enum phase last; /* the limit holds for phases up to this one */
        int64_t limit_ns;
    } parts[] = {
        {PHASE_SETUP, flight->setup_ns},   {PHASE_RESET, flight->reset_ns},
        {PHASE_SETTLE, flight->settle_ns}, {PHASE_MEASURE, flight->run_ns},
        {PHASE_CHECK, flight->check_ns},
    };
    int64_t span = PLAN_LEASE_SLACK_S * CLOCK_SEC;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (phase <= parts[i].last && num_add_i64(span, parts[i].limit_ns, &span) < 0) {
            return PLAN_NEVER;
        }
    }
    return span;
}

static int64_t after(int64_t mono_ns, int64_t span_ns)
{
    int64_t at;
    return num_add_i64(mono_ns, span_ns, &at) < 0 ? PLAN_NEVER : at;
}

void plan_lease_arm(struct plan_host *host, struct plan_flight *flight, struct plan_now now)
{
    flight->overdue = false;
    switch (flight->state) {
    case FLIGHT_SENT:
    case FLIGHT_AWAY:
        break; /* set by whoever sends it, or lets it go */
    case FLIGHT_HELD:
        flight->due_mono_ns = PLAN_NEVER; /* until it is at the head */
        break;
    case FLIGHT_RUNNING:
    case FLIGHT_SPOOLED:
        flight->due_mono_ns = after(now.mono_ns, plan_lease_span(flight, flight->phase));
        break;
    }
    plan_lease_arm_head(host, now);
}

void plan_lease_arm_head(struct plan_host *host, struct plan_now now)
{
    struct plan_flight *head = plan_head_flight(host);
    if (head != NULL && head->due_mono_ns == PLAN_NEVER) {
        head->due_mono_ns = after(now.mono_ns, plan_lease_span(head, head->phase));
        head->since_mono_ns = now.mono_ns;
    }
}

bool plan_lease_keeps(const struct plan_host *host, struct plan_now now)
{
    const struct plan_flight *head = plan_head_flight(host);
    if (head == NULL) {
        return false;
    }
    return host->up || now.mono_ns < head->due_mono_ns;
}

/* --- losing --- */

int plan_lease_lose(struct plan *plan, struct plan_now now, struct plan_node *node,
                    const char *reason)
{
    struct plan_host *host = node->host;
    int64_t sweep = node->sweep->id;
    int64_t *ids;
    size_t count;
    int rc = plan_runs_open(plan, sweep, host->id, NULL, NULL, &ids, &count);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct model_run run;
        rc = plan_run_get(plan, ids[i], &run);
        if (rc == 0) {
            rc = plan_run_enter(plan, now, &run, RUN_NODATA, reason);
        }
    }
    for (size_t i = host->flight_count; rc == 0 && i > 0; i--) {
        struct plan_flight *flight = &host->flights[i - 1];
        if (flight->sweep != sweep) {
            continue;
        }
        flight->wanted = false;
        if (!host->up) {
            plan_remove_flight(host, flight); /* it says what it holds when it comes back */
        } else if (!flight->leaving && flight->state != FLIGHT_SPOOLED) {
            flight->leaving = true;
            plan_add_message(plan, MESSAGE_CANCEL, host->id, flight->run, flight->attempt, reason);
        }
    }
    return rc < 0 ? rc : plan_node_end(plan, now, node);
}

int plan_lease_revoke(struct plan *plan, struct plan_now now, struct plan_host *host)
{
    int rc = 0;
    while (rc == 0 && host->node_count > 0) {
        rc = plan_lease_lose(plan, now, host->nodes[host->node_count - 1], PLAN_REVOKED_TEXT);
    }
    if (rc == 0) {
        host->flight_count = 0;
        host->room = 0;
    }
    return rc;
}

/* The host could not be served for too long. */
static int lose_node(struct plan *plan, struct plan_now now, struct plan_node *node)
{
    const struct plan_host *host = node->host;
    char age[32];
    char reason[128];
    num_duration_text(age, sizeof(age), plan->conf.lost_after_ns);
    snprintf(reason, sizeof(reason), "the host %s for %s",
             !host->up                     ? "was not connected"
             : host->state == HOST_DRAINED ? "was drained"
                                           : "took no assignment",
             age);
    return plan_lease_lose(plan, now, node, reason);
}

/* --- what is due --- */

static int not_taken(struct plan *plan, struct plan_now now, struct plan_host *host,
                     struct plan_flight *flight)
{
    char age[32];
    char reason[96];
    num_duration_text(age, sizeof(age), plan->conf.take_ns);
    snprintf(reason, sizeof(reason), "the worker did not take it within %s", age);
    plan_add_message(plan, MESSAGE_WITHDRAW, host->id, flight->run, flight->attempt, NULL);
    bool wanted = flight->wanted;
    uint32_t attempt = flight->attempt;
    struct model_run run;
    int rc = plan_run_get(plan, flight->run, &run);
    plan_remove_flight(host, flight);
    plan_lease_arm_head(host, now);
    if (rc == 0 && wanted && run.state == RUN_SENT && run.attempts == attempt) {
        rc = plan_run_again(plan, now, &run, reason);
    }
    return rc == -ERR_NOTFOUND ? 0 : rc;
}

static int say_overdue(struct plan *plan, struct plan_now now, struct plan_host *host,
                       struct plan_flight *flight)
{
    flight->overdue = true;
    const char *phase = vocab_phase((int)flight->phase);
    return plan_event(plan, now, EVENT_RUN_STATE, flight->sweep, host->id, flight->run, NULL,
                      "overdue: past its expected end, in %s", phase != NULL ? phase : "?");
}

static int lose_overdue(struct plan *plan, struct plan_now now, struct plan_host *host,
                        struct plan_flight *flight)
{
    struct plan_node *node = plan_find_node(plan, flight->sweep, host->id);
    char age[32];
    char reason[96];
    num_duration_text(age, sizeof(age), plan->conf.lost_after_ns);
    snprintf(reason, sizeof(reason), "an attempt was overdue for %s", age);
    if (node != NULL) {
        return plan_lease_lose(plan, now, node, reason);
    }
    /* Nobody waits for it: the host is told once more and is free. */
    plan_add_message(plan, MESSAGE_CANCEL, host->id, flight->run, flight->attempt, reason);
    plan_remove_flight(host, flight);
    plan_lease_arm_head(host, now);
    return 0;
}

static void earlier(int64_t *next, int64_t at)
{
    if (at < *next) {
        *next = at;
    }
}

/* One flight: 1 when the list has changed. */
static int flight_turn(struct plan *plan, struct plan_now now, struct plan_host *host,
                       struct plan_flight *flight, int64_t *next)
{
    if (flight->due_mono_ns == PLAN_NEVER || flight->unsent) {
        return 0;
    }
    bool due = now.mono_ns >= flight->due_mono_ns;
    if (flight->state == FLIGHT_SENT) {
        if (!host->up) {
            return 0; /* a minute of link: what it holds is asked when it comes back */
        }
        if (due) {
            int rc = not_taken(plan, now, host, flight);
            return rc < 0 ? rc : 1;
        }
        earlier(next, flight->due_mono_ns);
        return 0;
    }
    if (!due) {
        earlier(next, flight->due_mono_ns);
        return 0;
    }
    if (!flight->overdue) {
        int rc = say_overdue(plan, now, host, flight);
        if (rc < 0) {
            return rc;
        }
    }
    int64_t lost = after(flight->due_mono_ns, plan->conf.lost_after_ns);
    if (!host->up) {
        return 0; /* the host's own limit holds */
    }
    if (now.mono_ns >= lost) {
        flight->due_mono_ns = after(now.mono_ns, plan->conf.lost_after_ns);
        int rc = lose_overdue(plan, now, host, flight);
        return rc < 0 ? rc : 1;
    }
    earlier(next, lost);
    return 0;
}

static bool can_be_served(const struct plan_host *host)
{
    return host->up && host->state == HOST_ACTIVE &&
           (host->room > 0 || plan_head_flight(host) != NULL);
}

static int host_turn(struct plan *plan, struct plan_now now, struct plan_host *host, int64_t *next)
{
    for (size_t i = 0; i < host->flight_count;) {
        int rc = flight_turn(plan, now, host, &host->flights[i], next);
        if (rc < 0) {
            return rc;
        }
        i = rc > 0 ? 0 : i + 1;
    }
    if (can_be_served(host)) {
        host->stuck_mono_ns = PLAN_NEVER;
        return 0;
    }
    if (host->stuck_mono_ns == PLAN_NEVER) {
        host->stuck_mono_ns = host->up ? now.mono_ns : host->link_mono_ns;
    }
    for (size_t i = host->node_count; i > 0; i--) {
        struct plan_node *node = host->nodes[i - 1];
        int64_t since = host->stuck_mono_ns;
        if (node->since_mono_ns > since) {
            since = node->since_mono_ns; /* a younger sweep has its own time */
        }
        int64_t lost = after(since, plan->conf.lost_after_ns);
        if (now.mono_ns < lost) {
            earlier(next, lost);
        } else if (lose_node(plan, now, node) < 0) {
            return plan->failed;
        }
    }
    return 0;
}

int64_t plan_lease_turn(struct plan *plan, struct plan_now now)
{
    int64_t next = PLAN_NEVER;
    for (size_t i = 0; i < plan->host_count && plan->failed == 0; i++) {
        if (host_turn(plan, now, plan->hosts[i], &next) < 0) {
            break;
        }
    }
    return next;
}

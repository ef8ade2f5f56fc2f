/* fleet.c: what workers say: links, room, what they took, refused and are at. What an admin does to
 * hosts is in admin.c, whole attempts are in attempt.c. */
#include "coordinator/plan/fleet.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "coordinator/plan/lease.h"
#include "coordinator/plan/node.h"
#include "coordinator/plan/run.h"
#include "coordinator/plan/send.h"
#include "coordinator/plan/state.h"
#include "coordinator/store/attempts.h"
#include "coordinator/store/hosts.h"

#include <stdio.h>
#include <stdlib.h>

/* --- what a worker holds --- */

struct held_case {
    struct plan *plan;
    struct plan_now now;
    struct plan_host *host;
    const struct plan_held *held;
    struct model_run run;
};

static enum plan_flight_state flight_state(enum plan_held_state state)
{
    switch (state) {
    case PLAN_HELD_QUEUED:
        return FLIGHT_HELD;
    case PLAN_HELD_RUNNING:
        return FLIGHT_RUNNING;
    case PLAN_HELD_SPOOLED:
        break;
    }
    return FLIGHT_SPOOLED;
}

static struct plan_flight *add_held(struct held_case *c)
{
    struct plan_flight *flight = plan_add_flight(c->host, c->held->run, c->held->attempt, c->now);
    flight->state = flight_state(c->held->state);
    flight->phase = c->held->state == PLAN_HELD_RUNNING ? c->held->phase : PHASE_IDLE;
    return flight;
}

/* It is at the host, and nobody wants it. */
static void turn_away(struct held_case *c, struct plan_flight *flight, const char *why)
{
    flight->leaving = true;
    bool begun = flight->state != FLIGHT_HELD;
    plan_add_message(c->plan, begun ? MESSAGE_CANCEL : MESSAGE_WITHDRAW, c->host->id, flight->run,
                     flight->attempt, begun ? why : NULL);
}

/* The run's steps to RUNNING, since the worker holds its last attempt. */
static int step_to_running(struct plan *plan, struct plan_now now, struct plan_flight *flight,
                           struct model_run *run, const char *reason)
{
    int rc = 0;
    run->expect_wall_ns = now.wall_ns;
    int64_t span = plan_lease_span(flight, PHASE_IDLE);
    if (span < INT64_MAX - now.wall_ns) {
        run->expect_wall_ns += span;
    }
    if (run->state == RUN_QUEUED) {
        rc = plan_run_enter(plan, now, run, RUN_SENT, "the worker holds it");
    }
    if (rc == 0 && run->state != RUN_RUNNING) {
        rc = plan_run_enter(plan, now, run, RUN_RUNNING, reason);
    }
    return rc;
}

/* Whether the run waits for the attempt: a run that is queued again may have been given it whole
 * already, and only the acknowledgement was lost. */
static int is_awaited(struct held_case *c, bool *awaited)
{
    const struct model_run *run = &c->run;
    *awaited = !model_run_is_end((int)run->state) && run->attempts == c->held->attempt;
    if (!*awaited || run->state != RUN_QUEUED) {
        return 0;
    }
    struct store_intake intake;
    int rc = store_intake_get(c->plan->store, run->id, run->attempts, &intake);
    if (rc < 0) {
        return rc == -ERR_NOTFOUND ? 0 : plan_fail(c->plan, rc);
    }
    *awaited = !intake.whole;
    return 0;
}

/* A run of this host: is the held attempt the one that it waits for? */
static int adopt_known(struct held_case *c)
{
    struct model_run *run = &c->run;
    bool awaited;
    int waits = is_awaited(c, &awaited);
    if (waits < 0 || (!awaited && c->held->state == PLAN_HELD_SPOOLED)) {
        return waits; /* its records come, and are kept or known */
    }
    struct plan_flight *flight = add_held(c);
    int rc = plan_lease_attach(c->plan, c->now, c->host, flight, run);
    if (rc < 0) {
        return rc;
    }
    flight->wanted = awaited;
    if (awaited) {
        return step_to_running(c->plan, c->now, flight, run, "attached again");
    }
    if (run->state == RUN_NODATA && run->attempts == c->held->attempt &&
        flight->state == FLIGHT_RUNNING) {
        return 0; /* it may still come late */
    }
    turn_away(c, flight, model_run_word((int)run->state));
    return 0;
}

static int adopt(struct held_case *c)
{
    if (plan_find_flight(c->host, c->held->run, c->held->attempt) != NULL) {
        return 0; /* said twice */
    }
    int rc = plan_run_get(c->plan, c->held->run, &c->run);
    if (rc < 0 && rc != -ERR_NOTFOUND) {
        return rc;
    }
    bool known = rc == 0 && c->held->attempt > 0 && c->held->attempt <= c->run.attempts;
    if (known && c->run.host == c->host->id) {
        return adopt_known(c);
    }
    if (c->held->state != PLAN_HELD_SPOOLED) {
        turn_away(c, add_held(c), "it was not handed out to this host");
        plan_lease_arm_head(c->host, c->now);
    }
    return plan_event(c->plan, c->now, EVENT_REFUSED, 0, c->host->id, 0, c->host->name,
                      "holds attempt %u of run %lld, which was not handed out to it",
                      c->held->attempt, (long long)c->held->run);
}

/* What it had and does not have any more. */
static int give_up_rest(struct plan *plan, struct plan_now now, struct plan_host *host)
{
    int64_t *ids;
    size_t count;
    int rc = plan_runs_open(plan, 0, host->id, NULL, NULL, &ids, &count);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct model_run run;
        rc = plan_run_get(plan, ids[i], &run);
        if (rc == 0 && plan_find_flight(host, run.id, run.attempts) == NULL) {
            rc = plan_run_again(plan, now, &run, "the worker does not hold it");
        }
    }
    return rc;
}

static int compare_hello(struct plan *plan, struct plan_now now, struct plan_host *host,
                         const struct plan_hello *hello)
{
    /* What was known of the old flights is kept where the worker holds them still. */
    struct plan_flight *old = host->flights;
    size_t old_count = host->flight_count;
    host->flights = NULL;
    host->flight_count = host->flight_room = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < hello->held_count; i++) {
        struct held_case c = {.plan = plan, .now = now, .host = host, .held = &hello->held[i]};
        rc = adopt(&c);
    }
    for (size_t i = 0; i < old_count; i++) {
        struct plan_flight *flight = plan_find_flight(host, old[i].run, old[i].attempt);
        if (flight != NULL) {
            flight->out_of_order = old[i].out_of_order;
        }
    }
    free(old);
    return rc == 0 ? give_up_rest(plan, now, host) : rc;
}

/* --- links --- */

static int write_host(struct plan *plan, struct plan_now now, int64_t host,
                      const struct plan_hello *hello)
{
    int rc = store_host_seen(plan->store, host, now.wall_ns, hello->boot_id, hello->visit);
    if (rc == 0) {
        rc = store_host_set_identity(plan->store, host, hello->machine_id, hello->version);
    }
    if (rc == 0 && (hello->cpus_milli > 0 || hello->memory_bytes > 0)) {
        struct model_host row;
        rc = store_host_get(plan->store, host, plan_scratch(plan), &row);
        if (rc == 0) {
            rc = store_host_set_capacity(
                plan->store, host, hello->cpus_milli > 0 ? hello->cpus_milli : row.cpus_milli,
                hello->memory_bytes > 0 ? hello->memory_bytes : row.memory_bytes);
        }
    }
    if (rc == 0 && hello->fact_count > 0) {
        rc = store_host_set_facts(plan->store, host, hello->facts, hello->fact_count);
    }
    return rc < 0 ? plan_fail(plan, rc) : 0;
}

static void warn_of_clones(const struct plan *plan, const struct plan_host *host,
                           const char *machine_id, struct diag *diag)
{
    for (size_t i = 0; machine_id != NULL && i < plan->host_count; i++) {
        const struct plan_host *other = plan->hosts[i];
        if (other != host && other->state != HOST_REVOKED &&
            str_eq(other->machine_id, machine_id) && !str_eq(other->boot_id, host->boot_id)) {
            diag_warn(diag,
                      "host `%s` has the same machine id: one may be a copy of the other's disk",
                      other->name);
        }
    }
}

int plan_host_up(struct plan *plan, struct plan_now now, int64_t id, const struct plan_hello *hello,
                 struct diag *diag)
{
    if (plan->failed != 0) {
        return plan->failed;
    }
    struct model_host row;
    int rc = store_host_get(plan->store, id, plan_scratch(plan), &row);
    if (rc < 0) {
        return rc == -ERR_NOTFOUND ? rc : plan_fail(plan, rc);
    }
    struct plan_host *host = plan_keep_host(plan, &row, now);
    if (row.state == HOST_REVOKED) {
        return diag_error(diag, ERR_DENIED, "host `%s` was revoked", row.name);
    }
    rc = write_host(plan, now, id, hello);
    if (rc < 0) {
        return rc;
    }
    if (hello->boot_id != NULL) {
        plan_set_machine(plan, host, hello->boot_id);
    }
    if (hello->machine_id != NULL) {
        free(host->machine_id);
        host->machine_id = mem_xstrdup(hello->machine_id);
    }
    warn_of_clones(plan, host, hello->machine_id, diag);
    host->up = true;
    host->link_mono_ns = host->heard_mono_ns = now.mono_ns;
    host->room = hello->room;
    host->no_room[0] = '\0';
    rc = compare_hello(plan, now, host, hello);
    if (rc == 0) {
        rc = plan_event(plan, now, EVENT_HOST_UP, 0, id, 0, host->name,
                        "connected, holds %zu attempt%s, room for %u", hello->held_count,
                        hello->held_count == 1 ? "" : "s", hello->room);
    }
    if (rc < 0) {
        host->up = false; /* the link never counts: nobody will say that it is gone */
    }
    return rc;
}

int plan_host_down(struct plan *plan, struct plan_now now, int64_t id, const char *why)
{
    struct plan_host *host = plan_find_host(plan, id);
    if (host == NULL || !host->up) {
        return 0;
    }
    host->up = false;
    host->link_mono_ns = now.mono_ns;
    host->room = 0;
    host->no_room[0] = '\0';
    if (plan->failed != 0) {
        return plan->failed;
    }
    int rc = store_host_seen(plan->store, id, now.wall_ns, NULL, 0);
    if (rc < 0) {
        return plan_fail(plan, rc);
    }
    return plan_event(plan, now, EVENT_HOST_DOWN, 0, id, 0, host->name, "%s", why);
}

void plan_host_beat(struct plan *plan, struct plan_now now, int64_t id)
{
    struct plan_host *host = plan_find_host(plan, id);
    if (host != NULL) {
        host->heard_mono_ns = now.mono_ns;
    }
}

void plan_ready(struct plan *plan, struct plan_now now, int64_t id, uint32_t room)
{
    struct plan_host *host = plan_find_host(plan, id);
    if (host == NULL || !host->up || host->state == HOST_REVOKED) {
        return;
    }
    /* What was sent and is not taken was on its way when the worker counted. */
    uint32_t on_way = 0;
    for (size_t i = 0; i < host->flight_count; i++) {
        on_way += host->flights[i].state == FLIGHT_SENT;
    }
    host->room = room > on_way ? room - on_way : 0;
    host->heard_mono_ns = now.mono_ns;
}

void plan_no_room(struct plan *plan, struct plan_now now, int64_t id, const char *text)
{
    struct plan_host *host = plan_find_host(plan, id);
    if (host == NULL || !host->up) {
        return;
    }
    if (host->no_room[0] == '\0') {
        host->no_room_mono_ns = now.mono_ns;
    }
    str_copy(host->no_room, sizeof(host->no_room), text != NULL ? text : "");
}

/* --- one attempt --- */

/* The flight of an attempt that the host speaks of; one that was given up is taken up again, one
 * that nobody wants is turned away. *out is NULL when it is not known at all. */
static int speak_of(struct plan *plan, struct plan_now now, struct plan_host *host, int64_t run,
                    uint32_t attempt, enum plan_held_state state, struct plan_flight **out)
{
    *out = plan_find_flight(host, run, attempt);
    if (*out != NULL) {
        return 0;
    }
    struct plan_held held = {.run = run, .attempt = attempt, .state = state};
    struct held_case c = {.plan = plan, .now = now, .host = host, .held = &held};
    int rc = adopt(&c);
    *out = plan_find_flight(host, run, attempt);
    return rc;
}

/* The host, if it may speak. 1, 0: not (a message of a link that is gone or will be closed at the end
 * of the turn), or the turn's failure. */
static int heard(struct plan *plan, struct plan_now now, int64_t id, struct plan_host **host)
{
    *host = plan_find_host(plan, id);
    if (plan->failed != 0) {
        return plan->failed;
    }
    if (*host == NULL || !(*host)->up || (*host)->state == HOST_REVOKED) {
        return 0;
    }
    (*host)->heard_mono_ns = now.mono_ns;
    return 1;
}

int plan_taken(struct plan *plan, struct plan_now now, int64_t id, int64_t run, uint32_t attempt)
{
    struct plan_host *host;
    struct plan_flight *flight;
    int rc = heard(plan, now, id, &host);
    if (rc > 0) {
        rc = speak_of(plan, now, host, run, attempt, PLAN_HELD_QUEUED, &flight);
    } else {
        return rc;
    }
    if (rc < 0 || flight == NULL || flight->state != FLIGHT_SENT) {
        return rc;
    }
    flight->state = FLIGHT_HELD;
    flight->since_mono_ns = now.mono_ns;
    plan_lease_arm(host, flight, now);
    struct model_run row;
    rc = plan_run_get(plan, run, &row);
    if (rc == 0 && flight->wanted && row.state == RUN_SENT) {
        rc = step_to_running(plan, now, flight, &row, NULL);
    }
    return rc;
}

int plan_refused(struct plan *plan, struct plan_now now, int64_t id, int64_t run, uint32_t attempt,
                 int code, const char *text)
{
    struct plan_host *host;
    int rc = heard(plan, now, id, &host);
    if (rc <= 0) {
        return rc;
    }
    struct plan_flight *flight = plan_find_flight(host, run, attempt);
    if (flight == NULL) {
        return 0;
    }
    bool wanted = flight->wanted;
    plan_remove_flight(host, flight);
    plan_lease_arm_head(host, now);
    if (code != ERR_STATE && code != ERR_DENIED) {
        host->room = 0; /* until it says READY */
    }
    struct model_run row;
    rc = plan_run_get(plan, run, &row);
    bool waits = rc == 0 && wanted && row.attempts == attempt && row.state != RUN_QUEUED &&
                 !model_run_is_end((int)row.state);
    if (!waits) {
        return rc == -ERR_NOTFOUND ? 0 : rc;
    }
    char reason[512];
    struct plan_node *node = plan_find_node(plan, row.sweep, id);
    if (code == ERR_DENIED && node != NULL) {
        snprintf(reason, sizeof(reason), "the worker refuses: %.400s", text);
        rc = plan_node_fail_cells(plan, now, node, row.cell, CELL_SKIPPED, reason);
    } else {
        snprintf(reason, sizeof(reason), "%s: %.400s",
                 code == ERR_STATE ? "withdrawn" : "the worker has no room", text);
    }
    if (rc == 0) {
        rc = plan_run_again(plan, now, &row, reason);
    }
    if (rc == 0 && node != NULL) {
        rc = plan_node_settle(plan, now, node);
    }
    return rc < 0 ? rc : 0;
}

int plan_phase(struct plan *plan, struct plan_now now, int64_t id, int64_t run, uint32_t attempt,
               enum phase phase, const char *text)
{
    struct plan_host *host;
    struct plan_flight *flight;
    int rc = heard(plan, now, id, &host);
    if (rc <= 0 || phase == PHASE_IDLE) {
        return rc < 0 ? rc : 0;
    }
    if (phase == PHASE_FLUSH && plan_find_flight(host, run, attempt) == NULL) {
        return 0; /* it was whole before this was said */
    }
    rc = speak_of(plan, now, host, run, attempt, PLAN_HELD_RUNNING, &flight);
    if (rc < 0 || flight == NULL || flight->state == FLIGHT_SPOOLED) {
        return rc;
    }
    if (flight->phase != phase || flight->state != FLIGHT_RUNNING) {
        flight->since_mono_ns = now.mono_ns;
    }
    flight->phase = phase;
    flight->state = phase == PHASE_FLUSH ? FLIGHT_SPOOLED : FLIGHT_RUNNING;
    str_copy(flight->text, sizeof(flight->text), text != NULL ? text : "");
    plan_lease_arm(host, flight, now);
    struct model_run row;
    rc = plan_run_get(plan, run, &row);
    bool open = rc == 0 && !model_run_is_end((int)row.state) && row.attempts == attempt;
    if (open && flight->wanted && row.state != RUN_RUNNING) {
        rc = step_to_running(plan, now, flight, &row, NULL);
    }
    return rc == -ERR_NOTFOUND ? 0 : rc;
}

void plan_beat_phase(struct plan *plan, struct plan_now now, int64_t id, int64_t run,
                     enum phase phase, int64_t elapsed_ns)
{
    struct plan_host *host;

    if (heard(plan, now, id, &host) <= 0 || phase == PHASE_IDLE || phase == PHASE_FLUSH) {
        return;
    }
    for (size_t i = 0; i < host->flight_count; i++) {
        struct plan_flight *flight = &host->flights[i];
        if (flight->run == run && flight->state == FLIGHT_RUNNING && flight->phase != phase) {
            flight->phase = phase;
            flight->since_mono_ns = now.mono_ns - (elapsed_ns > 0 ? elapsed_ns : 0);
            flight->text[0] = '\0';
            plan_lease_arm(host, flight, now);
        }
    }
}

int plan_away(struct plan *plan, struct plan_now now, int64_t id, int64_t run, uint32_t attempt,
              int64_t until_ns, const char *text)
{
    struct plan_host *host;
    int rc = heard(plan, now, id, &host);
    if (rc <= 0) {
        return rc;
    }
    struct plan_flight *flight = plan_find_flight(host, run, attempt);
    struct model_run row;
    rc = flight != NULL ? plan_run_get(plan, run, &row) : -ERR_NOTFOUND;
    if (rc < 0) {
        return rc;
    }
    if (!flight->wanted || (row.state != RUN_RUNNING && row.state != RUN_AWAY)) {
        return -ERR_DENIED;
    }
    int64_t longest = 24 * CLOCK_HOUR;
    int64_t span = until_ns < 0 ? 0 : until_ns > longest ? longest : until_ns;
    flight->state = FLIGHT_AWAY;
    flight->since_mono_ns = now.mono_ns;
    flight->due_mono_ns = now.mono_ns + span;
    flight->overdue = false;
    row.expect_wall_ns = now.wall_ns + span;
    if (row.state == RUN_RUNNING) {
        rc = plan_run_enter(plan, now, &row, RUN_AWAY, text);
    }
    if (rc == 0) {
        plan_add_message(plan, MESSAGE_AWAY_OK, id, run, attempt, NULL);
    }
    return rc;
}

bool plan_out_of_order(const struct plan *plan, int64_t run, uint32_t attempt)
{
    for (size_t i = 0; i < plan->host_count; i++) {
        const struct plan_flight *flight = plan_find_flight(plan->hosts[i], run, attempt);
        if (flight != NULL) {
            return flight->out_of_order;
        }
    }
    return false;
}

/* now.c: flights and waits as JSON: each with its owner and its age. */
#include "coordinator/plan/now.h"

#include "common/err.h"
#include "common/jobs.h"
#include "common/mem.h"
#include "coordinator/plan/lease.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/runs.h"
#include "coordinator/store/sweeps.h"

/* --- flights --- */

static const char *state_word(const struct plan_host *host, const struct plan_flight *flight)
{
    if (!host->up) {
        return "unreachable";
    }
    switch (flight->state) {
    case FLIGHT_SENT:
        return "sent";
    case FLIGHT_HELD:
        return "queued";
    case FLIGHT_RUNNING:
        return "running";
    case FLIGHT_AWAY:
        return "away";
    case FLIGHT_SPOOLED:
        break;
    }
    return "delivering";
}

/* What it is: names, jobs. Unknown ones are left out. */
static int describe(struct plan *plan, const struct plan_flight *flight, struct mem_arena *arena,
                    json_t *o)
{
    struct model_run run;
    struct model_cell cell;
    struct model_workload workload;
    struct model_variant variant;
    char jobs[16];
    if (flight->sweep == 0) {
        return 0;
    }
    int rc = store_run_get(plan->store, flight->run, arena, &run);
    if (rc == 0) {
        rc = store_cell_get(plan->store, run.cell, arena, &cell);
    }
    if (rc == 0) {
        rc = store_workload_get(plan->store, cell.workload, arena, &workload);
    }
    if (rc == 0) {
        rc = store_variant_get(plan->store, cell.variant, arena, &variant);
    }
    if (rc == 0) {
        json_set(o, "workload", json_string(workload.name));
        json_set(o, "variant", json_string(variant.name));
        json_set(o, "jobs", json_string(jobs_text(jobs, sizeof(jobs), cell.jobs)));
        json_set(o, "warmup", json_boolean(run.warmup));
    }
    return rc == -ERR_NOTFOUND ? 0 : rc;
}

static json_t *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *flight_json(const struct plan_host *host, const struct plan_flight *flight,
                           struct plan_now now)
{
    json_t *o = json_object();
    bool running = flight->state == FLIGHT_RUNNING;
    int64_t since = host->up ? flight->since_mono_ns : host->link_mono_ns;
    int64_t late = flight->due_mono_ns != PLAN_NEVER && now.mono_ns > flight->due_mono_ns
                       ? now.mono_ns - flight->due_mono_ns
                       : 0;
    json_set(o, "run", json_integer(flight->run));
    json_set(o, "attempt", json_integer((json_int_t)flight->attempt));
    json_set(o, "state", json_string(state_word(host, flight)));
    json_set(o, "phase", running ? text_or_null(vocab_phase((int)flight->phase)) : json_null());
    json_set(o, "text", text_or_null(flight->text));
    json_set(o, "age_ns", json_integer(now.mono_ns - since));
    json_set(o, "overdue_ns", json_integer(flight->state == FLIGHT_SENT ? 0 : late));
    return o;
}

int now_flights(struct plan *plan, struct plan_now now, const struct plan_host *host, int64_t sweep,
                json_t **out)
{
    json_t *list = json_array();
    struct mem_arena *arena = mem_arena_new(0);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < host->flight_count; i++) {
        const struct plan_flight *flight = &host->flights[i];
        if (sweep != 0 && flight->sweep != sweep) {
            continue;
        }
        json_t *o = flight_json(host, flight, now);
        rc = describe(plan, flight, arena, o);
        json_array_append_new(list, o);
    }
    mem_arena_free(&arena);
    *out = list;
    return rc;
}

/* --- waits --- */

static json_t *wait_json(const char *what, const char *owner, int64_t age_ns)
{
    json_t *o = json_object();
    json_set(o, "for", json_string(what));
    json_set(o, "owner", json_string(owner));
    json_set(o, "age_ns", json_integer(age_ns));
    return o;
}

static const struct plan_host *machine_keeper(const struct plan *plan, struct plan_now now,
                                              const struct plan_host *host)
{
    for (size_t i = 0; host->machine != 0 && i < plan->host_count; i++) {
        const struct plan_host *other = plan->hosts[i];
        if (other != host && other->machine == host->machine && plan_lease_keeps(other, now)) {
            return other;
        }
    }
    return NULL;
}

static const struct plan_sweep *served_now(const struct plan *plan, const struct plan_host *host)
{
    const struct plan_flight *head = plan_head_flight(host);
    return head != NULL ? plan_find_sweep(plan, head->sweep) : NULL;
}

json_t *now_wait(const struct plan *plan, struct plan_now now, const struct plan_node *node)
{
    const struct plan_host *host = node->host;
    if (!host->up) {
        return wait_json("the host's connection", host->name, now.mono_ns - host->link_mono_ns);
    }
    for (size_t i = 0; i < host->flight_count; i++) {
        if (host->flights[i].sweep == node->sweep->id) {
            return json_null();
        }
    }
    if (node->sweep->state == SWEEP_PAUSED) {
        return wait_json("the sweep to be resumed", "operator",
                         now.mono_ns - node->sweep->since_mono_ns);
    }
    if (host->state == HOST_DRAINED) {
        int64_t since = host->stuck_mono_ns != PLAN_NEVER ? host->stuck_mono_ns : now.mono_ns;
        return wait_json("the host to be resumed", "operator", now.mono_ns - since);
    }
    int64_t age = now.mono_ns - node->since_mono_ns;
    const struct plan_sweep *other = served_now(plan, host);
    if (other != NULL) {
        return wait_json("another sweep", other->ref, age);
    }
    const struct plan_host *keeper = machine_keeper(plan, now, host);
    if (keeper != NULL) {
        return wait_json("the machine", keeper->name, age);
    }
    if (host->no_room[0] != '\0') {
        return wait_json(host->no_room, host->name, now.mono_ns - host->no_room_mono_ns);
    }
    if (host->room == 0) {
        return wait_json("room at the worker", host->name, age);
    }
    return wait_json("its turn", "coordinator", age);
}

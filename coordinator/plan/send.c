/* send.c: from the scheduler's picks to assignments, and the messages of a turn. */
#include "coordinator/plan/send.h"

#include "common/err.h"
#include "common/log.h"
#include "common/mem.h"
#include "coordinator/plan/attempt.h"
#include "coordinator/plan/lease.h"
#include "coordinator/plan/node.h"
#include "coordinator/plan/run.h"
#include "coordinator/store/blobs.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/runs.h"
#include "coordinator/store/sweeps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- one assignment --- */

static int hand_out(struct plan *plan, struct plan_now now, struct plan_node *node)
{
    struct plan_host *host = node->host;
    struct model_run run;
    int rc = store_run_next(plan->store, node->row.sweep, host->id, node->from_block,
                            plan_scratch(plan), &run);
    if (rc < 0) {
        return plan_fail(plan, rc);
    }
    run.attempts++;
    run.expect_wall_ns = now.wall_ns + plan->conf.take_ns;
    rc = plan_run_enter(plan, now, &run, RUN_SENT, NULL);
    if (rc < 0) {
        return rc;
    }
    struct plan_flight *flight = plan_add_flight(host, run.id, run.attempts, now);
    flight->state = FLIGHT_SENT;
    flight->unsent = true;
    flight->out_of_order = run.attempts > 1 && run.slot < node->top_slot;
    flight->due_mono_ns = now.mono_ns + plan->conf.take_ns;
    plan_add_message(plan, MESSAGE_ASSIGN, host->id, run.id, run.attempts, NULL);
    node->from_block = run.block;
    node->top_slot = run.slot > node->top_slot ? run.slot : node->top_slot;
    node->since_mono_ns = now.mono_ns;
    host->room--;
    host->served = ++plan->served;
    host->serving = node->sweep->id;
    return plan_lease_attach(plan, now, host, flight, &run);
}

/* The picked node, with a block drawn when none waits. 1: a run was handed out; 0: there was
 * nothing left, and the node may be gone. */
static int serve(struct plan *plan, struct plan_now now, struct plan_node *node)
{
    struct plan_host *host = node->host;
    if (node->queued == 0) {
        int64_t n = plan_node_draw(plan, now, node);
        if (n <= 0) {
            return n < 0 ? plan->failed : 0;
        }
    }
    if (host->serving != 0 && host->serving != node->sweep->id) {
        struct plan_node *before = plan_find_node(plan, host->serving, host->id);
        int rc = before != NULL ? plan_node_break(plan, now, before) : 0;
        if (rc < 0) {
            return rc;
        }
    }
    int rc = hand_out(plan, now, node);
    return rc < 0 ? rc : 1;
}

/* --- the scheduler's view --- */

struct view {
    struct sched_host *hosts;
    struct plan_host **plan_hosts;
    size_t host_count;
    struct sched_work *work;
    struct plan_node **nodes; /* of each work */
    struct sched_pick *picks;
};

static int compare_machines(const void *pa, const void *pb)
{
    const struct plan_host *a = *(struct plan_host *const *)pa;
    const struct plan_host *b = *(struct plan_host *const *)pb;
    if (a->machine != b->machine) {
        return a->machine < b->machine ? -1 : 1;
    }
    return a->id < b->id ? -1 : a->id > b->id;
}

static bool has_work(const struct plan_node *node)
{
    return node->sweep->state == SWEEP_ACTIVE && (node->queued > 0 || !plan_node_exhausted(node));
}

static void view_hosts(const struct plan *plan, struct plan_now now, struct view *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->host_count; i++) {
        const struct plan_host *host = v->plan_hosts[i];
        struct sched_host *s = &v->hosts[i];
        s->ready = host->up && host->state == HOST_ACTIVE;
        s->room = host->room;
        s->held = host->up ? (uint32_t)plan_count_flights(host) : 0;
        s->keeps = plan_lease_keeps(host, now);
        s->machine = host->machine;
        s->served = host->served;
        s->serving = host->serving;
        s->work = &v->work[n];
        s->work_count = 0;
        if (!s->ready) {
            continue;
        }
        for (size_t k = 0; k < host->node_count; k++) {
            struct plan_node *node = host->nodes[k];
            if (has_work(node)) {
                v->nodes[n] = node;
                v->work[n++] = (struct sched_work){node->sweep->id, node->sweep->priority,
                                                   node->sweep->id, plan_node_in_block(node)};
                s->work_count++;
            }
        }
    }
    (void)plan;
}

static int decide(struct plan *plan, struct plan_now now, struct view *v, bool *more)
{
    view_hosts(plan, now, v);
    size_t n = sched_decide(v->hosts, v->host_count, PLAN_AHEAD, v->picks);
    *more = n > 0;
    for (size_t i = 0; i < n; i++) {
        const struct sched_host *host = &v->hosts[v->picks[i].host];
        size_t work = (size_t)(host->work - v->work) + v->picks[i].work;
        int rc = serve(plan, now, v->nodes[work]);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* --- a sweep of higher priority waits --- */

void plan_send_withdraw(struct plan *plan, struct plan_host *host, int64_t sweep)
{
    for (size_t i = 0; i < host->flight_count; i++) {
        struct plan_flight *flight = &host->flights[i];
        bool waiting = flight->state == FLIGHT_SENT || flight->state == FLIGHT_HELD;
        if (waiting && !flight->leaving && (sweep == 0 || flight->sweep == sweep)) {
            flight->leaving = true;
            plan_add_message(plan, MESSAGE_WITHDRAW, host->id, flight->run, flight->attempt, NULL);
        }
    }
}

/* What is in the worker's queue behind the one being made would go before it. */
static void make_way(struct plan *plan, struct plan_host *host)
{
    int best = INT32_MAX;
    for (size_t i = 0; i < host->node_count; i++) {
        if (has_work(host->nodes[i]) && host->nodes[i]->sweep->priority < best) {
            best = host->nodes[i]->sweep->priority;
        }
    }
    const struct plan_flight *head = plan_head_flight(host);
    for (size_t i = 0; i < host->flight_count; i++) {
        struct plan_flight *flight = &host->flights[i];
        const struct plan_node *node = plan_find_node(plan, flight->sweep, host->id);
        if (flight != head && flight->state == FLIGHT_HELD && !flight->leaving && node != NULL &&
            node->sweep->priority > best) {
            flight->leaving = true;
            plan_add_message(plan, MESSAGE_WITHDRAW, host->id, flight->run, flight->attempt, NULL);
        }
    }
}

int plan_send_turn(struct plan *plan, struct plan_now now)
{
    struct view v = {.host_count = plan->host_count};
    size_t nodes = 0;
    v.plan_hosts = mem_xarray(v.host_count + 1, sizeof(struct plan_host *));
    for (size_t i = 0; i < v.host_count; i++) {
        v.plan_hosts[i] = plan->hosts[i];
        nodes += plan->hosts[i]->node_count;
        if (plan->hosts[i]->up && plan->hosts[i]->flight_count > 1) {
            make_way(plan, plan->hosts[i]);
        }
    }
    qsort(v.plan_hosts, v.host_count, sizeof(struct plan_host *), compare_machines);
    v.hosts = mem_xarray(v.host_count + 1, sizeof(*v.hosts));
    v.picks = mem_xarray(v.host_count + 1, sizeof(*v.picks));
    v.work = mem_xarray(nodes + 1, sizeof(*v.work));
    v.nodes = mem_xarray(nodes + 1, sizeof(struct plan_node *));
    bool more = true;
    int rc = 0;
    while (rc == 0 && more) {
        rc = decide(plan, now, &v, &more);
    }
    free(v.plan_hosts);
    free(v.hosts);
    free(v.picks);
    free(v.work);
    free(v.nodes);
    return rc;
}

/* --- messages --- */

static int fill(struct plan *plan, struct mem_arena *arena, const struct model_run *run,
                struct model_cell *cell, struct model_workload *workload,
                struct model_variant *variant, struct model_input *input)
{
    int rc = store_cell_get(plan->store, run->cell, arena, cell);
    if (rc == 0) {
        rc = store_workload_get(plan->store, cell->workload, arena, workload);
    }
    if (rc == 0) {
        rc = store_variant_get(plan->store, cell->variant, arena, variant);
    }
    if (rc == 0) {
        rc = store_input_get(plan->store, cell->workload, cell->variant, arena, input);
    }
    return rc;
}

static int send_assign(struct plan *plan, struct plan_host *host, struct plan_flight *flight,
                       struct mem_arena *arena)
{
    struct model_run run;
    struct model_cell cell;
    struct model_workload workload;
    struct model_variant variant;
    struct model_input input;
    const struct plan_node *node = plan_find_node(plan, flight->sweep, host->id);
    int rc = node != NULL ? store_run_get(plan->store, flight->run, arena, &run) : -ERR_NOTFOUND;
    if (rc == 0) {
        rc = fill(plan, arena, &run, &cell, &workload, &variant, &input);
    }
    struct plan_assignment a = {.host = host->id,
                                .run = flight->run,
                                .attempt = flight->attempt,
                                .workload = &workload,
                                .variant = &variant,
                                .input = &input,
                                .cell = &cell,
                                .settle_timeout_ns = flight->settle_ns};
    if (rc == 0) {
        rc = plan_attempt_fresh(plan, node, &run, &a.fresh_warmup);
    }
    struct store_archive archive;
    if (rc == 0 && input.commit[0] != '\0') {
        int known = store_archive_get(plan->store, input.commit, &archive);
        a.tree_exact = known == 0 && archive.exact && input.has_blob && input.tree[0] != '\0' &&
                       memcmp(archive.hash, input.blob, sizeof(archive.hash)) == 0;
    }
    if (rc == 0) {
        a.sweep = node->sweep->ref;
        a.warmup = run.warmup;
        a.block = run.block;
        a.slot = run.slot;
        plan->ops->assign(plan->arg, &a);
    }
    return rc;
}

static void send_message(struct plan *plan, const struct plan_message *m)
{
    struct plan_host *host = plan_find_host(plan, m->host);
    if (host == NULL || !host->up) {
        return; /* the worker says what it holds when it comes back */
    }
    struct plan_flight *flight = plan_find_flight(host, m->run, m->attempt);
    switch (m->kind) {
    case MESSAGE_ASSIGN:
        if (flight != NULL && flight->unsent) {
            struct mem_arena *arena = mem_arena_new(0);
            int rc = send_assign(plan, host, flight, arena);
            mem_arena_free(&arena);
            flight->unsent = false;
            if (rc < 0) { /* it will not be taken, and is sent again then */
                log_error("run %lld cannot be sent: %s", (long long)m->run, err_text(rc));
            }
        }
        break;
    case MESSAGE_WITHDRAW:
        plan->ops->withdraw(plan->arg, m->host, m->run, m->attempt);
        break;
    case MESSAGE_CANCEL:
        plan->ops->cancel(plan->arg, m->host, m->run, m->attempt, m->text);
        break;
    case MESSAGE_AWAY_OK:
        plan->ops->away_ok(plan->arg, m->host, m->run, m->attempt);
        break;
    }
}

void plan_send_messages(struct plan *plan)
{
    /* What is queued meanwhile, from within ops, is of the next turn. */
    struct plan_message *messages = plan->messages;
    size_t count = plan->message_count;
    plan->messages = NULL;
    plan->message_count = plan->message_room = 0;
    for (size_t i = 0; i < count; i++) {
        send_message(plan, &messages[i]);
        free(messages[i].text);
    }
    free(messages);
}

/* plan.c: the planner's life and its turn. Everything else of coordinator/plan hangs on what is
 * made here. */
#include "coordinator/plan/plan.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "coordinator/plan/lease.h"
#include "coordinator/plan/node.h"
#include "coordinator/plan/send.h"
#include "coordinator/plan/state.h"
#include "coordinator/plan/submit.h"
#include "coordinator/plan/tally.h"
#include "coordinator/store/store.h"

#include <assert.h>
#include <stdlib.h>

/* A read that failed is tried again after this time. */
#define RETRY_NS INT64_C(1000000000)

int plan_new(struct store *store, const struct plan_ops *ops, void *arg,
             const struct plan_conf *conf, struct plan_now now, struct plan **out,
             struct diag *diag)
{
    struct plan *plan = mem_xzalloc(sizeof(*plan));
    plan->magic = PLAN_MAGIC;
    plan->store = store;
    plan->ops = ops;
    plan->arg = arg;
    plan->conf = *conf;
    *out = NULL;
    int rc = plan_load(plan, now);
    if (rc < 0) {
        diag_error(diag, rc, "the sweeps in the database cannot be read: %s", store_error(store));
        plan_free(&plan);
        return rc;
    }
    plan_scratch_drop(plan);
    *out = plan;
    return 0;
}

void plan_free(struct plan **out)
{
    struct plan *plan = *out;
    if (plan == NULL) {
        return;
    }
    assert(plan->magic == PLAN_MAGIC);
    plan_requests_free(plan);
    plan_drop_messages(plan);
    free(plan->messages);
    plan_unload(plan);
    tally_forget(plan, 0);
    plan_drop_hosts(plan);
    plan_scratch_drop(plan);
    plan->magic = 0;
    free(plan);
    *out = NULL;
}

int plan_failed(const struct plan *plan)
{
    return plan->failed;
}

/* Ends the nodes that have nothing left to do, as when their last open cell failed. */
static int settle_nodes(struct plan *plan, struct plan_now now)
{
    for (size_t i = 0; i < plan->host_count; i++) {
        struct plan_host *host = plan->hosts[i];
        for (size_t k = host->node_count; k > 0; k--) {
            int rc = plan_node_settle(plan, now, host->nodes[k - 1]);
            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

int64_t plan_turn(struct plan *plan, struct plan_now now)
{
    assert(plan->magic == PLAN_MAGIC);
    if (plan->unloaded && plan_rolled_back(plan, now, -ERR_IO) < 0) {
        return now.mono_ns + RETRY_NS;
    }
    if (plan->failed != 0) {
        return now.mono_ns;
    }
    plan_requests_turn(plan, now);
    int64_t next = plan_lease_turn(plan, now);
    int rc = plan->failed;
    if (rc == 0) {
        rc = settle_nodes(plan, now);
    }
    if (rc == 0) {
        rc = plan_send_turn(plan, now);
    }
    if (rc < 0) {
        return now.mono_ns;
    }
    /* What was handed out has its own deadline. */
    if (plan->message_count > 0) {
        int64_t after = plan_lease_turn(plan, now);
        next = after < next ? after : next;
    }
    return next;
}

void plan_committed(struct plan *plan)
{
    assert(plan->magic == PLAN_MAGIC && plan->failed == 0);
    plan_send_messages(plan);
    plan_scratch_drop(plan);
    plan_requests_answer(plan, 0);
}

/* What the worker was not told, it does not know. */
static void forget_untold(struct plan *plan)
{
    for (size_t i = 0; i < plan->message_count; i++) {
        const struct plan_message *m = &plan->messages[i];
        struct plan_host *host = plan_find_host(plan, m->host);
        struct plan_flight *flight =
            host != NULL ? plan_find_flight(host, m->run, m->attempt) : NULL;
        if (flight != NULL && (m->kind == MESSAGE_CANCEL || m->kind == MESSAGE_WITHDRAW)) {
            flight->leaving = false;
        }
    }
    plan_drop_messages(plan);
}

/* What the worker was not sent, it does not hold. */
static void forget_unsent(struct plan_host *host)
{
    for (size_t i = host->flight_count; i > 0; i--) {
        if (host->flights[i - 1].unsent) {
            plan_remove_flight(host, &host->flights[i - 1]);
            host->room++;
        }
    }
}

int plan_rolled_back(struct plan *plan, struct plan_now now, int code)
{
    assert(plan->magic == PLAN_MAGIC && code < 0);
    forget_untold(plan);
    plan_requests_answer(plan, code);
    plan_unload(plan);
    tally_forget(plan, 0);
    plan_scratch_drop(plan);
    for (size_t i = 0; i < plan->host_count; i++) {
        forget_unsent(plan->hosts[i]);
    }
    plan->failed = 0;
    int rc = plan_load(plan, now);
    plan_scratch_drop(plan);
    plan->unloaded = rc < 0;
    plan->failed = 0;
    if (rc < 0) {
        plan_unload(plan);
    }
    return rc;
}

int64_t plan_draw_all(struct plan *plan, struct plan_now now, int64_t sweep)
{
    int64_t sum = 0;
    for (size_t i = 0; i < plan->host_count; i++) {
        struct plan_node *node = plan_find_node(plan, sweep, plan->hosts[i]->id);
        int64_t n = 1;
        while (node != NULL && n > 0) {
            n = plan_node_draw(plan, now, node);
            if (n < 0) {
                return n;
            }
            sum += n;
        }
    }
    return sum;
}

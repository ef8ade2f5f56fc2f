/* admin.c: what an admin changes about hosts: drain, resume, labels, revoke. */
#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "coordinator/plan/fleet.h"
#include "coordinator/plan/lease.h"
#include "coordinator/plan/send.h"
#include "coordinator/plan/state.h"
#include "coordinator/store/hosts.h"

#include <string.h>

static const struct {
    const char *word;
    enum plan_host_action action;
} actions[] = {
    {"drain", PLAN_HOST_DRAIN},     {"resume", PLAN_HOST_RESUME}, {"label", PLAN_HOST_LABEL},
    {"unlabel", PLAN_HOST_UNLABEL}, {"revoke", PLAN_HOST_REVOKE},
};

int plan_host_action_of(const char *word, enum plan_host_action *out)
{
    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        if (strcmp(word, actions[i].word) == 0) {
            *out = actions[i].action;
            return 0;
        }
    }
    return -ERR_INVAL;
}

/* A change of one host. */
struct change {
    struct plan *plan;
    struct plan_now now;
    struct plan_host *host;
    const char *label;
    const char *who;
    struct diag *diag;
};

static int set_state(struct change *c, enum host_state state)
{
    c->host->state = state;
    int rc = store_host_set_state(c->plan->store, c->host->id, state);
    return rc < 0 ? plan_fail(c->plan, rc) : 0;
}

static int drain(struct change *c)
{
    if (c->host->state == HOST_DRAINED) {
        diag_note(c->diag, "host `%s` is drained already", c->host->name);
        return 0;
    }
    plan_send_withdraw(c->plan, c->host, 0);
    return set_state(c, HOST_DRAINED);
}

static int resume(struct change *c)
{
    if (c->host->state == HOST_ACTIVE) {
        diag_note(c->diag, "host `%s` is not drained", c->host->name);
        return 0;
    }
    return set_state(c, HOST_ACTIVE);
}

static int revoke(struct change *c)
{
    int rc = set_state(c, HOST_REVOKED);
    return rc == 0 ? plan_lease_revoke(c->plan, c->now, c->host) : rc;
}

static int label(struct change *c)
{
    if (c->label == NULL || !str_is_name(c->label)) {
        return diag_error(c->diag, ERR_INVAL, "`%s` is no name of a class",
                          c->label != NULL ? c->label : "");
    }
    int rc = store_host_add_class(c->plan->store, c->host->id, c->label);
    return rc < 0 ? plan_fail(c->plan, rc) : 0;
}

static int unlabel(struct change *c)
{
    int rc = store_host_remove_class(c->plan->store, c->host->id, c->label != NULL ? c->label : "");
    if (rc == -ERR_NOTFOUND) {
        return diag_error(c->diag, ERR_NOTFOUND, "host `%s` has no class `%s`", c->host->name,
                          c->label != NULL ? c->label : "");
    }
    return rc < 0 ? plan_fail(c->plan, rc) : 0;
}

static int carry_out(struct change *c, enum plan_host_action action)
{
    switch (action) {
    case PLAN_HOST_DRAIN:
        return drain(c);
    case PLAN_HOST_RESUME:
        return resume(c);
    case PLAN_HOST_LABEL:
        return label(c);
    case PLAN_HOST_UNLABEL:
        return unlabel(c);
    case PLAN_HOST_REVOKE:
        return revoke(c);
    }
    return -ERR_INVAL;
}

static const char *word_of(enum plan_host_action action)
{
    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        if (actions[i].action == action) {
            return actions[i].word;
        }
    }
    return "?";
}

/* The host as the store has it, also one that joined and never connected. */
static int find(struct change *c, const char *name)
{
    struct model_host row;
    int rc = store_host_by_name(c->plan->store, name, plan_scratch(c->plan), &row);
    if (rc == -ERR_NOTFOUND) {
        return diag_error(c->diag, ERR_NOTFOUND,
                          "there is no host `%s`: `makespan host list` shows them", name);
    }
    if (rc < 0) {
        return plan_fail(c->plan, rc);
    }
    c->host = plan_keep_host(c->plan, &row, c->now);
    return 0;
}

int plan_host_set(struct plan *plan, struct plan_now now, const char *name,
                  enum plan_host_action action, const char *class_name, const char *who,
                  int64_t *host, struct diag *diag)
{
    if (plan->failed != 0) {
        return plan->failed;
    }
    struct change c = {.plan = plan, .now = now, .label = class_name, .who = who, .diag = diag};
    int rc = find(&c, name);
    if (rc < 0) {
        return rc;
    }
    if (c.host->state == HOST_REVOKED) {
        return diag_error(diag, ERR_STATE,
                          "host `%s` was revoked: a new token with its name lets it join again",
                          name);
    }
    rc = carry_out(&c, action);
    if (rc < 0) {
        return rc;
    }
    if (host != NULL) {
        *host = c.host->id;
    }
    return plan_event(plan, now, EVENT_HOST_CHANGED, 0, c.host->id, 0, who, "%s: %s%s%s", name,
                      word_of(action), class_name != NULL ? " " : "",
                      class_name != NULL ? class_name : "");
}

/* on_hosts.c: an admin changes a host or makes a token. */
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "coordinator/ca/ca.h"
#include "coordinator/net/net_priv.h"
#include "coordinator/news/news.h"
#include "coordinator/plan/fleet.h"
#include "proto/msg.h"

#include <string.h>

static int change_host(struct peer *peer, const struct msg_host_set *r, int64_t *host, struct diag *diag)
{
    const char *who = conn_peer(peer->conn)->name;
    enum plan_host_action action;
    int err;

    if (plan_host_action_of(r->action, &action) != 0)
        return diag_error(diag, ERR_INVAL, "unknown action %s: it is one of drain, resume, label, unlabel, revoke", r->action);
    if ((action == PLAN_HOST_LABEL || action == PLAN_HOST_UNLABEL) && r->label == NULL)
        return diag_error(diag, ERR_INVAL, "%s needs a class", r->action);
    err = plan_host_set(peer->net->rooms.plan, net_now(), r->name, action, r->label, who, host, diag);
    if (err == 0 && action == PLAN_HOST_REVOKE)
        err = ca_revoke_host(peer->net->rooms.ca, r->name, net_now().wall_ns, diag);
    return err;
}

/* "p6: drained"; "p6: in class old". */
static void say_done(const struct msg_host_set *r, struct buf *talk)
{
    static const struct {
        const char *action, *done;
    } words[] = {{"drain", "drained"}, {"resume", "resumed"}, {"label", "in class"}, {"unlabel", "no longer in class"}, {"revoke", "revoked"}};

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(words[i].action, r->action) == 0)
            buf_printf(talk, "%s: %s", r->name, words[i].done);
    }
    if (strcmp(r->action, "label") == 0 || strcmp(r->action, "unlabel") == 0)
        buf_printf(talk, " %s", r->label);
    buf_add_char(talk, '\n');
}

static void on_host_set(struct peer *peer, const struct msg_host_set *r)
{
    struct diag *diag = diag_new(8);
    struct buf talk = BUF_INIT;
    struct peer *worker;
    int64_t host = 0;
    int err = change_host(peer, r, &host, diag);

    if (err != 0) {
        reply_failed(peer, r->call, err, diag);
    } else {
        diag_print(diag, &talk); /* warnings */
        say_done(r, &talk);
        reply_held(peer, r->call, 0, "text", "", buf_str(&talk));
        if (strcmp(r->action, "revoke") == 0 && (worker = net_find_worker(peer->net, host)) != NULL)
            held_add(peer->net, worker, HELD_CLOSE)->reason = CLOSE_REVOKED;
    }
    buf_fini(&talk);
    diag_free(&diag);
}

static void on_token_create(struct peer *peer, const struct msg_token_create *r)
{
    struct diag *diag = diag_new(8);
    char text[CA_TOKEN_TEXT];
    struct ca_token_request request = {.role = (enum role)vocab_role_of(r->role),
                                       .classes = r->classes,
                                       .class_count = r->classes_count,
                                       .name = r->name,
                                       .ttl_ns = r->ttl_ns,
                                       .made_by = conn_peer(peer->conn)->name};
    struct buf body = BUF_INIT;
    int err = 0;

    if (vocab_role_of(r->role) == 0 || request.role == ROLE_COORDINATOR)
        err = diag_error(diag, ERR_INVAL, "unknown role %s: it is one of worker, viewer, submitter, admin", r->role);
    if (err == 0)
        err = ca_token_make(peer->net->rooms.ca, &request, net_now().wall_ns, text, diag);
    if (err == 0)
        err = news_add(peer->net->rooms.news, EVENT_TOKEN_MADE, 0, 0, 0, request.made_by, "a token for a %s", r->role);
    if (err != 0) {
        reply_failed(peer, r->call, err, diag);
    } else {
        buf_printf(&body, "%s\n", text);
        reply_held(peer, r->call, 0, "text", buf_str(&body), NULL);
    }
    buf_fini(&body);
    diag_free(&diag);
}

void on_hosts(struct peer *peer, const struct msg *msg)
{
    uint32_t call = msg->type == MSG_HOST_SET ? msg->u.host_set.call : msg->u.token_create.call;
    const char *refusing = peer->net->ops->refusing(peer->net->arg);

    if (refusing != NULL) {
        struct diag *diag = diag_new(1);

        diag_error(diag, ERR_FULL, "%s", refusing);
        reply_failed(peer, call, -ERR_FULL, diag);
        diag_free(&diag);
    } else if (msg->type == MSG_HOST_SET) {
        on_host_set(peer, &msg->u.host_set);
    } else {
        on_token_create(peer, &msg->u.token_create);
    }
}

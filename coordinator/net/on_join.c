/* on_join.c: a program without a certificate shows a token: one message, one answer. */
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/mem.h"
#include "coordinator/ca/ca.h"
#include "coordinator/net/net_priv.h"
#include "coordinator/news/news.h"
#include "proto/msg.h"

#include <stdlib.h>
#include <string.h>

static int write_news(struct peer *peer, const struct ca_grant *grant, enum role role)
{
    struct news *news = peer->net->rooms.news;
    int err = news_add(news, EVENT_TOKEN_USED, 0, grant->host, 0, grant->name, "%s joined from %s as %s", grant->name,
                       conn_peer(peer->conn)->address, vocab_role((int)role));

    if (err == 0 && role == ROLE_WORKER && !grant->again)
        err = news_add(news, EVENT_HOST_JOINED, 0, grant->host, 0, grant->name, "%s", grant->rekeyed ? "with a new key" : "new host");
    return err;
}

/* A refused token must not leave rows: nothing was written. */
static void refuse(struct peer *peer, enum close_reason reason, const struct diag *diag)
{
    const char *text = diag_first(diag)[0] != '\0' ? diag_first(diag) : close_text(reason);

    log_warn("%s was refused: %s", conn_peer(peer->conn)->address, text);
    peer->told = true;
    peer_close(peer, reason, text);
}

void on_join_message(struct peer *peer, const struct msg *msg)
{
    const struct msg_join *j = &msg->u.join;
    const char *refusing = peer->net->ops->refusing(peer->net->arg);
    struct ca_request request = {.token_id = j->token_id.data,
                                 .secret = j->secret.data,
                                 .csr = j->csr.data,
                                 .csr_len = j->csr.len,
                                 .name = j->name,
                                 .machine_id = j->machine_id,
                                 .wall_ns = j->wall_ns,
                                 .role = (enum role)j->role};
    enum close_reason reason = CLOSE_STORE;
    struct ca_grant *grant;
    struct diag *diag;
    struct peer *old;

    if (msg->type != MSG_JOIN || peer->state != PEER_START)
        return;
    if (refusing != NULL) {
        peer_close(peer, CLOSE_STORE, refusing);
        return;
    }
    if (j->token_id.len != 8 || j->secret.len != 16 || vocab_role((int)j->role) == NULL) {
        peer_close(peer, CLOSE_DECODE, NULL);
        return;
    }
    diag = diag_new(4);
    grant = mem_xzalloc(sizeof *grant);
    peer->state = PEER_OPEN; /* its one message is here: the limit of the first message is over */
    if (ca_join(peer->net->rooms.ca, &request, clock_wall_ns(), grant, &reason, diag) != 0 ||
        write_news(peer, grant, request.role) != 0) {
        refuse(peer, reason, diag);
        free(grant);
    } else {
        if (grant->rekeyed && (old = net_find_worker(peer->net, grant->host)) != NULL)
            held_add(peer->net, old, HELD_CLOSE)->reason = CLOSE_REVOKED;
        held_add(peer->net, peer, HELD_JOINED)->grant = grant;
        log_info("%s at %s has joined as %s", grant->name, conn_peer(peer->conn)->address, vocab_role((int)grant->role));
    }
    diag_free(&diag);
}

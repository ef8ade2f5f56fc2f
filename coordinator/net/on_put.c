/* on_put.c: an operator's command puts archives: WANT, then pieces from where the coordinator says; DONE after the commit of its row. */
#include "common/diag.h"
#include "common/err.h"
#include "coordinator/blob/blob.h"
#include "coordinator/net/net_priv.h"
#include "proto/msg.h"

#include <string.h>

static void send_next(struct peer *peer, uint32_t call, const uint8_t *hash, uint64_t have)
{
    struct msg m = {.type = MSG_BLOB_NEXT};

    m.u.blob_next.call = call;
    m.u.blob_next.hash = (struct msg_bytes){.data = hash, .len = MODEL_HASH};
    m.u.blob_next.have = have;
    peer_send(peer, &m);
}

/* All of it is here: to be said once its row, which may be of this turn, is committed. */
static void hold_done(const struct call *call)
{
    struct held *h = held_add(call->peer->net, call->peer, HELD_NEXT);

    h->call = call->number;
    memcpy(h->hash, call->hash, sizeof h->hash);
    h->have = call->total;
}

static void on_ended(struct blob_put *put, int code, const char *text, void *arg)
{
    struct call *call = arg;

    (void)put;
    if (code != 0) {
        struct diag *diag = diag_new(1);

        diag_error(diag, code, "%s", text);
        reply_failed(call->peer, call->number, code, diag);
        diag_free(&diag);
    } else {
        hold_done(call);
    }
    call_free(call);
}

static void on_want(struct peer *peer, const struct msg_blob_want *w)
{
    struct diag *diag = diag_new(2);
    const char *refusing = peer->net->ops->refusing(peer->net->arg);
    struct call *call = NULL;
    int err = 0;

    if (w->hash.len != MODEL_HASH)
        err = diag_error(diag, ERR_INVAL, "the hash of an archive has %d bytes", MODEL_HASH);
    else if (refusing != NULL)
        err = diag_error(diag, ERR_FULL, "%s", refusing);
    else if ((call = call_new(peer, CALL_PUT, w->call, diag)) == NULL)
        err = -ERR_LIMIT;
    if (call != NULL) {
        memcpy(call->hash, w->hash.data, MODEL_HASH);
        call->total = w->total;
        err = blob_put_begin(peer->net->rooms.blob, call->hash, w->total, on_ended, call, &call->put, diag);
        if (err == 0 && call->put == NULL)
            hold_done(call);
        else if (err == 0)
            send_next(peer, w->call, call->hash, blob_put_have(call->put));
        if (err != 0 || call->put == NULL)
            call_free(call);
    }
    if (err != 0)
        reply_failed(peer, w->call, err, diag);
    diag_free(&diag);
}

static void on_data(struct peer *peer, const struct msg_blob_data *d)
{
    struct diag *diag = diag_new(2);
    struct call *call = NULL;
    int err;

    for (struct call *c = peer->calls; c != NULL && d->hash.len == MODEL_HASH; c = c->next)
        if (c->kind == CALL_PUT && memcmp(c->hash, d->hash.data, MODEL_HASH) == 0)
            call = c;
    /* Pieces that were under way when the put failed are not answered again. */
    if (call != NULL) {
        err = blob_put_data(call->put, d->offset, d->bytes.data, d->bytes.len, diag);
        if (err != 0) {
            reply_failed(peer, call->number, err, diag);
            call_free(call);
        } else if (blob_put_have(call->put) < call->total) {
            send_next(peer, call->number, call->hash, blob_put_have(call->put));
        }
    }
    diag_free(&diag);
}

void on_put(struct peer *peer, const struct msg *msg)
{
    if (msg->type == MSG_BLOB_WANT)
        on_want(peer, &msg->u.blob_want);
    else
        on_data(peer, &msg->u.blob_data);
}

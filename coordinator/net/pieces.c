/* pieces.c: sweep files that do not fit into one request: SWEEP_PART keeps their pieces until their SWEEP_PUT comes. Owns the pieces; a peer has those of one file. */
#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/yaml.h"
#include "coordinator/net/net_priv.h"
#include "proto/msg.h"

#include <stdlib.h>

struct pieces {
    uint32_t call;
    struct buf text;
    int err; /* of a piece: SWEEP_PUT is answered with it */
};

void pieces_free(struct peer *peer)
{
    if (peer->pieces == NULL)
        return;
    buf_fini(&peer->pieces->text);
    free(peer->pieces);
    peer->pieces = NULL;
}

static void add(struct pieces *p, const struct msg_bytes *bytes)
{
    if (p->err != 0)
        return;
    if (bytes->len > YAML_MAX_BYTES - p->text.len) {
        p->err = -ERR_LIMIT;
    } else {
        buf_add(&p->text, bytes->data, bytes->len);
        p->err = p->text.err;
    }
    if (p->err != 0)
        buf_fini(&p->text);
}

void pieces_take(struct peer *peer, const struct msg *msg)
{
    const struct msg_sweep_part *part = &msg->u.sweep_part;

    if (peer->pieces == NULL || peer->pieces->call != part->call) {
        pieces_free(peer);
        peer->pieces = mem_xzalloc(sizeof *peer->pieces);
        peer->pieces->call = part->call;
    }
    if (peer->pieces->err == 0 && part->offset != peer->pieces->text.len)
        peer->pieces->err = -ERR_PROTO;
    add(peer->pieces, &part->bytes);
}

int pieces_join(struct peer *peer, const struct msg *put, struct buf *text, struct diag *diag)
{
    const struct msg_sweep_put *r = &put->u.sweep_put;
    int err;

    *text = (struct buf)BUF_INIT;
    if (peer->pieces == NULL || peer->pieces->call != r->call) {
        pieces_free(peer);
        return 0;
    }
    add(peer->pieces, &r->text);
    err = peer->pieces->err;
    if (err == 0) {
        *text = peer->pieces->text;
        peer->pieces->text = (struct buf)BUF_INIT;
    }
    pieces_free(peer);
    if (err == -ERR_LIMIT)
        return diag_error(diag, ERR_LIMIT, "%s: a sweep file has at most 1 MiB", r->file);
    return err == 0 ? 1 : diag_error(diag, ERR_PROTO, "%s: its pieces did not come in their order", r->file);
}

/* on_operator.c: sorts the requests of operators by noun; greets them. */
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/version.h"
#include "coordinator/ca/ca.h"
#include "coordinator/net/net_priv.h"
#include "proto/hello.h"
#include "proto/msg.h"

static void on_hello(struct peer *peer, const struct msg_hello *h)
{
    struct msg m = {.type = MSG_WELCOME};
    struct diag *diag = diag_new(1);
    struct hello_deal deal;
    struct hello_caps caps;

    if (hello_accept(h, &deal, diag) != 0) {
        peer_violation(peer, diag, CLOSE_VERSION);
    } else {
        hello_write_caps(deal.caps, &caps);
        m.u.welcome.proto = deal.proto;
        m.u.welcome.caps = caps.words;
        m.u.welcome.caps_count = caps.count;
        m.u.welcome.fleet = ca_fleet(peer->net->rooms.ca);
        m.u.welcome.version = version_text();
        m.u.welcome.wall_ns = clock_wall_ns();
        m.u.welcome.beat_ns = peer->net->conf.beat_ns;
        peer->state = PEER_OPEN;
        peer_send(peer, &m);
    }
    diag_free(&diag);
}

void on_operator_message(struct peer *peer, const struct msg *msg)
{
    switch (msg->type) {
    case MSG_HELLO:
        on_hello(peer, &msg->u.hello);
        break;
    case MSG_HOST_SET:
    case MSG_TOKEN_CREATE:
        on_hosts(peer, msg);
        break;
    case MSG_SWEEP_PUT:
    case MSG_SWEEP_PART:
    case MSG_SWEEP_SET:
        on_sweeps(peer, msg);
        break;
    case MSG_HOST_LIST:
    case MSG_SWEEP_LIST:
    case MSG_REPORT:
        on_reads(peer, msg);
        break;
    case MSG_BLOB_WANT:
    case MSG_BLOB_DATA:
        on_put(peer, msg);
        break;
    case MSG_WATCH:
    case MSG_WATCH_END:
        on_watch(peer, msg);
        break;
    default:
        break; /* BEAT */
    }
}

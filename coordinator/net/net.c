/* net.c: the listener and the peers: who came, what they may say now, signs of life, silence, farewell. What messages mean is in on_*.c. */
#include "coordinator/net/net.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"
#include "coordinator/net/net_priv.h"
#include "proto/msg.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct plan_now net_now(void)
{
    return (struct plan_now){.mono_ns = clock_mono_ns(), .wall_ns = clock_wall_ns()};
}

struct peer *net_find_worker(struct net *net, int64_t host)
{
    for (struct peer *p = net->peers; p != NULL; p = p->next)
        if (p->kind == PEER_WORKER && p->state == PEER_OPEN && p->host == host)
            return p;
    return NULL;
}

/* Its name in the fleet; whoever joins has none yet. */
static const char *name_of(const struct conn *conn)
{
    return conn_peer(conn)->name[0] == '\0' ? "a peer" : conn_peer(conn)->name;
}

void peer_close(struct peer *peer, enum close_reason reason, const char *text)
{
    if (peer->state == PEER_CLOSING)
        return;
    if (peer->kind == PEER_WORKER && peer->state == PEER_OPEN) {
        on_worker_closed(peer, text != NULL ? text : close_text(reason));
        peer->told = true;
    }
    peer->state = PEER_CLOSING;
    conn_close(peer->conn, reason, text, false);
}

void peer_violation(struct peer *peer, const struct diag *diag, enum close_reason reason)
{
    const char *text = diag != NULL && diag_first(diag)[0] != '\0' ? diag_first(diag) : close_text(reason);

    log_warn("%s at %s: %s", name_of(peer->conn), conn_peer(peer->conn)->address, text);
    peer->told = true;
    peer_close(peer, reason, text);
}

void peer_send(struct peer *peer, const struct msg *msg)
{
    int err;

    if (peer->state == PEER_CLOSING)
        return;
    err = conn_send(peer->conn, msg);
    if (err == -ERR_LIMIT)
        log_error("a %s message to %s breaks its schema and was not sent", msg_name(msg->type), conn_peer(peer->conn)->name);
}

static void peer_free(struct peer *peer)
{
    struct net *net = peer->net;

    pieces_free(peer);
    calls_free(peer);
    rests_free(peer);
    held_forget(net, peer);
    if (peer->prev != NULL)
        peer->prev->next = peer->next;
    else
        net->peers = peer->next;
    if (peer->next != NULL)
        peer->next->prev = peer->prev;
    net->peer_count--;
    peer->magic = 0;
    free(peer);
}

static enum msg_from side_of(const struct peer *peer)
{
    switch (peer->kind) {
    case PEER_WORKER:
        return MSG_FROM_WORKER;
    case PEER_OPERATOR:
        return MSG_FROM_OPERATOR;
    case PEER_JOINER:
        return MSG_FROM_JOINER;
    }
    return MSG_FROM_JOINER;
}

static enum msg_when when_of(const struct peer *peer)
{
    if (peer->kind == PEER_JOINER)
        return MSG_WHEN_JOINING;
    return peer->state == PEER_START ? MSG_WHEN_START : MSG_WHEN_OPEN;
}

static void on_message(struct peer *peer, const struct msg *msg)
{
    enum role role = conn_peer(peer->conn)->role;
    enum close_reason refusal;
    struct diag *diag;

    if (peer->state == PEER_CLOSING)
        return;
    peer->heard_ns = clock_mono_ns();
    refusal = msg_refusal(msg->type, side_of(peer), role, when_of(peer));
    if (refusal != CLOSE_NONE) {
        diag = diag_new(1);
        diag_error(diag, ERR_DENIED, "%s: %s", msg_name(msg->type) == NULL ? "message" : msg_name(msg->type), close_text(refusal));
        peer_violation(peer, diag, refusal);
        diag_free(&diag);
        return;
    }
    switch (peer->kind) {
    case PEER_WORKER:
        on_worker_message(peer, msg);
        break;
    case PEER_OPERATOR:
        on_operator_message(peer, msg);
        break;
    case PEER_JOINER:
        on_join_message(peer, msg);
        break;
    }
}

static void on_event(struct conn *conn, const struct conn_event *event, void *arg)
{
    struct peer *peer;

    CAST_OBJ(peer, arg, PEER_MAGIC);
    switch (event->kind) {
    case CONN_OPEN:
        break;
    case CONN_DRAINED:
        reply_go_on(peer);
        break;
    case CONN_MESSAGE:
        loop_doing(peer->net->rooms.loop, msg_name(event->msg->type));
        on_message(peer, event->msg);
        break;
    case CONN_CLOSED:
        if (peer->kind == PEER_WORKER && peer->state == PEER_OPEN)
            on_worker_closed(peer, event->text);
        else if (close_is_error(event->reason) && !peer->told)
            log_info("%s at %s: %s", name_of(conn), conn_peer(conn)->address, event->text);
        peer_free(peer);
        break;
    }
}

static void on_accept(struct conn *conn, void *arg)
{
    struct net *net = arg;
    const struct conn_peer *who = conn_peer(conn);
    struct peer *peer = mem_xzalloc(sizeof *peer);

    peer->magic = PEER_MAGIC;
    peer->net = net;
    peer->conn = conn;
    peer->kind = who->joining ? PEER_JOINER : who->role == ROLE_WORKER ? PEER_WORKER : PEER_OPERATOR;
    peer->state = PEER_START;
    peer->opened_ns = clock_mono_ns();
    peer->heard_ns = peer->opened_ns;
    peer->sent_beat_ns = peer->opened_ns;
    peer->next = net->peers;
    if (net->peers != NULL)
        net->peers->prev = peer;
    net->peers = peer;
    net->peer_count++;
    conn_set_handler(conn, on_event, peer);
}

static void on_reject(const char *address, enum close_reason reason, const char *text, void *arg)
{
    (void)arg;
    (void)reason;
    log_info("refused %s: %s", address, text);
}

static void send_beat(struct peer *peer, int64_t now)
{
    struct msg m = {.type = MSG_BEAT};

    m.u.beat.n = ++peer->beats;
    peer->sent_beat_ns = now;
    peer_send(peer, &m);
}

static int64_t tick_of(const struct net *net)
{
    int64_t tick = net->conf.beat_ns < net->conf.hello_ns ? net->conf.beat_ns / 4 : net->conf.hello_ns / 4;

    return tick < 50 * CLOCK_MS ? 50 * CLOCK_MS : tick > CLOCK_SEC ? CLOCK_SEC : tick;
}

static void on_tick(void *arg)
{
    struct net *net = arg;
    int64_t now = clock_mono_ns();
    /* This process itself did not run: who could not be heard meanwhile is heard first. */
    bool late = now - net->tick_ns > 2 * net->conf.beat_ns;

    net->tick_ns = now;
    loop_doing(net->rooms.loop, "signs of life");
    for (struct peer *p = net->peers, *next; p != NULL; p = next) {
        next = p->next;
        if (!late && p->state == PEER_START && now - p->opened_ns > net->conf.hello_ns)
            peer_close(p, CLOSE_HELLO_TIMEOUT, NULL);
        else if (!late && p->state == PEER_OPEN && now - p->heard_ns > 3 * net->conf.beat_ns)
            peer_close(p, CLOSE_SILENT, NULL);
        else if (p->state == PEER_OPEN && now - p->sent_beat_ns >= net->conf.beat_ns)
            send_beat(p, now);
    }
    watch_tick(net, false);
    loop_timer_set(net->timer, tick_of(net));
}

struct net *net_new(const struct net_rooms *rooms, const struct net_conf *conf, const struct net_ops *ops, void *arg)
{
    struct net *net = mem_xzalloc(sizeof *net);

    net->rooms = *rooms;
    net->conf = *conf;
    net->listen = mem_xstrdup(conf->listen);
    net->ops = ops;
    net->arg = arg;
    net->held_last = &net->held_first;
    net->timer = loop_timer_new(rooms->loop, on_tick, net);
    later_init(net);
    return net;
}

int net_listen(struct net *net, struct tls *tls, struct diag *diag)
{
    struct conn_limits limits = {.handshake_ns = net->conf.handshake_ns, .max_conns = net->conf.max_connections};
    int err = conn_listen(net->rooms.loop, tls, net->listen, &limits, on_accept, on_reject, net, &net->listener, diag);

    net->tick_ns = clock_mono_ns();
    if (err == 0)
        loop_timer_set(net->timer, tick_of(net));
    return err;
}

uint16_t net_port(const struct net *net)
{
    return net->listener == NULL ? 0 : conn_listener_port(net->listener);
}

size_t net_peers(const struct net *net)
{
    return net->peer_count;
}

void net_free(struct net **net)
{
    struct net *n = *net;

    if (n == NULL)
        return;
    conn_listener_free(&n->listener);
    while (n->peers != NULL) {
        struct peer *p = n->peers;

        conn_close(p->conn, CLOSE_SHUTDOWN, NULL, true);
        peer_free(p);
    }
    held_drop_all(n);
    loop_timer_free(&n->timer);
    loop_timer_free(&n->later);
    free(n->listen);
    free(n);
    *net = NULL;
}

void net_committed(struct net *net)
{
    for (struct peer *p = net->peers; p != NULL; p = p->next)
        p->wrote = false;
    held_send_all(net);
    on_worker_acks(net);
    watch_tick(net, true);
}

void net_rolled_back(struct net *net, const char *text)
{
    held_fail_all(net, text);
    for (struct peer *p = net->peers, *next; p != NULL; p = next) {
        next = p->next;
        if (p->wrote) {
            p->wrote = false;
            peer_close(p, CLOSE_STORE, text);
        }
    }
}

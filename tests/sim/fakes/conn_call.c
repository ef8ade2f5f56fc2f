/* conn_call.c: how fake connections come about: dialling, listening, the handshake. */
#include "common/clock.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/sim/fakes/conn.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_PORT 40000
#define CONNS_MAX 20000

static void send_packet(struct conn *c, enum packet_kind kind, enum close_reason reason)
{
    const struct packet p = {.kind = kind, .reason = reason, .tls = *sim_tls_end(c->tls)};
    if (c->wire != NULL) {
        sim_wire_send(c->wire, c->side, &p);
    }
}

/* --- the handshake --- */

static void know(struct conn *c, const struct tls_end *other)
{
    c->peer.joining = other->joiner || sim_tls_end(c->tls)->joiner;
    if (!other->joiner) {
        c->peer.role = other->id.role;
        str_copy(c->peer.name, sizeof(c->peer.name), other->id.name);
        str_copy(c->peer.fleet, sizeof(c->peer.fleet), other->id.fleet);
        str_copy(c->peer.serial, sizeof(c->peer.serial), other->id.serial);
        str_copy(c->peer.key_hash, sizeof(c->peer.key_hash), other->id.key_hash);
        c->peer.cert_end_s = other->id.end_s;
    }
    sim_tls_release(c->tls);
    c->tls = NULL;
    c->state = OPEN;
    bool stranger = c->side == WIRE_SERVER && c->peer.joining;
    if (stranger) {
        c->in.max = c->in.max < FRAME_MAX_JOIN ? c->in.max : FRAME_MAX_JOIN;
        sim_event_set(&c->deadline, sim_world()->now_ns + c->limits.handshake_ns);
    } else {
        sim_event_clear(&c->deadline);
    }
}

void sim_conn_refuse(struct conn *c, enum close_reason reason)
{
    send_packet(c, PACKET_ALERT, reason);
    sim_conn_blame(c, reason, false, NULL);
    if (c->side == WIRE_SERVER && c->listener != NULL && c->listener->on_reject != NULL) {
        c->listener->on_reject(c->peer.address, reason, c->text, c->listener->arg);
    }
    sim_conn_die(c);
}

/* The client calls. */
static void take_call(struct wire *w, const struct packet *p)
{
    struct conn_listener *l = w->listener;
    w->listener = NULL;
    if (l == NULL || l->count >= (l->limits.max_conns > 0 ? l->limits.max_conns : CONNS_MAX)) {
        const struct packet rst = {.kind = PACKET_RST};
        sim_wire_send(w, WIRE_SERVER, &rst);
        sim_wire_leave(w, WIRE_SERVER);
        return;
    }
    struct conn *c = sim_conn_new(l->node, l->loop, &l->limits, l->tls);
    c->side = WIRE_SERVER;
    c->state = SHAKE;
    c->wire = w;
    w->end[WIRE_SERVER] = c;
    c->listener = l;
    l->count++;
    c->shown = p->tls;
    snprintf(c->peer.address, sizeof(c->peer.address), "%s:%u", w->node[WIRE_CLIENT]->name,
             (unsigned)(FIRST_PORT + ++w->node[WIRE_CLIENT]->world->calls % 20000));
    sim_event_set(&c->deadline, sim_world()->now_ns + c->limits.handshake_ns);
    send_packet(c, PACKET_HELLO, CLOSE_NONE);
}

static void take_server(struct conn *c, const struct packet *p)
{
    enum close_reason reason = sim_tls_judge(c->tls, &p->tls);
    if (reason != CLOSE_NONE) {
        sim_conn_refuse(c, reason);
        return;
    }
    send_packet(c, PACKET_SHAKE, CLOSE_NONE);
    know(c, &p->tls);
    sim_conn_emit(c, CONN_OPEN, NULL);
}

static void take_client(struct conn *c)
{
    enum close_reason reason = sim_tls_judge(c->tls, &c->shown);
    if (reason != CLOSE_NONE) {
        sim_conn_refuse(c, reason);
        return;
    }
    know(c, &c->shown);
    c->listener->on_accept(c, c->listener->arg);
    if (c->state == OPEN) {
        sim_conn_emit(c, CONN_OPEN, NULL);
    }
}

/* --- events --- */

static void take_end(struct conn *c, const struct packet *p)
{
    if (p->kind == PACKET_ALERT) {
        sim_conn_blame(c, p->reason, true, NULL);
    } else if (p->kind == PACKET_RST && (c->state == NEW || c->state == SYN)) {
        sim_conn_blame(c, CLOSE_DIAL, false, "connection refused");
    } else if (p->kind == PACKET_RST) {
        sim_conn_blame(c, CLOSE_IO, false, "connection reset by peer");
    } else {
        sim_conn_blame(c, CLOSE_EOF, true, NULL);
    }
    if (c->state == SHAKE && c->listener != NULL && c->listener->on_reject != NULL) {
        c->listener->on_reject(c->peer.address, c->reason, c->text, c->listener->arg);
    }
    sim_conn_die(c);
}

void sim_conn_take(struct wire *w, unsigned side, const struct packet *p)
{
    struct conn *c = w->end[side];
    if (p->kind == PACKET_SYN) {
        take_call(w, p);
        return;
    }
    if (c == NULL) {
        return;
    }
    switch (p->kind) {
    case PACKET_SYN:
        break;
    case PACKET_HELLO:
        if (c->state == SYN) {
            take_server(c, p);
        }
        break;
    case PACKET_SHAKE:
        if (c->state == SHAKE) {
            take_client(c);
        }
        break;
    case PACKET_DATA:
        if (c->state == OPEN) {
            sim_conn_take_bytes(c, p->data, p->n);
        }
        break;
    case PACKET_ALERT:
    case PACKET_END:
    case PACKET_RST:
        take_end(c, p);
        break;
    }
}

void sim_conn_call(struct conn *c)
{
    struct conn_listener *l = NULL;
    struct node *server = sim_world()->nodes;
    while (server != NULL && !str_eq(server->name, c->host)) {
        server = server->next;
    }
    bool there = server != NULL && node_is_up(server) && c->node->gone == false;
    for (l = there ? server->listeners : NULL; l != NULL && l->port != c->port; l = l->next) {
    }
    if (l == NULL) {
        sim_conn_blame(c, CLOSE_DIAL, false,
                       server == NULL ? "no such host" : "connection refused");
        sim_conn_die(c);
        return;
    }
    c->state = SYN;
    c->wire = sim_wire_new(c->node, server, l);
    c->wire->end[WIRE_CLIENT] = c;
    sim_event_set(&c->deadline, sim_world()->now_ns + c->limits.handshake_ns);
    send_packet(c, PACKET_SYN, CLOSE_NONE);
}

/* --- listeners --- */

int conn_listen(struct loop *loop, struct tls *tls, const char *address,
                const struct conn_limits *limits, conn_accept_f *on_accept,
                conn_reject_f *on_reject, void *arg, struct conn_listener **out, struct diag *diag)
{
    char host[CONN_HOST_MAX];
    uint16_t port;
    int rc = conn_addr_split(address, true, host, &port, diag);
    if (rc != 0) {
        return rc;
    }
    struct conn_listener *l = mem_xzalloc(sizeof(*l));
    l->node = sim_here();
    l->loop = loop;
    l->tls = tls;
    l->limits = limits != NULL ? *limits : (struct conn_limits){0};
    l->port = port != 0 ? port : FIRST_PORT;
    l->on_accept = on_accept;
    l->on_reject = on_reject;
    l->arg = arg;
    l->next = l->node->listeners;
    l->node->listeners = l;
    *out = l;
    return 0;
}

uint16_t conn_listener_port(const struct conn_listener *listener)
{
    return listener->port;
}

size_t conn_listener_count(const struct conn_listener *listener)
{
    return listener->count;
}

void conn_listener_free(struct conn_listener **listener)
{
    struct conn_listener *l = *listener;
    if (l == NULL) {
        return;
    }
    struct conn_listener **at = &l->node->listeners;
    while (*at != l) {
        at = &(*at)->next;
    }
    *at = l->next;
    for (struct conn *c = l->node->conns; c != NULL; c = c->next) {
        c->listener = c->listener == l ? NULL : c->listener;
    }
    for (struct wire *w = sim_world()->wires; w != NULL; w = w->next) {
        w->listener = w->listener == l ? NULL : w->listener;
    }
    free(l);
    *listener = NULL;
}

/* --- the rest of conn.h --- */

int conn_dial(struct loop *loop, struct tls *tls, const char *address,
              const struct conn_limits *limits, conn_f *f, void *arg, struct conn **out,
              struct diag *diag)
{
    char host[CONN_HOST_MAX];
    uint16_t port;
    *out = NULL;
    int rc = conn_addr_split(address, false, host, &port, diag);
    if (rc != 0) {
        return rc;
    }
    struct conn *c = sim_conn_new(sim_here(), loop, limits, tls);
    c->side = WIRE_CLIENT;
    c->f = f;
    c->arg = arg;
    str_copy(c->host, sizeof(c->host), host);
    c->port = port;
    str_copy(c->peer.address, sizeof(c->peer.address), address);
    sim_event_set(&c->deadline, sim_world()->now_ns);
    *out = c;
    return 0;
}


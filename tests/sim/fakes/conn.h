/* conn.h: what a fake connection consists of, for conn*.c and wire.c. */
#ifndef MAKESPAN_TESTS_SIM_FAKES_CONN_H
#define MAKESPAN_TESTS_SIM_FAKES_CONN_H

#include "common/buf.h"
#include "proto/conn.h"
#include "proto/conn_addr.h"
#include "proto/frame.h"
#include "tests/sim/fakes/wire.h"

struct loop;

enum conn_state { NEW, SYN, SHAKE, OPEN, CLOSING, DEAD };

struct conn {
    struct conn *next; /* of the node */
    enum conn_state state;
    struct node *node;
    struct loop *loop;
    struct wire *wire; /* NULL: none, or not any more */
    unsigned side;
    struct tls *tls; /* held until the handshake is over */
    struct conn_listener *listener;
    struct tls_end shown; /* by the client that calls */
    char host[CONN_HOST_MAX];
    uint16_t port;
    bool paused, drain, by_peer;
    enum close_reason reason;
    char *text;
    conn_f *f;
    void *arg;
    struct frame_in in;
    struct buf out;
    struct buf held; /* came while paused */
    struct conn_limits limits;
    struct conn_peer peer;
    struct conn_stats stats;
    struct sim_event deadline; /* of the state; in NEW and DEAD: the next turn */
    struct sim_event flush;
    struct sim_event kick; /* goes on with `held` */
};

struct conn_listener {
    struct conn_listener *next;
    struct node *node;
    struct loop *loop;
    struct tls *tls;
    struct conn_limits limits;
    uint16_t port;
    size_t count;
    conn_accept_f *on_accept;
    conn_reject_f *on_reject;
    void *arg;
};

/* conn.c */
struct conn *sim_conn_new(struct node *node, struct loop *loop, const struct conn_limits *limits,
                          struct tls *tls);
void sim_conn_blame(struct conn *conn, enum close_reason reason, bool by_peer, const char *text);
/* The network is gone; CLOSED and the free come in a later turn. */
void sim_conn_die(struct conn *conn);
void sim_conn_emit(struct conn *conn, enum conn_event_kind kind, const struct msg *msg);
void sim_conn_take_bytes(struct conn *conn, const uint8_t *data, size_t n);
/* Its node crashes: a first part of what is queued leaves, and then the network is no more. */
void sim_conn_lose(struct conn *conn);

/* conn_call.c */
void sim_conn_call(struct conn *conn);
/* Refuses the other side, and tells it. */
void sim_conn_refuse(struct conn *conn, enum close_reason reason);

#endif

/* wire.h: what passes between two fake connections, and whom they trust: for the fakes alone. */
#ifndef MAKESPAN_TESTS_SIM_FAKES_WIRE_H
#define MAKESPAN_TESTS_SIM_FAKES_WIRE_H

#include "common/attr.h"
#include "proto/close.h"
#include "proto/pki.h"
#include "tests/sim/sim.h"

struct conn;
struct conn_listener;
struct tls;
struct wire;

/* --- TLS, as far as it decides --- */

struct tls_end {
    struct pki_id id; /* of a joiner: role 0 */
    bool joiner;
    uint8_t authority[PKI_HASH_SIZE]; /* hash of its authority's key */
};

void sim_tls_hold(struct tls *tls);
void sim_tls_release(struct tls *tls);
/* What it shows to the other side. */
const struct tls_end *sim_tls_end(const struct tls *tls);
/* Whether, in the context of the node that runs, the other side is trusted: CLOSE_NONE, or why
 * not. */
enum close_reason sim_tls_judge(const struct tls *tls, const struct tls_end *other);

/* --- packets --- */

enum packet_kind {
    PACKET_SYN,   /* to a listener: `tls` shows who calls */
    PACKET_HELLO, /* the server's answer */
    PACKET_SHAKE, /* the client has taken the server */
    PACKET_ALERT, /* refused: reason and text */
    PACKET_DATA,
    PACKET_END, /* nothing more comes */
    PACKET_RST, /* the other side knows nothing of this */
};

struct packet {
    struct packet *next;
    enum packet_kind kind;
    int64_t at_ns;
    struct tls_end tls;
    enum close_reason reason;
    size_t n;
    uint8_t *data; /* bytes, or the text of an alert */
};

/* From one side to the other, in order. */
struct pipe {
    struct wire *wire;
    unsigned to;
    struct packet *first, **last;
    int64_t last_at_ns;
    size_t bytes; /* on their way */
    struct sim_event event;
    bool held; /* the receiver has paused */
};

enum { WIRE_CLIENT, WIRE_SERVER };

struct wire {
    struct wire *next;
    struct node *node[2];
    struct conn *end[2]; /* NULL: gone, or, of the server, not there yet */
    struct conn_listener *listener; /* until the server's end is there */
    bool over[2];        /* that end is gone for good */
    bool cut;            /* nothing passes any more but the two ends' own RST */
    struct pipe pipe[2]; /* [i] leads to end i */
    struct sim_event break_at[2];
};

struct wire *sim_wire_new(struct node *client, struct node *server,
                          struct conn_listener *listener);
/* A copy of the packet's fields travels; `data` is copied. */
void sim_wire_send(struct wire *wire, unsigned from, const struct packet *packet);
void sim_wire_hold(struct wire *wire, unsigned side, bool hold);
/* This end is gone: what it sent still arrives. May free the wire. */
void sim_wire_leave(struct wire *wire, unsigned side);
/* conn.c: a packet for that end, or for the listener. In the context of its node. */
void sim_conn_take(struct wire *wire, unsigned side, const struct packet *packet);

#endif

/* conn.h: one connection of the protocol: frames of messages over TLS, seen from above as events. A seam: the simulation replaces this module.
 *
 * TLS, sockets, buffers, partial frames, handshake time and the order of freeing live in conn.c alone. Above it nobody knows a descriptor. */
#ifndef MAKESPAN_PROTO_CONN_H
#define MAKESPAN_PROTO_CONN_H

#include "common/attr.h"
#include "common/vocab.h"
#include "proto/close.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conn;
struct conn_listener;
struct diag;
struct loop;
struct msg;
struct tls;

/* Who is at the other end, from its certificate. With the joining ALPN name there is no certificate: role 0, name "". */
struct conn_peer {
    enum role role;
    bool joining;
    char name[65];
    char fleet[65];
    char serial[41];    /* certificate's serial number, hex */
    char key_hash[65];  /* SHA-256 of the public key, hex */
    char address[80];   /* "127.0.0.1:50123", "[::1]:50123" */
    int64_t cert_end_s; /* seconds since 1970 */
};

enum conn_event_kind {
    CONN_OPEN,    /* the handshake is over (a dialled client may still be refused: WELCOME is what counts) */
    CONN_MESSAGE, /* one message, checked by guard and decode; borrowed for the call */
    CONN_DRAINED, /* everything that was queued went to the kernel */
    CONN_CLOSED,  /* the last event; the conn is freed after the callback by itself */
};

struct conn_event {
    enum conn_event_kind kind;
    const struct msg *msg;
    enum close_reason reason;
    const char *text; /* with CONN_CLOSED: what exactly, for a person; never NULL */
    bool by_peer;     /* the other side said so (GOODBYE or its TLS alert) */
};

/* During any callback conn_send() and conn_close() may be called; after CONN_CLOSED the pointer is dead. */
typedef void conn_f(struct conn *conn, const struct conn_event *event, void *arg);

struct conn_limits {
    int64_t handshake_ns;  /* from accept or connect to the end of the handshake; 0: 10 s */
    size_t queue_max;      /* most bytes queued for sending; beyond: closed with QUEUE_FULL; 0: 4 MiB */
    size_t frame_max;      /* longest frame taken; 0: 1 MiB */
    size_t max_conns;      /* of a listener; beyond: closed at once; 0: 20 000 */
    unsigned reserve_fds;  /* descriptors that a listener leaves free; 0: 64 */
};

/* Called for each accepted connection whose handshake succeeded, before CONN_OPEN: sets f and arg by conn_set_handler(), or closes it. */
typedef void conn_accept_f(struct conn *conn, void *arg);
/* Called for a connection that ended before that; for counting and the log. */
typedef void conn_reject_f(const char *address, enum close_reason reason, const char *text, void *arg);

/* Listens at "HOST:PORT", "[ADDR]:PORT", ":PORT" (all addresses); port 0 lets the kernel choose. `tls` is borrowed for the listener's life; limits are copied, NULL: defaults.
 * Pauses accepting for a second when descriptors run out. A client of the joining protocol may send one JOIN of at most 4 KiB, and GOODBYE, within
 * handshake_ns of its handshake. 0, or a negative code with text. */
int conn_listen(struct loop *loop, struct tls *tls, const char *address, const struct conn_limits *limits, conn_accept_f *on_accept,
                conn_reject_f *on_reject, void *arg, struct conn_listener **out, struct diag *diag) MUST_CHECK;
/* The port that was bound. */
uint16_t conn_listener_port(const struct conn_listener *listener);
size_t conn_listener_count(const struct conn_listener *listener);
/* Stops listening; its connections live on. NULL inside is fine. */
void conn_listener_free(struct conn_listener **listener);

/* Dials "HOST:PORT". A name is looked up in the next turn, by the system, which MAY BLOCK for seconds; a numeric address never does: who times something
 * dials at another time (dial_hold). The addresses of a name are tried one after the other, each for at most handshake_ns. Every failure arrives as CONN_CLOSED from a later turn. 0 or a negative code
 * for a malformed address. */
int conn_dial(struct loop *loop, struct tls *tls, const char *address, const struct conn_limits *limits, conn_f *f, void *arg, struct conn **out,
              struct diag *diag) MUST_CHECK;

void conn_set_handler(struct conn *conn, conn_f *f, void *arg);
void *conn_arg(const struct conn *conn);
const struct conn_peer *conn_peer(const struct conn *conn);

/* Queues a message. 0, or negative: -ERR_CLOSED (already closing), -ERR_LIMIT (the message breaks its schema: a bug of the caller), -ERR_FULL (queue; the connection is closing). */
int conn_send(struct conn *conn, const struct msg *msg);
size_t conn_queued(const struct conn *conn); /* bytes not yet given to the kernel */
/* Stops and goes on reading: backpressure. */
void conn_pause(struct conn *conn, bool pause);
/* Sends GOODBYE with reason and text (NULL: the reason's sentence), flushes for at most 2 s, closes. CONN_CLOSED comes from a later turn, unless `quiet`: then the handler is not
 * called any more and the caller may forget the pointer at once; what the kernel takes is written at the end of the turn, or by loop_free(). What is sent
 * leaves after the turn's hooks: what a handler promises may be committed by them. */
void conn_close(struct conn *conn, enum close_reason reason, const char *text, bool quiet);
/* Counters since the start: bytes and messages in each direction. */
struct conn_stats {
    uint64_t bytes_in, bytes_out, msgs_in, msgs_out;
};
void conn_get_stats(const struct conn *conn, struct conn_stats *out);

#endif

/* conn_impl.h: what a connection consists of, for conn*.c alone. conn.c owns the states from the
 * handshake on, conn_dial.c those before it, conn_listen.c the sockets that accept. */
#ifndef MAKESPAN_PROTO_CONN_IMPL_H
#define MAKESPAN_PROTO_CONN_IMPL_H

#include "common/attr.h"
#include "common/buf.h"
#include "proto/conn.h"
#include "proto/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONN_MAGIC 0x636f6e6eu

struct conn_dialling;
struct orphans;
struct loop_fd;
struct loop_timer;
struct tls_session;

enum conn_state {
    CONN_S_NEW,     /* dialled; looks the address up in the next turn */
    CONN_S_CONNECT, /* waits for TCP */
    CONN_S_SHAKE,   /* waits for TLS */
    CONN_S_OPEN,    /* messages in both directions */
    CONN_S_FLUSH,   /* closing: writes what is queued, GOODBYE last; what comes is thrown away */
    CONN_S_LINGER,  /* all is written; waits for the other side's end, so that it can read ours */
    CONN_S_DEAD,    /* no socket any more; CONN_CLOSED and the free are still to come */
};

struct conn {
    unsigned magic;
    enum conn_state state;
    int fd; /* -1: none */
    bool server;
    bool paused;
    bool read_wants_write; /* TLS must write before it can read on */
    bool write_wants_read; /* TLS must read before it can write on */
    bool by_peer;
    enum close_reason reason; /* of the end; the first one stays */
    char *text;
    struct loop *loop;
    struct tls_session *session;
    struct loop_fd *on_read;
    struct loop_fd *on_write;
    struct loop_timer *timer; /* the state's deadline; in NEW and DEAD: the next turn */
    struct loop_timer *kick;  /* goes on with `held`; NULL until it is needed */
    conn_f *f;
    void *arg;
    struct frame_in in;
    struct buf held;           /* read, but not looked at because the owner paused */
    struct buf out;            /* whole frames */
    size_t out_done;           /* bytes of `out` that TLS took */
    struct conn_limits limits; /* without zeros */
    struct conn_peer peer;
    struct conn_stats stats;
    struct conn_dialling *dialling; /* until TCP stands */
    struct conn_listener *listener; /* NULL: dialled, or the listener is gone */
    bool shaking;                   /* in the listener's list of handshakes */
    struct orphans *orphans;        /* in that list; NULL: it has an owner */
    struct conn *next, *prev;       /* of the one list or the other */
};

/* A connection without a socket. */
struct conn *conn_new(struct loop *loop, const struct conn_limits *limits, bool server);
/* Fills the zeros of limits (NULL: all) with the defaults. */
void conn_limits_set(struct conn_limits *dst, const struct conn_limits *limits);
/* Begins TLS on a connected, non-blocking socket, which the connection owns from here on, also on
 * failure: then it dies. */
void conn_shake(struct conn *conn, struct tls *tls, int fd);
/* Notes the reason, if there is none yet. */
void conn_blame(struct conn *conn, enum close_reason reason, bool by_peer, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* The end: the socket is closed at once, CONN_CLOSED comes in a later turn, then the free. */
void conn_die(struct conn *conn);
#define CONN_KEEP_DEADLINE INT64_MAX
/* The only writer of state. Sets the state's timer: below 0 clears it. */
void conn_enter(struct conn *conn, enum conn_state state, int64_t deadline_ns);
/* Closes and forgets the socket. */
void conn_drop_fd(struct conn *conn);

/* Notes the reason that TLS gives for its failure. */
void conn_blame_session(struct conn *conn);
void conn_emit(struct conn *conn, const struct conn_event *event);

/* conn_io.c */
void conn_watch(struct conn *conn, bool want_write);
void conn_watch_open(struct conn *conn); /* what OPEN and FLUSH need now */
void conn_flush(struct conn *conn);      /* writes what the network takes; may end the connection */
void conn_read(struct conn *conn);       /* reads and delivers; may end the connection */
void conn_throw_away(struct conn *conn); /* reads without looking; ends with the other side */
void conn_queue_goodbye(struct conn *conn);
void conn_finish_sending(
    struct conn *conn); /* everything is written: no more of it comes from here */

/* conn_dial.c */
void conn_dialling_free(struct conn_dialling **dialling);
void conn_dial_next(struct conn *conn);    /* NEW: the first address; CONNECT: the next one */
void conn_dial_timeout(struct conn *conn); /* CONNECT: no answer */

/* conn_listen.c: what a connection tells its listener. */
void conn_listen_opened(
    struct conn *conn); /* the handshake is over: asks the owner for a handler */
void conn_listen_failed(struct conn *conn);  /* the handshake failed, by conn->reason */
void conn_listen_dropped(struct conn *conn); /* the socket is closed */

#endif

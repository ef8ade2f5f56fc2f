/* dial.h: keeps one connection to the coordinator: dials, dials again with growing pauses, and
 * says when there is no use in it. Who speaks over it, and what, is the owner's matter. */
#ifndef MAKESPAN_PROTO_DIAL_H
#define MAKESPAN_PROTO_DIAL_H

#include "common/attr.h"
#include "proto/close.h"
#include "proto/conn.h"

#include <stdbool.h>
#include <stdint.h>

struct dial;
struct diag;
struct loop;
struct msg;
struct tls;

/* The pause before the n-th attempt in a row is drawn evenly from the upper half of 1 s, 2 s, 4 s
 * … 60 s. Only dial_welcomed() starts it at 1 s again. After a reason with dial_again = 0 it is an
 * hour, less up to a tenth. */

enum dial_event_kind {
    DIAL_OPEN,    /* the handshake is over: send HELLO */
    DIAL_MESSAGE, /* borrowed for the call */
    DIAL_DRAINED, /* everything that was queued went to the kernel */
    DIAL_CLOSED,  /* the attempt failed or the connection ended; again_ns says when it goes on */
    DIAL_GAVE_UP, /* the same for a reason with dial_again = 0 */
};

struct dial_event {
    enum dial_event_kind kind;
    struct conn *conn; /* DIAL_OPEN, _MESSAGE, _DRAINED: to send on. Else NULL */
    const struct msg *msg;
    enum close_reason reason; /* DIAL_CLOSED, DIAL_GAVE_UP */
    const char *text;         /* with them: what exactly, for a person; never NULL */
    bool by_peer;             /* the other side said so */
    bool welcomed;            /* dial_welcomed() had been called on this connection */
    int64_t again_ns;         /* until the next attempt; below 0: there will be none */
};

/* During any callback dial_free() may be called. */
typedef void dial_f(struct dial *dial, const struct dial_event *event, void *arg);

struct dial_config {
    struct loop *loop;
    struct tls *tls;                  /* borrowed until dial_free() */
    const char *address;              /* "HOST:PORT"; copied */
    const struct conn_limits *limits; /* copied; NULL: defaults */
    bool hourly; /* dial once an hour after DIAL_GAVE_UP (a worker); else never (a command) */
    bool once;   /* no second attempt at all: every end is the last (again_ns below 0) */
    int64_t welcome_ns; /* from DIAL_OPEN to dial_welcomed(), else HELLO_TIMEOUT; 0: 30 s */
};

/* The first attempt is made in a later turn, unless held. 0, or -ERR_INVAL for a malformed
 * address. */
int dial_new(const struct dial_config *config, dial_f *f, void *arg, struct dial **out,
             struct diag *diag) MUST_CHECK;
/* Closes quietly, with GOODBYE SHUTDOWN when connected; no event comes any more. */
void dial_free(struct dial **dial); /* NULL inside is fine */

/* The connection counts: WELCOME came. */
void dial_welcomed(struct dial *dial);
/* While held no attempt is begun (a worker in its timed window); one that came due meanwhile is
 * made at release. A connection that stands, and an attempt under way, go on. */
void dial_hold(struct dial *dial, bool hold);
/* The next attempt is made at once, as if its pause were over: the operator asked, or the token of
 * a join was replaced. Nothing when connected or under way. */
void dial_now(struct dial *dial);
/* The open connection, or NULL: for sending, and for closing with a reason (conn_close with quiet
 * false), after which it is dialled again as the reason says. */
struct conn *dial_conn(const struct dial *dial);
bool dial_is_welcomed(const struct dial *dial);
/* Attempts in a row that did not lead to dial_welcomed(). */
unsigned dial_failures(const struct dial *dial);
const char *dial_address(const struct dial *dial);

#endif

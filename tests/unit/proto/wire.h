/* wire.h: a coordinator's listener, clients, and a client of bare bytes, all on loopback and in
 * one loop, for tests of conn.c and dial.c. Everything that happens is counted. */
#ifndef MAKESPAN_TESTS_UNIT_PROTO_WIRE_H
#define MAKESPAN_TESTS_UNIT_PROTO_WIRE_H

#include "common/loop.h"
#include "proto/conn.h"
#include "proto/msg.h"
#include "proto/tls_session.h"
#include "tests/unit/proto/trust.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WIRE_SIDES = 16 };

struct wire;
struct wire_side;
typedef void wire_event_f(struct wire_side *side, const struct conn_event *event);

/* One end of a connection and what happened to it. */
struct wire_side {
    struct wire *wire;
    struct conn *conn; /* NULL before and after */
    unsigned opens, messages, drains, closes;
    uint64_t last_beat; /* n of the last BEAT */
    bool out_of_order;  /* a BEAT that did not count up */
    uint32_t last_type;
    size_t last_bytes; /* of OUTPUT, SWEEP_PUT, JOINED */
    enum close_reason reason;
    bool by_peer;
    char text[1200];
    wire_event_f *on_event; /* NULL: nothing more */
    int tag;                /* of the test */
};

struct wire {
    struct loop *loop;
    struct trust_pair lab, coordinator, worker;
    struct trust_world server_world, client_world;
    struct tls *server, *client, *joiner;
    struct conn_limits limits; /* of both ends, unless a test sets them before */
    struct conn_listener *listener;
    char address[64];
    struct wire_side accepted[WIRE_SIDES];
    size_t n_accepted;
    struct wire_side dialled[WIRE_SIDES];
    size_t n_dialled;
    unsigned rejects;
    enum close_reason reject_reason;
    char reject_text[1200];
    wire_event_f *on_accepted_event; /* given to each accepted side */
    bool close_on_accept;
};

void wire_init(struct wire *wire); /* keys, certificates, contexts, the loop */
void wire_listen(struct wire *wire);
/* Closes quietly what is open, and frees all; under ASan nothing is left. */
void wire_fini(struct wire *wire);
/* The next side, dialled; not open yet. */
struct wire_side *wire_dial(struct wire *wire, struct tls *tls);
/* Dials and waits until both ends are open; *accepted is the other end. */
struct wire_side *wire_connect(struct wire *wire, struct wire_side **accepted);

/* Turns the loop until the condition holds; asserts that it does within 30 s. */
int64_t wire_deadline(void);
void wire_turn(struct wire *wire, int64_t deadline, const char *condition);
#define WIRE_WAIT(wire, condition)                                                                 \
    do {                                                                                           \
        int64_t wire_until = wire_deadline();                                                      \
        while (!(condition)) {                                                                     \
            wire_turn((wire), wire_until, #condition);                                             \
        }                                                                                          \
    } while (0)

int wire_beat(struct wire_side *side, uint64_t n);
/* An OUTPUT of n bytes. */
int wire_output(struct wire_side *side, size_t n);

/* A client of bare bytes: a socket, and TLS on it if wanted. */
struct wire_raw {
    int fd;
    struct tls_session *s;
};
void wire_raw_connect(struct wire *wire, struct wire_raw *raw, struct tls *tls);
void wire_raw_write(struct wire *wire, struct wire_raw *raw, const void *data, size_t n);
/* Reads until GOODBYE came; asserts that it does. */
void wire_raw_expect_goodbye(struct wire *wire, struct wire_raw *raw, enum close_reason reason,
                             const char *part_of_text);
void wire_raw_close(struct wire_raw *raw);
/* Whether the socket is at its end, by now. */
bool wire_raw_is_ended(const struct wire_raw *raw);

#endif

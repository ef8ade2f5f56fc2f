/* conn_rig.h: a coordinator's listener, clients, and a client of bare bytes, all on loopback and in one
 * loop, for tests of conn.c and dial.c. Everything that happens is counted. */
#ifndef MAKESPAN_TESTS_UNIT_PROTO_CONN_RIG_H
#define MAKESPAN_TESTS_UNIT_PROTO_CONN_RIG_H

#include "common/loop.h"
#include "proto/conn.h"
#include "proto/msg.h"
#include "proto/tls_session.h"
#include "tests/unit/proto/trust.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RIG_SIDES = 16 };

struct rig;
struct rig_side;
typedef void rig_event_f(struct rig_side *side, const struct conn_event *event);

/* One end of a connection and what happened to it. */
struct rig_side {
    struct rig *rig;
    struct conn *conn; /* NULL before and after */
    unsigned opens, messages, drains, closes;
    uint64_t last_beat; /* n of the last BEAT */
    bool out_of_order;  /* a BEAT that did not count up */
    uint32_t last_type;
    size_t last_bytes; /* of OUTPUT, SWEEP_PUT, JOINED */
    enum close_reason reason;
    bool by_peer;
    char text[1200];
    rig_event_f *on_event; /* NULL: nothing more */
    int tag;               /* of the test */
};

struct rig {
    struct loop *loop;
    struct trust_pair lab, coordinator, worker;
    struct trust_world server_world, client_world;
    struct tls *server, *client, *joiner;
    struct conn_limits limits; /* of both ends, unless a test sets them before */
    struct conn_listener *listener;
    char address[64];
    struct rig_side accepted[RIG_SIDES];
    size_t n_accepted;
    struct rig_side dialled[RIG_SIDES];
    size_t n_dialled;
    unsigned rejects;
    enum close_reason reject_reason;
    char reject_text[1200];
    rig_event_f *on_accepted_event; /* given to each accepted side */
    bool close_on_accept;
};

void rig_init(struct rig *rig); /* keys, certificates, contexts, the loop */
void rig_listen(struct rig *rig);
/* Closes quietly what is open, and frees all; under ASan nothing is left. */
void rig_fini(struct rig *rig);
/* The next side, dialled; not open yet. */
struct rig_side *rig_dial(struct rig *rig, struct tls *tls);
/* Dials and waits until both ends are open; *accepted is the other end. */
struct rig_side *rig_connect(struct rig *rig, struct rig_side **accepted);

/* Turns the loop until the condition holds; asserts that it does within 30 s. */
int64_t rig_deadline(void);
void rig_turn(struct rig *rig, int64_t deadline, const char *condition);
#define RIG_WAIT(rig, condition)                                                                   \
    do {                                                                                           \
        int64_t rig_until = rig_deadline();                                                        \
        while (!(condition)) {                                                                     \
            rig_turn((rig), rig_until, #condition);                                                \
        }                                                                                          \
    } while (0)

int rig_beat(struct rig_side *side, uint64_t n);
/* An OUTPUT of n bytes. */
int rig_output(struct rig_side *side, size_t n);

/* A client of bare bytes: a socket, and TLS on it if wanted. */
struct rig_raw {
    int fd;
    struct tls_session *s;
};
void rig_raw_connect(struct rig *rig, struct rig_raw *raw, struct tls *tls);
void rig_raw_write(struct rig *rig, struct rig_raw *raw, const void *data, size_t n);
/* Reads until GOODBYE came; asserts that it does. */
void rig_raw_expect_goodbye(struct rig *rig, struct rig_raw *raw, enum close_reason reason,
                            const char *part_of_text);
void rig_raw_close(struct rig_raw *raw);
/* Whether the socket is at its end, by now. */
bool rig_raw_is_ended(const struct rig_raw *raw);

#endif

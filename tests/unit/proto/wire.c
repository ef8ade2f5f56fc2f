/* wire.c: connections on loopback for tests. */
#include "tests/unit/proto/wire.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/str.h"
#include "proto/frame.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_NS (30 * CLOCK_SEC)

int64_t wire_deadline(void)
{
    return clock_mono_ns() + WAIT_NS;
}

void wire_turn(struct wire *wire, int64_t deadline, const char *condition)
{
    cr_assert(clock_mono_ns() < deadline, "never came true: %s", condition);
    loop_turn(wire->loop, 20 * CLOCK_MS);
}

static void note_message(struct wire_side *side, const struct msg *msg)
{
    side->messages++;
    side->last_type = msg->type;
    if (msg->type == MSG_BEAT) {
        side->out_of_order = side->out_of_order || msg->u.beat.n != side->last_beat + 1;
        side->last_beat = msg->u.beat.n;
    } else if (msg->type == MSG_OUTPUT) {
        side->last_bytes = msg->u.output.bytes.len;
    } else if (msg->type == MSG_SWEEP_PUT) {
        side->last_bytes = msg->u.sweep_put.text.len;
    } else if (msg->type == MSG_JOINED) {
        side->last_bytes = msg->u.joined.cert.len;
    }
}

static void on_event(struct conn *conn, const struct conn_event *event, void *arg)
{
    struct wire_side *side = arg;
    cr_assert_eq(side->conn, conn);
    cr_assert_eq(conn_arg(conn), arg);
    cr_assert_eq(side->closes, 0, "an event after CONN_CLOSED");
    switch (event->kind) {
    case CONN_OPEN:
        cr_assert_eq(side->opens, 0);
        cr_assert_eq(side->messages, 0);
        side->opens++;
        break;
    case CONN_MESSAGE:
        cr_assert_eq(side->opens, 1);
        note_message(side, event->msg);
        break;
    case CONN_DRAINED:
        side->drains++;
        break;
    case CONN_CLOSED:
        side->closes++;
        side->reason = event->reason;
        side->by_peer = event->by_peer;
        cr_assert_not_null(event->text);
        str_copy(side->text, sizeof(side->text), event->text);
        break;
    }
    if (side->on_event != NULL) {
        side->on_event(side, event);
    }
    if (event->kind == CONN_CLOSED) {
        side->conn = NULL;
    }
}

static void on_accept(struct conn *conn, void *arg)
{
    struct wire *wire = arg;
    cr_assert_lt(wire->n_accepted, WIRE_SIDES);
    if (wire->close_on_accept) {
        conn_close(conn, CLOSE_TOO_MANY, NULL, true);
        return;
    }
    struct wire_side *side = &wire->accepted[wire->n_accepted++];
    *side = (struct wire_side){.wire = wire, .conn = conn, .on_event = wire->on_accepted_event};
    conn_set_handler(conn, on_event, side);
}

static void on_reject(const char *address, enum close_reason reason, const char *text, void *arg)
{
    struct wire *wire = arg;
    cr_assert(str_starts(address, "127.0.0.1:"), "%s", address);
    wire->rejects++;
    wire->reject_reason = reason;
    str_copy(wire->reject_text, sizeof(wire->reject_text), text);
}

void wire_init(struct wire *wire)
{
    memset(wire, 0, sizeof(*wire));
    wire->loop = loop_new();
    cr_assert_not_null(wire->loop);
    wire->server_world.now_s = TRUST_NOW;
    wire->client_world.now_s = TRUST_NOW;
    trust_authority("lab", &wire->lab);
    trust_issue(&wire->lab, ROLE_COORDINATOR, "main", &wire->coordinator);
    trust_issue(&wire->lab, ROLE_WORKER, "p6", &wire->worker);
    wire->server = trust_server(&wire->lab, &wire->coordinator, &wire->server_world);
    wire->client = trust_client(&wire->lab, &wire->worker, &wire->client_world, false);
    wire->joiner = trust_joiner(&wire->lab, &wire->client_world, false);
}

void wire_listen(struct wire *wire)
{
    struct diag *diag = diag_new(4);
    int err = conn_listen(wire->loop, wire->server, "127.0.0.1:0", &wire->limits, on_accept,
                          on_reject, wire, &wire->listener, diag);
    cr_assert_eq(err, 0, "%s", diag_first(diag));
    diag_free(&diag);
    snprintf(wire->address, sizeof(wire->address), "127.0.0.1:%u",
             (unsigned)conn_listener_port(wire->listener));
}

static void forget(struct wire_side *sides, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (sides[i].conn != NULL) {
            conn_close(sides[i].conn, CLOSE_SHUTDOWN, NULL, true);
            sides[i].conn = NULL;
        }
    }
}

void wire_fini(struct wire *wire)
{
    forget(wire->dialled, wire->n_dialled);
    forget(wire->accepted, wire->n_accepted);
    conn_listener_free(&wire->listener);
    tls_free(&wire->server);
    tls_free(&wire->client);
    tls_free(&wire->joiner);
    loop_free(&wire->loop);
    trust_free(&wire->lab);
    trust_free(&wire->coordinator);
    trust_free(&wire->worker);
}

struct wire_side *wire_dial(struct wire *wire, struct tls *tls)
{
    cr_assert_lt(wire->n_dialled, WIRE_SIDES);
    struct wire_side *side = &wire->dialled[wire->n_dialled++];
    *side = (struct wire_side){.wire = wire};
    cr_assert_eq(
        conn_dial(wire->loop, tls, wire->address, &wire->limits, on_event, side, &side->conn, NULL),
        0);
    return side;
}

struct wire_side *wire_connect(struct wire *wire, struct wire_side **accepted)
{
    size_t n = wire->n_accepted;
    struct wire_side *side = wire_dial(wire, wire->client);
    WIRE_WAIT(wire, side->opens > 0 && wire->n_accepted > n && wire->accepted[n].opens > 0);
    *accepted = &wire->accepted[n];
    return side;
}

int wire_beat(struct wire_side *side, uint64_t n)
{
    struct msg msg = {.type = MSG_BEAT, .u.beat = {.n = n}};
    return conn_send(side->conn, &msg);
}

int wire_output(struct wire_side *side, size_t n)
{
    static const uint8_t zeros[262144];
    struct msg msg = {.type = MSG_OUTPUT,
                      .u.output = {.run = 1, .attempt = 1, .bytes = {.data = zeros, .len = n}}};
    return conn_send(side->conn, &msg);
}

/* --- bare bytes --- */

void wire_raw_connect(struct wire *wire, struct wire_raw *raw, struct tls *tls)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                               .sin_port = htons(conn_listener_port(wire->listener))};
    raw->s = NULL;
    raw->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(connect(raw->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    cr_assert_eq(fcntl(raw->fd, F_SETFL, O_NONBLOCK), 0);
    if (tls == NULL) {
        return;
    }
    size_t n = wire->n_accepted;
    cr_assert_eq(tls_session_new(tls, raw->fd, &raw->s, NULL), 0);
    WIRE_WAIT(wire, tls_session_handshake(raw->s) == TLS_DONE);
    WIRE_WAIT(wire, wire->n_accepted > n && wire->accepted[n].opens > 0);
}

void wire_raw_write(struct wire *wire, struct wire_raw *raw, const void *data, size_t n)
{
    const uint8_t *p = data;
    int64_t until = wire_deadline();
    while (n > 0) {
        size_t put;
        enum tls_io io = tls_session_write(raw->s, p, n, &put);
        if (io == TLS_DONE) {
            p += put;
            n -= put;
        } else {
            cr_assert(io == TLS_WANT_WRITE || io == TLS_WANT_READ);
            wire_turn(wire, until, "the bytes are written");
        }
    }
}

void wire_raw_expect_goodbye(struct wire *wire, struct wire_raw *raw, enum close_reason reason,
                             const char *part_of_text)
{
    struct frame_in in;
    frame_in_init(&in, FRAME_MAX);
    int64_t until = wire_deadline();
    for (bool found = false; !found;) {
        uint8_t bytes[TLS_RECORD_MAX];
        const uint8_t *p = bytes;
        size_t got = 0;
        enum tls_io io = tls_session_read(raw->s, bytes, sizeof(bytes), &got);
        cr_assert(io == TLS_DONE || io == TLS_WANT_READ, "ended before GOODBYE");
        struct frame frame;
        while (frame_next(&in, &p, &got, &frame) == 1) {
            struct msg *msg;
            cr_assert_eq(msg_decode(frame.type, frame.body, frame.n, &msg, NULL), 0);
            if (msg->type == MSG_GOODBYE) {
                found = true;
                cr_expect_eq(msg->u.goodbye.reason, reason, "%s",
                             close_name(msg->u.goodbye.reason));
                cr_expect(strstr(msg->u.goodbye.text, part_of_text) != NULL, "%s",
                          msg->u.goodbye.text);
            }
            msg_free(&msg);
        }
        if (!found) {
            cr_assert_not_null(wire->loop, "no GOODBYE, and nothing more will come");
            wire_turn(wire, until, "GOODBYE comes");
        }
    }
    frame_in_fini(&in);
}

bool wire_raw_is_ended(const struct wire_raw *raw)
{
    char bytes[4096];
    ssize_t rc;
    while ((rc = recv(raw->fd, bytes, sizeof(bytes), 0)) > 0) {
    }
    return rc == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

void wire_raw_close(struct wire_raw *raw)
{
    tls_session_free(&raw->s);
    close(raw->fd);
    raw->fd = -1;
}

/* conn_rig.c: connections on loopback for tests. */
#include "tests/unit/proto/conn_rig.h"

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

int64_t rig_deadline(void)
{
    return clock_mono_ns() + WAIT_NS;
}

void rig_turn(struct rig *rig, int64_t deadline, const char *condition)
{
    cr_assert(clock_mono_ns() < deadline, "never came true: %s", condition);
    loop_turn(rig->loop, 20 * CLOCK_MS);
}

static void note_message(struct rig_side *side, const struct msg *msg)
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
    struct rig_side *side = arg;
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
    struct rig *rig = arg;
    cr_assert_lt(rig->n_accepted, RIG_SIDES);
    if (rig->close_on_accept) {
        conn_close(conn, CLOSE_TOO_MANY, NULL, true);
        return;
    }
    struct rig_side *side = &rig->accepted[rig->n_accepted++];
    *side = (struct rig_side){.rig = rig, .conn = conn, .on_event = rig->on_accepted_event};
    conn_set_handler(conn, on_event, side);
}

static void on_reject(const char *address, enum close_reason reason, const char *text, void *arg)
{
    struct rig *rig = arg;
    cr_assert(str_starts(address, "127.0.0.1:"), "%s", address);
    rig->rejects++;
    rig->reject_reason = reason;
    str_copy(rig->reject_text, sizeof(rig->reject_text), text);
}

void rig_init(struct rig *rig)
{
    memset(rig, 0, sizeof(*rig));
    rig->loop = loop_new();
    cr_assert_not_null(rig->loop);
    rig->server_world.now_s = TRUST_NOW;
    rig->client_world.now_s = TRUST_NOW;
    trust_authority("lab", &rig->lab);
    trust_issue(&rig->lab, ROLE_COORDINATOR, "main", &rig->coordinator);
    trust_issue(&rig->lab, ROLE_WORKER, "p6", &rig->worker);
    rig->server = trust_server(&rig->lab, &rig->coordinator, &rig->server_world);
    rig->client = trust_client(&rig->lab, &rig->worker, &rig->client_world, false);
    rig->joiner = trust_joiner(&rig->lab, &rig->client_world, false);
}

void rig_listen(struct rig *rig)
{
    struct diag *diag = diag_new(4);
    int err = conn_listen(rig->loop, rig->server, "127.0.0.1:0", &rig->limits, on_accept, on_reject, rig,
                          &rig->listener, diag);
    cr_assert_eq(err, 0, "%s", diag_first(diag));
    diag_free(&diag);
    snprintf(rig->address, sizeof(rig->address), "127.0.0.1:%u",
             (unsigned)conn_listener_port(rig->listener));
}

static void forget(struct rig_side *sides, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (sides[i].conn != NULL) {
            conn_close(sides[i].conn, CLOSE_SHUTDOWN, NULL, true);
            sides[i].conn = NULL;
        }
    }
}

void rig_fini(struct rig *rig)
{
    forget(rig->dialled, rig->n_dialled);
    forget(rig->accepted, rig->n_accepted);
    conn_listener_free(&rig->listener);
    tls_free(&rig->server);
    tls_free(&rig->client);
    tls_free(&rig->joiner);
    loop_free(&rig->loop);
    trust_free(&rig->lab);
    trust_free(&rig->coordinator);
    trust_free(&rig->worker);
}

struct rig_side *rig_dial(struct rig *rig, struct tls *tls)
{
    cr_assert_lt(rig->n_dialled, RIG_SIDES);
    struct rig_side *side = &rig->dialled[rig->n_dialled++];
    *side = (struct rig_side){.rig = rig};
    cr_assert_eq(conn_dial(rig->loop, tls, rig->address, &rig->limits, on_event, side, &side->conn, NULL),
                 0);
    return side;
}

struct rig_side *rig_connect(struct rig *rig, struct rig_side **accepted)
{
    size_t n = rig->n_accepted;
    struct rig_side *side = rig_dial(rig, rig->client);
    RIG_WAIT(rig, side->opens > 0 && rig->n_accepted > n && rig->accepted[n].opens > 0);
    *accepted = &rig->accepted[n];
    return side;
}

int rig_beat(struct rig_side *side, uint64_t n)
{
    struct msg msg = {.type = MSG_BEAT, .u.beat = {.n = n}};
    return conn_send(side->conn, &msg);
}

int rig_output(struct rig_side *side, size_t n)
{
    static const uint8_t zeros[262144];
    struct msg msg = {.type = MSG_OUTPUT,
                      .u.output = {.run = 1, .attempt = 1, .bytes = {.data = zeros, .len = n}}};
    return conn_send(side->conn, &msg);
}

/* --- bare bytes --- */

void rig_raw_connect(struct rig *rig, struct rig_raw *raw, struct tls *tls)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                               .sin_port = htons(conn_listener_port(rig->listener))};
    raw->s = NULL;
    raw->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(connect(raw->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    cr_assert_eq(fcntl(raw->fd, F_SETFL, O_NONBLOCK), 0);
    if (tls == NULL) {
        return;
    }
    size_t n = rig->n_accepted;
    cr_assert_eq(tls_session_new(tls, raw->fd, &raw->s, NULL), 0);
    RIG_WAIT(rig, tls_session_handshake(raw->s) == TLS_DONE);
    RIG_WAIT(rig, rig->n_accepted > n && rig->accepted[n].opens > 0);
}

void rig_raw_write(struct rig *rig, struct rig_raw *raw, const void *data, size_t n)
{
    const uint8_t *p = data;
    int64_t until = rig_deadline();
    while (n > 0) {
        size_t put;
        enum tls_io io = tls_session_write(raw->s, p, n, &put);
        if (io == TLS_DONE) {
            p += put;
            n -= put;
        } else {
            cr_assert(io == TLS_WANT_WRITE || io == TLS_WANT_READ);
            rig_turn(rig, until, "the bytes are written");
        }
    }
}

void rig_raw_expect_goodbye(struct rig *rig, struct rig_raw *raw, enum close_reason reason,
                            const char *part_of_text)
{
    struct frame_in in;
    frame_in_init(&in, FRAME_MAX);
    int64_t until = rig_deadline();
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
                cr_expect_eq(msg->u.goodbye.reason, reason, "%s", close_name(msg->u.goodbye.reason));
                cr_expect(strstr(msg->u.goodbye.text, part_of_text) != NULL, "%s", msg->u.goodbye.text);
            }
            msg_free(&msg);
        }
        if (!found) {
            rig_turn(rig, until, "GOODBYE comes");
        }
    }
    frame_in_fini(&in);
}

bool rig_raw_is_ended(const struct rig_raw *raw)
{
    char bytes[4096];
    ssize_t rc;
    while ((rc = recv(raw->fd, bytes, sizeof(bytes), 0)) > 0) {
    }
    return rc == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

void rig_raw_close(struct rig_raw *raw)
{
    tls_session_free(&raw->s);
    close(raw->fd);
    raw->fd = -1;
}

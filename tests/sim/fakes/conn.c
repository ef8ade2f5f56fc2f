/* conn.c: proto/conn.h in memory. Messages really are encoded, framed, cut into pieces, guarded and
 * decoded; sockets and TLS are wire.c and tls.c. A connection goes
 *
 *     NEW SYN SHAKE OPEN CLOSING DEAD
 *
 * and what is queued leaves in a later turn, as long as the other side takes it. */
#include "proto/conn.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/mem.h"
#include "proto/msg.h"
#include "tests/sim/fakes/conn.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define HANDSHAKE (10 * CLOCK_SEC)
#define LINGER (2 * CLOCK_SEC)
#define QUEUE_MAX ((size_t)4 * 1024 * 1024)
#define WINDOW ((size_t)256 * 1024)

static void on_deadline(void *arg);
static void on_flush(void *arg);
static void on_kick(void *arg);

/* --- making and ending --- */

static void free_conn(void *arg)
{
    struct conn *c = arg;
    struct conn **at = &c->node->conns;
    while (*at != c) {
        at = &(*at)->next;
    }
    *at = c->next;
    if (c->wire != NULL) {
        sim_wire_leave(c->wire, c->side);
    }
    if (c->tls != NULL) {
        sim_tls_release(c->tls);
    }
    sim_event_clear(&c->deadline);
    sim_event_clear(&c->flush);
    sim_event_clear(&c->kick);
    frame_in_fini(&c->in);
    buf_fini(&c->out);
    buf_fini(&c->held);
    free(c->text);
    free(c);
}

/* The loop ends. Whoever had a connection has closed it, unless the node has crashed. */
static void free_all(void *arg)
{
    struct node *node = arg;
    while (node->conns != NULL) {
        assert(node->gone || node->conns->f == NULL);
        free_conn(node->conns);
    }
}

struct conn *sim_conn_new(struct node *node, struct loop *loop, const struct conn_limits *limits,
                             struct tls *tls)
{
    struct conn *c = mem_xzalloc(sizeof(*c));
    c->node = node;
    c->loop = loop;
    c->limits = limits != NULL ? *limits : (struct conn_limits){0};
    c->limits.handshake_ns = c->limits.handshake_ns > 0 ? c->limits.handshake_ns : HANDSHAKE;
    c->limits.queue_max = c->limits.queue_max > 0 ? c->limits.queue_max : QUEUE_MAX;
    bool usual = c->limits.frame_max == 0 || c->limits.frame_max > FRAME_MAX;
    frame_in_init(&c->in, usual ? FRAME_MAX : (uint32_t)c->limits.frame_max);
    c->tls = tls;
    sim_tls_hold(tls);
    sim_event_init(&c->deadline, node, on_deadline, c);
    sim_event_init(&c->flush, node, on_flush, c);
    sim_event_init(&c->kick, node, on_kick, c);
    c->next = node->conns;
    node->conns = c;
    if (loop_attached(loop, free_all) == NULL) {
        loop_attach(loop, free_all, node);
    }
    return c;
}

void sim_conn_blame(struct conn *c, enum close_reason reason, bool by_peer, const char *text)
{
    if (c->reason != CLOSE_NONE) {
        return;
    }
    c->reason = reason;
    c->by_peer = by_peer;
    c->text = mem_xstrdup(text != NULL && text[0] != '\0' ? text : close_text((uint32_t)reason));
}

/* The network is gone; CLOSED and the free come in a later turn. */
void sim_conn_die(struct conn *c)
{
    if (c->state == DEAD) {
        return;
    }
    c->state = DEAD;
    if (c->listener != NULL) {
        c->listener->count--;
        c->listener = NULL;
    }
    if (c->wire != NULL) {
        struct wire *wire = c->wire;
        c->wire = NULL;
        sim_wire_leave(wire, c->side);
    }
    sim_event_clear(&c->flush);
    sim_event_clear(&c->deadline);
    if (c->f == NULL) {
        loop_defer(c->loop, free_conn, c);
    } else {
        sim_event_set(&c->deadline, sim_world()->now_ns);
    }
}

void sim_conn_emit(struct conn *c, enum conn_event_kind kind, const struct msg *msg)
{
    struct conn_event event = {.kind = kind, .msg = msg};
    if (kind == CONN_CLOSED) {
        event.reason = c->reason;
        event.text = c->text;
        event.by_peer = c->by_peer;
    }
    if (c->f != NULL) {
        c->f(c, &event, c->arg);
    }
}

/* --- sending --- */

/* Up to `most` bytes of the queue leave. */
static void leave(struct conn *c, size_t most)
{
    size_t n = c->out.len < most ? c->out.len : most;
    const struct packet p = {.kind = PACKET_DATA, .n = n, .data = c->out.data};
    if (n == 0) {
        return;
    }
    if (c->wire != NULL) {
        sim_wire_send(c->wire, c->side, &p);
    }
    c->stats.bytes_out += n;
    buf_consume(&c->out, n);
}

static void on_flush(void *arg)
{
    struct conn *c = arg;
    size_t taken = c->wire != NULL ? c->wire->pipe[1 - c->side].bytes : 0;
    leave(c, taken < WINDOW ? WINDOW - taken : 0);
    if (c->out.len > 0) {
        sim_event_set(&c->flush, sim_world()->now_ns + CLOCK_MS);
    } else if (c->state == OPEN) {
        sim_conn_emit(c, CONN_DRAINED, NULL);
    }
}

void sim_conn_lose(struct conn *c)
{
    if (c->out.len > 0 && c->state == OPEN) {
        leave(c, (size_t)sim_between(0, (int64_t)c->out.len));
    }
    c->wire = NULL;
}

int conn_send(struct conn *conn, const struct msg *msg)
{
    if (conn->state != OPEN) {
        return -ERR_CLOSED;
    }
    int rc = sim_effect(SIM_SEND, msg_name(msg->type), 0);
    size_t before = conn->out.len;
    rc = rc != 0 ? rc : msg_encode(msg, &conn->out);
    if (rc != 0 && conn->out.err == 0) {
        return -ERR_LIMIT;
    }
    if (rc != 0 || conn->out.len > conn->limits.queue_max) {
        conn->out.err = 0;
        frame_drop(&conn->out, before);
        conn_close(conn, CLOSE_QUEUE_FULL, NULL, false);
        return -ERR_FULL;
    }
    conn->stats.msgs_out++;
    if (!sim_event_pending(&conn->flush)) {
        sim_event_set(&conn->flush, sim_world()->now_ns);
    }
    return 0;
}

size_t conn_queued(const struct conn *conn)
{
    return conn->out.len;
}

/* --- closing --- */

static void say_goodbye(struct conn *c)
{
    struct msg msg = {.type = MSG_GOODBYE,
                      .u.goodbye = {.reason = (uint32_t)c->reason, .text = c->text}};
    if (msg_encode(&msg, &c->out) == 0) {
        c->stats.msgs_out++;
    }
    leave(c, SIZE_MAX);
    const struct packet end = {.kind = PACKET_END};
    if (c->wire != NULL) {
        sim_wire_send(c->wire, c->side, &end);
    }
}

static void free_quietly(void *arg)
{
    struct conn *c = arg;
    if (c->state != DEAD) {
        sim_conn_die(c); /* defers the free */
    }
}

void conn_close(struct conn *conn, enum close_reason reason, const char *text, bool quiet)
{
    assert(reason != CLOSE_NONE);
    sim_conn_blame(conn, reason, false, text);
    switch (conn->state) {
    case NEW:
    case SYN:
    case SHAKE:
        if (quiet) {
            conn->f = NULL;
        }
        sim_conn_die(conn);
        return;
    case OPEN:
        conn->state = CLOSING;
        sim_event_clear(&conn->flush);
        say_goodbye(conn);
        sim_event_set(&conn->deadline, sim_world()->now_ns + LINGER);
        break;
    case CLOSING:
        break;
    case DEAD:
        if (quiet && sim_event_pending(&conn->deadline)) {
            sim_event_clear(&conn->deadline);
            conn->f = NULL;
            loop_defer(conn->loop, free_conn, conn);
        }
        break;
    }
    if (quiet && conn->state == CLOSING && conn->f != NULL) {
        conn->f = NULL;
        loop_defer(conn->loop, free_quietly, conn);
    }
}

/* --- receiving --- */

static bool joiner_may(struct conn *c, uint32_t type)
{
    bool stranger = c->side == WIRE_SERVER && c->peer.joining;
    if (!stranger || type == MSG_GOODBYE || (type == MSG_JOIN && c->stats.msgs_in == 0)) {
        return true;
    }
    conn_close(c, CLOSE_NOT_NOW, "a joining program may send one JOIN and nothing else", false);
    return false;
}

static void deliver(struct conn *c, const struct frame *frame)
{
    struct msg *msg = NULL;
    if (!joiner_may(c, frame->type)) {
        return;
    }
    struct diag *diag = diag_new(1);
    int rc = msg_decode(frame->type, frame->body, frame->n, &msg, diag);
    if (rc != 0) {
        conn_close(c, rc == -ERR_UNSUP ? CLOSE_UNKNOWN_MESSAGE : CLOSE_DECODE, diag_first(diag),
                   false);
        diag_free(&diag);
        return;
    }
    diag_free(&diag);
    c->stats.msgs_in++;
    if (msg->type == MSG_GOODBYE) {
        const struct msg_goodbye *bye = &msg->u.goodbye;
        enum close_reason reason = bye->reason != 0 ? (enum close_reason)bye->reason : CLOSE_EOF;
        sim_conn_blame(c, reason, true, bye->text);
        sim_conn_die(c);
    } else {
        world_note(sim_world(), "< %s %s", msg_name(msg->type), c->peer.name);
        if (!c->node->gone && sim_world()->ops->heard != NULL) {
            sim_world()->ops->heard(c->node, msg, sim_world()->arg);
        }
        sim_conn_emit(c, CONN_MESSAGE, msg);
    }
    msg_free(&msg);
}

static void cut_frames(struct conn *c, const uint8_t *data, size_t n)
{
    struct frame frame;
    while (c->state == OPEN && !c->paused) {
        int rc = frame_next(&c->in, &data, &n, &frame);
        if (rc == 0) {
            return;
        }
        if (rc < 0) {
            conn_close(c, CLOSE_FRAME, NULL, false);
            return;
        }
        deliver(c, &frame);
    }
    if (c->state == OPEN) {
        buf_add(&c->held, data, n);
    }
}

void sim_conn_take_bytes(struct conn *conn, const uint8_t *data, size_t n)
{
    conn->stats.bytes_in += n;
    if (conn->paused || conn->held.len > 0) {
        buf_add(&conn->held, data, n);
    } else {
        cut_frames(conn, data, n);
    }
}

static void on_kick(void *arg)
{
    struct conn *c = arg;
    struct buf held = c->held;
    buf_init(&c->held, 0);
    cut_frames(c, held.data, held.len);
    buf_fini(&held);
}

void conn_pause(struct conn *conn, bool pause)
{
    conn->paused = pause;
    if (conn->wire != NULL && conn->state == OPEN) {
        sim_wire_hold(conn->wire, conn->side, pause);
    }
    if (!pause && conn->held.len > 0 && conn->state == OPEN) {
        sim_event_set(&conn->kick, sim_world()->now_ns);
    }
}

/* --- the deadline of the state --- */

static void on_deadline(void *arg)
{
    struct conn *c = arg;
    switch (c->state) {
    case NEW:
        sim_conn_call(c);
        break;
    case SYN:
        sim_conn_blame(c, CLOSE_DIAL, false, "no answer in time");
        sim_conn_die(c);
        break;
    case SHAKE:
        sim_conn_refuse(c, CLOSE_HANDSHAKE_TIMEOUT);
        break;
    case OPEN:
        conn_close(c, CLOSE_HELLO_TIMEOUT, "joining was not over in time", false);
        break;
    case CLOSING:
        sim_conn_die(c);
        break;
    case DEAD:
        world_note(sim_world(), "closed %s: %s", c->peer.address,
                   close_name((uint32_t)c->reason));
        sim_conn_emit(c, CONN_CLOSED, NULL);
        loop_defer(c->loop, free_conn, c);
        break;
    }
}

/* --- looking at it --- */

void conn_set_handler(struct conn *conn, conn_f *f, void *arg)
{
    conn->f = f;
    conn->arg = arg;
}

void *conn_arg(const struct conn *conn)
{
    return conn->arg;
}

const struct conn_peer *conn_peer(const struct conn *conn)
{
    return &conn->peer;
}

void conn_get_stats(const struct conn *conn, struct conn_stats *out)
{
    *out = conn->stats;
}

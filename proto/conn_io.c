/* conn_io.c: what goes through an open connection: the queue of frames to send, what is read, cut
 * and decoded, and what the socket is watched for. The connection's life is conn.c's. */
#include "proto/conn.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/str.h"
#include "proto/conn_impl.h"
#include "proto/msg.h"
#include "proto/tls_session.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define GOODBYE_TEXT_MAX 1024
#define READS_A_TURN 4 /* records, so that one fast sender does not keep the others waiting */

static void emit_kind(struct conn *conn, enum conn_event_kind kind)
{
    struct conn_event event = {.kind = kind};
    conn_emit(conn, &event);
}

/* --- what the socket is watched for --- */

size_t conn_queued(const struct conn *conn)
{
    return conn->out.len - conn->out_done;
}

static bool may_read(const struct conn *conn)
{
    return conn->state == CONN_S_OPEN && !conn->paused && conn->held.len == 0;
}

void conn_watch(struct conn *conn, bool want_write)
{
    if (conn->fd < 0) {
        return;
    }
    loop_fd_enable(conn->on_read, may_read(conn) || conn->state == CONN_S_SHAKE ||
                                      conn->state == CONN_S_FLUSH || conn->state == CONN_S_LINGER);
    loop_fd_enable(conn->on_write, want_write);
}

void conn_watch_open(struct conn *conn)
{
    bool sending = conn->state == CONN_S_OPEN || conn->state == CONN_S_FLUSH;
    conn_watch(conn, sending && ((conn_queued(conn) > 0 && !conn->write_wants_read) ||
                                 conn->read_wants_write));
}

/* --- sending --- */

/* Everything is written: no more of it comes from here. */
void conn_finish_sending(struct conn *conn)
{
    tls_session_shutdown(conn->session);
    if (shutdown(conn->fd, SHUT_WR) != 0 && errno != ENOTCONN) {
        log_debug("%s: shutdown: %s", conn->peer.address, strerror(errno));
    }
}

/* The network takes nothing any more. What the other side sent before may say why. */
static void lost(struct conn *conn)
{
    char *text = mem_xstrdup(tls_session_text(conn->session));
    conn->out_done = conn->out.len;
    conn->read_wants_write = false;
    if (conn->state == CONN_S_OPEN) {
        conn_read(conn);
    }
    if (conn->state != CONN_S_DEAD) {
        conn_blame(conn, CLOSE_IO, false, "%s", text);
        conn_die(conn);
    }
    free(text);
}

void conn_flush(struct conn *conn)
{
    while (conn_queued(conn) > 0) {
        size_t put;
        switch (tls_session_write(conn->session, conn->out.data + conn->out_done, conn_queued(conn),
                                  &put)) {
        case TLS_DONE:
            conn->out_done += put;
            break;
        case TLS_WANT_READ:
            conn->write_wants_read = true;
            return;
        case TLS_WANT_WRITE:
            return;
        case TLS_EOF:
            lost(conn);
            return;
        case TLS_FAILED:
            conn_blame_session(conn);
            conn_die(conn);
            return;
        }
    }
    buf_fini(&conn->out);
    conn->out_done = 0;
    if (conn->state == CONN_S_OPEN) {
        emit_kind(conn, CONN_DRAINED);
    } else if (conn->state == CONN_S_FLUSH) {
        conn_finish_sending(conn);
        conn_enter(conn, CONN_S_LINGER, CONN_KEEP_DEADLINE);
    }
}

/* Lets go of the written part when it is the larger one: each byte is moved at most once. */
static void compact(struct conn *conn)
{
    if (conn->out_done > conn_queued(conn)) {
        buf_consume(&conn->out, conn->out_done);
        conn->out_done = 0;
    }
}

int conn_send(struct conn *conn, const struct msg *msg)
{
    assert(conn->magic == CONN_MAGIC);
    if (conn->state != CONN_S_OPEN) {
        return -ERR_CLOSED;
    }
    compact(conn);
    size_t before = conn->out.len;
    int err = msg_encode(msg, &conn->out);
    if (err < 0 && conn->out.err == 0) {
        return -ERR_LIMIT;
    }
    if (err < 0 || conn_queued(conn) > conn->limits.queue_max) {
        conn->out.err = 0;
        frame_drop(&conn->out, before);
        conn_close(conn, CLOSE_QUEUE_FULL, NULL, false);
        return -ERR_FULL;
    }
    conn->stats.msgs_out++;
    conn_watch_open(conn);
    return 0;
}

void conn_queue_goodbye(struct conn *conn)
{
    char text[GOODBYE_TEXT_MAX + 1];
    str_copy(text, sizeof(text), conn->text);
    text[str_utf8_bad(text, strlen(text))] = '\0'; /* also where the copy cut a character */
    struct msg msg = {.type = MSG_GOODBYE,
                      .u.goodbye = {.reason = (uint32_t)conn->reason, .text = text}};
    if (msg_encode(&msg, &conn->out) < 0) {
        log_warn("%s: no memory for GOODBYE", conn->peer.address);
        return;
    }
    conn->stats.msgs_out++;
}

/* --- receiving --- */

/* Says which message could not be read; the good ones need no diag. */
static void refuse_frame(struct conn *conn, const struct frame *frame, int err)
{
    struct diag *diag = diag_new(1);
    struct msg *msg = NULL;
    int again = msg_decode(frame->type, frame->body, frame->n, &msg, diag);
    msg_free(&msg);
    const char *text = again < 0 ? diag_first(diag) : err_text(err);
    conn_close(conn, err == -ERR_UNSUP ? CLOSE_UNKNOWN_MESSAGE : CLOSE_DECODE,
               text[0] != '\0' ? text : err_text(err), false);
    diag_free(&diag);
}

/* A program that joins has no certificate: it may say one thing, and goodbye. */
static bool joiner_may(struct conn *conn, uint32_t type)
{
    if (!conn->server || !conn->peer.joining || type == MSG_GOODBYE) {
        return true;
    }
    if (type == MSG_JOIN && conn->stats.msgs_in == 0) {
        return true;
    }
    conn_close(conn, CLOSE_NOT_NOW, "a joining program may send one JOIN and nothing else", false);
    return false;
}

/* Text of the other side, for a terminal or a log: without control characters. */
static void make_plain(char *s)
{
    for (uint8_t *p = (uint8_t *)s; *p != '\0'; p++) {
        if (*p < ' ' || *p == 0x7f) {
            *p = ' ';
        } else if (*p == 0xc2 && p[1] < 0xa0) { /* U+0080 to U+009F; p[1] is there in UTF-8 */
            p[0] = p[1] = ' ';
        }
    }
}

static void goodbye(struct conn *conn, const struct msg_goodbye *bye)
{
    enum close_reason reason = bye->reason != 0 ? (enum close_reason)bye->reason : CLOSE_EOF;
    conn_blame(conn, reason, true, "%s",
               bye->text[0] != '\0' ? bye->text : close_text((uint32_t)reason));
    make_plain(conn->text);
    conn_die(conn);
}

static void deliver(struct conn *conn, const struct frame *frame)
{
    if (!joiner_may(conn, frame->type)) {
        return;
    }
    struct msg *msg;
    int err = msg_decode(frame->type, frame->body, frame->n, &msg, NULL);
    if (err < 0) {
        refuse_frame(conn, frame, err);
        return;
    }
    conn->stats.msgs_in++;
    if (msg->type == MSG_GOODBYE) {
        goodbye(conn, &msg->u.goodbye);
    } else {
        loop_doing(conn->loop, msg_name(frame->type));
        struct conn_event event = {.kind = CONN_MESSAGE, .msg = msg};
        conn_emit(conn, &event);
    }
    msg_free(&msg);
}

/* Cuts bytes into frames for as long as the owner wants them; keeps the rest when it paused. */
static void take(struct conn *conn, const uint8_t *data, size_t n)
{
    while (conn->state == CONN_S_OPEN && !conn->paused) {
        struct frame frame;
        int rc = frame_next(&conn->in, &data, &n, &frame);
        if (rc == 0) {
            return;
        }
        if (rc < 0) {
            conn_close(conn, CLOSE_FRAME, NULL, false);
            return;
        }
        deliver(conn, &frame);
    }
    if (conn->state == CONN_S_OPEN && n > 0) {
        buf_add(&conn->held, data, n);
        if (conn->held.err != 0) {
            conn_close(conn, CLOSE_FRAME, "memory is out", false);
        }
    }
}

static void ended(struct conn *conn)
{
    conn_blame(conn, CLOSE_EOF, true, "%s",
               frame_in_pending(&conn->in) > 0
                   ? "the other side closed the connection in the middle of a message"
                   : close_text(CLOSE_EOF));
    conn_die(conn);
}

void conn_read(struct conn *conn)
{
    uint8_t bytes[TLS_RECORD_MAX];
    conn->read_wants_write = false;
    conn->write_wants_read = false;
    for (int i = 0; i < READS_A_TURN && may_read(conn); i++) {
        size_t got;
        switch (tls_session_read(conn->session, bytes, sizeof(bytes), &got)) {
        case TLS_DONE:
            take(conn, bytes, got);
            break;
        case TLS_WANT_READ:
            return;
        case TLS_WANT_WRITE:
            conn->read_wants_write = true;
            return;
        case TLS_EOF:
            ended(conn);
            return;
        case TLS_FAILED:
            conn_blame_session(conn);
            conn_die(conn);
            return;
        }
    }
}

static void on_kick(void *arg)
{
    struct conn *conn;
    CAST_OBJ(conn, arg, CONN_MAGIC);
    if (conn->state != CONN_S_OPEN || conn->paused) {
        return;
    }
    struct buf held = conn->held;
    buf_init(&conn->held, 0);
    take(conn, held.data, held.len);
    buf_fini(&held);
    conn_watch_open(conn);
}

void conn_pause(struct conn *conn, bool pause)
{
    assert(conn->magic == CONN_MAGIC);
    conn->paused = pause;
    if (conn->state != CONN_S_OPEN) {
        return;
    }
    if (!pause && conn->held.len > 0) {
        if (conn->kick == NULL) {
            conn->kick = loop_timer_new(conn->loop, on_kick, conn);
        }
        loop_timer_set(conn->kick, 0);
    }
    conn_watch_open(conn);
}

/* While closing, what comes is thrown away unread; its end is what is waited for. */
void conn_throw_away(struct conn *conn)
{
    uint8_t bytes[TLS_RECORD_MAX];
    ssize_t rc = recv(conn->fd, bytes, sizeof(bytes), 0);
    if (rc > 0 || (rc < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))) {
        return;
    }
    conn_die(conn);
}

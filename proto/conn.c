/* conn.c: the life of a connection from its TLS handshake to its end: states and their deadlines,
 * closing with a reason, the order of freeing. What goes through it is conn_io.c, dialling is
 * conn_dial.c, accepting conn_listen.c, TLS tls_session.c; what messages mean is the owner's. */
#include "proto/conn.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "proto/conn_impl.h"
#include "proto/pki.h"
#include "proto/tls_session.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HANDSHAKE_NS (10 * CLOCK_SEC)
#define CLOSE_NS (2 * CLOCK_SEC)
#define QUEUE_MAX ((size_t)4 * 1024 * 1024)
#define CONNS_MAX 20000
#define RESERVE_FDS 64

static void on_timer(void *arg);
static void on_ready(int fd, int what, void *arg);

/* --- making and ending --- */

void conn_limits_set(struct conn_limits *dst, const struct conn_limits *limits)
{
    *dst = limits != NULL ? *limits : (struct conn_limits){0};
    dst->handshake_ns = dst->handshake_ns > 0 ? dst->handshake_ns : HANDSHAKE_NS;
    dst->queue_max = dst->queue_max > 0 ? dst->queue_max : QUEUE_MAX;
    dst->frame_max = dst->frame_max > 0 && dst->frame_max < FRAME_MAX ? dst->frame_max : FRAME_MAX;
    dst->max_conns = dst->max_conns > 0 ? dst->max_conns : CONNS_MAX;
    dst->reserve_fds = dst->reserve_fds > 0 ? dst->reserve_fds : RESERVE_FDS;
}

struct conn *conn_new(struct loop *loop, const struct conn_limits *limits, bool server)
{
    struct conn *conn = mem_xzalloc(sizeof(*conn));
    conn->magic = CONN_MAGIC;
    conn->state = CONN_S_NEW;
    conn->fd = -1;
    conn->server = server;
    conn->loop = loop;
    conn->timer = loop_timer_new(loop, on_timer, conn);
    conn_limits_set(&conn->limits, limits);
    frame_in_init(&conn->in, (uint32_t)conn->limits.frame_max);
    return conn;
}

void conn_enter(struct conn *conn, enum conn_state state, int64_t deadline_ns)
{
    static const char *const names[] = {"NEW",   "CONNECT", "SHAKE", "OPEN",
                                        "FLUSH", "LINGER",  "DEAD"};
    log_debug("%s: %s -> %s%s%s", conn->peer.address, names[conn->state], names[state],
              conn->reason != CLOSE_NONE ? ": " : "", conn->text != NULL ? conn->text : "");
    conn->state = state;
    if (deadline_ns == CONN_KEEP_DEADLINE) {
        return;
    }
    if (deadline_ns < 0) {
        loop_timer_clear(conn->timer);
    } else {
        loop_timer_set(conn->timer, deadline_ns);
    }
}

void conn_blame(struct conn *conn, enum close_reason reason, bool by_peer, const char *fmt, ...)
{
    if (conn->reason != CLOSE_NONE) {
        return;
    }
    struct buf text = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    conn->reason = reason;
    conn->by_peer = by_peer;
    conn->text = mem_xstrdup(buf_str(&text));
    buf_fini(&text);
}

void conn_blame_session(struct conn *conn)
{
    conn_blame(conn, tls_session_reason(conn->session), tls_session_by_peer(conn->session), "%s",
               tls_session_text(conn->session));
}

/* Connections that nobody has any more, and that still write or wait for the other side's end.
 * They are kept with the loop, which takes them along when it is freed. */
struct orphans {
    struct conn *first;
};

static void kill_orphans(void *arg)
{
    struct orphans *orphans = arg;
    while (orphans->first != NULL) {
        conn_die(orphans->first);
    }
    free(orphans);
}

static void orphan(struct conn *conn)
{
    struct orphans *orphans = loop_attached(conn->loop, kill_orphans);
    if (orphans == NULL) {
        orphans = mem_xzalloc(sizeof(*orphans));
        loop_attach(conn->loop, kill_orphans, orphans);
    }
    conn->orphans = orphans;
    conn->next = orphans->first;
    if (conn->next != NULL) {
        conn->next->prev = conn;
    }
    orphans->first = conn;
}

static void leave_orphans(struct conn *conn)
{
    if (conn->orphans == NULL) {
        return;
    }
    if (conn->prev != NULL) {
        conn->prev->next = conn->next;
    } else {
        conn->orphans->first = conn->next;
    }
    if (conn->next != NULL) {
        conn->next->prev = conn->prev;
    }
    conn->orphans = NULL;
    conn->next = NULL;
    conn->prev = NULL;
}

static void free_later(void *arg)
{
    struct conn *conn;
    CAST_OBJ(conn, arg, CONN_MAGIC);
    loop_timer_free(&conn->timer);
    loop_timer_free(&conn->kick);
    free(conn->text);
    conn->magic = 0;
    free(conn);
}

void conn_drop_fd(struct conn *conn)
{
    loop_fd_free(&conn->on_read);
    loop_fd_free(&conn->on_write);
    if (conn->fd >= 0) {
        close(conn->fd);
        conn->fd = -1;
    }
}

static void count_bytes(struct conn *conn)
{
    if (conn->session != NULL) {
        conn->stats.bytes_in = tls_session_bytes_in(conn->session);
        conn->stats.bytes_out = tls_session_bytes_out(conn->session);
    }
}

void conn_die(struct conn *conn)
{
    if (conn->state == CONN_S_DEAD) {
        return;
    }
    assert(conn->reason != CLOSE_NONE);
    count_bytes(conn);
    tls_session_free(&conn->session);
    conn_drop_fd(conn);
    conn_dialling_free(&conn->dialling);
    frame_in_fini(&conn->in);
    buf_fini(&conn->held);
    buf_fini(&conn->out);
    conn->out_done = 0;
    conn_listen_dropped(conn);
    leave_orphans(conn);
    bool silent = conn->f == NULL;
    conn_enter(conn, CONN_S_DEAD, silent ? -1 : 0);
    if (silent) {
        loop_defer(conn->loop, free_later, conn);
    }
}

void conn_emit(struct conn *conn, const struct conn_event *event)
{
    if (conn->f != NULL) {
        conn->f(conn, event, conn->arg);
    }
}

/* --- closing --- */

/* A quiet close flushes at the end of the turn: behind the commit that the turn ends with. */
static void flush_quietly(void *arg)
{
    struct conn *conn;
    CAST_OBJ(conn, arg, CONN_MAGIC);
    if (conn->state == CONN_S_FLUSH) {
        conn_flush(conn);
        conn_watch_open(conn);
    }
    if (conn->state == CONN_S_LINGER) {
        conn_die(conn);
    }
}

/* The handler is not called any more; what can be done without it is done by the end of the
 * turn. */
static void hush(struct conn *conn)
{
    conn->f = NULL;
    if (conn->state == CONN_S_DEAD && loop_timer_pending(conn->timer)) {
        loop_timer_clear(conn->timer);
        loop_defer(conn->loop, free_later, conn);
    } else if (conn->state == CONN_S_FLUSH || conn->state == CONN_S_LINGER) {
        orphan(conn);
        loop_defer(conn->loop, flush_quietly, conn);
    }
}

void conn_close(struct conn *conn, enum close_reason reason, const char *text, bool quiet)
{
    assert(conn->magic == CONN_MAGIC && reason != CLOSE_NONE);
    text = text != NULL ? text : close_text((uint32_t)reason);
    switch (conn->state) {
    case CONN_S_NEW:
    case CONN_S_CONNECT:
    case CONN_S_SHAKE:
        conn_blame(conn, reason, false, "%s", text);
        conn_die(conn);
        break;
    case CONN_S_OPEN:
        conn_blame(conn, reason, false, "%s", text);
        conn_queue_goodbye(conn);
        frame_in_fini(&conn->in);
        buf_fini(&conn->held);
        conn_enter(conn, CONN_S_FLUSH, CLOSE_NS);
        conn_watch_open(conn);
        break;
    case CONN_S_FLUSH:
    case CONN_S_LINGER:
    case CONN_S_DEAD:
        break;
    }
    if (quiet) {
        hush(conn);
    }
}

/* --- the handshake --- */

void conn_shake(struct conn *conn, struct tls *tls, int fd)
{
    int one = 1;
    conn->fd = fd;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0) {
        log_debug("%s: TCP_NODELAY: %s", conn->peer.address, strerror(errno));
    }
    conn->on_read = loop_fd_new(conn->loop, fd, LOOP_READ, on_ready, conn);
    conn->on_write = loop_fd_new(conn->loop, fd, LOOP_WRITE, on_ready, conn);
    conn_enter(conn, CONN_S_SHAKE, conn->limits.handshake_ns);
    if (conn->on_read == NULL || conn->on_write == NULL ||
        tls_session_new(tls, fd, &conn->session, NULL) < 0) {
        conn_blame(conn, CLOSE_TLS, false, "the system has no room for another connection");
        conn_listen_failed(conn);
        conn_die(conn);
        return;
    }
    conn_watch(conn, !conn->server); /* the client speaks first */
}

/* The handshake failed. An alert may be on its way to the other side: closing at once could
 * destroy it there, if it is sending. */
static void fail_shake(struct conn *conn)
{
    conn_listen_failed(conn);
    if (!conn->server || conn->by_peer) {
        conn_die(conn);
        return;
    }
    conn_finish_sending(conn);
    conn_enter(conn, CONN_S_LINGER, CLOSE_NS);
    conn_watch(conn, false);
    orphan(conn);
}

static void opened(struct conn *conn)
{
    struct pki_id id;
    struct conn_peer *peer = &conn->peer;
    peer->joining = tls_session_is_joining(conn->session);
    if (tls_session_take_peer(conn->session, &id)) {
        peer->role = id.role;
        str_copy(peer->name, sizeof(peer->name), id.name);
        str_copy(peer->fleet, sizeof(peer->fleet), id.fleet);
        str_copy(peer->serial, sizeof(peer->serial), id.serial);
        str_copy(peer->key_hash, sizeof(peer->key_hash), id.key_hash);
        peer->cert_end_s = id.end_s;
    }
    bool stranger = conn->server && peer->joining;
    if (stranger && conn->in.max > FRAME_MAX_JOIN) {
        conn->in.max = FRAME_MAX_JOIN;
    }
    /* Joining takes no longer than a handshake may. */
    conn_enter(conn, CONN_S_OPEN, stranger ? conn->limits.handshake_ns : -1);
    conn_listen_opened(conn);
    if (conn->state == CONN_S_OPEN) {
        struct conn_event event = {.kind = CONN_OPEN};
        conn_emit(conn, &event);
    }
}

static void shake(struct conn *conn)
{
    switch (tls_session_handshake(conn->session)) {
    case TLS_DONE:
        opened(conn);
        conn_watch_open(conn);
        return;
    case TLS_WANT_READ:
        conn_watch(conn, false);
        return;
    case TLS_WANT_WRITE:
        conn_watch(conn, true);
        return;
    case TLS_EOF:
        conn_blame(conn, CLOSE_EOF, true,
                   "the other side closed the connection during the TLS handshake");
        break;
    case TLS_FAILED:
        conn_blame_session(conn);
        break;
    }
    fail_shake(conn);
}

/* --- events of the loop --- */

static void on_ready(int fd, int what, void *arg)
{
    struct conn *conn;
    (void)fd;
    CAST_OBJ(conn, arg, CONN_MAGIC);
    loop_doing(conn->loop, "connection");
    switch (conn->state) {
    case CONN_S_SHAKE:
        shake(conn);
        return;
    case CONN_S_OPEN:
        if (what == LOOP_READ || conn->read_wants_write) {
            conn_read(conn);
        }
        if (what == LOOP_WRITE && conn->state == CONN_S_OPEN && conn_queued(conn) > 0) {
            conn_flush(conn);
        }
        break;
    case CONN_S_FLUSH:
        if (what == LOOP_WRITE) {
            conn_flush(conn);
        } else {
            conn_throw_away(conn);
        }
        break;
    case CONN_S_LINGER:
        conn_throw_away(conn);
        break;
    case CONN_S_NEW:
    case CONN_S_CONNECT:
    case CONN_S_DEAD:
        return;
    }
    conn_watch_open(conn);
}

static void closed(struct conn *conn)
{
    struct conn_event event = {
        .kind = CONN_CLOSED, .reason = conn->reason, .text = conn->text, .by_peer = conn->by_peer};
    loop_doing(conn->loop, "connection closed");
    conn_emit(conn, &event);
    loop_defer(conn->loop, free_later, conn);
}

static void on_timer(void *arg)
{
    struct conn *conn;
    CAST_OBJ(conn, arg, CONN_MAGIC);
    char text[32];
    switch (conn->state) {
    case CONN_S_NEW:
        conn_dial_next(conn);
        break;
    case CONN_S_CONNECT:
        conn_dial_timeout(conn);
        break;
    case CONN_S_SHAKE:
        conn_blame(conn, CLOSE_HANDSHAKE_TIMEOUT, false, "the TLS handshake was not over after %s",
                   num_duration_text(text, sizeof(text), conn->limits.handshake_ns));
        conn_listen_failed(conn);
        conn_die(conn);
        break;
    case CONN_S_OPEN:
        conn_close(conn, CLOSE_HELLO_TIMEOUT, "joining was not over in time", false);
        break;
    case CONN_S_FLUSH:
    case CONN_S_LINGER:
        conn_die(conn);
        break;
    case CONN_S_DEAD:
        closed(conn);
        break;
    }
}

/* --- looking at it --- */

void conn_set_handler(struct conn *conn, conn_f *f, void *arg)
{
    assert(conn->magic == CONN_MAGIC);
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
    if (conn->session != NULL) {
        out->bytes_in = tls_session_bytes_in(conn->session);
        out->bytes_out = tls_session_bytes_out(conn->session);
    }
}

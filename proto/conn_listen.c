/* conn_listen.c: sockets that accept, and the limits that protect them: connections in all, in
 * their handshake, descriptors left free, a pause when the system has none. */
#include "proto/conn.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"
#include "proto/conn_addr.h"
#include "proto/conn_impl.h"
#include "proto/tls_session.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define LISTENER_MAGIC 0x6c73746eu
#define SOCKETS_MAX 8
#define BACKLOG 512
#define ACCEPTS_A_TURN 64
#define SHAKES_MAX 1024 /* handshakes at a time; more wait in the kernel's queue */
#define PAUSE_NS CLOCK_SEC
#define PORT_TRIES 16

struct socket {
    int fd;
    struct loop_fd *watch;
    struct conn_listener *listener;
};

struct conn_listener {
    unsigned magic;
    unsigned holds; /* the owner's and one of each connection */
    bool gone;      /* the owner gave it up */
    struct loop *loop;
    struct tls *tls; /* held */
    struct conn_limits limits;
    conn_accept_f *on_accept;
    conn_reject_f *on_reject;
    void *arg;
    struct socket sockets[SOCKETS_MAX];
    size_t n;
    size_t conns;
    size_t shakes;
    struct conn *shaking; /* list */
    struct loop_timer *pause;
    uint16_t port;
};

static void release(struct conn_listener *l)
{
    if (--l->holds == 0) {
        l->magic = 0;
        free(l);
    }
}

static void reject(struct conn_listener *l, const char *address, enum close_reason reason,
                   const char *text)
{
    if (!l->gone && l->on_reject != NULL) {
        l->on_reject(address, reason, text, l->arg);
    }
}

/* --- accepting --- */

static void watch(struct conn_listener *l)
{
    bool on = !loop_timer_pending(l->pause) && l->shakes < SHAKES_MAX;
    for (size_t i = 0; i < l->n; i++) {
        loop_fd_enable(l->sockets[i].watch, on);
    }
}

static void on_pause_over(void *arg)
{
    struct conn_listener *l;
    CAST_OBJ(l, arg, LISTENER_MAGIC);
    watch(l);
}

static void pause_accepting(struct conn_listener *l, const char *why)
{
    log_warn("no connections are accepted for a second: %s (%zu connections are open)", why,
             l->conns);
    loop_timer_set(l->pause, PAUSE_NS);
    watch(l);
}

/* The kernel gives the lowest free number: one near the limit means that so many are in use. */
static bool fds_are_short(const struct conn_listener *l, int fd)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return false;
    }
    rlim_t reserve = l->limits.reserve_fds;
    if (reserve > limit.rlim_cur / 4) {
        reserve = limit.rlim_cur / 4;
    }
    return (rlim_t)fd >= limit.rlim_cur - reserve;
}

static void start(struct conn_listener *l, int fd, const char *address)
{
    struct conn *conn = conn_new(l->loop, &l->limits, true);
    memcpy(conn->peer.address, address, CONN_ADDR_TEXT);
    conn->listener = l;
    l->holds++;
    l->conns++;
    l->shakes++;
    conn->shaking = true;
    conn->next = l->shaking;
    if (l->shaking != NULL) {
        l->shaking->prev = conn;
    }
    l->shaking = conn;
    conn_shake(conn, l->tls, fd);
}

/* One connection; false when there is none, or none is wanted now. */
static bool accept_one(struct conn_listener *l, int listening)
{
    struct conn_addr addr = {.size = sizeof(addr.u)};
    int fd = accept4(listening, &addr.u.any, &addr.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno == EINTR || errno == ECONNABORTED) {
            return true;
        }
        if (errno != EAGAIN && errno != EWOULDBLOCK) { /* EMFILE, ENFILE, ENOBUFS, ENOMEM … */
            pause_accepting(l, strerror(errno));
        }
        return false;
    }
    char address[CONN_ADDR_TEXT];
    conn_addr_text(&addr, address);
    if (fds_are_short(l, fd)) {
        close(fd);
        reject(l, address, CLOSE_TOO_MANY, "descriptors are nearly used up");
        pause_accepting(l, "descriptors are nearly used up");
        return false;
    }
    if (l->conns >= l->limits.max_conns) {
        close(fd);
        reject(l, address, CLOSE_TOO_MANY, close_text(CLOSE_TOO_MANY));
        return true;
    }
    start(l, fd, address);
    return true;
}

static void on_acceptable(int fd, int what, void *arg)
{
    struct socket *s = arg;
    struct conn_listener *l;
    (void)what;
    CAST_OBJ(l, s->listener, LISTENER_MAGIC);
    loop_doing(l->loop, "accepting connections");
    l->holds++; /* a callback may free it */
    for (int i = 0; i < ACCEPTS_A_TURN && !l->gone && l->shakes < SHAKES_MAX; i++) {
        if (!accept_one(l, fd)) {
            break;
        }
    }
    if (!l->gone) {
        watch(l);
    }
    release(l);
}

/* --- what a connection tells --- */

/* Takes a connection off the list of handshakes, if it is there. */
static void shaken(struct conn_listener *l, struct conn *conn)
{
    if (!conn->shaking) {
        return;
    }
    conn->shaking = false;
    if (conn->prev != NULL) {
        conn->prev->next = conn->next;
    } else {
        l->shaking = conn->next;
    }
    if (conn->next != NULL) {
        conn->next->prev = conn->prev;
    }
    conn->next = NULL;
    conn->prev = NULL;
    if (l->shakes-- == SHAKES_MAX && !l->gone) {
        watch(l);
    }
}

void conn_listen_opened(struct conn *conn)
{
    struct conn_listener *l = conn->listener;
    if (l == NULL) {
        return;
    }
    shaken(l, conn);
    l->on_accept(conn, l->arg);
    assert(conn->state != CONN_S_OPEN || conn->f != NULL);
}

void conn_listen_failed(struct conn *conn)
{
    struct conn_listener *l = conn->listener;
    if (l == NULL) {
        return;
    }
    shaken(l, conn);
    reject(l, conn->peer.address, conn->reason, conn->text);
}

void conn_listen_dropped(struct conn *conn)
{
    struct conn_listener *l = conn->listener;
    if (l == NULL) {
        return;
    }
    shaken(l, conn);
    conn->listener = NULL;
    l->conns--;
    release(l);
}

/* --- listening --- */

/* -1 with errno. */
static int bind_one(const struct conn_addr *addr)
{
    int fd = socket(addr->u.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    int one = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
        (addr->u.any.sa_family != AF_INET6 ||
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) == 0) &&
        bind(fd, &addr->u.any, addr->size) == 0 && listen(fd, BACKLOG) == 0) {
        return fd;
    }
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static void close_all(struct conn_listener *l)
{
    for (size_t i = 0; i < l->n; i++) {
        loop_fd_free(&l->sockets[i].watch);
        close(l->sockets[i].fd);
    }
    l->n = 0;
}

static bool is_family_missing(int error)
{
    return error == EAFNOSUPPORT || error == EADDRNOTAVAIL || error == EPROTONOSUPPORT;
}

/* Binds every address, all to one port. 0, or the errno of the first that failed, then *which. A
 * system without IPv6 lacks that address and has the other. */
static int bind_all(struct conn_listener *l, const struct conn_addr *addrs, size_t n, size_t *which)
{
    int missing = 0;
    for (size_t i = 0; i < n; i++) {
        struct conn_addr addr = addrs[i];
        if (conn_addr_port(&addr) == 0) {
            conn_addr_set_port(&addr, l->port);
        }
        int fd = bind_one(&addr);
        if (fd < 0) {
            *which = i;
            missing = errno;
            if (n > 1 && is_family_missing(missing)) {
                continue;
            }
            return missing;
        }
        struct conn_addr bound = {.size = sizeof(bound.u)};
        if (getsockname(fd, &bound.u.any, &bound.size) == 0) {
            l->port = conn_addr_port(&bound);
        }
        struct socket *s = &l->sockets[l->n];
        s->listener = l;
        s->watch = loop_fd_new(l->loop, fd, LOOP_READ, on_acceptable, s);
        if (s->watch == NULL) {
            close(fd);
            return ENOMEM;
        }
        s->fd = fd;
        l->n++;
    }
    return l->n > 0 ? 0 : missing;
}

int conn_listen(struct loop *loop, struct tls *tls, const char *address,
                const struct conn_limits *limits, conn_accept_f *on_accept,
                conn_reject_f *on_reject, void *arg, struct conn_listener **out, struct diag *diag)
{
    *out = NULL;
    char host[CONN_HOST_MAX];
    uint16_t port;
    struct conn_addr addrs[SOCKETS_MAX];
    int err = conn_addr_split(address, true, host, &port, diag);
    if (err < 0) {
        return err;
    }
    int n = conn_addr_resolve(host, port, addrs, SOCKETS_MAX, diag);
    if (n < 0) {
        return n;
    }
    struct conn_listener *l = mem_xzalloc(sizeof(*l));
    l->magic = LISTENER_MAGIC;
    l->holds = 1;
    l->loop = loop;
    l->on_accept = on_accept;
    l->on_reject = on_reject;
    l->arg = arg;
    conn_limits_set(&l->limits, limits);
    size_t which = 0;
    int error = bind_all(l, addrs, (size_t)n, &which);
    /* A port that the kernel chose for one address may be taken on the next: it chooses again. */
    for (int i = 0; i < PORT_TRIES && error == EADDRINUSE && port == 0; i++) {
        close_all(l);
        l->port = 0;
        error = bind_all(l, addrs, (size_t)n, &which);
    }
    if (error != 0) {
        char text[CONN_ADDR_TEXT];
        close_all(l);
        free(l);
        return diag_error(diag, err_from_errno(error), "%s: %s",
                          conn_addr_text(&addrs[which], text), strerror(error));
    }
    tls_hold(tls);
    l->tls = tls;
    l->pause = loop_timer_new(loop, on_pause_over, l);
    *out = l;
    return 0;
}

uint16_t conn_listener_port(const struct conn_listener *listener)
{
    return listener->port;
}

size_t conn_listener_count(const struct conn_listener *listener)
{
    return listener->conns;
}

void conn_listener_free(struct conn_listener **listener)
{
    struct conn_listener *l = *listener;
    if (l == NULL) {
        return;
    }
    *listener = NULL;
    l->gone = true;
    close_all(l);
    while (l->shaking != NULL) {
        struct conn *conn = l->shaking;
        conn_blame(conn, CLOSE_SHUTDOWN, false, "%s", close_text(CLOSE_SHUTDOWN));
        conn_die(conn);
    }
    loop_timer_free(&l->pause);
    tls_release(l->tls);
    release(l);
}

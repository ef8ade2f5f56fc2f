/* conn_dial.c: a dialled connection until TCP stands: looking the name up, trying its addresses
 * one after the other. Trying again later is dial.c's. */
#include "proto/conn.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "proto/conn_addr.h"
#include "proto/conn_impl.h"
#include "proto/tls_session.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ADDRS_MAX 8

struct conn_dialling {
    struct tls *tls; /* held */
    char host[CONN_HOST_MAX];
    uint16_t port;
    struct conn_addr addrs[ADDRS_MAX];
    size_t n;    /* 0: not looked up yet */
    size_t next; /* the address to be tried after this one */
    struct buf failures;
};

static void on_writable(int fd, int what, void *arg);

void conn_dialling_free(struct conn_dialling **dialling)
{
    if (*dialling == NULL) {
        return;
    }
    tls_release((*dialling)->tls);
    buf_fini(&(*dialling)->failures);
    free(*dialling);
    *dialling = NULL;
}

int conn_dial(struct loop *loop, struct tls *tls, const char *address,
              const struct conn_limits *limits, conn_f *f, void *arg, struct conn **out,
              struct diag *diag)
{
    *out = NULL;
    char host[CONN_HOST_MAX];
    uint16_t port;
    int err = conn_addr_split(address, false, host, &port, diag);
    if (err < 0) {
        return err;
    }
    struct conn *conn = conn_new(loop, limits, false);
    conn->f = f;
    conn->arg = arg;
    str_copy(conn->peer.address, sizeof(conn->peer.address), address);
    struct conn_dialling *d = mem_xzalloc(sizeof(*d));
    tls_hold(tls);
    d->tls = tls;
    d->port = port;
    str_copy(d->host, sizeof(d->host), host);
    conn->dialling = d;
    conn_enter(conn, CONN_S_NEW, 0);
    *out = conn;
    return 0;
}

/* Looks the name up in a turn of its own. May block; see conn_addr_resolve(). */
static bool look_up(struct conn *conn)
{
    struct conn_dialling *d = conn->dialling;
    loop_doing(conn->loop, "looking up a name");
    struct diag *diag = diag_new(1);
    int n = conn_addr_resolve(d->host, d->port, d->addrs, ADDRS_MAX, diag);
    if (n < 0) {
        conn_blame(conn, CLOSE_DIAL, false, "%s", diag_first(diag));
        conn_die(conn);
    } else {
        d->n = (size_t)n;
    }
    diag_free(&diag);
    return n >= 0;
}

/* An address led nowhere: what it said is kept for the end. */
static void note(struct conn_dialling *d, const struct conn_addr *addr, const char *why)
{
    char text[CONN_ADDR_TEXT];
    buf_printf(&d->failures, "%s%s: %s", d->failures.len > 0 ? "; " : "",
               conn_addr_text(addr, text), why);
}

/* Starts connecting; false when that failed already. */
static bool begin(struct conn *conn, const struct conn_addr *addr)
{
    struct conn_dialling *d = conn->dialling;
    int fd = socket(addr->u.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        note(d, addr, strerror(errno));
        return false;
    }
    conn_addr_text(addr, conn->peer.address);
    if (connect(fd, &addr->u.any, addr->size) != 0 && errno != EINPROGRESS && errno != EINTR) {
        note(d, addr, strerror(errno));
        close(fd);
        return false;
    }
    conn->on_write = loop_fd_new(conn->loop, fd, LOOP_WRITE, on_writable, conn);
    if (conn->on_write == NULL) {
        note(d, addr, "the system has no room for another connection");
        close(fd);
        return false;
    }
    conn->fd = fd;
    conn_enter(conn, CONN_S_CONNECT, conn->limits.handshake_ns);
    return true;
}

void conn_dial_next(struct conn *conn)
{
    struct conn_dialling *d = conn->dialling;
    conn_drop_fd(conn);
    if (d->n == 0 && !look_up(conn)) {
        return;
    }
    while (d->next < d->n) {
        if (begin(conn, &d->addrs[d->next++])) {
            return;
        }
    }
    conn_blame(conn, CLOSE_DIAL, false, "%s", buf_str(&d->failures));
    conn_die(conn);
}

void conn_dial_timeout(struct conn *conn)
{
    struct conn_dialling *d = conn->dialling;
    char text[48] = "no answer in ";
    size_t n = strlen(text);
    num_duration_text(text + n, sizeof(text) - n, conn->limits.handshake_ns);
    note(d, &d->addrs[d->next - 1], text);
    conn_dial_next(conn);
}

/* A port of this host on which nobody listens may by chance be the one that the kernel chose for
 * this end: then the socket is connected with itself. */
static bool is_self(int fd)
{
    struct conn_addr here = {.size = sizeof(here.u)};
    struct conn_addr there = {.size = sizeof(there.u)};
    return getsockname(fd, &here.u.any, &here.size) == 0 &&
           getpeername(fd, &there.u.any, &there.size) == 0 && here.size == there.size &&
           memcmp(&here.u, &there.u, here.size) == 0;
}

static void on_writable(int fd, int what, void *arg)
{
    struct conn *conn;
    (void)what;
    CAST_OBJ(conn, arg, CONN_MAGIC);
    assert(conn->state == CONN_S_CONNECT);
    struct conn_dialling *d = conn->dialling;
    int error = 0;
    socklen_t size = sizeof(error);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        error = errno;
    }
    if (error == 0 && is_self(fd)) {
        error = ECONNREFUSED;
    }
    if (error != 0) {
        note(d, &d->addrs[d->next - 1], strerror(error));
        conn_dial_next(conn);
        return;
    }
    loop_fd_free(&conn->on_write);
    conn->fd = -1;
    conn_shake(conn, d->tls, fd);
    conn_dialling_free(&conn->dialling);
}

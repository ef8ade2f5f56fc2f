/* conn_idle.c: what a connected idle worker costs the coordinator's process in memory.
 *
 * usage: conn_idle [-n CONNECTIONS] [-l KB] [-v]
 *
 * Two processes: this one listens as the coordinator does; a child of it holds the clients. Each
 * client makes its handshake with a worker's certificate, sends HELLO, is sent WELCOME, and is
 * silent from then on. What this process's memory grew by from one connection to all of them,
 * divided by their number, is printed beside the limit. The kernel's buffers of sockets are not in
 * it.
 *
 * Exit status: 0 within the limit, 1 above it, 2 it could not be measured. */
#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "common/num.h"
#include "proto/conn.h"
#include "proto/msg.h"
#include "proto/pki.h"
#include "proto/tls.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOW_S INT64_C(1796040000)
#define CONNECTIONS 500
#define LIMIT_KB 45
#define WAIT_NS (120 * CLOCK_SEC)
#define AT_A_TIME 16 /* handshakes under way */

NORETURN PRINTF_LIKE(1, 2) static void fail(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("conn_idle: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(2);
}

/* --- trust --- */

struct pair {
    struct pki_key *key;
    struct pki_cert *cert;
};

static int64_t now_s(void *arg)
{
    (void)arg;
    return NOW_S;
}

static void authority(struct pair *out)
{
    if (pki_key_make(&out->key, NULL) < 0 ||
        pki_authority_make(out->key, "bench", NOW_S, &out->cert, NULL) < 0) {
        fail("no authority");
    }
}

static void issue(const struct pair *ca, enum role role, const char *name, struct pair *out)
{
    struct buf request = BUF_INIT;
    if (pki_key_make(&out->key, NULL) < 0 || pki_request_make(out->key, &request, NULL) < 0 ||
        pki_issue(ca->key, ca->cert, request.data, request.len, role, name, NOW_S, &out->cert,
                  NULL) < 0) {
        fail("no certificate");
    }
    buf_fini(&request);
}

static void pair_free(struct pair *pair)
{
    pki_key_free(&pair->key);
    pki_cert_free(&pair->cert);
}

/* --- memory --- */

/* A line of a file of /proc in KiB; below 0: not there. */
static int64_t kib_of(const char *path, const char *name)
{
    struct buf text = BUF_INIT;
    int64_t kib = -1;
    if (file_read_all(path, 65536, &text) == 0) {
        const char *at = strstr(buf_str(&text), name);
        if (at != NULL) {
            at += strlen(name);
            at += strspn(at, ": \t");
            uint64_t value;
            if (num_parse_digits(at, strspn(at, "0123456789"), &value) == 0) {
                kib = (int64_t)value;
            }
        }
    }
    buf_fini(&text);
    return kib;
}

static int64_t rss_kib(void)
{
    return kib_of("/proc/self/status", "VmRSS");
}

/* --- the clients' process --- */

struct clients {
    struct loop *loop;
    struct tls *tls;
    char address[64];
    unsigned want, dialled, welcomed, ended;
    struct conn **conns;
};

static void on_client(struct conn *conn, const struct conn_event *event, void *arg)
{
    struct clients *c = arg;
    struct msg hello = {.type = MSG_HELLO,
                        .u.hello = {.proto_min = 1,
                                    .proto_max = 1,
                                    .program = "makespan-worker",
                                    .version = "0",
                                    .boot_id = "00000000-0000-0000-0000-000000000000",
                                    .machine_id = "00000000000000000000000000000000"}};
    switch (event->kind) {
    case CONN_OPEN:
        if (conn_send(conn, &hello) < 0) {
            fail("HELLO was not sent");
        }
        break;
    case CONN_MESSAGE:
        c->welcomed += event->msg->type == MSG_WELCOME;
        break;
    case CONN_DRAINED:
        break;
    case CONN_CLOSED:
        c->ended++;
        for (unsigned i = 0; i < c->dialled; i++) {
            if (c->conns[i] == conn) {
                c->conns[i] = NULL;
            }
        }
        break;
    }
}

/* One connection first, so that what is made once is not counted; the others when the parent
 * says. */
static int be_clients(const struct pair *ca, unsigned port, unsigned want, int orders)
{
    struct clients c = {.want = 1, .loop = loop_new()};
    struct pair self;
    char byte;
    issue(ca, ROLE_WORKER, "idle", &self);
    struct tls_client_config config = {
        .key = self.key, .cert = self.cert, .authority = ca->cert, .now_s = now_s};
    if (c.loop == NULL || tls_new_client(&config, &c.tls, NULL) < 0) {
        fail("no client");
    }
    snprintf(c.address, sizeof(c.address), "127.0.0.1:%u", port);
    c.conns = calloc(want, sizeof(*c.conns));
    if (c.conns == NULL) {
        fail("no memory");
    }
    while (c.ended == 0) {
        while (c.dialled < c.want && c.dialled - c.welcomed < AT_A_TIME) {
            if (conn_dial(c.loop, c.tls, c.address, NULL, on_client, &c, &c.conns[c.dialled],
                          NULL) < 0) {
                fail("cannot dial");
            }
            c.dialled++;
        }
        loop_turn(c.loop, 10 * CLOCK_MS);
        if (c.want < want && c.welcomed == 1 && read(orders, &byte, 1) == 1) {
            c.want = want;
        }
    }
    for (unsigned i = 0; i < c.dialled; i++) {
        if (c.conns[i] != NULL) {
            conn_close(c.conns[i], CLOSE_DONE, NULL, true);
        }
    }
    free(c.conns);
    tls_free(&c.tls);
    pair_free(&self);
    loop_free(&c.loop);
    return 0;
}

/* --- this process --- */

struct server {
    struct loop *loop;
    struct conn_listener *listener;
    struct conn **conns;
    unsigned room, n, welcomed, drained;
};

static void on_server(struct conn *conn, const struct conn_event *event, void *arg)
{
    struct server *s = arg;
    struct msg welcome = {
        .type = MSG_WELCOME,
        .u.welcome = {.proto = 1, .fleet = "bench", .version = "0", .beat_ns = 30 * CLOCK_SEC}};
    switch (event->kind) {
    case CONN_OPEN:
        break;
    case CONN_MESSAGE:
        if (conn_send(conn, &welcome) < 0) {
            fail("WELCOME was not sent");
        }
        s->welcomed++;
        break;
    case CONN_DRAINED:
        s->drained++;
        break;
    case CONN_CLOSED:
        fail("a connection ended: %s", event->text);
    }
}

static void on_accept(struct conn *conn, void *arg)
{
    struct server *s = arg;
    if (s->n == s->room) {
        fail("more connections than were asked for");
    }
    s->conns[s->n++] = conn;
    conn_set_handler(conn, on_server, s);
}

static void on_reject(const char *address, enum close_reason reason, const char *text, void *arg)
{
    (void)reason;
    (void)arg;
    fail("%s was refused: %s", address, text);
}

static void wait_for(struct server *s, unsigned n)
{
    int64_t until = clock_mono_ns() + WAIT_NS;
    while (s->drained < n) {
        if (clock_mono_ns() > until) {
            fail("%u of %u connections stand", s->drained, n);
        }
        loop_turn(s->loop, 10 * CLOCK_MS);
    }
    for (int i = 0; i < 10; i++) {
        loop_turn(s->loop, CLOCK_MS);
    }
}

static int measure(struct server *s, unsigned n, int orders, int64_t limit_kb, bool verbose)
{
    wait_for(s, 1);
    int64_t before = rss_kib();
    if (write(orders, "", 1) != 1) {
        fail("the clients are gone");
    }
    wait_for(s, n);
    int64_t after = rss_kib();
    if (before < 0 || after < 0) {
        fail("this system does not say how much memory a process has");
    }
    double kb = (double)(after - before) * 1.024 / (double)(n - 1);
    bool ok = kb <= (double)limit_kb;
    if (verbose) {
        printf("resident memory: %" PRId64 " KiB with 1 connection, %" PRId64 " KiB with %u\n",
               before, after, n);
    }
    printf("coordinator, a connected idle worker: %.1f KB, limit %" PRId64 " KB, of %u: %s\n", kb,
           limit_kb, n, ok ? "ok" : "MISSED");
    return ok ? 0 : 1;
}

static unsigned number(const char *text)
{
    uint64_t n;
    if (text == NULL || num_parse_u64(text, &n) < 0 || n < 2 || n > 100000) {
        fail("usage: conn_idle [-n CONNECTIONS] [-l KB] [-v]");
    }
    return (unsigned)n;
}

int main(int argc, char **argv)
{
    unsigned n = CONNECTIONS;
    int64_t limit_kb = LIMIT_KB;
    bool verbose = false;
    int option;
    while ((option = getopt(argc, argv, "n:l:v")) != -1) {
        switch (option) {
        case 'n':
            n = number(optarg);
            break;
        case 'l':
            limit_kb = number(optarg);
            break;
        case 'v':
            verbose = true;
            break;
        default:
            return 2;
        }
    }
    struct pair ca, self;
    authority(&ca);
    issue(&ca, ROLE_COORDINATOR, "main", &self);

    /* The listening socket is made before the fork, its loop and the clients' after: a loop does
     * not survive one. So the port comes through a pipe. */
    int ports[2], orders[2];
    if (pipe(ports) != 0 || pipe(orders) != 0) {
        fail("no pipe");
    }
    pid_t child = fork();
    if (child < 0) {
        fail("no child");
    }
    if (child == 0) {
        unsigned port;
        close(ports[1]);
        close(orders[1]);
        if (read(ports[0], &port, sizeof(port)) != (ssize_t)sizeof(port)) {
            return 2;
        }
        int status = be_clients(&ca, port, n, orders[0]);
        pair_free(&ca);
        pair_free(&self);
        return status;
    }
    close(ports[0]);
    close(orders[0]);

    struct server s = {.loop = loop_new(), .room = n, .conns = calloc(n, sizeof(*s.conns))};
    struct tls_server_config config = {
        .key = self.key, .cert = self.cert, .authority = ca.cert, .joining = true, .now_s = now_s};
    struct tls *tls;
    if (s.loop == NULL || s.conns == NULL || tls_new_server(&config, &tls, NULL) < 0 ||
        conn_listen(s.loop, tls, "127.0.0.1:0", NULL, on_accept, on_reject, &s, &s.listener, NULL) <
            0) {
        fail("cannot listen");
    }
    unsigned port = conn_listener_port(s.listener);
    if (write(ports[1], &port, sizeof(port)) != (ssize_t)sizeof(port)) {
        fail("the clients are gone");
    }
    int status = measure(&s, n, orders[1], limit_kb, verbose);
    for (unsigned i = 0; i < s.n; i++) {
        conn_close(s.conns[i], CLOSE_DONE, NULL, true);
    }
    conn_listener_free(&s.listener);
    tls_free(&tls);
    loop_free(&s.loop);
    free(s.conns);
    pair_free(&ca);
    pair_free(&self);
    if (waitpid(child, NULL, 0) != child) {
        fail("the clients did not end");
    }
    return status;
}

/* Where dialling leads when nobody listens, nobody answers or a name has no address; and addresses to
 * listen at. */
#include "proto/conn_dial.c" /* what happens between the addresses of a name */

#include "common/clock.h"
#include "common/err.h"
#include "common/str.h"
#include "proto/conn.h"
#include "proto/conn_addr.h"
#include "tests/unit/proto/wire.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct wire wire;

static void set_up(void)
{
    wire_init(&wire);
}

static void tear_down(void)
{
    wire_fini(&wire);
}

TestSuite(conn_dial, .init = set_up, .fini = tear_down);

static void expect_end(const struct wire_side *side, enum close_reason reason, const char *text)
{
    cr_expect_eq(side->closes, 1);
    cr_expect_eq(side->reason, reason, "%s: %s", close_name((uint32_t)side->reason), side->text);
    cr_expect(strstr(side->text, text) != NULL, "\"%s\" is not in: %s", text, side->text);
}

/* A port of loopback on which nobody listens, and the socket that keeps it so. */
static int taken_port(bool listening)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    if (listening) {
        cr_assert_eq(listen(fd, 1), 0);
    }
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&addr, &size), 0);
    snprintf(wire.address, sizeof(wire.address), "127.0.0.1:%u", (unsigned)ntohs(addr.sin_port));
    return fd;
}

Test(conn_dial, nobody_listens)
{
    int fd = taken_port(false);
    struct wire_side *side = wire_dial(&wire, wire.client);
    cr_expect_eq(side->closes, 0, "never within the call");
    WIRE_WAIT(&wire, side->closes == 1);
    char text[128];
    snprintf(text, sizeof(text), "%s: Connection refused", wire.address);
    expect_end(side, CLOSE_DIAL, text);
    close(fd);
}

Test(conn_dial, a_server_that_says_nothing)
{
    int fd = taken_port(true);
    wire.limits.handshake_ns = 50 * CLOCK_MS;
    struct wire_side *side = wire_dial(&wire, wire.client);
    WIRE_WAIT(&wire, side->closes == 1);
    expect_end(side, CLOSE_HANDSHAKE_TIMEOUT, "the TLS handshake was not over after 50ms");
    close(fd);
}

Test(conn_dial, a_server_that_hangs_up)
{
    int fd = taken_port(true);
    struct wire_side *side = wire_dial(&wire, wire.client);
    loop_turn(wire.loop, CLOCK_SEC);
    int accepted = accept(fd, NULL, NULL);
    cr_assert_geq(accepted, 0);
    cr_assert_eq(shutdown(accepted, SHUT_RDWR), 0);
    WIRE_WAIT(&wire, side->closes == 1);
    cr_expect(side->reason == CLOSE_EOF || side->reason == CLOSE_IO, "%s", side->text);
    close(accepted);
    close(fd);
}

Test(conn_dial, a_full_queue_of_the_kernel_is_no_answer)
{
    /* A backlog of one that nobody accepts from: the third SYN is dropped. */
    int fd = taken_port(true);
    int fillers[8];
    struct sockaddr_in addr;
    socklen_t size = sizeof(addr);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&addr, &size), 0);
    for (size_t i = 0; i < ARRAY_LEN(fillers); i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(fillers[i], (struct sockaddr *)&addr, sizeof(addr));
    }
    wire.limits.handshake_ns = 50 * CLOCK_MS;
    struct wire_side *side = wire_dial(&wire, wire.client);
    WIRE_WAIT(&wire, side->closes == 1);
    expect_end(side, CLOSE_DIAL, ": no answer in 50ms");
    for (size_t i = 0; i < ARRAY_LEN(fillers); i++) {
        close(fillers[i]);
    }
    close(fd);
}

/* As if the name that was dialled had these addresses. */
static struct wire_side *dial_both(const char *first, uint16_t first_port, const char *second,
                                   uint16_t second_port)
{
    str_copy(wire.address, sizeof(wire.address), "many.example:7443");
    struct wire_side *side = wire_dial(&wire, wire.client);
    struct conn_dialling *d = side->conn->dialling;
    cr_assert(conn_addr_numeric(first, first_port, &d->addrs[0]));
    cr_assert(conn_addr_numeric(second, second_port, &d->addrs[1]));
    d->n = 2;
    return side;
}

Test(conn_dial, the_next_address_is_tried)
{
    int fd = taken_port(false);
    uint16_t dead = (uint16_t)strtoul(strrchr(wire.address, ':') + 1, NULL, 10);
    wire_listen(&wire);
    struct wire_side *side =
        dial_both("127.0.0.1", dead, "127.0.0.1", conn_listener_port(wire.listener));
    WIRE_WAIT(&wire, side->opens == 1);
    close(fd);
}

Test(conn_dial, what_each_address_said_is_told)
{
    int fd = taken_port(false);
    uint16_t dead = (uint16_t)strtoul(strrchr(wire.address, ':') + 1, NULL, 10);
    struct wire_side *side = dial_both("127.0.0.1", dead, "127.0.0.2", dead);
    WIRE_WAIT(&wire, side->closes == 1);
    char text[160];
    snprintf(text, sizeof(text),
             "127.0.0.1:%u: Connection refused; 127.0.0.2:%u: Connection refused", (unsigned)dead,
             (unsigned)dead);
    expect_end(side, CLOSE_DIAL, text);
    close(fd);
}

/* The kernel connects a socket with itself when the port that it chooses for this end is the one
 * dialled. Asked for by hand, it does so at once. */
Test(conn_dial, a_socket_that_reached_itself)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&addr, &size), 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    cr_expect(is_self(fd));
    close(fd);
    wire_listen(&wire);
    struct wire_raw raw;
    wire_raw_connect(&wire, &raw, NULL);
    cr_expect(!is_self(raw.fd));
    wire_raw_close(&raw);
}

Test(conn_dial, a_name)
{
    struct conn_addr addrs[8];
    struct wire_side *accepted;
    int n = conn_addr_resolve("localhost", 1, addrs, 8, NULL);
    wire_listen(&wire);
    snprintf(wire.address, sizeof(wire.address), "localhost:%u",
             (unsigned)conn_listener_port(wire.listener));
    if (n < 0) { /* a system without /etc/hosts */
        struct wire_side *side = wire_dial(&wire, wire.client);
        WIRE_WAIT(&wire, side->closes == 1);
        expect_end(side, CLOSE_DIAL, "the name localhost cannot be looked up");
        return;
    }
    struct wire_side *side = wire_connect(&wire, &accepted);
    cr_expect(str_starts(conn_peer(side->conn)->address, "127.0.0.1:"));
}

Test(conn_dial, a_name_that_there_is_not)
{
    snprintf(wire.address, sizeof(wire.address), "%s", "a..b:7443");
    struct wire_side *side = wire_dial(&wire, wire.client);
    WIRE_WAIT(&wire, side->closes == 1);
    expect_end(side, CLOSE_DIAL, "the name a..b cannot be looked up: ");
}

Test(conn_dial, malformed_addresses)
{
    struct conn *conn;
    struct conn_listener *listener;
    static const char *const bad[] = {
        "",  "7443",     "host",      "host:",   "host:x",   "host:65536", "host:-1",
        ":", "::1:7443", "[::1]7443", "[]:7443", "a b:7443", "host:07443"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cr_expect_eq(conn_dial(wire.loop, wire.client, bad[i], NULL, NULL, NULL, &conn, NULL),
                     -ERR_INVAL, "%s", bad[i]);
        cr_expect_eq(
            conn_listen(wire.loop, wire.server, bad[i], NULL, NULL, NULL, NULL, &listener, NULL),
            -ERR_INVAL, "%s", bad[i]);
    }
    /* To listen only. */
    cr_expect_eq(conn_dial(wire.loop, wire.client, ":7443", NULL, NULL, NULL, &conn, NULL),
                 -ERR_INVAL);
    cr_expect_eq(conn_dial(wire.loop, wire.client, "host:0", NULL, NULL, NULL, &conn, NULL),
                 -ERR_INVAL);
}

Test(conn_dial, listening_where_somebody_does)
{
    struct conn_listener *second;
    wire_listen(&wire);
    cr_expect_lt(
        conn_listen(wire.loop, wire.server, wire.address, NULL, NULL, NULL, NULL, &second, NULL),
        0);
    cr_expect_null(second);
}

static bool reaches(const char *host, uint16_t port)
{
    struct conn_addr addr;
    cr_assert(conn_addr_numeric(host, port, &addr));
    int fd = socket(addr.u.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool yes = fd >= 0 && connect(fd, &addr.u.any, addr.size) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return yes;
}

static void ignore_reject(const char *address, enum close_reason reason, const char *text,
                          void *arg)
{
    (void)address;
    (void)reason;
    (void)text;
    (void)arg;
}

Test(conn_dial, listening_on_all_addresses)
{
    struct conn_listener *all;
    struct conn_addr loopback6;
    cr_assert_eq(
        conn_listen(wire.loop, wire.server, ":0", NULL, NULL, ignore_reject, NULL, &all, NULL), 0);
    uint16_t port = conn_listener_port(all);
    cr_expect_neq(port, 0);
    cr_expect(reaches("127.0.0.1", port));
    cr_assert(conn_addr_numeric("::1", 0, &loopback6));
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, &loopback6.u.any, loopback6.size) == 0) { /* the system has IPv6 */
        cr_expect(reaches("::1", port));
    }
    if (fd >= 0) {
        close(fd);
    }
    conn_listener_free(&all);
    conn_listener_free(&all);
    cr_expect(!reaches("127.0.0.1", port));
}

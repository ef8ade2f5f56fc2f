/* What a listener and its connections withstand: silence, lies about lengths, bytes that mean
 * nothing, readers that do not read, more connections than there is room for. */
#include "common/clock.h"
#include "common/err.h"
#include "proto/conn.h"
#include "tests/unit/proto/wire.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
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

TestSuite(conn_limit, .init = set_up, .fini = tear_down);

static void expect_end(const struct wire_side *side, enum close_reason reason, const char *text)
{
    cr_expect_eq(side->closes, 1);
    cr_expect_eq(side->reason, reason, "%s: %s", close_name((uint32_t)side->reason), side->text);
    cr_expect(strstr(side->text, text) != NULL, "\"%s\" is not in: %s", text, side->text);
}

static void expect_reject(enum close_reason reason, const char *text)
{
    cr_expect_eq(wire.reject_reason, reason, "%s: %s", close_name((uint32_t)wire.reject_reason),
                 wire.reject_text);
    cr_expect(strstr(wire.reject_text, text) != NULL, "\"%s\" is not in: %s", text,
              wire.reject_text);
}

/* --- before the handshake is over --- */

Test(conn_limit, silence_is_ended)
{
    struct wire_raw raw;
    wire.limits.handshake_ns = 50 * CLOCK_MS;
    wire_listen(&wire);
    wire_raw_connect(&wire, &raw, NULL);
    WIRE_WAIT(&wire, wire.rejects == 1);
    expect_reject(CLOSE_HANDSHAKE_TIMEOUT, "the TLS handshake was not over after 50ms");
    WIRE_WAIT(&wire, wire_raw_is_ended(&raw));
    cr_expect_eq(conn_listener_count(wire.listener), 0);
    wire_raw_close(&raw);
}

Test(conn_limit, a_hello_in_drops_does_not_win_time)
{
    struct wire_raw raw;
    wire.limits.handshake_ns = 50 * CLOCK_MS;
    wire_listen(&wire);
    wire_raw_connect(&wire, &raw, NULL);
    WIRE_WAIT(&wire, wire.rejects == 1 || send(raw.fd, "\x16", 1, MSG_NOSIGNAL) >= -1);
    WIRE_WAIT(&wire, wire.rejects == 1);
    expect_reject(CLOSE_HANDSHAKE_TIMEOUT, "");
    wire_raw_close(&raw);
}

Test(conn_limit, bytes_that_are_no_tls)
{
    struct wire_raw raw;
    wire_listen(&wire);
    wire_raw_connect(&wire, &raw, NULL);
    cr_assert_eq(send(raw.fd, "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
    WIRE_WAIT(&wire, wire.rejects == 1);
    expect_reject(CLOSE_TLS, "a request of HTTP came in place of TLS");
    WIRE_WAIT(&wire, wire_raw_is_ended(&raw));
    wire_raw_close(&raw);
    WIRE_WAIT(&wire, conn_listener_count(wire.listener) == 0);
}

/* What the refused client still sends must not turn the end into a reset, which could destroy the
 * alert on its way. */
Test(conn_limit, a_refusal_is_no_reset)
{
    struct wire_raw raw;
    char bytes[20000];
    memset(bytes, 'x', sizeof(bytes));
    memcpy(bytes, "\x16\x03\x01\x00\x05", 5); /* a record of TLS without sense */
    wire_listen(&wire);
    wire_raw_connect(&wire, &raw, NULL);
    cr_assert_eq(send(raw.fd, bytes, sizeof(bytes), 0), (ssize_t)sizeof(bytes));
    WIRE_WAIT(&wire, wire.rejects == 1);
    cr_assert_eq(send(raw.fd, bytes, sizeof(bytes), 0), (ssize_t)sizeof(bytes));
    ssize_t rc;
    WIRE_WAIT(&wire, (rc = recv(raw.fd, bytes, sizeof(bytes), 0)) >= 0 || errno != EAGAIN);
    cr_expect_gt(rc, 0, "an alert");
    WIRE_WAIT(&wire, (rc = recv(raw.fd, bytes, sizeof(bytes), 0)) >= 0 || errno != EAGAIN);
    cr_expect_eq(rc, 0, "the end");
    wire_raw_close(&raw);
}

/* Those who are refused are waited for, so that the alert reaches them; they go in any order. */
Test(conn_limit, refused_clients_that_stay)
{
    enum { N = 6 };
    struct wire_raw raw[N];
    struct wire_side *accepted;
    wire_listen(&wire);
    for (unsigned i = 0; i < N; i++) {
        wire_raw_connect(&wire, &raw[i], NULL);
        cr_assert_eq(send(raw[i].fd, "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
        WIRE_WAIT(&wire, wire.rejects == i + 1);
    }
    static const unsigned order[] = {3, 0, 4};
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        wire_raw_close(&raw[order[i]]);
        WIRE_WAIT(&wire, conn_listener_count(wire.listener) == N - 1 - i);
    }
    (void)wire_connect(&wire, &accepted);
    cr_expect_eq(wire.n_accepted, 1);
    wire_raw_close(&raw[1]);
    WIRE_WAIT(&wire, conn_listener_count(wire.listener) == 3);
    wire_fini(&wire); /* and the loop may be freed while some are left */
    wire_raw_close(&raw[2]);
    wire_raw_close(&raw[5]);
    wire_init(&wire);
}

Test(conn_limit, gone_before_the_handshake_is_over)
{
    struct wire_raw raw;
    wire_listen(&wire);
    wire_raw_connect(&wire, &raw, NULL);
    wire_raw_close(&raw);
    WIRE_WAIT(&wire, wire.rejects == 1);
    expect_reject(CLOSE_EOF, "closed the connection during the TLS handshake");
}

/* --- frames --- */

static void expect_closed_after(const void *data, size_t n, enum close_reason reason,
                                const char *text)
{
    struct wire_raw raw;
    wire_raw_connect(&wire, &raw, wire.client);
    struct wire_side *accepted = &wire.accepted[wire.n_accepted - 1];
    wire_raw_write(&wire, &raw, data, n);
    wire_raw_expect_goodbye(&wire, &raw, reason, text);
    wire_raw_close(&raw);
    WIRE_WAIT(&wire, accepted->closes == 1);
    expect_end(accepted, reason, text);
    cr_expect(!accepted->by_peer);
    cr_expect_eq(accepted->messages, 0);
}

Test(conn_limit, frames_that_lie)
{
    wire_listen(&wire);
    expect_closed_after("\xff\xff\xff\xff\x04", 5, CLOSE_FRAME, close_text(CLOSE_FRAME));
    expect_closed_after("\x00\x10\x00\x01\x04", 5, CLOSE_FRAME, ""); /* 1 MiB and a byte */
    expect_closed_after("\x00\x00\x00\x00", 4, CLOSE_FRAME, "");
    expect_closed_after("\x00\x00\x00\x01\xfe", 5, CLOSE_UNKNOWN_MESSAGE, "254");
    expect_closed_after("\x00\x00\x00\x06\x04\xdd\xff\xff\xff\xff", 10, CLOSE_DECODE, "BEAT");
    expect_closed_after("\x00\x00\x00\x02\x04\x80", 6, CLOSE_DECODE, "BEAT"); /* no field at all */
}

Test(conn_limit, the_length_alone_ends_it)
{
    /* Not one byte of the body was sent; a large frame that is announced costs nothing before it
     * comes. */
    struct wire_raw raw;
    wire_listen(&wire);
    wire_raw_connect(&wire, &raw, wire.client);
    wire_raw_write(&wire, &raw, "\x00\x10\x00\x00", 4);
    for (int i = 0; i < 10; i++) {
        loop_turn(wire.loop, CLOCK_MS);
    }
    cr_expect_eq(wire.accepted[0].closes, 0);
    wire_raw_close(&raw);
    WIRE_WAIT(&wire, wire.accepted[0].closes == 1);
}

Test(conn_limit, a_shorter_limit_of_frames)
{
    wire.limits.frame_max = 100;
    wire_listen(&wire);
    expect_closed_after("\x00\x00\x00\x65\x04", 5, CLOSE_FRAME, "");
}

Test(conn_limit, a_damaged_record)
{
    struct wire_raw raw;
    wire_listen(&wire);
    wire_raw_connect(&wire, &raw, wire.client);
    static const uint8_t garbage[] = {0x17, 0x03, 0x03, 0x00, 0x20, 1,  2,  3,  4,  5,  6,  7,  8,
                                      9,    10,   11,   12,   13,   14, 15, 16, 17, 18, 19, 20, 21,
                                      22,   23,   24,   25,   26,   27, 28, 29, 30, 31, 32};
    cr_assert_eq(send(raw.fd, garbage, sizeof(garbage), 0), (ssize_t)sizeof(garbage));
    struct wire_side *accepted = &wire.accepted[0];
    WIRE_WAIT(&wire, accepted->closes == 1);
    expect_end(accepted, CLOSE_TLS, "TLS failed");
    wire_raw_close(&raw);
}

Test(conn_limit, plain_bytes_after_the_handshake)
{
    struct wire_raw raw;
    wire_listen(&wire);
    wire_raw_connect(&wire, &raw, wire.client);
    cr_assert_eq(send(raw.fd, "hello, is anybody there?\n", 25, 0), 25);
    struct wire_side *accepted = &wire.accepted[0];
    WIRE_WAIT(&wire, accepted->closes == 1);
    cr_expect_eq(accepted->reason, CLOSE_TLS);
    wire_raw_close(&raw);
}

/* --- a reader that does not read --- */

Test(conn_limit, a_full_queue_closes)
{
    struct wire_raw raw;
    wire.limits.queue_max = 1024 * 1024;
    wire_listen(&wire);
    wire_raw_connect(&wire, &raw, wire.client);
    struct wire_side *accepted = &wire.accepted[0];
    int err = 0;
    size_t most = 0;
    for (int i = 0; i < 10000 && err == 0; i++) {
        err = wire_output(accepted, 200000);
        if (err == 0 && conn_queued(accepted->conn) > most) {
            most = conn_queued(accepted->conn);
        }
        loop_turn(wire.loop, 0);
    }
    cr_expect_eq(err, -ERR_FULL);
    cr_expect_leq(most, wire.limits.queue_max);
    cr_expect_eq(wire_output(accepted, 1), -ERR_CLOSED);
    cr_expect_eq(accepted->closes, 0);
    WIRE_WAIT(&wire, accepted->closes == 1); /* nobody takes GOODBYE: it ends all the same */
    expect_end(accepted, CLOSE_QUEUE_FULL, close_text(CLOSE_QUEUE_FULL));
    wire_raw_close(&raw);
}

/* --- joining --- */

static int send_join(struct wire_side *side, size_t csr)
{
    static const uint8_t zeros[2048];
    struct msg msg = {.type = MSG_JOIN,
                      .u.join = {.token_id = {.data = zeros, .len = 8},
                                 .secret = {.data = zeros, .len = 16},
                                 .csr = {.data = zeros, .len = csr},
                                 .name = "p6",
                                 .role = ROLE_WORKER}};
    return conn_send(side->conn, &msg);
}

static struct wire_side *join(struct wire_side **accepted)
{
    size_t n = wire.n_accepted;
    struct wire_side *side = wire_dial(&wire, wire.joiner);
    WIRE_WAIT(&wire, side->opens == 1 && wire.n_accepted > n && wire.accepted[n].opens == 1);
    *accepted = &wire.accepted[n];
    return side;
}

Test(conn_limit, a_joiner_asks_and_is_answered)
{
    static const uint8_t zeros[4096];
    struct wire_side *accepted;
    wire_listen(&wire);
    struct wire_side *side = join(&accepted);
    const struct conn_peer *peer = conn_peer(accepted->conn);
    cr_expect(peer->joining);
    cr_expect_eq((int)peer->role, 0);
    cr_expect_str_eq(peer->name, "");
    cr_expect_str_eq(peer->serial, "");
    cr_expect(conn_peer(side->conn)->joining);
    cr_expect_eq(conn_peer(side->conn)->role, ROLE_COORDINATOR);
    cr_expect_str_eq(conn_peer(side->conn)->fleet, "lab");
    cr_assert_eq(send_join(side, 2048), 0);
    WIRE_WAIT(&wire, accepted->messages == 1);
    struct msg msg = {.type = MSG_JOINED,
                      .u.joined = {.cert = {.data = zeros, .len = 4096},
                                   .authority = {.data = zeros, .len = 4096},
                                   .name = "p6",
                                   .fleet = "lab"}};
    cr_assert_eq(conn_send(accepted->conn, &msg), 0);
    conn_close(accepted->conn, CLOSE_DONE, NULL, false);
    WIRE_WAIT(&wire, side->closes == 1 && accepted->closes == 1);
    cr_expect_eq(side->messages, 1);
    cr_expect_eq(side->last_bytes, 4096);
    expect_end(side, CLOSE_DONE, "");
}

Test(conn_limit, a_joiner_may_say_goodbye)
{
    struct wire_side *accepted;
    wire_listen(&wire);
    struct wire_side *side = join(&accepted);
    cr_assert_eq(send_join(side, 100), 0);
    conn_close(side->conn, CLOSE_DONE, NULL, false);
    WIRE_WAIT(&wire, accepted->closes == 1);
    cr_expect_eq(accepted->messages, 1);
    expect_end(accepted, CLOSE_DONE, "");
}

Test(conn_limit, a_joiner_says_one_thing)
{
    struct wire_side *accepted;
    wire_listen(&wire);
    struct wire_side *side = join(&accepted);
    cr_assert_eq(send_join(side, 100), 0);
    cr_assert_eq(send_join(side, 100), 0);
    WIRE_WAIT(&wire, side->closes == 1);
    cr_expect_eq(accepted->messages, 1);
    expect_end(side, CLOSE_NOT_NOW, "one JOIN and nothing else");
    cr_expect(side->by_peer);

    side = join(&accepted);
    cr_assert_eq(wire_beat(side, 1), 0);
    WIRE_WAIT(&wire, side->closes == 1);
    cr_expect_eq(accepted->messages, 0);
    expect_end(side, CLOSE_NOT_NOW, "one JOIN and nothing else");
}

Test(conn_limit, a_joiner_is_brief)
{
    struct wire_raw raw;
    wire_listen(&wire);
    wire_raw_connect(&wire, &raw, wire.joiner);
    wire_raw_write(&wire, &raw, "\x00\x00\x10\x01\x0a", 5); /* 4097 bytes of JOIN */
    wire_raw_expect_goodbye(&wire, &raw, CLOSE_FRAME, "");
    wire_raw_close(&raw);
    WIRE_WAIT(&wire, wire.accepted[0].closes == 1);
    cr_expect_eq(wire.accepted[0].reason, CLOSE_FRAME);
}

Test(conn_limit, a_joiner_is_quick)
{
    struct wire_side *accepted;
    wire.limits.handshake_ns = 300 * CLOCK_MS;
    wire_listen(&wire);
    struct wire_side *side = join(&accepted);
    WIRE_WAIT(&wire, side->closes == 1);
    expect_end(side, CLOSE_HELLO_TIMEOUT, "joining was not over in time");
    cr_expect(side->by_peer);
    /* Others are not hurried by it. */
    side = wire_connect(&wire, &accepted);
    int64_t until = clock_mono_ns() + 2 * wire.limits.handshake_ns;
    WIRE_WAIT(&wire, clock_mono_ns() > until);
    cr_expect_eq(side->closes, 0);
}

/* --- room --- */

Test(conn_limit, no_more_than_max_conns)
{
    struct wire_side *accepted;
    wire.limits.max_conns = 2;
    wire_listen(&wire);
    (void)wire_connect(&wire, &accepted);
    struct wire_side *second = wire_connect(&wire, &accepted);
    struct wire_side *third = wire_dial(&wire, wire.client);
    WIRE_WAIT(&wire, third->closes == 1 && wire.rejects == 1);
    expect_reject(CLOSE_TOO_MANY, close_text(CLOSE_TOO_MANY));
    conn_close(second->conn, CLOSE_DONE, NULL, false);
    WIRE_WAIT(&wire, conn_listener_count(wire.listener) == 1);
    (void)wire_connect(&wire, &accepted);
}

Test(conn_limit, descriptors_are_left_free)
{
    struct wire_side *accepted;
    struct rlimit before, limit;
    int fillers[64];
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    wire.limits.reserve_fds = 5;
    wire_listen(&wire);
    /* All numbers below are in use: of a limit of 20 a reserve of 5 would be the most. */
    for (size_t i = 0; i < ARRAY_LEN(fillers); i++) {
        fillers[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        cr_assert_geq(fillers[i], 0);
    }
    limit = before;
    limit.rlim_cur = (rlim_t)fillers[63] + 1 + 2 + 5; /* room for one connection of two ends */
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    struct wire_side *one = wire_connect(&wire, &accepted);
    struct wire_side *two = wire_dial(&wire, wire.client);
    WIRE_WAIT(&wire, two->closes == 1 && wire.rejects >= 1);
    expect_reject(CLOSE_TOO_MANY, "descriptors are nearly used up");
    cr_expect_eq(wire.n_accepted, 1);
    /* For a second nobody is asked in: the next one is not even turned away. */
    int64_t began = clock_mono_ns();
    unsigned rejects = wire.rejects;
    struct wire_raw raw;
    wire_raw_connect(&wire, &raw, NULL);
    for (int i = 0; i < 10; i++) {
        loop_turn(wire.loop, 0);
    }
    cr_expect(wire.rejects == rejects || clock_mono_ns() - began > CLOCK_SEC / 2);
    wire_raw_close(&raw);
    cr_assert_eq(wire_beat(one, 1), 0); /* who is in goes on */
    WIRE_WAIT(&wire, accepted->messages == 1);
    conn_close(one->conn, CLOSE_DONE, NULL, false);
    WIRE_WAIT(&wire, one->closes == 1 && accepted->closes == 1);
    WIRE_WAIT(&wire, wire.rejects > rejects); /* after the pause: the one that did not wait */
    (void)wire_connect(&wire, &accepted);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (size_t i = 0; i < ARRAY_LEN(fillers); i++) {
        close(fillers[i]);
    }
}

Test(conn_limit, no_descriptor_at_all)
{
    struct wire_side *accepted;
    struct rlimit before, limit;
    struct wire_raw raw;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    wire_listen(&wire);
    wire_raw_connect(&wire, &raw, NULL); /* waits in the kernel's queue */
    limit = before;
    limit.rlim_cur = (rlim_t)raw.fd + 1;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int i = 0; i < 20; i++) {
        loop_turn(wire.loop, 0);
    }
    cr_expect_eq(conn_listener_count(wire.listener), 0);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    WIRE_WAIT(&wire, conn_listener_count(wire.listener) == 1); /* after the pause */
    wire_raw_close(&raw);
    (void)wire_connect(&wire, &accepted);
}

Test(conn_limit, a_listener_goes_with_its_handshakes)
{
    struct wire_raw raw;
    wire.limits.handshake_ns = CLOCK_HOUR;
    wire_listen(&wire);
    wire_raw_connect(&wire, &raw, NULL);
    WIRE_WAIT(&wire, conn_listener_count(wire.listener) == 1);
    conn_listener_free(&wire.listener);
    WIRE_WAIT(&wire, wire_raw_is_ended(&raw));
    cr_expect_eq(wire.rejects, 0);
    wire_raw_close(&raw);
}

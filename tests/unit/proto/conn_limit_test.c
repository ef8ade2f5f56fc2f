/* What a listener and its connections withstand: silence, lies about lengths, bytes that mean nothing,
 * readers that do not read, more connections than there is room for; and where dialling fails. */
#include "common/buf.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/str.h"
#include "proto/conn.h"
#include "proto/frame.h"
#include "tests/unit/proto/conn_rig.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct rig rig;

static void set_up(void)
{
    rig_init(&rig);
}

static void tear_down(void)
{
    rig_fini(&rig);
}

TestSuite(conn_limit, .init = set_up, .fini = tear_down);

static void expect_end(const struct rig_side *side, enum close_reason reason, const char *text)
{
    cr_expect_eq(side->closes, 1);
    cr_expect_eq(side->reason, reason, "%s: %s", close_name((uint32_t)side->reason), side->text);
    cr_expect(strstr(side->text, text) != NULL, "\"%s\" is not in: %s", text, side->text);
}

static void expect_reject(enum close_reason reason, const char *text)
{
    cr_expect_eq(rig.reject_reason, reason, "%s: %s", close_name((uint32_t)rig.reject_reason),
                 rig.reject_text);
    cr_expect(strstr(rig.reject_text, text) != NULL, "\"%s\" is not in: %s", text, rig.reject_text);
}

/* --- before the handshake is over --- */

Test(conn_limit, silence_is_ended)
{
    struct rig_raw raw;
    rig.limits.handshake_ns = 50 * CLOCK_MS;
    rig_listen(&rig);
    rig_raw_connect(&rig, &raw, NULL);
    RIG_WAIT(&rig, rig.rejects == 1);
    expect_reject(CLOSE_HANDSHAKE_TIMEOUT, "the TLS handshake was not over after 50ms");
    RIG_WAIT(&rig, rig_raw_is_ended(&raw));
    cr_expect_eq(conn_listener_count(rig.listener), 0);
    rig_raw_close(&raw);
}

Test(conn_limit, a_hello_in_drops_does_not_win_time)
{
    struct rig_raw raw;
    rig.limits.handshake_ns = 50 * CLOCK_MS;
    rig_listen(&rig);
    rig_raw_connect(&rig, &raw, NULL);
    RIG_WAIT(&rig, rig.rejects == 1 || send(raw.fd, "\x16", 1, MSG_NOSIGNAL) >= -1);
    RIG_WAIT(&rig, rig.rejects == 1);
    expect_reject(CLOSE_HANDSHAKE_TIMEOUT, "");
    rig_raw_close(&raw);
}

Test(conn_limit, bytes_that_are_no_tls)
{
    struct rig_raw raw;
    rig_listen(&rig);
    rig_raw_connect(&rig, &raw, NULL);
    cr_assert_eq(send(raw.fd, "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
    RIG_WAIT(&rig, rig.rejects == 1);
    expect_reject(CLOSE_TLS, "a request of HTTP came in place of TLS");
    RIG_WAIT(&rig, rig_raw_is_ended(&raw));
    rig_raw_close(&raw);
    RIG_WAIT(&rig, conn_listener_count(rig.listener) == 0);
}

Test(conn_limit, gone_before_the_handshake_is_over)
{
    struct rig_raw raw;
    rig_listen(&rig);
    rig_raw_connect(&rig, &raw, NULL);
    rig_raw_close(&raw);
    RIG_WAIT(&rig, rig.rejects == 1);
    expect_reject(CLOSE_EOF, "closed the connection during the TLS handshake");
}

/* --- frames --- */

static void expect_closed_after(const void *data, size_t n, enum close_reason reason, const char *text)
{
    struct rig_raw raw;
    rig_raw_connect(&rig, &raw, rig.client);
    struct rig_side *accepted = &rig.accepted[rig.n_accepted - 1];
    rig_raw_write(&rig, &raw, data, n);
    rig_raw_expect_goodbye(&rig, &raw, reason, text);
    rig_raw_close(&raw);
    RIG_WAIT(&rig, accepted->closes == 1);
    expect_end(accepted, reason, text);
    cr_expect(!accepted->by_peer);
    cr_expect_eq(accepted->messages, 0);
}

Test(conn_limit, frames_that_lie)
{
    rig_listen(&rig);
    expect_closed_after("\xff\xff\xff\xff\x04", 5, CLOSE_FRAME, close_text(CLOSE_FRAME));
    expect_closed_after("\x00\x10\x00\x01\x04", 5, CLOSE_FRAME, ""); /* 1 MiB and a byte */
    expect_closed_after("\x00\x00\x00\x00", 4, CLOSE_FRAME, "");
    expect_closed_after("\x00\x00\x00\x01\xfe", 5, CLOSE_UNKNOWN_MESSAGE, "254");
    expect_closed_after("\x00\x00\x00\x06\x04\xdd\xff\xff\xff\xff", 10, CLOSE_DECODE, "BEAT");
    expect_closed_after("\x00\x00\x00\x02\x04\x80", 6, CLOSE_DECODE, "BEAT"); /* no field at all */
}

Test(conn_limit, the_length_alone_ends_it)
{
    /* Not one byte of the body was sent; a large frame that is announced costs nothing before it comes. */
    struct rig_raw raw;
    rig_listen(&rig);
    rig_raw_connect(&rig, &raw, rig.client);
    rig_raw_write(&rig, &raw, "\x00\x10\x00\x00", 4);
    for (int i = 0; i < 10; i++) {
        loop_turn(rig.loop, CLOCK_MS);
    }
    cr_expect_eq(rig.accepted[0].closes, 0);
    rig_raw_close(&raw);
    RIG_WAIT(&rig, rig.accepted[0].closes == 1);
}

Test(conn_limit, a_shorter_limit_of_frames)
{
    rig.limits.frame_max = 100;
    rig_listen(&rig);
    expect_closed_after("\x00\x00\x00\x65\x04", 5, CLOSE_FRAME, "");
}

Test(conn_limit, a_damaged_record)
{
    struct rig_raw raw;
    rig_listen(&rig);
    rig_raw_connect(&rig, &raw, rig.client);
    static const uint8_t garbage[] = {0x17, 0x03, 0x03, 0x00, 0x20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                                      15,   16,   17,   18,   19,   20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
                                      31,   32};
    cr_assert_eq(send(raw.fd, garbage, sizeof(garbage), 0), (ssize_t)sizeof(garbage));
    struct rig_side *accepted = &rig.accepted[0];
    RIG_WAIT(&rig, accepted->closes == 1);
    expect_end(accepted, CLOSE_TLS, "TLS failed");
    rig_raw_close(&raw);
}

Test(conn_limit, plain_bytes_after_the_handshake)
{
    struct rig_raw raw;
    rig_listen(&rig);
    rig_raw_connect(&rig, &raw, rig.client);
    cr_assert_eq(send(raw.fd, "hello, is anybody there?\n", 25, 0), 25);
    struct rig_side *accepted = &rig.accepted[0];
    RIG_WAIT(&rig, accepted->closes == 1);
    cr_expect_eq(accepted->reason, CLOSE_TLS);
    rig_raw_close(&raw);
}

/* --- a reader that does not read --- */

Test(conn_limit, a_full_queue_closes)
{
    struct rig_raw raw;
    rig.limits.queue_max = 1024 * 1024;
    rig_listen(&rig);
    rig_raw_connect(&rig, &raw, rig.client);
    struct rig_side *accepted = &rig.accepted[0];
    int err = 0;
    size_t most = 0;
    for (int i = 0; i < 10000 && err == 0; i++) {
        err = rig_output(accepted, 200000);
        if (err == 0 && conn_queued(accepted->conn) > most) {
            most = conn_queued(accepted->conn);
        }
        loop_turn(rig.loop, 0);
    }
    cr_expect_eq(err, -ERR_FULL);
    cr_expect_leq(most, rig.limits.queue_max);
    cr_expect_eq(rig_output(accepted, 1), -ERR_CLOSED);
    cr_expect_eq(accepted->closes, 0);
    RIG_WAIT(&rig, accepted->closes == 1); /* nobody takes GOODBYE: it ends all the same */
    expect_end(accepted, CLOSE_QUEUE_FULL, close_text(CLOSE_QUEUE_FULL));
    rig_raw_close(&raw);
}

/* --- joining --- */

static int send_join(struct rig_side *side, size_t csr)
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

static struct rig_side *join(struct rig_side **accepted)
{
    size_t n = rig.n_accepted;
    struct rig_side *side = rig_dial(&rig, rig.joiner);
    RIG_WAIT(&rig, side->opens == 1 && rig.n_accepted > n && rig.accepted[n].opens == 1);
    *accepted = &rig.accepted[n];
    return side;
}

Test(conn_limit, a_joiner_asks_and_is_answered)
{
    static const uint8_t zeros[4096];
    struct rig_side *accepted;
    rig_listen(&rig);
    struct rig_side *side = join(&accepted);
    const struct conn_peer *peer = conn_peer(accepted->conn);
    cr_expect(peer->joining);
    cr_expect_eq((int)peer->role, 0);
    cr_expect_str_eq(peer->name, "");
    cr_expect_str_eq(peer->serial, "");
    cr_expect(conn_peer(side->conn)->joining);
    cr_expect_eq(conn_peer(side->conn)->role, ROLE_COORDINATOR);
    cr_expect_str_eq(conn_peer(side->conn)->fleet, "lab");
    cr_assert_eq(send_join(side, 2048), 0);
    RIG_WAIT(&rig, accepted->messages == 1);
    struct msg msg = {.type = MSG_JOINED,
                      .u.joined = {.cert = {.data = zeros, .len = 4096},
                                   .authority = {.data = zeros, .len = 4096},
                                   .name = "p6",
                                   .fleet = "lab"}};
    cr_assert_eq(conn_send(accepted->conn, &msg), 0);
    conn_close(accepted->conn, CLOSE_DONE, NULL, false);
    RIG_WAIT(&rig, side->closes == 1 && accepted->closes == 1);
    cr_expect_eq(side->messages, 1);
    cr_expect_eq(side->last_bytes, 4096);
    expect_end(side, CLOSE_DONE, "");
}

Test(conn_limit, a_joiner_may_say_goodbye)
{
    struct rig_side *accepted;
    rig_listen(&rig);
    struct rig_side *side = join(&accepted);
    cr_assert_eq(send_join(side, 100), 0);
    conn_close(side->conn, CLOSE_DONE, NULL, false);
    RIG_WAIT(&rig, accepted->closes == 1);
    cr_expect_eq(accepted->messages, 1);
    expect_end(accepted, CLOSE_DONE, "");
}

Test(conn_limit, a_joiner_says_one_thing)
{
    struct rig_side *accepted;
    rig_listen(&rig);
    struct rig_side *side = join(&accepted);
    cr_assert_eq(send_join(side, 100), 0);
    cr_assert_eq(send_join(side, 100), 0);
    RIG_WAIT(&rig, side->closes == 1);
    cr_expect_eq(accepted->messages, 1);
    expect_end(side, CLOSE_NOT_NOW, "one JOIN and nothing else");
    cr_expect(side->by_peer);

    side = join(&accepted);
    cr_assert_eq(rig_beat(side, 1), 0);
    RIG_WAIT(&rig, side->closes == 1);
    cr_expect_eq(accepted->messages, 0);
    expect_end(side, CLOSE_NOT_NOW, "one JOIN and nothing else");
}

Test(conn_limit, a_joiner_is_brief)
{
    struct rig_raw raw;
    rig_listen(&rig);
    rig_raw_connect(&rig, &raw, rig.joiner);
    rig_raw_write(&rig, &raw, "\x00\x00\x10\x01\x0a", 5); /* 4097 bytes of JOIN */
    rig_raw_expect_goodbye(&rig, &raw, CLOSE_FRAME, "");
    rig_raw_close(&raw);
    RIG_WAIT(&rig, rig.accepted[0].closes == 1);
    cr_expect_eq(rig.accepted[0].reason, CLOSE_FRAME);
}

Test(conn_limit, a_joiner_is_quick)
{
    struct rig_side *accepted;
    rig.limits.handshake_ns = 300 * CLOCK_MS;
    rig_listen(&rig);
    struct rig_side *side = join(&accepted);
    RIG_WAIT(&rig, side->closes == 1);
    expect_end(side, CLOSE_HELLO_TIMEOUT, "joining was not over in time");
    cr_expect(side->by_peer);
    /* Others are not hurried by it. */
    side = rig_connect(&rig, &accepted);
    int64_t until = clock_mono_ns() + 2 * rig.limits.handshake_ns;
    RIG_WAIT(&rig, clock_mono_ns() > until);
    cr_expect_eq(side->closes, 0);
}

/* --- room --- */

Test(conn_limit, no_more_than_max_conns)
{
    struct rig_side *accepted;
    rig.limits.max_conns = 2;
    rig_listen(&rig);
    (void)rig_connect(&rig, &accepted);
    struct rig_side *second = rig_connect(&rig, &accepted);
    struct rig_side *third = rig_dial(&rig, rig.client);
    RIG_WAIT(&rig, third->closes == 1 && rig.rejects == 1);
    expect_reject(CLOSE_TOO_MANY, close_text(CLOSE_TOO_MANY));
    conn_close(second->conn, CLOSE_DONE, NULL, false);
    RIG_WAIT(&rig, conn_listener_count(rig.listener) == 1);
    (void)rig_connect(&rig, &accepted);
}

Test(conn_limit, descriptors_are_left_free)
{
    struct rig_side *accepted;
    struct rlimit before, limit;
    int fillers[64];
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    rig.limits.reserve_fds = 5;
    rig_listen(&rig);
    /* All numbers below are in use: of a limit of 20 a reserve of 5 would be the most. */
    for (size_t i = 0; i < ARRAY_LEN(fillers); i++) {
        fillers[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        cr_assert_geq(fillers[i], 0);
    }
    limit = before;
    limit.rlim_cur = (rlim_t)fillers[63] + 1 + 2 + 5; /* room for one connection of two ends */
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rig_side *one = rig_connect(&rig, &accepted);
    struct rig_side *two = rig_dial(&rig, rig.client);
    RIG_WAIT(&rig, two->closes == 1 && rig.rejects >= 1);
    expect_reject(CLOSE_TOO_MANY, "descriptors are nearly used up");
    cr_expect_eq(rig.n_accepted, 1);
    cr_assert_eq(rig_beat(one, 1), 0); /* who is in goes on */
    RIG_WAIT(&rig, accepted->messages == 1);
    conn_close(one->conn, CLOSE_DONE, NULL, false);
    RIG_WAIT(&rig, one->closes == 1 && accepted->closes == 1);
    (void)rig_connect(&rig, &accepted); /* after the pause */
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (size_t i = 0; i < ARRAY_LEN(fillers); i++) {
        close(fillers[i]);
    }
}

Test(conn_limit, no_descriptor_at_all)
{
    struct rig_side *accepted;
    struct rlimit before, limit;
    struct rig_raw raw;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    rig_listen(&rig);
    rig_raw_connect(&rig, &raw, NULL); /* waits in the kernel's queue */
    limit = before;
    limit.rlim_cur = (rlim_t)raw.fd + 1;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int i = 0; i < 20; i++) {
        loop_turn(rig.loop, 0);
    }
    cr_expect_eq(conn_listener_count(rig.listener), 0);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    RIG_WAIT(&rig, conn_listener_count(rig.listener) == 1); /* after the pause */
    rig_raw_close(&raw);
    (void)rig_connect(&rig, &accepted);
}

Test(conn_limit, a_listener_goes_with_its_handshakes)
{
    struct rig_raw raw;
    rig_listen(&rig);
    rig_raw_connect(&rig, &raw, NULL);
    RIG_WAIT(&rig, conn_listener_count(rig.listener) == 1);
    conn_listener_free(&rig.listener);
    RIG_WAIT(&rig, rig_raw_is_ended(&raw));
    cr_expect_eq(rig.rejects, 0);
    rig_raw_close(&raw);
}

/* --- dialling --- */

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
    snprintf(rig.address, sizeof(rig.address), "127.0.0.1:%u", (unsigned)ntohs(addr.sin_port));
    return fd;
}

Test(conn_limit, nobody_listens)
{
    int fd = taken_port(false);
    struct rig_side *side = rig_dial(&rig, rig.client);
    cr_expect_eq(side->closes, 0, "never within the call");
    RIG_WAIT(&rig, side->closes == 1);
    char text[128];
    snprintf(text, sizeof(text), "%s: Connection refused", rig.address);
    expect_end(side, CLOSE_DIAL, text);
    close(fd);
}

Test(conn_limit, a_server_that_says_nothing)
{
    int fd = taken_port(true);
    rig.limits.handshake_ns = 50 * CLOCK_MS;
    struct rig_side *side = rig_dial(&rig, rig.client);
    RIG_WAIT(&rig, side->closes == 1);
    expect_end(side, CLOSE_HANDSHAKE_TIMEOUT, "the TLS handshake was not over after 50ms");
    close(fd);
}

Test(conn_limit, a_server_that_hangs_up)
{
    int fd = taken_port(true);
    struct rig_side *side = rig_dial(&rig, rig.client);
    loop_turn(rig.loop, CLOCK_SEC);
    int accepted = accept(fd, NULL, NULL);
    cr_assert_geq(accepted, 0);
    cr_assert_eq(shutdown(accepted, SHUT_RDWR), 0);
    RIG_WAIT(&rig, side->closes == 1);
    cr_expect(side->reason == CLOSE_EOF || side->reason == CLOSE_IO, "%s", side->text);
    close(accepted);
    close(fd);
}

Test(conn_limit, a_full_queue_of_the_kernel_is_no_answer)
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
    rig.limits.handshake_ns = 50 * CLOCK_MS;
    struct rig_side *side = rig_dial(&rig, rig.client);
    RIG_WAIT(&rig, side->closes == 1);
    expect_end(side, CLOSE_DIAL, ": no answer in 50ms");
    for (size_t i = 0; i < ARRAY_LEN(fillers); i++) {
        close(fillers[i]);
    }
    close(fd);
}

Test(conn_limit, a_name_with_several_addresses)
{
    struct rig_side *accepted;
    rig_listen(&rig); /* at 127.0.0.1 only; the name may stand for ::1 too, and that may come first */
    snprintf(rig.address, sizeof(rig.address), "localhost:%u",
             (unsigned)conn_listener_port(rig.listener));
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    if (getaddrinfo("localhost", NULL, &hints, &list) != 0) { /* a system without /etc/hosts */
        struct rig_side *lost = rig_dial(&rig, rig.client);
        RIG_WAIT(&rig, lost->closes == 1);
        expect_end(lost, CLOSE_DIAL, "");
        return;
    }
    freeaddrinfo(list);
    struct rig_side *side = rig_connect(&rig, &accepted);
    cr_expect(str_starts(conn_peer(side->conn)->address, "127.0.0.1:"));
}

Test(conn_limit, a_name_that_there_is_not)
{
    snprintf(rig.address, sizeof(rig.address), "%s", "a..b:7443");
    struct rig_side *side = rig_dial(&rig, rig.client);
    RIG_WAIT(&rig, side->closes == 1);
    expect_end(side, CLOSE_DIAL, "the name a..b cannot be looked up: ");
}

Test(conn_limit, malformed_addresses)
{
    struct conn *conn;
    struct conn_listener *listener;
    static const char *const bad[] = {"", "7443", "host", "host:", "host:x", "host:65536", "host:-1", ":",
                                      "::1:7443", "[::1]7443", "[]:7443", "a b:7443", "host:07443"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cr_expect_eq(conn_dial(rig.loop, rig.client, bad[i], NULL, NULL, NULL, &conn, NULL), -ERR_INVAL,
                     "%s", bad[i]);
        cr_expect_eq(
            conn_listen(rig.loop, rig.server, bad[i], NULL, NULL, NULL, NULL, &listener, NULL),
            -ERR_INVAL, "%s", bad[i]);
    }
    /* To listen only. */
    cr_expect_eq(conn_dial(rig.loop, rig.client, ":7443", NULL, NULL, NULL, &conn, NULL), -ERR_INVAL);
    cr_expect_eq(conn_dial(rig.loop, rig.client, "host:0", NULL, NULL, NULL, &conn, NULL), -ERR_INVAL);
}

Test(conn_limit, listening_where_somebody_does)
{
    struct conn_listener *second;
    rig_listen(&rig);
    cr_expect_lt(conn_listen(rig.loop, rig.server, rig.address, NULL, NULL, NULL, NULL, &second, NULL), 0);
    cr_expect_null(second);
}

Test(conn_limit, listening_on_all_addresses)
{
    struct rig_side *accepted;
    rig_listen(&rig);
    struct conn_listener *all;
    cr_assert_eq(conn_listen(rig.loop, rig.server, ":0", NULL, NULL, NULL, NULL, &all, NULL), 0);
    cr_expect_neq(conn_listener_port(all), 0);
    conn_listener_free(&all);
    conn_listener_free(&all);
    (void)rig_connect(&rig, &accepted);
}

/* How connections end: GOODBYE, quiet closes, closes from within callbacks, refused certificates,
 * ends of the other side without a word; and that nothing is left behind (under ASan). */
#include "common/buf.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/str.h"
#include "proto/conn.h"
#include "proto/frame.h"
#include "tests/unit/proto/wire.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdio.h>
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

TestSuite(conn_close, .init = set_up, .fini = tear_down);

static void expect_end(const struct wire_side *side, enum close_reason reason, bool by_peer,
                       const char *text)
{
    cr_expect_eq(side->closes, 1);
    cr_expect_eq(side->reason, reason, "%s: %s", close_name((uint32_t)side->reason), side->text);
    cr_expect_eq(side->by_peer, by_peer);
    cr_expect(strstr(side->text, text) != NULL, "\"%s\" is not in: %s", text, side->text);
}

Test(conn_close, goodbye_carries_reason_and_text)
{
    struct wire_side *accepted;
    wire_listen(&wire);
    struct wire_side *dialled = wire_connect(&wire, &accepted);
    conn_close(dialled->conn, CLOSE_VERSION, "versions 1 to 1 and 2 to 3", false);
    cr_expect_eq(dialled->closes, 0, "never within the call");
    cr_expect_eq(wire_beat(dialled, 1), -ERR_CLOSED);
    conn_close(dialled->conn, CLOSE_DONE, "later reasons do not count", false);
    WIRE_WAIT(&wire, dialled->closes == 1 && accepted->closes == 1);
    expect_end(dialled, CLOSE_VERSION, false, "versions 1 to 1 and 2 to 3");
    expect_end(accepted, CLOSE_VERSION, true, "versions 1 to 1 and 2 to 3");
    cr_expect_eq(conn_listener_count(wire.listener), 0);
}

Test(conn_close, without_text_the_sentence_of_the_reason)
{
    struct wire_side *accepted;
    wire_listen(&wire);
    struct wire_side *dialled = wire_connect(&wire, &accepted);
    conn_close(accepted->conn, CLOSE_REPLACED, NULL, false);
    WIRE_WAIT(&wire, dialled->closes == 1 && accepted->closes == 1);
    expect_end(dialled, CLOSE_REPLACED, true, close_text(CLOSE_REPLACED));
    expect_end(accepted, CLOSE_REPLACED, false, close_text(CLOSE_REPLACED));
}

Test(conn_close, what_was_queued_arrives_before)
{
    struct wire_side *accepted;
    wire_listen(&wire);
    struct wire_side *dialled = wire_connect(&wire, &accepted);
    for (int i = 0; i < 12; i++) {
        cr_assert_eq(wire_output(dialled, 262144), 0); /* 3 MiB */
    }
    conn_close(dialled->conn, CLOSE_DONE, NULL, false);
    WIRE_WAIT(&wire, dialled->closes == 1 && accepted->closes == 1);
    cr_expect_eq(accepted->messages, 12);
    expect_end(accepted, CLOSE_DONE, true, "");
}

/* Both were sending: the kernel must not throw GOODBYE away when the first one closes. */
Test(conn_close, goodbye_survives_traffic_against_it)
{
    wire_listen(&wire);
    for (int round = 0; round < 7; round++) {
        struct wire_side *accepted;
        struct wire_side *dialled = wire_connect(&wire, &accepted);
        for (int i = 0; i < 8; i++) {
            cr_assert_eq(wire_output(dialled, 262144), 0);
        }
        loop_turn(wire.loop, 0);
        conn_close(accepted->conn, CLOSE_STORE, "disk full", false);
        WIRE_WAIT(&wire, dialled->closes == 1 && accepted->closes == 1);
        expect_end(dialled, CLOSE_STORE, true, "disk full");
    }
}

Test(conn_close, long_and_odd_text)
{
    struct wire_side *accepted;
    char text[1101];
    wire_listen(&wire);
    struct wire_side *dialled = wire_connect(&wire, &accepted);
    memset(text, 'x', sizeof(text));
    memcpy(text, "a\x1b[31m\n\xc2\x9b", 9); /* colours and a C1 control character */
    memcpy(text + 1023, "\xc3\xa4", 2);     /* cut in the middle at 1024 */
    text[1100] = '\0';
    conn_close(dialled->conn, CLOSE_DONE, text, false);
    WIRE_WAIT(&wire, accepted->closes == 1);
    cr_expect_eq(strlen(accepted->text), 1023);
    cr_expect(str_starts(accepted->text, "a [31m   x"), "%s", accepted->text);
}

Test(conn_close, quiet_is_quiet_here_and_told_there)
{
    struct wire_side *accepted;
    wire_listen(&wire);
    struct wire_side *dialled = wire_connect(&wire, &accepted);
    conn_close(dialled->conn, CLOSE_SHUTDOWN, NULL, true);
    dialled->conn = NULL;
    WIRE_WAIT(&wire, accepted->closes == 1);
    expect_end(accepted, CLOSE_SHUTDOWN, true, "");
    cr_expect_eq(dialled->closes, 0);
    cr_expect_eq(dialled->drains, 0);
}

/* wire_fini() frees the loop at once. */
Test(conn_close, quiet_and_then_no_turn)
{
    struct wire_side *accepted;
    wire_listen(&wire);
    (void)wire_connect(&wire, &accepted);
    (void)wire_dial(&wire, wire.client);
}

Test(conn_close, quiet_at_the_very_end_is_told_there)
{
    struct wire_raw raw;
    wire_listen(&wire);
    wire_raw_connect(&wire, &raw, wire.client);
    wire_fini(&wire); /* closes quietly and frees the loop, without a turn */
    wire_raw_expect_goodbye(&wire, &raw, CLOSE_SHUTDOWN, close_text(CLOSE_SHUTDOWN));
    wire_raw_close(&raw);
    wire_init(&wire);
}

Test(conn_close, quiet_with_a_reader_that_does_not_read)
{
    struct wire_side *accepted;
    wire.limits.queue_max = (size_t)64 * 1024 * 1024;
    wire_listen(&wire);
    struct wire_side *dialled = wire_connect(&wire, &accepted);
    conn_pause(accepted->conn, true);
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(wire_output(dialled, 262144), 0);
    }
    conn_close(dialled->conn, CLOSE_SHUTDOWN, NULL, true);
    dialled->conn = NULL;
    for (int i = 0; i < 5; i++) {
        loop_turn(wire.loop, 0); /* still writing when the loop is freed */
    }
}

Test(conn_close, quiet_after_a_close_that_waits)
{
    struct wire_side *accepted;
    wire_listen(&wire);
    struct wire_side *dialled = wire_connect(&wire, &accepted);
    conn_close(dialled->conn, CLOSE_DONE, NULL, false);
    conn_close(dialled->conn, CLOSE_DONE, NULL, true);
    dialled->conn = NULL;
    WIRE_WAIT(&wire, accepted->closes == 1);
    cr_expect_eq(dialled->closes, 0);
}

Test(conn_close, quiet_between_the_end_and_its_event)
{
    struct wire_side *side;
    snprintf(wire.address, sizeof(wire.address), "127.0.0.1:9");
    side = wire_dial(&wire, wire.client);
    conn_close(side->conn, CLOSE_DONE, NULL, false); /* dead; its event is still to come */
    conn_close(side->conn, CLOSE_DONE, NULL, true);
    side->conn = NULL;
    for (int i = 0; i < 3; i++) {
        loop_turn(wire.loop, 0);
    }
    cr_expect_eq(side->closes, 0);
}

/* A side's tag says at which event it closes, and how. */
enum { AT_OPEN = 1, AT_MESSAGE, AT_DRAINED, QUIETLY = 8 };

static void close_at(struct wire_side *side, const struct conn_event *event)
{
    static const int at[] = {[CONN_OPEN] = AT_OPEN,
                             [CONN_MESSAGE] = AT_MESSAGE,
                             [CONN_DRAINED] = AT_DRAINED,
                             [CONN_CLOSED] = -1};
    if (at[event->kind] == (side->tag & 7)) {
        bool quiet = (side->tag & QUIETLY) != 0;
        conn_close(side->conn, CLOSE_DONE, NULL, quiet);
        if (quiet) {
            side->conn = NULL;
        }
    } else if (event->kind == CONN_CLOSED) {
        cr_expect_eq(conn_send(side->conn, &(struct msg){.type = MSG_BEAT}), -ERR_CLOSED);
        conn_close(side->conn, CLOSE_DONE, NULL, true); /* does no harm */
    }
}

Test(conn_close, from_within_any_callback)
{
    wire_listen(&wire);
    const int tags[] = {AT_OPEN,           AT_MESSAGE,           AT_DRAINED,
                        AT_OPEN | QUIETLY, AT_MESSAGE | QUIETLY, AT_DRAINED | QUIETLY};
    for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
        size_t n = wire.n_accepted;
        struct wire_side *dialled = wire_dial(&wire, wire.client);
        dialled->on_event = close_at;
        dialled->tag = tags[i];
        WIRE_WAIT(&wire, wire.n_accepted > n && wire.accepted[n].opens == 1);
        if ((tags[i] & 7) == AT_MESSAGE) {
            cr_assert_eq(wire_beat(&wire.accepted[n], 1), 0);
            cr_assert_eq(wire_beat(&wire.accepted[n], 2), 0);
        } else if ((tags[i] & 7) == AT_DRAINED) {
            WIRE_WAIT(&wire, dialled->opens == 1);
            cr_assert_eq(wire_beat(dialled, 1), 0);
        }
        WIRE_WAIT(&wire, wire.accepted[n].closes == 1);
        expect_end(&wire.accepted[n], CLOSE_DONE, true, "");
        if ((tags[i] & QUIETLY) == 0) {
            WIRE_WAIT(&wire, dialled->closes == 1);
        }
        cr_expect_leq(dialled->messages, 1, "no message after the close");
    }
}

Test(conn_close, on_accept)
{
    wire.close_on_accept = true;
    wire_listen(&wire);
    struct wire_side *side = wire_dial(&wire, wire.client);
    WIRE_WAIT(&wire, side->closes == 1);
    expect_end(side, CLOSE_TOO_MANY, true, "");
    cr_expect_eq(wire.rejects, 0);
    cr_expect_eq(conn_listener_count(wire.listener), 0);
}

static void hello_at_once(struct wire_side *side, const struct conn_event *event)
{
    if (event->kind == CONN_OPEN) {
        for (uint64_t i = 1; i <= 20; i++) {
            cr_assert_eq(wire_beat(side, i), 0);
        }
    }
}

/* The client sends as soon as it may; the refusal must reach it all the same. */
static void expect_refusal(struct tls *client, enum close_reason reason, const char *here,
                           const char *there)
{
    for (int i = 0; i < 5; i++) {
        unsigned rejects = wire.rejects;
        struct wire_side *side = wire_dial(&wire, client);
        side->on_event = hello_at_once;
        WIRE_WAIT(&wire, side->closes == 1 && wire.rejects > rejects);
        expect_end(side, reason, true, here);
        cr_expect_eq(wire.reject_reason, reason);
        cr_expect(strstr(wire.reject_text, there) != NULL, "%s", wire.reject_text);
        cr_expect_eq(wire.n_accepted, 0);
    }
    cr_expect_eq(conn_listener_count(wire.listener), 0);
}

Test(conn_close, revoked)
{
    struct pki_id id;
    cr_assert_eq(pki_cert_id(wire.worker.cert, &id, NULL), 0);
    wire.server_world.revoked = id.serial;
    wire_listen(&wire);
    expect_refusal(wire.client, CLOSE_REVOKED, "worker p6 was revoked", "worker p6 was revoked");
}

Test(conn_close, expired)
{
    wire.server_world.now_s = TRUST_NOW + 366 * PKI_DAY_S;
    wire_listen(&wire);
    expect_refusal(wire.client, CLOSE_CERT_EXPIRED, "is past its end, 2027-11-30 12:00 UTC",
                   "ended on 2027-11-30 12:00 UTC");
}

Test(conn_close, not_yet_valid)
{
    wire.server_world.now_s = 0;
    wire_listen(&wire);
    expect_refusal(wire.client, CLOSE_CERT_NOT_YET, "the coordinator's clock is late",
                   "by the clock of this coordinator it is 1970-01-01 00:00 UTC");
}

Test(conn_close, the_client_refuses)
{
    struct trust_pair other, stranger;
    trust_authority("other", &other);
    trust_issue(&other, ROLE_WORKER, "p6", &stranger);
    struct tls *client = trust_client(&other, &stranger, &wire.client_world, false);
    wire_listen(&wire);
    struct wire_side *side = wire_dial(&wire, client);
    WIRE_WAIT(&wire, side->closes == 1 && wire.rejects == 1);
    expect_end(side, CLOSE_CERT_AUTHORITY, false,
               "another fleet's coordinator answers at this address");
    cr_expect_eq(side->opens, 0);
    cr_expect_eq(wire.reject_reason, CLOSE_CERT_AUTHORITY);
    tls_free(&client);
    trust_free(&other);
    trust_free(&stranger);
}

Test(conn_close, half_a_frame_and_then_the_end)
{
    struct wire_raw raw;
    wire_listen(&wire);
    wire_raw_connect(&wire, &raw, wire.client);
    wire_raw_write(&wire, &raw, "\x00\x00\x00\x64\x04half", 9);
    struct wire_side *accepted = &wire.accepted[0];
    tls_session_shutdown(raw.s);
    wire_raw_close(&raw);
    WIRE_WAIT(&wire, accepted->closes == 1);
    expect_end(accepted, CLOSE_EOF, true, "in the middle of a message");
}

Test(conn_close, the_end_between_frames)
{
    struct wire_raw raw;
    wire_listen(&wire);
    wire_raw_connect(&wire, &raw, wire.client);
    struct wire_side *accepted = &wire.accepted[0];
    wire_raw_close(&raw); /* without close_notify */
    WIRE_WAIT(&wire, accepted->closes == 1);
    expect_end(accepted, CLOSE_EOF, true, close_text(CLOSE_EOF));
}

Test(conn_close, the_other_side_vanishes)
{
    struct wire_raw raw;
    wire_listen(&wire);
    wire_raw_connect(&wire, &raw, wire.client);
    struct wire_side *accepted = &wire.accepted[0];
    struct linger linger = {.l_onoff = 1, .l_linger = 0}; /* a reset in place of an orderly end */
    cr_assert_eq(setsockopt(raw.fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    wire_raw_close(&raw);
    WIRE_WAIT(&wire, accepted->closes == 1);
    expect_end(accepted, CLOSE_IO, false, "Connection reset by peer");
}

/* More than the kernel takes, so that this end is waiting to write. */
static void fill(struct wire_side *side)
{
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(wire_output(side, 262144), 0);
    }
    loop_turn(wire.loop, 0);
    cr_assert_gt(conn_queued(side->conn), 0);
}

Test(conn_close, the_other_side_vanishes_while_this_one_sends)
{
    struct wire_raw raw;
    wire.limits.queue_max = (size_t)64 * 1024 * 1024;
    wire_listen(&wire);
    wire_raw_connect(&wire, &raw, wire.client);
    struct wire_side *accepted = &wire.accepted[0];
    fill(accepted);
    wire_raw_close(&raw); /* unread bytes make it a reset */
    WIRE_WAIT(&wire, accepted->closes == 1);
    cr_expect(accepted->reason == CLOSE_IO || accepted->reason == CLOSE_EOF, "%s", accepted->text);
}

/* What was said before the network went away is still heard. */
Test(conn_close, goodbye_and_then_a_reset_while_this_one_sends)
{
    struct wire_raw raw;
    struct buf frame = BUF_INIT;
    struct msg msg = {.type = MSG_GOODBYE,
                      .u.goodbye = {.reason = CLOSE_STORE, .text = "disk full"}};
    cr_assert_eq(msg_encode(&msg, &frame), 0);
    wire.limits.queue_max = (size_t)64 * 1024 * 1024;
    wire_listen(&wire);
    wire_raw_connect(&wire, &raw, wire.client);
    struct wire_side *accepted = &wire.accepted[0];
    fill(accepted);
    size_t put;
    cr_assert_eq(tls_session_write(raw.s, frame.data, frame.len, &put), TLS_DONE);
    cr_assert_eq(put, frame.len);
    wire_raw_close(&raw);
    WIRE_WAIT(&wire, accepted->closes == 1);
    expect_end(accepted, CLOSE_STORE, true, "disk full");
    buf_fini(&frame);
}

static void say_goodbye(uint32_t reason, const char *text)
{
    struct wire_raw raw;
    struct buf frame = BUF_INIT;
    struct msg msg = {.type = MSG_GOODBYE, .u.goodbye = {.reason = reason, .text = text}};
    cr_assert_eq(msg_encode(&msg, &frame), 0);
    wire_raw_connect(&wire, &raw, wire.client);
    wire_raw_write(&wire, &raw, frame.data, frame.len);
    struct wire_side *accepted = &wire.accepted[wire.n_accepted - 1];
    WIRE_WAIT(&wire, accepted->closes == 1);
    buf_fini(&frame);
    wire_raw_close(&raw);
}

Test(conn_close, reasons_that_nobody_knows)
{
    wire_listen(&wire);
    say_goodbye(0, "");
    expect_end(&wire.accepted[0], CLOSE_EOF, true, close_text(CLOSE_EOF));
    say_goodbye(4000000000u, "of a later version");
    cr_expect_eq((uint32_t)wire.accepted[1].reason, 4000000000u);
    cr_expect_str_eq(wire.accepted[1].text, "of a later version");
}

/* Connections that work: opening, messages both ways, order, large frames, backpressure, what is
 * told of the other side. How they end: conn_close_test.c; what they withstand:
 * conn_limit_test.c. */
#include "common/buf.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/str.h"
#include "proto/conn.h"
#include "tests/unit/proto/wire.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct wire wire;

static void set_up(void)
{
    wire_init(&wire);
}

static void tear_down(void)
{
    wire_fini(&wire);
}

TestSuite(conn, .init = set_up, .fini = tear_down);

Test(conn, both_ends_open_and_know_each_other)
{
    struct wire_side *accepted;
    wire_listen(&wire);
    cr_expect_eq(conn_listener_count(wire.listener), 0);
    struct wire_side *dialled = wire_connect(&wire, &accepted);
    cr_expect_eq(conn_listener_count(wire.listener), 1);

    const struct conn_peer *peer = conn_peer(accepted->conn);
    struct pki_id id;
    cr_assert_eq(pki_cert_id(wire.worker.cert, &id, NULL), 0);
    cr_expect_eq(peer->role, ROLE_WORKER);
    cr_expect(!peer->joining);
    cr_expect_str_eq(peer->name, "p6");
    cr_expect_str_eq(peer->fleet, "lab");
    cr_expect_str_eq(peer->serial, id.serial);
    cr_expect_str_eq(peer->key_hash, id.key_hash);
    cr_expect_eq(peer->cert_end_s, id.end_s);
    cr_expect(str_starts(peer->address, "127.0.0.1:"));

    peer = conn_peer(dialled->conn);
    cr_expect_eq(peer->role, ROLE_COORDINATOR);
    cr_expect_str_eq(peer->name, "main");
    cr_expect_str_eq(peer->address, wire.address);
    cr_expect_eq(wire.rejects, 0);
}

Test(conn, messages_go_both_ways_in_order)
{
    struct wire_side *accepted;
    wire_listen(&wire);
    struct wire_side *dialled = wire_connect(&wire, &accepted);
    for (uint64_t i = 1; i <= 500; i++) {
        cr_assert_eq(wire_beat(dialled, i), 0);
        cr_assert_eq(wire_beat(accepted, i), 0);
        if (i % 7 == 0) {
            loop_turn(wire.loop, 0);
        }
    }
    WIRE_WAIT(&wire, accepted->messages == 500 && dialled->messages == 500);
    cr_expect(!accepted->out_of_order && !dialled->out_of_order);
    cr_expect_eq(conn_queued(dialled->conn), 0);
    cr_expect_gt(dialled->drains, 0);

    struct conn_stats here, there;
    conn_get_stats(dialled->conn, &here);
    conn_get_stats(accepted->conn, &there);
    cr_expect_eq(here.msgs_out, 500);
    cr_expect_eq(here.msgs_in, 500);
    cr_expect_eq(there.msgs_in, 500);
    cr_expect_eq(here.bytes_out, there.bytes_in);
    cr_expect_eq(here.bytes_in, there.bytes_out);
}

/* Promise of the product: a beat in the timed window is at most 300 bytes on the wire. */
Test(conn, a_beat_is_small)
{
    struct wire_side *accepted;
    struct conn_stats before, after;
    wire_listen(&wire);
    struct wire_side *dialled = wire_connect(&wire, &accepted);
    conn_get_stats(dialled->conn, &before);
    struct msg msg = {.type = MSG_BEAT,
                      .u.beat = {.n = UINT64_MAX,
                                 .run = UINT64_MAX,
                                 .has_run = true,
                                 .phase = UINT32_MAX,
                                 .has_phase = true,
                                 .elapsed_ns = INT64_MAX,
                                 .has_elapsed_ns = true}};
    cr_assert_eq(conn_send(dialled->conn, &msg), 0);
    WIRE_WAIT(&wire, accepted->messages == 1);
    conn_get_stats(dialled->conn, &after);
    cr_expect_leq(after.bytes_out - before.bytes_out, 300);
    cr_expect_gt(after.bytes_out - before.bytes_out, 0);
}

/* As close to the largest frame as the schema goes: a sweep file with parameters. */
Test(conn, a_frame_of_1_mib_passes)
{
    enum { TEXT = 786432, VALUE = 65536 };
    struct wire_side *accepted;
    wire_listen(&wire);
    struct wire_side *dialled = wire_connect(&wire, &accepted);
    uint8_t *text = malloc(TEXT);
    char *value = malloc(VALUE + 1);
    cr_assert(text != NULL && value != NULL);
    memset(text, 'x', TEXT);
    memset(value, 'v', VALUE);
    value[VALUE] = '\0';
    struct rec_setting sets[4];
    for (size_t i = 0; i < 4; i++) {
        sets[i] = (struct rec_setting){.name = "p", .value = i < 3 ? value : value + 2000};
    }
    struct msg msg = {.type = MSG_SWEEP_PUT,
                      .u.sweep_put = {.call = 1,
                                      .action = "run",
                                      .file = "a.yaml",
                                      .text = {.data = text, .len = TEXT},
                                      .sets = sets,
                                      .sets_count = 4,
                                      .format = "text"}};
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(conn_send(dialled->conn, &msg), 0);
    }
    cr_expect_gt(conn_queued(dialled->conn), 3 * (1024 * 1024 - 3000));
    sets[3].value =
        value; /* now it is over 1 MiB: refused, and nothing happens to the connection */
    cr_expect_eq(conn_send(dialled->conn, &msg), -ERR_LIMIT);
    WIRE_WAIT(&wire, accepted->messages == 3);
    cr_expect_eq(accepted->last_bytes, TEXT);
    cr_assert_eq(wire_beat(dialled, 1), 0);
    WIRE_WAIT(&wire, accepted->messages == 4);
    free(text);
    free(value);
}

Test(conn, a_message_against_the_schema_is_not_sent)
{
    struct wire_side *accepted;
    wire_listen(&wire);
    struct wire_side *dialled = wire_connect(&wire, &accepted);
    struct msg msg = {.type = MSG_CANCEL, .u.cancel = {.run = 1, .attempt = 1, .text = NULL}};
    cr_expect_eq(conn_send(dialled->conn, &msg), -ERR_LIMIT);
    cr_expect_eq(conn_queued(dialled->conn), 0);
    cr_assert_eq(wire_beat(dialled, 1), 0);
    WIRE_WAIT(&wire, accepted->messages == 1);
}

/* A hook of the loop commits; what a handler promised in the turn must not have left before. */
struct commit {
    struct wire_side *side;
    unsigned seen_queued;
    uint64_t bytes_before;
    bool left_early;
};

static struct commit commit;

static void on_commit(void *arg)
{
    struct commit *c = arg;
    if (c->side != NULL && c->side->conn != NULL && conn_queued(c->side->conn) > 0) {
        struct conn_stats stats;
        conn_get_stats(c->side->conn, &stats);
        c->seen_queued++;
        c->left_early = c->left_early || stats.bytes_out != c->bytes_before;
    }
}

static void answer(struct wire_side *side, const struct conn_event *event)
{
    if (event->kind == CONN_MESSAGE) {
        struct conn_stats stats;
        conn_get_stats(side->conn, &stats);
        commit.side = side;
        commit.bytes_before = stats.bytes_out;
        cr_assert_eq(wire_beat(side, 1), 0);
    }
}

Test(conn, what_a_handler_sends_leaves_after_the_hooks)
{
    struct wire_side *accepted;
    commit = (struct commit){0};
    loop_hook_add(wire.loop, on_commit, &commit);
    wire.on_accepted_event = answer;
    wire_listen(&wire);
    struct wire_side *dialled = wire_connect(&wire, &accepted);
    cr_assert_eq(wire_beat(dialled, 1), 0);
    WIRE_WAIT(&wire, dialled->messages == 1);
    cr_expect_gt(commit.seen_queued, 0);
    cr_expect(!commit.left_early);
    loop_hook_remove(wire.loop, on_commit, &commit);
}

static void pause_at_first(struct wire_side *side, const struct conn_event *event)
{
    if (event->kind == CONN_MESSAGE && side->messages == 1) {
        conn_pause(side->conn, true);
    }
}

Test(conn, a_pause_holds_what_was_read_already)
{
    struct wire_side *accepted;
    wire.on_accepted_event = pause_at_first;
    wire_listen(&wire);
    struct wire_side *dialled = wire_connect(&wire, &accepted);
    for (uint64_t i = 1; i <= 5; i++) {
        cr_assert_eq(wire_beat(dialled, i), 0); /* one record */
    }
    WIRE_WAIT(&wire, accepted->messages == 1 && dialled->drains > 0);
    for (int i = 0; i < 20; i++) {
        loop_turn(wire.loop, 0);
    }
    cr_expect_eq(accepted->messages, 1);
    conn_pause(accepted->conn, false);
    cr_expect_eq(accepted->messages, 1, "never within the call");
    WIRE_WAIT(&wire, accepted->messages == 5);
    cr_assert_eq(wire_beat(dialled, 6), 0);
    WIRE_WAIT(&wire, accepted->messages == 6);
    cr_expect(!accepted->out_of_order);
}

static void pause_at_each(struct wire_side *side, const struct conn_event *event)
{
    if (event->kind == CONN_MESSAGE) {
        conn_pause(side->conn, true);
    }
}

Test(conn, one_message_at_a_time)
{
    struct wire_side *accepted;
    wire.on_accepted_event = pause_at_each;
    wire_listen(&wire);
    struct wire_side *dialled = wire_connect(&wire, &accepted);
    for (uint64_t i = 1; i <= 50; i++) {
        cr_assert_eq(wire_beat(dialled, i), 0);
    }
    for (unsigned i = 1; i <= 50; i++) {
        WIRE_WAIT(&wire, accepted->messages == i);
        conn_pause(accepted->conn, false);
        conn_pause(accepted->conn, true); /* as if nothing had been */
        loop_turn(wire.loop, 0);
        cr_assert_eq(accepted->messages, i);
        conn_pause(accepted->conn, false);
    }
    cr_expect(!accepted->out_of_order);
}

Test(conn, a_pause_reaches_the_sender)
{
    struct wire_side *accepted;
    wire.limits.queue_max = (size_t)64 * 1024 * 1024;
    wire_listen(&wire);
    struct wire_side *dialled = wire_connect(&wire, &accepted);
    conn_pause(accepted->conn, true);
    unsigned sent = 0;
    for (; sent < 100; sent++) {
        cr_assert_eq(wire_output(dialled, 262144),
                     0); /* 25 MB: more than the kernel's buffers take */
    }
    size_t queued = 0;
    for (int64_t still = 0; still < 5;) {
        loop_turn(wire.loop, 10 * CLOCK_MS);
        still = conn_queued(dialled->conn) == queued ? still + 1 : 0;
        queued = conn_queued(dialled->conn);
    }
    cr_expect_gt(queued, 0);
    cr_expect_eq(accepted->messages, 0);
    cr_expect_eq(dialled->drains, 0);
    conn_pause(accepted->conn, false);
    WIRE_WAIT(&wire, accepted->messages == sent && dialled->drains > 0);
    cr_expect_eq(accepted->last_bytes, 262144);
    cr_expect_eq(conn_queued(dialled->conn), 0);
}

Test(conn, many_at_once)
{
    wire_listen(&wire);
    struct wire_side *sides[WIRE_SIDES];
    for (size_t i = 0; i < WIRE_SIDES; i++) {
        sides[i] = wire_dial(&wire, wire.client);
    }
    WIRE_WAIT(&wire, wire.n_accepted == WIRE_SIDES);
    cr_expect_eq(conn_listener_count(wire.listener), WIRE_SIDES);
    for (uint64_t n = 1; n <= 20; n++) {
        for (size_t i = 0; i < WIRE_SIDES; i++) {
            WIRE_WAIT(&wire, sides[i]->opens == 1);
            cr_assert_eq(wire_beat(sides[i], n), 0);
        }
    }
    for (size_t i = 0; i < WIRE_SIDES; i++) {
        WIRE_WAIT(&wire, wire.accepted[i].messages == 20);
        cr_expect(!wire.accepted[i].out_of_order);
    }
}

Test(conn, connections_outlive_their_listener)
{
    struct wire_side *accepted;
    wire_listen(&wire);
    struct wire_side *dialled = wire_connect(&wire, &accepted);
    conn_listener_free(&wire.listener);
    cr_expect_null(wire.listener);
    cr_assert_eq(wire_beat(dialled, 1), 0);
    WIRE_WAIT(&wire, accepted->messages == 1);
    cr_assert_eq(wire_beat(accepted, 1), 0);
    WIRE_WAIT(&wire, dialled->messages == 1);
    struct wire_side *late = wire_dial(&wire, wire.client);
    WIRE_WAIT(&wire, late->closes == 1);
    cr_expect_eq(late->reason, CLOSE_DIAL);
}

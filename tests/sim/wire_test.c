/* wire_test.c: connections of the simulation: handshake, order, ends, what cuts and crashes do. */
#include "common/clock.h"
#include "common/loop.h"
#include "proto/conn.h"
#include "proto/msg.h"
#include "proto/tls.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"
#include "tests/unit/proto/trust.h"

#include <criterion/criterion.h>
#include <string.h>

/* A client at node "a", a server at "b:7443". Each side counts what it saw. */
struct side {
    struct conn *conn;
    struct tls *tls;
    bool opened, closed, by_peer;
    enum close_reason reason;
    uint32_t next; /* number of the next BEAT that has to come */
    unsigned drained;
};

static struct {
    struct world *world;
    struct node *node[2];
    struct side side[2];
    struct conn_listener *listener;
    struct trust_pair authority[2], server, client;
    struct trust_world trust;
    unsigned rejected;
} rig;

static void on_event(struct conn *conn, const struct conn_event *event, void *arg)
{
    struct side *side = arg;
    switch (event->kind) {
    case CONN_OPEN:
        side->opened = true;
        break;
    case CONN_MESSAGE:
        cr_assert_eq(event->msg->type, MSG_BEAT);
        cr_assert_eq(event->msg->u.beat.n, side->next);
        side->next++;
        break;
    case CONN_DRAINED:
        side->drained++;
        break;
    case CONN_CLOSED:
        cr_assert_eq(conn, side->conn);
        cr_assert_neq(event->text[0], '\0');
        side->closed = true;
        side->reason = event->reason;
        side->by_peer = event->by_peer;
        side->conn = NULL;
        break;
    }
}

static void on_accept(struct conn *conn, void *arg)
{
    (void)arg;
    rig.side[1].conn = conn;
    conn_set_handler(conn, on_event, &rig.side[1]);
}

static void on_reject(const char *address, enum close_reason reason, const char *text, void *arg)
{
    (void)address;
    (void)reason;
    (void)text;
    (void)arg;
    rig.rejected++;
}

static bool on_start(struct node *node, struct loop *loop, void *arg)
{
    (void)arg;
    if (node != rig.node[1]) {
        return true;
    }
    rig.side[1].tls = trust_server(&rig.authority[0], &rig.server, &rig.trust);
    return conn_listen(loop, rig.side[1].tls, ":7443", NULL, on_accept, on_reject, NULL,
                       &rig.listener, NULL) == 0;
}

static void on_stop(struct node *node, void *arg)
{
    struct side *side = &rig.side[node == rig.node[1]];
    (void)arg;
    if (node == rig.node[1]) {
        conn_listener_free(&rig.listener);
    }
    if (side->conn != NULL) {
        conn_close(side->conn, CLOSE_SHUTDOWN, NULL, true);
        side->conn = NULL;
    }
    tls_free(&side->tls);
}

static const struct world_ops OPS = {.start = on_start, .stop = on_stop};

static void begin(uint64_t seed, unsigned authority_of_client)
{
    memset(&rig, 0, sizeof(rig));
    rig.world = world_new(seed, &OPS, NULL);
    rig.trust.now_s = TRUST_NOW;
    trust_authority("lab", &rig.authority[0]);
    trust_authority("lab", &rig.authority[1]);
    trust_issue(&rig.authority[0], ROLE_COORDINATOR, "coordinator", &rig.server);
    trust_issue(&rig.authority[authority_of_client], ROLE_WORKER, "w1", &rig.client);
    rig.node[0] = world_add(rig.world, "a", 1);
    rig.node[1] = world_add(rig.world, "b", 2);
    cr_assert(node_start(rig.node[0]));
    cr_assert(node_start(rig.node[1]));
    node_enter(rig.node[0]);
    rig.side[0].tls =
        trust_client(&rig.authority[authority_of_client], &rig.client, &rig.trust, false);
    node_leave();
}

static void end(void)
{
    world_free(&rig.world);
    trust_free(&rig.authority[0]);
    trust_free(&rig.authority[1]);
    trust_free(&rig.server);
    trust_free(&rig.client);
}

static void dial(const char *address)
{
    node_enter(rig.node[0]);
    cr_assert_eq(conn_dial(rig.node[0]->loop, rig.side[0].tls, address, NULL, on_event,
                           &rig.side[0], &rig.side[0].conn, NULL),
                 0);
    node_leave();
}

static void run(int64_t ns)
{
    int64_t until = world_now(rig.world) + ns;
    while (world_now(rig.world) < until && world_step(rig.world)) {
    }
}

/* Sends BEATs with these numbers from one side. */
static void beat(unsigned side, uint32_t from, uint32_t to)
{
    node_enter(rig.node[side]);
    for (uint32_t n = from; n < to; n++) {
        struct msg m = {.type = MSG_BEAT};
        m.u.beat.n = n;
        cr_assert_eq(conn_send(rig.side[side].conn, &m), 0);
    }
    node_leave();
}

static void open_both(void)
{
    dial("b:7443");
    run(CLOCK_SEC);
    cr_assert(rig.side[0].opened && rig.side[1].opened);
}

Test(wire, messages_come_in_order_and_ends_are_told)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        begin(seed, 0);
        open_both();
        cr_assert_str_eq(conn_peer(rig.side[1].conn)->name, "w1");
        cr_assert_eq(conn_peer(rig.side[1].conn)->role, ROLE_WORKER);
        cr_assert_eq(conn_peer(rig.side[0].conn)->role, ROLE_COORDINATOR);
        beat(0, 0, 100);
        beat(1, 0, 50);
        cr_assert(conn_queued(rig.side[0].conn) > 0);
        run(CLOCK_SEC);
        cr_assert_eq(rig.side[1].next, 100);
        cr_assert_eq(rig.side[0].next, 50);
        cr_assert_eq(conn_queued(rig.side[0].conn), 0);
        cr_assert(rig.side[0].drained > 0);
        node_enter(rig.node[1]);
        conn_close(rig.side[1].conn, CLOSE_REVOKED, NULL, false);
        node_leave();
        run(5 * CLOCK_SEC);
        cr_assert(rig.side[0].closed && rig.side[1].closed);
        cr_assert_eq(rig.side[0].reason, CLOSE_REVOKED);
        cr_assert(rig.side[0].by_peer && !rig.side[1].by_peer);
        end();
    }
}

Test(wire, nobody_listens_and_nobody_answers)
{
    begin(1, 0);
    dial("b:7444");
    run(CLOCK_SEC);
    cr_assert_eq(rig.side[0].reason, CLOSE_DIAL);
    rig.side[0].closed = false;
    node_isolate(rig.node[1], true);
    dial("b:7443");
    run(5 * CLOCK_SEC);
    cr_assert_not(rig.side[0].closed);
    run(10 * CLOCK_SEC);
    cr_assert(rig.side[0].closed);
    cr_assert_eq(rig.side[0].reason, CLOSE_DIAL);
    end();
}

Test(wire, strangers_expired_and_revoked_are_refused)
{
    struct pki_id id;
    begin(1, 1);
    dial("b:7443");
    run(CLOCK_SEC);
    cr_assert_eq(rig.side[0].reason, CLOSE_CERT_AUTHORITY);
    end();
    begin(2, 0);
    cr_assert_eq(pki_cert_id(rig.client.cert, &id, NULL), 0);
    rig.trust.revoked = id.serial;
    dial("b:7443");
    run(CLOCK_SEC);
    cr_assert_eq(rig.side[0].reason, CLOSE_REVOKED);
    cr_assert(rig.side[0].by_peer);
    cr_assert_eq(rig.rejected, 1);
    cr_assert_not(rig.side[1].opened);
    end();
    begin(3, 0);
    rig.trust.now_s = TRUST_NOW + 2 * PKI_WORKER_LIFE_S;
    dial("b:7443");
    run(CLOCK_SEC);
    cr_assert_eq(rig.side[0].reason, CLOSE_CERT_EXPIRED);
    end();
}

Test(wire, a_cut_ends_both_sides_and_keeps_a_first_part)
{
    int all = 0, some = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        begin(seed, 0);
        open_both();
        world_set_delay(rig.world, CLOCK_MS, 20 * CLOCK_MS);
        for (uint32_t n = 0; n < 40; n++) {
            beat(0, n, n + 1);
            run(CLOCK_MS);
        }
        node_cut(rig.node[0]);
        run(10 * CLOCK_SEC);
        cr_assert(rig.side[0].closed && rig.side[1].closed, "seed %d", (int)seed);
        cr_assert_eq(rig.side[0].reason, CLOSE_IO);
        all += rig.side[1].next == 40;
        some += rig.side[1].next < 40;
        end();
    }
    cr_assert(all > 5 && some > 5, "%d %d", all, some);
}

Test(wire, a_kill_is_told_and_a_power_failure_is_not)
{
    begin(1, 0);
    open_both();
    node_crash(rig.node[0], SIM_KILL);
    run(CLOCK_SEC);
    cr_assert(rig.side[1].closed);
    cr_assert_eq(rig.side[1].reason, CLOSE_EOF);
    end();
    begin(2, 0);
    open_both();
    node_crash(rig.node[0], SIM_POWER);
    run(CLOCK_HOUR);
    cr_assert_not(rig.side[1].closed, "half-open");
    beat(1, 0, 1);
    run(CLOCK_SEC);
    cr_assert_not(rig.side[1].closed);
    cr_assert(node_start(rig.node[0]));
    beat(1, 1, 2);
    run(CLOCK_SEC);
    cr_assert(rig.side[1].closed, "the new start knows nothing of it, and says so");
    cr_assert_eq(rig.side[1].reason, CLOSE_IO);
    end();
}

Test(wire, what_an_isolated_node_misses_comes_later)
{
    begin(1, 0);
    open_both();
    node_isolate(rig.node[1], true);
    beat(0, 0, 10);
    run(CLOCK_MIN);
    cr_assert_eq(rig.side[1].next, 0);
    node_isolate(rig.node[1], false);
    run(CLOCK_SEC);
    cr_assert_eq(rig.side[1].next, 10);
    end();
}

Test(wire, a_paused_end_gets_nothing_until_it_goes_on)
{
    begin(1, 0);
    open_both();
    node_enter(rig.node[1]);
    conn_pause(rig.side[1].conn, true);
    node_leave();
    beat(0, 0, 10);
    run(CLOCK_SEC);
    cr_assert_eq(rig.side[1].next, 0);
    node_enter(rig.node[1]);
    conn_pause(rig.side[1].conn, false);
    node_leave();
    run(CLOCK_SEC);
    cr_assert_eq(rig.side[1].next, 10);
    end();
}

static uint64_t hash_of(uint64_t seed)
{
    begin(seed, 0);
    open_both();
    beat(0, 0, 20);
    run(CLOCK_SEC);
    node_cut(rig.node[1]);
    run(CLOCK_MIN);
    uint64_t hash = world_hash(rig.world);
    end();
    return hash;
}

Test(wire, the_same_seed_gives_the_same_events)
{
    uint64_t hash = hash_of(5);
    cr_assert_eq(hash, hash_of(5));
    cr_assert_neq(hash, hash_of(6));
}

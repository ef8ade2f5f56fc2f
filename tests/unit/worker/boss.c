/* boss.c: a scripted coordinator. */
#include "tests/unit/worker/boss.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/str.h"
#include "proto/hello.h"
#include "worker/conf.h"
#include "worker/identity.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE (30 * CLOCK_SEC)

void boss_init(struct boss *boss)
{
    memset(boss, 0, sizeof *boss);
    trust_authority("lab", &boss->lab);
    trust_issue(&boss->lab, ROLE_COORDINATOR, "main", &boss->coordinator);
    trust_issue(&boss->lab, ROLE_WORKER, "p6", &boss->worker);
    boss->world.now_s = TRUST_NOW;
    boss->beat_ns = 30 * CLOCK_SEC;
}

/* --- what it does by itself --- */

static void keep(struct boss *boss, const struct msg *msg)
{
    struct buf frame = BUF_INIT;

    cr_assert_lt(boss->count, (size_t)BOSS_BOX);
    cr_assert_eq(msg_encode(msg, &frame), 0);
    cr_assert_eq(
        msg_decode(frame.data[4], frame.data + 5, frame.len - 5, &boss->box[boss->count], NULL), 0);
    boss->count++;
    buf_fini(&frame);
}

static void welcome(struct boss *boss, const struct msg_hello *hello)
{
    struct msg m = {.type = MSG_WELCOME};
    struct hello_caps caps;
    struct rec_acked *acked = mem_xarray(hello->held_count + 1, sizeof *acked);
    size_t n = 0;

    hello_write_caps(CAPS_OURS, &caps);
    for (size_t i = 0; i < hello->held_count; i++) {
        const struct rec_held *h = &hello->held[i];

        if (h->state == 3 && h->run < BOSS_RUNS)
            acked[n++] = (struct rec_acked){.run = h->run,
                                            .attempt = h->attempt,
                                            .seq = boss->have[h->run],
                                            .whole = boss->whole[h->run]};
    }
    m.u.welcome.proto = PROTO_MAX;
    m.u.welcome.caps = caps.words;
    m.u.welcome.caps_count = caps.count;
    m.u.welcome.fleet = "lab";
    m.u.welcome.version = "test";
    m.u.welcome.wall_ns = clock_wall_ns();
    m.u.welcome.beat_ns = boss->beat_ns;
    m.u.welcome.acked = acked;
    m.u.welcome.acked_count = n;
    boss_send(boss, &m);
    free(acked);
}

static void take_record(struct boss *boss, const struct msg *msg)
{
    struct msg_record_id id;
    struct msg m = {.type = MSG_ACK};
    struct rec_acked acked;

    cr_assert(msg_record_id(msg, &id));
    cr_assert_lt(id.run, (uint64_t)BOSS_RUNS);
    cr_assert_leq(id.seq, boss->have[id.run], "a gap in the records of run %d", (int)id.run);
    if (id.seq == boss->have[id.run]) {
        boss->have[id.run]++;
        boss->whole[id.run] = msg->type == MSG_END;
    }
    if (boss->no_acks)
        return;
    acked = (struct rec_acked){.run = id.run,
                               .attempt = id.attempt,
                               .seq = boss->have[id.run],
                               .whole = boss->whole[id.run]};
    m.u.ack.acked = &acked;
    m.u.ack.acked_count = 1;
    boss_send(boss, &m);
}

static void give_piece(struct boss *boss, const struct msg_blob_get *g)
{
    struct msg m = {.type = MSG_BLOB_DATA};
    size_t left;

    if (boss->archive == NULL) {
        m.type = MSG_BLOB_NONE;
        m.u.blob_none.hash = g->hash;
        m.u.blob_none.text = "no such archive";
        boss_send(boss, &m);
        return;
    }
    left = boss->archive_len - (size_t)g->offset;
    m.u.blob_data.hash = g->hash;
    m.u.blob_data.offset = g->offset;
    m.u.blob_data.total = boss->archive_len;
    m.u.blob_data.bytes = (struct msg_bytes){.data = boss->archive + g->offset,
                                             .len = left < g->length ? left : g->length};
    boss_send(boss, &m);
}

static void on_message(struct boss *boss, const struct msg *msg)
{
    bool started = boss->conn != NULL && boss->hellos > 0;

    cr_assert_eq(msg_refusal(msg->type, MSG_FROM_WORKER, ROLE_WORKER,
                             msg->type == MSG_HELLO ? MSG_WHEN_START : MSG_WHEN_OPEN),
                 CLOSE_NONE, "%s may not come now", msg_name(msg->type));
    keep(boss, msg);
    if (boss->mute)
        return;
    if (msg->type == MSG_HELLO) {
        boss->hellos++;
        welcome(boss, &msg->u.hello);
        return;
    }
    cr_assert(started, "%s came before HELLO", msg_name(msg->type));
    if (msg_is_durable(msg->type))
        take_record(boss, msg);
    else if (msg->type == MSG_BLOB_GET)
        give_piece(boss, &msg->u.blob_get);
}

static void on_event(struct conn *conn, const struct conn_event *event, void *arg)
{
    struct boss *boss = arg;

    if (event->kind == CONN_MESSAGE && conn == boss->conn)
        on_message(boss, event->msg);
    if (event->kind != CONN_CLOSED)
        return;
    boss->closes++;
    str_copy(boss->close_text, sizeof boss->close_text, event->text);
    if (conn == boss->conn)
        boss->conn = NULL;
}

static void on_accept(struct conn *conn, void *arg)
{
    struct boss *boss = arg;

    cr_assert_str_eq(conn_peer(conn)->name, "p6");
    boss->conn = conn;
    conn_set_handler(conn, on_event, boss);
}

static void on_reject(const char *address, enum close_reason reason, const char *text, void *arg)
{
    (void)address;
    (void)arg;
    cr_assert_fail("refused: %s (%d)", text, (int)reason);
}

static void on_timer(void *arg)
{
    struct boss *boss = arg;
    struct msg m = {.type = MSG_BEAT};

    loop_timer_set(boss->timer, boss->beat_ns);
    m.u.beat.n = ++boss->sent_beats;
    if (boss->beats && boss->conn != NULL && boss->hellos > 0)
        (void)conn_send(boss->conn, &m);
}

/* --- public --- */

void boss_listen(struct boss *boss, struct loop *loop)
{
    struct diag *diag = diag_new(2);

    boss->loop = loop;
    boss->tls = trust_server(&boss->lab, &boss->coordinator, &boss->world);
    cr_assert_eq(conn_listen(loop, boss->tls, "127.0.0.1:0", NULL, on_accept, on_reject, boss,
                             &boss->listener, diag),
                 0, "%s", diag_first(diag));
    snprintf(boss->address, sizeof boss->address, "127.0.0.1:%u",
             (unsigned)conn_listener_port(boss->listener));
    boss->timer = loop_timer_new(loop, on_timer, boss);
    loop_timer_set(boss->timer, boss->beat_ns);
    diag_free(&diag);
}

void boss_fini(struct boss *boss)
{
    boss_cut(boss);
    loop_timer_free(&boss->timer);
    conn_listener_free(&boss->listener);
    if (boss->loop != NULL)
        loop_turn(boss->loop, 0);
    tls_free(&boss->tls);
    for (size_t i = 0; i < boss->count; i++)
        msg_free(&boss->box[i]);
    trust_free(&boss->worker);
    trust_free(&boss->coordinator);
    trust_free(&boss->lab);
}

void boss_send(struct boss *boss, const struct msg *msg)
{
    cr_assert_not_null(boss->conn);
    cr_assert_eq(conn_send(boss->conn, msg), 0);
}

void boss_cut(struct boss *boss)
{
    if (boss->conn != NULL)
        conn_close(boss->conn, CLOSE_IO, NULL, true);
    boss->conn = NULL;
}

int64_t boss_deadline(void)
{
    return clock_mono_ns() + PATIENCE;
}

void boss_turn(struct boss *boss, int64_t deadline, const char *condition)
{
    cr_assert_lt(clock_mono_ns(), deadline, "waited in vain for: %s", condition);
    loop_turn(boss->loop, 50 * CLOCK_MS);
}

const struct msg *boss_next(struct boss *boss, enum msg_type type)
{
    int64_t deadline = boss_deadline();

    for (;;) {
        while (boss->read < boss->count)
            if (boss->box[boss->read++]->type == type)
                return boss->box[boss->read - 1];
        boss_turn(boss, deadline, msg_name(type));
    }
}

size_t boss_count(const struct boss *boss, enum msg_type type)
{
    size_t n = 0;

    for (size_t i = 0; i < boss->count; i++)
        n += boss->box[i]->type == type;
    return n;
}

const struct msg_result *boss_result(const struct boss *boss, uint64_t run)
{
    for (size_t i = 0; i < boss->count; i++)
        if (boss->box[i]->type == MSG_RESULT && boss->box[i]->u.result.run == run)
            return &boss->box[i]->u.result;
    return NULL;
}

void boss_identity(const struct boss *boss, struct trust_world *world, struct identity *out)
{
    memset(out, 0, sizeof *out);
    world->now_s = TRUST_NOW;
    str_copy(out->name, sizeof out->name, "p6");
    str_copy(out->fleet, sizeof out->fleet, "lab");
    out->cert_end_s = TRUST_NOW + 1000000;
    out->tls = trust_client(&boss->lab, &boss->worker, world, true);
}

void boss_conf(const struct boss *boss, const char *dir, struct worker_conf *out)
{
    struct diag *diag = diag_new(2);

    cr_assert_eq(worker_conf_load(NULL, out, diag), 0);
    out->coordinator = mem_xstrdup(boss->address);
    free(out->dir);
    out->dir = mem_xstrdup(dir);
    diag_free(&diag);
}

/* A whole worker against a coordinator that does what a test says. */
#include "worker/agent.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/str.h"
#include "common/version.h"
#include "proto/digest.h"
#include "proto/tls.h"
#include "tests/unit/worker/boss.h"
#include "tests/unit/worker/run/records.h"
#include "worker/conf.h"
#include "worker/identity.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct boss boss;
static struct loop *loop;
static char dir[FILE_PATH_MAX], lock_path[FILE_PATH_MAX];
static struct worker_conf conf;
static struct trust_world world;
static struct identity identity;
static struct agent *agent;
static struct file_lock *machine; /* its lock, when the test holds it */

static void start(void)
{
    struct agent_setup setup = {
        .loop = loop, .conf = &conf, .identity = &identity, .lock_path = lock_path};
    struct diag *diag = diag_new(4);

    cr_assert_eq(agent_new(&setup, &agent, diag), 0, "%s", diag_first(diag));
    diag_free(&diag);
}

static void set_up(void)
{
    cr_assert_eq(log_open("test", getenv("TEST_LOG") != NULL ? NULL : "/dev/null", LOG_DEBUG), 0);
    records_dir(dir);
    cr_assert_eq(file_path(lock_path, sizeof lock_path, dir, "machine.lock"), 0);
    boss_init(&boss);
    loop = loop_new();
    boss_listen(&boss, loop);
    boss_identity(&boss, &world, &identity);
    boss_conf(&boss, dir, &conf);
}

static void tear_down(void)
{
    file_lock_free(&machine);
    agent_free(&agent);
    boss_fini(&boss);
    identity_fini(&identity);
    worker_conf_free(&conf);
    loop_free(&loop);
    cr_assert_eq(file_remove_tree(dir), 0);
    log_close();
}

TestSuite(agent, .init = set_up, .fini = tear_down, .timeout = 120);

static void connect_it(void)
{
    start();
    (void)boss_next(&boss, MSG_HELLO);
    BOSS_WAIT(&boss, agent_is_up(agent));
}

static struct msg assign(uint64_t run, const char *command)
{
    struct msg m = records_assign(run, 1);

    m.u.assign.command = command;
    return m;
}

static void give(uint64_t run, const char *command)
{
    struct msg m = assign(run, command);

    boss_send(&boss, &m);
}

/* While the machine is held nothing is measured: assignments that are given meanwhile are all taken
 * before the first window opens. */
static void hold_machine(void)
{
    char other[256];

    cr_assert_eq(file_lock_take(lock_path, "somebody else", &machine, other), 0);
}

static void let_go_when_taken(size_t count)
{
    BOSS_WAIT(&boss, boss_count(&boss, MSG_TAKEN) == count);
    file_lock_free(&machine);
}

/* A command that prints something and goes on until open_gate(). */
static const char *until_gate(void)
{
    static char command[FILE_PATH_MAX + 100];

    snprintf(command, sizeof command, "echo here; until test -e %s/gate; do sleep 0.02; done", dir);
    return command;
}

static void open_gate(void)
{
    char path[FILE_PATH_MAX];

    cr_assert_eq(file_path(path, sizeof path, dir, "gate"), 0);
    records_write(path, (const uint8_t *)"", 0);
}

static const char *fact(const struct msg_hello *h, const char *key)
{
    for (size_t i = 0; i < h->facts_count; i++)
        if (strcmp(h->facts[i].key, key) == 0)
            return h->facts[i].value;
    return NULL;
}

/* --- greeting --- */

Test(agent, says_who_it_is)
{
    const struct msg_hello *h;

    start();
    h = &boss_next(&boss, MSG_HELLO)->u.hello;
    cr_assert_str_eq(h->program, "makespan-worker");
    cr_assert_str_eq(h->version, version_text());
    cr_assert(h->has_room && h->room == 2);
    cr_assert(h->has_visit && h->visit == 1);
    cr_assert_eq(h->held_count, 0u);
    cr_assert(h->has_certificate_end_s && h->certificate_end_s == identity.cert_end_s);
    cr_assert_not_null(fact(h, "cpus.usable_milli"));
    cr_assert_not_null(fact(h, "memory.total"));
    cr_assert_not_null(fact(h, "kernel"));
    cr_assert_not_null(fact(h, "limit.processes"));
    cr_assert_str_eq(fact(h, "worker.version"), version_text());
    BOSS_WAIT(&boss, agent_is_up(agent));
    agent_free(&agent);
    start();
    h = &boss_next(&boss, MSG_HELLO)->u.hello;
    cr_assert_eq(h->visit, 2u);
}

/* --- work --- */

Test(agent, makes_what_it_is_given)
{
    const struct msg *m;

    connect_it();
    give(1, "echo built");
    m = boss_next(&boss, MSG_TAKEN);
    cr_assert_eq(m->u.taken.run, 1u);
    m = boss_next(&boss, MSG_RESULT);
    cr_assert_eq(m->u.result.outcome, (uint32_t)OUTCOME_OK, "%s", m->u.result.text);
    m = boss_next(&boss, MSG_OUTPUT);
    cr_assert_eq(m->u.output.bytes.len, 6u);
    (void)boss_next(&boss, MSG_END);
    BOSS_WAIT(&boss, agent_spooled(agent) == 0);
    cr_assert_eq(agent_phase(agent), PHASE_IDLE);
    /* Phases were told, and the room that was taken and given back. */
    cr_assert_geq(boss_count(&boss, MSG_STATE), 5u);
    cr_assert_eq(boss_next(&boss, MSG_READY)->u.ready.room, 2u);
}

Test(agent, holds_one_more_while_it_works)
{
    connect_it();
    hold_machine();
    give(1, "sleep 0.4");
    give(2, "sleep 0.1");
    let_go_when_taken(2);
    cr_assert_eq(agent_queued(agent), 1u);
    /* The second begins without a word from the coordinator. */
    BOSS_WAIT(&boss, boss.whole[2]);
    cr_assert(boss.whole[1]);
    cr_assert_eq(boss_count(&boss, MSG_RESULT), 2u);
    boss.read = 0;
    cr_assert_eq(boss_next(&boss, MSG_READY)->u.ready.room, 1u,
                 "room again when the first is done");
}

Test(agent, takes_the_same_assignment_once)
{
    boss.no_acks = true;
    connect_it();
    hold_machine();
    give(1, "true");
    give(1, "true");
    BOSS_WAIT(&boss, boss_count(&boss, MSG_TAKEN) == 2);
    cr_assert_eq(agent_queued(agent), 0u, "it would be made twice");
    file_lock_free(&machine);
    BOSS_WAIT(&boss, boss.whole[1] && agent_phase(agent) == PHASE_IDLE);
    give(1, "true"); /* spooled, and not yet acknowledged */
    BOSS_WAIT(&boss, boss_count(&boss, MSG_TAKEN) == 3);
    cr_assert_eq(agent_queued(agent), 0u);
    cr_assert_eq(agent_phase(agent), PHASE_IDLE);
}

Test(agent, refuses_what_it_may_not_do)
{
    struct msg m = assign(1, "true");
    const struct msg *r;

    connect_it();
    m.u.assign.source_kind = 2;
    m.u.assign.host_dir = "/etc";
    boss_send(&boss, &m);
    r = boss_next(&boss, MSG_REFUSED);
    cr_assert_eq(r->u.refused.code, (uint32_t)ERR_DENIED);
    cr_assert_not_null(strstr(r->u.refused.text, "allow.host_dir"));
    cr_assert_eq(boss_next(&boss, MSG_READY)->u.ready.room, 2u, "the room is told again");
    give(2, "true");
    BOSS_WAIT(&boss, boss.whole[2]);
}

Test(agent, fetches_an_archive)
{
    static uint8_t tar[10240];
    uint8_t hash[DIGEST_MAX];
    struct msg m = assign(1, "cat hello");
    unsigned sum = 0;

    /* One file, "hello", in a ustar archive made by hand. */
    memcpy(tar, "hello", 5);
    memcpy(tar + 100, "0000644", 7);
    memcpy(tar + 108, "0000000", 7);
    memcpy(tar + 116, "0000000", 7);
    memcpy(tar + 124, "00000000006", 11);
    memcpy(tar + 136, "00000000000", 11);
    memset(tar + 148, ' ', 8);
    tar[156] = '0';
    memcpy(tar + 257,
           "ustar\0"
           "00",
           8);
    for (size_t i = 0; i < 512; i++)
        sum += tar[i];
    snprintf((char *)tar + 148, 8, "%06o", sum);
    memcpy(tar + 512, "world\n", 6);
    digest_sha256(tar, sizeof tar, hash);
    boss.archive = tar;
    boss.archive_len = sizeof tar;
    m.u.assign.source_kind = 1;
    m.u.assign.has_blob = m.u.assign.has_blob_size = true;
    m.u.assign.blob = (struct msg_bytes){.data = hash, .len = 32};
    m.u.assign.blob_size = sizeof tar;
    connect_it();
    boss_send(&boss, &m);
    BOSS_WAIT(&boss, boss.whole[1]);
    const struct msg_result *r = boss_result(&boss, 1);
    cr_assert_eq(r->outcome, (uint32_t)OUTCOME_OK, "%s", r->text);
    cr_assert(r->has_blob_seen && memcmp(r->blob_seen.data, hash, 32) == 0);
    cr_assert_eq(strlen(r->tree_seen), 40u);
    boss.read = 0;
    cr_assert_eq(memcmp(boss_next(&boss, MSG_OUTPUT)->u.output.bytes.data, "world\n", 6), 0);
    /* The tree stands: the archive is not asked for again. */
    size_t asked = boss_count(&boss, MSG_BLOB_GET);
    cr_assert_gt(asked, 0u);
    m.u.assign.run = 2;
    boss_send(&boss, &m);
    BOSS_WAIT(&boss, boss.whole[2]);
    r = boss_result(&boss, 2);
    cr_assert_eq(r->outcome, (uint32_t)OUTCOME_OK, "%s", r->text);
    cr_assert_not(r->fresh_tree);
    cr_assert_eq(boss_count(&boss, MSG_BLOB_GET), asked);
    /* An archive that nobody has fails the attempt. */
    boss.archive = NULL;
    memset(hash, 7, sizeof hash);
    m.u.assign.run = 3;
    boss_send(&boss, &m);
    BOSS_WAIT(&boss, boss.whole[3]);
    r = boss_result(&boss, 3);
    cr_assert_eq(r->outcome, (uint32_t)OUTCOME_FAILED);
    cr_assert_eq(r->phase, (uint32_t)PHASE_FETCH);
}

/* --- the timed window --- */

static bool in_window(void)
{
    char path[FILE_PATH_MAX];
    struct file_stat st;

    cr_assert_eq(file_path(path, sizeof path, dir, "out/run.log"), 0);
    return agent_in_window(agent) && file_stat(path, &st) == 0 && st.size > 16;
}

Test(agent, handles_in_the_window_only_what_cannot_wait)
{
    struct msg cancel = {.type = MSG_CANCEL};

    connect_it();
    give(1, "echo here; sleep 600");
    BOSS_WAIT(&boss, in_window());
    size_t taken = boss_count(&boss, MSG_TAKEN);
    give(2, "echo second");
    /* Said in order: by the time that the cancel is obeyed the assignment was read, and kept. */
    cancel.u.cancel.run = 1;
    cancel.u.cancel.attempt = 1;
    cancel.u.cancel.text = "enough";
    boss_send(&boss, &cancel);
    for (int64_t end = boss_deadline(); agent_in_window(agent);) {
        cr_assert_eq(boss_count(&boss, MSG_TAKEN), taken, "TAKEN was sent in the window");
        boss_turn(&boss, end, "the cancel");
    }
    BOSS_WAIT(&boss, boss.whole[1] && boss.whole[2]);
    cr_assert_eq(boss_result(&boss, 1)->outcome, (uint32_t)OUTCOME_CANCELLED);
    cr_assert_eq(boss_result(&boss, 2)->outcome, (uint32_t)OUTCOME_OK);
    cr_assert_eq(boss_count(&boss, MSG_TAKEN), taken + 1);
}

Test(agent, beats_in_the_window_and_says_nothing_else)
{
    struct msg cancel = {.type = MSG_CANCEL};

    conf.beat_ns = 100 * CLOCK_MS;
    connect_it();
    give(1, "echo here; sleep 600");
    BOSS_WAIT(&boss, in_window());
    loop_turn(loop, 0);
    size_t before = boss.count;
    struct conn_stats at, then;
    conn_get_stats(boss.conn, &at);
    BOSS_WAIT(&boss, boss.count >= before + 4);
    conn_get_stats(boss.conn, &then);
    cr_assert(agent_in_window(agent));
    for (size_t i = before; i < boss.count; i++) {
        const struct msg_beat *b = &boss.box[i]->u.beat;

        cr_assert_eq(boss.box[i]->type, MSG_BEAT, "%s", msg_name(boss.box[i]->type));
        cr_assert(b->has_run && b->run == 1);
        cr_assert_eq(b->phase, (uint32_t)PHASE_MEASURE);
        cr_assert(b->has_elapsed_ns && b->elapsed_ns > 0);
    }
    cr_assert_leq((then.bytes_in - at.bytes_in) / (then.msgs_in - at.msgs_in), 300u);
    cancel.u.cancel.run = cancel.u.cancel.attempt = 1;
    cancel.u.cancel.text = "enough";
    boss_send(&boss, &cancel);
    BOSS_WAIT(&boss, boss.whole[1]);
}

/* --- withdrawing and cancelling what waits --- */

Test(agent, gives_back_what_has_not_begun)
{
    struct msg w = {.type = MSG_WITHDRAW};
    struct msg c = {.type = MSG_CANCEL};
    const struct msg *r;
    connect_it();
    hold_machine();
    give(1, "true");
    give(2, "true");
    give(3, "true"); /* more than the room: taken all the same */
    BOSS_WAIT(&boss, boss_count(&boss, MSG_TAKEN) == 3 && agent_phase(agent) == PHASE_SETTLE);
    w.u.withdraw.run = 2;
    w.u.withdraw.attempt = 1;
    boss_send(&boss, &w);
    r = boss_next(&boss, MSG_REFUSED);
    cr_assert_eq(r->u.refused.run, 2u);
    cr_assert_eq(r->u.refused.code, (uint32_t)ERR_STATE);
    c.u.cancel.run = 3;
    c.u.cancel.attempt = 1;
    c.u.cancel.text = "no";
    boss_send(&boss, &c);
    cr_assert_eq(boss_next(&boss, MSG_REFUSED)->u.refused.run, 3u);
    cr_assert_eq(agent_queued(agent), 0u);
    w.u.withdraw.run = 1; /* too late for this one */
    boss_send(&boss, &w);
    file_lock_free(&machine);
    BOSS_WAIT(&boss, boss.whole[1]);
    cr_assert_eq(boss_result(&boss, 1)->outcome, (uint32_t)OUTCOME_OK);
    cr_assert_null(boss_result(&boss, 2));
}

/* STATE says whom the lock is waited for. */
Test(agent, says_what_it_waits_for)
{
    connect_it();
    hold_machine();
    give(1, "true");
    for (;;) {
        const struct msg_state *s = &boss_next(&boss, MSG_STATE)->u.state;

        if (s->text == NULL)
            continue;
        cr_assert_eq(s->phase, (uint32_t)PHASE_SETTLE);
        cr_assert_not_null(strstr(s->text, "somebody else"));
        break;
    }
    file_lock_free(&machine);
    BOSS_WAIT(&boss, boss.whole[1]);
}

/* --- breaks --- */

Test(agent, a_cut_link_never_touches_a_build)
{
    const struct msg_hello *h;

    connect_it();
    hold_machine();
    give(1, until_gate());
    give(2, "true");
    let_go_when_taken(2);
    BOSS_WAIT(&boss, in_window());
    boss_cut(&boss);
    BOSS_WAIT(&boss, !agent_is_up(agent));
    cr_assert(agent_in_window(agent));
    open_gate();
    BOSS_WAIT(&boss, agent_spooled(agent) == 2);
    boss.read = boss.count;
    h = &boss_next(&boss, MSG_HELLO)->u.hello;
    cr_assert_eq(h->held_count, 2u);
    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(h->held[i].run, i + 1);
        cr_assert_eq(h->held[i].state, 3u);
    }
    BOSS_WAIT(&boss, boss.whole[1] && boss.whole[2] && agent_spooled(agent) == 0);
    cr_assert_eq(boss_result(&boss, 1)->outcome, (uint32_t)OUTCOME_OK);
}

/* A host that is revoked is told to cancel all, and cut off. */
Test(agent, a_cancel_that_came_in_the_window_outlives_the_link)
{
    struct msg cancel = {.type = MSG_CANCEL};

    connect_it();
    hold_machine();
    give(1, until_gate());
    give(2, "true");
    let_go_when_taken(2);
    BOSS_WAIT(&boss, in_window());
    cancel.u.cancel.run = 2;
    cancel.u.cancel.attempt = 1;
    cancel.u.cancel.text = "revoked";
    boss_send(&boss, &cancel);
    boss_cut(&boss);
    BOSS_WAIT(&boss, !agent_is_up(agent));
    cr_assert(agent_in_window(agent));
    open_gate();
    BOSS_WAIT(&boss, boss.whole[1] && agent_phase(agent) == PHASE_IDLE);
    cr_assert_eq(agent_queued(agent), 0u);
    cr_assert_null(boss_result(&boss, 2));
    cr_assert_eq(boss_result(&boss, 1)->outcome, (uint32_t)OUTCOME_OK);
}

Test(agent, says_what_it_holds_when_it_is_back)
{
    const struct msg_hello *h;

    boss.no_acks = true;
    connect_it();
    give(1, "true");
    BOSS_WAIT(&boss, boss.whole[1]);
    hold_machine();
    give(2, until_gate());
    give(3, "true");
    let_go_when_taken(3);
    BOSS_WAIT(&boss, in_window());
    boss.whole[1] = false; /* it was never committed */
    boss.have[1] = 1;
    boss_cut(&boss);
    open_gate();
    boss.read = boss.count;
    h = &boss_next(&boss, MSG_HELLO)->u.hello;
    cr_assert_geq(h->held_count, 3u);
    BOSS_WAIT(&boss, boss.whole[1] && boss.whole[2] && boss.whole[3]);
}

Test(agent, a_coordinator_that_falls_silent_is_left)
{
    boss.beat_ns = 100 * CLOCK_MS;
    boss.beats = true;
    connect_it();
    unsigned hellos = boss.hellos;
    boss.beats = false;
    BOSS_WAIT(&boss, boss.closes == 1);
    cr_assert_not_null(strstr(boss.close_text, "sign of life"), "%s", boss.close_text);
    boss.beats = true;
    BOSS_WAIT(&boss, boss.hellos > hellos && agent_is_up(agent));
}

Test(agent, a_coordinator_that_breaks_the_rules_is_left)
{
    struct msg m = {.type = MSG_WELCOME};

    connect_it();
    m.u.welcome.proto = 1;
    m.u.welcome.fleet = "lab";
    m.u.welcome.version = "x";
    boss_send(&boss, &m);
    BOSS_WAIT(&boss, boss.closes == 1);
    BOSS_WAIT(&boss, boss.hellos == 2 && agent_is_up(agent));
}

/* --- the end --- */

static bool stopped;

static void on_stopped(void *arg)
{
    *(bool *)arg = true;
}

Test(agent, stops_politely)
{
    connect_it();
    hold_machine();
    give(1, "echo here; sleep 600");
    give(2, "true");
    let_go_when_taken(2);
    BOSS_WAIT(&boss, in_window());
    agent_stop(agent, on_stopped, &stopped);
    BOSS_WAIT(&boss, stopped);
    cr_assert(boss.whole[1], "what could be delivered was not");
    cr_assert_eq(boss_result(&boss, 1)->outcome, (uint32_t)OUTCOME_INTERRUPTED);
    cr_assert_eq(boss_result(&boss, 1)->phase, (uint32_t)PHASE_MEASURE);
    cr_assert_eq(agent_queued(agent), 1u, "what has not begun waits for the next start");
    agent_free(&agent);
    start();
    BOSS_WAIT(&boss, boss.whole[2]);
    cr_assert_eq(boss_result(&boss, 2)->outcome, (uint32_t)OUTCOME_OK);
}

Test(agent, stops_without_a_coordinator)
{
    boss.mute = true;
    start();
    agent_stop(agent, on_stopped, &stopped);
    BOSS_WAIT(&boss, stopped);
}

Test(agent, an_end_at_once_is_reported_by_the_next_start)
{
    connect_it();
    give(1, "echo here; sleep 600");
    BOSS_WAIT(&boss, in_window());
    agent_free(&agent);
    start();
    BOSS_WAIT(&boss, boss.whole[1]);
    const struct msg_result *r = boss_result(&boss, 1);
    cr_assert_eq(r->outcome, (uint32_t)OUTCOME_INTERRUPTED);
    cr_assert_eq(r->phase, (uint32_t)PHASE_MEASURE);
    cr_assert_eq(r->visit, 1u);
}

/* --- time --- */

Test(agent, keeps_the_time_that_its_coordinator_knows)
{
    connect_it();
    BOSS_WAIT(&boss, identity.heard_s > 0);
    int64_t heard = identity.heard_s;
    agent_free(&agent);
    identity.heard_s = 0;
    start();
    cr_assert_eq(identity.heard_s, heard, "after a start it is read from the journal");
    cr_assert_geq(identity_now_s(&identity), version_build_date_s());
}

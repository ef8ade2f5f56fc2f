/* full_test.c: the database cannot be written: nothing is acknowledged that is not committed,
 * nothing new is accepted, everybody is told why, and it goes on by itself. */
#include "coordinator/coord.h"
#include "coordinator/store/store.h"
#include "proto/close.h"
#include "tests/unit/whole/house.h"

#include <string.h>

#define SENTENCE "it accepts nothing new until it can; make room there, it goes on by itself"

static const char SWEEP[] = "sweep: t\n"
                            "workload: {name: w, run: make}\n"
                            "variants: [{name: a}]\n"
                            "hosts: [p6]\n"
                            "jobs: [1]\n"
                            "repeat: {warmup: 0, until: 2}\n";

struct cast {
    struct house h;
    struct ident p6, ann;
    struct guest *worker, *admin;
};

static void begin(struct cast *c)
{
    house_init(&c->h);
    house_start(&c->h);
    house_admit(&c->h, ROLE_WORKER, "p6", &c->p6);
    house_admit(&c->h, ROLE_ADMIN, "ann", &c->ann);
    c->worker = house_welcome(&c->h, &c->p6);
    c->admin = house_welcome(&c->h, &c->ann);
    house_idle(&c->h);
}

static void finish(struct cast *c)
{
    house_fini(&c->h);
    ident_free(&c->p6);
    ident_free(&c->ann);
}

static void run(struct cast *c)
{
    struct answer a;
    guest_put(c->admin, "run", SWEEP, &a);
    cr_assert_eq(a.exit, 0, "%s", buf_str(&a.talk));
    answer_free(&a);
}

static void expect_refused(struct guest *admin, const struct msg *m, uint32_t call)
{
    struct answer a;
    guest_ask(admin, call, m, &a);
    cr_expect_eq(a.exit, 3, "%s", msg_name(m->type));
    cr_expect_eq(a.body.len, 0);
    EXPECT_HAS(buf_str(&a.talk), SENTENCE);
    answer_free(&a);
}

/* Everything that would write, refused before or with its commit. */
static void expect_nothing_new(struct guest *admin)
{
    struct msg m = {.type = MSG_TOKEN_CREATE};
    m.u.token_create.call = guest_call(admin);
    m.u.token_create.role = "worker";
    m.u.token_create.ttl_ns = CLOCK_HOUR;
    expect_refused(admin, &m, m.u.token_create.call);
    m = (struct msg){.type = MSG_HOST_SET};
    m.u.host_set.call = guest_call(admin);
    m.u.host_set.name = "p6";
    m.u.host_set.action = "drain";
    expect_refused(admin, &m, m.u.host_set.call);
    m = (struct msg){.type = MSG_SWEEP_PUT};
    m.u.sweep_put.call = guest_call(admin);
    m.u.sweep_put.action = "run";
    m.u.sweep_put.file = "s.yaml";
    m.u.sweep_put.text =
        (struct msg_bytes){.data = (const uint8_t *)SWEEP, .len = sizeof(SWEEP) - 1};
    m.u.sweep_put.format = "text";
    expect_refused(admin, &m, m.u.sweep_put.call);
    m = (struct msg){.type = MSG_SWEEP_SET};
    m.u.sweep_set.call = guest_call(admin);
    m.u.sweep_set.sweep = "t";
    m.u.sweep_set.action = "pause";
    expect_refused(admin, &m, m.u.sweep_set.call);
    static const uint8_t hash[32] = {1};
    m = (struct msg){.type = MSG_BLOB_WANT};
    m.u.blob_want.call = guest_call(admin);
    m.u.blob_want.hash = (struct msg_bytes){.data = hash, .len = sizeof(hash)};
    m.u.blob_want.total = 10;
    expect_refused(admin, &m, m.u.blob_want.call);
}

Test(net_full, records_that_are_not_committed_are_not_acknowledged_and_come_again)
{
    struct cast c;
    struct answer a;
    begin(&c);
    run(&c);
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_ASSIGN) > 0);
    struct msg_assign as = guest_got(c.worker, MSG_ASSIGN, 0)->u.assign;
    guest_taken(c.worker, &as);
    house_idle(&c.h);
    cr_assert(!coord_is_stuck(c.h.coord));
    cr_assert_eq(guest_count(c.worker, MSG_ACK), 0);

    house_fill_disk(true);
    guest_result(c.worker, &as, CLOCK_SEC);
    guest_end(c.worker, &as);
    HOUSE_WAIT(&c.h, c.worker->closed);
    cr_expect_eq(guest_count(c.worker, MSG_ACK), 0, "what was not committed is not acknowledged");
    cr_expect_eq(c.worker->reason, CLOSE_STORE, "%s", c.worker->text);
    EXPECT_HAS(c.worker->text, SENTENCE);
    cr_expect(coord_is_stuck(c.h.coord));
    expect_nothing_new(c.admin);
    /* Questions are answered. */
    cr_expect(guest_sees(c.admin, "t", "\"state\": \"active\""));
    guest_report(c.admin, "t", "table", &a);
    cr_expect_eq(a.exit, 0, "%s", buf_str(&a.talk));
    answer_free(&a);
    guest_put(c.admin, "check", SWEEP, &a); /* not left waiting */
    cr_expect_eq(a.exit, 3);
    EXPECT_HAS(buf_str(&a.talk), SENTENCE);
    answer_free(&a);
    /* A worker that comes meanwhile is told, and nothing of it is kept. */
    struct rec_held held = {.run = as.run, .attempt = as.attempt, .state = 3, .next_seq = 2};
    struct guest *early = house_guest(&c.h, &c.p6);
    HOUSE_WAIT(&c.h, early->opened);
    guest_hello_with(early, 1, &held, 1);
    HOUSE_WAIT(&c.h, early->closed);
    cr_expect_eq(early->reason, CLOSE_STORE, "%s", early->text);
    cr_expect_eq(guest_count(early, MSG_ASSIGN), 0);

    house_fill_disk(false);
    HOUSE_WAIT(&c.h, !coord_is_stuck(c.h.coord)); /* nobody does anything */
    guest_leave(c.worker);
    c.worker = house_guest(&c.h, &c.p6);
    HOUSE_WAIT(&c.h, c.worker->opened);
    guest_hello_with(c.worker, 1, &held, 1);
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_WELCOME) > 0);
    const struct msg_welcome *w = &guest_got(c.worker, MSG_WELCOME, 0)->u.welcome;
    cr_assert_eq(w->acked_count, 1);
    cr_expect_eq(w->acked[0].seq, 0, "nothing of it was kept");
    guest_result(c.worker, &as, CLOCK_SEC);
    guest_end(c.worker, &as);
    HOUSE_WAIT(&c.h, guest_has_acked(c.worker, &as));
    guest_ready(c.worker, 1);
    guest_make(c.worker, 0);
    HOUSE_WAIT(&c.h, guest_sees(c.admin, "t", "\"state\": \"done\""));
    finish(&c);
}

Test(net_full, an_acknowledgement_follows_its_commit)
{
    struct cast c;
    begin(&c);
    run(&c);
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_ASSIGN) > 0);
    const struct msg_assign *as = &guest_got(c.worker, MSG_ASSIGN, 0)->u.assign;
    guest_taken(c.worker, as);
    house_idle(&c.h);
    uint64_t before = store_commits(house_store(&c.h));
    guest_result(c.worker, as, CLOCK_SEC);
    guest_end(c.worker, as);
    HOUSE_WAIT(&c.h, guest_has_acked(c.worker, as));
    cr_expect_gt(store_commits(house_store(&c.h)), before);
    finish(&c);
}

Test(net_full, what_was_asked_in_the_failing_turn_is_answered_and_not_kept)
{
    struct cast c;
    struct answer a;
    begin(&c);
    house_fill_disk(true);
    guest_put(c.admin, "run", SWEEP, &a);
    cr_expect_eq(a.exit, 3, "%s", buf_str(&a.talk));
    cr_expect_eq(a.body.len, 0);
    EXPECT_HAS(buf_str(&a.talk), "the sweep could not be stored: no space left");
    answer_free(&a);
    house_fill_disk(false);
    HOUSE_WAIT(&c.h, !coord_is_stuck(c.h.coord));
    cr_expect(!guest_sees(c.admin, NULL, "t/1"));
    cr_expect_eq(guest_count(c.worker, MSG_ASSIGN), 0);
    guest_put(c.admin, "run", SWEEP, &a);
    cr_expect_eq(a.exit, 0, "%s", buf_str(&a.talk));
    cr_expect_str_eq(buf_str(&a.body), "t/1\n");
    answer_free(&a);
    finish(&c);
}

Test(net_full, a_revocation_that_is_not_committed_cuts_nobody_off)
{
    struct cast c;
    struct msg m = {.type = MSG_HOST_SET};
    begin(&c);
    house_fill_disk(true);
    m.u.host_set.call = guest_call(c.admin);
    m.u.host_set.name = "p6";
    m.u.host_set.action = "revoke";
    expect_refused(c.admin, &m, m.u.host_set.call);
    house_idle(&c.h);
    cr_expect(!c.worker->closed, "%s", c.worker->text);
    house_fill_disk(false);
    HOUSE_WAIT(&c.h, !coord_is_stuck(c.h.coord));
    guest_leave(c.worker);
    c.worker = house_welcome(&c.h, &c.p6);
    finish(&c);
}

Test(net_full, a_coordinator_that_dies_has_what_it_acknowledged)
{
    struct cast c;
    begin(&c);
    run(&c);
    guest_make(c.worker, 0);
    struct msg_assign as = guest_got(c.worker, MSG_ASSIGN, 0)->u.assign;
    HOUSE_WAIT(&c.h, guest_has_acked(c.worker, &as));
    house_stop(&c.h);
    guest_leave(c.worker);
    guest_leave(c.admin);
    house_start(&c.h);
    struct rec_held held = {.run = as.run, .attempt = as.attempt, .state = 3, .next_seq = 2};
    c.worker = house_guest(&c.h, &c.p6);
    HOUSE_WAIT(&c.h, c.worker->opened);
    guest_hello_with(c.worker, 1, &held, 1);
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_WELCOME) > 0);
    const struct msg_welcome *w = &guest_got(c.worker, MSG_WELCOME, 0)->u.welcome;
    cr_assert_eq(w->acked_count, 1);
    cr_expect(w->acked[0].whole);
    c.admin = house_welcome(&c.h, &c.ann);
    guest_make(c.worker, 0);
    HOUSE_WAIT(&c.h, guest_sees(c.admin, "t", "\"state\": \"done\""));
    finish(&c);
}

/* worker_test.c: what a worker says besides results: phases, refusals, absences, what it holds; and
 * what it is told. */
#include "common/err.h"
#include "proto/close.h"
#include "tests/unit/whole/house.h"

#include <string.h>

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
    struct msg_assign assign; /* the first; its texts are those of the message */
};

static void begin(struct cast *c)
{
    struct answer a;
    house_init(&c->h);
    house_start(&c->h);
    house_admit(&c->h, ROLE_WORKER, "p6", &c->p6);
    house_admit(&c->h, ROLE_ADMIN, "ann", &c->ann);
    c->worker = house_welcome(&c->h, &c->p6);
    c->admin = house_welcome(&c->h, &c->ann);
    guest_put(c->admin, "run", SWEEP, &a);
    cr_assert_eq(a.exit, 0, "%s", buf_str(&a.talk));
    answer_free(&a);
    HOUSE_WAIT(&c->h, guest_count(c->worker, MSG_ASSIGN) > 0);
    c->assign = guest_got(c->worker, MSG_ASSIGN, 0)->u.assign;
}

static void finish(struct cast *c)
{
    house_fini(&c->h);
    ident_free(&c->p6);
    ident_free(&c->ann);
}

Test(net_worker, says_in_which_phase_it_is_and_what_it_waits_for)
{
    struct cast c;
    struct msg m = {.type = MSG_STATE};
    begin(&c);
    guest_taken(c.worker, &c.assign);
    m.u.state.run = c.assign.run;
    m.u.state.attempt = c.assign.attempt;
    m.u.state.phase = PHASE_SETTLE;
    m.u.state.text = "another worker has the machine";
    cr_assert_eq(guest_send(c.worker, &m), 0);
    HOUSE_WAIT(&c.h, guest_sees(c.admin, "t", "\"phase\": \"settle\""));
    cr_expect(guest_sees(c.admin, "t", "another worker has the machine"));
    m.u.state.phase = 77; /* of a later version: no harm */
    cr_assert_eq(guest_send(c.worker, &m), 0);
    house_idle(&c.h);
    cr_expect(!c.worker->closed, "%s", c.worker->text);
    finish(&c);
}

Test(net_worker, may_refuse_what_its_configuration_forbids)
{
    struct cast c;
    struct msg m = {.type = MSG_REFUSED};
    begin(&c);
    m.u.refused.run = c.assign.run;
    m.u.refused.attempt = c.assign.attempt;
    m.u.refused.code = ERR_DENIED;
    m.u.refused.text = "allow.jobs is 0 on this host";
    cr_assert_eq(guest_send(c.worker, &m), 0);
    HOUSE_WAIT(&c.h, guest_sees(c.admin, "t", "allow.jobs is 0 on this host"));
    HOUSE_WAIT(&c.h, guest_sees(c.admin, "t", "\"state\": \"skipped\""));
    finish(&c);
}

static void go_away(struct cast *c)
{
    struct msg m = {.type = MSG_AWAY};
    m.u.away.run = c->assign.run;
    m.u.away.attempt = c->assign.attempt;
    m.u.away.until_ns = CLOCK_MIN;
    m.u.away.text = "reboot";
    cr_assert_eq(guest_send(c->worker, &m), 0);
}

Test(net_worker, goes_away_once_that_is_committed)
{
    struct cast c;
    begin(&c);
    guest_taken(c.worker, &c.assign);
    go_away(&c);
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_AWAY_OK) > 0);
    cr_expect_eq(guest_got(c.worker, MSG_AWAY_OK, 0)->u.away_ok.run, c.assign.run);
    finish(&c);
}

Test(net_worker, is_not_let_go_when_that_cannot_be_committed)
{
    struct cast c;
    begin(&c);
    guest_taken(c.worker, &c.assign);
    house_idle(&c.h);
    house_fill_disk(true);
    go_away(&c);
    HOUSE_WAIT(&c.h, c.worker->closed);
    cr_expect_eq(guest_count(c.worker, MSG_AWAY_OK), 0);
    cr_expect_eq(c.worker->reason, CLOSE_STORE);
    house_fill_disk(false);
    finish(&c);
}

Test(net_worker, holds_only_what_can_be_held)
{
    static const struct rec_held held[] = {
        {.run = 1, .attempt = 1, .state = 0},
        {.run = 1, .attempt = 1, .state = 4},
        {.run = UINT64_MAX, .attempt = 1, .state = 1},
    };
    struct cast c;
    begin(&c);
    for (size_t i = 0; i < ARRAY_LEN(held); i++) {
        struct guest *g = house_guest(&c.h, &c.p6);
        HOUSE_WAIT(&c.h, g->opened);
        guest_hello_with(g, 1, &held[i], 1);
        HOUSE_WAIT(&c.h, g->closed);
        cr_expect_eq(g->reason, CLOSE_DECODE, "%zu: %s", i, g->text);
        guest_leave(g);
    }
    cr_expect(!c.worker->closed, "its link that is in order stays");
    finish(&c);
}

/* Recipe: a record that can never be stored is not sent for ever. */
Test(net_worker, what_can_never_be_stored_is_refused_and_its_run_made_again)
{
    static struct rec_held held = {.attempt = 1, .state = 3, .next_seq = 2};
    struct cast c;
    begin(&c);
    guest_taken(c.worker, &c.assign);
    held.run = c.assign.run;
    guest_result(c.worker, &c.assign, -5); /* no time */
    guest_end(c.worker, &c.assign);        /* which would be a gap */
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_ACK) > 0);
    const struct msg_ack *ack = &guest_got(c.worker, MSG_ACK, 0)->u.ack;
    cr_assert_eq(ack->acked_count, 1);
    cr_expect_eq(ack->acked[0].run, c.assign.run);
    cr_expect(ack->acked[0].whole);
    cr_assert_not_null(ack->acked[0].refused);
    EXPECT_HAS(ack->acked[0].refused, "a number of the result is out of its range");
    cr_expect(!c.worker->closed, "%s", c.worker->text);
    /* Whose answer was lost is told again, and its run is not waited for. */
    guest_leave(c.worker);
    c.worker = house_guest(&c.h, &c.p6);
    HOUSE_WAIT(&c.h, c.worker->opened);
    guest_hello_with(c.worker, 1, &held, 1);
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_ASSIGN) > 0);
    const struct msg_welcome *w = &guest_got(c.worker, MSG_WELCOME, 0)->u.welcome;
    cr_assert_eq(w->acked_count, 1);
    cr_expect(w->acked[0].whole);
    cr_expect_not_null(w->acked[0].refused);
    const struct msg_assign *again = &guest_got(c.worker, MSG_ASSIGN, 0)->u.assign;
    cr_expect_eq(again->run, held.run);
    cr_expect_eq(again->attempt, 2);
    finish(&c);
}

Test(net_worker, is_told_to_drop_what_it_holds_of_an_unknown_run)
{
    static const struct rec_held held = {.run = 4711, .attempt = 1, .state = 3, .next_seq = 2};
    struct cast c;
    begin(&c);
    guest_leave(c.worker);
    c.worker = house_guest(&c.h, &c.p6);
    HOUSE_WAIT(&c.h, c.worker->opened);
    guest_hello_with(c.worker, 1, &held, 1);
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_WELCOME) > 0);
    const struct msg_welcome *w = &guest_got(c.worker, MSG_WELCOME, 0)->u.welcome;
    cr_assert_eq(w->acked_count, 1);
    cr_expect_eq(w->acked[0].run, 4711);
    cr_expect(w->acked[0].whole, "it can never be filed");
    cr_expect_not_null(w->acked[0].refused);
    finish(&c);
}

static void set_host(struct guest *admin, const char *action)
{
    struct msg m = {.type = MSG_HOST_SET};
    struct answer a;
    m.u.host_set.call = guest_call(admin);
    m.u.host_set.name = "p6";
    m.u.host_set.action = action;
    guest_ask(admin, m.u.host_set.call, &m, &a);
    cr_assert_eq(a.exit, 0, "%s", buf_str(&a.talk));
    answer_free(&a);
}

Test(net_worker, is_not_handed_anything_while_drained)
{
    struct cast c;
    struct answer a;
    house_init(&c.h);
    house_start(&c.h);
    house_admit(&c.h, ROLE_WORKER, "p6", &c.p6);
    house_admit(&c.h, ROLE_ADMIN, "ann", &c.ann);
    c.worker = house_welcome(&c.h, &c.p6);
    c.admin = house_welcome(&c.h, &c.ann);
    set_host(c.admin, "drain");
    guest_put(c.admin, "run", SWEEP, &a);
    cr_assert_eq(a.exit, 0, "%s", buf_str(&a.talk));
    answer_free(&a);
    house_idle(&c.h);
    cr_expect_eq(guest_count(c.worker, MSG_ASSIGN), 0);
    set_host(c.admin, "resume");
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_ASSIGN) > 0);
    finish(&c);
}

/* Who and why together may be longer than CANCEL has room for. */
Test(net_worker, hears_of_a_cancel_with_a_long_reason)
{
    struct cast c;
    struct answer a;
    struct msg m = {.type = MSG_SWEEP_SET};
    char why[257];
    begin(&c);
    guest_taken(c.worker, &c.assign);
    for (size_t i = 0; i < sizeof(why) - 1; i += 2) {
        memcpy(why + i, "\xc3\xa9", 2);
    }
    why[sizeof(why) - 1] = '\0';
    m.u.sweep_set.call = guest_call(c.admin);
    m.u.sweep_set.sweep = "t";
    m.u.sweep_set.action = "cancel";
    m.u.sweep_set.text = why;
    guest_ask(c.admin, m.u.sweep_set.call, &m, &a);
    cr_assert_eq(a.exit, 0, "%s", buf_str(&a.talk));
    answer_free(&a);
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_CANCEL) > 0);
    const char *said = guest_got(c.worker, MSG_CANCEL, 0)->u.cancel.text;
    EXPECT_HAS(said, "cancelled by ann: ");
    cr_expect_leq(strlen(said), 256);
    cr_expect(guest_sees(c.admin, "t", why), "the status has the whole of it");
    finish(&c);
}

/* sweep_test.c: a sweep over the wire: checked, planned, submitted, made by a scripted worker,
 * reported. */
#include "coordinator/store/store.h"
#include "proto/close.h"
#include "tests/unit/whole/house.h"

#include <string.h>

static const char SWEEP[] = "sweep: t\n"
                            "workload: {name: w, run: make $JFLAG}\n"
                            "variants:\n"
                            "  - {name: a}\n"
                            "  - {name: b, env: {X: \"1\"}}\n"
                            "hosts: [p6]\n"
                            "jobs: [1, 2]\n"
                            "repeat: {warmup: 1, until: 2}\n";

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
}

static void finish(struct cast *c)
{
    house_fini(&c->h);
    ident_free(&c->p6);
    ident_free(&c->ann);
}

static void run(struct cast *c, const char *text, const char *want)
{
    struct answer a;
    guest_put(c->admin, "run", text, &a);
    cr_assert_eq(a.exit, 0, "%s", buf_str(&a.talk));
    cr_assert_str_eq(buf_str(&a.body), want);
    answer_free(&a);
}

Test(net_sweep, check_tells_all_mistakes_and_writes_nothing)
{
    struct cast c;
    struct answer a;
    begin(&c);
    guest_put(c.admin, "check",
              "sweep: t\nworkload: {run: make}\nvariants: [{name: a}, {name: a}]\n"
              "hosts: [nobody]\njobs: [0]\ncolour: red\n",
              &a);
    cr_expect_eq(a.exit, 64);
    cr_expect_eq(a.body.len, 0);
    EXPECT_HAS(buf_str(&a.talk), "s.yaml:3:");
    EXPECT_HAS(buf_str(&a.talk), "s.yaml:5:");
    EXPECT_HAS(buf_str(&a.talk), "s.yaml:6:");
    answer_free(&a);
    guest_put(c.admin, "check",
              "sweep: t\nworkload: {run: make}\nvariants: [{name: a}]\nhosts: [nobody]\n", &a);
    cr_expect_eq(a.exit, 64);
    EXPECT_HAS(buf_str(&a.talk), "s.yaml:4:9: ");
    EXPECT_HAS(buf_str(&a.talk), "nobody");
    answer_free(&a);
    guest_put(c.admin, "check", SWEEP, &a);
    cr_expect_eq(a.exit, 0, "%s", buf_str(&a.talk));
    answer_free(&a);
    guest_put(c.admin, "plan", SWEEP, &a);
    cr_expect_eq(a.exit, 0, "%s", buf_str(&a.talk));
    EXPECT_HAS(buf_str(&a.body), "p6");
    answer_free(&a);
    guest_put(c.admin, "guess", SWEEP, &a);
    cr_expect_eq(a.exit, 64);
    EXPECT_HAS(buf_str(&a.talk), "unknown action guess: it is one of check, plan, run");
    answer_free(&a);
    house_idle(&c.h);
    cr_expect_eq(guest_count(c.worker, MSG_ASSIGN), 0, "nothing is dispatched");
    struct msg m = {.type = MSG_SWEEP_LIST};
    m.u.sweep_list.call = guest_call(c.admin);
    guest_ask(c.admin, m.u.sweep_list.call, &m, &a);
    EXPECT_HAS(buf_str(&a.body), "\"sweeps\": []");
    answer_free(&a);
    finish(&c);
}

Test(net_sweep, every_run_is_handed_out_stored_once_acknowledged_and_reported)
{
    struct cast c;
    struct answer a;
    enum { RUNS = 2 * 2 * (1 + 2) };
    begin(&c);
    run(&c, SWEEP, "t/1\n");
    for (size_t i = 0; i < RUNS; i++) {
        guest_make(c.worker, i);
    }
    HOUSE_WAIT(&c.h, guest_sees(c.admin, "t", "\"state\": \"done\""));
    cr_expect_eq(guest_count(c.worker, MSG_ASSIGN), RUNS);
    size_t warm = 0;
    for (size_t i = 0; i < RUNS; i++) {
        const struct msg_assign *as = &guest_got(c.worker, MSG_ASSIGN, i)->u.assign;
        cr_expect(guest_has_acked(c.worker, as), "run %u", (unsigned)as->run);
        cr_expect_str_eq(as->sweep, "t/1");
        cr_expect_str_eq(as->workload, "w");
        cr_expect_str_eq(as->command, "make $JFLAG");
        cr_expect(as->jobs == 1 || as->jobs == 2);
        cr_expect_eq(as->env_count, strcmp(as->variant, "b") == 0 ? 1 : 0);
        cr_expect_gt(as->run_timeout_ns, 0);
        warm += as->warmup ? 1 : 0;
    }
    cr_expect_eq(warm, 4);
    static const char *const formats[] = {"table", "mail", "csv", "json", "markdown"};
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        guest_report(c.admin, "t/1", formats[i], &a);
        cr_expect_eq(a.exit, 0, "%s: %s", formats[i], buf_str(&a.talk));
        EXPECT_HAS(buf_str(&a.body), "p6");
        answer_free(&a);
    }
    guest_report(c.admin, "t/1", "poem", &a);
    cr_expect_eq(a.exit, 64);
    EXPECT_HAS(buf_str(&a.talk), "poem");
    answer_free(&a);
    guest_report(c.admin, "nix", "table", &a);
    cr_expect_eq(a.exit, 64);
    EXPECT_HAS(buf_str(&a.talk), "there is no sweep nix: `makespan sweep list` shows");
    answer_free(&a);
    finish(&c);
}

Test(net_sweep, one_attempt_is_shown_with_its_output)
{
    struct cast c;
    struct answer a;
    struct msg m = {.type = MSG_OUTPUT};
    begin(&c);
    run(&c, SWEEP, "t/1\n");
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_ASSIGN) > 0);
    const struct msg_assign *as = &guest_got(c.worker, MSG_ASSIGN, 0)->u.assign;
    guest_taken(c.worker, as);
    guest_result(c.worker, as, CLOCK_SEC);
    static const uint8_t bytes[] = "cc -c x.c\n\xff\x01";
    m.u.output.run = as->run;
    m.u.output.attempt = as->attempt;
    m.u.output.seq = 1;
    m.u.output.phase = PHASE_MEASURE;
    m.u.output.bytes = (struct msg_bytes){.data = bytes, .len = sizeof(bytes) - 1};
    m.u.output.total = sizeof(bytes) - 1;
    cr_assert_eq(guest_send(c.worker, &m), 0);
    m = (struct msg){.type = MSG_END};
    m.u.end.run = as->run;
    m.u.end.attempt = as->attempt;
    m.u.end.seq = 2;
    m.u.end.count = 3;
    cr_assert_eq(guest_send(c.worker, &m), 0);
    HOUSE_WAIT(&c.h, guest_has_acked(c.worker, as));
    m = (struct msg){.type = MSG_REPORT};
    m.u.report.call = guest_call(c.admin);
    m.u.report.sweep = "t";
    m.u.report.format = "table";
    m.u.report.run = as->run;
    m.u.report.has_run = true;
    m.u.report.attempt = as->attempt;
    m.u.report.has_attempt = true;
    guest_ask(c.admin, m.u.report.call, &m, &a);
    cr_assert_eq(a.exit, 0, "%s", buf_str(&a.talk));
    EXPECT_HAS(buf_str(&a.body), "real                  1.000 s\n");
    EXPECT_HAS(buf_str(&a.body), "--- output of run, 12 bytes ---\ncc -c x.c\n\xff\x01");
    answer_free(&a);
    m.u.report.call = guest_call(c.admin);
    m.u.report.run = as->run + 1000;
    guest_ask(c.admin, m.u.report.call, &m, &a);
    cr_expect_eq(a.exit, 64);
    EXPECT_HAS(buf_str(&a.talk), "t has no attempt");
    answer_free(&a);
    finish(&c);
}

Test(net_sweep, a_long_report_comes_in_pieces)
{
    struct cast c;
    struct answer a;
    enum { RUNS = 2 * 1 * 450 };
    begin(&c);
    run(&c,
        "sweep: long\nworkload: {name: w, run: make}\n"
        "variants: [{name: a}, {name: b, env: {X: \"1\"}}]\n"
        "hosts: [p6]\njobs: [1]\nrepeat: {warmup: 0, until: 450}\n",
        "long/1\n");
    for (size_t i = 0; i < RUNS; i++) {
        guest_make(c.worker, i);
    }
    HOUSE_WAIT(&c.h, guest_sees(c.admin, "long", "\"state\": \"done\""));
    guest_report(c.admin, "long", "csv", &a);
    cr_expect_eq(a.exit, 0);
    cr_expect_gt(a.pieces, 1, "%zu bytes", a.body.len);
    size_t lines = 0;
    for (const char *p = buf_str(&a.body); (p = strchr(p, '\n')) != NULL; p++) {
        lines++;
    }
    cr_expect_eq(lines, 1 + RUNS, "every attempt has its line, whole");
    answer_free(&a);
    finish(&c);
}

Test(net_sweep, a_worker_that_comes_back_delivers_again_and_is_counted_once)
{
    struct cast c;
    struct answer a;
    begin(&c);
    run(&c, SWEEP, "t/1\n");
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_ASSIGN) > 0);
    struct msg_assign as = guest_got(c.worker, MSG_ASSIGN, 0)->u.assign;
    guest_taken(c.worker, &as);
    guest_result(c.worker, &as, CLOCK_SEC);
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_ACK) > 0);
    guest_leave(c.worker);

    struct rec_held held = {.run = as.run, .attempt = as.attempt, .state = 3, .next_seq = 2};
    c.worker = house_guest(&c.h, &c.p6);
    HOUSE_WAIT(&c.h, c.worker->opened);
    guest_hello_with(c.worker, 0, &held, 1);
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_WELCOME) > 0);
    const struct msg_welcome *w = &guest_got(c.worker, MSG_WELCOME, 0)->u.welcome;
    cr_assert_eq(w->acked_count, 1);
    cr_expect_eq(w->acked[0].seq, 1, "RESULT is committed");
    cr_expect(!w->acked[0].whole);
    guest_result(c.worker, &as, 9 * CLOCK_SEC); /* once more all the same: a repetition */
    guest_end(c.worker, &as);
    HOUSE_WAIT(&c.h, guest_has_acked(c.worker, &as));
    guest_report(c.admin, "t", "csv", &a);
    EXPECT_HAS(buf_str(&a.body), ",1000000000,");
    cr_expect_null(strstr(buf_str(&a.body), ",9000000000,"));
    answer_free(&a);
    finish(&c);
}

Test(net_sweep, an_operator_pauses_resumes_cancels_and_retries)
{
    static const struct {
        const char *sweep, *action;
        uint32_t exit;
        const char *says;
    } rows[] = {
        {"t", "pause", 0, "t: paused"},
        {"t", "resume", 0, "t: resumed"},
        {"t", "explode", 64, "unknown action explode: it is one of pause, resume, cancel, retry"},
        {"nix", "pause", 64, "nix"},
        {"t/1", "cancel", 0, "t/1: cancelled"},
        {"t/1", "resume", 64, "cancelled"},
    };
    struct cast c;
    struct answer a;
    begin(&c);
    run(&c, SWEEP, "t/1\n");
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_ASSIGN) > 0);
    guest_taken(c.worker, &guest_got(c.worker, MSG_ASSIGN, 0)->u.assign);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct msg m = {.type = MSG_SWEEP_SET};
        m.u.sweep_set.call = guest_call(c.admin);
        m.u.sweep_set.sweep = rows[i].sweep;
        m.u.sweep_set.action = rows[i].action;
        m.u.sweep_set.text = "a test";
        guest_ask(c.admin, m.u.sweep_set.call, &m, &a);
        cr_expect_eq(a.exit, rows[i].exit, "%s: %s", rows[i].action, buf_str(&a.talk));
        EXPECT_HAS(buf_str(&a.talk), rows[i].says);
        answer_free(&a);
    }
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_CANCEL) + guest_count(c.worker, MSG_WITHDRAW) > 0);
    cr_expect(guest_sees(c.admin, "t", "\"state\": \"cancelled\""));
    finish(&c);
}

Test(net_sweep, a_request_whose_asker_went_is_forgotten)
{
    struct cast c;
    struct msg m = {.type = MSG_SWEEP_PUT};
    begin(&c);
    m.u.sweep_put.call = guest_call(c.admin);
    m.u.sweep_put.action = "check";
    m.u.sweep_put.file = "s.yaml";
    m.u.sweep_put.text =
        (struct msg_bytes){.data = (const uint8_t *)SWEEP, .len = sizeof(SWEEP) - 1};
    m.u.sweep_put.format = "text";
    cr_assert_eq(guest_send(c.admin, &m), 0);
    guest_leave(c.admin);
    c.admin = house_welcome(&c.h, &c.ann);
    cr_expect(!guest_sees(c.admin, NULL, "t/1"));
    finish(&c);
}

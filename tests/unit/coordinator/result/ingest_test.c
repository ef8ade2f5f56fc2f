/* The door of results: each record once, nothing filed where it does not belong, nothing
 * acknowledged before the commit. */
#include "tests/unit/coordinator/plan/rig.h"

#include "common/err.h"
#include "common/mem.h"
#include "coordinator/store/attempts.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/runs.h"
#include "coordinator/store/store.h"

#include <criterion/criterion.h>
#include <string.h>

#define SWEEP                                                                                      \
    "sweep: s\n"                                                                                   \
    "workload: {name: w, run: make $JFLAG}\n"                                                      \
    "hosts: [alpha]\njobs: [2]\nrepeat: {warmup: 0, until: 3}\n"

/* A fleet with one run at its host. */
struct box {
    struct rig *rig;
    struct rig_worker *w;
    int64_t run;
    int64_t cell;
    int64_t sweep;
};

static void box_open(struct box *b)
{
    b->rig = rig_new();
    b->w = rig_host(b->rig, "alpha", "", 4000, 0);
    b->w->room = 0;
    rig_host(b->rig, "beta", "", 4000, 0);
    rig_up(b->rig, b->w);
    b->sweep = rig_sweep(b->rig, SWEEP);
    rig_settle(b->rig);
    b->run = rig_head(b->w)->order.run;
    b->cell = rig_head(b->w)->order.cell;
}

static void box_close(struct box *b)
{
    rig_free(&b->rig);
}

static struct model_attempt ok_result(const struct box *b)
{
    return (struct model_attempt){.run = b->run,
                                  .attempt = 1,
                                  .reported = OUTCOME_OK,
                                  .phase = PHASE_CHECK,
                                  .ending = ENDING_EXIT,
                                  .text = "",
                                  .real_ns = {true, CLOCK_SEC},
                                  .boot_id = "b",
                                  .jobs = 2,
                                  .worker_version = "1"};
}

static int put_result(struct box *b, uint32_t seq, const struct model_attempt *a)
{
    return ingest_result(b->rig->ingest, 1, b->w->id, seq, a, NULL, 0);
}

static int put_mark(struct box *b, uint32_t seq, enum mark mark, bool invalid)
{
    struct model_mark m = {b->run, 1, mark, invalid, "why"};
    return ingest_mark(b->rig->ingest, 1, b->w->id, seq, &m);
}

static int put_end(struct box *b, uint32_t seq, uint32_t count)
{
    return ingest_end(b->rig->ingest, 1, b->w->id, b->run, 1, seq, count);
}

static struct model_attempt stored(struct box *b)
{
    struct mem_arena *arena = mem_arena_new(0);
    struct model_attempt a;
    cr_assert_eq(store_attempt_get(b->rig->store, b->run, 1, arena, &a), 0);
    a.text = a.boot_id = NULL;
    mem_arena_free(&arena);
    return a;
}

struct ack_log {
    struct ingest_ack acks[16];
    size_t n;
};

static void log_ack(void *arg, const struct ingest_ack *ack)
{
    struct ack_log *l = arg;
    l->acks[l->n++] = *ack;
}

static struct ack_log acks(struct box *b)
{
    struct ack_log l = {.n = 0};
    cr_assert_eq(ingest_take_acks(b->rig->ingest, b->w->id, log_ack, &l), l.n);
    return l;
}

Test(ingest, every_record_once)
{
    struct box b;
    box_open(&b);
    struct model_attempt a = ok_result(&b);
    for (int round = 0; round < 3; round++) {
        cr_assert_eq(put_result(&b, 0, &a), 0);
        cr_assert_eq(put_mark(&b, 1, MARK_USERS, false), 0);
        cr_assert_eq(put_end(&b, 2, 3), 0);
    }
    cr_assert_eq(rig_turn(b.rig), 0);
    cr_assert_eq(rig_run(b.rig, b.run).counted, 1);
    cr_assert_eq(stored(&b).outcome, OUTCOME_OK);
    cr_assert(!stored(&b).late);
    struct ack_log l = acks(&b);
    cr_assert_eq(l.n, 1);
    cr_assert_eq(l.acks[0].run, b.run);
    cr_assert_eq(l.acks[0].seq, 3);
    cr_assert(l.acks[0].whole);
    cr_assert_eq(acks(&b).n, 0, "handed out once");
    cr_assert_eq(rig_turn(b.rig), 0);
    cr_assert_eq(acks(&b).n, 0, "also after another commit");
    box_close(&b);
}

Test(ingest, acknowledges_after_the_commit_only)
{
    struct box b;
    box_open(&b);
    int64_t hosts[4];
    struct model_attempt a = ok_result(&b);
    cr_assert_eq(put_result(&b, 0, &a), 0);
    cr_assert_eq(acks(&b).n, 0);
    cr_assert_eq(ingest_hosts_due(b.rig->ingest, hosts, 4), 0);
    cr_assert_eq(rig_turn(b.rig), 0);
    cr_assert_eq(ingest_hosts_due(b.rig->ingest, hosts, 4), 1);
    cr_assert_eq(hosts[0], b.w->id);
    cr_assert_eq(acks(&b).n, 1);
    cr_assert_eq(put_mark(&b, 1, MARK_USERS, false), 0);
    store_rollback(b.rig->store);
    ingest_rolled_back(b.rig->ingest);
    ingest_committed(b.rig->ingest); /* of a later turn */
    cr_assert_eq(acks(&b).n, 0);
    rig_roll_back(b.rig, -ERR_FULL);
    cr_assert_eq(ingest_hosts_due(b.rig->ingest, hosts, 4), 0, "the link is gone too");
    struct ingest_ack known;
    cr_assert_eq(ingest_known(b.rig->ingest, b.w->id, b.run, 1, &known), 0);
    cr_assert_eq(known.seq, 1, "what was committed");
    cr_assert(!known.whole);
    rig_up(b.rig, b.w);
    cr_assert_eq(put_mark(&b, 1, MARK_USERS, false), 0);
    cr_assert_eq(rig_turn(b.rig), 0);
    struct ack_log l = acks(&b);
    cr_assert_eq(l.n, 1);
    cr_assert_eq(l.acks[0].seq, 2);
    cr_assert(!l.acks[0].whole);
    box_close(&b);
}

Test(ingest, refuses_what_the_protocol_forbids)
{
    struct box b;
    box_open(&b);
    struct model_attempt a = ok_result(&b);
    cr_assert_eq(put_result(&b, 1, &a), -ERR_PROTO, "a gap");
    cr_assert_eq(put_mark(&b, 0, MARK_USERS, false), 0);
    cr_assert_eq(put_result(&b, 1, &a), 0);
    cr_assert_eq(put_end(&b, 2, 3), 0);
    cr_assert_eq(put_mark(&b, 3, MARK_USERS, false), -ERR_PROTO, "after the end");
    cr_assert_eq(plan_failed(b.rig->plan), 0);
    cr_assert_eq(store_failed(b.rig->store), 0, "a peer's mistake fails no turn");
    cr_assert_eq(rig_turn(b.rig), 0);
    cr_assert_eq(rig_run(b.rig, b.run).counted, 1);
    box_close(&b);
}

/* Turns away for good what spoils an attempt, and has its run made again. */
static void expect_rejected(struct box *b, int code)
{
    struct ingest_ack known;
    struct model_attempt a = ok_result(b);
    cr_assert_eq(code, -ERR_DENIED);
    cr_assert_eq(put_result(b, 0, &a), -ERR_DENIED, "whatever comes of it later");
    cr_assert_eq(put_mark(b, 7, MARK_USERS, false), -ERR_DENIED);
    cr_assert_eq(plan_failed(b->rig->plan), 0);
    cr_assert_eq(store_failed(b->rig->store), 0, "a peer's mistake fails no turn");
    plan_ready(b->rig->plan, b->rig->now, b->w->id, 1);
    cr_assert_eq(rig_turn(b->rig), 0);
    struct ack_log l = acks(b);
    cr_assert_eq(l.n, 1);
    cr_assert(l.acks[0].whole);
    cr_assert(l.acks[0].refused != NULL, "so that it is not sent again, and not thrown away");
    cr_assert(ingest_is_rejected(b->rig->ingest, b->w->id, b->run, 1));
    cr_assert_eq(ingest_known(b->rig->ingest, b->w->id, b->run, 1, &known), 0);
    cr_assert(known.whole && known.refused != NULL, "and to a link that was lost meanwhile");
    const char *said = strstr(buf_str(&b->rig->events), "refused: a record of attempt 1");
    cr_assert(said != NULL);
    cr_assert(strstr(said + 1, "refused: a record of attempt 1") == NULL, "said once");
    struct model_run run = rig_run(b->rig, b->run);
    cr_assert_eq(run.counted, 0);
    cr_assert_eq(run.tries_invalid, 1);
    cr_assert_eq(run.attempts, 2, "it is made again");
    cr_assert_eq(run.state, RUN_SENT);
}

Test(ingest, rejects_an_end_without_a_result)
{
    struct box b;
    box_open(&b);
    cr_assert_eq(put_mark(&b, 0, MARK_USERS, false), 0);
    expect_rejected(&b, put_end(&b, 1, 2));
    box_close(&b);
}

Test(ingest, rejects_an_end_of_another_count)
{
    struct box b;
    box_open(&b);
    struct model_attempt a = ok_result(&b);
    cr_assert_eq(put_result(&b, 0, &a), 0);
    expect_rejected(&b, put_end(&b, 1, 9));
    box_close(&b);
}

Test(ingest, rejects_a_second_result)
{
    struct box b;
    box_open(&b);
    struct model_attempt a = ok_result(&b);
    cr_assert_eq(put_result(&b, 0, &a), 0);
    expect_rejected(&b, put_result(&b, 1, &a));
    box_close(&b);
}

Test(ingest, rejects_what_its_reader_found_wrong)
{
    struct box b;
    box_open(&b);
    cr_assert_eq(ingest_reject(b.rig->ingest, 1, b.w->id, b.run, 1, 1, "why"), -ERR_PROTO,
                 "it may be right where it belongs");
    cr_assert_eq(ingest_reject(b.rig->ingest, 1, b.w->id, 4711, 1, 0, "why"), -ERR_NOTFOUND);
    ingest_host_down(b.rig->ingest, b.w->id);
    buf_reset(&b.rig->events);
    expect_rejected(&b, ingest_reject(b.rig->ingest, 1, b.w->id, b.run, 1, 0, "why"));
    box_close(&b);
}

/* After a restart nothing is remembered, and it comes again: its run is not counted twice. */
Test(ingest, a_rejected_record_that_comes_again_uses_no_second_try)
{
    struct box b;
    box_open(&b);
    cr_assert_eq(put_end(&b, 0, 1), -ERR_DENIED);
    plan_ready(b.rig->plan, b.rig->now, b.w->id, 1);
    cr_assert_eq(rig_turn(b.rig), 0);
    ingest_rolled_back(b.rig->ingest);
    cr_assert_eq(put_end(&b, 0, 1), -ERR_DENIED);
    cr_assert_eq(rig_turn(b.rig), 0);
    cr_assert_eq(rig_run(b.rig, b.run).tries_invalid, 1);
    cr_assert_eq(rig_run(b.rig, b.run).attempts, 2);
    box_close(&b);
}

Test(ingest, files_nothing_under_another_host)
{
    struct box b;
    box_open(&b);
    struct model_attempt a = ok_result(&b);
    int64_t beta = b.rig->workers[1].id;
    struct ack_log l = {.n = 0};
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(ingest_result(b.rig->ingest, 1, beta, i, &a, NULL, 0), -ERR_DENIED);
    }
    cr_assert_eq(rig_turn(b.rig), 0);
    ingest_take_acks(b.rig->ingest, beta, log_ack, &l);
    cr_assert_eq(l.n, 1);
    cr_assert(l.acks[0].whole, "it can never be filed");
    cr_assert_str_eq(l.acks[0].refused, "it is a run of another host");
    const char *first = strstr(buf_str(&b.rig->events), "refused: a record of attempt 1");
    cr_assert(first != NULL);
    cr_assert(strstr(first + 1, "refused: a record of attempt 1") == NULL, "said once");
    struct ingest_ack known;
    cr_assert_eq(ingest_known(b.rig->ingest, beta, b.run, 1, &known), 0);
    cr_assert(known.whole);
    cr_assert_eq(rig_run(b.rig, b.run).state, RUN_RUNNING);
    cr_assert_eq(put_result(&b, 0, &a), 0, "its own host delivers it");
    box_close(&b);
}

Test(ingest, files_nothing_that_was_not_handed_out)
{
    struct box b;
    box_open(&b);
    struct model_attempt a = ok_result(&b);
    a.attempt = 2;
    cr_assert_eq(put_result(&b, 0, &a), -ERR_NOTFOUND);
    a.attempt = 0;
    cr_assert_eq(put_result(&b, 0, &a), -ERR_NOTFOUND);
    a.run = 4711;
    a.attempt = 1;
    cr_assert_eq(put_result(&b, 0, &a), -ERR_NOTFOUND);
    cr_assert_eq(rig_turn(b.rig), 0);
    cr_assert_eq(acks(&b).n, 3);
    struct ingest_ack known;
    cr_assert_eq(ingest_known(b.rig->ingest, b.w->id, 4711, 1, &known), 0);
    cr_assert(known.whole);
    cr_assert_str_eq(known.refused, "there is no such run");
    cr_assert_eq(ingest_known(b.rig->ingest, b.w->id, b.run, 1, &known), 0);
    cr_assert(!known.whole);
    cr_assert_eq(known.seq, 0);
    box_close(&b);
}

static void whole(struct box *b, const struct model_attempt *a)
{
    cr_assert_eq(put_result(b, 0, a), 0);
    cr_assert_eq(put_end(b, 1, 2), 0);
    cr_assert_eq(rig_turn(b->rig), 0);
}

struct mark_log {
    enum mark marks[8];
    bool invalid[8];
    size_t n;
};

static int log_mark(const struct model_mark *mark, void *arg)
{
    struct mark_log *l = arg;
    l->marks[l->n] = mark->mark;
    l->invalid[l->n++] = mark->invalid;
    return 0;
}

static void expect_invalid(struct box *b, enum mark mark)
{
    struct mark_log l = {.n = 0};
    cr_assert_eq(stored(b).outcome, OUTCOME_INVALID);
    cr_assert_eq(stored(b).reported, OUTCOME_OK);
    cr_assert_eq(store_marks_of_attempt(b->rig->store, b->run, 1, log_mark, &l), 0);
    cr_assert_eq(l.n, 1);
    cr_assert_eq(l.marks[0], mark);
    cr_assert(l.invalid[0]);
    cr_assert_eq(rig_run(b->rig, b->run).counted, 0);
    cr_assert_eq(rig_run(b->rig, b->run).tries_invalid, 1);
}

Test(ingest, a_mark_that_makes_it_invalid)
{
    struct box b;
    box_open(&b);
    struct model_attempt a = ok_result(&b);
    cr_assert_eq(put_mark(&b, 0, MARK_SWAP, true), 0);
    cr_assert_eq(put_result(&b, 1, &a), 0);
    cr_assert_eq(put_end(&b, 2, 3), 0);
    cr_assert_eq(rig_turn(b.rig), 0);
    expect_invalid(&b, MARK_SWAP);
    box_close(&b);
}

Test(ingest, another_job_count_than_was_sent)
{
    struct box b;
    box_open(&b);
    struct model_attempt a = ok_result(&b);
    a.jobs = 4;
    whole(&b, &a);
    expect_invalid(&b, MARK_NOT_AS_ASKED);
    box_close(&b);
}

Test(ingest, ok_without_a_time)
{
    struct box b;
    box_open(&b);
    struct model_attempt a = ok_result(&b);
    a.real_ns = (struct opt_i64){true, -5};
    whole(&b, &a);
    expect_invalid(&b, MARK_NOT_AS_ASKED);
    cr_assert(!stored(&b).real_ns.has, "a number that cannot be is absent");
    box_close(&b);
}

Test(ingest, another_toolchain_than_the_cells)
{
    struct box b;
    box_open(&b);
    struct model_attempt a = ok_result(&b);
    cr_assert_eq(store_cell_set_fingerprint(b.rig->store, b.cell, "abc"), 0);
    a.fingerprint = "def";
    whole(&b, &a);
    expect_invalid(&b, MARK_FINGERPRINT);
    box_close(&b);
}

Test(ingest, a_warm_up_is_one_whatever_the_worker_says)
{
    struct box b;
    box_open(&b);
    int64_t sweep = rig_sweep(b.rig, "sweep: warm\nworkload: {name: w, run: make}\n"
                                     "hosts: [beta]\nrepeat: {warmup: 1, until: 1}\n");
    struct rig_worker *w = &b.rig->workers[1];
    rig_up(b.rig, w);
    rig_settle(b.rig);
    cr_assert(rig_head(w)->order.warmup);
    struct model_attempt a = ok_result(&b);
    a.run = rig_head(w)->order.run;
    a.jobs = rig_head(w)->order.jobs;
    a.warmup = false;
    b.w = w;
    b.run = a.run;
    whole(&b, &a);
    cr_assert(stored(&b).warmup);
    cr_assert_eq(rig_run(b.rig, b.run).counted, 0);
    cr_assert_eq(rig_count(b.rig, sweep, RUN_DONE, true), 1);
    box_close(&b);
}

static int log_fact(const struct model_attempt_fact *fact, void *arg)
{
    buf_printf(arg, "%s=%s ", fact->key, fact->value);
    return 0;
}

Test(ingest, facts_of_check_with_one_key_are_one)
{
    struct box b;
    box_open(&b);
    struct model_attempt a = ok_result(&b);
    struct model_fact facts[] = {{"objects", "1"}, {"bytes", "9"}, {"objects", "2"}};
    cr_assert_eq(ingest_result(b.rig->ingest, 1, b.w->id, 0, &a, facts, 3), 0);
    cr_assert_eq(put_end(&b, 1, 2), 0);
    cr_assert_eq(rig_turn(b.rig), 0);
    cr_assert_eq(stored(&b).outcome, OUTCOME_OK);
    struct buf text = BUF_INIT;
    cr_assert_eq(store_facts_of_attempt(b.rig->store, b.run, 1, log_fact, &text), 0);
    cr_assert_str_eq(buf_str(&text), "bytes=9 objects=2 ");
    buf_fini(&text);
    box_close(&b);
}

Test(ingest, samples_and_output_are_kept)
{
    struct box b;
    box_open(&b);
    struct model_attempt a = ok_result(&b);
    struct model_point points[] = {{1, 2, 3}, {4, 5, 6}};
    struct ingest *in = b.rig->ingest;
    cr_assert_eq(ingest_samples(in, 1, b.w->id, b.run, 1, 0, points, 2), 0);
    cr_assert_eq(ingest_output(in, 1, b.w->id, b.run, 1, 1, PHASE_MEASURE, 0, "a\0b", 3, 3), 0);
    cr_assert_eq(ingest_samples(in, 1, b.w->id, b.run, 1, 0, points, 2), 0);
    cr_assert_eq(put_result(&b, 2, &a), 0);
    cr_assert_eq(put_end(&b, 3, 4), 0);
    cr_assert_eq(rig_turn(b.rig), 0);
    cr_assert(strstr(buf_str(&b.rig->events), "attempt: attempt 1 ok, 1.00 s\n") != NULL, "%s",
              buf_str(&b.rig->events));
    box_close(&b);
}

Test(ingest, a_link_that_goes_takes_its_acknowledgements_along)
{
    struct box b;
    box_open(&b);
    struct model_attempt a = ok_result(&b);
    cr_assert_eq(put_result(&b, 0, &a), 0);
    cr_assert_eq(rig_turn(b.rig), 0);
    ingest_host_down(b.rig->ingest, b.w->id);
    cr_assert_eq(acks(&b).n, 0);
    box_close(&b);
}

/* An owner who fails when he is told that an attempt is whole. */
struct owner {
    int answer;
    int told;
};

static bool in_order(void *arg, int64_t run, uint32_t attempt)
{
    (void)arg, (void)run, (void)attempt;
    return false;
}

static int hear_whole(void *arg, int64_t host, const struct model_attempt *attempt)
{
    struct owner *o = arg;
    (void)host, (void)attempt;
    o->told++;
    return o->answer;
}

static int hear_rejected(void *arg, int64_t host, int64_t run, uint32_t attempt, const char *why)
{
    (void)arg, (void)host, (void)run, (void)attempt, (void)why;
    return 0;
}

static int hear_event(void *arg, const struct model_event *event)
{
    (void)arg, (void)event;
    return 0;
}

Test(ingest, an_end_that_could_not_be_settled_comes_again)
{
    static const struct ingest_ops ops = {in_order, hear_whole, hear_rejected, hear_event};
    struct owner owner = {.answer = -ERR_SYS};
    struct store_intake intake;
    struct box b;
    box_open(&b);
    struct ingest *door = ingest_new(b.rig->store, &ops, &owner);
    struct model_attempt a = ok_result(&b);
    cr_assert_eq(ingest_result(door, 1, b.w->id, 0, &a, NULL, 0), 0);
    cr_assert_eq(ingest_end(door, 1, b.w->id, b.run, 1, 1, 2), -ERR_SYS);
    cr_assert_eq(store_commit(b.rig->store, NULL), 0, "the failure was not of a kind that loses it");
    ingest_committed(door);
    cr_assert_eq(store_intake_get(b.rig->store, b.run, 1, &intake), 0);
    cr_expect_eq(intake.next_seq, 1, "END is stored with what follows from it, or not at all");
    cr_expect(!intake.whole);
    owner.answer = 0;
    cr_assert_eq(ingest_end(door, 1, b.w->id, b.run, 1, 1, 2), 0);
    cr_expect_eq(owner.told, 2);
    cr_assert_eq(store_commit(b.rig->store, NULL), 0);
    ingest_free(&door);
    box_close(&b);
}

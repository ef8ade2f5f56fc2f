/* attempts_test.c: records of attempts: each once, in its order, whole or not at all. */
#include "coordinator/store/attempts.h"

#include "common/err.h"
#include "coordinator/store/runs.h"
#include "coordinator/store/store.h"
#include "tests/unit/coordinator/store/store_help.h"

#include <criterion/criterion.h>

#include <string.h>

static struct store_intake intake(struct box *box, int64_t run, uint32_t attempt)
{
    struct store_intake out = {0};
    cr_assert_eq(store_intake_get(box->store, run, attempt, &out), 0);
    return out;
}

static int marks(const struct model_mark *mark, void *arg)
{
    say(arg, "%d%s:%s ", mark->mark, mark->invalid ? "!" : "", mark->text);
    return 0;
}

static int facts(const struct model_attempt_fact *fact, void *arg)
{
    say(arg, "%s=%s ", fact->key, fact->value);
    return 0;
}

static int points(const struct model_point *point, void *arg)
{
    say(arg, "%lld/%u/%lld ", (long long)point->at_ns, point->what, (long long)point->value);
    return 0;
}

static int pieces(const struct store_output *output, void *arg)
{
    say(arg, "%d@%d[%.*s]%d ", output->phase, (int)output->offset, (int)output->n,
        (const char *)output->bytes, (int)output->total);
    return 0;
}

static void begin(struct box *box, struct box_ids *s)
{
    box_open(box);
    *s = box_small(box);
    cr_assert_eq(store_attempt_begin(box->store, s->run, 1, 55), 0, "%s", store_error(box->store));
}

Test(intake, begins_once)
{
    struct box box;
    struct box_ids s;
    struct store_intake none;
    begin(&box, &s);
    struct store_intake i = intake(&box, s.run, 1);
    cr_expect_eq(i.next_seq, 0);
    cr_expect_eq(i.count, 0);
    cr_expect_eq(i.cell, s.cell);
    cr_expect_eq(i.begin_wall_ns, 55);
    cr_expect(!i.whole && !i.has_result);
    cr_expect_eq(store_attempt_begin(box.store, s.run, 1, 99), 0);
    cr_expect_eq(intake(&box, s.run, 1).begin_wall_ns, 55);
    cr_expect_eq(store_attempt_begin(box.store, 999, 1, 1), -ERR_CONFLICT);
    cr_expect_eq(store_intake_get(box.store, s.run, 2, &none), -ERR_NOTFOUND);
    struct model_attempt a = box_attempt(s.run, 2);
    cr_expect_eq(store_attempt_put_result(box.store, 0, &a, NULL, 0, NULL), -ERR_NOTFOUND);
    box_close(&box);
}

Test(intake, takes_every_kind_of_record_in_order)
{
    struct box box;
    struct box_ids s;
    char all[SAY_ROOM] = "";
    bool stored = false;
    begin(&box, &s);
    const struct model_mark mark = {
        .run = s.run, .attempt = 1, .mark = MARK_SURVIVORS, .invalid = false, .text = "sh (12)"};
    const struct model_mark bad = {
        .run = s.run, .attempt = 1, .mark = MARK_SWAP, .invalid = true, .text = "3 MB"};
    const struct model_point some[] = {{0, 1, INT64_MIN}, {5, UINT32_MAX, INT64_MAX}};
    const struct model_point more[] = {{9, 2, -1}};
    const struct store_output head = {PHASE_MEASURE, 0, (const uint8_t *)"cc \xff", 4, 12};
    const struct store_output tail = {PHASE_MEASURE, 10, (const uint8_t *)"ok", 2, 12};
    const struct store_output empty = {PHASE_CHECK, 0, NULL, 0, 0};
    const struct model_fact of_check[] = {{"objects", "812"}, {"bytes", "99"}, {"objects", "813"}};
    struct model_attempt a = box_attempt(s.run, 1);

    cr_expect_eq(store_attempt_put_mark(box.store, 0, &mark, &stored), 0);
    cr_expect(stored);
    cr_expect_eq(store_attempt_put_samples(box.store, s.run, 1, 1, some, 2, 70, &stored), 0);
    cr_expect_eq(store_attempt_put_output(box.store, s.run, 1, 2, &tail, 70, &stored), 0);
    cr_expect_eq(store_attempt_put_output(box.store, s.run, 1, 3, &head, 70, &stored), 0);
    cr_expect_eq(store_attempt_put_output(box.store, s.run, 1, 4, &empty, 71, &stored), 0);
    cr_expect_eq(store_attempt_put_samples(box.store, s.run, 1, 5, more, 1, 71, &stored), 0);
    cr_expect_eq(store_attempt_put_result(box.store, 6, &a, of_check, 3, &stored), 0, "%s",
                 store_error(box.store));
    cr_expect(stored);
    cr_expect_eq(store_attempt_put_mark(box.store, 7, &bad, &stored), 0);
    cr_expect(intake(&box, s.run, 1).has_result);
    cr_expect(!intake(&box, s.run, 1).whole);
    cr_expect_eq(store_attempt_put_end(box.store, s.run, 1, 8, 9, &stored), 0);
    box_commit(&box);
    box_reopen(&box);

    struct store_intake i = intake(&box, s.run, 1);
    cr_expect_eq(i.next_seq, 9);
    cr_expect_eq(i.count, 9);
    cr_expect(i.whole);
    cr_expect_eq(store_marks_of_attempt(box.store, s.run, 1, marks, all), 0);
    cr_expect_str_eq(all, "1:sh (12) 7!:3 MB ");
    all[0] = '\0';
    cr_expect_eq(store_facts_of_attempt(box.store, s.run, 1, facts, all), 0);
    cr_expect_str_eq(all, "bytes=99 objects=813 ", "of two of a name the last holds");
    all[0] = '\0';
    cr_expect_eq(store_points_of_attempt(box.store, s.run, 1, points, all), 0);
    cr_expect_str_eq(all, "0/1/-9223372036854775808 5/4294967295/9223372036854775807 9/2/-1 ");
    all[0] = '\0';
    cr_expect_eq(store_output_of_attempt(box.store, s.run, 1, 0, pieces, all), 0);
    cr_expect_str_eq(all, "8@0[cc \xff]12 8@10[ok]12 9@0[]0 ");
    all[0] = '\0';
    cr_expect_eq(store_output_of_attempt(box.store, s.run, 1, PHASE_CHECK, pieces, all), 0);
    cr_expect_str_eq(all, "9@0[]0 ");
    box_close(&box);
}

Test(intake, a_record_that_comes_again_changes_nothing)
{
    struct box box;
    struct box_ids s;
    char all[SAY_ROOM] = "";
    bool stored = true;
    begin(&box, &s);
    const struct model_mark mark = {.run = s.run, .attempt = 1, .mark = MARK_LOAD, .text = "first"};
    const struct model_mark again = {
        .run = s.run, .attempt = 1, .mark = MARK_LOAD, .text = "again"};
    const struct model_point point = {1, 1, 1};
    const struct store_output output = {PHASE_MEASURE, 0, (const uint8_t *)"x", 1, 1};
    struct model_attempt a = box_attempt(s.run, 1);
    cr_expect_eq(store_attempt_put_mark(box.store, 0, &mark, NULL), 0);
    cr_expect_eq(store_attempt_put_mark(box.store, 0, &again, &stored), 0);
    cr_expect(!stored);
    cr_expect_eq(store_attempt_put_samples(box.store, s.run, 1, 0, &point, 1, 1, &stored), 0);
    cr_expect(!stored);
    cr_expect_eq(store_attempt_put_output(box.store, s.run, 1, 0, &output, 1, &stored), 0);
    cr_expect(!stored);
    cr_expect_eq(store_attempt_put_result(box.store, 1, &a, NULL, 0, &stored), 0);
    cr_expect(stored);
    a.real_ns.v = 99;
    cr_expect_eq(store_attempt_put_result(box.store, 1, &a, NULL, 0, &stored), 0);
    cr_expect(!stored);
    cr_expect_eq(store_attempt_put_end(box.store, s.run, 1, 2, 3, &stored), 0);
    cr_expect(stored);
    cr_expect_eq(store_attempt_put_end(box.store, s.run, 1, 2, 3, &stored), 0);
    cr_expect(!stored);
    cr_expect_eq(intake(&box, s.run, 1).next_seq, 3);
    cr_expect_eq(store_marks_of_attempt(box.store, s.run, 1, marks, all), 0);
    cr_expect_str_eq(all, "12:first ");
    cr_assert_eq(store_attempt_get(box.store, s.run, 1, box.arena, &a), 0);
    cr_expect_eq(a.real_ns.v, 1500);
    box_close(&box);
}

Test(intake, leaves_no_gap)
{
    struct box box;
    struct box_ids s;
    bool stored = true;
    begin(&box, &s);
    struct model_attempt a = box_attempt(s.run, 1);
    const struct model_mark mark = {.run = s.run, .attempt = 1, .mark = MARK_LOAD, .text = "m"};
    cr_expect_eq(store_attempt_put_mark(box.store, 1, &mark, &stored), -ERR_PROTO);
    cr_expect(!stored);
    cr_expect_eq(store_attempt_put_end(box.store, s.run, 1, 0, 1, NULL), -ERR_PROTO, "no result");
    cr_expect_eq(store_attempt_put_result(box.store, 0, &a, NULL, 0, NULL), 0);
    cr_expect_eq(store_attempt_put_result(box.store, 1, &a, NULL, 0, NULL), -ERR_PROTO,
                 "a second result");
    cr_expect_eq(store_attempt_put_end(box.store, s.run, 1, 1, 3, NULL), -ERR_PROTO,
                 "a wrong count");
    cr_expect_eq(intake(&box, s.run, 1).next_seq, 1);
    cr_expect(!intake(&box, s.run, 1).whole);
    cr_expect_eq(store_attempt_put_end(box.store, s.run, 1, 1, 2, NULL), 0);
    cr_expect_eq(store_attempt_put_mark(box.store, 2, &mark, NULL), -ERR_PROTO, "after the end");
    cr_expect_eq(store_failed(box.store), 0);
    box_close(&box);
}

Test(intake, a_record_that_cannot_be_stored_is_not_counted)
{
    struct box box;
    struct box_ids s;
    char all[SAY_ROOM] = "";
    begin(&box, &s);
    struct model_attempt a = box_attempt(s.run, 1);
    const struct model_fact broken[] = {{"good", "1"}, {"bad", NULL}};
    cr_expect_eq(store_attempt_put_result(box.store, 0, &a, broken, 2, NULL), -ERR_CONFLICT);
    cr_expect_eq(intake(&box, s.run, 1).next_seq, 0);
    cr_expect(!intake(&box, s.run, 1).has_result);
    cr_expect_eq(store_attempt_get(box.store, s.run, 1, box.arena, &a), -ERR_NOTFOUND);
    cr_expect_eq(store_facts_of_attempt(box.store, s.run, 1, facts, all), 0);
    cr_expect_str_eq(all, "");
    a = box_attempt(s.run, 1);
    cr_expect_eq(store_attempt_put_result(box.store, 0, &a, broken, 1, NULL), 0);
    box_close(&box);
}

Test(intake, what_was_not_committed_comes_again)
{
    struct box box;
    struct box_ids s;
    bool stored = false;
    begin(&box, &s);
    const struct model_mark mark = {.run = s.run, .attempt = 1, .mark = MARK_LOAD, .text = "m"};
    box_commit(&box);
    cr_expect_eq(store_attempt_put_mark(box.store, 0, &mark, &stored), 0);
    store_rollback(box.store);
    cr_expect_eq(intake(&box, s.run, 1).next_seq, 0);
    cr_expect_eq(store_attempt_put_mark(box.store, 0, &mark, &stored), 0);
    cr_expect(stored);
    box_commit(&box);
    box_close(&box);
}

static int open_ones(const struct store_intake *i, void *arg)
{
    say(arg, "%d.%u ", (int)i->run, i->attempt);
    return 0;
}

Test(intake, open_ones_are_those_not_whole)
{
    struct box box;
    struct box_ids s;
    char all[SAY_ROOM] = "";
    begin(&box, &s);
    struct model_attempt a = box_attempt(s.run, 1);
    cr_expect_eq(store_attempt_begin(box.store, s.run, 2, 1), 0);
    cr_expect_eq(store_intakes_open(box.store, 0, open_ones, all), 0);
    cr_expect_str_eq(all, "1.1 1.2 ");
    cr_expect_eq(store_attempt_put_result(box.store, 0, &a, NULL, 0, NULL), 0);
    cr_expect_eq(store_attempt_put_end(box.store, s.run, 1, 1, 2, NULL), 0);
    all[0] = '\0';
    cr_expect_eq(store_intakes_open(box.store, s.host, open_ones, all), 0);
    cr_expect_str_eq(all, "1.2 ");
    all[0] = '\0';
    cr_expect_eq(store_intakes_open(box.store, 99, open_ones, all), 0);
    cr_expect_str_eq(all, "");
    box_close(&box);
}

/* --- the attempt's own row --- */

/* Every field has a value of its own, so that two that change places are seen. */
static struct model_attempt full(int64_t run)
{
    struct model_attempt a = {.run = run,
                              .attempt = 1,
                              .outcome = OUTCOME_FAILED,
                              .reported = OUTCOME_INVALID,
                              .phase = PHASE_RESET,
                              .ending = ENDING_SIGNAL,
                              .text = "killed",
                              .warmup = true,
                              .late = true,
                              .cpu_way = CPU_WAY_CGROUP1,
                              .boot_id = "boot-7",
                              .tree_key = "tk",
                              .blob_seen = "bs",
                              .tree_seen = "ts",
                              .fingerprint = "fp",
                              .fingerprint_text = "gcc 12",
                              .kernel_seen = "k",
                              .worker_version = "0.2.0",
                              .dropped_env = "MAKEFLAGS",
                              .visit = UINT64_MAX,
                              .jobs = -1,
                              .begin_wall_ns = 501,
                              .end_wall_ns = 502,
                              .stored_wall_ns = 503};
    struct opt_i64 *const numbers[] = {&a.exit_status,
                                       &a.signal,
                                       &a.real_ns,
                                       &a.user_ns,
                                       &a.sys_ns,
                                       &a.wait_user_ns,
                                       &a.wait_sys_ns,
                                       &a.max_rss_bytes,
                                       &a.tree_peak_bytes,
                                       &a.minor_faults,
                                       &a.major_faults,
                                       &a.voluntary_switches,
                                       &a.involuntary_switches,
                                       &a.read_bytes,
                                       &a.write_bytes,
                                       &a.observer_ns,
                                       &a.foreign_ns,
                                       &a.start_wall_ns,
                                       &a.setup_ns,
                                       &a.reset_ns,
                                       &a.settle_ns,
                                       &a.check_ns,
                                       &a.calibrate_before_ns,
                                       &a.calibrate_after_ns,
                                       &a.cpus_milli,
                                       &a.output_bytes};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        *numbers[i] = (struct opt_i64){true, 100 + (int64_t)i};
    }
    return a;
}

static void expect_opt(struct opt_i64 got, struct opt_i64 want, const char *name)
{
    cr_expect_eq(got.has, want.has, "%s", name);
    cr_expect_eq(got.v, want.v, "%s", name);
}
#define EXPECT_OPT(field) expect_opt(got->field, want->field, #field)

static void expect_attempt(const struct model_attempt *got, const struct model_attempt *want)
{
    cr_expect_eq(got->run, want->run);
    cr_expect_eq(got->attempt, want->attempt);
    cr_expect_eq(got->outcome, want->outcome);
    cr_expect_eq(got->reported, want->reported);
    cr_expect_eq(got->phase, want->phase);
    cr_expect_eq(got->ending, want->ending);
    EXPECT_OPT(exit_status);
    EXPECT_OPT(signal);
    cr_expect_str_eq(got->text, want->text);
    cr_expect_eq(got->warmup, want->warmup);
    cr_expect_eq(got->fresh_tree, want->fresh_tree);
    cr_expect_eq(got->late, want->late);
    cr_expect_eq(got->out_of_order, want->out_of_order);
    EXPECT_OPT(real_ns);
    EXPECT_OPT(user_ns);
    EXPECT_OPT(sys_ns);
    cr_expect_eq(got->cpu_way, want->cpu_way);
    EXPECT_OPT(wait_user_ns);
    EXPECT_OPT(wait_sys_ns);
    EXPECT_OPT(max_rss_bytes);
    EXPECT_OPT(tree_peak_bytes);
    EXPECT_OPT(minor_faults);
    EXPECT_OPT(major_faults);
    EXPECT_OPT(voluntary_switches);
    EXPECT_OPT(involuntary_switches);
    EXPECT_OPT(read_bytes);
    EXPECT_OPT(write_bytes);
    EXPECT_OPT(observer_ns);
    EXPECT_OPT(foreign_ns);
    EXPECT_OPT(start_wall_ns);
    cr_expect_eq(got->begin_wall_ns, want->begin_wall_ns);
    cr_expect_eq(got->end_wall_ns, want->end_wall_ns);
    EXPECT_OPT(setup_ns);
    EXPECT_OPT(reset_ns);
    EXPECT_OPT(settle_ns);
    EXPECT_OPT(check_ns);
    cr_expect_str_eq(got->boot_id, want->boot_id);
    cr_expect_eq(got->visit, want->visit);
    cr_expect_str_eq(got->tree_key, want->tree_key);
    cr_expect_str_eq(got->blob_seen, want->blob_seen);
    cr_expect_str_eq(got->tree_seen, want->tree_seen);
    cr_expect_str_eq(got->fingerprint, want->fingerprint);
    cr_expect_str_eq(got->fingerprint_text, want->fingerprint_text);
    EXPECT_OPT(calibrate_before_ns);
    EXPECT_OPT(calibrate_after_ns);
    cr_expect_str_eq(got->kernel_seen, want->kernel_seen);
    EXPECT_OPT(cpus_milli);
    cr_expect_eq(got->jobs, want->jobs);
    cr_expect_str_eq(got->worker_version, want->worker_version);
    cr_expect_str_eq(got->dropped_env, want->dropped_env);
    EXPECT_OPT(output_bytes);
    cr_expect_eq(got->stored_wall_ns, want->stored_wall_ns);
}

Test(attempt, every_field_comes_back)
{
    struct box box;
    struct box_ids s;
    struct model_attempt got;
    begin(&box, &s);
    struct model_attempt want = full(s.run);
    cr_assert_eq(store_attempt_put_result(box.store, 0, &want, NULL, 0, NULL), 0, "%s",
                 store_error(box.store));
    box_commit(&box);
    box_reopen(&box);
    cr_assert_eq(store_attempt_get(box.store, s.run, 1, box.arena, &got), 0);
    expect_attempt(&got, &want);
    cr_expect_eq(got.cell, s.cell);
    cr_expect_eq(got.next_seq, 1);
    cr_expect(!got.whole);
    cr_expect_eq(store_attempt_get(box.store, s.run, 2, box.arena, &got), -ERR_NOTFOUND);
    box_close(&box);
}

Test(attempt, an_absent_number_is_absent_and_not_0)
{
    struct box box;
    struct box_ids s;
    struct model_attempt got;
    begin(&box, &s);
    struct model_attempt in = box_attempt(s.run, 1);
    in.real_ns = (struct opt_i64){false, 77};
    in.user_ns = (struct opt_i64){true, 0};
    cr_assert_eq(store_attempt_put_result(box.store, 0, &in, NULL, 0, NULL), 0);
    cr_assert_eq(store_attempt_get(box.store, s.run, 1, box.arena, &got), 0);
    cr_expect(!got.real_ns.has);
    cr_expect(got.user_ns.has);
    cr_expect_eq(got.user_ns.v, 0);
    cr_expect(!got.signal.has);
    cr_expect_null(got.tree_key);
    cr_expect_null(got.fingerprint);
    box_close(&box);
}

static int outcomes(const struct model_attempt *a, void *arg)
{
    say(arg, "%d.%u:%s%s%s ", (int)a->run, a->attempt, vocab_outcome((int)a->outcome),
        a->late ? "L" : "", a->out_of_order ? "O" : "");
    return 0;
}

Test(attempt, counts_as_it_was_settled)
{
    struct box box;
    struct box_ids s;
    struct model_attempt got;
    char all[SAY_ROOM] = "";
    begin(&box, &s);
    int64_t second = box_run(&box, s.sweep, s.host, s.cell, 0, 1);
    cr_assert_eq(store_attempt_begin(box.store, s.run, 2, 1), 0);
    cr_assert_eq(store_attempt_begin(box.store, second, 1, 1), 0);
    for (uint32_t n = 1; n <= 2; n++) {
        struct model_attempt a = box_attempt(s.run, n);
        cr_assert_eq(store_attempt_put_result(box.store, 0, &a, NULL, 0, NULL), 0);
    }
    struct model_attempt a = box_attempt(second, 1);
    cr_assert_eq(store_attempt_put_result(box.store, 0, &a, NULL, 0, NULL), 0);
    cr_expect_eq(store_attempt_settle(box.store, s.run, 1, OUTCOME_SUPERSEDED, true, false), 0);
    cr_expect_eq(store_attempt_settle(box.store, s.run, 2, OUTCOME_OK, false, true), 0);
    cr_expect_eq(store_attempt_settle(box.store, s.run, 3, OUTCOME_OK, false, true), -ERR_NOTFOUND);
    cr_expect_eq(store_attempts_of_run(box.store, s.run, outcomes, all), 0);
    cr_expect_str_eq(all, "1.1:supersededL 1.2:okO ");
    all[0] = '\0';
    cr_expect_eq(store_attempts_of_cell(box.store, s.cell, outcomes, all), 0);
    cr_expect_str_eq(all, "1.1:supersededL 1.2:okO 2.1:ok ");
    cr_assert_eq(store_attempt_get(box.store, s.run, 1, box.arena, &got), 0);
    cr_expect_eq(got.reported, OUTCOME_OK);
    box_close(&box);
}

Test(attempt, the_coordinator_adds_marks_of_its_own)
{
    struct box box;
    struct box_ids s;
    char all[SAY_ROOM] = "";
    begin(&box, &s);
    const struct model_mark mark = {
        .run = s.run, .attempt = 1, .mark = MARK_CANCELLED_LATE, .text = "too late"};
    const struct model_mark lost = {.run = s.run, .attempt = 9, .mark = MARK_DRIFT, .text = "x"};
    cr_expect_eq(store_attempt_add_mark(box.store, &mark), 0);
    cr_expect_eq(store_attempt_add_mark(box.store, &lost), -ERR_CONFLICT);
    cr_expect_eq(intake(&box, s.run, 1).next_seq, 0);
    cr_expect_eq(store_marks_of_attempt(box.store, s.run, 1, marks, all), 0);
    cr_expect_str_eq(all, "28:too late ");
    box_close(&box);
}

Test(retention, removes_what_is_old_and_keeps_the_attempt)
{
    struct box box;
    struct box_ids s;
    char all[SAY_ROOM] = "";
    size_t n = 0;
    begin(&box, &s);
    const struct model_point point = {1, 1, 1};
    const struct store_output output = {PHASE_MEASURE, 0, (const uint8_t *)"x", 1, 1};
    cr_expect_eq(store_attempt_put_samples(box.store, s.run, 1, 0, &point, 1, 10, NULL), 0);
    cr_expect_eq(store_attempt_put_samples(box.store, s.run, 1, 1, &point, 1, 20, NULL), 0);
    cr_expect_eq(store_attempt_put_output(box.store, s.run, 1, 2, &output, 10, NULL), 0);
    cr_expect_eq(store_prune_samples(box.store, 20, &n), 0);
    cr_expect_eq(n, 1);
    cr_expect_eq(store_prune_output(box.store, 20, &n), 0);
    cr_expect_eq(n, 1);
    cr_expect_eq(store_points_of_attempt(box.store, s.run, 1, points, all), 0);
    cr_expect_str_eq(all, "1/1/1 ");
    all[0] = '\0';
    cr_expect_eq(store_output_of_attempt(box.store, s.run, 1, 0, pieces, all), 0);
    cr_expect_str_eq(all, "");
    cr_expect_eq(intake(&box, s.run, 1).next_seq, 3, "records that are gone do not come again");
    box_close(&box);
}

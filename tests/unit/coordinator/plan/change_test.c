/* Pause, resume, cancel and retry of sweeps; and what status says of them. */
#include "tests/unit/coordinator/plan/rig.h"

#include "common/err.h"
#include "common/mem.h"
#include "coordinator/store/attempts.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/runs.h"
#include "coordinator/store/sweeps.h"

#include <criterion/criterion.h>
#include <string.h>

#define SWEEP                                                                                      \
    "sweep: s\n"                                                                                   \
    "workload: {name: w, setup: make config, run: make $JFLAG}\n"                                  \
    "variants: [{name: a, env: {X: 1}}, {name: b, env: {X: 2}}]\n"                                 \
    "hosts: [alpha]\njobs: [1]\nrepeat: {warmup: 1, until: 3}\n"

static struct rig_worker *one_host(struct rig **rig)
{
    *rig = rig_new();
    struct rig_worker *w = rig_host(*rig, "alpha", "", 4000, 0);
    rig_up(*rig, w);
    return w;
}

static int set(struct rig *rig, const char *sweep, enum plan_sweep_action action)
{
    return plan_sweep_set(rig->plan, rig->now, sweep, action, "because", "op", NULL, NULL);
}

Test(change, pause_hands_nothing_out_and_resume_goes_on)
{
    struct rig *rig;
    struct rig_worker *w = one_host(&rig);
    int64_t id = rig_sweep(rig, SWEEP);
    rig_settle(rig);
    rig_begin(rig, w);
    cr_assert_eq(w->held_count, 2);
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_PAUSE), 0);
    rig_settle(rig);
    cr_assert_eq(w->held_count, 1, "what had not begun is withdrawn");
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    cr_assert_eq(w->held_count, 0);
    cr_assert_eq(rig_state(rig, id), SWEEP_PAUSED);
    rig_pass(rig, CLOCK_HOUR);
    json_t *s = rig_status(rig, id);
    json_t *wait = json_object_get(json_array_get(json_object_get(s, "hosts"), 0), "wait");
    cr_assert_str_eq(json_str(wait, "owner", ""), "operator");
    cr_assert_str_eq(json_str(s, "because", ""), "paused by op: because");
    cr_assert(json_str(s, "end_reason", NULL) == NULL, "it has not ended");
    cr_assert(strstr(buf_str(&rig->events), "sweep-changed: s/1: pause: because\n") != NULL);
    cr_assert_eq(json_int(wait, "age_ns", 0), CLOCK_HOUR);
    json_decref(s);
    rig_crash(rig);
    rig_up(rig, w);
    rig_settle(rig);
    cr_assert_eq(w->held_count, 0, "it stays paused");
    s = rig_status(rig, id);
    cr_assert_str_eq(json_str(s, "because", ""), "paused by op: because", "after a start too");
    json_decref(s);
    cr_assert_eq(set(rig, "s/1", PLAN_SWEEP_RESUME), 0);
    rig_settle(rig);
    cr_assert_eq(w->held_count, 2);
    s = rig_status(rig, id);
    cr_assert_str_eq(json_str(s, "because", ""), "resumed by op: because");
    json_decref(s);
    cr_assert(strstr(buf_str(&rig->events), "sweep-changed: s/1: resume: because\n") != NULL);
    rig_free(&rig);
}

/* As long as the protocol lets it be, and in whatever script. */
Test(change, a_reason_is_kept_as_it_is)
{
    struct rig *rig;
    one_host(&rig);
    int64_t id = rig_sweep(rig, SWEEP);
    struct buf why = BUF_INIT, want = BUF_INIT;
    for (int i = 0; i < 512; i++) {
        buf_add_str(&why, "\xc3\xa9");
    }
    cr_assert_eq(plan_sweep_set(rig->plan, rig->now, "s", PLAN_SWEEP_PAUSE, buf_str(&why), "op",
                                NULL, NULL),
                 0);
    buf_printf(&want, "paused by op: %s", buf_str(&why));
    json_t *s = rig_status(rig, id);
    cr_assert_str_eq(json_str(s, "because", ""), buf_str(&want));
    json_decref(s);
    cr_assert_eq(plan_sweep_set(rig->plan, rig->now, "s", PLAN_SWEEP_CANCEL, buf_str(&why), "op",
                                NULL, NULL),
                 0);
    buf_reset(&want);
    buf_printf(&want, "cancelled by op: %s", buf_str(&why));
    s = rig_status(rig, id);
    cr_assert_str_eq(json_str(s, "end_reason", ""), buf_str(&want));
    json_decref(s);
    buf_fini(&why);
    buf_fini(&want);
    rig_free(&rig);
}

Test(change, cancel_ends_the_sweep_and_what_runs)
{
    struct rig *rig;
    struct rig_worker *w = one_host(&rig);
    struct mem_arena *arena = mem_arena_new(0);
    int64_t id = rig_sweep(rig, SWEEP);
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    rig_settle(rig);
    rig_begin(rig, w);
    int64_t running = rig_head(w)->order.run;
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_CANCEL), 0);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(rig_state(rig, id), SWEEP_CANCELLED);
    cr_assert_eq(rig_run(rig, running).state, RUN_CANCELLED);
    cr_assert_eq(rig_count(rig, id, RUN_DONE, false), 1, "what was measured stays");
    cr_assert_eq(rig_count(rig, id, RUN_QUEUED, false), 0);
    rig_settle(rig);
    rig_feed(rig, w, SIZE_MAX);
    rig_settle(rig);
    cr_assert_eq(w->held_count, 0);
    struct model_sweep row;
    cr_assert_eq(store_sweep_get(rig->store, id, arena, &row), 0);
    cr_assert_str_eq(row.end_reason, "cancelled by op: because");
    cr_assert_eq(row.ended_wall_ns, rig->now.wall_ns);
    json_t *s = rig_status(rig, id);
    json_t *host = json_array_get(json_object_get(s, "hosts"), 0);
    cr_assert_eq(json_int(host, "cancelled", 0), 5);
    cr_assert_eq(json_int(s, "eta_ns", -1), 0);
    cr_assert_str_eq(json_str(s, "because", ""), "cancelled by op: because");
    cr_assert_str_eq(json_str(s, "end_reason", ""), "cancelled by op: because");
    json_decref(s);
    cr_assert(strstr(buf_str(&rig->events), "sweep-changed: s/1: cancel: because\n") != NULL);
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_CANCEL), -ERR_STATE);
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_PAUSE), -ERR_STATE);
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_RETRY), -ERR_STATE);
    mem_arena_free(&arena);
    rig_free(&rig);
}

/* Recipe: a cancel while the link is down is carried out when it is back. */
Test(change, cancel_reaches_a_host_that_is_away)
{
    struct rig *rig;
    struct rig_worker *w = one_host(&rig);
    rig_sweep(rig, SWEEP);
    rig_settle(rig);
    rig_begin(rig, w);
    int64_t run = rig_head(w)->order.run;
    rig_down(rig, w);
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_CANCEL), 0);
    cr_assert_eq(rig_turn(rig), 0);
    rig_crash(rig);
    rig_up(rig, w);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(w->wire[0].kind, RIG_CANCEL);
    cr_assert_eq(w->wire[0].run, run);
    cr_assert_eq(w->wire[1].kind, RIG_WITHDRAW, "and what waits there is withdrawn");
    rig_settle(rig);
    rig_feed(rig, w, SIZE_MAX);
    rig_settle(rig);
    cr_assert_eq(w->held_count, 0);
    cr_assert_eq(rig_run(rig, run).state, RUN_CANCELLED);
    rig_free(&rig);
}

static int has_mark(const struct model_mark *mark, void *arg)
{
    bool *found = arg;
    *found = *found || mark->mark == MARK_CANCELLED_LATE;
    return 0;
}

Test(change, a_result_that_was_there_before_the_cancel_is_marked)
{
    struct rig *rig;
    struct rig_worker *w = one_host(&rig);
    struct mem_arena *arena = mem_arena_new(0);
    bool found = false;
    struct model_attempt a;
    rig_sweep(rig, SWEEP);
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    rig_settle(rig);
    int64_t run = rig_head(w)->order.run;
    rig_begin(rig, w);
    rig_down(rig, w);
    rig_end(rig, w, OUTCOME_OK, PHASE_CHECK);
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_CANCEL), 0);
    cr_assert_eq(rig_turn(rig), 0);
    rig_up(rig, w);
    rig_feed(rig, w, SIZE_MAX);
    rig_settle(rig);
    cr_assert_eq(rig_run(rig, run).state, RUN_CANCELLED);
    cr_assert_eq(rig_run(rig, run).counted, 0);
    cr_assert_eq(store_attempt_get(rig->store, run, 1, arena, &a), 0);
    cr_assert_eq(a.outcome, OUTCOME_CANCELLED);
    cr_assert_eq(a.reported, OUTCOME_OK);
    cr_assert_eq(store_marks_of_attempt(rig->store, run, 1, has_mark, &found), 0);
    cr_assert(found);
    mem_arena_free(&arena);
    rig_free(&rig);
}

Test(change, retry_makes_failed_runs_again_with_fresh_tries)
{
    struct rig *rig;
    struct rig_worker *w = one_host(&rig);
    int64_t id = rig_sweep(rig, SWEEP "retry: {invalid: 1, failed: 0}\n");
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_RETRY), -ERR_STATE, "nothing is missing yet");
    for (int i = 0; rig_state(rig, id) == SWEEP_ACTIVE; i++) {
        cr_assert_lt(i, 40);
        rig_make(rig, w, i < 2 ? OUTCOME_OK : OUTCOME_INVALID, PHASE_CHECK);
    }
    cr_assert_eq(rig_count(rig, id, RUN_DONE, false), 6);
    json_t *s = rig_status(rig, id);
    cr_assert_eq(json_int(s, "failed", 0), 6);
    json_decref(s);
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_RETRY), 0);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(rig_state(rig, id), SWEEP_ACTIVE);
    s = rig_status(rig, id);
    cr_assert_str_eq(json_str(s, "because", ""), "retried by op: because");
    json_decref(s);
    cr_assert(strstr(buf_str(&rig->events), "sweep-changed: s/1: retry: because\n") != NULL);
    for (int i = 0; rig_state(rig, id) == SWEEP_ACTIVE; i++) {
        cr_assert_lt(i, 40);
        rig_make(rig, w, i < 2 ? OUTCOME_INVALID : OUTCOME_OK, PHASE_CHECK);
    }
    s = rig_status(rig, id);
    cr_assert_eq(json_int(s, "have", 0), 6);
    cr_assert_eq(json_int(s, "failed", -1), 0);
    json_decref(s);
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_RETRY), -ERR_STATE);
    cr_assert_eq(rig_state(rig, id), SWEEP_DONE, "and it stays as it was");
    rig_free(&rig);
}

/* Makes what the worker is given until the sweep ends; of each cell the attempts in their order, as
 * "W" and "m". */
static void make_rest(struct rig *rig, struct rig_worker *w, int64_t sweep, int64_t first,
                      char made[2][16])
{
    size_t n[2] = {0, 0};
    memset(made, 0, 2 * sizeof(made[0]));
    while (rig_state(rig, sweep) == SWEEP_ACTIVE) {
        rig_settle(rig);
        const struct rig_message *order = &rig_head(w)->order;
        size_t i = order->cell == first ? 0 : 1;
        cr_assert_lt(n[i], 15);
        made[i][n[i]++] = order->warmup ? 'W' : 'm';
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
}

Test(change, retry_makes_the_warm_ups_again_that_warmed_nothing)
{
    struct rig *rig;
    struct rig_worker *w = one_host(&rig);
    char made[2][16];
    int64_t id = rig_sweep(rig, SWEEP);
    rig_settle(rig);
    int64_t first = rig_head(w)->order.cell;
    /* Of the first cell everything fails, of the second the measured runs alone. */
    for (int i = 0; rig_state(rig, id) == SWEEP_ACTIVE; i++) {
        cr_assert_lt(i, 40);
        rig_settle(rig);
        const struct rig_message *order = &rig_head(w)->order;
        bool fails = order->cell == first || !order->warmup;
        rig_make(rig, w, fails ? OUTCOME_FAILED : OUTCOME_OK, PHASE_MEASURE);
    }
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_RETRY), 0);
    cr_assert_eq(rig_turn(rig), 0);
    make_rest(rig, w, id, first, made);
    cr_assert_str_eq(made[0], "Wmmm", "once, and before the first that is measured");
    cr_assert_str_eq(made[1], "mmm", "the other's was fine");
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_RETRY), -ERR_STATE);
    rig_free(&rig);
}

/* The runs that are made up for stand in blocks that were drawn long ago, and have later slots than
 * what waits in the last block. */
Test(change, retry_of_a_failed_cell_leaves_nothing_behind_that_waits)
{
    struct rig *rig;
    struct rig_worker *w = one_host(&rig);
    int64_t id = rig_sweep(rig, "sweep: s\n"
                                "workload: {name: w, setup: make config, run: make $JFLAG}\n"
                                "variants: [{name: a, env: {X: 1}}, {name: b, env: {X: 2}}]\n"
                                "hosts: [alpha]\njobs: [1]\nrepeat: {warmup: 0, until: 6}\n");
    rig_settle(rig);
    rig_make(rig, w, OUTCOME_FAILED, PHASE_SETUP);
    for (int i = 0; i < 3; i++) {
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    rig_settle(rig);
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_PAUSE), 0);
    rig_settle(rig);
    cr_assert_gt(rig_count(rig, id, RUN_QUEUED, false), 0, "something waits");
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_RETRY), 0);
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_RESUME), 0);
    for (int i = 0; rig_state(rig, id) == SWEEP_ACTIVE && i < 40; i++) {
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    cr_expect_eq(rig_state(rig, id), SWEEP_DONE);
    cr_expect_eq(rig_count(rig, id, RUN_DONE, false), 12);
    rig_free(&rig);
}

Test(change, retry_makes_no_warm_up_again_without_need)
{
    struct rig *rig;
    struct rig_worker *w = one_host(&rig);
    char made[2][16];
    int64_t id = rig_sweep(rig, SWEEP);
    rig_settle(rig);
    int64_t first = rig_head(w)->order.cell;
    /* The warm-up of the first cell fails, then of the second a run: there is nothing to warm. */
    for (int i = 0; rig_state(rig, id) == SWEEP_ACTIVE; i++) {
        cr_assert_lt(i, 40);
        rig_settle(rig);
        const struct rig_message *order = &rig_head(w)->order;
        bool fails = order->cell == first ? order->warmup : !order->warmup && order->block == 1;
        rig_make(rig, w, fails ? OUTCOME_FAILED : OUTCOME_OK, PHASE_MEASURE);
    }
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_RETRY), 0);
    cr_assert_eq(rig_turn(rig), 0);
    make_rest(rig, w, id, first, made);
    cr_assert_str_eq(made[0], "");
    cr_assert_str_eq(made[1], "m");
    rig_free(&rig);
}

/* While the sweep goes on: what the worker holds of the cell and has not begun comes after it. */
Test(change, retry_puts_a_warm_up_before_what_waits_at_the_worker)
{
    struct rig *rig;
    struct rig_worker *w = one_host(&rig);
    char made[2][16];
    int64_t id = rig_sweep(rig, SWEEP);
    rig_settle(rig);
    int64_t first = rig_head(w)->order.cell;
    rig_make(rig, w, OUTCOME_FAILED, PHASE_MEASURE);
    rig_make(rig, w, OUTCOME_OK, PHASE_MEASURE);
    rig_settle(rig);
    cr_assert_eq(w->held_count, 2, "measured runs, not begun");
    cr_assert(!w->held[0].order.warmup && !w->held[1].order.warmup);
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_RETRY), 0);
    rig_settle(rig);
    make_rest(rig, w, id, first, made);
    cr_assert_str_eq(made[0], "Wmmm");
    cr_assert_str_eq(made[1], "mmm");
    rig_free(&rig);
}

struct blocks {
    int64_t n[8];
};

static int by_block(const struct model_run *run, void *arg)
{
    struct blocks *b = arg;
    b->n[run->block]++;
    return 0;
}

Test(change, retry_opens_failed_cells_and_gives_them_their_runs)
{
    struct rig *rig;
    struct rig_worker *w = one_host(&rig);
    w->room = 0;
    rig_down(rig, w);
    rig_up(rig, w);
    int64_t id = rig_sweep(rig, SWEEP);
    rig_settle(rig);
    int64_t cell = rig_head(w)->order.cell;
    rig_make(rig, w, OUTCOME_FAILED, PHASE_SETUP);
    while (rig_state(rig, id) == SWEEP_ACTIVE) {
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    struct blocks b = {{0}};
    cr_assert_eq(store_runs_of_cell(rig->store, cell, by_block, &b), 0);
    cr_assert_eq(b.n[0], 1);
    cr_assert_eq(b.n[1], 0);
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_RETRY), 0);
    int made = 0;
    while (rig_state(rig, id) == SWEEP_ACTIVE) {
        rig_settle(rig);
        cr_assert_eq(rig_head(w)->order.cell, cell);
        cr_assert_eq(rig_head(w)->order.warmup, made == 0);
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
        made++;
    }
    cr_assert_eq(made, 4);
    memset(&b, 0, sizeof(b));
    cr_assert_eq(store_runs_of_cell(rig->store, cell, by_block, &b), 0);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(b.n[i], 1, "one a block");
    }
    json_t *s = rig_status(rig, id);
    cr_assert_eq(json_int(s, "have", 0), 6);
    json_decref(s);
    rig_free(&rig);
}

Test(change, retry_after_a_lost_host_draws_the_rest)
{
    struct rig *rig;
    struct rig_worker *w = one_host(&rig);
    int64_t id = rig_sweep(rig, SWEEP);
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    rig_down(rig, w);
    rig_pass(rig, rig->conf.lost_after_ns);
    cr_assert_eq(rig_state(rig, id), SWEEP_DONE);
    w->held_count = 0;
    rig_up(rig, w);
    cr_assert_eq(set(rig, "s", PLAN_SWEEP_RETRY), 0);
    for (int i = 0; rig_state(rig, id) == SWEEP_ACTIVE; i++) {
        cr_assert_lt(i, 40);
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    cr_assert_eq(rig_count(rig, id, RUN_DONE, false), 6);
    cr_assert_eq(rig_count(rig, id, RUN_DONE, true), 2);
    rig_free(&rig);
}

Test(change, an_unknown_sweep_is_said_so)
{
    struct rig *rig;
    one_host(&rig);
    struct diag *diag = diag_new(4);
    struct buf out = BUF_INIT;
    int64_t id;
    cr_assert_eq(plan_sweep_set(rig->plan, rig->now, "x", PLAN_SWEEP_PAUSE, NULL, "op", &id, diag),
                 -ERR_NOTFOUND);
    cr_assert_str_eq(diag_first(diag), "there is no sweep `x`: `makespan sweep list` shows them");
    cr_assert_eq(plan_status_sweep(rig->plan, rig->now, "x", &out, diag), -ERR_NOTFOUND);
    cr_assert_eq(plan_status_hosts(rig->plan, rig->now, "x", &out, diag), -ERR_NOTFOUND);
    cr_assert_eq(out.len, 0);
    cr_assert_eq(plan_failed(rig->plan), 0);
    buf_fini(&out);
    diag_free(&diag);
    rig_free(&rig);
}

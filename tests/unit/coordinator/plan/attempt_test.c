/* What follows from an attempt: it counts, it is made again, its cells fail. */
#include "tests/unit/coordinator/plan/rig.h"

#include "common/mem.h"
#include "coordinator/store/attempts.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/runs.h"
#include "coordinator/store/sweeps.h"

#include <criterion/criterion.h>
#include <string.h>

#define FILE_HEAD                                                                                  \
    "sweep: s\n"                                                                                   \
    "workload: {name: w, setup: make config, run: make $JFLAG}\n"                                  \
    "variants: [{name: a, env: {X: 1}}, {name: b, env: {X: 2}}]\n"                                 \
    "hosts: [alpha]\n"

/* Makes the next attempt and returns its run. */
static int64_t make(struct rig *rig, struct rig_worker *w, enum outcome outcome, enum phase phase)
{
    rig_settle(rig);
    cr_assert(rig_head(w) != NULL);
    int64_t run = rig_head(w)->order.run;
    rig_make(rig, w, outcome, phase);
    return run;
}

static struct model_attempt attempt(struct rig *rig, int64_t run, uint32_t n)
{
    struct mem_arena *arena = mem_arena_new(0);
    struct model_attempt a;
    cr_assert_eq(store_attempt_get(rig->store, run, n, arena, &a), 0);
    a.text = NULL;
    mem_arena_free(&arena);
    return a;
}

static void check_tries(enum outcome outcome, int tries)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    rig_sweep(rig, FILE_HEAD "jobs: [1]\nrepeat: {warmup: 0, until: 2}\n"
                             "retry: {invalid: 2, interrupted: 1, failed: 0}\n");
    int64_t run = make(rig, w, outcome, PHASE_CHECK);
    for (int i = 0; i < tries; i++) {
        cr_assert_eq(rig_run(rig, run).state, RUN_RUNNING, "made again at its place");
        cr_assert_eq(make(rig, w, outcome, PHASE_CHECK), run);
    }
    struct model_run row = rig_run(rig, run);
    cr_assert_eq(row.state, RUN_DONE);
    cr_assert_eq(row.counted, 0);
    cr_assert_eq(row.attempts, (uint32_t)tries + 1);
    int64_t next = make(rig, w, OUTCOME_OK, PHASE_CHECK);
    cr_assert_neq(next, run, "the sweep goes on");
    cr_assert_eq(rig_run(rig, next).counted, 1);
    rig_free(&rig);
}

Test(attempt, invalid_ones_are_made_again_as_often_as_the_file_says)
{
    check_tries(OUTCOME_INVALID, 2);
}

Test(attempt, interrupted_ones_have_their_own_tries)
{
    check_tries(OUTCOME_INTERRUPTED, 1);
}

Test(attempt, a_failed_build_is_not_made_again)
{
    check_tries(OUTCOME_FAILED, 0);
}

Test(attempt, one_that_is_made_again_in_its_turn_is_in_order)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    rig_sweep(rig, FILE_HEAD "jobs: [1]\nrepeat: {warmup: 0, until: 2}\n");
    int64_t run = make(rig, w, OUTCOME_INVALID, PHASE_CHECK);
    cr_assert_eq(make(rig, w, OUTCOME_OK, PHASE_CHECK), run);
    cr_assert(!attempt(rig, run, 2).out_of_order);
    cr_assert_eq(rig_run(rig, run).counted, 2);
    cr_assert_eq(rig_run(rig, run).slot, 0);
    rig_free(&rig);
}

Test(attempt, one_that_is_made_after_a_later_place_is_out_of_order)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    w->room = 1; /* the next is there already */
    rig_down(rig, w);
    rig_up(rig, w);
    rig_sweep(rig, FILE_HEAD "jobs: [1]\nrepeat: {warmup: 0, until: 2}\n");
    int64_t first = make(rig, w, OUTCOME_INVALID, PHASE_CHECK);
    int64_t second = make(rig, w, OUTCOME_OK, PHASE_CHECK);
    cr_assert_neq(first, second);
    cr_assert_eq(make(rig, w, OUTCOME_OK, PHASE_CHECK), first);
    cr_assert(attempt(rig, first, 2).out_of_order);
    cr_assert(!attempt(rig, second, 1).out_of_order);
    rig_free(&rig);
}

Test(attempt, what_is_out_of_order_stays_so_over_a_restart)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    w->room = 1;
    rig_down(rig, w);
    rig_up(rig, w);
    rig_sweep(rig, FILE_HEAD "jobs: [1]\nrepeat: {warmup: 0, until: 2}\n");
    int64_t first = make(rig, w, OUTCOME_INVALID, PHASE_CHECK);
    rig_settle(rig);
    rig_begin(rig, w);
    int64_t second = rig_head(w)->order.run;
    rig_crash(rig);
    rig_up(rig, w);
    cr_assert_eq(make(rig, w, OUTCOME_OK, PHASE_CHECK), second);
    cr_assert_eq(make(rig, w, OUTCOME_OK, PHASE_CHECK), first);
    cr_assert(!attempt(rig, second, 1).out_of_order);
    cr_assert(attempt(rig, first, 2).out_of_order);
    rig_free(&rig);
}

Test(attempt, an_older_one_that_is_unclean_uses_up_nothing)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    rig_sweep(rig, FILE_HEAD "jobs: [1]\nrepeat: {warmup: 0, until: 2}\n");
    rig_settle(rig);
    struct rig_held lost = w->held[0];
    rig_down(rig, w);
    w->held_count = 0;
    rig_up(rig, w);
    rig_settle(rig);
    cr_assert_eq(rig_head(w)->order.attempt, 2);
    lost.state = PLAN_HELD_SPOOLED;
    lost.outcome = OUTCOME_INVALID;
    lost.phase = PHASE_CHECK;
    w->held[w->held_count++] = lost;
    rig_feed(rig, w, SIZE_MAX);
    rig_settle(rig);
    struct model_run run = rig_run(rig, lost.order.run);
    cr_assert_eq(run.state, RUN_RUNNING);
    cr_assert_eq(run.tries_invalid, 0);
    cr_assert(attempt(rig, run.id, 1).late);
    rig_free(&rig);
}

/* What was cut short warmed nothing, and is made again as often as a measured run. */
Test(attempt, a_warm_up_that_ran_to_its_end_ends_its_run)
{
    static const enum outcome outcomes[] = {OUTCOME_OK, OUTCOME_FAILED, OUTCOME_INVALID};
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t sweep = rig_sweep(rig, FILE_HEAD "jobs: [1]\nrepeat: {warmup: 2, until: 1}\n");
    for (size_t i = 0; i < ARRAY_LEN(outcomes); i++) {
        int64_t run = make(rig, w, outcomes[i], PHASE_CHECK);
        cr_assert(rig_run(rig, run).warmup);
        cr_assert_eq(rig_run(rig, run).state, RUN_DONE);
        cr_assert_eq(rig_run(rig, run).counted, 0);
        cr_assert_eq(rig_run(rig, run).attempts, 1);
    }
    int64_t run = make(rig, w, OUTCOME_INTERRUPTED, PHASE_MEASURE);
    cr_assert(rig_run(rig, run).warmup);
    cr_assert_neq(rig_run(rig, run).state, RUN_DONE);
    cr_assert_eq(rig_run(rig, run).tries_interrupted, 1);
    cr_assert_eq(make(rig, w, OUTCOME_OK, PHASE_CHECK), run, "before what it warms for");
    cr_assert_eq(rig_run(rig, run).state, RUN_DONE);
    cr_assert_eq(rig_count(rig, sweep, RUN_DONE, true), 4);
    rig_free(&rig);
}

Test(attempt, a_warm_up_is_not_interrupted_for_ever)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    rig_sweep(rig, FILE_HEAD "jobs: [1]\nrepeat: {warmup: 1, until: 1}\nretry: {interrupted: 1}\n");
    int64_t run = make(rig, w, OUTCOME_INTERRUPTED, PHASE_MEASURE);
    cr_assert_eq(make(rig, w, OUTCOME_INTERRUPTED, PHASE_MEASURE), run);
    cr_assert_eq(rig_run(rig, run).state, RUN_DONE);
    cr_assert_eq(rig_run(rig, run).attempts, 2);
    rig_free(&rig);
}

Test(attempt, a_tree_that_was_just_made_costs_no_try)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    rig_sweep(rig, FILE_HEAD "jobs: [1]\nrepeat: {warmup: 1, until: 1}\nretry: {invalid: 0}\n");
    make(rig, w, OUTCOME_OK, PHASE_CHECK);
    make(rig, w, OUTCOME_OK, PHASE_CHECK);
    rig_settle(rig);
    int64_t run = rig_head(w)->order.run;
    for (int i = 0; i < 3; i++) {
        cr_assert(rig_head(w)->order.fresh_warmup);
        rig_head(w)->fresh = true;
        make(rig, w, OUTCOME_OK, PHASE_CHECK);
        rig_settle(rig);
        cr_assert_eq(rig_head(w)->order.run, run, "again, at once");
        cr_assert_eq(rig_run(rig, run).tries_invalid, 0);
        cr_assert_eq(attempt(rig, run, (uint32_t)i + 1).outcome, OUTCOME_OK);
        cr_assert(attempt(rig, run, (uint32_t)i + 1).warmup);
    }
    cr_assert(!rig_head(w)->order.fresh_warmup, "not for ever");
    rig_head(w)->fresh = true;
    make(rig, w, OUTCOME_OK, PHASE_CHECK);
    cr_assert_eq(rig_run(rig, run).counted, 4);
    cr_assert(attempt(rig, run, 4).fresh_tree);
    rig_free(&rig);
}

Test(attempt, without_warm_ups_a_fresh_tree_is_measured)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    rig_sweep(rig, FILE_HEAD "jobs: [1]\nrepeat: {warmup: 0, until: 1}\n");
    rig_settle(rig);
    cr_assert(!rig_head(w)->order.fresh_warmup);
    rig_head(w)->fresh = true;
    int64_t run = make(rig, w, OUTCOME_OK, PHASE_CHECK);
    cr_assert_eq(rig_run(rig, run).counted, 1);
    rig_free(&rig);
}

static int count_cells(const struct model_cell *cell, void *arg)
{
    int *n = arg;
    if (cell->state == CELL_FAILED) {
        (*n)++;
        cr_assert_str_eq(cell->reason, "setup failed: it went wrong: no rule\\nto make it");
    }
    return 0;
}

Test(attempt, a_setup_that_fails_ends_the_cells_of_its_tree_once)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int failed = 0;
    int64_t sweep = rig_sweep(rig, FILE_HEAD "jobs: [1, 2, 4]\nrepeat: {warmup: 1, until: 2}\n");
    rig_settle(rig);
    int64_t cell = rig_head(w)->order.cell;
    make(rig, w, OUTCOME_FAILED, PHASE_SETUP);
    cr_assert_eq(store_cells_each(rig->store, sweep, 0, count_cells, &failed), 0);
    cr_assert_eq(failed, 3, "all job counts of the variant");
    cr_assert_eq(rig_count(rig, sweep, RUN_SKIPPED, true), 2);
    int made = 0;
    while (rig_state(rig, sweep) == SWEEP_ACTIVE) {
        rig_settle(rig);
        cr_assert_neq(rig_head(w)->order.cell, cell);
        make(rig, w, OUTCOME_OK, PHASE_CHECK);
        made++;
    }
    cr_assert_eq(made, 3 + 6, "the other variant is measured");
    json_t *s = rig_status(rig, sweep);
    cr_assert_eq(json_int(s, "wanted", 0), 12);
    cr_assert_eq(json_int(s, "have", 0), 6);
    cr_assert_eq(json_int(s, "failed", 0), 6);
    json_decref(s);
    rig_free(&rig);
}

Test(attempt, a_sweep_whose_trees_all_fail_ends)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t sweep = rig_sweep(rig, FILE_HEAD "jobs: [1, 2, 4]\nrepeat: {warmup: 1, until: 2}\n");
    make(rig, w, OUTCOME_FAILED, PHASE_SETUP);
    make(rig, w, OUTCOME_FAILED, PHASE_FETCH);
    cr_assert_eq(rig_state(rig, sweep), SWEEP_DONE);
    cr_assert_eq(rig->assigned, 2);
    rig_free(&rig);
}

Test(attempt, what_waits_at_the_worker_of_a_failed_tree_is_withdrawn)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    w->room = 1;
    rig_down(rig, w);
    rig_up(rig, w);
    int64_t sweep = rig_sweep(rig, "sweep: s\nworkload: {name: w, setup: x, run: make}\n"
                                   "hosts: [alpha]\njobs: [1, 2]\nrepeat: {warmup: 1, until: 2}\n");
    rig_settle(rig);
    cr_assert_eq(w->held_count, 2);
    int64_t second = w->held[1].order.run;
    rig_begin(rig, w);
    rig_end(rig, w, OUTCOME_FAILED, PHASE_SETUP);
    rig_feed(rig, w, SIZE_MAX);
    rig_settle(rig);
    cr_assert_eq(rig_run(rig, second).state, RUN_SKIPPED);
    cr_assert_eq(w->held_count, 0);
    cr_assert_eq(rig_state(rig, sweep), SWEEP_DONE);
    cr_assert_eq(rig->assigned, 2);
    rig_free(&rig);
}

Test(attempt, the_fingerprint_of_the_first_is_the_cells)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    struct mem_arena *arena = mem_arena_new(0);
    struct model_cell cell;
    rig_sweep(rig, FILE_HEAD "jobs: [1]\nrepeat: {warmup: 0, until: 2}\n");
    rig_settle(rig);
    struct rig_message m = rig_head(w)->order;
    for (int i = 0; i < 2; i++) {
        struct model_attempt a = {.run = m.run,
                                  .attempt = m.attempt,
                                  .outcome = OUTCOME_OK,
                                  .fingerprint = i == 0 ? "abc" : "other",
                                  .text = ""};
        cr_assert_eq(plan_attempt_whole(rig->plan, rig->now, w->id, &a), 0);
        cr_assert_eq(store_cell_get(rig->store, m.cell, arena, &cell), 0);
        cr_assert_str_eq(cell.fingerprint, "abc");
    }
    mem_arena_free(&arena);
    rig_free(&rig);
}

Test(attempt, a_budget_ends_the_sweep_there_at_the_end_of_a_block)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    struct mem_arena *arena = mem_arena_new(0);
    struct model_sweep row;
    /* Each attempt takes two seconds: the budget is used up within the eighth block. */
    int64_t sweep = rig_sweep(rig, FILE_HEAD "jobs: [1, 2]\n"
                                             "repeat: {warmup: 0, until: 100, budget: 1m}\n");
    int made = 0;
    while (rig_state(rig, sweep) == SWEEP_ACTIVE) {
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
        made++;
        if (made == 29) {
            json_t *s = rig_status(rig, sweep);
            cr_assert_eq(json_int(s, "eta_ns", 0), 2 * CLOCK_SEC);
            json_decref(s);
        }
    }
    cr_assert_eq(made, 32, "30 attempts, and the block is finished");
    cr_assert_eq(store_sweep_get(rig->store, sweep, arena, &row), 0);
    cr_assert_str_eq(row.end_reason, "alpha: its budget of 1m is used up");
    json_t *s = rig_status(rig, sweep);
    json_t *host = json_array_get(json_object_get(s, "hosts"), 0);
    cr_assert_eq(json_int(host, "over_budget", 0), 400 - 32);
    cr_assert_eq(json_int(host, "no_data", -1), 0);
    json_decref(s);
    mem_arena_free(&arena);
    rig_free(&rig);
}

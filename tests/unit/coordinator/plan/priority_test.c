/* Two sweeps, one host: who goes first, and what becomes of a block that is broken. */
#include "tests/unit/coordinator/plan/rig.h"

#include "coordinator/store/cells.h"
#include "coordinator/store/runs.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define SWEEP(name, rest)                                                                          \
    "sweep: " name "\n"                                                                            \
    "workload: {name: w, run: make $JFLAG}\n"                                                      \
    "variants: [{name: a, env: {X: 1}}, {name: b, env: {X: 2}}, {name: c, env: {X: 3}}]\n"         \
    "jobs: [1]\nhosts: [alpha]\n" rest

static int64_t sweep_of_head(struct rig *rig, struct rig_worker *w)
{
    rig_settle(rig);
    cr_assert(rig_head(w) != NULL);
    return rig_run(rig, rig_head(w)->order.run).sweep;
}

Test(priority, of_equals_the_oldest_is_served_until_it_is_done)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t one = rig_sweep(rig, SWEEP("one", "repeat: {warmup: 0, until: 2}\n"));
    int64_t two = rig_sweep(rig, SWEEP("two", "repeat: {warmup: 0, until: 2}\n"));
    for (int i = 0; i < 12; i++) {
        cr_assert_eq(sweep_of_head(rig, w), i < 6 ? one : two);
        json_t *s = rig_status(rig, two);
        json_t *host = json_array_get(json_object_get(s, "hosts"), 0);
        if (i < 6) {
            cr_assert_str_eq(json_str(json_object_get(host, "wait"), "owner", ""), "one/1");
        }
        json_decref(s);
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    cr_assert_eq(rig_state(rig, one), SWEEP_DONE);
    cr_assert_eq(rig_state(rig, two), SWEEP_DONE);
    rig_free(&rig);
}

Test(priority, idle_waits_for_everybody)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t idle = rig_sweep(rig, SWEEP("i", "priority: idle\nrepeat: {warmup: 0, until: 1}\n"));
    int64_t normal = rig_sweep(rig, SWEEP("n", "repeat: {warmup: 0, until: 1}\n"));
    cr_assert_eq(sweep_of_head(rig, w), idle, "it had begun");
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(sweep_of_head(rig, w), normal);
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    cr_assert_eq(sweep_of_head(rig, w), idle);
    rig_free(&rig);
}

struct seen {
    int64_t cells[64];
    int64_t ids[64];
    int64_t by[64];
    enum run_state state[64];
    uint32_t counted[64];
    size_t n;
};

static int see(const struct model_run *run, void *arg)
{
    struct seen *s = arg;
    s->cells[s->n] = run->cell;
    s->ids[s->n] = run->id;
    s->by[s->n] = run->replaced_by;
    s->state[s->n] = run->state;
    s->counted[s->n++] = run->counted;
    return 0;
}

static struct seen block(struct rig *rig, int64_t sweep, int64_t host, int64_t number)
{
    struct seen s = {.n = 0};
    cr_assert_eq(store_runs_of_block(rig->store, sweep, host, number, see, &s), 0);
    return s;
}

Test(priority, a_gate_breaks_the_block_and_it_is_drawn_again)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t low = rig_sweep(rig, SWEEP("low", "repeat: {warmup: 0, until: 4}\n"));
    /* Block 1 whole, two runs of block 2. */
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(sweep_of_head(rig, w), low);
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    rig_settle(rig); /* the third is being made */
    rig_begin(rig, w);
    int64_t gate = rig_sweep(rig, SWEEP("gate", "priority: gate\nrepeat: {warmup: 0, until: 1}\n"));
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    /* The block was over with it: nothing is broken. */
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(sweep_of_head(rig, w), gate);
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    cr_assert_eq(rig_count(rig, low, RUN_REPLACED, false), 0);
    /* One of block 3 is done, one is being made, when another comes. */
    cr_assert_eq(sweep_of_head(rig, w), low);
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    rig_settle(rig);
    rig_begin(rig, w);
    int64_t running = rig_head(w)->order.run;
    int64_t again =
        rig_sweep(rig, SWEEP("gate", "priority: gate\nrepeat: {warmup: 0, until: 1}\n"));
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    cr_assert_eq(sweep_of_head(rig, w), again);
    struct model_block row;
    cr_assert_eq(store_block_get(rig->store, low, w->id, 3, &row), 0);
    cr_assert(row.broken);
    cr_assert_eq(rig_run(rig, running).state, RUN_REPLACED);
    cr_assert_eq(rig_run(rig, running).counted, 0);
    while (rig_state(rig, low) == SWEEP_ACTIVE) {
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    struct seen first = block(rig, low, w->id, 3);
    struct seen redrawn = block(rig, low, w->id, 4);
    struct seen mirror = block(rig, low, w->id, 5);
    cr_assert_eq(redrawn.n, 3);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(first.state[i], RUN_REPLACED);
        cr_assert_eq(first.counted[i], 0);
        cr_assert_eq(first.cells[i], redrawn.cells[i], "the same order");
        cr_assert_eq(first.by[i], redrawn.ids[i], "each knows what replaced it");
        cr_assert_eq(redrawn.counted[i], 1);
        cr_assert_eq(mirror.cells[i], redrawn.cells[2 - i]);
    }
    cr_assert_eq(store_block_get(rig->store, low, w->id, 5, &row), 0);
    cr_assert_eq(row.mirror_of, 4);
    cr_assert_eq(rig_count(rig, low, RUN_DONE, false), 12);
    rig_free(&rig);
}

Test(priority, a_broken_block_is_redrawn_after_a_restart_too)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t low = rig_sweep(rig, SWEEP("low", "repeat: {warmup: 0, until: 3}\n"));
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    rig_settle(rig);
    rig_begin(rig, w); /* the second of block 1 */
    rig_sweep(rig, SWEEP("gate", "priority: gate\nrepeat: {warmup: 0, until: 1}\n"));
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    rig_settle(rig);
    rig_crash(rig);
    rig_up(rig, w);
    while (rig_state(rig, low) == SWEEP_ACTIVE) {
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    struct seen broken = block(rig, low, w->id, 1);
    struct seen redrawn = block(rig, low, w->id, 2);
    struct seen mirror = block(rig, low, w->id, 3);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(broken.state[i], RUN_REPLACED);
        cr_assert_eq(broken.by[i], redrawn.ids[i]);
        cr_assert_eq(mirror.cells[i], redrawn.cells[2 - i]);
    }
    cr_assert_eq(rig_count(rig, low, RUN_DONE, false), 9);
    rig_free(&rig);
}

Test(priority, what_waits_at_the_worker_makes_way)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 1);
    int64_t low = rig_sweep(rig, SWEEP("low", "repeat: {warmup: 0, until: 2}\n"));
    rig_settle(rig);
    cr_assert_eq(w->held_count, 2);
    rig_begin(rig, w);
    int64_t gate = rig_sweep(rig, SWEEP("gate", "priority: gate\nrepeat: {warmup: 0, until: 1}\n"));
    rig_settle(rig);
    cr_assert_eq(w->held_count, 2);
    cr_assert_eq(rig_run(rig, w->held[0].order.run).sweep, low);
    cr_assert_eq(rig_run(rig, w->held[1].order.run).sweep, gate);
    /* The block of the one being made is broken: it is not made again in its place. */
    int64_t run = w->held[0].order.run;
    rig_make(rig, w, OUTCOME_INVALID, PHASE_CHECK);
    cr_assert_eq(rig_run(rig, run).state, RUN_REPLACED);
    cr_assert_eq(rig_count(rig, low, RUN_REPLACED, false), 3);
    rig_free(&rig);
}

Test(priority, a_block_that_is_not_begun_is_not_broken)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t low = rig_sweep(rig, SWEEP("low", "repeat: {warmup: 0, until: 3}\n"));
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    cr_assert_eq(plan_draw_all(rig->plan, rig->now, low), 6);
    rig_sweep(rig, SWEEP("gate", "priority: gate\nrepeat: {warmup: 0, until: 1}\n"));
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    struct model_block row;
    cr_assert_eq(store_block_get(rig->store, low, w->id, 3, &row), 0);
    cr_assert(!row.broken);
    rig_free(&rig);
}

Test(priority, among_equals_a_begun_block_is_finished_first_after_a_restart_too)
{
    for (int crash = 0; crash < 2; crash++) {
        struct rig *rig;
        struct rig_worker *w = rig_one_host(&rig, 0);
        rig_sweep(rig, SWEEP("old", "repeat: {warmup: 0, until: 1}\n"));
        cr_assert_eq(
            plan_sweep_set(rig->plan, rig->now, "old", PLAN_SWEEP_PAUSE, NULL, "op", NULL, NULL),
            0);
        rig_settle(rig);
        w->held_count = 0; /* withdrawn at once */
        rig_down(rig, w);
        rig_up(rig, w);
        int64_t young = rig_sweep(rig, SWEEP("young", "repeat: {warmup: 0, until: 2}\n"));
        cr_assert_eq(sweep_of_head(rig, w), young);
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
        if (crash != 0) {
            rig_settle(rig);
            rig_down(rig, w);
            w->held_count = 0;
            rig_crash(rig);
            rig_up(rig, w);
        }
        cr_assert_eq(
            plan_sweep_set(rig->plan, rig->now, "old", PLAN_SWEEP_RESUME, NULL, "op", NULL, NULL),
            0);
        cr_assert_eq(sweep_of_head(rig, w), young, "its block is not over");
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
        cr_assert_neq(sweep_of_head(rig, w), young, "the older goes next");
        cr_assert_eq(rig_count(rig, young, RUN_REPLACED, false), 0);
        rig_free(&rig);
    }
}

Test(priority, warm_ups_are_not_made_again)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t low = rig_sweep(rig, SWEEP("low", "repeat: {warmup: 1, until: 1}\n"));
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    rig_settle(rig);
    rig_begin(rig, w);
    rig_sweep(rig, SWEEP("gate", "priority: gate\nrepeat: {warmup: 0, until: 1}\n"));
    while (rig_state(rig, low) == SWEEP_ACTIVE) {
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    cr_assert_eq(rig_count(rig, low, RUN_REPLACED, true), 0);
    cr_assert_eq(rig_count(rig, low, RUN_DONE, true), 3);
    rig_free(&rig);
}

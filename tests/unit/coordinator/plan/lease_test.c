/* Limits of waits: attempts past their end, hosts that stay away, restarts. */
#include "tests/unit/coordinator/plan/rig.h"

#include "common/err.h"
#include "common/mem.h"
#include "coordinator/store/attempts.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/runs.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(lease, overdue_is_said_once_with_its_age)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t sweep = rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n"
                                         "per: {alpha: {timeout: {setup: 1m, reset: 1m, run: 10m, "
                                         "check: 1m}}}\n");
    int64_t run = rig_held_run(rig, w);
    rig_begin(rig, w);
    /* From RESET on: 1m + quiet's 10m + 10m + 1m, and the slack. */
    int64_t span = 22 * CLOCK_MIN + 10 * CLOCK_MIN;
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(rig->next, rig->now.mono_ns + span);
    rig_pass(rig, span - 1);
    cr_assert(strstr(buf_str(&rig->events), "overdue") == NULL);
    rig_pass(rig, 1);
    cr_assert(strstr(buf_str(&rig->events), "overdue: past its expected end, in reset") != NULL);
    buf_reset(&rig->events);
    rig_pass(rig, CLOCK_MIN);
    cr_assert(strstr(buf_str(&rig->events), "overdue") == NULL, "once");
    json_t *s = rig_status(rig, sweep);
    json_t *host = json_array_get(json_object_get(s, "hosts"), 0);
    json_t *now = json_array_get(json_object_get(host, "now"), 0);
    cr_assert_eq(json_int(now, "overdue_ns", 0), CLOCK_MIN);
    json_decref(s);
    /* A phase that moves on is not overdue. */
    cr_assert_eq(plan_phase(rig->plan, rig->now, w->id, run, 1, PHASE_MEASURE, NULL), 0);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(rig->next, rig->now.mono_ns + 21 * CLOCK_MIN);
    /* But it does not stay for ever. */
    rig_pass(rig, 21 * CLOCK_MIN);
    cr_assert(strstr(buf_str(&rig->events), "overdue: past its expected end, in run") != NULL);
    rig_pass(rig, rig->conf.lost_after_ns);
    cr_assert_eq(rig_run(rig, run).state, RUN_NODATA);
    cr_assert_eq(rig_state(rig, sweep), SWEEP_DONE);
    cr_assert_eq(w->wire[w->wire_count - 1].kind, RIG_CANCEL);
    rig_free(&rig);
}

Test(lease, a_host_that_stays_away_is_lost_and_the_sweep_ends_without_it)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    struct rig_worker *b = rig_host(rig, "beta", "", 4000, 0);
    rig_up(rig, b);
    int64_t sweep = rig_sweep(rig, RIG_SMALL "hosts: [alpha, beta]\n");
    for (int i = 0; i < 4; i++) {
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    int64_t run = rig_held_run(rig, w);
    rig_begin(rig, w);
    rig_down(rig, w);
    for (int i = 0; i < 12; i++) {
        rig_make(rig, b, OUTCOME_OK, PHASE_CHECK);
    }
    cr_assert_eq(rig_state(rig, sweep), SWEEP_ACTIVE);
    rig_pass(rig, rig->conf.lost_after_ns - 1);
    cr_assert_eq(rig_state(rig, sweep), SWEEP_ACTIVE);
    rig_pass(rig, 1);
    cr_assert_eq(rig_state(rig, sweep), SWEEP_DONE);
    cr_assert_eq(rig_run(rig, run).state, RUN_NODATA);
    cr_assert_eq(rig_count(rig, sweep, RUN_NODATA, false), 4, "the block that was drawn");
    cr_assert_eq(rig_count(rig, sweep, RUN_DONE, false), 8, "beta's");
    json_t *s = rig_status(rig, sweep);
    json_t *host = json_array_get(json_object_get(s, "hosts"), 0);
    cr_assert_eq(json_int(host, "no_data", 0), 8);
    json_decref(s);
    /* It comes back: what it made is taken, late. */
    rig_end(rig, w, OUTCOME_OK, PHASE_CHECK);
    rig_up(rig, w);
    rig_feed(rig, w, SIZE_MAX);
    rig_settle(rig);
    cr_assert_eq(rig_run(rig, run).state, RUN_DONE);
    cr_assert_eq(rig_run(rig, run).counted, 1);
    cr_assert_eq(rig_state(rig, sweep), SWEEP_DONE);
    cr_assert_eq(w->held_count, 0);
    rig_free(&rig);
}

Test(lease, a_younger_sweep_waits_for_a_lost_host_in_its_own_time)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t old = rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    rig_settle(rig);
    rig_down(rig, w);
    rig_pass(rig, 23 * CLOCK_HOUR);
    int64_t young = rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    rig_pass(rig, CLOCK_HOUR);
    cr_assert_eq(rig_state(rig, old), SWEEP_DONE);
    cr_assert_eq(rig_state(rig, young), SWEEP_ACTIVE);
    cr_assert_eq(rig->next, rig->now.mono_ns + 23 * CLOCK_HOUR);
    rig_pass(rig, 23 * CLOCK_HOUR);
    cr_assert_eq(rig_state(rig, young), SWEEP_DONE);
    /* Nothing of it was drawn; on request it is. */
    cr_assert_eq(rig_count(rig, young, RUN_NODATA, false), 0);
    cr_assert_eq(
        plan_sweep_set(rig->plan, rig->now, "small/2", PLAN_SWEEP_RETRY, NULL, "op", NULL, NULL),
        0);
    w->held_count = 0;
    rig_up(rig, w);
    while (rig_state(rig, young) == SWEEP_ACTIVE) {
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    cr_assert_eq(rig_count(rig, young, RUN_DONE, false), 8);
    rig_free(&rig);
}

Test(lease, a_lost_host_that_still_runs_may_finish)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    for (int i = 0; i < 4; i++) {
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    int64_t run = rig_held_run(rig, w);
    rig_begin(rig, w);
    rig_down(rig, w);
    rig_pass(rig, rig->conf.lost_after_ns);
    cr_assert_eq(rig_run(rig, run).state, RUN_NODATA);
    rig_up(rig, w);
    rig_settle(rig);
    cr_assert_eq(rig_head(w)->state, PLAN_HELD_RUNNING, "it is not cancelled");
    rig_end(rig, w, OUTCOME_OK, PHASE_CHECK);
    rig_feed(rig, w, SIZE_MAX);
    rig_settle(rig);
    cr_assert_eq(rig_run(rig, run).counted, 1);
    rig_free(&rig);
}

Test(lease, after_a_restart_the_wait_begins_anew)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t sweep = rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    rig_held_run(rig, w);
    rig_down(rig, w);
    rig_pass(rig, rig->conf.lost_after_ns - 1);
    rig_crash(rig);
    rig->now.wall_ns += 400 * CLOCK_DAY; /* the clock was stepped */
    rig_pass(rig, rig->conf.lost_after_ns - 1);
    cr_assert_eq(rig_state(rig, sweep), SWEEP_ACTIVE);
    rig_pass(rig, 1);
    cr_assert_eq(rig_state(rig, sweep), SWEEP_DONE);
    rig_free(&rig);
}

/* A sweep over a fleet: handing out, reconnection, failures, cancel and retry. */
#include "tests/unit/coordinator/plan/rig.h"

#include <criterion/criterion.h>
#include <string.h>

#define SMALL                                                                                      \
    "sweep: small\n"                                                                               \
    "workload: {name: w, setup: make config, run: make $JFLAG}\n"                                  \
    "variants: [{name: a, env: {X: 1}}, {name: b, env: {X: 2}}]\n"                                 \
    "jobs: [1, 2]\n"                                                                               \
    "repeat: {warmup: 1, until: 2}\n"

Test(fleet, a_sweep_runs_to_its_end)
{
    struct rig *rig = rig_new();
    struct rig_worker *w = rig_host(rig, "alpha", "p6", 4000, INT64_C(1) << 30);
    rig_up(rig, w);
    int64_t sweep = rig_sweep(rig, SMALL "hosts: [alpha]\n");
    int made = 0;
    while (rig_state(rig, sweep) == SWEEP_ACTIVE) {
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
        cr_assert_lt(++made, 100);
    }
    cr_assert_eq(made, 4 + 8);
    cr_assert_eq(rig_count(rig, sweep, RUN_DONE, false), 8);
    cr_assert_eq(rig_count(rig, sweep, RUN_DONE, true), 4);
    cr_assert_eq(w->held_count, 0);
    json_t *s = rig_status(rig, sweep);
    cr_assert_eq(json_int(s, "wanted", 0), 8);
    cr_assert_eq(json_int(s, "have", 0), 8);
    cr_assert_eq(json_int(s, "eta_ns", -1), 0);
    json_decref(s);
    rig_free(&rig);
}

/* What happens between a fleet and the planner: links, what a worker holds, refusals. */
#include "tests/unit/coordinator/plan/rig.h"

#include "common/err.h"
#include "common/mem.h"
#include "coordinator/store/attempts.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/runs.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(fleet, a_sweep_runs_to_its_end)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t sweep = rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
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
    cr_assert(strstr(buf_str(&rig->events), "sweep-ended: small/1 is done") != NULL);
    rig_free(&rig);
}

Test(fleet, one_is_held_in_advance_and_no_more)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    w->room = 5;
    rig_down(rig, w);
    rig_up(rig, w);
    rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    rig_settle(rig);
    cr_assert_eq(w->held_count, 2);
    cr_assert_eq(rig->assigned, 2);
    rig_free(&rig);
}

Test(fleet, warm_ups_come_first_and_a_pair_of_blocks_is_mirrored)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t cells[12];
    rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    for (int i = 0; i < 12; i++) {
        rig_settle(rig);
        cr_assert_eq(rig_head(w)->order.warmup, i < 4);
        cr_assert_eq(rig_head(w)->order.slot, i);
        cr_assert_eq(rig_head(w)->order.block, i / 4);
        cells[i] = rig_head(w)->order.cell;
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(cells[i], cells[4 + i], "warm-ups have the order of block 1");
        cr_assert_eq(cells[4 + i], cells[11 - i], "block 2 is block 1 backwards");
    }
    rig_free(&rig);
}

Test(fleet, nothing_leaves_before_the_commit)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    rig_settle(rig);
    rig_begin(rig, w);
    rig_end(rig, w, OUTCOME_OK, PHASE_CHECK);
    rig_feed(rig, w, SIZE_MAX);
    size_t before = rig->assigned;
    plan_turn(rig->plan, rig->now);
    cr_assert_eq(rig->assigned, before);
    rig_roll_back(rig, -ERR_FULL);
    cr_assert_eq(rig->assigned, before);
    cr_assert_eq(w->held_count, 1, "its records are still at the worker");
    rig_up(rig, w);
    rig_feed(rig, w, SIZE_MAX);
    rig_settle(rig);
    cr_assert_eq(rig->assigned, before + 1);
    rig_free(&rig);
}

/* A lost turn in which nothing of this link was: the link stays. */
static void lose_turn(struct rig *rig)
{
    plan_turn(rig->plan, rig->now);
    store_rollback(rig->store);
    ingest_rolled_back(rig->ingest);
    cr_assert_eq(plan_rolled_back(rig->plan, rig->now, -ERR_FULL), 0);
}

Test(fleet, a_lost_turn_is_made_again_over_the_same_link)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    w->room = 1;
    rig_down(rig, w);
    rig_up(rig, w);
    int64_t sweep = rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    cr_assert_eq(
        plan_sweep_set(rig->plan, rig->now, "small", PLAN_SWEEP_PAUSE, NULL, "op", NULL, NULL), 0);
    rig_settle(rig);
    cr_assert_eq(w->held_count, 0);
    plan_ready(rig->plan, rig->now, w->id, 2);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(
        plan_sweep_set(rig->plan, rig->now, "small", PLAN_SWEEP_RESUME, NULL, "op", NULL, NULL), 0);
    size_t before = rig->assigned;
    lose_turn(rig);
    cr_assert_eq(rig->assigned, before, "nothing left");
    cr_assert_eq(rig_state(rig, sweep), SWEEP_PAUSED);
    cr_assert_eq(
        plan_sweep_set(rig->plan, rig->now, "small", PLAN_SWEEP_RESUME, NULL, "op", NULL, NULL), 0);
    rig_settle(rig);
    cr_assert_eq(w->held_count, 2, "there is room for both again");
    /* A withdrawal that was lost with its turn is sent with the next. */
    cr_assert_eq(
        plan_sweep_set(rig->plan, rig->now, "small", PLAN_SWEEP_PAUSE, NULL, "op", NULL, NULL), 0);
    lose_turn(rig);
    cr_assert_eq(w->wire_count, 0);
    cr_assert_eq(
        plan_sweep_set(rig->plan, rig->now, "small", PLAN_SWEEP_PAUSE, NULL, "op", NULL, NULL), 0);
    rig_settle(rig);
    cr_assert_eq(w->held_count, 0);
    rig_free(&rig);
}

Test(fleet, what_is_not_taken_in_time_is_sent_again)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(w->wire_count, 1);
    int64_t run = w->wire[0].run;
    w->wire_count = 0; /* lost in a worker that hangs */
    cr_assert_eq(rig->next, rig->now.mono_ns + rig->conf.take_ns);
    rig_pass(rig, rig->conf.take_ns - 1);
    cr_assert_eq(rig_run(rig, run).state, RUN_SENT);
    rig_pass(rig, 1);
    cr_assert_eq(rig_run(rig, run).state, RUN_QUEUED);
    cr_assert_eq(w->wire[0].kind, RIG_WITHDRAW);
    plan_ready(rig->plan, rig->now, w->id, 1);
    cr_assert_eq(rig_turn(rig), 0);
    struct model_run again = rig_run(rig, run);
    cr_assert_eq(again.state, RUN_SENT);
    cr_assert_eq(again.attempts, 2);
    rig_free(&rig);
}

Test(fleet, a_taken_that_comes_late_takes_the_run_up_again)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    cr_assert_eq(rig_turn(rig), 0);
    struct rig_message m = w->wire[0];
    w->wire_count = 0;
    rig_pass(rig, rig->conf.take_ns);
    cr_assert_eq(rig_run(rig, m.run).state, RUN_QUEUED);
    cr_assert_eq(plan_taken(rig->plan, rig->now, w->id, m.run, m.attempt), 0);
    cr_assert_eq(rig_run(rig, m.run).state, RUN_RUNNING);
    w->held[0] = (struct rig_held){.order = m, .state = PLAN_HELD_QUEUED};
    w->held_count = 1;
    while (rig_deliver(rig, w)) { /* the WITHDRAW that was on its way */
    }
    cr_assert_eq(rig_run(rig, m.run).state, RUN_QUEUED, "it was withdrawn in time");
    rig_settle(rig);
    cr_assert_eq(rig_run(rig, m.run).attempts, 2);
    rig_free(&rig);
}

Test(fleet, a_link_that_drops_does_not_touch_the_run)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t sweep = rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    int64_t run = rig_held_run(rig, w);
    rig_begin(rig, w);
    rig_down(rig, w);
    rig_pass(rig, 10 * CLOCK_MIN);
    cr_assert_eq(rig_run(rig, run).state, RUN_RUNNING);
    json_t *s = rig_status(rig, sweep);
    json_t *host = json_array_get(json_object_get(s, "hosts"), 0);
    json_t *now = json_array_get(json_object_get(host, "now"), 0);
    cr_assert_str_eq(json_str(now, "state", ""), "unreachable");
    cr_assert_eq(json_int(now, "age_ns", 0), 10 * CLOCK_MIN);
    cr_assert_str_eq(json_str(json_object_get(host, "wait"), "owner", ""), "alpha");
    json_decref(s);
    rig_end(rig, w, OUTCOME_OK, PHASE_CHECK);
    rig_up(rig, w);
    rig_feed(rig, w, SIZE_MAX);
    rig_settle(rig);
    cr_assert_eq(rig_run(rig, run).state, RUN_DONE);
    cr_assert_eq(rig_run(rig, run).attempts, 1, "it was made once");
    rig_free(&rig);
}

Test(fleet, what_the_worker_lost_is_queued_again)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    cr_assert_eq(rig_turn(rig), 0);
    int64_t run = w->wire[0].run;
    rig_down(rig, w); /* the assignment is lost on the wire */
    cr_assert_eq(rig_turn(rig), 0);
    rig_pass(rig, 5 * CLOCK_MIN);
    cr_assert_eq(rig_run(rig, run).state, RUN_SENT, "only the worker can say");
    rig_up(rig, w);
    cr_assert_eq(rig_run(rig, run).state, RUN_QUEUED);
    rig_settle(rig);
    cr_assert_eq(rig_head(w)->order.run, run);
    cr_assert_eq(rig_head(w)->order.attempt, 2, "the number of an attempt is used once");
    rig_free(&rig);
}

Test(fleet, a_coordinator_that_dies_attaches_its_workers_again)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t sweep = rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    int64_t run = rig_held_run(rig, w);
    rig_begin(rig, w);
    rig_crash(rig);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(rig_run(rig, run).state, RUN_RUNNING);
    rig_up(rig, w);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(rig_run(rig, run).state, RUN_RUNNING);
    rig_end(rig, w, OUTCOME_OK, PHASE_CHECK);
    rig_feed(rig, w, SIZE_MAX);
    rig_settle(rig);
    cr_assert_eq(rig_run(rig, run).state, RUN_DONE);
    cr_assert_eq(rig_run(rig, run).attempts, 1);
    while (rig_state(rig, sweep) == SWEEP_ACTIVE) {
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    cr_assert_eq(rig_count(rig, sweep, RUN_DONE, false), 8);
    rig_free(&rig);
}

Test(fleet, a_result_whose_acknowledgement_was_lost_is_not_waited_for)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    rig_sweep(rig, RIG_SMALL "retry: {invalid: 1}\nhosts: [alpha]\n");
    for (int i = 0; i < 4; i++) {
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    int64_t run = rig_held_run(rig, w);
    rig_begin(rig, w);
    rig_end(rig, w, OUTCOME_INVALID, PHASE_CHECK);
    struct rig_held spooled = w->held[0];
    plan_ready(rig->plan, rig->now, w->id, 0);
    rig_feed(rig, w, SIZE_MAX);
    cr_assert_eq(rig_turn(rig), 0); /* committed; the ACK is lost with the link */
    rig_down(rig, w);
    cr_assert_eq(rig_turn(rig), 0);
    w->held[0] = spooled;
    w->held_count = 1;
    struct plan_held held = {run, spooled.order.attempt, PLAN_HELD_SPOOLED, PHASE_IDLE};
    struct plan_hello hello = {
        .boot_id = w->boot, .version = "1", .room = 1, .held = &held, .held_count = 1};
    w->up = true;
    cr_assert_eq(plan_host_up(rig->plan, rig->now, w->id, &hello, NULL), 0);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(rig_run(rig, run).state, RUN_SENT, "the next attempt is under way");
    cr_assert_eq(rig_run(rig, run).attempts, 2);
    rig_free(&rig);
}

Test(fleet, an_attempt_that_was_given_up_counts_when_it_comes)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    w->room = 1;
    int64_t sweep = rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    for (int i = 0; i < 4; i++) {
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    int64_t run = rig_held_run(rig, w);
    struct rig_held lost = w->held[0];
    rig_down(rig, w);
    w->held_count = 0; /* its journal is gone, as it seems */
    rig_up(rig, w);
    rig_settle(rig);
    cr_assert_eq(rig_head(w)->order.run, run);
    cr_assert_eq(rig_head(w)->order.attempt, 2);
    rig_begin(rig, w);
    /* But the first attempt was made, and arrives. */
    lost.state = PLAN_HELD_SPOOLED;
    lost.outcome = OUTCOME_OK;
    lost.phase = PHASE_CHECK;
    w->held[w->held_count++] = lost;
    rig_feed(rig, w, SIZE_MAX);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(rig_run(rig, run).state, RUN_DONE);
    cr_assert_eq(rig_run(rig, run).counted, 1);
    bool cancelled = false;
    for (size_t i = 0; i < w->wire_count; i++) {
        cancelled = cancelled || (w->wire[i].kind == RIG_CANCEL && w->wire[i].run == run &&
                                  w->wire[i].attempt == 2);
    }
    cr_assert(cancelled, "the second is called off");
    rig_settle(rig);
    rig_feed(rig, w, SIZE_MAX);
    rig_settle(rig);
    cr_assert_eq(rig_run(rig, run).counted, 1);
    struct mem_arena *arena = mem_arena_new(0);
    struct model_attempt a;
    cr_assert_eq(store_attempt_get(rig->store, run, 1, arena, &a), 0);
    cr_assert(a.late);
    mem_arena_free(&arena);
    while (rig_state(rig, sweep) == SWEEP_ACTIVE) {
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    rig_free(&rig);
}

Test(fleet, what_was_never_handed_out_is_turned_away)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    struct rig_worker *other = rig_host(rig, "beta", "", 4000, 0);
    rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    int64_t run = rig_held_run(rig, w);
    struct plan_held ahead = {run, 5, PLAN_HELD_RUNNING, PHASE_MEASURE};
    struct plan_hello own = {.boot_id = w->boot, .version = "1", .held = &ahead, .held_count = 1};
    w->wire_count = 0;
    cr_assert_eq(plan_host_up(rig->plan, rig->now, w->id, &own, NULL), 0);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(w->wire_count, 1);
    cr_assert_eq(w->wire[0].kind, RIG_CANCEL);
    cr_assert(strstr(buf_str(&rig->events), "refused: holds attempt 5") != NULL);
    rig_down(rig, w);
    rig_up(rig, w);
    rig_settle(rig);
    run = rig_head(w)->order.run;
    struct plan_held held[] = {{run, 1, PLAN_HELD_RUNNING, PHASE_MEASURE},
                               {999, 1, PLAN_HELD_QUEUED, PHASE_IDLE},
                               {998, 1, PLAN_HELD_SPOOLED, PHASE_IDLE}};
    struct plan_hello hello = {
        .boot_id = "x", .version = "1", .room = 1, .held = held, .held_count = 3};
    other->up = true;
    cr_assert_eq(plan_host_up(rig->plan, rig->now, other->id, &hello, NULL), 0);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(other->wire_count, 2);
    cr_assert_eq(other->wire[0].kind, RIG_CANCEL);
    cr_assert_eq(other->wire[0].run, run);
    cr_assert_eq(other->wire[1].kind, RIG_WITHDRAW);
    cr_assert(strstr(buf_str(&rig->events), "refused: holds attempt 1 of run 999") != NULL);
    cr_assert_eq(rig_run(rig, run).state, RUN_RUNNING, "the host that has it goes on");
    rig_free(&rig);
}

Test(fleet, a_worker_that_will_not_ends_its_cells)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t sweep = rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    for (int made = 0; rig_state(rig, sweep) == SWEEP_ACTIVE; made++) {
        cr_assert_lt(made, 20);
        rig_settle(rig);
        struct rig_message m = w->held[0].order;
        w->held_count = 0;
        cr_assert_eq(plan_refused(rig->plan, rig->now, w->id, m.run, m.attempt, ERR_DENIED,
                                  "its configuration allows no setup"),
                     0);
        plan_ready(rig->plan, rig->now, w->id, 1);
        cr_assert_eq(rig_turn(rig), 0);
    }
    cr_assert_eq(rig->assigned, 2, "once a variant");
    cr_assert_eq(rig_count(rig, sweep, RUN_SKIPPED, true), 4);
    json_t *s = rig_status(rig, sweep);
    json_t *cell = json_array_get(json_object_get(s, "cells"), 0);
    cr_assert_str_eq(json_str(cell, "state", ""), "skipped");
    json_t *host = json_array_get(json_object_get(s, "hosts"), 0);
    cr_assert_eq(json_int(host, "skipped_runs", 0), 4);
    cr_assert_str_eq(json_str(cell, "reason", ""),
                     "the worker refuses: its configuration allows no setup");
    json_decref(s);
    rig_free(&rig);
}

Test(fleet, a_worker_without_room_gets_nothing_until_it_says_so)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t sweep = rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    cr_assert_eq(rig_turn(rig), 0);
    struct rig_message m = w->wire[0];
    w->wire_count = 0;
    plan_ready(rig->plan, rig->now, w->id, 3); /* so it had said */
    cr_assert_eq(plan_refused(rig->plan, rig->now, w->id, m.run, m.attempt, ERR_BUSY, "disk full"),
                 0);
    rig_pass(rig, CLOCK_HOUR);
    cr_assert_eq(rig->assigned, 1);
    json_t *s = rig_status(rig, sweep);
    json_t *wait = json_object_get(json_array_get(json_object_get(s, "hosts"), 0), "wait");
    cr_assert_str_eq(json_str(wait, "for", ""), "room at the worker");
    json_decref(s);
    plan_ready(rig->plan, rig->now, w->id, 1);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(rig->assigned, 2);
    rig_free(&rig);
}

Test(fleet, away_is_committed_before_the_worker_may_go)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    int64_t run = rig_held_run(rig, w);
    rig_begin(rig, w);
    cr_assert_eq(plan_away(rig->plan, rig->now, w->id, run, 1, CLOCK_MIN, "reboot"), 0);
    cr_assert_eq(w->wire_count, 0);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(w->wire[0].kind, RIG_AWAY_OK);
    cr_assert_eq(rig_run(rig, run).state, RUN_AWAY);
    rig_down(rig, w);
    rig_up(rig, w); /* it holds it still */
    cr_assert_eq(rig_run(rig, run).state, RUN_RUNNING);
    cr_assert_eq(plan_away(rig->plan, rig->now, w->id, run, 2, CLOCK_MIN, "reboot"), -ERR_NOTFOUND);
    rig_free(&rig);
}

Test(fleet, ready_does_not_count_what_is_on_its_way)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(rig->assigned, 1);
    plan_ready(rig->plan, rig->now, w->id, 1); /* said before the assignment arrived */
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(rig->assigned, 1);
    rig_free(&rig);
}

/* Its link never counted: nobody will say that it is gone. */
Test(fleet, a_greeting_that_cannot_be_stored_leaves_no_link)
{
    struct rig *rig = rig_new();
    struct rig_worker *w = rig_host(rig, "alpha", "", 4000, 0);
    struct plan_hello hello = {.boot_id = "b", .version = "1", .room = 1};
    struct buf text = BUF_INIT;
    cr_assert_eq(rig_turn(rig), 0);
    rig->event_code = -ERR_FULL;
    cr_assert_lt(plan_host_up(rig->plan, rig->now, w->id, &hello, NULL), 0);
    rig->event_code = 0;
    rig_roll_back(rig, -ERR_FULL);
    cr_assert_eq(plan_status_hosts(rig->plan, rig->now, NULL, &text, NULL), 0);
    cr_expect(strstr(buf_str(&text), "alpha") != NULL, "%s", buf_str(&text));
    cr_expect(strstr(buf_str(&text), "\"up\"") == NULL, "%s", buf_str(&text));
    buf_fini(&text);
    rig_free(&rig);
}

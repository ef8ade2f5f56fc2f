/* What an admin changes about hosts, and hosts that share a machine. */
#include "tests/unit/coordinator/plan/rig.h"

#include "common/err.h"
#include "common/mem.h"
#include "coordinator/store/attempts.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/runs.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(admin, one_machine_runs_one_attempt_at_a_time)
{
    struct rig *rig = rig_new();
    struct rig_worker *a = rig_host(rig, "alpha", "all", 4000, 0);
    struct rig_worker *b = rig_host(rig, "beta", "all", 4000, 0);
    snprintf(a->boot, sizeof(a->boot), "same");
    snprintf(b->boot, sizeof(b->boot), "same");
    a->room = b->room = 3;
    rig_up(rig, a);
    rig_up(rig, b);
    int64_t sweep = rig_sweep(rig, RIG_SMALL "hosts: [\"class:all\"]\n");
    int made[2] = {0, 0};
    while (rig_state(rig, sweep) == SWEEP_ACTIVE) {
        rig_settle(rig);
        cr_assert(rig_head(a) == NULL || rig_head(b) == NULL, "both hold something");
        struct rig_worker *w = rig_head(a) != NULL ? a : b;
        cr_assert(rig_head(w) != NULL);
        made[w == b]++;
        cr_assert(abs(made[0] - made[1]) <= 1, "they take turns");
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    cr_assert_eq(made[0], 12);
    cr_assert_eq(made[1], 12);
    rig_free(&rig);
}

Test(admin, a_host_away_keeps_its_machine_until_its_time_is_over)
{
    struct rig *rig = rig_new();
    struct rig_worker *a = rig_host(rig, "alpha", "all", 4000, 0);
    struct rig_worker *b = rig_host(rig, "beta", "all", 4000, 0);
    snprintf(a->boot, sizeof(a->boot), "same");
    snprintf(b->boot, sizeof(b->boot), "same");
    rig_up(rig, a);
    rig_up(rig, b);
    rig_sweep(rig, RIG_SMALL "hosts: [\"class:all\"]\n");
    rig_settle(rig);
    struct rig_worker *holder = rig_head(a) != NULL ? a : b;
    struct rig_worker *other = holder == a ? b : a;
    rig_begin(rig, holder);
    rig_down(rig, holder);
    size_t before = rig->assigned;
    rig_pass(rig, CLOCK_HOUR);
    cr_assert_eq(rig->assigned, before, "it may still be measuring");
    rig_pass(rig, 4 * CLOCK_HOUR);
    cr_assert_eq(rig->assigned, before + 2, "one, and one in advance");
    cr_assert_eq(other->wire_count, 2);
    rig_free(&rig);
}

Test(admin, a_host_that_is_drained_finishes_and_takes_no_more)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t id;
    w->room = 1;
    rig_down(rig, w);
    rig_up(rig, w);
    rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    rig_settle(rig);
    cr_assert_eq(w->held_count, 2);
    rig_begin(rig, w);
    cr_assert_eq(
        plan_host_set(rig->plan, rig->now, "alpha", PLAN_HOST_DRAIN, NULL, "op", &id, NULL), 0);
    cr_assert_eq(id, w->id);
    rig_settle(rig);
    cr_assert_eq(w->held_count, 1, "what had not begun is withdrawn");
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    cr_assert_eq(w->held_count, 0);
    cr_assert_eq(
        plan_host_set(rig->plan, rig->now, "alpha", PLAN_HOST_RESUME, NULL, "op", NULL, NULL), 0);
    rig_settle(rig);
    cr_assert_eq(w->held_count, 2);
    rig_free(&rig);
}

Test(admin, labels_and_their_mistakes)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    struct diag *diag = diag_new(8);
    struct mem_arena *arena = mem_arena_new(0);
    struct model_host row;
    cr_assert_eq(
        plan_host_set(rig->plan, rig->now, "alpha", PLAN_HOST_LABEL, "quad", "op", NULL, diag), 0);
    cr_assert_eq(
        plan_host_set(rig->plan, rig->now, "alpha", PLAN_HOST_UNLABEL, "p6", "op", NULL, diag), 0);
    cr_assert_eq(store_host_get(rig->store, w->id, arena, &row), 0);
    cr_assert_eq(row.class_count, 1);
    cr_assert_str_eq(row.classes[0], "quad");
    cr_assert_eq(
        plan_host_set(rig->plan, rig->now, "alpha", PLAN_HOST_LABEL, "no name", "op", NULL, diag),
        -ERR_INVAL);
    cr_assert_eq(
        plan_host_set(rig->plan, rig->now, "alpha", PLAN_HOST_UNLABEL, "p6", "op", NULL, diag),
        -ERR_NOTFOUND);
    cr_assert_eq(
        plan_host_set(rig->plan, rig->now, "nobody", PLAN_HOST_DRAIN, NULL, "op", NULL, diag),
        -ERR_NOTFOUND);
    cr_assert_eq(diag_errors(diag), 3);
    cr_assert_eq(plan_failed(rig->plan), 0, "mistakes of an admin fail no turn");
    mem_arena_free(&arena);
    diag_free(&diag);
    rig_free(&rig);
}

Test(admin, a_revoked_host_loses_its_runs_and_does_not_come_back)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t sweep = rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    int64_t run = rig_held_run(rig, w);
    cr_assert_eq(
        plan_host_set(rig->plan, rig->now, "alpha", PLAN_HOST_REVOKE, NULL, "op", NULL, NULL), 0);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(rig_run(rig, run).state, RUN_NODATA);
    cr_assert_eq(rig_state(rig, sweep), SWEEP_DONE);
    rig_down(rig, w);
    struct diag *diag = diag_new(4);
    struct plan_hello hello = {.boot_id = "x", .version = "1"};
    cr_assert_eq(plan_host_up(rig->plan, rig->now, w->id, &hello, diag), -ERR_DENIED);
    cr_assert_str_eq(diag_first(diag), "host `alpha` was revoked");
    cr_assert_eq(plan_host_up(rig->plan, rig->now, 777, &hello, diag), -ERR_NOTFOUND);
    diag_free(&diag);
    rig_free(&rig);
}

static json_t *status_of_host(struct rig *rig, const char *name, json_t **doc)
{
    struct buf out = BUF_INIT;
    cr_assert_eq(plan_status_hosts(rig->plan, rig->now, name, &out, NULL), 0);
    *doc = json_parse("hosts", buf_str(&out), out.len, NULL);
    cr_assert(*doc != NULL);
    buf_fini(&out);
    return json_array_get(json_object_get(*doc, "hosts"), 0);
}

Test(admin, a_host_that_is_revoked_in_the_middle_of_a_run_is_not_busy)
{
    struct rig *rig;
    struct rig_worker *w = rig_one_host(&rig, 0);
    int64_t sweep = rig_sweep(rig, RIG_SMALL "hosts: [alpha]\n");
    int64_t run = rig_held_run(rig, w);
    rig_begin(rig, w);
    cr_assert_eq(
        plan_host_set(rig->plan, rig->now, "alpha", PLAN_HOST_REVOKE, NULL, "op", NULL, NULL), 0);
    /* What it says in the same turn changes nothing. */
    cr_assert_eq(plan_phase(rig->plan, rig->now, w->id, run, 1, PHASE_MEASURE, NULL), 0);
    plan_ready(rig->plan, rig->now, w->id, 3);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(w->wire[w->wire_count - 1].kind, RIG_CANCEL);
    rig_down(rig, w);
    rig_pass(rig, CLOCK_SEC);
    json_t *doc;
    json_t *host = status_of_host(rig, "alpha", &doc);
    cr_assert_str_eq(json_str(host, "state", ""), "revoked");
    cr_assert_str_eq(json_str(host, "link", ""), "down");
    cr_assert_eq(json_array_size(json_object_get(host, "now")), 0, "it does nothing");
    json_decref(doc);
    doc = rig_status(rig, sweep);
    host = json_array_get(json_object_get(doc, "hosts"), 0);
    cr_assert_eq(json_array_size(json_object_get(host, "now")), 0);
    cr_assert_eq(json_int(host, "no_data", 0), 8);
    cr_assert_str_eq(json_str(host, "lost", ""), "the host was revoked");
    cr_assert_str_eq(json_str(doc, "end_reason", ""), "alpha: the host was revoked");
    json_decref(doc);
    cr_assert_eq(rig->next, INT64_MAX, "nothing is waited for");
    rig_free(&rig);
}

/* The machine is free at once for another worker on it, and the sweep goes on there. */
Test(admin, a_revoked_host_leaves_the_sweep_to_the_others)
{
    struct rig *rig = rig_new();
    struct rig_worker *a = rig_host(rig, "alpha", "all", 4000, 0);
    struct rig_worker *b = rig_host(rig, "beta", "all", 4000, 0);
    snprintf(a->boot, sizeof(a->boot), "same");
    snprintf(b->boot, sizeof(b->boot), "same");
    rig_up(rig, a);
    rig_up(rig, b);
    int64_t sweep = rig_sweep(rig, RIG_SMALL "hosts: [\"class:all\"]\n");
    rig_settle(rig);
    struct rig_worker *gone = rig_head(a) != NULL ? a : b;
    struct rig_worker *other = gone == a ? b : a;
    rig_begin(rig, gone);
    cr_assert_eq(
        plan_host_set(rig->plan, rig->now, gone->name, PLAN_HOST_REVOKE, NULL, "op", NULL, NULL),
        0);
    cr_assert_eq(rig_turn(rig), 0);
    rig_down(rig, gone);
    int made = 0;
    while (rig_state(rig, sweep) == SWEEP_ACTIVE) {
        rig_make(rig, other, OUTCOME_OK, PHASE_CHECK);
        made++;
    }
    cr_assert_eq(made, 12);
    json_t *s = rig_status(rig, sweep);
    cr_assert_eq(json_int(s, "have", 0), 8);
    char want[128];
    snprintf(want, sizeof(want), "%s: the host was revoked", gone->name);
    cr_assert_str_eq(json_str(s, "end_reason", ""), want);
    json_decref(s);
    /* It is not waited for again, but a retry says so. */
    struct diag *diag = diag_new(4);
    cr_assert_eq(plan_sweep_set(rig->plan, rig->now, "small", PLAN_SWEEP_RETRY, NULL, "op", NULL,
                                diag),
                 -ERR_STATE);
    snprintf(want, sizeof(want), "host `%s` was revoked: its runs are not made again", gone->name);
    cr_assert_str_eq(diag_get(diag, 0)->text, want);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(rig_state(rig, sweep), SWEEP_DONE);
    diag_free(&diag);
    rig_free(&rig);
}

Test(admin, clones_are_a_warning)
{
    struct rig *rig;
    rig_one_host(&rig, 0);
    struct rig_worker *b = rig_host(rig, "beta", "", 4000, 0);
    struct diag *diag = diag_new(4);
    struct plan_hello hello = {.boot_id = "y", .machine_id = "alpha", .version = "1"};
    cr_assert_eq(plan_host_up(rig->plan, rig->now, b->id, &hello, diag), 0);
    cr_assert_eq(diag_count(diag), 1);
    cr_assert(strstr(diag_get(diag, 0)->text, "`alpha` has the same machine id") != NULL);
    diag_free(&diag);
    rig_free(&rig);
}

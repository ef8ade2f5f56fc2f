/* What the planner says of itself: members that are promised in status.h, waits with their owners. */
#include "tests/unit/coordinator/plan/rig.h"

#include "common/err.h"
#include "coordinator/plan/tally.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/runs.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define SWEEP                                                                                      \
    "sweep: s\n"                                                                                   \
    "workload: {name: w, run: make $JFLAG}\n"                                                      \
    "variants: [{name: a, env: {X: 1}}, {name: b, env: {X: 2}}]\n"                                 \
    "hosts: [alpha, beta]\njobs: [none, 2]\nrepeat: {warmup: 1, until: 3}\n"

static void has_members(const json_t *o, const char *const *names)
{
    for (; *names != NULL; names++) {
        cr_assert(json_object_get(o, *names) != NULL, "no \"%s\"", *names);
    }
}

static struct rig *two_hosts(void)
{
    struct rig *rig = rig_new();
    rig_host(rig, "alpha", "all", 4000, 0);
    rig_host(rig, "beta", "all", 1500, 0);
    return rig;
}

Test(status, of_a_sweep_has_what_is_promised)
{
    static const char *const sweep[] = {"schema",
                                        "id",
                                        "sweep",
                                        "state",
                                        "priority",
                                        "file",
                                        "submitted_by",
                                        "submitted_wall_ns",
                                        "ended_wall_ns",
                                        "end_reason",
                                        "because",
                                        "wanted",
                                        "have",
                                        "failed",
                                        "eta_ns",
                                        "hosts",
                                        "cells",
                                        NULL};
    static const char *const host[] = {
        "host",           "selector",     "skipped", "finished", "wanted",    "have",
        "warmups_wanted", "warmups_have", "failed",  "no_data",  "cancelled", "skipped_runs",
        "used_ns",        "mean_ns",      "eta_ns",  "wait",     "now",       "lost",
        NULL};
    static const char *const now[] = {"run",  "attempt", "workload",   "variant",
                                      "jobs", "warmup",  "state",      "phase",
                                      "text", "age_ns",  "overdue_ns", NULL};
    static const char *const cell[] = {"host",   "workload", "variant",      "jobs",
                                       "state",  "reason",   "wanted",       "have",
                                       "failed", "invalid",  "real_mean_ns", NULL};
    struct rig *rig = two_hosts();
    struct rig_worker *w = &rig->workers[0];
    rig_up(rig, w);
    int64_t id = rig_sweep(rig, SWEEP);
    for (int i = 0; i < 5; i++) {
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    rig_settle(rig);
    rig_begin(rig, w);
    cr_assert_eq(plan_phase(rig->plan, rig->now, w->id, rig_head(w)->order.run, 1, PHASE_SETTLE,
                            "the lock, which pid 7 holds"),
                 0);
    rig_pass(rig, 7 * CLOCK_SEC);
    json_t *s = rig_status(rig, id);
    has_members(s, sweep);
    cr_assert_eq(json_int(s, "schema", 0), 1);
    cr_assert_str_eq(json_str(s, "sweep", ""), "s/1");
    cr_assert_eq(json_int(s, "wanted", 0), 24);
    cr_assert_eq(json_int(s, "have", 0), 1);
    cr_assert(json_is_null(json_object_get(s, "eta_ns")), "nothing is known of beta");
    json_t *h = json_array_get(json_object_get(s, "hosts"), 0);
    has_members(h, host);
    cr_assert_eq(json_int(h, "wanted", 0), 12);
    cr_assert_eq(json_int(h, "warmups_have", 0), 4);
    cr_assert_eq(json_int(h, "mean_ns", 0), 3 * CLOCK_SEC);
    cr_assert_eq(json_int(h, "eta_ns", 0), 11 * 3 * CLOCK_SEC);
    cr_assert_eq(json_int(h, "used_ns", 0), 5 * 2 * CLOCK_SEC);
    cr_assert(json_is_null(json_object_get(h, "wait")));
    json_t *n = json_array_get(json_object_get(h, "now"), 0);
    has_members(n, now);
    cr_assert_str_eq(json_str(n, "state", ""), "running");
    cr_assert_str_eq(json_str(n, "phase", ""), "settle");
    cr_assert_str_eq(json_str(n, "text", ""), "the lock, which pid 7 holds");
    cr_assert_eq(json_int(n, "age_ns", 0), 7 * CLOCK_SEC);
    cr_assert_str_eq(json_str(json_array_get(json_object_get(h, "now"), 1), "state", ""), "queued");
    h = json_array_get(json_object_get(s, "hosts"), 1);
    cr_assert_str_eq(json_str(json_object_get(h, "wait"), "for", ""), "the host's connection");
    cr_assert_eq(json_int(json_object_get(h, "wait"), "age_ns", 0), 7 * CLOCK_SEC);
    json_t *cells = json_object_get(s, "cells");
    cr_assert_eq(json_array_size(cells), 8);
    has_members(json_array_get(cells, 0), cell);
    cr_assert_str_eq(json_str(json_array_get(cells, 0), "jobs", ""), "none");
    json_decref(s);
    rig_free(&rig);
}

/* The age is that of the trouble, whatever is said of it later. */
static json_t *no_room(struct rig *rig, const char *member)
{
    struct buf out = BUF_INIT;
    cr_assert_eq(plan_status_hosts(rig->plan, rig->now, "alpha", &out, NULL), 0);
    json_t *doc = json_parse("hosts", buf_str(&out), out.len, NULL);
    json_t *value = json_incref(
        json_object_get(json_array_get(json_object_get(doc, "hosts"), 0), member));
    json_decref(doc);
    buf_fini(&out);
    return value;
}

static bool says_no_room(struct rig *rig, const char *text, int64_t age_ns)
{
    json_t *said = no_room(rig, "no_room");
    json_t *age = no_room(rig, "no_room_age_ns");
    bool same = text == NULL ? json_is_null(said) && json_is_null(age)
                             : strcmp(json_string_value(said), text) == 0 &&
                                   json_integer_value(age) == age_ns;
    json_decref(said);
    json_decref(age);
    return same;
}

Test(status, a_host_without_room_says_why_and_since_when)
{
    struct rig *rig = two_hosts();
    int64_t id = rig->workers[0].id;
    rig_up(rig, &rig->workers[0]);
    cr_assert(says_no_room(rig, NULL, 0));
    plan_no_room(rig->plan, rig->now, id, "full");
    rig_pass(rig, CLOCK_SEC);
    plan_no_room(rig->plan, rig->now, id, "fuller");
    rig_pass(rig, CLOCK_SEC);
    cr_assert(says_no_room(rig, "fuller", 2 * CLOCK_SEC));
    plan_no_room(rig->plan, rig->now, id, NULL);
    cr_assert(says_no_room(rig, NULL, 0));
    plan_no_room(rig->plan, rig->now, id, "full");
    rig_down(rig, &rig->workers[0]);
    cr_assert(says_no_room(rig, NULL, 0), "what a lost host said is not known any more");
    rig_free(&rig);
}

Test(status, of_hosts_has_what_is_promised)
{
    static const char *const members[] = {"id",           "host",       "state",   "link",
                                          "link_age_ns",  "classes",    "cpus",    "memory_bytes",
                                          "boot_id",      "machine_id", "version", "joined_wall_ns",
                                          "seen_wall_ns", "room",       "no_room", "no_room_age_ns",
                                          "now",          NULL};
    struct rig *rig = two_hosts();
    struct buf out = BUF_INIT;
    struct diag *diag = diag_new(2);
    struct model_fact facts[] = {{"cpus.usable", "4"}, {"os", "Linux"}};
    struct plan_hello hello = {.boot_id = "b",
                               .machine_id = "m",
                               .version = "9",
                               .room = 2,
                               .cpus_milli = 3500,
                               .memory_bytes = 77,
                               .facts = facts,
                               .fact_count = 2};
    cr_assert_eq(plan_host_up(rig->plan, rig->now, rig->workers[0].id, &hello, diag), 0);
    rig->workers[0].up = true;
    rig_pass(rig, CLOCK_SEC);
    cr_assert_eq(plan_status_hosts(rig->plan, rig->now, NULL, &out, diag), 0);
    json_t *doc = json_parse("hosts", buf_str(&out), out.len, diag);
    cr_assert(doc != NULL);
    json_t *list = json_object_get(doc, "hosts");
    cr_assert_eq(json_array_size(list), 2);
    json_t *h = json_array_get(list, 0);
    has_members(h, members);
    cr_assert_str_eq(json_str(h, "link", ""), "up");
    cr_assert_eq(json_int(h, "link_age_ns", 0), CLOCK_SEC);
    cr_assert_eq(json_int(h, "memory_bytes", 0), 77);
    cr_assert_eq(json_number_value(json_object_get(h, "cpus")), 3.5);
    cr_assert_str_eq(json_str(json_array_get(list, 1), "link", ""), "never");
    cr_assert(json_object_get(h, "facts") == NULL);
    json_decref(doc);
    buf_reset(&out);
    cr_assert_eq(plan_status_hosts(rig->plan, rig->now, "alpha", &out, diag), 0);
    doc = json_parse("hosts", buf_str(&out), out.len, diag);
    h = json_array_get(json_object_get(doc, "hosts"), 0);
    cr_assert_str_eq(json_str(json_object_get(h, "facts"), "os", ""), "Linux");
    cr_assert(json_is_null(json_object_get(h, "no_room")));
    json_decref(doc);
    buf_fini(&out);
    diag_free(&diag);
    rig_free(&rig);
}

Test(status, lists_the_newest_sweep_first)
{
    struct rig *rig = two_hosts();
    struct buf out = BUF_INIT;
    struct diag *diag = diag_new(2);
    rig_sweep(rig, SWEEP);
    rig_sweep(rig, SWEEP "priority: idle\n");
    cr_assert_eq(plan_status_sweeps(rig->plan, rig->now, &out), 0);
    json_t *doc = json_parse("sweeps", buf_str(&out), out.len, diag);
    json_t *first = json_array_get(json_object_get(doc, "sweeps"), 0);
    cr_assert_str_eq(json_str(first, "sweep", ""), "s/2");
    cr_assert_str_eq(json_str(first, "priority", ""), "idle");
    cr_assert_str_eq(json_str(first, "state", ""), "active");
    json_decref(doc);
    buf_fini(&out);
    diag_free(&diag);
    rig_free(&rig);
}

Test(status, names_who_holds_the_machine)
{
    struct rig *rig = two_hosts();
    struct rig_worker *a = &rig->workers[0];
    struct rig_worker *b = &rig->workers[1];
    snprintf(a->boot, sizeof(a->boot), "same");
    snprintf(b->boot, sizeof(b->boot), "same");
    rig_up(rig, a);
    rig_up(rig, b);
    int64_t id = rig_sweep(rig, SWEEP);
    rig_settle(rig);
    size_t idle = rig_head(a) != NULL ? 1 : 0;
    json_t *s = rig_status(rig, id);
    json_t *wait = json_object_get(json_array_get(json_object_get(s, "hosts"), idle), "wait");
    cr_assert_str_eq(json_str(wait, "for", ""), "the machine");
    cr_assert_str_eq(json_str(wait, "owner", ""), idle == 1 ? "alpha" : "beta");
    json_decref(s);
    rig_free(&rig);
}

/* Looks once more, and compares with what reading everything gives. */
static void counts_are_true(struct rig *rig, int64_t sweep)
{
    json_t *kept = rig_status(rig, sweep);
    tally_forget(rig->plan, 0);
    json_t *fresh = rig_status(rig, sweep);
    cr_assert(json_equal(kept, fresh));
    json_decref(kept);
    json_decref(fresh);
}

Test(status, counts_follow_runs_that_go_back)
{
    struct rig *rig = two_hosts();
    struct rig_worker *w = &rig->workers[0];
    w->room = 0;
    rig_up(rig, w);
    int64_t id = rig_sweep(rig, "sweep: s\nworkload: {name: w, run: make}\nhosts: [alpha]\n"
                                "variants: [{name: a, env: {X: 1}}, {name: b, env: {X: 2}}, "
                                "{name: c, env: {X: 3}}]\nrepeat: {warmup: 0, until: 2}\n"
                                "retry: {invalid: 2}\n");
    /* Two invalid attempts of one run, then a block that is broken: its done run is replaced. */
    rig_make(rig, w, OUTCOME_INVALID, PHASE_CHECK);
    counts_are_true(rig, id);
    rig_make(rig, w, OUTCOME_INVALID, PHASE_CHECK);
    counts_are_true(rig, id);
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    counts_are_true(rig, id);
    rig_settle(rig);
    rig_begin(rig, w);
    int64_t gate = rig_sweep(rig, "sweep: g\nworkload: {name: w, run: make}\nhosts: [alpha]\n"
                                  "priority: gate\nrepeat: {warmup: 0, until: 1}\n");
    rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    cr_assert_eq(rig_count(rig, id, RUN_REPLACED, false), 3);
    counts_are_true(rig, id);
    /* And runs that failed are made again on request. */
    while (rig_state(rig, id) == SWEEP_ACTIVE) {
        rig_make(rig, w, OUTCOME_FAILED, PHASE_CHECK);
    }
    counts_are_true(rig, id);
    cr_assert_eq(plan_sweep_set(rig->plan, rig->now, "s", PLAN_SWEEP_RETRY, NULL, "op", NULL, NULL),
                 0);
    counts_are_true(rig, id);
    cr_assert_eq(rig_state(rig, gate), SWEEP_DONE);
    rig_free(&rig);
}

Test(status, counts_follow_cells_that_fail_and_are_opened_again)
{
    struct rig *rig = two_hosts();
    struct rig_worker *w = &rig->workers[0];
    w->room = 0;
    rig_up(rig, w);
    int64_t id = rig_sweep(rig, "sweep: s\nworkload: {name: w, setup: x, run: make}\n"
                                "hosts: [alpha]\njobs: [1, 2]\nrepeat: {warmup: 1, until: 2}\n");
    counts_are_true(rig, id);
    rig_make(rig, w, OUTCOME_FAILED, PHASE_SETUP);
    counts_are_true(rig, id);
    cr_assert_eq(rig_state(rig, id), SWEEP_DONE);
    cr_assert_eq(plan_sweep_set(rig->plan, rig->now, "s", PLAN_SWEEP_RETRY, NULL, "op", NULL, NULL),
                 0);
    counts_are_true(rig, id);
    rig_free(&rig);
}

enum { MANY = 5000 }; /* runs: some pages, and a part of one */

static int keep_cell(const struct model_cell *cell, void *arg)
{
    struct model_run *run = arg;
    if (run->cell == 0) {
        run->sweep = cell->sweep;
        run->host = cell->host;
        run->cell = cell->id;
    }
    return 0;
}

/* Runs of the first host, behind all that was drawn for it, which ended without an attempt that
 * counts. */
static void add_runs(struct rig *rig, int64_t sweep, int64_t n)
{
    struct model_run run = {.state = RUN_DONE};
    cr_assert_eq(store_cells_each(rig->store, sweep, 0, keep_cell, &run), 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t id;
        run.block = run.slot = 100000 + i;
        cr_assert_eq(store_run_insert(rig->store, &run, &id), 0);
    }
    cr_assert_eq(rig_turn(rig), 0);
}

static int64_t number(struct rig *rig, int64_t sweep, const char *member)
{
    json_t *s = rig_status(rig, sweep);
    int64_t n = json_int(s, member, -1);
    json_decref(s);
    return n;
}

/* Recipe: nobody else is served while the runs of a sweep are counted: a call counts one page. */
Test(status, a_large_sweep_is_counted_page_by_page)
{
    struct rig *rig = two_hosts();
    struct rig_worker *w = &rig->workers[0];
    struct buf out = BUF_INIT;
    char ref[32];
    rig_up(rig, w);
    int64_t id = rig_sweep(rig, SWEEP);
    snprintf(ref, sizeof(ref), "%d", (int)id);
    for (int i = 0; i < 3; i++) {
        rig_make(rig, w, OUTCOME_OK, PHASE_CHECK);
    }
    int64_t before = number(rig, id, "have");
    rig_crash(rig);
    rig_up(rig, w);
    rig_up(rig, &rig->workers[1]);
    add_runs(rig, id, MANY);
    /* What is made between the pages is counted once, before the place that they have come to or
     * behind it. */
    size_t calls = 0;
    while (plan_status_sweep(rig->plan, rig->now, ref, &out, NULL) == 1) {
        cr_assert_eq(out.len, 0);
        rig_make(rig, w, calls == 0 ? OUTCOME_INVALID : OUTCOME_OK, PHASE_CHECK);
        for (int i = 0; i < 6; i++) {
            rig_make(rig, &rig->workers[1], i == 4 ? OUTCOME_INVALID : OUTCOME_OK, PHASE_CHECK);
        }
        calls++;
    }
    cr_assert_eq(calls, MANY / TALLY_PAGE, "as many as there are full pages");
    int64_t have = number(rig, id, "have");
    int64_t failed = number(rig, id, "failed");
    json_t *s = rig_status(rig, id);
    json_t *cells = json_incref(json_object_get(s, "cells"));
    json_decref(s);
    cr_assert_geq(failed, MANY);
    cr_assert_gt(have, before);
    rig->status_calls = 0;
    cr_assert_eq(number(rig, id, "have"), have);
    cr_assert_eq(rig->status_calls, 1, "to look again costs nothing");
    /* As who never looked before counts it. */
    rig_crash(rig);
    rig->status_calls = 0;
    s = rig_status(rig, id);
    cr_assert_eq(rig->status_calls, 1 + MANY / TALLY_PAGE);
    cr_assert(json_equal(json_object_get(s, "cells"), cells));
    cr_assert_eq(json_int(s, "have", -1), have);
    cr_assert_eq(json_int(s, "failed", -1), failed);
    json_decref(s);
    json_decref(cells);
    buf_fini(&out);
    rig_free(&rig);
}

/* A sweep file over a fleet: which hosts, which job counts, how many runs, how long. */
#include "tests/unit/coordinator/plan/rig.h"

#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "coordinator/store/blobs.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/runs.h"
#include "coordinator/store/sweeps.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN                                                                                      \
    "sweep: s\n"                                                                                   \
    "workload: {name: w, run: make $JFLAG}\n"                                                      \
    "variants: [{name: a, env: {X: 1}}, {name: b, env: {X: 2}}]\n"                                 \
    "repeat: {warmup: 1, until: 3}\n"

/* The hosts that a list of selectors gives, separated by spaces; "!" and the talk on refusal. */
static void expect_hosts(struct rig *rig, const char *selectors, const char *want)
{
    char text[512];
    struct buf got = BUF_INIT;
    snprintf(text, sizeof(text), PLAIN "jobs: [1]\nhosts: [%s]\n", selectors);
    struct plan_request r = rig_request(PLAN_PLAN, text);
    r.json = true;
    struct rig_answer a = rig_submit(rig, &r);
    if (a.code < 0) {
        buf_printf(&got, "!%s", a.talk);
        cr_assert_eq(a.exit, 64);
        cr_assert_str_eq(a.body, "");
    } else {
        struct diag *diag = diag_new(1);
        json_t *doc = json_parse("plan", a.body, strlen(a.body), diag);
        cr_assert(doc != NULL, "%s", a.body);
        size_t i;
        json_t *host;
        json_array_foreach(json_object_get(doc, "hosts"), i, host)
        {
            bool skipped = !json_is_null(json_object_get(host, "skipped"));
            buf_printf(&got, "%s%s%s", i > 0 ? " " : "", json_str(host, "host", "?"),
                       skipped ? "(skipped)" : "");
        }
        json_decref(doc);
        diag_free(&diag);
    }
    cr_assert_str_eq(buf_str(&got), want, "%s", selectors);
    buf_fini(&got);
    rig_answer_free(&a);
}

struct cell_log {
    struct buf text;
};

static int log_cell(const struct model_cell *cell, void *arg)
{
    struct cell_log *l = arg;
    buf_printf(&l->text, "%d%s ", (int)cell->jobs, cell->state == CELL_SKIPPED ? "-" : "");
    return 0;
}

/* Runs a sweep through, each attempt of three seconds. */
static void run_through(struct rig *rig, int64_t id)
{
    while (rig_state(rig, id) == SWEEP_ACTIVE) {
        rig_settle(rig);
        for (size_t i = 0; i < rig->worker_count; i++) {
            struct rig_worker *w = &rig->workers[i];
            rig_begin(rig, w);
            rig_end(rig, w, OUTCOME_OK, PHASE_CHECK);
            rig_feed(rig, w, SIZE_MAX);
        }
    }
}

Test(sheet, chooses_hosts)
{
    struct rig *rig = rig_fleet();
    expect_hosts(rig, "p6", "p6");
    expect_hosts(rig, "\"class:quad-core\"", "quad1 quad2");
    expect_hosts(rig, "quad2, \"class:quad-core\"", "quad2 quad1");
    expect_hosts(rig, "\"any:quad-core\"", "quad1");
    expect_hosts(rig, "quad1, \"any:quad-core\"", "quad1 quad2");
    expect_hosts(rig, "quad1, quad2, \"any:quad-core\"", "quad1 quad2");
    expect_hosts(rig, "pp6", "!f.yaml:6:9: there is no host `pp6`; did you mean `p6`?\n");
    expect_hosts(rig, "zebra",
                 "!f.yaml:6:9: there is no host `zebra`: `makespan host list` shows them\n");
    expect_hosts(rig, "\"class:octa\"",
                 "!f.yaml:6:9: no host has the class `octa`: `makespan host label HOST CLASS` "
                 "gives it one\n");
    expect_hosts(rig, "\"class:quad-cor\"",
                 "!f.yaml:6:9: no host has the class `quad-cor`; did you mean `quad-core`?\n");
    expect_hosts(rig, "new",
                 "!f.yaml:6:9: host `new` has never connected, so its processors are not known: "
                 "start makespan-worker there first\n");
    expect_hosts(rig, "\"class:fresh\"",
                 "!f.yaml:6:9: no host of the class `fresh` has ever connected, so their "
                 "processors are not known: start makespan-worker there first\n");
    rig_free(&rig);
}

Test(sheet, any_takes_the_one_that_is_connected_and_idle)
{
    struct rig *rig = rig_fleet();
    struct diag *diag = diag_new(4);
    rig_up(rig, &rig->workers[1]);
    expect_hosts(rig, "\"any:quad-core\"", "quad2");
    rig_up(rig, &rig->workers[0]);
    expect_hosts(rig, "\"any:quad-core\"", "quad1");
    rig_sweep(rig, PLAIN "jobs: [1]\nhosts: [quad1]\n");
    expect_hosts(rig, "\"any:quad-core\"", "quad2");
    cr_assert_eq(
        plan_host_set(rig->plan, rig->now, "quad2", PLAN_HOST_DRAIN, NULL, "op", NULL, diag), 0);
    expect_hosts(rig, "\"any:quad-core\"", "quad1");
    cr_assert_eq(
        plan_host_set(rig->plan, rig->now, "quad1", PLAN_HOST_REVOKE, NULL, "op", NULL, diag), 0);
    expect_hosts(rig, "\"any:quad-core\"", "quad2");
    expect_hosts(rig, "quad1", "!f.yaml:6:9: host `quad1` was revoked\n");
    diag_free(&diag);
    rig_free(&rig);
}

Test(sheet, a_member_of_a_class_that_was_never_seen_is_listed_as_skipped)
{
    struct rig *rig = rig_fleet();
    struct diag *diag = diag_new(4);
    cr_assert_eq(plan_host_set(rig->plan, rig->now, "new", PLAN_HOST_LABEL, "p6", "op", NULL, diag),
                 0);
    expect_hosts(rig, "\"class:p6\"", "new(skipped) p6");
    diag_free(&diag);
    rig_free(&rig);
}

Test(sheet, multiplies_out_per_host)
{
    struct rig *rig = rig_fleet();
    struct mem_arena *arena = mem_arena_new(0);
    struct model_sweep_host row;
    struct cell_log l = {BUF_INIT};
    int64_t id = rig_sweep(rig, "sweep: m\n"
                                "workload: {name: w, run: make $JFLAG}\n"
                                "hosts: [quad1, p6]\njobs: [none, 2, 100%, 4, 150%, max]\n"
                                "memory: {per_job: 20MB}\n"
                                "repeat: {warmup: 2, until: 5}\n"
                                "per: {p6: {repeat: {warmup: 0, until: 7}, order: shuffle}}\n");
    cr_assert_eq(store_cells_each(rig->store, id, rig->workers[0].id, log_cell, &l), 0);
    /* 8 GiB are 429 jobs of 20 MB: as many as one likes are not. */
    cr_assert_str_eq(buf_str(&l.text), "-1- 0 2 4 6 ");
    buf_reset(&l.text);
    cr_assert_eq(store_cells_each(rig->store, id, rig->workers[3].id, log_cell, &l), 0);
    /* 2 CPUs, 64 MiB are 67.1 MB: three jobs. */
    cr_assert_str_eq(buf_str(&l.text), "-1- 0 2 3 4- ");
    cr_assert_eq(store_sweep_host_get(rig->store, id, rig->workers[0].id, arena, &row), 0);
    cr_assert_eq(row.until_runs, 5);
    cr_assert_eq(row.warmup, 2);
    cr_assert_eq(row.next_block, 0);
    cr_assert_eq(row.order, ORDER_INTERLEAVE);
    cr_assert_eq(row.retry_invalid, 3);
    cr_assert(strstr(row.settings, "repeat") != NULL);
    uint64_t seed = row.seed;
    cr_assert_eq(store_sweep_host_get(rig->store, id, rig->workers[3].id, arena, &row), 0);
    cr_assert_eq(row.until_runs, 7);
    cr_assert_eq(row.next_block, 1, "no warm-ups: no block 0");
    cr_assert_eq(row.order, ORDER_SHUFFLE);
    cr_assert_neq(row.seed, seed, "each host has its own order");
    buf_fini(&l.text);
    mem_arena_free(&arena);
    rig_free(&rig);
}

Test(sheet, a_seed_in_the_file_is_the_seed)
{
    struct rig *rig = rig_fleet();
    struct mem_arena *arena = mem_arena_new(0);
    struct model_sweep sweep;
    struct model_sweep_host one, two;
    const char *text = PLAIN "jobs: [1]\nhosts: [p6]\norder: {by: interleave, seed: 12345}\n";
    int64_t a = rig_sweep(rig, text);
    int64_t b = rig_sweep(rig, text);
    cr_assert_eq(store_sweep_get(rig->store, a, arena, &sweep), 0);
    cr_assert_eq(sweep.seed, 12345);
    cr_assert_eq(store_sweep_host_get(rig->store, a, rig->workers[3].id, arena, &one), 0);
    cr_assert_eq(store_sweep_host_get(rig->store, b, rig->workers[3].id, arena, &two), 0);
    cr_assert_eq(one.seed, two.seed);
    mem_arena_free(&arena);
    rig_free(&rig);
}

Test(sheet, a_host_without_a_point_is_skipped_and_nothing_at_all_is_a_mistake)
{
    struct rig *rig = rig_fleet();
    struct rig_answer a = rig_ask(rig, PLAN_RUN,
                                  PLAIN "jobs: [8]\nhosts: [p6]\n"
                                        "memory: {per_job: 40MB}\n");
    cr_assert_eq(a.exit, 64);
    cr_assert_str_eq(a.talk, "f.yaml: nothing is left to measure on any host\n");
    rig_answer_free(&a);
    int64_t id = rig_sweep(rig, PLAIN "jobs: [8]\nhosts: [p6, many]\nmemory: {per_job: 40MB}\n");
    json_t *s = rig_status(rig, id);
    json_t *host = json_array_get(json_object_get(s, "hosts"), 0);
    cr_assert_str_eq(json_str(host, "skipped", ""), "no job count fits its memory");
    json_decref(s);
    rig_free(&rig);
}

Test(sheet, prints_the_plan)
{
    struct rig *rig = rig_fleet();
    struct rig_answer a = rig_ask(
        rig, PLAN_PLAN, PLAIN "jobs: [1, 4]\nhosts: [quad1, p6]\nmemory: {per_job: 40MB}\n");
    cr_assert_eq(a.code, 0, "%s", a.talk);
    cr_assert_str_eq(
        a.body,
        "s: 1 workload, 2 variants, 2 hosts, 6 cells, 18 runs and 6 warm-ups\n"
        "host     cells  skipped     runs  warm-ups  boots  first look    expected   last look\n"
        "quad1        4        0       12         4      0     unknown     unknown     unknown\n"
        "p6           2        2        6         2      0     unknown     unknown     unknown\n"
        "unknown: until the first runs are measured\n"
        "skipped: p6, jobs 4: 4 jobs of 40 MB do not fit 64 MiB\n");
    rig_answer_free(&a);
    cr_assert_eq(rig_sweeps(rig), 0);
    rig_free(&rig);
}

Test(sheet, knows_how_long_the_same_cells_took)
{
    struct rig *rig = rig_fleet();
    rig_up(rig, &rig->workers[0]);
    run_through(rig, rig_sweep(rig, PLAIN "jobs: [1, 2]\nhosts: [quad1]\n"));
    /* Variant c is new, 1 and 2 are known, quad2 is not. */
    struct plan_request r = rig_request(
        PLAN_PLAN, "sweep: s\nworkload: {name: w, run: make $JFLAG}\n"
                   "variants: [{name: a, env: {X: 1}}, {name: c, env: {X: 3}}]\n"
                   "repeat: {warmup: 1, until: 9}\njobs: [1, 2]\nhosts: [quad1, quad2]\n");
    r.json = true;
    struct rig_answer a = rig_submit(rig, &r);
    struct diag *diag = diag_new(1);
    json_t *doc = json_parse("plan", a.body, strlen(a.body), diag);
    json_t *hosts = json_object_get(doc, "hosts");
    /* 2 variants, 2 job counts, 10 runs each, 3 s an attempt. */
    cr_assert_eq(json_int(json_array_get(hosts, 0), "expected_ns", 0), 4 * 10 * 3 * CLOCK_SEC);
    cr_assert(json_is_null(json_object_get(json_array_get(hosts, 1), "expected_ns")));
    json_decref(doc);
    diag_free(&diag);
    rig_answer_free(&a);
    rig_free(&rig);
}

Test(sheet, more_than_a_day_wants_yes)
{
    struct rig *rig = rig_fleet();
    rig_up(rig, &rig->workers[0]);
    run_through(rig, rig_sweep(rig, PLAIN "jobs: [1]\nhosts: [quad1]\n"));
    /* 2 variants, 9999 runs and a warm-up, 3 s: 16.7 h; with 2 job counts more than a day, but
     * then one is unknown. */
    const char *text = "sweep: s\nworkload: {name: w, run: make $JFLAG}\n"
                       "variants: [{name: a, env: {X: 1}}, {name: b, env: {X: 2}}, "
                       "{name: c, env: {X: 3}}]\n"
                       "repeat: {warmup: 1, until: 9999}\njobs: [1]\nhosts: [quad1]\n";
    struct plan_request r = rig_request(PLAN_RUN, text);
    struct rig_answer a = rig_submit(rig, &r);
    cr_assert_eq(a.code, -ERR_LIMIT);
    cr_assert_eq(a.exit, 64);
    cr_assert(strstr(a.talk, "this is 1d1h of work on one host: --yes says that it is meant") !=
                  NULL,
              "%s", a.talk);
    rig_answer_free(&a);
    cr_assert_eq(rig_sweeps(rig), 1);
    r.yes = true;
    a = rig_submit(rig, &r);
    cr_assert_eq(a.code, 0, "%s", a.talk);
    cr_assert_str_eq(a.body, "s/2\n");
    rig_answer_free(&a);
    /* A budget of less needs none. */
    r = rig_request(PLAN_RUN, "sweep: s\nworkload: {name: w, run: make $JFLAG}\n"
                              "variants: [{name: a, env: {X: 1}}, {name: b, env: {X: 2}}, "
                              "{name: c, env: {X: 3}}]\n"
                              "repeat: {warmup: 1, until: 9999, budget: 8h}\n"
                              "jobs: [1]\nhosts: [quad1]\n");
    a = rig_submit(rig, &r);
    cr_assert_eq(a.code, 0, "%s", a.talk);
    cr_assert(strstr(a.talk,
                     "budget: quad1 stops at the end of the block in which it has used 8h") != NULL,
              "%s", a.talk);
    rig_answer_free(&a);
    rig_free(&rig);
}

Test(sheet, limits_of_size_are_told)
{
    struct rig *rig = rig_fleet();
    struct rig_answer a = rig_ask(rig, PLAN_RUN,
                                  "sweep: big\nworkload: {name: w, run: make $JFLAG}\n"
                                  "axes: {X: [a, b]}\n"
                                  "jobs: [1..4096]\nhosts: [many]\nrepeat: {until: 10000}\n");
    cr_assert_eq(a.exit, 64);
    rig_answer_free(&a);
    a = rig_ask(rig, PLAN_RUN,
                "sweep: big\nworkload: {name: w, run: make $JFLAG}\n"
                "variants: [{name: a, env: {X: 1}}, {name: b, env: {X: 2}}]\n"
                "jobs: [1..4096]\nhosts: [many]\nrepeat: {until: 10000}\n");
    cr_assert_eq(a.exit, 64);
    cr_assert_str_eq(a.talk, "f.yaml:5:9: the sweep has more than 10000000 runs\n");
    rig_answer_free(&a);
    cr_assert_eq(rig_sweeps(rig), 0);
    rig_free(&rig);
}

Test(sheet, a_priority_per_host_is_refused)
{
    struct rig *rig = rig_fleet();
    struct rig_answer a =
        rig_ask(rig, PLAN_CHECK, PLAIN "jobs: [1]\nhosts: [p6]\nper: {p6: {priority: idle}}\n");
    cr_assert_eq(a.exit, 64);
    cr_assert(strstr(a.talk, "one priority") != NULL, "%s", a.talk);
    rig_answer_free(&a);
    rig_free(&rig);
}

/* The ladder of a request: mistakes, hosts, revisions, the plan, acceptance. */
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

static struct plan_request request(enum plan_action action, const char *text)
{
    return (struct plan_request){
        .action = action, .file = "f.yaml", .text = text, .size = strlen(text), .who = "op"};
}

static struct rig_answer ask(struct rig *rig, enum plan_action action, const char *text)
{
    struct plan_request r = request(action, text);
    return rig_submit(rig, &r);
}

static int count_sweep(const struct model_sweep *row, void *arg)
{
    int *n = arg;
    (void)row;
    (*n)++;
    return 0;
}

static int sweeps(struct rig *rig)
{
    int n = 0;
    cr_assert_eq(store_sweeps_each(rig->store, NULL, count_sweep, &n), 0);
    return n;
}

/* A fleet of five. */
static struct rig *fleet(void)
{
    struct rig *rig = rig_new();
    rig_host(rig, "quad1", "quad-core all", 4000, INT64_C(8) << 30);
    rig_host(rig, "quad2", "quad-core all", 4000, INT64_C(8) << 30);
    rig_host(rig, "many", "many-core all", 48000, INT64_C(256) << 30);
    rig_host(rig, "p6", "p6 all", 2000, INT64_C(64) << 20);
    rig_host(rig, "new", "fresh", 0, 0);
    return rig;
}

/* The hosts that a list of selectors gives, separated by spaces; "!" and the talk on refusal. */
static void expect_hosts(struct rig *rig, const char *selectors, const char *want)
{
    char text[512];
    struct buf got = BUF_INIT;
    snprintf(text, sizeof(text), PLAIN "jobs: [1]\nhosts: [%s]\n", selectors);
    struct plan_request r = request(PLAN_PLAN, text);
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

Test(submit, chooses_hosts)
{
    struct rig *rig = fleet();
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

Test(submit, any_takes_the_one_that_is_connected_and_idle)
{
    struct rig *rig = fleet();
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

Test(submit, a_member_of_a_class_that_was_never_seen_is_listed_as_skipped)
{
    struct rig *rig = fleet();
    struct diag *diag = diag_new(4);
    cr_assert_eq(plan_host_set(rig->plan, rig->now, "new", PLAN_HOST_LABEL, "p6", "op", NULL, diag),
                 0);
    expect_hosts(rig, "\"class:p6\"", "new(skipped) p6");
    diag_free(&diag);
    rig_free(&rig);
}

Test(submit, one_host_may_be_named_beside_the_file)
{
    struct rig *rig = fleet();
    struct plan_request r = request(PLAN_RUN, PLAIN "jobs: [1]\n");
    r.host = "p6";
    struct rig_answer a = rig_submit(rig, &r);
    cr_assert_eq(a.code, 0, "%s", a.talk);
    cr_assert_str_eq(a.body, "s/1\n");
    rig_answer_free(&a);
    r.host = NULL;
    a = rig_submit(rig, &r);
    cr_assert_eq(a.exit, 64);
    cr_assert(strstr(a.talk, "hosts") != NULL, "%s", a.talk);
    rig_answer_free(&a);
    rig_free(&rig);
}

Test(submit, tells_all_mistakes_at_once_and_stores_nothing)
{
    struct rig *rig = fleet();
    /* A mistake of a source, two of hosts. */
    const char *text = "sweep: s\n"
                       "workloads:\n"
                       "  - {name: w, source: {git: /srv/a.git, rev: v6.2}, run: make $JFLAG}\n"
                       "  - {name: x, source: {git: /srv/b.git, rev: nope}, run: make $JFLAG}\n"
                       "  - {name: y, source: {dir: ./here}, run: make $JFLAG}\n"
                       "hosts: [nobody, \"class:none\"]\n"
                       "jobs: [1]\n";
    struct rig_answer a = ask(rig, PLAN_RUN, text);
    cr_assert_eq(a.exit, 64);
    cr_assert_str_eq(
        a.talk,
        "f.yaml:5:23: `./here` is read where the operator's command runs, and the command sent "
        "nothing for it\n"
        "f.yaml:6:9: there is no host `nobody`: `makespan host list` shows them\n"
        "f.yaml:6:17: no host has the class `none`: `makespan host label HOST CLASS` gives it "
        "one\n");
    rig_answer_free(&a);
    cr_assert_eq(sweeps(rig), 0);
    rig_free(&rig);
}

struct late {
    int n;
    int code, exit;
    char talk[1024];
};

static void on_late(void *arg, const struct plan_answer *a)
{
    struct late *l = arg;
    l->n++;
    l->code = a->code;
    l->exit = a->exit;
    snprintf(l->talk, sizeof(l->talk), "%s", a->talk);
}

#define GIT                                                                                        \
    "sweep: g\n"                                                                                   \
    "workload: {name: w, source: {git: /srv/a.git}, run: make $JFLAG}\n"                           \
    "variants: [{name: old, rev: v1}, {name: new, rev: v2}]\n"                                     \
    "hosts: [quad1]\njobs: [1]\nrepeat: {until: 1}\n"

Test(submit, waits_for_every_revision)
{
    struct rig *rig = fleet();
    struct plan_request r = request(PLAN_RUN, GIT);
    struct late l = {0};
    plan_submit(rig->plan, rig->now, &r, on_late, &l);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(rig->ask_count, 2);
    cr_assert_str_eq(rig->asks[0].path, "/srv/a.git");
    cr_assert_str_eq(rig->asks[0].text, "v1");
    cr_assert(rig->asks[0].archive);
    rig_resolve(rig, 1, 0, NULL);
    rig_pass(rig, CLOCK_MIN);
    cr_assert_eq(l.n, 0);
    rig_resolve(rig, 0, 0, NULL);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(l.n, 1);
    cr_assert_eq(l.code, 0, "%s", l.talk);
    cr_assert_eq(sweeps(rig), 1);
    rig_free(&rig);
}

Test(submit, tells_a_revision_that_does_not_exist_from_a_repository_that_cannot_be_reached)
{
    struct rig *rig = fleet();
    struct plan_request r = request(PLAN_RUN, GIT);
    struct late l = {0};
    plan_submit(rig->plan, rig->now, &r, on_late, &l);
    cr_assert_eq(rig_turn(rig), 0);
    rig_resolve(rig, 0, -ERR_NOTFOUND, "/srv/a.git: there is no revision `v1`");
    rig_resolve(rig, 1, -ERR_UNREACH, "/srv/a.git: cannot be reached");
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(l.exit, 64, "a mistake of the file goes first");
    cr_assert_str_eq(l.talk, "f.yaml:3:29: /srv/a.git: there is no revision `v1`\n"
                             "f.yaml:3:51: /srv/a.git: cannot be reached\n");
    rig->ask_count = 0;
    plan_submit(rig->plan, rig->now, &r, on_late, &l);
    cr_assert_eq(rig_turn(rig), 0);
    rig_resolve(rig, 0, 0, NULL);
    rig_resolve(rig, 1, -ERR_UNREACH, "/srv/a.git: cannot be reached");
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(l.n, 2);
    cr_assert_eq(l.exit, 3, "only the infrastructure failed");
    cr_assert_eq(sweeps(rig), 0);
    rig_free(&rig);
}

Test(submit, look_ups_may_answer_within_the_call)
{
    struct rig *rig = fleet();
    rig->resolve_at_once = true;
    struct rig_answer a = ask(rig, PLAN_RUN, GIT);
    cr_assert_eq(a.code, 0, "%s", a.talk);
    rig_answer_free(&a);
    rig_free(&rig);
}

Test(submit, a_request_that_is_called_off_is_forgotten)
{
    struct rig *rig = fleet();
    struct plan_request r = request(PLAN_RUN, GIT);
    struct late l = {0};
    uint64_t ticket = plan_submit(rig->plan, rig->now, &r, on_late, &l);
    cr_assert_eq(rig_turn(rig), 0);
    plan_submit_cancel(rig->plan, ticket);
    cr_assert_eq(rig->cancelled_asks, 2);
    rig_resolve(rig, 0, 0, NULL); /* too late, and harmless */
    cr_assert_eq(rig_turn(rig), 0);
    plan_submit_cancel(rig->plan, ticket);
    cr_assert_eq(l.n, 0);
    cr_assert_eq(sweeps(rig), 0);
    /* One that is open when the coordinator stops is answered. */
    plan_submit(rig->plan, rig->now, &r, on_late, &l);
    rig_crash(rig);
    cr_assert_eq(l.n, 1);
    cr_assert_eq(l.code, -ERR_CLOSED);
    cr_assert_eq(l.exit, 3);
    rig_free(&rig);
}

static void put_blob(struct rig *rig, uint8_t fill, uint64_t size)
{
    struct store_blob blob = {.size = size};
    memset(blob.hash, fill, sizeof(blob.hash));
    cr_assert_eq(store_blob_insert(rig->store, &blob), 0);
    cr_assert_eq(rig_turn(rig), 0);
}

static int keep_input(const struct model_input *row, void *arg)
{
    struct model_input *out = arg;
    *out = *row;
    return 0;
}

Test(submit, takes_what_the_operator_put)
{
    struct rig *rig = fleet();
    const char *text = "sweep: d\n"
                       "workload: {name: w, source: {dir: ./here}, run: make $JFLAG}\n"
                       "hosts: [quad1]\njobs: [1]\nrepeat: {until: 1}\n";
    struct plan_revision rev = {.expr = "", .commit = "", .tree = "", .subject = "", .size = 55};
    struct plan_request r = request(PLAN_RUN, text);
    memset(rev.blob, 7, sizeof(rev.blob));
    r.revisions = &rev;
    r.revision_count = 1;
    struct rig_answer a = rig_submit(rig, &r);
    cr_assert_str_eq(a.talk, "f.yaml:2:29: its archive was not put before the sweep\n");
    cr_assert_eq(a.exit, 64);
    rig_answer_free(&a);
    put_blob(rig, 7, 55);
    a = rig_submit(rig, &r);
    cr_assert_eq(a.code, 0, "%s", a.talk);
    struct model_input input;
    cr_assert_eq(store_inputs_each(rig->store, a.sweep, keep_input, &input), 0);
    cr_assert(input.has_blob);
    cr_assert_eq(input.blob[31], 7);
    cr_assert_eq(input.size, 55);
    rig_answer_free(&a);
    /* `check` needs no archive. */
    memset(rev.blob, 9, sizeof(rev.blob));
    r.action = PLAN_CHECK;
    a = rig_submit(rig, &r);
    cr_assert_eq(a.code, 0, "%s", a.talk);
    cr_assert_str_eq(a.body, "");
    rig_answer_free(&a);
    rig_free(&rig);
}

Test(submit, the_same_key_and_file_submit_once)
{
    struct rig *rig = fleet();
    struct plan_request r = request(PLAN_RUN, PLAIN "jobs: [1]\nhosts: [p6]\n");
    r.key = "k1";
    struct rig_answer a = rig_submit(rig, &r);
    struct rig_answer b = rig_submit(rig, &r);
    cr_assert_eq(b.code, 0);
    cr_assert_eq(a.sweep, b.sweep);
    cr_assert_str_eq(a.body, b.body);
    cr_assert_str_eq(b.talk, "s/1: was submitted before with this key\n");
    rig_answer_free(&b);
    cr_assert_eq(sweeps(rig), 1);
    struct plan_request other = request(PLAN_RUN, PLAIN "jobs: [2]\nhosts: [p6]\n");
    other.key = "k1";
    b = rig_submit(rig, &other);
    cr_assert_eq(b.code, -ERR_CONFLICT);
    cr_assert_eq(b.exit, 64);
    cr_assert(strstr(b.talk, "`k1` belongs to s/1") != NULL, "%s", b.talk);
    rig_answer_free(&b);
    struct plan_setting set = {"unused", "1"};
    other = r;
    other.sets = &set;
    other.set_count = 1;
    b = rig_submit(rig, &other);
    cr_assert_eq(b.code, -ERR_CONFLICT, "other settings are another sweep");
    rig_answer_free(&b);
    r.key = NULL;
    b = rig_submit(rig, &r);
    cr_assert_str_eq(b.body, "s/2\n");
    rig_answer_free(&a);
    rig_answer_free(&b);
    rig_free(&rig);
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

Test(submit, multiplies_out_per_host)
{
    struct rig *rig = fleet();
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

Test(submit, a_seed_in_the_file_is_the_seed)
{
    struct rig *rig = fleet();
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

Test(submit, a_host_without_a_point_is_skipped_and_nothing_at_all_is_a_mistake)
{
    struct rig *rig = fleet();
    struct rig_answer a = ask(rig, PLAN_RUN,
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

Test(submit, prints_the_plan)
{
    struct rig *rig = fleet();
    struct rig_answer a =
        ask(rig, PLAN_PLAN, PLAIN "jobs: [1, 4]\nhosts: [quad1, p6]\nmemory: {per_job: 40MB}\n");
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
    cr_assert_eq(sweeps(rig), 0);
    rig_free(&rig);
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

Test(submit, knows_how_long_the_same_cells_took)
{
    struct rig *rig = fleet();
    rig_up(rig, &rig->workers[0]);
    run_through(rig, rig_sweep(rig, PLAIN "jobs: [1, 2]\nhosts: [quad1]\n"));
    /* Variant c is new, 1 and 2 are known, quad2 is not. */
    struct plan_request r =
        request(PLAN_PLAN, "sweep: s\nworkload: {name: w, run: make $JFLAG}\n"
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

Test(submit, more_than_a_day_wants_yes)
{
    struct rig *rig = fleet();
    rig_up(rig, &rig->workers[0]);
    run_through(rig, rig_sweep(rig, PLAIN "jobs: [1]\nhosts: [quad1]\n"));
    /* 2 variants, 9999 runs and a warm-up, 3 s: 16.7 h; with 2 job counts more than a day, but
     * then one is unknown. */
    const char *text = "sweep: s\nworkload: {name: w, run: make $JFLAG}\n"
                       "variants: [{name: a, env: {X: 1}}, {name: b, env: {X: 2}}, "
                       "{name: c, env: {X: 3}}]\n"
                       "repeat: {warmup: 1, until: 9999}\njobs: [1]\nhosts: [quad1]\n";
    struct plan_request r = request(PLAN_RUN, text);
    struct rig_answer a = rig_submit(rig, &r);
    cr_assert_eq(a.code, -ERR_LIMIT);
    cr_assert_eq(a.exit, 64);
    cr_assert(strstr(a.talk, "this is 1d1h of work on one host: --yes says that it is meant") !=
                  NULL,
              "%s", a.talk);
    rig_answer_free(&a);
    cr_assert_eq(sweeps(rig), 1);
    r.yes = true;
    a = rig_submit(rig, &r);
    cr_assert_eq(a.code, 0, "%s", a.talk);
    cr_assert_str_eq(a.body, "s/2\n");
    rig_answer_free(&a);
    rig_free(&rig);
}

Test(submit, an_accepted_sweep_is_answered_after_the_commit)
{
    struct rig *rig = fleet();
    struct plan_request r = request(PLAN_RUN, PLAIN "jobs: [1]\nhosts: [quad1]\n");
    struct late l = {0};
    rig_up(rig, &rig->workers[0]);
    cr_assert_eq(rig_turn(rig), 0);
    plan_submit(rig->plan, rig->now, &r, on_late, &l);
    plan_turn(rig->plan, rig->now);
    cr_assert_eq(plan_failed(rig->plan), 0);
    cr_assert_eq(l.n, 0);
    cr_assert_eq(rig->workers[0].wire_count, 0);
    rig_roll_back(rig, -ERR_FULL);
    cr_assert_eq(l.n, 1);
    cr_assert_eq(l.code, -ERR_FULL);
    cr_assert_eq(l.exit, 3);
    cr_assert_str_eq(l.talk, "the sweep could not be stored: no space left\n");
    cr_assert_eq(sweeps(rig), 0);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(rig->assigned, 0);
    rig_free(&rig);
}

Test(submit, a_full_disk_refuses_and_takes_nothing_half)
{
    struct rig *rig = fleet();
    struct plan_request r = request(PLAN_RUN, PLAIN "jobs: [1..400]\nhosts: [\"class:all\"]\n");
    struct late l = {0};
    cr_assert_eq(store_limit_pages(rig->store, 80), 0);
    plan_submit(rig->plan, rig->now, &r, on_late, &l);
    cr_assert_eq(rig_turn(rig), -ERR_FULL);
    cr_assert_eq(l.n, 1);
    cr_assert_eq(l.code, -ERR_FULL);
    cr_assert_eq(sweeps(rig), 0);
    cr_assert_eq(store_limit_pages(rig->store, 0), 0);
    plan_submit(rig->plan, rig->now, &r, on_late, &l);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(l.code, 0, "%s", l.talk);
    cr_assert_eq(sweeps(rig), 1);
    rig_free(&rig);
}

Test(submit, limits_of_size_are_told)
{
    struct rig *rig = fleet();
    struct rig_answer a = ask(rig, PLAN_RUN,
                              "sweep: big\nworkload: {name: w, run: make $JFLAG}\n"
                              "axes: {X: [a, b]}\n"
                              "jobs: [1..4096]\nhosts: [many]\nrepeat: {until: 10000}\n");
    cr_assert_eq(a.exit, 64);
    rig_answer_free(&a);
    a = ask(rig, PLAN_RUN,
            "sweep: big\nworkload: {name: w, run: make $JFLAG}\n"
            "variants: [{name: a, env: {X: 1}}, {name: b, env: {X: 2}}]\n"
            "jobs: [1..4096]\nhosts: [many]\nrepeat: {until: 10000}\n");
    cr_assert_eq(a.exit, 64);
    cr_assert_str_eq(a.talk, "f.yaml:5:9: the sweep has more than 10000000 runs\n");
    rig_answer_free(&a);
    cr_assert_eq(sweeps(rig), 0);
    rig_free(&rig);
}

Test(submit, a_priority_per_host_is_refused)
{
    struct rig *rig = fleet();
    struct rig_answer a =
        ask(rig, PLAN_CHECK, PLAIN "jobs: [1]\nhosts: [p6]\nper: {p6: {priority: idle}}\n");
    cr_assert_eq(a.exit, 64);
    cr_assert(strstr(a.talk, "one priority") != NULL, "%s", a.talk);
    rig_answer_free(&a);
    rig_free(&rig);
}

Test(submit, words)
{
    enum plan_action action;
    enum plan_sweep_action sweep;
    enum plan_host_action host;
    cr_assert_eq(plan_action_of("run", &action), 0);
    cr_assert_eq(action, PLAN_RUN);
    cr_assert_eq(plan_action_of("go", &action), -ERR_INVAL);
    cr_assert_eq(plan_sweep_action_of("retry", &sweep), 0);
    cr_assert_eq(sweep, PLAN_SWEEP_RETRY);
    cr_assert_eq(plan_sweep_action_of("", &sweep), -ERR_INVAL);
    cr_assert_eq(plan_host_action_of("unlabel", &host), 0);
    cr_assert_eq(host, PLAN_HOST_UNLABEL);
    cr_assert_eq(plan_host_action_of("x", &host), -ERR_INVAL);
}

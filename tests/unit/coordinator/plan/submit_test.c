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

Test(submit, one_host_may_be_named_beside_the_file)
{
    struct rig *rig = rig_fleet();
    struct plan_request r = rig_request(PLAN_RUN, PLAIN "jobs: [1]\n");
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
    struct rig *rig = rig_fleet();
    /* A mistake of a source, two of hosts. */
    const char *text = "sweep: s\n"
                       "workloads:\n"
                       "  - {name: w, source: {git: /srv/a.git, rev: v6.2}, run: make $JFLAG}\n"
                       "  - {name: x, source: {git: /srv/b.git, rev: nope}, run: make $JFLAG}\n"
                       "  - {name: y, source: {dir: ./here}, run: make $JFLAG}\n"
                       "hosts: [nobody, \"class:none\"]\n"
                       "jobs: [1]\n";
    struct rig_answer a = rig_ask(rig, PLAN_RUN, text);
    cr_assert_eq(a.exit, 64);
    cr_assert_str_eq(
        a.talk,
        "f.yaml:5:23: `./here` is read where the operator's command runs, and the command sent "
        "nothing for it\n"
        "f.yaml:6:9: there is no host `nobody`: `makespan host list` shows them\n"
        "f.yaml:6:17: no host has the class `none`: `makespan host label HOST CLASS` gives it "
        "one\n");
    rig_answer_free(&a);
    cr_assert_eq(rig_sweeps(rig), 0);
    rig_free(&rig);
}

Test(submit, waits_for_every_revision)
{
    struct rig *rig = rig_fleet();
    struct plan_request r = rig_request(PLAN_RUN, GIT);
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
    cr_assert_eq(rig_sweeps(rig), 1);
    rig_free(&rig);
}

Test(submit, tells_a_revision_that_does_not_exist_from_a_repository_that_cannot_be_reached)
{
    struct rig *rig = rig_fleet();
    struct plan_request r = rig_request(PLAN_RUN, GIT);
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
    cr_assert_eq(rig_sweeps(rig), 0);
    rig_free(&rig);
}

Test(submit, look_ups_may_answer_within_the_call)
{
    struct rig *rig = rig_fleet();
    rig->resolve_at_once = true;
    struct rig_answer a = rig_ask(rig, PLAN_RUN, GIT);
    cr_assert_eq(a.code, 0, "%s", a.talk);
    rig_answer_free(&a);
    rig_free(&rig);
}

Test(submit, a_request_that_is_called_off_is_forgotten)
{
    struct rig *rig = rig_fleet();
    struct plan_request r = rig_request(PLAN_RUN, GIT);
    struct late l = {0};
    uint64_t ticket = plan_submit(rig->plan, rig->now, &r, on_late, &l);
    cr_assert_eq(rig_turn(rig), 0);
    plan_submit_cancel(rig->plan, ticket);
    cr_assert_eq(rig->cancelled_asks, 2);
    rig_resolve(rig, 0, 0, NULL); /* too late, and harmless */
    cr_assert_eq(rig_turn(rig), 0);
    plan_submit_cancel(rig->plan, ticket);
    cr_assert_eq(l.n, 0);
    cr_assert_eq(rig_sweeps(rig), 0);
    /* One that is open when the coordinator stops is answered. */
    plan_submit(rig->plan, rig->now, &r, on_late, &l);
    rig_crash(rig);
    cr_assert_eq(l.n, 1);
    cr_assert_eq(l.code, -ERR_CLOSED);
    cr_assert_eq(l.exit, 3);
    rig_free(&rig);
}

Test(submit, takes_what_the_operator_put)
{
    struct rig *rig = rig_fleet();
    const char *text = "sweep: d\n"
                       "workload: {name: w, source: {dir: ./here}, run: make $JFLAG}\n"
                       "hosts: [quad1]\njobs: [1]\nrepeat: {until: 1}\n";
    struct plan_revision rev = {.expr = "", .commit = "", .tree = "", .subject = "", .size = 55};
    struct plan_request r = rig_request(PLAN_RUN, text);
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
    struct rig *rig = rig_fleet();
    struct plan_request r = rig_request(PLAN_RUN, PLAIN "jobs: [1]\nhosts: [p6]\n");
    r.key = "k1";
    struct rig_answer a = rig_submit(rig, &r);
    struct rig_answer b = rig_submit(rig, &r);
    cr_assert_eq(b.code, 0);
    cr_assert_eq(a.sweep, b.sweep);
    cr_assert_str_eq(a.body, b.body);
    cr_assert_str_eq(b.talk, "s/1: was submitted before with this key\n");
    rig_answer_free(&b);
    cr_assert_eq(rig_sweeps(rig), 1);
    struct plan_request other = rig_request(PLAN_RUN, PLAIN "jobs: [2]\nhosts: [p6]\n");
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

/* The second comes while the first still waits for its revisions. */
Test(submit, the_same_key_submits_once_also_while_revisions_are_looked_up)
{
    for (int turns = 1; turns <= 2; turns++) { /* both are accepted in one turn, or in two */
        struct rig *rig = rig_fleet();
        struct plan_request r = rig_request(PLAN_RUN, GIT);
        struct late l[2] = {{0}, {0}};
        r.key = "k1";
        for (size_t i = 0; i < 2; i++) {
            plan_submit(rig->plan, rig->now, &r, on_late, &l[i]);
        }
        cr_assert_eq(rig_turn(rig), 0);
        cr_assert_eq(rig->ask_count, 4);
        for (size_t i = 0; i < 4; i++) {
            if (i == 2 && turns == 2) {
                cr_assert_eq(rig_turn(rig), 0);
            }
            rig_resolve(rig, i, 0, NULL);
        }
        cr_assert_eq(rig_turn(rig), 0);
        cr_assert_eq(l[0].n, 1);
        cr_expect_eq(l[0].code, 0, "%s", l[0].talk);
        cr_assert_eq(l[1].n, 1);
        cr_expect_eq(l[1].code, 0, "%s", l[1].talk);
        cr_expect_str_eq(l[1].talk, "g/1: was submitted before with this key\n");
        cr_expect_eq(rig_sweeps(rig), 1);
        rig_free(&rig);
    }
}

Test(submit, an_accepted_sweep_is_answered_after_the_commit)
{
    struct rig *rig = rig_fleet();
    struct plan_request r = rig_request(PLAN_RUN, PLAIN "jobs: [1]\nhosts: [quad1]\n");
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
    cr_assert_eq(rig_sweeps(rig), 0);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(rig->assigned, 0);
    rig_free(&rig);
}

/* They are YAML that `per` reads: what it gives for another host is the same. */
Test(submit, the_settings_of_a_host_are_kept_as_a_sweep_file_reads_them)
{
    struct rig *rig = rig_fleet();
    struct mem_arena *arena = mem_arena_new(0);
    struct buf again = BUF_INIT;
    struct model_sweep_host first, second;
    int64_t id = rig_sweep(rig, PLAIN "hosts: [quad1]\njobs: [1, max]\nretry: {invalid: 2}\n"
                                      "per: {quad1: {order: {seed: 7}}}\n");
    cr_assert_eq(store_sweep_host_get(rig->store, id, rig->workers[0].id, arena, &first), 0);
    buf_add_str(&again, "sweep: again\nworkload: {name: w, run: make $JFLAG}\nhosts: [quad2]\n"
                        "per:\n  quad2:\n    ");
    for (const char *p = first.settings; *p != '\0'; p++) {
        buf_add_char(&again, *p);
        if (*p == '\n' && p[1] != '\0') {
            buf_add_str(&again, "    ");
        }
    }
    id = rig_sweep(rig, buf_str(&again));
    cr_assert_eq(store_sweep_host_get(rig->store, id, rig->workers[1].id, arena, &second), 0);
    cr_assert_str_eq(second.settings, first.settings);
    cr_assert(strstr(first.settings, "seed: 7") != NULL, "%s", first.settings);
    cr_assert_eq(second.retry_invalid, 2);
    cr_assert_eq(second.until_runs, 3);
    buf_fini(&again);
    mem_arena_free(&arena);
    rig_free(&rig);
}

Test(submit, a_full_disk_refuses_and_takes_nothing_half)
{
    struct rig *rig = rig_fleet();
    struct plan_request r = rig_request(PLAN_RUN, PLAIN "jobs: [1..400]\nhosts: [\"class:all\"]\n");
    struct late l = {0};
    cr_assert_eq(store_limit_pages(rig->store, 80), 0);
    plan_submit(rig->plan, rig->now, &r, on_late, &l);
    cr_assert_eq(rig_turn(rig), -ERR_FULL);
    cr_assert_eq(l.n, 1);
    cr_assert_eq(l.code, -ERR_FULL);
    cr_assert_eq(rig_sweeps(rig), 0);
    cr_assert_eq(store_limit_pages(rig->store, 0), 0);
    plan_submit(rig->plan, rig->now, &r, on_late, &l);
    cr_assert_eq(rig_turn(rig), 0);
    cr_assert_eq(l.code, 0, "%s", l.talk);
    cr_assert_eq(rig_sweeps(rig), 1);
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

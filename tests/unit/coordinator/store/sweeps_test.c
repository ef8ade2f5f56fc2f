/* sweeps_test.c: rows of sweeps, workloads, variants, inputs, and of what a sweep does on a
 * host. */
#include "coordinator/store/sweeps.h"

#include "common/err.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/store.h"
#include "tests/unit/coordinator/store/store_help.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

static int64_t find(struct box *box, const char *text)
{
    struct model_sweep out;
    int rc = store_sweep_find(box->store, text, box->arena, &out);
    return rc == 0 ? out.id : rc;
}

Test(sweeps, come_back_as_they_were_stored)
{
    struct box box;
    struct model_sweep out;
    int64_t id = 0;
    int64_t number = 0;
    const char *text = NULL;
    struct model_sweep in = {.name = "vm",
                             .state = SWEEP_PAUSED,
                             .priority = PRIORITY_IDLE,
                             .seed = UINT64_MAX - 1,
                             .file = "x.yaml",
                             .text = "sweep: vm\n",
                             .sets = "{\"opt\": \"-O2\"}",
                             .compare = "[]",
                             .tolerance_ppm = 25000,
                             .key = "ci-1",
                             .submitted_by = "bob",
                             .submitted_wall_ns = 77};
    box_open(&box);
    cr_assert_eq(store_sweep_insert(box.store, &in, &id, &number), 0, "%s", store_error(box.store));
    cr_expect_eq(number, 1);
    cr_assert_eq(store_sweep_get(box.store, id, box.arena, &out), 0);
    cr_expect_eq(out.id, id);
    cr_expect_str_eq(out.name, "vm");
    cr_expect_eq(out.number, 1);
    cr_expect_eq(out.state, SWEEP_PAUSED);
    cr_expect_eq(out.priority, PRIORITY_IDLE);
    cr_expect_eq(out.seed, UINT64_MAX - 1);
    cr_expect_str_eq(out.file, "x.yaml");
    cr_expect_null(out.text);
    cr_expect_str_eq(out.sets, in.sets);
    cr_expect_null(out.base);
    cr_expect_str_eq(out.compare, "[]");
    cr_expect_eq(out.tolerance_ppm, 25000);
    cr_expect_str_eq(out.key, "ci-1");
    cr_expect_str_eq(out.submitted_by, "bob");
    cr_expect_eq(out.submitted_wall_ns, 77);
    cr_expect_eq(out.ended_wall_ns, 0);
    cr_expect_null(out.end_reason);
    cr_assert_eq(store_sweep_text(box.store, id, box.arena, &text), 0);
    cr_expect_str_eq(text, in.text);
    cr_assert_eq(store_sweep_by_key(box.store, "ci-1", box.arena, &out), 0);
    cr_expect_eq(out.id, id);
    cr_expect_eq(store_sweep_insert(box.store, &in, &id, &number), -ERR_EXISTS,
                 "the key submits once");
    box_close(&box);
}

Test(sweeps, are_found_by_what_people_write)
{
    struct box box;
    box_open(&box);
    int64_t a1 = box_sweep(&box, "a");
    int64_t b1 = box_sweep(&box, "b");
    int64_t a2 = box_sweep(&box, "a");
    cr_expect_eq(find(&box, "a"), a2);
    cr_expect_eq(find(&box, "a/1"), a1);
    cr_expect_eq(find(&box, "a/2"), a2);
    cr_expect_eq(find(&box, "a/3"), -ERR_NOTFOUND);
    cr_expect_eq(find(&box, "b/1"), b1);
    char id[24];
    snprintf(id, sizeof(id), "%lld", (long long)b1);
    cr_expect_eq(find(&box, id), b1);
    /* A name of digits goes before an id. */
    int64_t digits = box_sweep(&box, id);
    cr_expect_eq(find(&box, id), digits);
    const char *none[] = {
        "", "c", "a/", "/1", "a/x", "a/01", "a/-1", "99", "-1", "a/1/1", "99999999999999999999"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        cr_expect_eq(find(&box, none[i]), -ERR_NOTFOUND, "%s", none[i]);
    }
    box_close(&box);
}

static int ids(const struct model_sweep *sweep, void *arg)
{
    char *all = arg;
    say(all, "%s/%d ", sweep->name, (int)sweep->number);
    return 0;
}

Test(sweeps, each_the_newest_first)
{
    struct box box;
    box_open(&box);
    int64_t first = box_sweep(&box, "a");
    box_sweep(&box, "b");
    box_sweep(&box, "a");
    cr_expect_eq(store_sweep_set_state(box.store, first, SWEEP_CANCELLED, 88, "by alice"), 0);
    const struct {
        struct store_sweep_filter filter;
        const char *want;
    } cases[] = {
        {{0}, "a/2 b/1 a/1 "},       {{.open_only = true}, "a/2 b/1 "},
        {{.name = "a"}, "a/2 a/1 "}, {{.name = "a", .open_only = true}, "a/2 "},
        {{.limit = 2}, "a/2 b/1 "},  {{.name = "c"}, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char all[SAY_ROOM] = "";
        cr_expect_eq(store_sweeps_each(box.store, &cases[i].filter, ids, all), 0);
        cr_expect_str_eq(all, cases[i].want);
    }
    char all[SAY_ROOM] = "";
    cr_expect_eq(store_sweeps_each(box.store, NULL, ids, all), 0);
    cr_expect_str_eq(all, "a/2 b/1 a/1 ");
    struct model_sweep out;
    cr_assert_eq(store_sweep_get(box.store, first, box.arena, &out), 0);
    cr_expect_eq(out.state, SWEEP_CANCELLED);
    cr_expect_eq(out.ended_wall_ns, 88);
    cr_expect_str_eq(out.end_reason, "by alice");
    cr_expect_eq(store_sweep_set_state(box.store, 99, SWEEP_DONE, 1, NULL), -ERR_NOTFOUND);
    box_close(&box);
}

/* --- what a sweep is made of --- */

static int workload_names(const struct model_workload *w, void *arg)
{
    say(arg, "%s", w->name);
    return 0;
}

Test(parts, workloads)
{
    struct box box;
    struct model_workload out;
    int64_t id = 0;
    char all[SAY_ROOM] = "";
    box_open(&box);
    int64_t sweep = box_sweep(&box, "s");
    struct model_workload in = {.sweep = sweep,
                                .index = 1,
                                .name = "B",
                                .source_kind = SOURCE_ARCHIVE,
                                .source = "/srv/git",
                                .setup = "s",
                                .reset = "r",
                                .run = "make",
                                .check = "c",
                                .fingerprint = "f"};
    cr_assert_eq(store_workload_insert(box.store, &in, &id), 0, "%s", store_error(box.store));
    box_workload(&box, sweep, 0, "A");
    cr_assert_eq(store_workload_get(box.store, id, box.arena, &out), 0);
    cr_expect_eq(out.sweep, sweep);
    cr_expect_eq(out.index, 1);
    cr_expect_eq(out.source_kind, SOURCE_ARCHIVE);
    cr_expect_str_eq(out.name, "B");
    cr_expect_str_eq(out.source, "/srv/git");
    cr_expect_str_eq(out.setup, "s");
    cr_expect_str_eq(out.reset, "r");
    cr_expect_str_eq(out.run, "make");
    cr_expect_str_eq(out.check, "c");
    cr_expect_str_eq(out.fingerprint, "f");
    cr_expect_eq(store_workloads_each(box.store, sweep, workload_names, all), 0);
    cr_expect_str_eq(all, "AB");
    cr_expect_eq(store_workload_get(box.store, 99, box.arena, &out), -ERR_NOTFOUND);
    in.sweep = 99;
    cr_expect_eq(store_workload_insert(box.store, &in, &id), -ERR_CONFLICT);
    box_close(&box);
}

static int variant_names(const struct model_variant *v, void *arg)
{
    char *all = arg;
    say(all, "%s%d", v->name, (int)v->env_count);
    return 0;
}

Test(parts, variants_keep_their_environment_in_order)
{
    struct box box;
    struct model_variant out;
    int64_t id = 0;
    char all[SAY_ROOM] = "";
    const char *env[] = {"Z=1", "A=two words\nand a line", "EMPTY="};
    box_open(&box);
    int64_t sweep = box_sweep(&box, "s");
    struct model_variant in = {.sweep = sweep,
                               .index = 1,
                               .name = "b",
                               .kernel = "8f3c1d2",
                               .env = env,
                               .env_count = 3,
                               .storage = "{}"};
    cr_assert_eq(store_variant_insert(box.store, &in, &id), 0, "%s", store_error(box.store));
    box_variant(&box, sweep, 0, "a");
    cr_assert_eq(store_variant_get(box.store, id, box.arena, &out), 0);
    cr_expect_str_eq(out.name, "b");
    cr_expect_eq(out.index, 1);
    cr_expect_str_eq(out.kernel, "8f3c1d2");
    cr_expect_str_eq(out.storage, "{}");
    cr_assert_eq(out.env_count, 3);
    for (size_t i = 0; i < 3; i++) {
        cr_expect_str_eq(out.env[i], env[i]);
    }
    cr_expect_eq(store_variants_each(box.store, sweep, variant_names, all), 0);
    cr_expect_str_eq(all, "a0b3");
    box_close(&box);
}

static int count_inputs(const struct model_input *input, void *arg)
{
    int *n = arg;
    *n = *n * 10 + (int)input->size;
    return 0;
}

Test(parts, inputs)
{
    struct box box;
    struct model_input out;
    int n = 0;
    box_open(&box);
    struct box_ids small = box_small(&box);
    int64_t second = box_variant(&box, small.sweep, 1, "b");
    struct model_input in = {.workload = small.workload,
                             .variant = second,
                             .expr = "main..topic",
                             .commit = "c0",
                             .tree = "t0",
                             .subject = "make it so",
                             .size = 2,
                             .dirty = true};
    cr_assert_eq(store_input_insert(box.store, &in), 0, "%s", store_error(box.store));
    cr_expect_eq(store_input_insert(box.store, &in), -ERR_EXISTS);
    struct model_input tree = {.workload = small.workload,
                               .variant = small.variant,
                               .expr = "",
                               .commit = "",
                               .tree = "",
                               .subject = "",
                               .size = 1,
                               .host_dir = "/usr/src"};
    cr_assert_eq(store_input_insert(box.store, &tree), 0);
    cr_assert_eq(store_input_get(box.store, small.workload, second, box.arena, &out), 0);
    cr_expect_str_eq(out.expr, "main..topic");
    cr_expect_str_eq(out.commit, "c0");
    cr_expect_str_eq(out.tree, "t0");
    cr_expect_str_eq(out.subject, "make it so");
    cr_expect(!out.has_blob);
    cr_expect(out.dirty);
    cr_expect_null(out.host_dir);
    cr_assert_eq(store_input_get(box.store, small.workload, small.variant, box.arena, &out), 0);
    cr_expect_str_eq(out.host_dir, "/usr/src");
    cr_expect_eq(store_inputs_each(box.store, small.sweep, count_inputs, &n), 0);
    cr_expect_eq(n, 12);
    cr_expect_eq(store_input_get(box.store, small.workload, 99, box.arena, &out), -ERR_NOTFOUND);
    box_close(&box);
}

/* --- on a host --- */

static int sweep_order(const struct model_sweep_host *row, void *arg)
{
    char *all = arg;
    say(all, "%d:%d ", (int)row->sweep, (int)row->host);
    return 0;
}

Test(progress, of_a_sweep_on_a_host)
{
    struct box box;
    struct model_sweep_host out;
    box_open(&box);
    int64_t host = box_host(&box, "h");
    int64_t sweep = box_sweep(&box, "s");
    struct model_sweep_host in = {.sweep = sweep,
                                  .host = host,
                                  .selector = "class:p6",
                                  .seed = UINT64_MAX,
                                  .order = ORDER_SHUFFLE,
                                  .until_runs = 5,
                                  .warmup = 2,
                                  .budget_ns = 100,
                                  .retry_invalid = 3,
                                  .retry_interrupted = 4,
                                  .retry_failed = 1,
                                  .settle_timeout_ns = 60,
                                  .settings = "{\"a\": 1}"};
    cr_assert_eq(store_sweep_host_insert(box.store, &in), 0, "%s", store_error(box.store));
    cr_expect_eq(store_sweep_host_insert(box.store, &in), -ERR_EXISTS);
    in.next_block = 7;
    in.next_slot = 99;
    in.used_ns = 12345;
    in.finished = true;
    in.skipped = "too small";
    in.seed = 1; /* not written by progress */
    cr_assert_eq(store_sweep_host_progress(box.store, &in), 0);
    cr_assert_eq(store_sweep_host_get(box.store, sweep, host, box.arena, &out), 0);
    cr_expect_str_eq(out.selector, "class:p6");
    cr_expect_eq(out.seed, UINT64_MAX);
    cr_expect_eq(out.order, ORDER_SHUFFLE);
    cr_expect_eq(out.until_runs, 5);
    cr_expect_eq(out.warmup, 2);
    cr_expect_eq(out.budget_ns, 100);
    cr_expect_eq(out.retry_invalid, 3);
    cr_expect_eq(out.retry_interrupted, 4);
    cr_expect_eq(out.retry_failed, 1);
    cr_expect_eq(out.settle_timeout_ns, 60);
    cr_expect_eq(out.next_block, 7);
    cr_expect_eq(out.next_slot, 99);
    cr_expect_eq(out.used_ns, 12345);
    cr_expect(out.finished);
    cr_expect_str_eq(out.skipped, "too small");
    cr_expect_str_eq(out.settings, "{\"a\": 1}");
    in.host = 99;
    cr_expect_eq(store_sweep_host_progress(box.store, &in), -ERR_NOTFOUND);
    box_close(&box);
}

Test(progress, open_ones_by_urgency_and_age)
{
    struct box box;
    char all[SAY_ROOM] = "";
    box_open(&box);
    int64_t h1 = box_host(&box, "h1");
    int64_t h2 = box_host(&box, "h2");
    int64_t normal = box_sweep(&box, "normal");
    int64_t ended = box_sweep(&box, "ended");
    int64_t later = box_sweep(&box, "later");
    struct model_sweep gate = {.name = "gate",
                               .state = SWEEP_ACTIVE,
                               .priority = PRIORITY_GATE,
                               .file = "f",
                               .text = "t",
                               .sets = "{}",
                               .compare = "[]",
                               .submitted_by = "x"};
    int64_t urgent = 0;
    int64_t number = 0;
    cr_assert_eq(store_sweep_insert(box.store, &gate, &urgent, &number), 0);
    box_sweep_host(&box, later, h1);
    box_sweep_host(&box, normal, h1);
    box_sweep_host(&box, ended, h1);
    box_sweep_host(&box, urgent, h1);
    box_sweep_host(&box, normal, h2);
    cr_assert_eq(store_sweep_set_state(box.store, ended, SWEEP_DONE, 1, NULL), 0);
    cr_expect_eq(store_sweep_hosts_open(box.store, h1, sweep_order, all), 0);
    char want[64];
    snprintf(want, sizeof(want), "%d:1 %d:1 %d:1 ", (int)urgent, (int)normal, (int)later);
    cr_expect_str_eq(all, want);
    struct model_sweep_host done = {.sweep = normal, .host = h1, .finished = true};
    cr_assert_eq(store_sweep_host_progress(box.store, &done), 0);
    all[0] = '\0';
    cr_expect_eq(store_sweep_hosts_open(box.store, 0, sweep_order, all), 0);
    snprintf(want, sizeof(want), "%d:1 %d:1 %d:2 ", (int)urgent, (int)later, (int)normal);
    cr_expect_str_eq(all, want);
    all[0] = '\0';
    cr_expect_eq(store_sweep_hosts_each(box.store, normal, sweep_order, all), 0);
    snprintf(want, sizeof(want), "%d:1 %d:2 ", (int)normal, (int)normal);
    cr_expect_str_eq(all, want);
    box_close(&box);
}

static int cell_order(const struct model_cell *cell, void *arg)
{
    char *all = arg;
    say(all, "%d:%d:%d ", (int)cell->workload, (int)cell->jobs, (int)cell->variant);
    return 0;
}

Test(cells, are_one_a_point)
{
    struct box box;
    struct model_cell out;
    char all[SAY_ROOM] = "";
    box_open(&box);
    struct box_ids s = box_small(&box); /* workload 1, variant 1, jobs 4 */
    int64_t v2 = box_variant(&box, s.sweep, 1, "b");
    int64_t last = box_cell(&box, s.sweep, s.host, s.workload, v2, 4);
    box_cell(&box, s.sweep, s.host, s.workload, s.variant, 0);
    box_cell(&box, s.sweep, s.host, s.workload, s.variant, -1);
    int64_t id = 0;
    struct model_cell twin = {.sweep = s.sweep,
                              .host = s.host,
                              .workload = s.workload,
                              .variant = v2,
                              .jobs = 4,
                              .state = CELL_OPEN};
    cr_expect_eq(store_cell_insert(box.store, &twin, &id), -ERR_EXISTS);
    twin.host = 77;
    cr_expect_eq(store_cell_insert(box.store, &twin, &id), -ERR_CONFLICT,
                 "a host that the sweep does not use");
    cr_expect_eq(store_cells_each(box.store, s.sweep, s.host, cell_order, all), 0);
    cr_expect_str_eq(all, "1:-1:1 1:0:1 1:4:1 1:4:2 ");
    all[0] = '\0';
    cr_expect_eq(store_cells_each(box.store, s.sweep, 0, cell_order, all), 0);
    cr_expect_str_eq(all, "1:-1:1 1:0:1 1:4:1 1:4:2 ");
    cr_expect_eq(store_cell_set_state(box.store, last, CELL_FAILED, "setup: exit 2"), 0);
    cr_expect_eq(store_cell_set_fingerprint(box.store, last, "ff00"), 0);
    cr_assert_eq(store_cell_get(box.store, last, box.arena, &out), 0);
    cr_expect_eq(out.state, CELL_FAILED);
    cr_expect_str_eq(out.reason, "setup: exit 2");
    cr_expect_str_eq(out.fingerprint, "ff00");
    cr_expect_eq(out.run_timeout_ns, 100);
    cr_expect_eq(out.setup_timeout_ns, 0);
    cr_expect_eq(store_cell_set_state(box.store, last, CELL_OPEN, NULL), 0);
    cr_assert_eq(store_cell_get(box.store, last, box.arena, &out), 0);
    cr_expect_null(out.reason);
    cr_expect_eq(store_cell_set_state(box.store, 99, CELL_OPEN, NULL), -ERR_NOTFOUND);
    box_close(&box);
}

static int block_order(const struct model_block *block, void *arg)
{
    char *all = arg;
    say(all, "%d%s ", (int)block->number, block->broken ? "!" : "");
    return 0;
}

Test(blocks, are_by_number)
{
    struct box box;
    struct model_block out;
    char all[SAY_ROOM] = "";
    box_open(&box);
    struct box_ids s = box_small(&box);
    struct model_block in = {.sweep = s.sweep,
                             .host = s.host,
                             .number = 2,
                             .seed = UINT64_MAX,
                             .mirror_of = 1,
                             .look = 5,
                             .drawn_wall_ns = 8};
    cr_assert_eq(store_block_insert(box.store, &in), 0);
    box_block(&box, s.sweep, s.host, 1);
    cr_expect_eq(store_block_insert(box.store, &in), -ERR_EXISTS);
    cr_assert_eq(store_block_get(box.store, s.sweep, s.host, 2, &out), 0);
    cr_expect_eq(out.seed, UINT64_MAX);
    cr_expect_eq(out.mirror_of, 1);
    cr_expect_eq(out.look, 5);
    cr_expect_eq(out.drawn_wall_ns, 8);
    cr_expect(!out.broken);
    cr_expect_eq(store_block_set_broken(box.store, s.sweep, s.host, 1), 0);
    cr_expect_eq(store_block_set_broken(box.store, s.sweep, s.host, 9), -ERR_NOTFOUND);
    cr_expect_eq(store_block_get(box.store, s.sweep, s.host, 9, &out), -ERR_NOTFOUND);
    cr_expect_eq(store_blocks_each(box.store, s.sweep, s.host, block_order, all), 0);
    cr_expect_str_eq(all, "0 1! 2 ");
    box_close(&box);
}

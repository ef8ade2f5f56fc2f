/* load_test.c: whole sweeps in memory, progress, comparisons, retractions, events. */
#include "coordinator/store/load.h"

#include "common/err.h"
#include "common/mem.h"
#include "coordinator/store/attempts.h"
#include "coordinator/store/events.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/runs.h"
#include "coordinator/store/store.h"
#include "coordinator/store/sweeps.h"
#include "coordinator/store/verdicts.h"
#include "tests/unit/coordinator/store/store_help.h"

#include <criterion/criterion.h>

#include <math.h>
#include <string.h>

/* An attempt with a mark and a fact, whole or not. */
static void put_attempt(struct box *box, const struct model_attempt *a, bool whole)
{
    const struct model_mark mark = {
        .run = a->run, .attempt = a->attempt, .mark = MARK_LOAD, .text = "2.0"};
    const struct model_fact fact = {"objects", "12"};
    cr_assert_eq(store_attempt_begin(box->store, a->run, a->attempt, 1), 0);
    cr_assert_eq(store_attempt_put_mark(box->store, 0, &mark, NULL), 0);
    cr_assert_eq(store_attempt_put_result(box->store, 1, a, &fact, 1, NULL), 0);
    if (whole) {
        cr_assert_eq(store_attempt_put_end(box->store, a->run, a->attempt, 2, 3, NULL), 0);
    }
}

static void count_it(struct box *box, int64_t id, uint32_t counted)
{
    struct model_run run;
    cr_assert_eq(store_run_get(box->store, id, box->arena, &run), 0);
    run.state = RUN_DONE;
    run.counted = counted;
    cr_assert_eq(store_run_put(box->store, &run), 0);
}

Test(load, brings_everything_of_one_sweep)
{
    struct box box;
    struct model_sweep_data d;
    const char *env[] = {"A=1"};
    const struct model_fact fact = {"os", "Linux"};
    int64_t id = 0;
    box_open(&box);
    struct box_ids s = box_small(&box);
    /* Another sweep on the same host, of which nothing may appear. */
    int64_t other = box_sweep(&box, "other");
    int64_t other_w = box_workload(&box, other, 0, "w");
    int64_t other_v = box_variant(&box, other, 0, "v");
    box_sweep_host(&box, other, s.host);
    int64_t other_cell = box_cell(&box, other, s.host, other_w, other_v, 1);
    int64_t other_run = box_run(&box, other, s.host, other_cell, 0, 0);
    struct model_attempt theirs = box_attempt(other_run, 1);
    put_attempt(&box, &theirs, true);

    int64_t h2 = box_host(&box, "alpha");
    box_sweep_host(&box, s.sweep, h2);
    cr_assert_eq(store_host_add_class(box.store, h2, "p6"), 0);
    cr_assert_eq(store_host_set_facts(box.store, h2, &fact, 1), 0);
    struct model_variant v = {
        .sweep = s.sweep, .index = 1, .name = "b", .env = env, .env_count = 1};
    cr_assert_eq(store_variant_insert(box.store, &v, &id), 0);
    int64_t cell2 = box_cell(&box, s.sweep, h2, s.workload, id, 0);
    struct model_input input = {.workload = s.workload,
                                .variant = id,
                                .expr = "x",
                                .commit = "c",
                                .tree = "t",
                                .subject = "s",
                                .size = 4};
    cr_assert_eq(store_input_insert(box.store, &input), 0);
    int64_t run2 = box_run(&box, s.sweep, h2, cell2, 0, 0);
    int64_t run3 = box_run(&box, s.sweep, s.host, s.cell, 0, 1);
    struct model_attempt a = box_attempt(run2, 1);
    put_attempt(&box, &a, true);
    a = box_attempt(s.run, 2);
    put_attempt(&box, &a, true);
    a = box_attempt(s.run, 1);
    put_attempt(&box, &a, true);
    a = box_attempt(run3, 1);
    put_attempt(&box, &a, false); /* not whole: left out */
    struct model_retraction r = {
        .sweep = s.sweep, .cell = s.cell, .because = "wrong", .who = "al", .wall_ns = 4};
    cr_assert_eq(store_retraction_insert(box.store, &r, &id), 0);

    cr_assert_eq(store_load_sweep(box.store, s.sweep, box.arena, &d), 0, "%s",
                 store_error(box.store));
    cr_expect_str_eq(d.sweep.name, "vm");
    cr_expect_str_eq(d.sweep.text, "sweep: x\n");
    cr_assert_eq(d.sweep_host_count, 2);
    cr_expect_eq(d.sweep_hosts[0].host, s.host);
    cr_assert_eq(d.host_count, 2);
    cr_expect_str_eq(d.hosts[1].name, "alpha");
    cr_assert_eq(d.hosts[1].class_count, 1);
    cr_expect_str_eq(d.hosts[1].classes[0], "p6");
    cr_assert_eq(d.hosts[1].fact_count, 1);
    cr_expect_str_eq(d.hosts[1].facts[0].value, "Linux");
    cr_expect_eq(d.hosts[0].class_count, 0);
    cr_assert_eq(d.workload_count, 1);
    cr_expect_str_eq(d.workloads[0].name, "kernel");
    cr_assert_eq(d.variant_count, 2);
    cr_expect_str_eq(d.variants[1].env[0], "A=1");
    cr_assert_eq(d.input_count, 1);
    cr_expect_str_eq(d.inputs[0].commit, "c");
    cr_assert_eq(d.cell_count, 2);
    cr_expect_eq(d.cells[0].id, s.cell);
    cr_assert_eq(d.run_count, 3);
    cr_expect_eq(d.runs[0].id, s.run);
    cr_expect_eq(d.runs[1].id, run3);
    cr_expect_eq(d.runs[2].id, run2);
    cr_assert_eq(d.attempt_count, 3);
    cr_expect(d.attempts[0].run == s.run && d.attempts[0].attempt == 1);
    cr_expect(d.attempts[1].run == s.run && d.attempts[1].attempt == 2);
    cr_expect(d.attempts[2].run == run2);
    cr_expect(d.attempts[0].whole);
    cr_expect_str_eq(d.attempts[2].boot_id, "boot");
    cr_expect_eq(d.attempts[2].real_ns.v, 1500);
    cr_assert_eq(d.mark_count, 3);
    cr_expect(d.marks[1].run == s.run && d.marks[1].attempt == 2);
    cr_expect_str_eq(d.marks[2].text, "2.0");
    cr_assert_eq(d.fact_count, 3);
    cr_expect_str_eq(d.facts[0].key, "objects");
    cr_assert_eq(d.retraction_count, 1);
    cr_expect_str_eq(d.retractions[0].because, "wrong");
    box_close(&box);
}

/* Two sweeps that were drawn in turns, so that the ids of the runs of each are apart. */
static struct box_ids drawn_in_turns(struct box *box, int64_t n)
{
    struct box_ids s = box_small(box);
    int64_t other = box_sweep(box, "other");
    int64_t w = box_workload(box, other, 0, "w");
    int64_t v = box_variant(box, other, 0, "v");
    box_sweep_host(box, other, s.host);
    int64_t cell = box_cell(box, other, s.host, w, v, 1);
    for (int64_t i = 1; i <= n; i++) {
        int64_t run = box_run(box, s.sweep, s.host, s.cell, 0, n - i + 1);
        struct model_attempt a = box_attempt(run, 1);
        put_attempt(box, &a, true);
        count_it(box, run, 1);
        run = box_run(box, other, s.host, cell, 0, i);
        a = box_attempt(run, 1);
        put_attempt(box, &a, true);
    }
    return s;
}

/* Recipe: nobody else is served while a page is read: no step reads more than its page and what
 * hangs on one run, however long the sweep is. */
Test(load, no_step_reads_more_than_its_page)
{
    enum { RUNS = 700, OF_A_RUN = 4 };
    struct box box;
    struct model_sweep_data whole, d;
    box_open(&box);
    struct box_ids s = drawn_in_turns(&box, RUNS);
    cr_assert_eq(store_load_sweep(box.store, s.sweep, box.arena, &whole), 0);
    cr_assert_eq(whole.run_count, RUNS + 1);
    cr_assert_eq(whole.attempt_count, RUNS);
    cr_assert_eq(whole.mark_count, RUNS);
    cr_assert_eq(whole.fact_count, RUNS);
    for (size_t page = 1; page <= 100; page = page * 3 + 1) {
        struct store_load *l = store_load_new(box.store, s.sweep, box.arena, &d);
        size_t steps = 0, rows = 0;
        int rc;
        while ((rc = store_load_step(l, page)) == 1) {
            cr_assert(steps == 0 || store_load_read(l) <= page + OF_A_RUN, "page %zu: %zu rows", page,
                      store_load_read(l));
            rows += store_load_read(l);
            steps++;
        }
        cr_assert_eq(rc, 0, "%s", store_error(box.store));
        cr_assert_geq(steps, (4 * RUNS) / (page + OF_A_RUN));
        cr_assert_geq(rows + page + OF_A_RUN, 4 * RUNS);
        store_load_free(&l);
        cr_assert_eq(d.run_count, whole.run_count);
        cr_assert_eq(d.attempt_count, whole.attempt_count);
        cr_assert_eq(d.mark_count, whole.mark_count);
        cr_assert_eq(d.fact_count, whole.fact_count);
        cr_assert_eq(d.cell_count, whole.cell_count);
        for (size_t i = 0; i < d.run_count; i++) {
            cr_assert_eq(d.runs[i].id, whole.runs[i].id);
            cr_assert(i == 0 || d.runs[i - 1].slot < d.runs[i].slot, "by slot");
        }
        for (size_t i = 0; i < d.attempt_count; i++) {
            cr_assert_eq(d.attempts[i].run, whole.attempts[i].run);
            cr_assert_eq(d.marks[i].run, d.attempts[i].run);
        }
    }
    box_close(&box);
}

/* A run, and the attempt that counts, are of one moment, whatever is written between the pages. */
Test(load, what_changes_meanwhile_is_there_as_a_whole_or_not)
{
    enum { RUNS = 60 };
    struct box box;
    struct model_sweep_data d;
    box_open(&box);
    struct box_ids s = drawn_in_turns(&box, 1);
    int64_t runs[RUNS];
    for (int64_t i = 0; i < RUNS; i++) {
        runs[i] = box_run(&box, s.sweep, s.host, s.cell, 1, 10 + i);
    }
    struct store_load *l = store_load_new(box.store, s.sweep, box.arena, &d);
    int rc = 1;
    for (size_t i = 0; rc == 1; i++) {
        rc = store_load_step(l, 8);
        if (i < RUNS) {
            struct model_attempt a = box_attempt(runs[RUNS - 1 - i], 1);
            put_attempt(&box, &a, true);
            count_it(&box, runs[RUNS - 1 - i], 1);
            box_run(&box, s.sweep, s.host, s.cell, 2, 100 + (int64_t)i); /* and new ones */
        }
    }
    cr_assert_eq(rc, 0, "%s", store_error(box.store));
    store_load_free(&l);
    for (size_t i = 0; i < d.attempt_count; i++) {
        size_t k = 0;
        while (k < d.run_count && d.runs[k].id != d.attempts[i].run) {
            k++;
        }
        cr_assert_lt(k, d.run_count, "an attempt of a run that is not there");
        cr_assert_eq(d.runs[k].counted, d.attempts[i].attempt);
    }
    size_t counted = 0;
    for (size_t i = 0; i < d.run_count; i++) {
        counted += d.runs[i].counted != 0;
    }
    cr_assert_eq(counted, d.attempt_count);
    box_close(&box);
}

Test(load, of_a_sweep_that_has_nothing_yet)
{
    struct box box;
    struct model_sweep_data d;
    box_open(&box);
    int64_t sweep = box_sweep(&box, "bare");
    cr_assert_eq(store_load_sweep(box.store, sweep, box.arena, &d), 0);
    cr_expect_eq(d.run_count + d.attempt_count + d.host_count + d.cell_count, 0);
    cr_expect_null(d.runs);
    cr_expect_eq(store_load_sweep(box.store, 99, box.arena, &d), -ERR_NOTFOUND);
    box_close(&box);
}

Test(load, keeps_within_its_memory)
{
    struct box box;
    struct model_sweep_data d;
    box_open(&box);
    struct box_ids s = box_small(&box);
    for (int64_t i = 1; i < 100; i++) {
        box_run(&box, s.sweep, s.host, s.cell, 0, i);
    }
    struct mem_arena *small = mem_arena_new(4096);
    cr_expect_eq(store_load_sweep(box.store, s.sweep, small, &d), -ERR_LIMIT);
    mem_arena_free(&small);
    cr_expect_eq(store_failed(box.store), 0, "that is no failure of the database");
    cr_expect_eq(store_load_sweep(box.store, s.sweep, box.arena, &d), 0);
    cr_expect_eq(d.run_count, 100);
    box_commit(&box);
    box_close(&box);
}

Test(progress, adds_up_what_counts)
{
    struct box box;
    struct store_progress p;
    int64_t id = 0;
    box_open(&box);
    struct box_ids s = box_small(&box);
    int64_t run2 = box_run(&box, s.sweep, s.host, s.cell, 0, 1);
    int64_t run3 = box_run(&box, s.sweep, s.host, s.cell, 0, 2);
    struct model_run warm = {.sweep = s.sweep,
                             .host = s.host,
                             .cell = s.cell,
                             .slot = 3,
                             .warmup = true,
                             .state = RUN_QUEUED};
    cr_assert_eq(store_run_insert(box.store, &warm, &id), 0);
    struct model_attempt a = box_attempt(s.run, 1);
    put_attempt(&box, &a, true);
    a = box_attempt(s.run, 2); /* superseded: counts nowhere */
    put_attempt(&box, &a, true);
    a = box_attempt(run2, 1);
    a.real_ns.has = false;
    put_attempt(&box, &a, true);
    a = box_attempt(id, 1);
    put_attempt(&box, &a, true);
    count_it(&box, s.run, 1);
    count_it(&box, run2, 1);
    count_it(&box, id, 1);
    (void)run3;
    cr_assert_eq(store_progress(box.store, s.sweep, box.arena, &p), 0, "%s",
                 store_error(box.store));
    cr_assert_eq(p.host_count, 1);
    cr_expect_eq(p.hosts[0].host, s.host);
    cr_expect_eq(p.hosts[0].runs[RUN_DONE], 2);
    cr_expect_eq(p.hosts[0].runs[RUN_QUEUED], 1);
    cr_expect_eq(p.hosts[0].warmups[RUN_DONE], 1);
    cr_expect_eq(p.hosts[0].warmups[RUN_QUEUED], 0);
    cr_assert_eq(p.cell_count, 1);
    cr_expect_eq(p.cells[0].cell, s.cell);
    cr_expect_eq(p.cells[0].counted, 2);
    cr_expect_eq(p.cells[0].measured, 1);
    cr_expect_eq(p.cells[0].real_ns, 1500);
    cr_expect_eq(p.cells[0].span_ns, 10000);
    box_close(&box);
}

Test(progress, is_not_upset_by_absurd_times)
{
    struct box box;
    struct store_progress p;
    box_open(&box);
    struct box_ids s = box_small(&box);
    int64_t run2 = box_run(&box, s.sweep, s.host, s.cell, 0, 1);
    for (int i = 0; i < 2; i++) {
        struct model_attempt a = box_attempt(i == 0 ? s.run : run2, 1);
        a.real_ns.v = INT64_MAX;
        a.begin_wall_ns = INT64_MIN;
        a.end_wall_ns = INT64_MAX;
        put_attempt(&box, &a, true);
        count_it(&box, a.run, 1);
    }
    cr_expect_eq(store_progress(box.store, s.sweep, box.arena, &p), 0, "%s",
                 store_error(box.store));
    cr_expect_eq(p.cells[0].real_ns, INT64_MAX);
    box_close(&box);
}

/* --- comparisons --- */

static int comparison(const struct model_comparison *c, void *arg)
{
    say(arg, "%d %d %s %s %s%s%s ", (int)c->look, c->jobs, c->verdict, c->has_ratio ? "r" : "-",
        c->open ? "open" : "closed", c->stale ? " stale" : "",
        c->because != NULL ? c->because : "");
    if (c->has_ratio) {
        cr_expect_float_eq(c->ratio, 1.046, 1e-12);
        cr_expect_float_eq(c->low, 1.02, 1e-12);
        cr_expect_float_eq(c->high, 1.07, 1e-12);
    }
    return 0;
}

Test(comparisons, come_back_and_go_stale)
{
    struct box box;
    char all[SAY_ROOM] = "";
    int64_t id = 0;
    box_open(&box);
    struct box_ids s = box_small(&box);
    int64_t head = box_variant(&box, s.sweep, 1, "b");
    struct model_comparison c = {.sweep = s.sweep,
                                 .host = s.host,
                                 .workload = s.workload,
                                 .jobs = 4,
                                 .base = s.variant,
                                 .head = head,
                                 .look = 5,
                                 .verdict = "unsure",
                                 .open = true};
    cr_assert_eq(store_comparison_insert(box.store, &c, &id), 0, "%s", store_error(box.store));
    c.look = 8;
    c.has_ratio = true;
    c.ratio = 1.046;
    c.low = 1.02;
    c.high = 1.07;
    c.verdict = "slower";
    c.open = false;
    c.because = "decided";
    cr_assert_eq(store_comparison_insert(box.store, &c, &id), 0);
    cr_expect_eq(store_comparisons_each(box.store, s.sweep, comparison, all), 0);
    cr_expect_str_eq(all, "5 4 unsure - open 8 4 slower r closeddecided ");
    cr_expect_eq(store_comparisons_set_stale(box.store, s.sweep), 0);
    all[0] = '\0';
    cr_expect_eq(store_comparisons_each(box.store, s.sweep, comparison, all), 0);
    cr_expect_str_eq(all, "5 4 unsure - open stale 8 4 slower r closed staledecided ");
    const double bad[] = {NAN, INFINITY, 0, -1};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        c.ratio = bad[i];
        cr_expect_eq(store_comparison_insert(box.store, &c, &id), -ERR_INVAL);
        c.ratio = 1;
        c.high = bad[i];
        cr_expect_eq(store_comparison_insert(box.store, &c, &id), -ERR_INVAL);
        c.high = 1;
    }
    box_close(&box);
}

static int retraction(const struct model_retraction *r, void *arg)
{
    say(arg, "%d/%d/%u %s %s %d ", (int)r->cell, (int)r->run, r->attempt, r->because, r->who,
        (int)r->wall_ns);
    return 0;
}

Test(retractions, come_back)
{
    struct box box;
    char all[SAY_ROOM] = "";
    int64_t id = 0;
    box_open(&box);
    struct box_ids s = box_small(&box);
    struct model_retraction a = {
        .sweep = s.sweep, .because = "ccache was off", .who = "al", .wall_ns = 9};
    struct model_retraction b = {
        .sweep = s.sweep, .cell = 2, .run = 3, .attempt = 1, .because = "x", .who = "bo"};
    cr_expect_eq(store_retraction_insert(box.store, &a, &id), 0);
    cr_expect_eq(store_retraction_insert(box.store, &b, &id), 0);
    cr_expect_eq(store_retractions_each(box.store, s.sweep, retraction, all), 0);
    cr_expect_str_eq(all, "0/0/0 ccache was off al 9 2/3/1 x bo 0 ");
    box_close(&box);
}

/* --- events --- */

static int event(const struct model_event *e, void *arg)
{
    say(arg, "%d:%s%s ", (int)e->id, e->text, e->who != NULL ? e->who : "");
    return 0;
}

Test(events, are_read_from_where_a_reader_stands)
{
    struct box box;
    char all[SAY_ROOM] = "";
    int64_t id = 0;
    size_t n = 0;
    box_open(&box);
    cr_expect_eq(store_event_last(box.store, &id), 0);
    cr_expect_eq(id, 0);
    for (int i = 0; i < 5; i++) {
        const char *texts[] = {"a", "b", "c", "d", "e"};
        struct model_event e = {.wall_ns = 10 * i,
                                .kind = EVENT_OPERATOR,
                                .sweep = i % 2,
                                .who = i == 4 ? "al" : NULL,
                                .text = texts[i]};
        cr_assert_eq(store_event_append(box.store, &e, &id), 0);
    }
    cr_expect_eq(id, 5);
    cr_expect_eq(store_events_each(box.store, 2, 0, 2, event, all), 0);
    cr_expect_str_eq(all, "3:c 4:d ");
    all[0] = '\0';
    cr_expect_eq(store_events_each(box.store, 0, 1, 0, event, all), 0);
    cr_expect_str_eq(all, "2:b 4:d ");
    all[0] = '\0';
    cr_expect_eq(store_events_each(box.store, 0, 0, 0, event, all), 0);
    cr_expect_str_eq(all, "1:a 2:b 3:c 4:d 5:eal ");
    cr_expect_eq(store_events_prune(box.store, 1000, &n), 0);
    cr_expect_eq(n, 5);
    box_commit(&box);
    box_reopen(&box);
    /* No id is given twice, also when all are gone. */
    cr_expect_eq(store_event_last(box.store, &id), 0);
    cr_expect_eq(id, 5);
    struct model_event e = {.kind = EVENT_STORE, .text = "f"};
    cr_assert_eq(store_event_append(box.store, &e, &id), 0);
    cr_expect_eq(id, 6);
    box_close(&box);
}

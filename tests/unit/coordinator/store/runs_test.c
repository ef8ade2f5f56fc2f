/* runs_test.c: rows of runs: in the order of slots, by state, by the thousand. */
#include "coordinator/store/runs.h"

#include "common/err.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/store.h"
#include "tests/unit/coordinator/store/store_help.h"

#include <criterion/criterion.h>

static int slots(const struct model_run *run, void *arg)
{
    say(arg, "%d.%d ", (int)run->host, (int)run->slot);
    return 0;
}

static void put_state(struct box *box, int64_t id, enum run_state state)
{
    struct model_run run;
    cr_assert_eq(store_run_get(box->store, id, box->arena, &run), 0);
    run.state = state;
    cr_assert_eq(store_run_put(box->store, &run), 0);
}

Test(runs, come_back_and_change_all_at_once)
{
    struct box box;
    struct model_run out;
    int64_t id = 0;
    box_open(&box);
    struct box_ids s = box_small(&box);
    struct model_run in = {.sweep = s.sweep,
                           .host = s.host,
                           .cell = s.cell,
                           .block = 3,
                           .look = 5,
                           .slot = 17,
                           .warmup = true,
                           .state = RUN_QUEUED,
                           .state_wall_ns = 100};
    cr_assert_eq(store_run_insert(box.store, &in, &id), 0, "%s", store_error(box.store));
    cr_expect_gt(id, s.run, "ids rise");
    cr_assert_eq(store_run_get(box.store, id, box.arena, &out), 0);
    cr_expect_eq(out.sweep, s.sweep);
    cr_expect_eq(out.host, s.host);
    cr_expect_eq(out.cell, s.cell);
    cr_expect_eq(out.block, 3);
    cr_expect_eq(out.look, 5);
    cr_expect_eq(out.slot, 17);
    cr_expect(out.warmup);
    cr_expect_eq(out.state, RUN_QUEUED);
    cr_expect_null(out.reason);
    struct model_run changed = {.id = id,
                                .look = 8,
                                .state = RUN_REPLACED,
                                .state_wall_ns = 200,
                                .expect_wall_ns = 300,
                                .attempts = 4,
                                .counted = 2,
                                .tries_invalid = 1,
                                .tries_interrupted = 2,
                                .tries_failed = 3,
                                .reason = "the block was broken",
                                .replaced_by = 77};
    cr_assert_eq(store_run_put(box.store, &changed), 0);
    cr_assert_eq(store_run_get(box.store, id, box.arena, &out), 0);
    cr_expect_eq(out.look, 8);
    cr_expect_eq(out.state, RUN_REPLACED);
    cr_expect_eq(out.state_wall_ns, 200);
    cr_expect_eq(out.expect_wall_ns, 300);
    cr_expect_eq(out.attempts, 4);
    cr_expect_eq(out.counted, 2);
    cr_expect_eq(out.tries_invalid, 1);
    cr_expect_eq(out.tries_interrupted, 2);
    cr_expect_eq(out.tries_failed, 3);
    cr_expect_str_eq(out.reason, "the block was broken");
    cr_expect_eq(out.replaced_by, 77);
    cr_expect_eq(out.slot, 17, "its place never changes");
    cr_expect_eq(out.cell, s.cell);
    cr_expect(out.warmup);
    changed.id = 999;
    cr_expect_eq(store_run_put(box.store, &changed), -ERR_NOTFOUND);
    cr_expect_eq(store_run_get(box.store, 999, box.arena, &out), -ERR_NOTFOUND);
    cr_expect_eq(store_run_insert(box.store, &in, &id), -ERR_EXISTS, "the slot is taken");
    in.slot = 18;
    in.cell = 99;
    cr_expect_eq(store_run_insert(box.store, &in, &id), -ERR_CONFLICT, "no such cell");
    box_close(&box);
}

Test(runs, are_read_by_slot)
{
    struct box box;
    int64_t ids[8];
    box_open(&box);
    struct box_ids s = box_small(&box); /* host 1, block 0, slot 0 */
    int64_t h2 = box_host(&box, "second");
    box_sweep_host(&box, s.sweep, h2);
    int64_t c2 = box_cell(&box, s.sweep, h2, s.workload, s.variant, 4);
    int64_t other_cell = box_cell(&box, s.sweep, s.host, s.workload, s.variant, 8);
    ids[0] = s.run;
    ids[1] = box_run(&box, s.sweep, h2, c2, 0, 0);
    ids[2] = box_run(&box, s.sweep, s.host, s.cell, 1, 2); /* not in the order of slots */
    ids[3] = box_run(&box, s.sweep, s.host, other_cell, 1, 1);
    ids[4] = box_run(&box, s.sweep, s.host, s.cell, 2, 3);
    ids[5] = box_run(&box, s.sweep, h2, c2, 1, 1);
    put_state(&box, ids[0], RUN_DONE);
    put_state(&box, ids[3], RUN_RUNNING);
    put_state(&box, ids[5], RUN_AWAY);

    char all[SAY_ROOM] = "";
    cr_expect_eq(store_runs_of_sweep(box.store, s.sweep, slots, all), 0);
    cr_expect_str_eq(all, "1.0 1.1 1.2 1.3 2.0 2.1 ");
    all[0] = '\0';
    cr_expect_eq(store_runs_of_host(box.store, s.sweep, s.host, 1, 2, slots, all), 0);
    cr_expect_str_eq(all, "1.1 1.2 ");
    all[0] = '\0';
    cr_expect_eq(store_runs_of_host(box.store, s.sweep, s.host, 1, 0, slots, all), 0);
    cr_expect_str_eq(all, "1.1 1.2 1.3 ");
    all[0] = '\0';
    cr_expect_eq(store_runs_of_block(box.store, s.sweep, s.host, 1, slots, all), 0);
    cr_expect_str_eq(all, "1.1 1.2 ");
    all[0] = '\0';
    cr_expect_eq(store_runs_of_cell(box.store, s.cell, slots, all), 0);
    cr_expect_str_eq(all, "1.0 1.2 1.3 ");
    all[0] = '\0';
    cr_expect_eq(store_runs_held(box.store, 0, slots, all), 0);
    cr_expect_str_eq(all, "1.1 2.1 ");
    all[0] = '\0';
    cr_expect_eq(store_runs_held(box.store, h2, slots, all), 0);
    cr_expect_str_eq(all, "2.1 ");
    all[0] = '\0';
    cr_expect_eq(store_runs_open(box.store, s.sweep, 0, slots, all), 0);
    cr_expect_str_eq(all, "1.1 1.2 1.3 2.0 2.1 ");
    all[0] = '\0';
    cr_expect_eq(store_runs_open(box.store, s.sweep, s.host, slots, all), 0);
    cr_expect_str_eq(all, "1.1 1.2 1.3 ");

    struct model_run next;
    cr_assert_eq(store_run_next(box.store, s.sweep, s.host, 0, box.arena, &next), 0);
    cr_expect_eq(next.id, ids[2], "the first that is queued");
    cr_assert_eq(store_run_next(box.store, s.sweep, s.host, 2, box.arena, &next), 0);
    cr_expect_eq(next.id, ids[4]);
    cr_expect_eq(store_run_next(box.store, s.sweep, s.host, 3, box.arena, &next), -ERR_NOTFOUND);
    /* A later slot may stand in an earlier block: it goes first, and hides nothing. */
    int64_t late = box_run(&box, s.sweep, s.host, s.cell, 1, 9);
    put_state(&box, ids[2], RUN_SENT);
    cr_assert_eq(store_run_next(box.store, s.sweep, s.host, 1, box.arena, &next), 0);
    cr_expect_eq(next.id, late);
    put_state(&box, late, RUN_SENT);
    cr_assert_eq(store_run_next(box.store, s.sweep, s.host, next.block, box.arena, &next), 0);
    cr_expect_eq(next.id, ids[4]);
    box_close(&box);
}

static int counts(const struct store_run_count *count, void *arg)
{
    say(arg, "%d:%s%s=%d ", (int)count->host, model_run_word((int)count->state),
        count->warmup ? "w" : "", (int)count->count);
    return 0;
}

Test(runs, are_counted_by_state)
{
    struct box box;
    char all[SAY_ROOM] = "";
    int64_t id = 0;
    box_open(&box);
    struct box_ids s = box_small(&box);
    put_state(&box, box_run(&box, s.sweep, s.host, s.cell, 0, 1), RUN_DONE);
    put_state(&box, box_run(&box, s.sweep, s.host, s.cell, 0, 2), RUN_DONE);
    struct model_run warm = {.sweep = s.sweep,
                             .host = s.host,
                             .cell = s.cell,
                             .slot = 3,
                             .warmup = true,
                             .state = RUN_DONE};
    cr_assert_eq(store_run_insert(box.store, &warm, &id), 0);
    cr_expect_eq(store_run_counts(box.store, s.sweep, counts, all), 0);
    cr_expect_str_eq(all, "1:queued=1 1:done=2 1:donew=1 ");
    box_close(&box);
}

static int count_runs(const struct model_run *run, void *arg)
{
    int64_t *n = arg;
    cr_assert_eq(run->slot, *n);
    ++*n;
    return 0;
}

Test(runs, go_in_by_the_thousand_in_one_turn)
{
    struct box box;
    int64_t n = 0;
    box_open(&box);
    struct box_ids s = box_small(&box);
    uint64_t before = store_commits(box.store);
    for (int64_t i = 1; i < 20000; i++) {
        if (i % 25 == 1) {
            box_block(&box, s.sweep, s.host, i / 25 + 1);
        }
        box_run(&box, s.sweep, s.host, s.cell, i / 25 + 1, i);
    }
    box_commit(&box);
    box_reopen(&box);
    cr_expect_eq(before, 0);
    cr_expect_eq(store_runs_of_sweep(box.store, s.sweep, count_runs, &n), 0);
    cr_expect_eq(n, 20000);
    box_close(&box);
}

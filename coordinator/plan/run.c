/* run.c: steps of runs. Owns no memory; the rows are the store's. */
#include "coordinator/plan/run.h"

#include "common/err.h"
#include "common/log.h"
#include "common/mem.h"
#include "coordinator/plan/tally.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/runs.h"

#include <assert.h>
#include <stdlib.h>

int plan_run_get(struct plan *plan, int64_t id, struct model_run *out)
{
    int rc = store_run_get(plan->store, id, plan_scratch(plan), out);
    return rc < 0 && rc != -ERR_NOTFOUND ? plan_fail(plan, rc) : rc;
}

int plan_run_write(struct plan *plan, const struct model_run *run)
{
    int rc = tally_take_run(plan, run->sweep, run->id);
    if (rc < 0) {
        return rc;
    }
    rc = store_run_put(plan->store, run);
    return rc < 0 ? plan_fail(plan, rc) : tally_put_run(plan, run);
}

static bool expects(enum run_state state)
{
    return state == RUN_SENT || state == RUN_RUNNING || state == RUN_AWAY;
}

/* The counts of the run's node follow its step. */
static void count_step(struct plan *plan, const struct model_run *run, enum run_state to)
{
    struct plan_node *node = plan_find_node(plan, run->sweep, run->host);
    if (node == NULL) {
        return;
    }
    node->open_runs += (int)model_run_is_end((int)run->state) - (int)model_run_is_end((int)to);
    node->queued += (int)(to == RUN_QUEUED) - (int)(run->state == RUN_QUEUED);
    if (to == RUN_QUEUED && run->block < node->from_block) {
        node->from_block = run->block;
    }
    assert(node->open_runs >= 0 && node->queued >= 0);
}

int plan_run_enter(struct plan *plan, struct plan_now now, struct model_run *run,
                   enum run_state state, const char *reason)
{
    assert(model_run_step_ok((int)run->state, (int)state));
    enum run_state from = run->state;
    count_step(plan, run, state);
    run->state = state;
    run->state_wall_ns = now.wall_ns;
    run->reason = reason;
    if (!expects(state)) {
        run->expect_wall_ns = 0;
    }
    int rc = plan_run_write(plan, run);
    if (rc == 0) {
        rc = plan_event(plan, now, EVENT_RUN_STATE, run->sweep, run->host, run->id, NULL,
                        "%s -> %s%s%s", model_run_word((int)from), model_run_word((int)state),
                        reason != NULL ? ": " : "", reason != NULL ? reason : "");
    }
    return rc;
}

/* --- what is wanted of a run whose attempt is over --- */

static int find_in_block(const struct model_run *run, void *arg)
{
    struct model_run *key = arg;
    if (run->cell != key->cell) {
        return 0;
    }
    key->replaced_by = run->id;
    return 1;
}

/* Whether the run's block was broken; then replaced_by is set, if the new block is drawn. */
static int block_is_broken(struct plan *plan, struct model_run *run, bool *broken)
{
    struct model_block block;
    int rc = store_block_get(plan->store, run->sweep, run->host, run->block, &block);
    if (rc < 0) {
        return plan_fail(plan, rc);
    }
    *broken = block.broken;
    if (block.broken && run->replaced_by == 0) {
        rc = store_runs_of_block(plan->store, run->sweep, run->host, run->block + 1, find_in_block,
                                 run);
    }
    return rc < 0 ? plan_fail(plan, rc) : 0;
}

static int replace(struct plan *plan, struct plan_now now, struct model_run *run)
{
    run->counted = 0;
    return plan_run_enter(plan, now, run, RUN_REPLACED, PLAN_BROKEN_TEXT);
}

int plan_run_again(struct plan *plan, struct plan_now now, struct model_run *run,
                   const char *reason)
{
    bool broken = false;
    int rc = block_is_broken(plan, run, &broken);
    if (rc < 0) {
        return rc;
    }
    if (broken) {
        return replace(plan, now, run);
    }
    struct model_cell cell;
    rc = store_cell_get(plan->store, run->cell, plan_scratch(plan), &cell);
    if (rc < 0) {
        return plan_fail(plan, rc);
    }
    if (cell.state != CELL_OPEN) {
        return plan_run_enter(plan, now, run, RUN_SKIPPED, cell.reason);
    }
    return plan_run_enter(plan, now, run, RUN_QUEUED, reason);
}

int plan_run_finish(struct plan *plan, struct plan_now now, struct model_run *run,
                    const char *reason)
{
    bool broken = false;
    int rc = block_is_broken(plan, run, &broken);
    if (rc < 0) {
        return rc;
    }
    return broken ? replace(plan, now, run) : plan_run_enter(plan, now, run, RUN_DONE, reason);
}

/* --- lists --- */

struct id_list {
    plan_run_pick_f *pick;
    void *arg;
    int64_t *ids;
    size_t count;
    size_t room;
};

static int collect(const struct model_run *run, void *arg)
{
    struct id_list *list = arg;
    if (list->pick != NULL && !list->pick(run, list->arg)) {
        return 0;
    }
    if (list->count == list->room) {
        list->room = list->room == 0 ? 64 : list->room * 2;
        list->ids = mem_xrealloc(list->ids, list->room, sizeof(*list->ids));
    }
    list->ids[list->count++] = run->id;
    return 0;
}

int plan_runs_open(struct plan *plan, int64_t sweep, int64_t host, plan_run_pick_f *pick, void *arg,
                   int64_t **ids, size_t *count)
{
    struct id_list list = {.pick = pick, .arg = arg};
    int rc = sweep != 0 ? store_runs_open(plan->store, sweep, host, collect, &list)
                        : store_runs_held(plan->store, host, collect, &list);
    *ids = NULL;
    *count = 0;
    if (rc == 0 && list.count > 0) {
        *ids = mem_arena_array(plan_scratch(plan), list.count, sizeof(**ids));
        if (*ids == NULL) {
            rc = -ERR_NOMEM;
        } else {
            for (size_t i = 0; i < list.count; i++) {
                (*ids)[i] = list.ids[i];
            }
            *count = list.count;
        }
    }
    free(list.ids);
    return rc < 0 ? plan_fail(plan, rc) : 0;
}

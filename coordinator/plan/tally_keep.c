/* tally_keep.c: counts of cells, read once and kept up to date. Owns the kept counts. */
#include "common/err.h"
#include "common/mem.h"
#include "coordinator/plan/tally.h"
#include "coordinator/store/attempts.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/load.h"
#include "coordinator/store/runs.h"

#include <stdlib.h>

enum { KEPT_CELLS_MAX = 2 * PLAN_MAX_CELLS };

/* Counts of one sweep. */
struct tally_kept {
    struct tally_kept *next; /* looked at before this one */
    int64_t sweep;
    struct mem_arena *arena; /* texts */
    struct tally_cell *cells;
    size_t count;
    size_t room;
};

static struct tally_kept *find_kept(const struct plan *plan, int64_t sweep)
{
    struct tally_kept *k = plan->tallies;
    while (k != NULL && k->sweep != sweep) {
        k = k->next;
    }
    return k;
}

static void free_kept(struct tally_kept *k)
{
    mem_arena_free(&k->arena);
    free(k->cells);
    free(k);
}

void tally_forget(struct plan *plan, int64_t sweep)
{
    for (struct tally_kept **p = &plan->tallies; *p != NULL;) {
        struct tally_kept *k = *p;
        if (sweep == 0 || k->sweep == sweep) {
            *p = k->next;
            free_kept(k);
        } else {
            p = &k->next;
        }
    }
}

/* The one that was asked for goes to the front; those that were not for longest leave. */
static void keep(struct plan *plan, struct tally_kept *k)
{
    size_t cells = k->count;
    for (struct tally_kept **p = &plan->tallies; *p != NULL; p = &(*p)->next) {
        if (*p == k) {
            *p = k->next;
            break;
        }
    }
    k->next = plan->tallies;
    plan->tallies = k;
    for (struct tally_kept **p = &k->next; *p != NULL;) {
        struct tally_kept *old = *p;
        cells += old->count;
        if (cells > KEPT_CELLS_MAX) {
            *p = old->next;
            free_kept(old);
        } else {
            p = &old->next;
        }
    }
}

static struct tally_cell *find_cell(const struct tally_kept *k, int64_t id)
{
    size_t low = 0;
    size_t high = k->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (k->cells[mid].id < id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < k->count && k->cells[low].id == id ? &k->cells[low] : NULL;
}

/* --- one run --- */

static void count_run(struct tally_cell *cell, const struct model_run *run, int sign)
{
    if (run->state == RUN_REPLACED) {
        return;
    }
    cell->skipped += run->state == RUN_SKIPPED ? sign : 0;
    if (run->warmup) {
        cell->warm_have += run->state == RUN_DONE ? sign : 0;
        return;
    }
    cell->have += run->counted != 0 ? sign : 0;
    cell->failed += run->counted == 0 && run->state == RUN_DONE ? sign : 0;
    cell->invalid += sign * (int64_t)run->tries_invalid;
}

/* The times of the attempt that counts. */
static int count_times(struct plan *plan, struct tally_cell *cell, const struct model_run *run,
                       int sign)
{
    struct model_attempt a;
    if (run->counted == 0 || run->state == RUN_REPLACED) {
        return 0;
    }
    int rc = store_attempt_get(plan->store, run->id, run->counted, plan_scratch(plan), &a);
    if (rc < 0) {
        return plan_fail(plan, rc);
    }
    cell->measured += a.real_ns.has ? sign : 0;
    cell->real_sum_ns += a.real_ns.has ? sign * a.real_ns.v : 0;
    cell->span_sum_ns += sign * (a.end_wall_ns - a.begin_wall_ns);
    return 0;
}

static int change(struct plan *plan, struct tally_kept *k, const struct model_run *run, int sign)
{
    struct tally_cell *cell = find_cell(k, run->cell);
    if (cell == NULL) {
        return 0;
    }
    count_run(cell, run, sign);
    return count_times(plan, cell, run, sign);
}

int tally_take_run(struct plan *plan, int64_t sweep, int64_t run)
{
    struct tally_kept *k = find_kept(plan, sweep);
    struct model_run row;
    if (k == NULL) {
        return 0;
    }
    int rc = store_run_get(plan->store, run, plan_scratch(plan), &row);
    return rc < 0 ? plan_fail(plan, rc) : change(plan, k, &row, -1);
}

int tally_put_run(struct plan *plan, const struct model_run *run)
{
    struct tally_kept *k = find_kept(plan, run->sweep);
    return k != NULL ? change(plan, k, run, 1) : 0;
}

/* --- reading all --- */

static int add_cell(const struct model_cell *row, void *arg)
{
    struct tally_kept *k = arg;
    if (k->count == k->room) {
        k->room = k->room == 0 ? 64 : k->room * 2;
        k->cells = mem_xrealloc(k->cells, k->room, sizeof(*k->cells));
    }
    k->cells[k->count++] = (struct tally_cell){.id = row->id,
                                               .host = row->host,
                                               .workload = row->workload,
                                               .variant = row->variant,
                                               .jobs = row->jobs,
                                               .state = row->state};
    if (row->reason == NULL) {
        return 0;
    }
    k->cells[k->count - 1].reason = mem_arena_strdup(k->arena, row->reason);
    return k->cells[k->count - 1].reason != NULL ? 0 : -ERR_NOMEM;
}

static int compare_cells(const void *pa, const void *pb)
{
    const struct tally_cell *a = pa;
    const struct tally_cell *b = pb;
    return a->id < b->id ? -1 : a->id > b->id;
}

static int add_run(const struct model_run *run, void *arg)
{
    struct tally_cell *cell = find_cell(arg, run->cell);
    if (cell != NULL) {
        count_run(cell, run, 1);
    }
    return 0;
}

static int add_times(struct plan *plan, struct tally_kept *k)
{
    struct store_progress p;
    struct mem_arena *arena = mem_arena_new(0);
    int rc = store_progress(plan->store, k->sweep, arena, &p);
    for (size_t i = 0; rc == 0 && i < p.cell_count; i++) {
        struct tally_cell *cell = find_cell(k, p.cells[i].cell);
        if (cell != NULL) {
            cell->measured = p.cells[i].measured;
            cell->real_sum_ns = p.cells[i].real_ns;
            cell->span_sum_ns = p.cells[i].span_ns;
        }
    }
    mem_arena_free(&arena);
    return rc;
}

static int read_all(struct plan *plan, struct tally_kept *k)
{
    int rc = store_cells_each(plan->store, k->sweep, 0, add_cell, k);
    if (rc == 0) {
        if (k->count > 0) {
            qsort(k->cells, k->count, sizeof(*k->cells), compare_cells);
        }
        rc = store_runs_of_sweep(plan->store, k->sweep, add_run, k);
    }
    return rc == 0 ? add_times(plan, k) : rc;
}

int tally_cells(struct plan *plan, int64_t sweep, const struct tally_cell **cells, size_t *count)
{
    struct tally_kept *k = find_kept(plan, sweep);
    if (k == NULL) {
        k = mem_xzalloc(sizeof(*k));
        k->sweep = sweep;
        k->arena = mem_arena_new(0);
        int rc = read_all(plan, k);
        if (rc < 0) {
            free_kept(k);
            return rc;
        }
    }
    keep(plan, k);
    *cells = k->cells;
    *count = k->count;
    return 0;
}

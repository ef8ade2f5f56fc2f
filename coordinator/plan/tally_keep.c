/* tally_keep.c: counts of cells, read once and kept up to date. Owns the kept counts. */
#include "common/err.h"
#include "common/mem.h"
#include "coordinator/plan/tally.h"
#include "coordinator/store/attempts.h"
#include "coordinator/store/cells.h"
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
    bool reading;    /* its runs are counted up to this place: those behind it are not yet */
    int64_t last[3]; /* host, block, slot */
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

static int compare_places(const int64_t a[3], const int64_t b[3])
{
    for (int i = 0; i < 3; i++) {
        if (a[i] != b[i]) {
            return a[i] < b[i] ? -1 : 1;
        }
    }
    return 0;
}

/* One that is still to be read is counted then, as it is then. */
static bool is_counted(const struct tally_kept *k, const struct model_run *run)
{
    const int64_t place[3] = {run->host, run->block, run->slot};
    return !k->reading || compare_places(place, k->last) <= 0;
}

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

/* sign * (a - b) more, as unsigned numbers: what a worker says may be more than a sum holds, and what
 * was added must come out again all the same. */
static void sum_times(int64_t *sum, int sign, int64_t a, int64_t b)
{
    uint64_t span = (uint64_t)a - (uint64_t)b;
    *sum = (int64_t)((uint64_t)*sum + (sign < 0 ? 0 - span : span));
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
    sum_times(&cell->real_sum_ns, sign, a.real_ns.has ? a.real_ns.v : 0, 0);
    sum_times(&cell->span_sum_ns, sign, a.end_wall_ns, a.begin_wall_ns);
    return 0;
}

static int change(struct plan *plan, struct tally_kept *k, const struct model_run *run, int sign)
{
    struct tally_cell *cell = find_cell(k, run->cell);
    if (cell == NULL || !is_counted(k, run)) {
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

struct page {
    struct tally_kept *k;
    int64_t count;
};

static int add_run(const struct store_run_sum *sum, void *arg)
{
    struct page *page = arg;
    struct tally_kept *k = page->k;
    struct tally_cell *cell = find_cell(k, sum->cell);
    const struct model_run run = {.warmup = sum->warmup,
                                  .state = sum->state,
                                  .counted = sum->counted,
                                  .tries_invalid = sum->tries_invalid};
    page->count++;
    k->last[0] = sum->host;
    k->last[1] = sum->block;
    k->last[2] = sum->slot;
    if (cell == NULL) {
        return 0;
    }
    count_run(cell, &run, 1);
    if (sum->counted != 0 && sum->state != RUN_REPLACED && sum->begin_wall_ns.has) {
        cell->measured += sum->real_ns.has;
        sum_times(&cell->real_sum_ns, 1, sum->real_ns.has ? sum->real_ns.v : 0, 0);
        sum_times(&cell->span_sum_ns, 1, sum->end_wall_ns.v, sum->begin_wall_ns.v);
    }
    return 0;
}

/* Counts the next page of runs. 0: that was all; 1: there may be more. */
static int read_page(struct plan *plan, struct tally_kept *k)
{
    struct page page = {.k = k};
    const int64_t after[3] = {k->last[0], k->last[1], k->last[2]};
    int rc = store_run_sums(plan->store, k->sweep, after, TALLY_PAGE, add_run, &page);
    k->reading = page.count == TALLY_PAGE;
    return rc < 0 ? rc : k->reading;
}

static int read_cells(struct plan *plan, struct tally_kept *k)
{
    int rc = store_cells_each(plan->store, k->sweep, 0, add_cell, k);
    if (rc == 0 && k->count > 0) {
        qsort(k->cells, k->count, sizeof(*k->cells), compare_cells);
    }
    return rc;
}

static int begin(struct plan *plan, int64_t sweep, struct tally_kept **out)
{
    struct tally_kept *k = mem_xzalloc(sizeof(*k));
    k->sweep = sweep;
    k->arena = mem_arena_new(0);
    k->reading = true;
    for (int i = 0; i < 3; i++) {
        k->last[i] = INT64_MIN;
    }
    int rc = read_cells(plan, k);
    if (rc < 0) {
        free_kept(k);
        return rc;
    }
    *out = k;
    return 0;
}

int tally_cells(struct plan *plan, int64_t sweep, const struct tally_cell **cells, size_t *count)
{
    struct tally_kept *k = find_kept(plan, sweep);
    int rc = k == NULL ? begin(plan, sweep, &k) : 0;
    if (rc < 0) {
        return rc;
    }
    keep(plan, k);
    if (k->reading) {
        rc = read_page(plan, k);
    }
    if (rc < 0) {
        tally_forget(plan, sweep);
    }
    *cells = rc == 0 ? k->cells : NULL;
    *count = rc == 0 ? k->count : 0;
    return rc;
}

void tally_set_cell(struct plan *plan, int64_t sweep, int64_t id, enum cell_state state,
                    const char *reason)
{
    struct tally_kept *k = find_kept(plan, sweep);
    struct tally_cell *cell = k != NULL ? find_cell(k, id) : NULL;
    if (cell == NULL) {
        return;
    }
    cell->state = state;
    cell->reason = reason != NULL ? mem_arena_strdup(k->arena, reason) : NULL;
    if (reason != NULL && cell->reason == NULL) {
        tally_forget(plan, sweep);
    }
}

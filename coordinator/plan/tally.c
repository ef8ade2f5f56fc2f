/* tally.c: sums of the counts of a sweep's cells, and what follows from them. Reads only. */
#include "coordinator/plan/tally.h"

#include "common/err.h"
#include "common/mem.h"
#include "common/num.h"
#include "coordinator/store/cells.h"

struct counting {
    struct mem_arena *arena;
    struct tally *t;
    size_t room;
    bool cancelled;
};

static size_t find_host(const struct tally *t, int64_t host)
{
    size_t i = 0;
    while (i < t->host_count && t->hosts[i].row.host != host) {
        i++;
    }
    return i;
}

/* --- rows --- */

static int count_host(const struct model_sweep_host *row, void *arg)
{
    struct counting *c = arg;
    (void)row;
    c->room++;
    return 0;
}

static int copy_text(struct mem_arena *arena, const char *from, const char **to)
{
    *to = from != NULL ? mem_arena_strdup(arena, from) : NULL;
    return from == NULL || *to != NULL ? 0 : -ERR_NOMEM;
}

static int add_host(const struct model_sweep_host *row, void *arg)
{
    struct counting *c = arg;
    if (c->t->host_count == c->room) {
        return -ERR_LIMIT;
    }
    struct tally_host *h = &c->t->hosts[c->t->host_count++];
    h->row = *row;
    h->row.settings = NULL;
    int rc = copy_text(c->arena, row->selector, &h->row.selector);
    return rc == 0 ? copy_text(c->arena, row->skipped, &h->row.skipped) : rc;
}

/* --- sums --- */

static void plan_cell(struct tally_cell *cell, const struct model_sweep_host *row)
{
    switch (cell->state) {
    case CELL_OPEN:
        cell->wanted = row->until_runs;
        cell->warm_wanted = row->warmup;
        break;
    case CELL_FAILED: /* what is missing will not be made */
        cell->wanted = row->until_runs;
        cell->failed = cell->wanted - cell->have;
        cell->warm_wanted = cell->warm_have;
        break;
    case CELL_CLOSED:
    case CELL_SKIPPED:
        cell->wanted = cell->have + cell->failed;
        cell->warm_wanted = cell->warm_have;
        break;
    }
}

static int64_t at_least_0(int64_t n)
{
    return n > 0 ? n : 0;
}

/* Adds n times of a length; false when it is out of range. */
static bool add_span(int64_t *sum, int64_t n, int64_t each)
{
    int64_t span;
    return num_mul_i64(n, each, &span) == 0 && num_add_i64(*sum, span, sum) == 0;
}

static void mean_of_host(const struct tally *t, struct tally_host *h)
{
    int64_t sum = 0;
    int64_t n = 0;
    for (size_t i = h->first_cell; i < h->end_cell; i++) {
        const struct tally_cell *cell = &t->cells[i];
        if (num_add_i64(sum, cell->span_sum_ns, &sum) == 0) {
            n += cell->have;
        }
    }
    h->has_mean = n > 0;
    h->mean_ns = n > 0 ? sum / n : 0;
}

static void eta_of_host(const struct tally *t, struct tally_host *h)
{
    int64_t sum = 0;
    bool known = true;
    for (size_t i = h->first_cell; i < h->end_cell; i++) {
        const struct tally_cell *cell = &t->cells[i];
        int64_t left = at_least_0(cell->wanted - cell->have - cell->failed) +
                       at_least_0(cell->warm_wanted - cell->warm_have);
        int64_t each = cell->have > 0 ? cell->span_sum_ns / cell->have : h->mean_ns;
        bool has_mean = cell->have > 0 || h->has_mean;
        known = known && (left == 0 || (has_mean && add_span(&sum, left, each)));
    }
    int64_t budget = h->row.budget_ns - h->row.used_ns;
    if (h->row.budget_ns > 0 && (!known || sum > budget)) {
        sum = at_least_0(budget); /* it stops there, at the end of a block */
        known = true;
    }
    h->has_eta = known;
    h->eta_ns = known ? sum : 0;
}

static void sum_host(struct counting *c, size_t index)
{
    struct tally *t = c->t;
    struct tally_host *h = &t->hosts[index];
    for (size_t i = h->first_cell; i < h->end_cell; i++) {
        struct tally_cell *cell = &t->cells[i];
        plan_cell(cell, &h->row);
        h->wanted += cell->wanted;
        h->have += cell->have;
        h->failed += cell->failed;
        h->warm_wanted += cell->warm_wanted;
        h->warm_have += cell->warm_have;
        h->skipped_runs += cell->skipped;
    }
    int64_t left = at_least_0(h->wanted - h->have - h->failed);
    mean_of_host(t, h);
    if (c->cancelled) {
        h->cancelled = left;
    } else if (h->row.finished && plan_over_budget(&h->row)) {
        h->over_budget = left;
    } else if (h->row.finished) {
        h->no_data = left;
    }
    if (c->cancelled || h->row.finished) {
        h->has_eta = true;
    } else {
        eta_of_host(t, h);
    }
}

static void sum_all(struct counting *c)
{
    struct tally *t = c->t;
    t->has_eta = true;
    for (size_t i = 0; i < t->host_count; i++) {
        sum_host(c, i);
        const struct tally_host *h = &t->hosts[i];
        t->wanted += h->wanted;
        t->have += h->have;
        t->failed += h->failed;
        t->has_eta = t->has_eta && h->has_eta;
        t->eta_ns = h->eta_ns > t->eta_ns ? h->eta_ns : t->eta_ns;
    }
}

static int read_hosts(struct plan *plan, struct counting *c, int64_t sweep)
{
    c->room = 0;
    int rc = store_sweep_hosts_each(plan->store, sweep, count_host, c);
    if (rc == 0) {
        c->t->hosts = mem_arena_array(c->arena, c->room + 1, sizeof(*c->t->hosts));
        rc = c->t->hosts != NULL ? store_sweep_hosts_each(plan->store, sweep, add_host, c)
                                 : -ERR_NOMEM;
    }
    return rc;
}

/* The cells of one host were inserted together: their ids are in a row. */
static void find_ranges(struct tally *t)
{
    for (size_t i = 0; i < t->cell_count; i++) {
        size_t index = t->cells[i].host_index;
        if (index >= t->host_count) {
            continue;
        }
        struct tally_host *h = &t->hosts[index];
        if (h->end_cell == 0) {
            h->first_cell = i;
        }
        h->end_cell = i + 1;
    }
}

static int copy_cells(struct plan *plan, struct counting *c, int64_t sweep)
{
    const struct tally_cell *cells;
    size_t count;
    int rc = tally_cells(plan, sweep, &cells, &count);
    if (rc != 0) {
        return rc;
    }
    c->t->cells = mem_arena_array(c->arena, count + 1, sizeof(*c->t->cells));
    if (c->t->cells == NULL) {
        return -ERR_NOMEM;
    }
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct tally_cell *cell = &c->t->cells[i];
        *cell = cells[i];
        cell->host_index = i > 0 && cells[i].host == cells[i - 1].host
                               ? cell[-1].host_index
                               : find_host(c->t, cells[i].host);
        rc = copy_text(c->arena, cells[i].reason, &cell->reason);
    }
    c->t->cell_count = count;
    find_ranges(c->t);
    return rc;
}

int tally_read(struct plan *plan, const struct model_sweep *sweep, struct mem_arena *arena,
               struct tally *out)
{
    struct counting c = {.arena = arena, .t = out, .cancelled = sweep->state == SWEEP_CANCELLED};
    *out = (struct tally){.hosts = NULL};
    int rc = read_hosts(plan, &c, sweep->id);
    if (rc == 0) {
        rc = copy_cells(plan, &c, sweep->id);
    }
    if (rc == 0) {
        sum_all(&c);
    }
    return rc;
}

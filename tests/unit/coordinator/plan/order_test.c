/* The generator of orders: properties that hold for every seed, and one order written down. */
#include "coordinator/plan/order.h"

#include "common/prng.h"
#include "coordinator/model.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CELLS = 256 };

struct fixture {
    struct order_cell cells[MAX_CELLS];
    bool closed[MAX_CELLS + 1]; /* by id */
    size_t count;
};

/* Cells of a random shape; ids from 1 in the sequence of workload, jobs, variant. */
static void make_cells(struct fixture *f, struct prng *g, uint32_t variants)
{
    memset(f, 0, sizeof(*f));
    uint32_t workloads = 1 + (uint32_t)prng_below(g, 3);
    uint32_t jobs = 1 + (uint32_t)prng_below(g, 6);
    for (uint32_t w = 0; w < workloads; w++) {
        for (uint32_t j = 0; j < jobs; j++) {
            for (uint32_t v = 0; v < variants; v++) {
                struct order_cell *c = &f->cells[f->count++];
                *c = (struct order_cell){(int64_t)f->count, w, v, (int32_t)j - 1};
            }
        }
    }
}

static bool is_open(int64_t cell, void *arg)
{
    const struct fixture *f = arg;
    return !f->closed[cell];
}

/* Copies block `index` into ids; returns its length. */
static size_t draw(struct order *order, struct fixture *f, int64_t index, int64_t *ids)
{
    struct order_block block;
    order_draw(order, index, is_open, f, &block);
    memcpy(ids, block.cells, block.count * sizeof(*ids));
    return block.count;
}

static struct order *make(struct fixture *f, uint64_t seed, int kind, uint32_t warmup)
{
    struct order *order = order_new(seed, kind, warmup, f->cells, f->count);
    cr_assert(order != NULL);
    return order;
}

Test(order, every_open_cell_once_in_a_block)
{
    struct prng g;
    prng_init(&g, 1);
    for (int round = 0; round < 300; round++) {
        struct fixture f;
        make_cells(&f, &g, 1 + (uint32_t)prng_below(&g, 5));
        int kind = (int)prng_below(&g, 2);
        struct order *order = make(&f, prng_next(&g), kind, 2);
        for (int64_t index = 1; index < 8; index++) {
            f.closed[1 + prng_below(&g, f.count)] = true; /* cells close as time goes on */
            int64_t ids[MAX_CELLS];
            size_t n = draw(order, &f, index, ids);
            int seen[MAX_CELLS + 1] = {0};
            for (size_t i = 0; i < n; i++) {
                seen[ids[i]]++;
            }
            for (size_t id = 1; id <= f.count; id++) {
                cr_assert_eq(seen[id], f.closed[id] ? 0 : 1, "cell %zu in block %d", id,
                             (int)index);
            }
        }
        order_free(&order);
    }
}

Test(order, the_second_block_of_a_pair_is_the_first_read_backwards)
{
    struct prng g;
    prng_init(&g, 2);
    int differ = 0;
    for (int round = 0; round < 200; round++) {
        struct fixture f;
        make_cells(&f, &g, 2 + (uint32_t)prng_below(&g, 4));
        struct order *order = make(&f, prng_next(&g), ORDER_INTERLEAVE, 1);
        int64_t before[MAX_CELLS] = {0};
        for (int64_t index = 1; index < 9; index += 2) {
            int64_t a[MAX_CELLS], b[MAX_CELLS];
            size_t n = draw(order, &f, index, a);
            cr_assert_eq(draw(order, &f, index + 1, b), n);
            for (size_t i = 0; i < n; i++) {
                cr_assert_eq(a[i], b[n - 1 - i]);
            }
            /* The variants of one workload and job count stand together. */
            size_t changes = 0;
            for (size_t i = 1; i < n; i++) {
                const struct order_cell *p = &f.cells[a[i - 1] - 1];
                const struct order_cell *q = &f.cells[a[i] - 1];
                changes += p->workload != q->workload || p->jobs != q->jobs;
            }
            uint32_t variants = 1;
            while (variants < f.count && f.cells[variants].variant != 0) {
                variants++;
            }
            cr_assert_eq(changes, f.count / variants - 1);
            differ += index > 1 && memcmp(before, a, n * sizeof(*a)) != 0;
            memcpy(before, a, n * sizeof(*a));
        }
        order_free(&order);
    }
    cr_assert(differ > 400, "pairs differ from one another: %d of 600", differ);
}

Test(order, the_same_seed_gives_the_same_order_whatever_was_asked_before)
{
    struct prng g;
    prng_init(&g, 3);
    for (int round = 0; round < 100; round++) {
        struct fixture f;
        make_cells(&f, &g, 3);
        uint64_t seed = prng_next(&g);
        int kind = round % 2;
        struct order *a = make(&f, seed, kind, 1);
        struct fixture mixed = f;
        for (size_t i = mixed.count; i > 1; i--) {
            size_t j = (size_t)prng_below(&g, i);
            struct order_cell t = mixed.cells[i - 1];
            mixed.cells[i - 1] = mixed.cells[j];
            mixed.cells[j] = t;
        }
        struct order *b = make(&mixed, seed, kind, 1);
        int64_t x[MAX_CELLS], y[MAX_CELLS];
        for (int64_t index = 0; index < 6; index++) {
            size_t n = draw(a, &f, index, x);
            draw(b, &f, 5 - index, y);
            cr_assert_eq(draw(b, &f, index, y), n);
            cr_assert_arr_eq(x, y, n * sizeof(*x));
        }
        struct order *c = make(&f, seed + 1, kind, 1);
        size_t n = 0;
        bool same = true;
        for (int64_t index = 1; index < 9; index += 2) {
            n = draw(a, &f, index, x);
            draw(c, &f, index, y);
            same = same && memcmp(x, y, n * sizeof(*x)) == 0;
        }
        cr_assert(!same || n <= 3, "another seed gives another order");
        order_free(&a);
        order_free(&b);
        order_free(&c);
    }
}

Test(order, a_cell_that_closes_leaves_the_others_in_their_order)
{
    struct prng g;
    prng_init(&g, 4);
    for (int round = 0; round < 200; round++) {
        struct fixture f;
        make_cells(&f, &g, 3);
        struct order *order = make(&f, prng_next(&g), round % 2, 1);
        int64_t all[MAX_CELLS], less[MAX_CELLS];
        int64_t index = 1 + (int64_t)prng_below(&g, 6);
        size_t n = draw(order, &f, index, all);
        int64_t gone = 1 + (int64_t)prng_below(&g, f.count);
        f.closed[gone] = true;
        cr_assert_eq(draw(order, &f, index, less), n - 1);
        for (size_t i = 0, j = 0; i < n; i++) {
            if (all[i] != gone) {
                cr_assert_eq(all[i], less[j++]);
            }
        }
        order_free(&order);
    }
}

Test(order, warm_ups_come_in_rounds_of_the_first_block)
{
    struct prng g;
    prng_init(&g, 5);
    struct fixture f;
    make_cells(&f, &g, 3);
    struct order *order = make(&f, 99, ORDER_INTERLEAVE, 3);
    struct order_block block;
    order_draw(order, 0, is_open, &f, &block);
    cr_assert_eq(block.count, 3 * f.count);
    cr_assert_eq(block.mirror_of, -1);
    int64_t first[MAX_CELLS];
    int64_t *warm = malloc(block.count * sizeof(*warm));
    memcpy(warm, block.cells, block.count * sizeof(*warm));
    size_t n = draw(order, &f, 1, first);
    for (size_t i = 0; i < 3 * n; i++) {
        cr_assert_eq(warm[i], first[i % n]);
    }
    free(warm);
    order_free(&order);
    order = make(&f, 99, ORDER_SHUFFLE, 0);
    order_draw(order, 0, is_open, &f, &block);
    cr_assert_eq(block.count, 0, "no warm-ups are wanted");
    order_free(&order);
}

Test(order, shuffle_draws_every_block_anew_over_all_cells)
{
    struct prng g;
    prng_init(&g, 6);
    struct fixture f;
    make_cells(&f, &g, 4);
    struct order *order = make(&f, 7, ORDER_SHUFFLE, 1);
    int64_t a[MAX_CELLS], b[MAX_CELLS];
    int mirrored = 0, same = 0;
    for (int64_t index = 1; index < 20; index++) {
        size_t n = draw(order, &f, index, a);
        draw(order, &f, index + 1, b);
        bool mirror = true;
        for (size_t i = 0; i < n; i++) {
            mirror = mirror && a[i] == b[n - 1 - i];
        }
        mirrored += mirror;
        same += memcmp(a, b, n * sizeof(*a)) == 0;
    }
    cr_assert_eq(mirrored, 0);
    cr_assert_eq(same, 0);
    order_free(&order);
}

/* Sums what a disturbance of the place adds to each variant of each group over two blocks; the
 * disturbance is in whole numbers, so that "exactly" means exactly. */
static void add_up(struct order *order, struct fixture *f, int64_t pair, int64_t drift,
                   int64_t second, int64_t *sum)
{
    int64_t place = 0;
    for (int64_t index = 2 * pair + 1; index <= 2 * pair + 2; index++) {
        int64_t ids[MAX_CELLS];
        size_t n = draw(order, f, index, ids);
        for (size_t i = 0; i < n; i++, place++) {
            sum[ids[i]] += place * drift + (place % 2) * second;
        }
    }
}

/* Recipe: a host that warms up. With linear drift all cells of a pair get the same, exactly. */
Test(order, linear_drift_cancels_over_a_pair)
{
    struct prng g;
    prng_init(&g, 24);
    for (int round = 0; round < 300; round++) {
        struct fixture f;
        make_cells(&f, &g, 1 + (uint32_t)prng_below(&g, 4));
        struct order *order = make(&f, prng_next(&g), ORDER_INTERLEAVE, 0);
        int64_t sum[MAX_CELLS + 1] = {0};
        add_up(order, &f, (int64_t)prng_below(&g, 10), 1000, 0, sum);
        for (size_t id = 2; id <= f.count; id++) {
            cr_assert_eq(sum[id], sum[1]);
        }
        order_free(&order);
    }
}

/* Recipe: every second run is disturbed. Each cell is hit once a pair. */
Test(order, a_disturbance_of_every_second_run_hits_all_alike)
{
    struct prng g;
    prng_init(&g, 25);
    for (int round = 0; round < 300; round++) {
        struct fixture f;
        make_cells(&f, &g, 1 + (uint32_t)prng_below(&g, 4));
        struct order *order = make(&f, prng_next(&g), ORDER_INTERLEAVE, 0);
        int64_t sum[MAX_CELLS + 1] = {0};
        add_up(order, &f, (int64_t)prng_below(&g, 10), 0, 50, sum);
        for (size_t id = 1; id <= f.count; id++) {
            cr_assert_eq(sum[id], 50);
        }
        order_free(&order);
    }
}

/* The same with one random permutation a block: no false difference in the long run. */
Test(order, shuffle_spreads_a_disturbance_of_every_second_run)
{
    struct fixture f = {.count = 2};
    f.cells[0] = (struct order_cell){1, 0, 0, 1};
    f.cells[1] = (struct order_cell){2, 0, 1, 1};
    struct order *order = make(&f, 25, ORDER_SHUFFLE, 0);
    int64_t sum[3] = {0};
    for (int64_t pair = 0; pair < 500; pair++) {
        add_up(order, &f, pair, 0, 1, sum);
    }
    cr_assert(sum[1] > 440 && sum[1] < 560, "%d of 1000", (int)sum[1]);
    order_free(&order);
}

/* Orders are stored by their seeds: this one must never change. */
Test(order, stays_as_it_was_written_down)
{
    struct fixture f = {.count = 6};
    for (uint32_t i = 0; i < 6; i++) {
        f.cells[i] = (struct order_cell){i + 1, 0, i % 2, (int32_t)(i / 2)};
    }
    struct order *order = make(&f, 42, ORDER_INTERLEAVE, 1);
    static const int64_t want[2][6] = {{1, 2, 4, 3, 5, 6}, {2, 1, 4, 3, 5, 6}};
    static const int64_t want_shuffle[6] = {2, 1, 4, 3, 6, 5};
    int64_t ids[MAX_CELLS];
    cr_assert_eq(draw(order, &f, 1, ids), 6);
    cr_assert_arr_eq(ids, want[0], sizeof(want[0]));
    cr_assert_eq(draw(order, &f, 3, ids), 6);
    cr_assert_arr_eq(ids, want[1], sizeof(want[1]));
    order_free(&order);
    order = make(&f, 42, ORDER_SHUFFLE, 1);
    cr_assert_eq(draw(order, &f, 1, ids), 6);
    cr_assert_arr_eq(ids, want_shuffle, sizeof(want_shuffle));
    order_free(&order);
}

Test(order, no_cells_give_empty_blocks)
{
    struct order *order = order_new(1, ORDER_INTERLEAVE, 2, NULL, 0);
    cr_assert(order != NULL);
    struct order_block block;
    for (int64_t index = 0; index < 3; index++) {
        order_draw(order, index, is_open, NULL, &block);
        cr_assert_eq(block.count, 0);
    }
    order_free(&order);
    order_free(&order);
}

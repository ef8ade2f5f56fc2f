/* order.c: draws the blocks of one host's order from its seed. Owns the list of cells and room for
 * one block. What is drawn from a seed must never change: stored blocks are drawn again from it. */
#include "coordinator/plan/order.h"

#include "common/mem.h"
#include "common/prng.h"
#include "coordinator/model.h"

#include <assert.h>
#include <stdlib.h>

#define ORDER_MAGIC 0x6f726472u

struct order {
    uint32_t magic;
    uint64_t seed;
    int kind;
    uint32_t warmup;
    struct order_cell *cells; /* by workload, jobs, variant */
    size_t count;
    size_t *groups; /* where each group begins; one more at the end: count */
    size_t group_count;
    uint32_t *perm;        /* order of the cells that was drawn last */
    uint32_t *group_order; /* scratch */
    int64_t *out;          /* the block that was handed out last */
    uint64_t draw_number;  /* of the order in perm */
    uint64_t draw_seed;
    bool drawn;
};

static int compare_cells(const void *pa, const void *pb)
{
    const struct order_cell *a = pa;
    const struct order_cell *b = pb;
    if (a->workload != b->workload) {
        return a->workload < b->workload ? -1 : 1;
    }
    if (a->jobs != b->jobs) {
        return a->jobs < b->jobs ? -1 : 1;
    }
    if (a->variant != b->variant) {
        return a->variant < b->variant ? -1 : 1;
    }
    return 0;
}

static void find_groups(struct order *order)
{
    for (size_t i = 0; i < order->count; i++) {
        const struct order_cell *c = &order->cells[i];
        if (i == 0 || c->workload != c[-1].workload || c->jobs != c[-1].jobs) {
            order->groups[order->group_count++] = i;
        }
    }
    order->groups[order->group_count] = order->count;
}

struct order *order_new(uint64_t seed, int kind, uint32_t warmup, const struct order_cell *cells,
                        size_t n)
{
    size_t cap = SIZE_MAX / 2;
    size_t rounds = warmup > 1 ? warmup : 1;
    if (n >= UINT32_MAX || (n > 0 && rounds > cap / n / sizeof(*cells))) {
        return NULL;
    }
    struct order *order = mem_try_zalloc(sizeof(*order), cap);
    if (order == NULL) {
        return NULL;
    }
    order->magic = ORDER_MAGIC;
    order->seed = seed;
    order->kind = kind;
    order->warmup = warmup;
    order->count = n;
    order->cells = mem_try_array(n + 1, sizeof(*order->cells), cap);
    order->groups = mem_try_array(n + 1, sizeof(*order->groups), cap);
    order->perm = mem_try_array(n + 1, sizeof(*order->perm), cap);
    order->group_order = mem_try_array(n + 1, sizeof(*order->group_order), cap);
    order->out = mem_try_array(n * rounds + 1, sizeof(*order->out), cap);
    if (order->cells == NULL || order->groups == NULL || order->perm == NULL ||
        order->group_order == NULL || order->out == NULL) {
        order_free(&order);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        order->cells[i] = cells[i];
    }
    qsort(order->cells, n, sizeof(*order->cells), compare_cells);
    find_groups(order);
    return order;
}

void order_free(struct order **order)
{
    if (*order == NULL) {
        return;
    }
    assert((*order)->magic == ORDER_MAGIC);
    free((*order)->cells);
    free((*order)->groups);
    free((*order)->perm);
    free((*order)->group_order);
    free((*order)->out);
    (*order)->magic = 0;
    free(*order);
    *order = NULL;
}

/* Groups in random order, the variants of each in random order. */
static void draw_groups(struct order *order, struct prng *g)
{
    for (size_t i = 0; i < order->group_count; i++) {
        order->group_order[i] = (uint32_t)i;
    }
    prng_shuffle_u32(g, order->group_order, order->group_count);
    size_t n = 0;
    for (size_t i = 0; i < order->group_count; i++) {
        size_t begin = order->groups[order->group_order[i]];
        size_t end = order->groups[order->group_order[i] + 1];
        uint32_t *members = &order->perm[n];
        for (size_t j = begin; j < end; j++) {
            order->perm[n++] = (uint32_t)j;
        }
        prng_shuffle_u32(g, members, end - begin);
    }
}

static void draw_all(struct order *order, struct prng *g)
{
    for (size_t i = 0; i < order->count; i++) {
        order->perm[i] = (uint32_t)i;
    }
    prng_shuffle_u32(g, order->perm, order->count);
}

/* Draws the `number`-th order: of a pair of blocks, or with ORDER_SHUFFLE of one block. */
static void draw_number(struct order *order, uint64_t number)
{
    if (order->drawn && order->draw_number == number) {
        return;
    }
    struct prng g;
    uint64_t words[] = {(uint64_t)order->kind, number};
    prng_init_words(&g, order->seed, words, 2);
    order->draw_seed = g.state;
    if (order->kind == ORDER_INTERLEAVE) {
        draw_groups(order, &g);
    } else {
        draw_all(order, &g);
    }
    order->draw_number = number;
    order->drawn = true;
}

void order_draw(struct order *order, int64_t index, order_open_f *is_open, void *arg,
                struct order_block *out)
{
    assert(order->magic == ORDER_MAGIC && index >= 0);
    size_t rounds = index == 0 ? order->warmup : 1;
    uint64_t number = index == 0 ? 0 : (uint64_t)(index - 1);
    bool backwards = false;
    if (order->kind == ORDER_INTERLEAVE) {
        backwards = number % 2 == 1;
        number /= 2;
    }
    draw_number(order, number);
    size_t n = 0;
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < order->count; i++) {
            size_t at = backwards ? order->count - 1 - i : i;
            int64_t id = order->cells[order->perm[at]].id;
            if (is_open(id, arg)) {
                order->out[n++] = id;
            }
        }
    }
    out->seed = order->draw_seed;
    out->mirror_of = backwards ? index - 1 : -1;
    out->cells = order->out;
    out->count = n;
}

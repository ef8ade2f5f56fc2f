/* order.h: the generator of orders: from a seed and a block's place it gives the block's runs in
 * order. Pure: the same input gives the same order, on every system, for ever.
 *
 * Interleave. Measured blocks come in pairs. The first of a pair is drawn from (seed, pair): the
 * groups (workload, jobs) in random order, and in each group the variants in a random order. The
 * second is the first read backwards. So in a pair every cell has the same mean place: a drift that
 * is linear in time adds the same to every cell (with two variants at one job count: A B, B A), and
 * as the two places of a cell in a pair of 2n runs are p and 2n - 1 - p, one is even and the other
 * odd: a disturbance of every second run hits all cells alike too. Shuffle. Every block is one
 * random permutation of all cells. Warm-ups (index 0): `warmup` rounds, each in the order of block
 * 1, so that the last one goes straight into it.
 *
 * The order is drawn over all cells and those that are not open are left out: a cell that closes
 * changes nothing about the others. */
#ifndef MAKESPAN_COORDINATOR_PLAN_ORDER_H
#define MAKESPAN_COORDINATOR_PLAN_ORDER_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct order;

struct order_cell {
    int64_t id;
    int64_t workload;
    int64_t variant;
    int32_t jobs;
};

/* The cells of one host in one sweep, each (workload, variant, jobs) once, in any sequence (they
 * are sorted: the sequence does not matter); copied. `kind` is ORDER_INTERLEAVE or ORDER_SHUFFLE.
 * NULL when memory is out. */
struct order *order_new(uint64_t seed, int kind, uint32_t warmup, const struct order_cell *cells,
                        size_t n) MUST_CHECK;
void order_free(struct order **order);

struct order_block {
    uint64_t seed;        /* that the block's order was drawn from */
    int64_t mirror_of;    /* index of the block that it is the mirror of; -1: none */
    const int64_t *cells; /* ids in order; owned by the order until the next call */
    size_t count;
};

/* Block `index`: 0 the warm-ups, from 1 the measured ones, whichever were asked for before.
 * `is_open` says whether a cell takes part. */
typedef bool order_open_f(int64_t cell, void *arg);
void order_draw(struct order *order, int64_t index, order_open_f *is_open, void *arg,
                struct order_block *out);

#endif

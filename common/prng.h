/* prng.h: the seeded generator of every stored order (SplitMix64, Steele, Lea and Flood, OOPSLA 2014): the same numbers on every system, for ever. Pure. */
#ifndef MAKESPAN_COMMON_PRNG_H
#define MAKESPAN_COMMON_PRNG_H

#include <stddef.h>
#include <stdint.h>

struct prng {
    uint64_t state;
};

void prng_init(struct prng *g, uint64_t seed);
/* A generator whose numbers depend on seed and every one of the n words: for "block 7 of host 3 of this sweep". */
void prng_init_words(struct prng *g, uint64_t seed, const uint64_t *words, size_t n);
uint64_t prng_next(struct prng *g);
/* Uniform below bound (bound > 0), without modulo bias. */
uint64_t prng_below(struct prng *g, uint64_t bound);
/* Fisher-Yates shuffle of n indices. */
void prng_shuffle_u32(struct prng *g, uint32_t *a, size_t n);

#endif

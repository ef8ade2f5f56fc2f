/* prng.c: SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014). Pure. Stored orders are drawn again
 * from their seeds: what these functions give for a state must never change. */
#include "common/prng.h"

#include <assert.h>

#define GAMMA UINT64_C(0x9e3779b97f4a7c15)

/* The output function of the paper: variant 13 of Stafford's mixers. */
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void prng_init(struct prng *g, uint64_t seed)
{
    g->state = seed;
}

void prng_init_words(struct prng *g, uint64_t seed, const uint64_t *words, size_t n)
{
    uint64_t h = mix(seed + GAMMA);
    for (size_t i = 0; i < n; i++) {
        h = mix((h ^ words[i]) + GAMMA);
    }
    g->state = mix((h ^ (uint64_t)n) + GAMMA);
}

uint64_t prng_next(struct prng *g)
{
    g->state += GAMMA;
    return mix(g->state);
}

uint64_t prng_below(struct prng *g, uint64_t bound)
{
    assert(bound > 0);
    uint64_t skip = (UINT64_MAX - bound + 1) % bound; /* 2^64 mod bound */
    uint64_t v;
    do {
        v = prng_next(g);
    } while (v < skip);
    return v % bound;
}

void prng_shuffle_u32(struct prng *g, uint32_t *a, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)prng_below(g, i);
        uint32_t t = a[i - 1];
        a[i - 1] = a[j];
        a[j] = t;
    }
}

/* rand.h: random bytes of the system (a seam), and the project's seeded generator for orders (the same numbers on every system, for ever). */
#ifndef MAKESPAN_COMMON_RAND_H
#define MAKESPAN_COMMON_RAND_H

#include <stddef.h>
#include <stdint.h>

/* Cryptographic random bytes from the system. Aborts when the system has none. Replaced in the simulation. */
void rand_bytes(void *dst, size_t n);
/* A uniform number below `bound` (bound > 0) from rand_bytes(): for jitter of back-offs. */
uint64_t rand_below(uint64_t bound);

#endif

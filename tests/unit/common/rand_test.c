/* rand_test.c: the system's random bytes arrive whole, whatever the length. */
#include "common/rand.h"

#include <criterion/criterion.h>
#include <string.h>

Test(rand, fills_all_and_nothing_else)
{
    static const size_t sizes[] = {1, 16, 255, 256, 257, 1000};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        unsigned char seen[1000] = {0};
        unsigned char bytes[1002];
        /* a byte that is never written stays 0; a byte of 40 draws is 0 each time once in 2^320 */
        for (int i = 0; i < 40; i++) {
            memset(bytes, 0, sizeof(bytes));
            rand_bytes(bytes + 1, sizes[s]);
            cr_assert_eq(bytes[0], 0);
            cr_assert_eq(bytes[sizes[s] + 1], 0);
            for (size_t k = 0; k < sizes[s]; k++) {
                seen[k] |= bytes[k + 1];
            }
        }
        for (size_t k = 0; k < sizes[s]; k++) {
            cr_assert_neq(seen[k], 0, "byte %zu of %zu", k, sizes[s]);
        }
    }
}

Test(rand, below)
{
    unsigned seen = 0;
    for (int i = 0; i < 2000; i++) {
        uint64_t v = rand_below(10);
        cr_assert_lt(v, 10);
        seen |= 1U << v;
    }
    cr_assert_eq(seen, 0x3ff, "each of ten values comes within 2000 draws");
    cr_assert_eq(rand_below(1), 0);
    uint64_t bound = UINT64_C(3) << 62;
    for (int i = 0; i < 200; i++) {
        cr_assert_lt(rand_below(bound), bound);
    }
}

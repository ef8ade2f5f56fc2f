/* prng_test.c: the numbers that stored orders were drawn from never change. */
#include "common/prng.h"

#include "common/attr.h"

#include <criterion/criterion.h>
#include <stdbool.h>

Test(prng, published_numbers)
{
    /* the reference implementation's output for the seed 1234567 */
    static const uint64_t want[] = {
        UINT64_C(6457827717110365317), UINT64_C(3203168211198807973), UINT64_C(9817491932198370423),
        UINT64_C(4593380528125082431), UINT64_C(16408922859458223821),
    };
    struct prng g;
    prng_init(&g, 1234567);
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        cr_assert_eq(prng_next(&g), want[i], "number %zu", i);
    }
}

Test(prng, golden_shuffle)
{
    uint32_t a[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const uint32_t want[8] = {3, 1, 6, 2, 4, 0, 7, 5};
    struct prng g;
    prng_init(&g, 42);
    prng_shuffle_u32(&g, a, 8);
    for (size_t i = 0; i < 8; i++) {
        cr_assert_eq(a[i], want[i], "place %zu has %u", i, (unsigned)a[i]);
    }
}

Test(prng, golden_words)
{
    static const uint64_t words[3] = {7, 3, 1};
    struct prng g;
    prng_init_words(&g, 99, words, 3);
    cr_assert_eq(prng_next(&g), UINT64_C(17062599466892160240));
}

Test(prng, every_word_counts)
{
    static const uint64_t base[3] = {7, 3, 1};
    struct prng g;
    prng_init_words(&g, 5, base, 3);
    uint64_t first = prng_next(&g);
    for (size_t i = 0; i < 3; i++) {
        uint64_t words[3] = {7, 3, 1};
        words[i]++;
        prng_init_words(&g, 5, words, 3);
        cr_assert_neq(prng_next(&g), first, "word %zu", i);
    }
    static const uint64_t swapped[3] = {3, 7, 1};
    prng_init_words(&g, 5, swapped, 3);
    cr_assert_neq(prng_next(&g), first, "their order counts");
    prng_init_words(&g, 5, base, 2);
    cr_assert_neq(prng_next(&g), first, "their number counts");
    prng_init_words(&g, 6, base, 3);
    cr_assert_neq(prng_next(&g), first, "the seed counts");
    static const uint64_t zeros[2] = {0, 0};
    prng_init_words(&g, 5, zeros, 1);
    uint64_t one = prng_next(&g);
    prng_init_words(&g, 5, zeros, 2);
    cr_assert_neq(prng_next(&g), one, "a zero word counts");
}

Test(prng, below_is_below_and_even)
{
    struct prng g;
    unsigned seen[6] = {0};
    prng_init(&g, 7);
    for (int i = 0; i < 60000; i++) {
        uint64_t v = prng_below(&g, 6);
        cr_assert_lt(v, 6);
        seen[v]++;
    }
    /* six standard deviations of a binomial with n = 60000 and p = 1/6 are 548; the seed makes it certain */
    for (size_t i = 0; i < 6; i++) {
        cr_assert(seen[i] > 9452 && seen[i] < 10548, "%zu came %u times", i, seen[i]);
    }
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(prng_below(&g, 1), 0);
    }
}

Test(prng, below_has_no_modulo_bias)
{
    /* With bound 3 * 2^62 a plain remainder gives values below 2^62 twice as often as others: 1/2 of all instead of 1/3. */
    struct prng g;
    uint64_t bound = UINT64_C(3) << 62;
    unsigned low = 0;
    prng_init(&g, 11);
    for (int i = 0; i < 30000; i++) {
        uint64_t v = prng_below(&g, bound);
        cr_assert_lt(v, bound);
        low += v < UINT64_C(1) << 62;
    }
    cr_assert(low > 9500 && low < 10500, "%u of 30000", low);
}

Test(prng, shuffle_is_a_permutation_and_every_place_is_reached)
{
    struct prng g;
    bool reached[5][5] = {{false}};
    prng_init(&g, 3);
    for (int round = 0; round < 500; round++) {
        uint32_t a[5] = {0, 1, 2, 3, 4};
        unsigned mask = 0;
        prng_shuffle_u32(&g, a, 5);
        for (size_t i = 0; i < 5; i++) {
            mask |= 1U << a[i];
            reached[i][a[i]] = true;
        }
        cr_assert_eq(mask, 0x1f);
    }
    for (size_t i = 0; i < 25; i++) {
        cr_assert(reached[i / 5][i % 5]);
    }
    uint32_t one[1] = {9};
    prng_shuffle_u32(&g, one, 1);
    cr_assert_eq(one[0], 9);
    prng_shuffle_u32(&g, NULL, 0);
}

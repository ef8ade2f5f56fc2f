/* cur_test.c: reading, and the sticky error at the end of the bytes. */
#include "common/cur.h"

#include "common/err.h"

#include <criterion/criterion.h>
#include <string.h>

static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

Test(cur, reads_big_endian)
{
    struct cur c;
    cur_init(&c, bytes, sizeof(bytes));
    cr_assert_eq(cur_u8(&c), 0x01);
    cr_assert_eq(cur_u16be(&c), 0x0203);
    cr_assert_eq(cur_u32be(&c), 0x04050607);
    cr_assert_eq(cur_u64be(&c), UINT64_C(0x08090a0b0c0d0e0f));
    cr_assert_eq(cur_end(&c), 0);
}

Test(cur, beyond_the_end_is_sticky)
{
    struct cur c;
    cur_init(&c, bytes, 5);
    cr_assert_eq(cur_u32be(&c), 0x01020304);
    cr_assert_eq(cur_u16be(&c), 0);
    cr_assert_eq(c.err, -ERR_END);
    cr_assert_eq(cur_u8(&c), 0, "one byte is left, and no longer given");
    cr_assert_null(cur_bytes(&c, 0));
    cr_assert_eq(cur_end(&c), -ERR_END);
}

Test(cur, left_over_bytes_are_a_mistake)
{
    struct cur c;
    cur_init(&c, bytes, 2);
    cr_assert_eq(cur_u8(&c), 1);
    cr_assert_eq(cur_end(&c), -ERR_PROTO);
}

Test(cur, bytes_are_borrowed)
{
    struct cur c;
    cur_init(&c, bytes, sizeof(bytes));
    cr_assert_eq(cur_bytes(&c, 3), bytes);
    cr_assert_eq(cur_bytes(&c, 0), bytes + 3);
    cr_assert_eq(cur_bytes(&c, 12), bytes + 3);
    cr_assert_null(cur_bytes(&c, 1));
    cr_assert_eq(c.err, -ERR_END);
}

Test(cur, huge_length_is_refused)
{
    struct cur c;
    cur_init(&c, bytes, sizeof(bytes));
    cr_assert_null(cur_bytes(&c, SIZE_MAX));
    cr_assert_eq(cur_end(&c), -ERR_END);
}

Test(cur, nothing_at_all)
{
    struct cur c;
    cur_init(&c, NULL, 0);
    cr_assert_eq(cur_end(&c), 0);
    cr_assert_eq(cur_u64be(&c), 0);
    cr_assert_eq(cur_end(&c), -ERR_END);
}

/* buf_test.c: growth, cap, sticky error, and ownership of the bytes. */
#include "common/buf.h"

#include "common/err.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(buf, empty_is_a_string)
{
    struct buf b = BUF_INIT;
    cr_assert_str_eq(buf_str(&b), "");
    buf_add(&b, NULL, 0);
    cr_assert_eq(b.len, 0);
    cr_assert_eq(b.err, 0);
    buf_consume(&b, 0);
    buf_reset(&b);
    buf_fini(&b);
}

Test(buf, adds_and_stays_terminated)
{
    struct buf b = BUF_INIT;
    buf_add_str(&b, "make");
    buf_add_char(&b, ' ');
    buf_printf(&b, "-j%d", 16);
    cr_assert_str_eq(buf_str(&b), "make -j16");
    cr_assert_eq(b.len, 9);
    for (int i = 0; i < 5000; i++) {
        buf_printf(&b, "%d,", i);
        cr_assert_eq(b.data[b.len], '\0');
    }
    cr_assert_eq(b.err, 0);
    cr_assert_eq(strlen(buf_str(&b)), b.len);
    cr_assert_not_null(strstr(buf_str(&b), ",4999,"));
    buf_fini(&b);
    cr_assert_eq(b.len, 0);
    buf_add_str(&b, "again");
    cr_assert_str_eq(buf_str(&b), "again");
    buf_fini(&b);
}

Test(buf, printf_longer_than_the_room)
{
    struct buf b = BUF_INIT;
    char text[1000];
    memset(text, 'y', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    buf_add_str(&b, "x");
    buf_printf(&b, "<%s>", text);
    cr_assert_eq(b.len, 1002);
    cr_assert_eq(b.data[0], 'x');
    cr_assert_eq(b.data[1], '<');
    cr_assert_eq(b.data[1001], '>');
    buf_fini(&b);
}

Test(buf, printf_exactly_the_room)
{
    /* every length around the first allocation */
    for (int n = 50; n < 140; n++) {
        struct buf b = BUF_INIT;
        buf_add_char(&b, 'a');
        buf_printf(&b, "%*d", n, 7);
        cr_assert_eq(b.len, (size_t)n + 1);
        cr_assert_eq(b.data[n], '7');
        cr_assert_eq(b.data[n + 1], '\0');
        buf_fini(&b);
    }
}

Test(buf, big_endian)
{
    struct buf b = BUF_INIT;
    buf_add_u32be(&b, 0x01020304);
    buf_add_u64be(&b, 0xf1f2f3f4f5f6f7f8);
    static const uint8_t want[] = {1, 2, 3, 4, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8};
    cr_assert_eq(b.len, sizeof(want));
    cr_assert(memcmp(b.data, want, sizeof(want)) == 0);
    buf_fini(&b);
}

Test(buf, cap_is_a_sticky_error)
{
    struct buf b;
    buf_init(&b, 10);
    buf_add_str(&b, "12345");
    buf_add_str(&b, "67890");
    cr_assert_eq(b.err, 0, "the cap itself fits");
    buf_add_char(&b, 'x');
    cr_assert_eq(b.err, -ERR_LIMIT);
    buf_add(&b, "", 0);
    buf_printf(&b, "y");
    cr_assert_null(buf_reserve(&b, 0));
    cr_assert_str_eq(buf_str(&b), "1234567890");
    cr_assert_null(buf_take(&b));
    cr_assert_eq(b.len, 0);
    cr_assert_eq(b.err, -ERR_LIMIT, "the reason outlives the bytes");
    buf_reset(&b);
    buf_add_str(&b, "ok");
    cr_assert_str_eq(buf_str(&b), "ok");
    buf_fini(&b);
}

Test(buf, printf_beyond_the_cap_adds_nothing)
{
    struct buf b;
    buf_init(&b, 10);
    buf_add_str(&b, "1234");
    buf_printf(&b, "%s", "567890x");
    cr_assert_eq(b.err, -ERR_LIMIT);
    cr_assert_eq(b.len, 4);
    cr_assert_str_eq(buf_str(&b), "1234");
    buf_fini(&b);
}

Test(buf, huge_addition_is_refused)
{
    struct buf b = BUF_INIT;
    cr_assert_null(buf_reserve(&b, SIZE_MAX));
    cr_assert_eq(b.err, -ERR_LIMIT);
    buf_reset(&b);
    cr_assert_null(buf_reserve(&b, (size_t)256 * 1024 * 1024 + 1), "the default cap");
    cr_assert_eq(b.err, -ERR_LIMIT);
    buf_fini(&b);
}

Test(buf, reserve_and_grew)
{
    struct buf b = BUF_INIT;
    uint8_t *at = buf_reserve(&b, 100);
    cr_assert_not_null(at);
    memcpy(at, "abc", 3);
    buf_grew(&b, 3);
    buf_grew(&b, 0);
    cr_assert_str_eq(buf_str(&b), "abc");
    buf_fini(&b);
}

Test(buf, consume)
{
    struct buf b = BUF_INIT;
    buf_add_str(&b, "frame1frame2");
    buf_consume(&b, 6);
    cr_assert_str_eq(buf_str(&b), "frame2");
    buf_consume(&b, 6);
    cr_assert_str_eq(buf_str(&b), "");
    cr_assert_eq(b.len, 0);
    buf_fini(&b);
}

Test(buf, take_hands_over)
{
    struct buf b = BUF_INIT;
    buf_add_str(&b, "mine");
    char *s = buf_take(&b);
    cr_assert_str_eq(s, "mine");
    free(s);
    cr_assert_eq(b.len, 0);
    cr_assert_null(b.data);
    s = buf_take(&b);
    cr_assert_str_eq(s, "", "an empty buffer gives an empty string");
    free(s);
}

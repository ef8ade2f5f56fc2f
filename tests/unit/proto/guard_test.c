/* guard_test.c: the walk over bytes of a peer. */
#include "proto/guard.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define BYTES(s) s, sizeof(s) - 1

/* The bytes in a block of exactly their size, so that a sanitizer sees one read too many. */
static int check(const char *bytes, size_t n, size_t max_nodes, struct diag *diag)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);
    memcpy(copy, bytes, n);
    int rc = guard_check(copy, n, max_nodes, diag);
    free(copy);
    return rc;
}

Test(guard, good_maps_pass)
{
    static const struct {
        const char *bytes;
        size_t n;
    } good[] = {
        {BYTES("\x80")},                             /* no fields */
        {BYTES("\xde\x00\x00")},                     /* the same, longer */
        {BYTES("\xdf\x00\x00\x00\x00")},             /* the same, longer still */
        {BYTES("\x81\x01\x05")},                     /* 1: 5 */
        {BYTES("\x81\x7f\xc0")},                     /* nil */
        {BYTES("\x82\xcc\x80\xc2\xcd\x01\x00\xc3")}, /* keys of 8 and 16 bits */
        {BYTES("\x81\xce\xff\xff\xff\xff\xff")},     /* the largest key: -1 */
        {BYTES("\x81\xcf\0\0\0\0\0\0\0\x01\xa0")},   /* a key of 64 bits that is small */
        {BYTES("\x81\x01\xa3"
               "abc")},
        {BYTES("\x81\x01\xd9\x03"
               "abc")},
        {BYTES("\x81\x01\xda\x00\x03"
               "abc")},
        {BYTES("\x81\x01\xdb\x00\x00\x00\x03"
               "abc")},
        {BYTES("\x81\x01\xc4\x02\xff\xff")},
        {BYTES("\x81\x01\xc5\x00\x02\xff\xff")},
        {BYTES("\x81\x01\xc6\x00\x00\x00\x02\xff\xff")},
        {BYTES("\x81\x01\xcc\xff")},
        {BYTES("\x81\x01\xcd\xff\xff")},
        {BYTES("\x81\x01\xce\xff\xff\xff\xff")},
        {BYTES("\x81\x01\xcf\xff\xff\xff\xff\xff\xff\xff\xff")},
        {BYTES("\x81\x01\xd0\x80")},
        {BYTES("\x81\x01\xd1\x80\x00")},
        {BYTES("\x81\x01\xd2\x80\x00\x00\x00")},
        {BYTES("\x81\x01\xd3\x80\x00\x00\x00\x00\x00\x00\x00")},
        {BYTES("\x81\x01\x92\x01\x81\x02\x90")}, /* a list of a number and a map */
        {BYTES("\x81\x01\xdc\x00\x01\x05")},
        {BYTES("\x81\x01\xdd\x00\x00\x00\x01\x05")},
        {BYTES("\x82\x01\x05\x01\x06")},                 /* keys twice: the decoder's to see */
        {BYTES("\x81\x01\x91\x91\x91\x91\x91\x91\x90")}, /* as deep as allowed */
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct diag *diag = diag_new(2);
        int rc = check(good[i].bytes, good[i].n, 100, diag);
        cr_expect_eq(rc, 0, "case %zu: %s", i, diag_first(diag));
        /* And no beginning of it passes. */
        for (size_t n = 0; n < good[i].n; n++) {
            cr_expect_eq(check(good[i].bytes, n, 100, NULL), -ERR_PROTO, "case %zu cut to %zu", i,
                         n);
        }
        diag_free(&diag);
    }
}

Test(guard, bad_bytes_are_refused_with_their_place)
{
    static const struct {
        const char *bytes;
        size_t n;
        int rc;
        const char *text;
    } bad[] = {
        {BYTES(""), -ERR_PROTO, "byte 0: the bytes end where an item should begin"},
        {BYTES("\x05"), -ERR_PROTO, "byte 0: no map"},
        {BYTES("\x90"), -ERR_PROTO, "byte 0: no map"},
        {BYTES("\xc0"), -ERR_PROTO, "byte 0: no map"},
        {BYTES("\x81\x01"), -ERR_PROTO, "byte 0: a length beyond the end of the bytes"},
        {BYTES("\x82\x01\x01"), -ERR_PROTO, "byte 0: a length beyond the end of the bytes"},
        {BYTES("\x80\x00"), -ERR_PROTO, "byte 1: bytes behind the end of the message"},
        {BYTES("\x81\x01\x05\xc0"), -ERR_PROTO, "byte 3: bytes behind the end of the message"},
        {BYTES("\x81\x00\x05"), -ERR_PROTO, "byte 1: a key that is no positive integer of 32 bits"},
        {BYTES("\x81\xff\x05"), -ERR_PROTO, "byte 1: a key that is no positive integer of 32 bits"},
        {BYTES("\x81\xa1"
               "a\x05"),
         -ERR_PROTO, "byte 1: a key that is no positive integer of 32 bits"},
        {BYTES("\x81\xd0\x05\x05"), -ERR_PROTO,
         "byte 1: a key that is no positive integer of 32 bits"},
        {BYTES("\x81\xcf\0\0\0\x01\0\0\0\0\x05"), -ERR_PROTO,
         "byte 1: a key that is no positive integer of 32 bits"},
        {BYTES("\x81\x90\x05"), -ERR_PROTO, "byte 1: a key that is no positive integer of 32 bits"},
        {BYTES("\x81\x01\x91\x81\xc0\x05"), -ERR_PROTO,
         "byte 4: a key that is no positive integer of 32 bits"},
        {BYTES("\x81\x01\xca\0\0\0\0"), -ERR_PROTO,
         "byte 2: a floating-point number, which no message has"},
        {BYTES("\x81\x01\xcb\0\0\0\0\0\0\0\0"), -ERR_PROTO,
         "byte 2: a floating-point number, which no message has"},
        {BYTES("\x81\x01\xc1"), -ERR_PROTO, "byte 2: the byte c1, which begins no item"},
        {BYTES("\x81\x01\xc7\x00\x01"), -ERR_PROTO, "byte 2: an extension, which no message has"},
        {BYTES("\x81\x01\xc9\xff\xff\xff\xff\x01"), -ERR_PROTO,
         "byte 2: an extension, which no message has"},
        {BYTES("\x81\x01\xd4\x01\x01"), -ERR_PROTO, "byte 2: an extension, which no message has"},
        {BYTES("\x81\x01\xd8\x01\x01"), -ERR_PROTO, "byte 2: an extension, which no message has"},
        {BYTES("\x81\x01\xcd\x01"), -ERR_PROTO, "byte 2: the bytes end within an item"},
        {BYTES("\x81\x01\xd9"), -ERR_PROTO, "byte 2: the bytes end within an item"},
        {BYTES("\x81\x01\xa2"
               "a"),
         -ERR_PROTO, "byte 2: a length beyond the end of the bytes"},
        {BYTES("\xdd\xff\xff\xff\xff"), -ERR_PROTO, "byte 0: a length beyond the end of the bytes"},
        {BYTES("\xdf\xff\xff\xff\xff"), -ERR_PROTO, "byte 0: a length beyond the end of the bytes"},
        {BYTES("\x81\x01\xdd\xff\xff\xff\xff"), -ERR_PROTO,
         "byte 2: a length beyond the end of the bytes"},
        {BYTES("\x81\x01\xdf\x7f\xff\xff\xff\x01\x01"), -ERR_PROTO,
         "byte 2: a length beyond the end of the bytes"},
        {BYTES("\x81\x01\xdb\xff\xff\xff\xff"
               "abc"),
         -ERR_PROTO, "byte 2: a length beyond the end of the bytes"},
        {BYTES("\x81\x01\xc6\xff\xff\xff\xff"
               "abc"),
         -ERR_PROTO, "byte 2: a length beyond the end of the bytes"},
        {BYTES("\x81\x01\x91\x91\x91\x91\x91\x91\x91\x90"), -ERR_LIMIT,
         "byte 9: containers nested too deep"},
        {BYTES("\x81\x01\x91\x81\x01\x81\x01\x81\x01\x81\x01\x81\x01\x81\x01\x80"), -ERR_LIMIT,
         "byte 15: containers nested too deep"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct diag *diag = diag_new(2);
        int rc = check(bad[i].bytes, bad[i].n, 100, diag);
        cr_expect_eq(rc, bad[i].rc, "case %zu gave %d", i, rc);
        cr_expect_str_eq(diag_first(diag), bad[i].text, "case %zu: %s", i, diag_first(diag));
        cr_expect_eq(check(bad[i].bytes, bad[i].n, 100, NULL), bad[i].rc);
        diag_free(&diag);
    }
}

/* 93 bytes for which msgpack-c reserves 48 MB: arrays of 65535 items, one in the other. */
Test(guard, nested_arrays_with_large_counts_are_refused_at_the_first)
{
    struct buf b = BUF_INIT;
    for (int i = 0; i < 31; i++) {
        buf_add(&b, "\xdc\xff\xff", 3);
    }
    cr_assert_eq(b.len, 93);
    cr_assert_eq(check((const char *)b.data, b.len, 1000000, NULL), -ERR_PROTO);
    /* As a field, and with enough bytes behind that the counts could be true one by one. */
    buf_reset(&b);
    buf_add(&b, "\x81\x01", 2);
    for (int i = 0; i < 31; i++) {
        buf_add(&b, "\xdc\x04\x00", 3);
    }
    for (int i = 0; i < 2000; i++) {
        buf_add_char(&b, 0);
    }
    cr_assert_eq(check((const char *)b.data, b.len, 1000000, NULL), -ERR_LIMIT);
    buf_fini(&b);
}

Test(guard, nodes_are_counted)
{
    /* The map, its key, the list and 1000 items. */
    struct buf b = BUF_INIT;
    buf_add(&b, "\x81\x01\xdc\x03\xe8", 5);
    for (int i = 0; i < 1000; i++) {
        buf_add_char(&b, 0);
    }
    struct diag *diag = diag_new(1);
    cr_assert_eq(check((const char *)b.data, b.len, 1003, diag), 0);
    cr_assert_eq(check((const char *)b.data, b.len, 1002, diag), -ERR_LIMIT);
    cr_assert_str_eq(diag_first(diag), "byte 1004: more items than such a message may have");
    diag_free(&diag);
    buf_fini(&b);
}

Test(guard, whole_items_are_measured)
{
    static const struct {
        const char *bytes;
        size_t n;
        size_t size; /* 0: refused */
    } items[] = {
        {BYTES("\x05\x06"), 1},
        {BYTES("\xa3"
               "abcd"),
         4},
        {BYTES("\x92\x01\x81\x02\xc4\x01\xff\x07"), 7},
        {BYTES("\x80\x80"), 1},
        {BYTES("\xce\x00\x00\x00\x01\x09"), 5},
        {BYTES("\x92\x01"), 0},
        {BYTES("\x92\x01\x92\x01"), 0},
        {BYTES(""), 0},
    };
    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        size_t size = 0;
        int rc = guard_measure((const uint8_t *)items[i].bytes, items[i].n, &size);
        cr_expect_eq(rc, items[i].size != 0 ? 0 : -ERR_PROTO, "case %zu", i);
        cr_expect_eq(size, items[i].size, "case %zu: %zu", i, size);
    }
}

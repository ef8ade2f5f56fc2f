/* hostile_test.c: bytes that want harm. Whatever comes, the decoder answers with a message or an
 * error, never takes more memory than the bytes are worth, and never asks for more than it says. */
#include "common/diag.h"
#include "common/err.h"
#include "proto/frame.h"
#include "proto/msg.h"
#include "tests/unit/proto/msg_gen.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZER true
#elif defined(__has_feature)
#define ADDRESS_SANITIZER __has_feature(address_sanitizer)
#else
#define ADDRESS_SANITIZER false
#endif

/* Address space in use, in bytes. */
static rlim_t address_space(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f != NULL) {
        if (fscanf(f, "%lu", &pages) != 1) {
            pages = 0;
        }
        fclose(f);
    }
    return (rlim_t)pages * 4096;
}

/* From here on, an allocation that is out of all proportion fails, so that -ERR_NOMEM or an abort
 * tells of it. The address sanitizer needs the address space for itself, and has its own eye on
 * such sizes. */
static void limit_memory(void)
{
    rlim_t now = address_space();
    if (!ADDRESS_SANITIZER && now > 0) {
        struct rlimit limit = {now + 12 * 1024 * 1024, RLIM_INFINITY};
        struct rlimit old;
        cr_assert_eq(getrlimit(RLIMIT_AS, &old), 0);
        limit.rlim_max = old.rlim_max;
        cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    }
}

/* Decodes a copy in a block of exactly its size and checks what must hold in any case. True when it
 * is a message. */
static bool decode_any(uint32_t type, const uint8_t *body, size_t n, const char *what)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);
    memcpy(copy, body, n);
    struct diag *diag = diag_new(2);
    struct msg *m = NULL;
    int rc = msg_decode(type, copy, n, &m, diag);
    free(copy);
    if (rc == 0) {
        cr_assert_eq((uint32_t)m->type, type);
        cr_assert_leq(msg_memory(m), MSG_MEMORY_MAX(n), "%s: %zu bytes for %zu", what,
                      msg_memory(m), n);
        struct buf b = BUF_INIT;
        cr_assert_eq(msg_encode(m, &b), 0, "%s: what was read cannot be written", what);
        struct msg *again = NULL;
        cr_assert_eq(msg_decode(type, b.data + FRAME_HEAD, b.len - FRAME_HEAD, &again, NULL), 0);
        cr_assert(msg_equal(m, again), "%s: not the same when written and read", what);
        buf_reset(&b);
        msg_print(m, &b);
        cr_assert_null(strchr(buf_str(&b), '\n'));
        msg_free(&again);
        buf_fini(&b);
    } else {
        cr_assert(rc == -ERR_PROTO || rc == -ERR_LIMIT || rc == -ERR_UNSUP, "%s: gave %d (%s)",
                  what, rc, diag_first(diag));
        cr_assert_null(m);
        cr_assert_gt(strlen(diag_first(diag)), 0);
    }
    msg_free(&m);
    diag_free(&diag);
    return rc == 0;
}

Test(hostile, counts_that_lie)
{
    static const struct {
        const char *bytes;
        size_t n;
    } attacks[] = {
#define A(s) {s, sizeof(s) - 1}
        A(""),
        A("\xdd\xff\xff\xff\xff"),
        A("\xdf\xff\xff\xff\xff"),
        A("\xdc\xff\xff"),
        A("\xc6\xff\xff\xff\xff"),
        A("\xdb\xff\xff\xff\xff"),
        A("\xc9\xff\xff\xff\xff\x01"),
        A("\x81\x01\xdd\xff\xff\xff\xff"),
        A("\x81\x01\xdf\xff\xff\xff\xff"),
        A("\x81\x01\xdb\xff\xff\xff\xff"),
        A("\x81\x01\xc6\xff\xff\xff\xff"),
        A("\x81\x09\xdd\x00\x00\xff\xff"),
        A("\x81\x09\xdd\x7f\xff\xff\xff\x80\x80\x80"),
        A("\x81\x09\x91\x81\x01\xdb\xff\xff\xff\xf0"),
        A("\x81\xdd\xff\xff\xff\xff\x01"),
        A("\xdf\x80\x00\x00\x01\x01\x01"),
#undef A
    };
    limit_memory();
    size_t count = 0;
    const struct msg_row *rows = msg_table(&count);
    for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
        for (size_t k = 0; k < count; k++) {
            cr_assert_not(decode_any(rows[k].number, (const uint8_t *)attacks[i].bytes,
                                     attacks[i].n, rows[k].name));
        }
    }
}

Test(hostile, nested_containers)
{
    limit_memory();
    static const struct {
        const char *bytes;
        size_t n;
    } shells[] = {{"\xdc\xff\xff", 3}, {"\xdc\x00\x02", 3},     {"\x91", 1},
                  {"\x81\x01", 2},     {"\xde\x00\x01\x01", 4}, {"\xdd\x00\x00\x00\x01", 5},
                  {"\x92", 1}};
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        for (size_t depth = 1; depth < 100000; depth = depth * 3 + 1) {
            for (int inside = 0; inside < 2; inside++) {
                struct buf b = BUF_INIT;
                if (inside != 0) {
                    buf_add(&b, "\x82\x01\x05\x7f", 4); /* READY with an unknown field */
                }
                for (size_t d = 0; d < depth; d++) {
                    buf_add(&b, shells[i].bytes, shells[i].n);
                }
                buf_add_char(&b, (char)0xc0);
                bool good = decode_any(MSG_READY, b.data, b.len, "nested");
                cr_assert_not(good && depth > 7);
                buf_fini(&b);
            }
        }
    }
}

/* Largest bodies of little content: as many small things as a frame can hold. */
Test(hostile, full_frames_of_small_things)
{
    limit_memory();
    static const struct {
        const char *bytes;
        size_t n;
    } items[] = {{"\xc0", 1},
                 {"\x80", 1},
                 {"\xa0", 1},
                 {"\x90", 1},
                 {"\x84\x01\x00\x02\x00\x03\x00\x04\xc2", 9},
                 {"\x82\x01\xa0\x02\xa0", 5},
                 {"\x83\x01\x00\x02\x00\x03\x00", 7}};
    static const uint32_t types[] = {MSG_HELLO,  MSG_WELCOME,   MSG_ACK, MSG_SAMPLES,
                                     MSG_RESULT, MSG_SWEEP_PUT, MSG_BEAT};
    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
            for (uint32_t key = 1; key < 64; key++) {
                uint32_t n = (uint32_t)((FRAME_MAX - 16) / items[i].n);
                if (key % 8 != 0) {
                    n = n / 200; /* now and then the largest, else quick */
                }
                struct buf b = BUF_INIT;
                buf_add_char(&b, (char)0x81);
                buf_add_char(&b, (char)key);
                buf_add_char(&b, (char)0xdd);
                buf_add_u32be(&b, n);
                for (uint32_t k = 0; k < n; k++) {
                    buf_add(&b, items[i].bytes, items[i].n);
                }
                decode_any(types[t], b.data, b.len, "full");
                buf_fini(&b);
            }
        }
    }
}

/* Where a text is expected, a list for which msgpack-c would take 24 bytes an item. */
Test(hostile, a_large_list_in_the_place_of_a_text)
{
    struct buf b = BUF_INIT;
    buf_add(&b, "\x81\x03\x91\xdd", 4);
    buf_add_u32be(&b, 1000000);
    for (int i = 0; i < 1000000; i++) {
        buf_add_char(&b, (char)0xc0);
    }
    struct diag *diag = diag_new(1);
    struct msg *m = NULL;
    limit_memory();
    cr_assert_eq(msg_decode(MSG_HELLO, b.data, b.len, &m, diag), -ERR_PROTO);
    cr_assert_str_eq(diag_first(diag), "HELLO: caps should be a list of texts");
    diag_free(&diag);
    buf_fini(&b);
}

/* All messages of the schema, all fields, as encoded bodies. */
typedef void body_f(uint32_t type, const uint8_t *body, size_t n, const char *name);

static void each_body(body_f *f)
{
    size_t count = 0;
    const struct msg_row *rows = msg_table(&count);
    for (size_t i = 0; i < count; i++) {
        for (int all = 0; all < 2; all++) {
            struct gen *gen = gen_new();
            struct msg m;
            if (all != 0) {
                gen_all(gen, &rows[i], &m);
            } else {
                gen_least(gen, &rows[i], &m);
            }
            struct buf b = BUF_INIT;
            cr_assert_eq(msg_encode(&m, &b), 0);
            f(rows[i].number, b.data + FRAME_HEAD, b.len - FRAME_HEAD, rows[i].name);
            buf_fini(&b);
            gen_free(&gen);
        }
    }
}

static void cut_everywhere(uint32_t type, const uint8_t *body, size_t n, const char *name)
{
    cr_assert(decode_any(type, body, n, name));
    for (size_t k = 0; k < n; k++) {
        cr_assert_not(decode_any(type, body, k, name), "%s cut to %zu of %zu is read", name, k, n);
    }
}

Test(hostile, a_message_cut_anywhere_is_refused)
{
    each_body(cut_everywhere);
}

static void flip_everywhere(uint32_t type, const uint8_t *body, size_t n, const char *name)
{
    uint8_t *copy = malloc(n);
    memcpy(copy, body, n);
    for (size_t bit = 0; bit < n * 8; bit++) {
        copy[bit / 8] ^= (uint8_t)(1U << bit % 8);
        decode_any(type, copy, n, name);
        copy[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    free(copy);
}

Test(hostile, a_message_with_any_bit_turned_is_read_or_refused)
{
    limit_memory();
    each_body(flip_everywhere);
}

static void as_all_others(uint32_t type, const uint8_t *body, size_t n, const char *name)
{
    for (uint32_t other = 0; other < 256; other++) {
        if (other != type) {
            decode_any(other, body, n, name);
        }
    }
}

Test(hostile, a_body_under_another_number_is_read_or_refused)
{
    each_body(as_all_others);
}

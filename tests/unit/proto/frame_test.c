/* frame_test.c: cutting a stream into frames, and writing frames. */
#include "proto/frame.h"

#include "common/err.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* A stream of frames whose bodies are told apart by their bytes. */
static void add_frame(struct buf *out, uint32_t type, size_t n, uint8_t fill)
{
    size_t begin = frame_begin(out, type);
    for (size_t i = 0; i < n; i++) {
        buf_add_char(out, (char)(uint8_t)(fill + i));
    }
    cr_assert_eq(frame_end(out, begin), 0);
}

static void expect_body(const struct frame *f, uint32_t type, size_t n, uint8_t fill)
{
    cr_assert_eq(f->type, type);
    cr_assert_eq(f->n, n);
    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(f->body[i], (uint8_t)(fill + i));
    }
}

static const struct {
    uint32_t type;
    size_t n;
    uint8_t fill;
} frames[] = {{1, 0, 0}, {255, 1, 7}, {4, 3, 1}, {4, 300, 9}, {42, 70000, 3}, {9, 0, 0}, {2, 5, 5}};

#define FRAMES (sizeof(frames) / sizeof(frames[0]))

Test(frame, layout_is_length_number_body)
{
    struct buf b = BUF_INIT;
    size_t begin = frame_begin(&b, 25);
    buf_add(&b, "ab", 2);
    cr_assert_eq(frame_end(&b, begin), 0);
    cr_assert_eq(b.len, 7);
    cr_assert_eq(memcmp(b.data,
                        "\0\0\0\3\x19"
                        "ab",
                        7),
                 0);
    buf_fini(&b);
}

Test(frame, cuts_a_stream_given_in_pieces_of_any_size)
{
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < FRAMES; i++) {
        add_frame(&b, frames[i].type, frames[i].n, frames[i].fill);
    }
    static const size_t pieces[] = {1, 2, 3, 4, 5, 6, 7, 11, 64, 301, 4096, 65536, 70004, 1000000};
    for (size_t k = 0; k < sizeof(pieces) / sizeof(pieces[0]); k++) {
        struct frame_in in;
        frame_in_init(&in, FRAME_MAX);
        size_t got = 0;
        for (size_t at = 0; at < b.len; at += pieces[k]) {
            size_t n = b.len - at < pieces[k] ? b.len - at : pieces[k];
            /* A copy of exactly these bytes, freed at once: a sanitizer sees late looks at them. */
            uint8_t *copy = malloc(n);
            memcpy(copy, b.data + at, n);
            const uint8_t *p = copy;
            struct frame f;
            int rc;
            while ((rc = frame_next(&in, &p, &n, &f)) == 1) {
                cr_assert_lt(got, FRAMES);
                expect_body(&f, frames[got].type, frames[got].n, frames[got].fill);
                got++;
            }
            cr_assert_eq(rc, 0);
            cr_assert_eq(n, 0);
            free(copy);
        }
        cr_assert_eq(got, FRAMES, "pieces of %zu bytes gave %zu frames", pieces[k], got);
        cr_assert_eq(frame_in_pending(&in), 0);
        cr_assert_null(in.part.data, "pieces of %zu bytes: memory is held while idle", pieces[k]);
        frame_in_fini(&in);
    }
    buf_fini(&b);
}

Test(frame, a_whole_frame_is_not_copied)
{
    struct buf b = BUF_INIT;
    add_frame(&b, 4, 100, 1);
    struct frame_in in;
    frame_in_init(&in, FRAME_MAX);
    const uint8_t *p = b.data;
    size_t n = b.len;
    struct frame f;
    cr_assert_eq(frame_next(&in, &p, &n, &f), 1);
    cr_assert_eq(f.body, b.data + FRAME_HEAD);
    cr_assert_eq(n, 0);
    cr_assert_null(in.part.data);
    frame_in_fini(&in);
    /* Nor when its length came alone before. */
    frame_in_init(&in, FRAME_MAX);
    p = b.data;
    n = 4;
    cr_assert_eq(frame_next(&in, &p, &n, &f), 0);
    cr_assert_eq(frame_in_pending(&in), 4);
    cr_assert_null(in.part.data);
    n = b.len - 4;
    cr_assert_eq(frame_next(&in, &p, &n, &f), 1);
    cr_assert_eq(f.body, b.data + FRAME_HEAD);
    frame_in_fini(&in);
    buf_fini(&b);
}

Test(frame, memory_follows_what_came_not_what_is_claimed)
{
    struct frame_in in;
    frame_in_init(&in, FRAME_MAX);
    static const uint8_t begin[] = {0x00, 0x10, 0x00, 0x00, 42, 1, 2, 3};
    const uint8_t *p = begin;
    size_t n = sizeof(begin);
    struct frame f;
    cr_assert_eq(frame_next(&in, &p, &n, &f), 0);
    cr_assert_eq(frame_in_pending(&in), sizeof(begin));
    cr_assert_leq(in.part.room, 64);
    uint8_t more[1000] = {0};
    p = more;
    n = sizeof(more);
    cr_assert_eq(frame_next(&in, &p, &n, &f), 0);
    cr_assert_leq(in.part.room, 2048);
    frame_in_fini(&in);
    cr_assert_null(in.part.data);
}

static void expect_refused(uint32_t max, const char *head, size_t size)
{
    /* All at once, and byte by byte. */
    for (size_t piece = 1; piece <= size; piece += size - 1) {
        struct frame_in in;
        frame_in_init(&in, max);
        int rc = 0;
        struct frame f;
        for (size_t at = 0; at < size && rc == 0; at += piece) {
            const uint8_t *p = (const uint8_t *)head + at;
            size_t n = piece;
            rc = frame_next(&in, &p, &n, &f);
        }
        cr_assert_eq(rc, -ERR_PROTO);
        const uint8_t good[] = {0, 0, 0, 1, 4};
        const uint8_t *p = good;
        size_t n = sizeof(good);
        cr_assert_eq(frame_next(&in, &p, &n, &f), -ERR_PROTO, "the error does not stay");
        cr_assert_null(in.part.data);
        frame_in_fini(&in);
    }
}

Test(frame, lengths_that_cannot_be_are_refused_at_their_fourth_byte)
{
    expect_refused(FRAME_MAX, "\0\0\0\0", 4);
    expect_refused(FRAME_MAX, "\x00\x10\x00\x01", 4);
    expect_refused(FRAME_MAX, "\xff\xff\xff\xff", 4);
    expect_refused(FRAME_MAX, "GET ", 4);
    expect_refused(FRAME_MAX_JOIN, "\x00\x00\x10\x01", 4);
}

Test(frame, the_longest_frames_pass)
{
    static const uint32_t max[] = {FRAME_MAX, FRAME_MAX_JOIN};
    for (size_t i = 0; i < 2; i++) {
        struct buf b = BUF_INIT;
        add_frame(&b, 1, max[i] - 1, 1);
        struct frame_in in;
        frame_in_init(&in, max[i]);
        const uint8_t *p = b.data;
        size_t n = b.len - 1;
        struct frame f;
        cr_assert_eq(frame_next(&in, &p, &n, &f), 0);
        n = 1;
        cr_assert_eq(frame_next(&in, &p, &n, &f), 1);
        expect_body(&f, 1, max[i] - 1, 1);
        frame_in_fini(&in);
        buf_fini(&b);
    }
}

Test(frame, a_frame_over_the_limit_is_taken_off_again)
{
    struct buf b = BUF_INIT;
    add_frame(&b, 4, 2, 0);
    size_t before = b.len;
    size_t begin = frame_begin(&b, 42);
    uint8_t *p = buf_reserve(&b, FRAME_MAX);
    cr_assert_not_null(p);
    memset(p, 0, FRAME_MAX);
    buf_grew(&b, FRAME_MAX);
    cr_assert_eq(frame_end(&b, begin), -ERR_LIMIT);
    cr_assert_eq(b.len, before);
    cr_assert_eq(b.err, 0);
    add_frame(&b, 4, 2, 0);
    buf_fini(&b);

    buf_init(&b, 8);
    begin = frame_begin(&b, 42);
    buf_add(&b, "abcdef", 6);
    cr_assert_eq(frame_end(&b, begin), -ERR_LIMIT);
    cr_assert_eq(b.len, 0);
    buf_fini(&b);
}

/* tarcheck_test.c: what may be unpacked passes, whatever tar wrote it; what would leave the
 * tree, or be read differently, does not. */
#include "worker/run/tarcheck.h"

#include "common/attr.h"
#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/prng.h"
#include "tests/unit/worker/tarmake.h"
#include "tests/unit/worker/work.h"
#include "worker/run/tarname.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Feeds the bytes in pieces of at most `step` and ends; the code, and the sentence in text (256
 * bytes). */
static int check(const struct buf *tar, size_t step, const struct tarcheck_limits *limits,
                 char *text)
{
    static const struct tarcheck_limits none = {0, 0};
    struct tarcheck *t = tarcheck_new(limits != NULL ? limits : &none);
    struct diag *diag = diag_new(4);
    int r = 0;

    for (size_t at = 0; r == 0 && at < tar->len; at += step)
        r = tarcheck_feed(t, tar->data + at, tar->len - at < step ? tar->len - at : step, diag);
    if (r == 0)
        r = tarcheck_end(t, diag);
    else
        cr_expect_eq(tarcheck_end(t, diag), r, "a refusal stays");
    if (text != NULL)
        (void)snprintf(text, 256, "%s", diag_first(diag));
    diag_free(&diag);
    tarcheck_free(&t);
    return r;
}

static void good(struct buf *tar)
{
    tarmake_entry(tar, 'g', "pax_global_header", 0666, NULL,
                  "52 comment=0123456789012345678901234567890123456789\n", 52);
    tarmake_entry(tar, '5', "dir/", 0755, NULL, NULL, 0);
    tarmake_entry(tar, '0', "dir/file", 0644, NULL, "hello", 5);
    tarmake_entry(tar, '0', "./run", 0755, NULL, "#!/bin/sh\n", 10);
    tarmake_entry(tar, '2', "dir/link", 0777, "../run", NULL, 0);
    tarmake_entry(tar, '1', "hard", 0644, "dir/file", NULL, 0);
    tarmake_end(tar);
}

Test(tarcheck, an_ordinary_archive_in_pieces_of_any_size)
{
    static const size_t step[] = {1, 7, 511, 512, 513, 100000};

    for (size_t i = 0; i < ARRAY_LEN(step); i++) {
        struct buf tar = BUF_INIT;
        char text[256];

        good(&tar);
        cr_expect_eq(check(&tar, step[i], NULL, text), 0, "%zu: %s", step[i], text);
        buf_fini(&tar);
    }
}

/* One bad entry among good ones. */
#define ROW(kind, name, mode, link, code, text)                                                    \
    {                                                                                              \
        kind, name, mode, link, code, text                                                         \
    }

Test(tarcheck, entries_that_are_refused)
{
    static const struct {
        char kind;
        const char *name;
        unsigned mode;
        const char *link;
        int code;
        const char *text;
    } row[] = {
        ROW('0', "../x", 0644, NULL, -ERR_DENIED, "`../x` leads upwards"),
        ROW('0', "a/../../x", 0644, NULL, -ERR_DENIED, "leads upwards"),
        ROW('0', "a/..", 0644, NULL, -ERR_DENIED, "leads upwards"),
        ROW('5', "..", 0755, NULL, -ERR_DENIED, "leads upwards"),
        ROW('0', "/etc/passwd", 0644, NULL, -ERR_DENIED, "`/etc/passwd` is absolute"),
        ROW('0', "", 0644, NULL, -ERR_DENIED, "is empty"),
        ROW('0', "./", 0644, NULL, -ERR_DENIED, "in place of the folder itself"),
        ROW('2', ".", 0777, "x", -ERR_DENIED, "folder itself"),
        ROW('2', "l", 0777, "/etc/passwd", -ERR_DENIED, "leads to an absolute name"),
        ROW('2', "l", 0777, "../x", -ERR_DENIED, "leads out"),
        ROW('2', "a/l", 0777, "../../x", -ERR_DENIED, "leads out"),
        ROW('2', "a/b/l", 0777, "../../../x", -ERR_DENIED, "leads out"),
        ROW('2', "l", 0777, "x/../../y", -ERR_DENIED, "leads out"),
        ROW('2', "l", 0777, "", -ERR_DENIED, "leads nowhere"),
        ROW('1', "h", 0644, "../x", -ERR_DENIED, "hard link"),
        ROW('1', "h", 0644, "/etc/passwd", -ERR_DENIED, "hard link"),
        ROW('1', "h", 0644, "dir/link", -ERR_DENIED, "hard link"),
        ROW('1', "h", 0644, "dir/link/x", -ERR_DENIED, "hard link"),
        ROW('1', "h", 0644, ".", -ERR_DENIED, "hard link"),
        ROW('0', "dir/link/x", 0644, NULL, -ERR_DENIED, "lies below a link"),
        ROW('5', "dir/link/y/", 0755, NULL, -ERR_DENIED, "lies below a link"),
        ROW('2', "dir/link/z", 0777, "x", -ERR_DENIED, "lies below a link"),
        ROW('3', "null", 0666, NULL, -ERR_DENIED, "is a device"),
        ROW('4', "disk", 0666, NULL, -ERR_DENIED, "is a device"),
        ROW('6', "pipe", 0666, NULL, -ERR_DENIED, "is a fifo"),
        ROW('S', "sparse", 0644, NULL, -ERR_DENIED, "is a sparse file"),
        ROW('M', "part", 0644, NULL, -ERR_DENIED, "not understood"),
        ROW('V', "volume", 0644, NULL, -ERR_DENIED, "not understood"),
        ROW('D', "dump", 0644, NULL, -ERR_DENIED, "not understood"),
        ROW('9', "new", 0644, NULL, -ERR_DENIED, "not understood"),
        ROW('0', "su", 04755, NULL, -ERR_DENIED, "set-id bit"),
        ROW('0', "sg", 02755, NULL, -ERR_DENIED, "set-id bit"),
        ROW('7', "su", 06755, NULL, -ERR_DENIED, "set-id bit"),
    };

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct buf tar = BUF_INIT;
        char text[256];

        good(&tar);
        tar.len -= 1024;
        tarmake_entry(&tar, row[i].kind, row[i].name, row[i].mode, row[i].link, NULL, 0);
        tarmake_end(&tar);
        cr_expect_eq(check(&tar, 10240, NULL, text), row[i].code, "%c %s -> %s: %s", row[i].kind,
                     row[i].name, row[i].link == NULL ? "" : row[i].link, text);
        cr_expect(strstr(text, row[i].text) != NULL, "%c %s -> %s: %s", row[i].kind, row[i].name,
                  row[i].link == NULL ? "" : row[i].link, text);
        buf_fini(&tar);
    }
}

Test(tarcheck, entries_that_pass)
{
    static const struct {
        char kind;
        const char *name;
        unsigned mode;
        const char *link;
    } row[] = {
        {'0', "a b\nc\xff", 0644, NULL},
        {'0', "..x/...", 0644, NULL},
        {'5', "shared/", 02755, NULL},
        {'5', "./", 0755, NULL},
        {'2', "a/b/l", 0777, "../../run"},
        {'2', "self", 0777, "."},
        {'2', "a/l", 0777, "./../run"},
        {'2', "later", 0777, "dir/../run"},
        {'2', "deep/er/l", 0777, "x/../../y"},
        {'1', "h", 0644, "./dir/file"},
        {'\0', "old", 0644, NULL},
        {'\0', "olddir/", 0755, NULL},
        {'0', "dir/file", 0644, NULL},
        {'2', "missing", 0777, "nowhere"},
        {'0', "a\\..\\b", 0644, NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct buf tar = BUF_INIT;
        char text[256];

        good(&tar);
        tar.len -= 1024;
        tarmake_entry(&tar, row[i].kind, row[i].name, row[i].mode, row[i].link, NULL, 0);
        tarmake_end(&tar);
        cr_expect_eq(check(&tar, 10240, NULL, text), 0, "%s -> %s: %s", row[i].name,
                     row[i].link == NULL ? "" : row[i].link, text);
        buf_fini(&tar);
    }
}

/* Two links that are each harmless by their letters lead out together. */
Test(tarcheck, links_that_lead_out_together)
{
    struct buf tar = BUF_INIT;
    char text[256];

    /* up -> . ; up/up/up/l -> ../../x would be judged by its letters three folders down */
    tarmake_entry(&tar, '2', "up", 0777, ".", NULL, 0);
    tarmake_entry(&tar, '2', "up/up/up/l", 0777, "../../x", NULL, 0);
    tarmake_end(&tar);
    cr_expect_eq(check(&tar, 4096, NULL, text), -ERR_DENIED);
    cr_expect(strstr(text, "below a link") != NULL, "%s", text);
    buf_reset(&tar);
    /* d/e/f/a -> ../../.. is within; d/e/f/l -> a/../x is out, though its letters say d/e/f/x.
     * The order makes no difference. */
    for (int first = 0; first < 2; first++) {
        buf_reset(&tar);
        for (int i = 0; i < 2; i++) {
            if (i == first)
                tarmake_entry(&tar, '2', "d/e/f/l", 0777, "a/../x", NULL, 0);
            else
                tarmake_entry(&tar, '2', "d/e/f/a", 0777, "../../..", NULL, 0);
        }
        tarmake_end(&tar);
        cr_expect_eq(check(&tar, 4096, NULL, text), -ERR_DENIED, "%s", text);
        cr_expect(strstr(text, "`d/e/f/l` leads upwards through another link") != NULL, "%s", text);
    }
    buf_fini(&tar);
}

Test(tarcheck, long_names)
{
    char name[3000], text[256];
    struct buf tar = BUF_INIT;

    memset(name, 0, sizeof(name));
    for (int i = 0; i < 40; i++)
        (void)snprintf(name + strlen(name), sizeof(name) - strlen(name),
                       "%sfolder-with-a-long-name-%02d", i == 0 ? "" : "/", i);
    tarmake_pax(&tar, 'x', "path", name);
    tarmake_entry(&tar, '0', "short", 0644, NULL, "x", 1);
    tarmake_long(&tar, 'L', name);
    tarmake_entry(&tar, '0', "short", 0644, NULL, "x", 1);
    tarmake_long(&tar, 'K', "folder");
    tarmake_entry(&tar, '2', "link", 0777, "/ignored", NULL, 0);
    tarmake_pax(&tar, 'x', "linkpath", "folder/x");
    tarmake_entry(&tar, '2', "link2", 0777, "/ignored", NULL, 0);
    tarmake_end(&tar);
    cr_expect_eq(check(&tar, 333, NULL, text), 0, "%s", text);
    buf_reset(&tar);
    /* A header's prefix counts as part of the name. */
    tarmake_header(&tar, '0', "name", 0644, NULL, 0);
    memcpy(tar.data + 345, "a/../../b", 9);
    tarmake_sum(tar.data);
    tarmake_end(&tar);
    cr_expect_eq(check(&tar, 512, NULL, text), -ERR_DENIED);
    buf_fini(&tar);
}

Test(tarcheck, names_in_headers_before_an_entry)
{
    static const struct {
        char kind;
        const char *key, *value;
        int code;
    } row[] = {
        {'x', "path", "../x", -ERR_DENIED},
        {'x', "path", "/x", -ERR_DENIED},
        {'L', NULL, "../x", -ERR_DENIED},
        {'x', "path", "", -ERR_DENIED},
        {'g', "path", "x", -ERR_DENIED},
        {'g', "linkpath", "x", -ERR_DENIED},
        {'g', "size", "0", -ERR_DENIED},
        {'x', "GNU.sparse.name", "x", -ERR_DENIED},
        {'x', "GNU.sparse.major", "1", -ERR_DENIED},
        {'x', "size", "4", -ERR_DENIED},
        {'x', "size", "x", -ERR_CORRUPT},
        {'x', "mtime", "1.5", 0},
        {'x', "SCHILY.xattr.user.x", "v", 0},
        {'g', "comment", "x", 0},
        {'x', "size", "3", 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct buf tar = BUF_INIT;
        char text[256];

        if (row[i].kind == 'L')
            tarmake_long(&tar, 'L', row[i].value);
        else
            tarmake_pax(&tar, row[i].kind, row[i].key, row[i].value);
        tarmake_entry(&tar, '0', "good", 0644, NULL, "abc", 3);
        tarmake_end(&tar);
        cr_expect_eq(check(&tar, 4096, NULL, text), row[i].code, "%c %s=%s: %s", row[i].kind,
                     row[i].key == NULL ? "" : row[i].key, row[i].value, text);
        buf_fini(&tar);
    }
    for (int i = 0; i < 3; i++) { /* two sources for one name */
        struct buf tar = BUF_INIT;

        if (i == 0)
            tarmake_long(&tar, 'L', "one");
        else
            tarmake_pax(&tar, 'x', "path", "one");
        if (i == 1)
            tarmake_long(&tar, 'L', "two");
        else
            tarmake_pax(&tar, 'x', "path", "two");
        tarmake_entry(&tar, '0', "good", 0644, NULL, NULL, 0);
        tarmake_end(&tar);
        cr_expect_eq(check(&tar, 4096, NULL, NULL), -ERR_DENIED, "%d", i);
        buf_fini(&tar);
    }
}

Test(tarcheck, what_programs_could_read_differently)
{
    struct buf tar = BUF_INIT;
    char text[256];

    good(&tar);
    tarmake_entry(&tar, '0', "../x", 0644, NULL, NULL, 0);
    cr_expect_eq(check(&tar, 4096, NULL, text), -ERR_DENIED, "behind the end");
    buf_reset(&tar);
    tarmake_entry(&tar, '0', "a", 0644, NULL, NULL, 0);
    tarmake_end(&tar);
    tar.len -= 512;
    tarmake_entry(&tar, '0', "b", 0644, NULL, NULL, 0);
    tarmake_end(&tar);
    cr_expect_eq(check(&tar, 4096, NULL, text), -ERR_DENIED, "behind one block of zeros: %s", text);
    buf_reset(&tar);
    tarmake_entry(&tar, '5', "d/", 0755, NULL, "data", 4);
    tarmake_end(&tar);
    cr_expect_eq(check(&tar, 4096, NULL, text), -ERR_DENIED, "%s", text);
    buf_reset(&tar);
    tarmake_entry(&tar, '2', "l", 0777, "x", "data", 4);
    tarmake_end(&tar);
    cr_expect_eq(check(&tar, 4096, NULL, text), -ERR_DENIED, "%s", text);
    buf_fini(&tar);
}

Test(tarcheck, damage)
{
    struct buf tar = BUF_INIT, cut = BUF_INIT;
    char text[256];

    good(&tar);
    for (size_t n = 0; n + 512 < tar.len; n += 100) {
        buf_reset(&cut);
        buf_add(&cut, tar.data, n);
        cr_expect_neq(check(&cut, 4096, NULL, text), 0, "cut at %zu", n);
    }
    buf_reset(&cut);
    buf_add(&cut, tar.data, tar.len);
    cut.data[512 + 512 + 3] ^= 1;
    cr_expect_eq(check(&cut, 4096, NULL, text), -ERR_CORRUPT, "%s", text);
    buf_reset(&cut);
    buf_add_str(&cut, "this is no archive at all, but a text that is a good deal longer than one "
                      "block of five hundred and twelve bytes, so "
                      "that the checksum is looked at and does not fit; padding padding padding "
                      "padding padding padding padding padding "
                      "padding padding padding padding padding padding padding padding padding "
                      "padding padding padding padding padding "
                      "padding padding padding padding padding padding padding padding padding "
                      "padding padding padding padding padding "
                      "padding padding padding padding padding padding padding padding padding "
                      "padding padding padding padding padding");
    cr_expect_eq(check(&cut, 4096, NULL, text), -ERR_CORRUPT);
    cr_expect(strstr(text, "no tar archive") != NULL, "%s", text);
    buf_reset(&cut);
    cr_expect_eq(check(&cut, 4096, NULL, text), -ERR_CORRUPT, "nothing");
    buf_fini(&cut);
    buf_fini(&tar);
}

Test(tarcheck, limits)
{
    struct tarcheck_limits entries = {.entries = 5}, fewer = {.entries = 4}, bytes = {.bytes = 15},
                           less = {.bytes = 14};
    struct buf tar = BUF_INIT;
    char text[256];

    good(&tar);
    cr_expect_eq(check(&tar, 4096, &fewer, text), -ERR_LIMIT, "%s", text);
    cr_expect_eq(check(&tar, 4096, &entries, text), 0, "%s", text);
    cr_expect_eq(check(&tar, 4096, &bytes, text), 0, "%s", text);
    cr_expect_eq(check(&tar, 4096, &less, text), -ERR_LIMIT, "%s", text);
    buf_reset(&tar);
    /* A size in GNU's binary form, up to the largest. */
    tarmake_header(&tar, '0', "huge", 0644, NULL, 0);
    memset(tar.data + 124, 0xff, 12);
    tarmake_sum(tar.data);
    cr_expect_eq(check(&tar, 4096, &bytes, text), -ERR_CORRUPT, "negative");
    tar.data[124] = 0x80;
    tarmake_sum(tar.data);
    cr_expect_neq(check(&tar, 4096, &bytes, text), 0);
    memset(tar.data + 125, 0, 11);
    tar.data[128] = 0x40;
    tarmake_sum(tar.data);
    cr_expect_eq(check(&tar, 4096, &bytes, text), -ERR_LIMIT, "%s", text);
    buf_reset(&tar);
    tarmake_header(&tar, 'x', "pax", 0644, NULL, 100ULL * 1024 * 1024);
    cr_expect_eq(check(&tar, 4096, NULL, text), -ERR_LIMIT, "%s", text);
    buf_fini(&tar);
}

/* Random damage never passes what leaves the tree, and never crashes. */
Test(tarcheck, random_damage)
{
    struct prng g;

    prng_init(&g, 20260101);
    for (int round = 0; round < 3000; round++) {
        struct buf tar = BUF_INIT;
        size_t flips = 1 + (size_t)prng_below(&g, 6);

        good(&tar);
        for (size_t i = 0; i < flips; i++)
            tar.data[prng_below(&g, tar.len)] ^= (uint8_t)(1u << prng_below(&g, 8));
        if (prng_below(&g, 2) == 0) { /* with sums that fit */
            for (size_t at = 0; at + 512 <= tar.len; at += 512)
                if (memcmp(tar.data + at + 257, "ustar", 5) == 0)
                    tarmake_sum(tar.data + at);
        }
        (void)!check(&tar, 1 + (size_t)prng_below(&g, 2000), NULL, NULL);
        buf_fini(&tar);
    }
}

Test(tarname, plain_form)
{
    static const struct {
        const char *name, *plain;
    } row[] = {
        {"a", "a"}, {"./a//b/./c/", "a/b/c"}, {".", ""}, {"./", ""}, {"a/.b/..c", "a/.b/..c"}};
    char plain[TARNAME_MAX];

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        cr_expect_null(tarname_clean(row[i].name, strlen(row[i].name), plain));
        cr_expect_str_eq(plain, row[i].plain);
    }
    cr_expect_not_null(tarname_clean("a\0b", 3, plain));
    {
        char big[TARNAME_MAX + 10];

        memset(big, 'x', sizeof(big));
        cr_expect_not_null(tarname_clean(big, 256, plain), "one part of 256 bytes");
        cr_expect_null(tarname_clean(big, 255, plain));
        for (size_t i = 2; i < sizeof(big); i += 3)
            big[i] = '/';
        cr_expect_null(tarname_clean(big, TARNAME_MAX - 1, plain));
        cr_expect_not_null(tarname_clean(big, TARNAME_MAX, plain));
    }
}

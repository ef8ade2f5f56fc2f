/* str_test.c: names, UTF-8, escapes, quoting, nearest words, hex, widths. */
#include "common/str.h"

#include "common/buf.h"
#include "common/err.h"
#include "common/prng.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEN "0123456789"

Test(str, names)
{
    static const struct {
        const char *text;
        bool want;
    } rows[] = {
        {"a", true},
        {"Quad-Core_4.b+c,d=e", true},
        {"...", true},
        {"-", true},
        {TEN TEN TEN TEN TEN TEN "abcd", true},
        {TEN TEN TEN TEN TEN TEN "abcde", false},
        {"", false},
        {".", false},
        {"..", false},
        {"a b", false},
        {"a/b", false},
        {"a:b", false},
        {"a\n", false},
        {"\xc3\xa4", false},
        {"a*", false},
        {"a%", false},
        {"a'", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cr_assert_eq(str_is_name(rows[i].text), rows[i].want, "'%s'", rows[i].text);
    }
}

Test(str, utf8)
{
    static const struct {
        const char *text;
        size_t n;
        size_t bad;
    } rows[] = {
        {"", 0, 0},
        {"plain", 5, 5},
        {"a\0b", 3, 3},
        {"\xc2\x80", 2, 2},
        {"\xdf\xbf", 2, 2},
        {"\xe0\xa0\x80", 3, 3},
        {"\xed\x9f\xbf", 3, 3},
        {"\xee\x80\x80", 3, 3},
        {"\xef\xbf\xbf", 3, 3},
        {"\xf0\x90\x80\x80", 4, 4},
        {"\xf4\x8f\xbf\xbf", 4, 4},
        {"ab\x80", 3, 2},         /* a stray continuation */
        {"a\xc3", 2, 1},          /* cut */
        {"a\xe2\x82", 3, 1},
        {"a\xf0\x9f\x98", 4, 1},
        {"a\xc3zz", 4, 1},
        {"a\xe2\x82zz", 5, 1},
        {"\xc0\x80", 2, 0},       /* overlong */
        {"\xc1\xbf", 2, 0},
        {"\xe0\x9f\xbf", 3, 0},
        {"\xf0\x8f\xbf\xbf", 4, 0},
        {"\xed\xa0\x80", 3, 0},   /* surrogate */
        {"\xed\xbf\xbf", 3, 0},
        {"\xf4\x90\x80\x80", 4, 0}, /* above U+10FFFF */
        {"\xf5\x80\x80\x80", 4, 0},
        {"\xff", 1, 0},
        {"\xc3\xa4\xff", 3, 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cr_assert_eq(str_utf8_bad(rows[i].text, rows[i].n), rows[i].bad, "row %zu", i);
        cr_assert_eq(str_is_utf8(rows[i].text, rows[i].n), rows[i].bad == rows[i].n, "row %zu", i);
    }
}

/* The definition once more, by code points: every sequence of one to three bytes is checked against it. */
static bool decodes(const uint8_t *p, size_t n)
{
    size_t at = 0;
    while (at < n) {
        uint32_t c = p[at];
        size_t more = c < 0x80 ? 0 : c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
        static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
        if ((c >= 0x80 && c < 0xc0) || c >= 0xf8 || at + more >= n) {
            return false;
        }
        c = more == 0 ? c : c & (0x3fU >> more);
        for (size_t i = 1; i <= more; i++) {
            if ((p[at + i] & 0xc0) != 0x80) {
                return false;
            }
            c = c << 6 | (p[at + i] & 0x3fU);
        }
        if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
            return false;
        }
        at += more + 1;
    }
    return true;
}

Test(str, utf8_agrees_with_its_definition)
{
    uint8_t p[3];
    for (uint32_t v = 0; v < 0x1000000; v++) {
        p[0] = (uint8_t)(v >> 16);
        p[1] = (uint8_t)(v >> 8);
        p[2] = (uint8_t)v;
        if (str_is_utf8(p, 3) != decodes(p, 3)) {
            cr_assert_fail("%02x %02x %02x", p[0], p[1], p[2]);
        }
    }
}

Test(str, labels)
{
    char long_label[300];
    memset(long_label, 'x', sizeof(long_label));
    long_label[256] = '\0';
    cr_assert(str_is_label(long_label));
    long_label[256] = 'x';
    long_label[257] = '\0';
    cr_assert_not(str_is_label(long_label));
    cr_assert(str_is_label("Größe: 4 % <b>"));
    cr_assert(str_is_label("\xc2\xa0"), "U+00A0 is no control character");
    cr_assert_not(str_is_label(""));
    cr_assert_not(str_is_label("a\nb"));
    cr_assert_not(str_is_label("a\x7f"));
    cr_assert_not(str_is_label("a\xc2\x85"), "C1");
    cr_assert_not(str_is_label("a\xc2\x9f"), "C1");
    cr_assert_not(str_is_label("a\xff"));
}

Test(str, equality_and_prefix)
{
    cr_assert(str_eq(NULL, NULL));
    cr_assert_not(str_eq(NULL, ""));
    cr_assert_not(str_eq("", NULL));
    cr_assert(str_eq("a", "a"));
    cr_assert_not(str_eq("a", "A"));
    cr_assert(str_starts("class:p6", "class:"));
    cr_assert(str_starts("x", ""));
    cr_assert_not(str_starts("cla", "class:"));
}

Test(str, copy_truncates)
{
    char dst[6] = "zzzzz";
    cr_assert_eq(str_copy(dst, 4, "abcdef"), 6);
    cr_assert_str_eq(dst, "abc");
    cr_assert_eq(dst[4], 'z', "nothing beyond the room is touched");
    cr_assert_eq(str_copy(dst, sizeof(dst), "abcde"), 5);
    cr_assert_str_eq(dst, "abcde");
    cr_assert_eq(str_copy(dst, 0, "q"), 1);
    cr_assert_str_eq(dst, "abcde");
    cr_assert_eq(str_copy(dst, 1, "q"), 1);
    cr_assert_str_eq(dst, "");
}

/* Edits by the whole table: insert, delete, replace, swap of neighbours. */
static size_t count_edits(const char *a, const char *b)
{
    size_t t[16][16];
    size_t na = strlen(a);
    size_t nb = strlen(b);
    for (size_t i = 0; i <= na; i++) {
        for (size_t j = 0; j <= nb; j++) {
            size_t d = i == 0 ? j : i;
            if (i > 0 && j > 0) {
                size_t other = t[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
                d = t[i - 1][j] + 1;
                d = t[i][j - 1] + 1 < d ? t[i][j - 1] + 1 : d;
                d = other < d ? other : d;
                if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && t[i - 2][j - 2] + 1 < d) {
                    d = t[i - 2][j - 2] + 1;
                }
            }
            t[i][j] = d;
        }
    }
    return t[na][nb];
}

Test(str, nearest_finds_what_two_edits_reach_and_nothing_else)
{
    struct prng g;
    prng_init(&g, 7);
    size_t found = 0;
    for (int round = 0; round < 20000; round++) {
        char word[16];
        char other[16];
        size_t n = (size_t)(5 + prng_below(&g, 8));
        size_t m = n - 3 + (size_t)prng_below(&g, 7);
        for (size_t i = 0; i < n; i++) {
            word[i] = (char)('a' + prng_below(&g, 3));
        }
        for (size_t i = 0; i < m; i++) {
            other[i] = i < n && prng_below(&g, 4) > 0 ? word[i] : (char)('a' + prng_below(&g, 3));
        }
        word[n] = other[m] = '\0';
        size_t edits = count_edits(word, other);
        const char *const candidates[] = {other};
        bool want = edits <= 2 && edits * 2 < n;
        cr_assert_eq(str_nearest(word, candidates, 1) != NULL, want, "'%s' and '%s': %zu edits", word, other, edits);
        found += want;
    }
    cr_expect(found > 1000 && found < 19000, "%zu", found);
}

Test(str, nearest)
{
    static const char *const keys[] = {"workload", "workloads", "timeout", "jobs", "run", "reset", "rev"};
    static const struct {
        const char *word;
        const char *want;
    } rows[] = {
        {"worklod", "workload"},
        {"workloads", "workloads"},
        {"timout", "timeout"},
        {"tiemout", "timeout"},  /* a swap is one edit */
        {"jbos", "jobs"},
        {"job", "jobs"},
        {"Jobs", "jobs"},
        {"rest", "reset"},
        {"xyz", NULL},
        {"ab", NULL},            /* one edit would be half of it */
        {"ru", NULL},
        {"rxn", "run"},
        {"jxyz", NULL},
        {"", NULL},
        {"workloadsss", "workloads"},
        {"workloadssss", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *got = str_nearest(rows[i].word, keys, ARRAY_LEN(keys));
        cr_assert(str_eq(got, rows[i].want), "'%s' gives '%s'", rows[i].word, got != NULL ? got : "(none)");
    }
    static const char *const tie[] = {"abcx", "abcy"};
    cr_assert_eq(str_nearest("abcz", tie, 2), tie[0], "the first of equals");
    char *big = calloc(1, 1000001);
    memset(big, 'a', 1000000);
    cr_assert_null(str_nearest(big, keys, ARRAY_LEN(keys)));
    const char *const big_candidate[] = {big};
    cr_assert_null(str_nearest("abc", big_candidate, 1));
    cr_assert_null(str_nearest("abc", NULL, 0));
    free(big);
}

Test(str, escape)
{
    static const struct {
        const char *text;
        size_t n;
        const char *want;
    } rows[] = {
        {"", 0, ""},
        {"plain 'text'", 12, "plain 'text'"},
        {"a\nb\tc\rd", 7, "a\\nb\\tc\\x0dd"},
        {"\"\\", 2, "\\\"\\\\"},
        {"\x1b[31m", 5, "\\x1b[31m"},
        {"a\0b", 3, "a\\x00b"},
        {"\x7f", 1, "\\x7f"},
        {"\xc2\x9b" "31m", 5, "\\xc2\\x9b31m"}, /* C1 control sequence introducer */
        {"gr\xc3\xbc\xc3\x9f", 6, "gr\xc3\xbc\xc3\x9f"},
        {"\xc3", 1, "\\xc3"},
        {"\xff\xc3\xa4\xed\xa0\x80", 6, "\\xff\xc3\xa4\\xed\\xa0\\x80"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf out = BUF_INIT;
        str_escape(&out, rows[i].text, rows[i].n);
        cr_assert_str_eq(buf_str(&out), rows[i].want, "row %zu", i);
        buf_fini(&out);
    }
}

Test(str, shell_quote)
{
    static const struct {
        const char *text;
        const char *want;
    } rows[] = {
        {"", "''"},
        {"make", "'make'"},
        {"it's", "'it'\\''s'"},
        {"'", "''\\'''"},
        {"$(reboot); `x` \"y\" \\ \n *", "'$(reboot); `x` \"y\" \\ \n *'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf out = BUF_INIT;
        str_shell_quote(&out, rows[i].text);
        cr_assert_str_eq(buf_str(&out), rows[i].want);
        buf_fini(&out);
    }
}

Test(str, hex)
{
    static const uint8_t bytes[] = {0x00, 0x0f, 0xa5, 0xff};
    char text[9];
    uint8_t back[4] = {9, 9, 9, 9};
    str_hex(text, bytes, 4);
    cr_assert_str_eq(text, "000fa5ff");
    cr_assert_eq(str_unhex(back, 4, text), 0);
    cr_assert(memcmp(back, bytes, 4) == 0);
    cr_assert_eq(str_unhex(back, 4, "000FA5FF"), 0, "capitals are read too");
    cr_assert_eq(str_unhex(back, 0, ""), 0);
    static const char *const bad[] = {"", "000fa5f", "000fa5ff0", "000fa5fg", "000fa5 f", "0x0fa5ff", "-00fa5ff"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        memset(back, 7, sizeof(back));
        cr_assert_eq(str_unhex(back, 4, bad[i]), -ERR_INVAL, "'%s'", bad[i]);
        cr_assert_eq(back[0], 7, "a refused text changes nothing");
    }
}

Test(str, columns)
{
    static const struct {
        const char *text;
        size_t want;
    } rows[] = {
        {"", 0},
        {"host", 4},
        {"Größe", 5},
        {"e\xcc\x81", 1},          /* e and a combining acute */
        {"\xe6\x97\xa5\xe6\x9c\xac", 4}, /* two wide characters */
        {"\xef\xbc\xa1", 2},       /* full-width A */
        {"\xf0\x9f\x98\x80", 2},   /* emoji */
        {"\xe2\x82\xac", 1},
        {"a\xff" "b", 3},
        {"\xe6\x97", 2},           /* cut: two bytes, two marks */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cr_assert_eq(str_columns(rows[i].text), rows[i].want, "row %zu: %zu", i, str_columns(rows[i].text));
    }
}

Test(str, shows_quotes_as_they_are)
{
    struct buf out = BUF_INIT;
    str_show(&out, "a \"b\" \\ 'c'\n\x1b\xff", 14);
    cr_expect_str_eq(buf_str(&out), "a \"b\" \\ 'c'\\n\\x1b\\xff");
    buf_fini(&out);
}

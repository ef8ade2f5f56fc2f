/* Which lines of a check's output are facts. */
#include "worker/run/told.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct told told;

static void read_text(const char *text)
{
    told_free(&told);
    told_add(&told, text, strlen(text));
    told_end(&told);
}

static const char *get(const char *key)
{
    for (size_t i = 0; i < told.count; i++)
        if (strcmp(told.list[i].key, key) == 0)
            return told.list[i].value;
    return NULL;
}

TestSuite(told);

Test(told, takes_key_and_value)
{
    read_text("objects=6\nmake: nothing to be done\nbytes.text=120 KB = much\nlast=x");
    cr_assert_eq(told.count, 3u);
    cr_assert_str_eq(get("objects"), "6");
    cr_assert_str_eq(get("bytes.text"), "120 KB = much");
    cr_assert_str_eq(get("last"), "x");
    read_text("a=1\na=2\n");
    cr_assert_eq(told.count, 1u);
    cr_assert_str_eq(get("a"), "2");
    read_text("schön=nein\nwert=schön\n");
    cr_assert_eq(told.count, 1u);
    cr_assert_str_eq(get("wert"), "schön");
    told_free(&told);
}

Test(told, leaves_other_lines_alone)
{
    static const char *const lines[] = {
        "",        "=1",     "a",      "a =1",  " a=1",  "a=",         "a\t=1", "a=\x01",
        "a=b\x7f", "a=\xff", "a=\xc3", "a=x\r", "a/b=1", "a=\xc2\x85", "[a=1]", "x: a=1",
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char text[64];

        snprintf(text, sizeof text, "%s\n", lines[i]);
        read_text(text);
        cr_assert_eq(told.count, 0u, "line %zu was taken", i);
    }
    told_free(&told);
}

Test(told, keeps_to_its_limits)
{
    char line[1400];

    for (int n = 1; n <= 70; n++) {
        memset(line, 'k', (size_t)n);
        snprintf(line + n, 8, "=v\n");
        read_text(line);
        cr_assert_eq(told.count, n <= TOLD_KEY_MAX ? 1u : 0u);
    }
    for (int n = 1020; n <= 1300; n++) {
        line[0] = 'k';
        line[1] = '=';
        memset(line + 2, 'v', (size_t)n);
        snprintf(line + 2 + n, 2, "\n");
        read_text(line);
        cr_assert_eq(told.count, n <= TOLD_VALUE_MAX ? 1u : 0u, "%d", n);
    }
    told_free(&told);
    for (int i = 0; i < TOLD_MAX + 10; i++) {
        snprintf(line, sizeof line, "k%d=%d\n", i, i);
        told_add(&told, line, strlen(line));
    }
    told_add(&told, "k0=new\n", 7);
    told_end(&told);
    cr_assert_eq(told.count, (size_t)TOLD_MAX);
    cr_assert_eq(told.left_out, 10u);
    cr_assert_str_eq(get("k0"), "new");
    told_free(&told);
}

Test(told, reads_pieces_as_one)
{
    const char *text = "first=1\nnoise\nsecond=two words\nthird=3";

    for (size_t cut = 0; cut <= strlen(text); cut++) {
        told_free(&told);
        told_add(&told, text, cut);
        told_add(&told, text + cut, strlen(text) - cut);
        told_end(&told);
        cr_assert_eq(told.count, 3u);
        cr_assert_str_eq(get("second"), "two words");
    }
    told_free(&told);
}

Test(told, drops_both_halves_of_a_line_that_is_cut)
{
    told_add(&told, "a=1\nb=2", 7);
    told_gap(&told);
    told_add(&told, "c=3\nd=4\n", 8);
    told_end(&told);
    cr_assert_eq(told.count, 2u);
    cr_assert_str_eq(get("a"), "1");
    cr_assert_str_eq(get("d"), "4");
    told_free(&told);
}

/* diag_test.c: order, counts, and what the printed lines look like. */
#include "common/diag.h"

#include "common/buf.h"
#include "common/err.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static void assert_printed(const struct diag *d, const char *want)
{
    struct buf out = BUF_INIT;
    diag_print(d, &out);
    cr_assert_str_eq(buf_str(&out), want);
    buf_fini(&out);
}

Test(diag, gives_back_the_negative_code)
{
    struct diag *d = diag_new(10);
    cr_assert_eq(diag_error(d, ERR_INVAL, "a"), -ERR_INVAL);
    cr_assert_eq(diag_error(d, -ERR_IO, "b"), -ERR_IO);
    cr_assert_eq(diag_error_at(d, ERR_RANGE, "f", 1, 2, "c"), -ERR_RANGE);
    cr_assert_eq(diag_error(d, 0, "no code"), -ERR_SYS, "an error path never gives 0");
    cr_assert_eq(diag_warn(d, "w"), 0);
    cr_assert_eq(diag_warn_at(d, "f", 1, 1, "w"), 0);
    cr_assert_eq(diag_note(d, "n"), 0);
    cr_assert_eq(diag_get(d, 1)->code, ERR_IO);
    cr_assert_eq(diag_count(d), 7);
    cr_assert_eq(diag_errors(d), 4);
    cr_assert_str_eq(diag_first(d), "a");
    cr_assert_null(diag_get(d, 7));
    diag_free(&d);
    cr_assert_null(d);
    diag_free(&d);
}

Test(diag, null_keeps_nothing)
{
    cr_assert_eq(diag_error(NULL, ERR_INVAL, "a %d", 1), -ERR_INVAL);
    cr_assert_eq(diag_error_at(NULL, ERR_INVAL, "f", 1, 1, "a"), -ERR_INVAL);
    cr_assert_eq(diag_warn(NULL, "w"), 0);
    cr_assert_eq(diag_count(NULL), 0);
    cr_assert_eq(diag_errors(NULL), 0);
    cr_assert_str_eq(diag_first(NULL), "");
    cr_assert_null(diag_get(NULL, 0));
    diag_clear(NULL);
    assert_printed(NULL, "");
}

Test(diag, prints_in_order_of_place)
{
    struct diag *d = diag_new(100);
    diag_error_at(d, ERR_INVAL, "b.yaml", 1, 1, "eighth");
    diag_error_at(d, ERR_INVAL, "a.yaml", 10, 2, "seventh");
    diag_error_at(d, ERR_INVAL, "a.yaml", 9, 12, "sixth");
    diag_warn_at(d, "a.yaml", 9, 3, "fourth");
    diag_error_at(d, ERR_INVAL, "a.yaml", 9, 3, "fifth");
    diag_error_at(d, ERR_INVAL, "a.yaml", 9, 0, "third");
    diag_error_at(d, ERR_INVAL, "a.yaml", 0, 0, "second");
    diag_note(d, "first");
    assert_printed(d, "note: first\n"
                      "a.yaml: second\n"
                      "a.yaml:9: third\n"
                      "a.yaml:9:3: warning: fourth\n"
                      "a.yaml:9:3: fifth\n"
                      "a.yaml:9:12: sixth\n"
                      "a.yaml:10:2: seventh\n"
                      "b.yaml:1:1: eighth\n");
    cr_assert_str_eq(diag_first(d), "eighth", "the first that was added");
    diag_free(&d);
}

Test(diag, equal_places_keep_the_order_of_adding)
{
    struct diag *d = diag_new(1000);
    for (unsigned i = 0; i < 200; i++) {
        diag_error_at(d, ERR_INVAL, "f", 1 + i % 2, 1, "%03u", i);
    }
    struct buf out = BUF_INIT;
    diag_print(d, &out);
    const char *p = buf_str(&out);
    for (unsigned i = 0; i < 200; i++) {
        char want[32];
        unsigned k = i < 100 ? 2 * i : 2 * (i - 100) + 1;
        int n = snprintf(want, sizeof(want), "f:%u:1: %03u\n", 1 + k % 2, k);
        cr_assert(strncmp(p, want, (size_t)n) == 0, "line %u is not %s", i, want);
        p += n;
    }
    cr_assert_str_eq(p, "");
    buf_fini(&out);
    diag_free(&d);
}

Test(diag, beyond_max_is_counted_and_said)
{
    struct diag *d = diag_new(2);
    diag_warn(d, "one");
    diag_error(d, ERR_INVAL, "two");
    diag_error(d, ERR_INVAL, "three");
    cr_assert_eq(diag_count(d), 2);
    cr_assert_eq(diag_errors(d), 2);
    assert_printed(d, "warning: one\ntwo\n1 more message is not shown\n");
    diag_note(d, "four");
    assert_printed(d, "warning: one\ntwo\n2 more messages are not shown\n");
    diag_clear(d);
    cr_assert_eq(diag_errors(d), 0);
    cr_assert_str_eq(diag_first(d), "");
    assert_printed(d, "");
    diag_error(d, ERR_INVAL, "new");
    assert_printed(d, "new\n");
    diag_free(&d);
}

Test(diag, first_error_that_was_not_kept_is_empty)
{
    struct diag *d = diag_new(0);
    cr_assert_eq(diag_error(d, ERR_INVAL, "x"), -ERR_INVAL);
    cr_assert_eq(diag_errors(d), 1);
    cr_assert_str_eq(diag_first(d), "");
    diag_free(&d);
}

Test(diag, control_characters_cannot_steer_a_terminal)
{
    struct diag *d = diag_new(10);
    diag_error_at(d, ERR_INVAL, "x\x1b[2J.yaml", 1, 1, "said \x1b]0;me\x07 and\r\n\tmore \x7f é");
    assert_printed(d, "x\\x1b[2J.yaml:1:1: said \\x1b]0;me\\x07 and\\x0d\n\tmore \\x7f é\n");
    diag_free(&d);
}

Test(diag, neither_can_those_above_ascii_nor_bytes_that_are_no_text)
{
    struct diag *d = diag_new(10);
    diag_error_at(d, ERR_INVAL, "\xc2\x9b.yaml", 1, 1, "said \xc2\x9b" "2J \x9b" "2J \xff and \xc2\xa0");
    assert_printed(d, "\\xc2\\x9b.yaml:1:1: said \\xc2\\x9b2J \\x9b2J \\xff and \xc2\xa0\n");
    diag_free(&d);
}

Test(diag, warnings_leave_room_for_an_error)
{
    struct diag *d = diag_new(2);
    diag_warn(d, "one");
    diag_warn(d, "two");
    diag_warn(d, "three");
    diag_error(d, ERR_INVAL, "four");
    diag_error(d, ERR_INVAL, "five");
    cr_assert_str_eq(diag_first(d), "four");
    assert_printed(d, "warning: one\nfour\n3 more messages are not shown\n");
    diag_free(&d);
}

Test(diag, texts_are_copied_and_long_ones_cut)
{
    struct diag *d = diag_new(10);
    static char big[200000];
    char file[16] = "one";
    memset(big, 'x', sizeof(big) - 1);
    diag_error_at(d, ERR_INVAL, file, 1, 1, "%s", big);
    memset(file, 'z', 3);
    diag_error_at(d, ERR_INVAL, file, 1, 1, "other");
    cr_assert_str_eq(diag_get(d, 0)->file, "one");
    cr_assert_str_eq(diag_get(d, 1)->file, "zzz");
    cr_assert_eq(strlen(diag_get(d, 0)->text), 65536);
    diag_free(&d);
}

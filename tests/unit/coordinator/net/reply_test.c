/* reply_test.c: what is said to an operator always fits a REPLY. */
#include "coordinator/net/reply.c"

#include <criterion/criterion.h>

/* The text as it would be sent: not too long, and well-formed. Freed by the caller. */
static char *fitted(const char *text)
{
    char *fit = fit_talk(text);
    cr_expect_leq(strlen(fit), TALK);
    cr_expect(str_is_utf8(fit, strlen(fit)));
    return fit;
}

Test(net_reply, what_fits_is_said_as_it_is)
{
    char *fit = fitted("s.yaml:3:1: \xc3\xa9\n");
    cr_expect_str_eq(fit, "s.yaml:3:1: \xc3\xa9\n");
    free(fit);
    fit = fitted("");
    cr_expect_str_eq(fit, "");
    free(fit);
}

Test(net_reply, bytes_that_are_not_utf8_are_said_as_question_marks)
{
    char *fit = fitted("fatal: no \xff\xc3 here \xe2\x82\n");
    cr_expect_str_eq(fit, "fatal: no ?? here ??\n");
    free(fit);
}

Test(net_reply, a_long_text_is_cut_and_says_so)
{
    for (size_t pad = 0; pad < 4; pad++) {
        struct buf text = BUF_INIT;
        for (size_t i = 0; i < pad; i++) {
            buf_add_char(&text, 'x');
        }
        while (text.len < 70000) {
            buf_add_str(&text, "\xe2\x82\xac");
        }
        char *fit = fitted(buf_str(&text));
        size_t n = strlen(fit);
        cr_expect_gt(n, TALK - 8);
        cr_expect_str_eq(fit + n - 7, "\n[...]\n");
        free(fit);
        buf_fini(&text);
    }
}

Test(net_reply, the_longest_text_that_fits_is_not_cut)
{
    struct buf text = BUF_INIT;
    while (text.len < TALK) {
        buf_add_char(&text, 'x');
    }
    char *fit = fitted(buf_str(&text));
    cr_expect_eq(strlen(fit), TALK);
    cr_expect_eq(fit[TALK - 1], 'x');
    free(fit);
    buf_fini(&text);
}

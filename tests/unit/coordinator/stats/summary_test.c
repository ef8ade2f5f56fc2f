/* summary_test.c: count, mean, spread and median of samples, with the cases that naive formulas get wrong. */
#include "coordinator/stats/summary.h"

#include <criterion/criterion.h>
#include <math.h>

Test(summary, nothing_is_insufficient)
{
    struct stats_summary s;
    double scratch[1] = {0};

    cr_expect_eq(stats_summarize(scratch, 0, scratch, &s), STATS_INSUFFICIENT_DATA);
    cr_expect_eq(s.n, 0);
}

Test(summary, one_value_has_no_spread)
{
    double v[] = {2.5}, scratch[1];
    struct stats_summary s;

    cr_expect_eq(stats_summarize(v, 1, scratch, &s), STATS_OK);
    cr_expect_not(s.has_sd);
    cr_expect_float_eq(s.median, 2.5, 0);
}

Test(summary, the_median_of_an_even_count_is_between_the_middle_two)
{
    double v[] = {4, 1, 3, 2}, scratch[4];
    struct stats_summary s;

    cr_expect_eq(stats_summarize(v, 4, scratch, &s), STATS_OK);
    cr_expect_float_eq(s.median, 2.5, 0);
    cr_expect_float_eq(s.mean, 2.5, 0);
    cr_expect_float_eq(s.sd, sqrt(5.0 / 3), 1e-15);
    cr_expect_float_eq(s.min, 1, 0);
    cr_expect_float_eq(s.max, 4, 0);
    cr_expect_float_eq(v[0], 4, 0, "the input is not touched");
}

Test(summary, a_small_spread_on_a_large_mean_does_not_cancel)
{
    double v[] = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16}, scratch[4];
    struct stats_summary s;

    cr_expect_eq(stats_summarize(v, 4, scratch, &s), STATS_OK);
    cr_expect_float_eq(s.sd, sqrt(30.0), 1e-9);
}

Test(summary, what_is_not_finite_is_refused)
{
    double nan_in[] = {1, NAN}, inf_in[] = {INFINITY, 1}, scratch[2];
    struct stats_summary s;

    cr_expect_eq(stats_summarize(nan_in, 2, scratch, &s), STATS_INVALID_INPUT);
    cr_expect_eq(stats_summarize(inf_in, 2, scratch, &s), STATS_INVALID_INPUT);
    cr_expect_eq(s.n, 0);
}

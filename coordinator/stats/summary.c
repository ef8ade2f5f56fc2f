/* summary.c: count, mean, standard deviation, extremes and median of a sample. Owns nothing. */
#include "coordinator/stats/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;

    return (*x > *y) - (*x < *y);
}

enum stats_status stats_summarize(const double *values, size_t n, double *scratch, struct stats_summary *out)
{
    double sum = 0;
    double squares = 0;
    double rest = 0;

    memset(out, 0, sizeof *out);
    if (n == 0)
        return STATS_INSUFFICIENT_DATA;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i]))
            return STATS_INVALID_INPUT;
        scratch[i] = values[i];
        sum += values[i];
    }
    qsort(scratch, n, sizeof *scratch, compare_doubles);
    out->n = n;
    out->sum = sum;
    out->mean = sum / (double)n;
    out->min = scratch[0];
    out->max = scratch[n - 1];
    out->median = n % 2 == 1 ? scratch[n / 2] : scratch[n / 2 - 1] / 2 + scratch[n / 2] / 2;
    if (n >= 2) {
        for (size_t i = 0; i < n; i++) {
            double d = scratch[i] - out->mean;

            squares += d * d;
            rest += d;
        }
        squares -= rest * rest / (double)n;
        out->has_sd = true;
        out->sd = squares > 0 ? sqrt(squares / (double)(n - 1)) : 0;
    }
    return STATS_OK;
}

const char *stats_status_word(enum stats_status status)
{
    switch (status) {
    case STATS_OK:
        return "ok";
    case STATS_INSUFFICIENT_DATA:
        return "insufficient_data";
    case STATS_ZERO_VARIANCE:
        return "zero_variance";
    case STATS_INVALID_INPUT:
        return "invalid_input";
    case STATS_NOT_IDENTIFIABLE:
        return "not_identifiable";
    }
    return "unknown";
}

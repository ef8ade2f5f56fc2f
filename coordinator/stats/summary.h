/* summary.h: the plain description of a sample: count, mean, standard deviation, extremes, median. Pure; allocates nothing. */
#ifndef MAKESPAN_COORDINATOR_STATS_SUMMARY_H
#define MAKESPAN_COORDINATOR_STATS_SUMMARY_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>

enum stats_status { STATS_OK, STATS_INSUFFICIENT_DATA, STATS_ZERO_VARIANCE, STATS_INVALID_INPUT, STATS_NOT_IDENTIFIABLE };

struct stats_summary {
    size_t n;
    double sum;
    double mean;
    double min;
    double max;
    double median; /* of an even count the mean of the middle two */
    bool has_sd;   /* from two values on */
    double sd;     /* with n - 1 below; two passes with the correction of Chan, Golub and LeVeque, The American Statistician 37 (1983) */
};

/* Describes n values; `scratch` has room for n and is overwritten. STATS_INSUFFICIENT_DATA when n is 0, STATS_INVALID_INPUT when a value is not finite
 * (then *out is zeroed), else STATS_OK. */
enum stats_status stats_summarize(const double *values, size_t n, double *scratch, struct stats_summary *out) MUST_CHECK;

/* The name of a status as it is shown: "ok", "insufficient_data", … */
const char *stats_status_word(enum stats_status status);

#endif

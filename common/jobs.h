/* jobs.h: job counts, and the expressions of `jobs:` in a sweep file: none, numbers, ranges (1..20, 2..16/2), shares (50%), max. */
#ifndef MAKESPAN_COMMON_JOBS_H
#define MAKESPAN_COMMON_JOBS_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A job count as one number, on the wire and in the store: 1 to 4096, or one of these. */
enum { JOBS_NONE = 0, JOBS_MAX = -1, JOBS_LIMIT = 4096 };

/* One item of an expression: resolved per host by its number of usable CPUs. */
struct jobs_item {
    enum { JOBS_ITEM_NONE, JOBS_ITEM_RANGE, JOBS_ITEM_SHARE, JOBS_ITEM_MAX } kind;
    int32_t first, last, step; /* range; a plain number is first == last */
    int64_t share_ppm;         /* share of the CPUs, above 0 to 1000 % */
};

/* Parses one item. 0, or -ERR_INVAL / -ERR_RANGE with a sentence in *why (static): 0 and negative numbers, open or falling ranges, more than 4096. */
int jobs_parse(const char *text, struct jobs_item *out, const char **why) MUST_CHECK;

/* The points of n items on a host with `cpus` usable CPUs (in thousandths: a quota of 1.5 CPUs is 1500): shares are rounded up to at least 1, equal points merge, order: none,
 * rising numbers, max. Writes up to room points, returns how many there are, or -ERR_LIMIT when room is too small. */
int jobs_points(const struct jobs_item *items, size_t n, int64_t cpus_milli, int32_t *points, size_t room) MUST_CHECK;

/* "none", "4", "max" (for CSV and messages). dst has at least 16 bytes. Returns dst. */
const char *jobs_text(char *dst, size_t room, int32_t jobs);
/* What JFLAG holds: "", "-j4", "-j". */
const char *jobs_flag(char *dst, size_t room, int32_t jobs);
/* Inverse of jobs_text(): 0 or -ERR_INVAL. */
int jobs_from_text(const char *text, int32_t *jobs) MUST_CHECK;

#endif

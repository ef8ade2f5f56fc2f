/* num.h: numbers from text and to text, independent of the locale, with every overflow seen. */
#ifndef MAKESPAN_COMMON_NUM_H
#define MAKESPAN_COMMON_NUM_H

#include "common/attr.h"

#include <stddef.h>
#include <stdint.h>

/* Plain decimal without sign, space or leading zero ("0" is allowed); 0, -ERR_INVAL or -ERR_RANGE. */
int num_parse_u64(const char *s, uint64_t *out) MUST_CHECK;
/* As above with an optional '-'. */
int num_parse_i64(const char *s, int64_t *out) MUST_CHECK;
/* Like num_parse_u64 but leading zeros are allowed: for figures in files of the system. */
int num_parse_digits(const char *s, size_t n, uint64_t *out) MUST_CHECK;
/* A duration: a number (fraction allowed) and a unit ns us ms s m h d w, several parts in falling units allowed ("1h30m"); "0" alone is 0.
 * Result in nanoseconds, at most 10 years. 0, -ERR_INVAL, -ERR_RANGE. A number without a unit is -ERR_INVAL. */
int num_parse_duration(const char *s, int64_t *ns) MUST_CHECK;
/* A size: a number and B, KB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (powers of 1024); "0" alone is 0. */
int num_parse_size(const char *s, uint64_t *bytes) MUST_CHECK;
/* "2%", "0.5 %" -> parts per million (20000, 5000); 0 to 1000 %. A number without % is -ERR_INVAL. */
int num_parse_percent(const char *s, int64_t *ppm) MUST_CHECK;
/* "2h5m", "1.5s", "20ms": short exact text of a duration. Returns dst. dst has at least 32 bytes. */
const char *num_duration_text(char *dst, size_t room, int64_t ns);
/* "1.5 GiB", "300 B". */
const char *num_size_text(char *dst, size_t room, uint64_t bytes);
/* "2%", "0.5%" from parts per million. */
const char *num_percent_text(char *dst, size_t room, int64_t ppm);
/* Seconds with `decimals` digits behind the point (0 to 9), rounded half away from zero: "12.34". */
const char *num_seconds_text(char *dst, size_t room, int64_t ns, int decimals);

/* Checked arithmetic: 0 or -ERR_RANGE. */
int num_add_i64(int64_t a, int64_t b, int64_t *out) MUST_CHECK;
int num_mul_i64(int64_t a, int64_t b, int64_t *out) MUST_CHECK;

#endif

/* out.h: text for a person: tables, bars, spans of time. Pure but for out_close(). */
#ifndef MAKESPAN_COORDINATOR_CTL_OUT_H
#define MAKESPAN_COORDINATOR_CTL_OUT_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct out_table;

/* A table whose columns are as wide as their widest cell; a heading that begins with ">" is right-aligned. `headings` is borrowed for the table's life. */
struct out_table *out_table_new(const char *const *headings, size_t columns) MUST_CHECK;
void out_table_free(struct out_table **table);
/* Copies the next cell of the current row; NULL is "-". Control characters are escaped. */
void out_cell(struct out_table *table, const char *text);
void out_cellf(struct out_table *table, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Appends the table; a row that is not whole is a bug. */
void out_table_print(const struct out_table *table, struct buf *out);

/* A bar of `width` columns for done of all (all 0: empty): "[=====>    ]". */
void out_bar(struct buf *out, int64_t done, int64_t all, size_t width);
/* "2 h 05 m", "3 m 20 s", "12 s", "-" for a negative span. dst has at least 32 bytes. Returns dst. */
const char *out_span(char *dst, size_t room, int64_t ns);
/* "2026-11-30 12:00:05" UTC; "-" for 0. dst has at least 32 bytes. Returns dst. */
const char *out_time(char *dst, size_t room, int64_t wall_ns);
/* Flushes standard output: 0, or -ERR_IO when what was written did not get out (a full disk); a closed pipe is fine. */
int out_close(void) MUST_CHECK;

#endif

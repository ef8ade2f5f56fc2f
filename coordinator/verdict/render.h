/* render.h: the renderers of a report, one a format, and what they share. */
#ifndef MAKESPAN_COORDINATOR_VERDICT_RENDER_H
#define MAKESPAN_COORDINATOR_VERDICT_RENDER_H

#include "common/attr.h"

#include <stddef.h>

struct buf;
struct json_t;
struct report;
struct report_attempt;
struct report_cell;

/* Each appends to out and returns 0 or a negative code. */
int render_table(const struct report *report, struct buf *out) MUST_CHECK;
int render_mail(const struct report *report, struct buf *out) MUST_CHECK;
int render_csv(const struct report *report, struct buf *out) MUST_CHECK;
int render_json(const struct report *report, struct buf *out) MUST_CHECK;
int render_markdown(const struct report *report, struct buf *out) MUST_CHECK;

/* One attempt as it stands in its cell; the caller owns it. */
struct json_t *render_json_attempt(const struct report_attempt *attempt) MUST_CHECK;

/* "vm-locking/3", then what is said of its state: " (provisional: active, 12 of 18 runs counted)". */
void render_title(const struct report *report, struct buf *out);
/* The lines and footnotes below a table, each beginning with `indent`, wrapped at `width` columns (0: not). */
void render_below(const struct report *report, const char *indent, size_t width, struct buf *out);
/* A number with `decimals`, or "-" when absent. dst is returned. */
const char *render_number(char *dst, size_t room, int has, double value, int decimals);
/* " [1,3]" or "". dst is returned. */
const char *render_marks(char *dst, size_t room, const struct report_cell *cell);
/* Pads s to `width` columns, on the left when right != 0; longer text is not cut. */
void render_pad(struct buf *out, const char *s, size_t width, int right);
/* Whether the report has more than one workload. */
int render_many_workloads(const struct report *report);

#endif

/* report_lines.h: for report.c: the lines below the table. */
#ifndef MAKESPAN_COORDINATOR_VERDICT_REPORT_LINES_H
#define MAKESPAN_COORDINATOR_VERDICT_REPORT_LINES_H

#include "common/attr.h"

struct mem_arena;
struct report;

/* Fills lines and line_count of a report whose cells are complete. 0, or -ERR_LIMIT when the arena is full. */
int report_add_lines(struct mem_arena *arena, struct report *report) MUST_CHECK;

#endif

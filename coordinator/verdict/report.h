/* report.h: what a report says, worked out once from a sweep's rows; renderers only lay it out. Pure: no store, no wire, no clock. */
#ifndef MAKESPAN_COORDINATOR_VERDICT_REPORT_H
#define MAKESPAN_COORDINATOR_VERDICT_REPORT_H

#include "common/attr.h"
#include "coordinator/model.h"
#include "coordinator/stats/summary.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct diag;
struct mem_arena;

/* An attempt with what it belongs to. */
struct report_attempt {
    const struct model_attempt *row;
    const struct model_run *run;
    bool counted; /* enters the cell's numbers */
    const struct model_mark *marks;
    size_t mark_count;
    const struct model_attempt_fact *facts;
    size_t fact_count;
};

/* A mark within a cell: how many counted attempts carry it. */
struct report_mark {
    enum mark mark;
    size_t attempts;
    const char *text; /* of the first */
    size_t note;      /* number of its footnote, from 1 */
};

struct report_cell {
    const struct model_cell *cell;
    const struct model_host *host;
    const struct model_workload *workload;
    const struct model_variant *variant;
    const struct model_input *input; /* NULL: no source */
    size_t planned;  /* measured runs that were drawn and not replaced, or that an open cell will get */
    size_t missing;  /* of these, those that have no counted attempt and are not at their end */
    size_t warmups, failed, invalid, interrupted, cancelled, superseded; /* attempts, of measured runs but for warm-ups */
    bool flaky;      /* some measured attempts were ok and some failed */
    struct stats_summary real; /* seconds, of the counted attempts; n == 0: none */
    bool has_user, has_sys, has_cpu;
    double user, sys; /* means, seconds */
    double cpu;       /* per cent: of the sums of user + sys over the sum of real */
    const struct report_mark *marks;
    size_t mark_count;
    const struct report_attempt *attempts; /* all, in the order they were made */
    size_t attempt_count;
};

/* A footnote: a mark's sentence. */
struct report_note {
    enum mark mark;
    size_t attempts; /* in all cells */
    size_t cells;
    const char *text; /* of the first */
};

/* A line below the table: "failed  p6 -j2 (b): 1 of 5: run exited with status 2". */
struct report_line {
    const char *kind; /* "warm-up", "failed", "flaky", "invalid", "interrupted", "cancelled", "superseded", "skipped", "no data", "facts", "source" */
    const char *text;
};

struct report {
    const struct model_sweep_data *data;
    bool provisional; /* the sweep has not ended */
    size_t planned, done; /* measured runs of all cells; those with a counted attempt */
    const struct report_cell *cells; /* by workload, host, jobs (none, numbers, max), variant */
    size_t cell_count;
    const struct report_note *notes;
    size_t note_count;
    const struct report_line *lines;
    size_t line_count;
};

/* Works the report out; everything lives in the arena and in `data`, which is borrowed. 0, or -ERR_LIMIT when the arena is full. */
int report_build(struct mem_arena *arena, const struct model_sweep_data *data, struct report *out) MUST_CHECK;

/* Whether an attempt enters its cell's numbers. Of `data` only the retractions matter. */
bool report_is_counted(const struct model_sweep_data *data, const struct model_run *run, const struct model_attempt *attempt);

/* The formats that can be rendered: a NULL-terminated list. */
const char *const *report_formats(void);

/* Appends the report in a format. 0; -ERR_INVAL with text (the nearest format's name) for an unknown one; else a failure of memory. */
int report_render(const struct report *report, const char *format, struct buf *out, struct diag *diag) MUST_CHECK;

#endif

/* one.h: one attempt with all that is kept of it, as text for people or as JSON. Pure: no store, no wire, no clock. */
#ifndef MAKESPAN_COORDINATOR_VERDICT_ONE_H
#define MAKESPAN_COORDINATOR_VERDICT_ONE_H

#include "common/attr.h"
#include "coordinator/model.h"
#include "coordinator/verdict/report.h"

#include <stddef.h>
#include <stdint.h>

struct buf;
struct diag;

/* What the commands of one phase printed from `offset` on, bytes as they are; what lies between two pieces was left out. */
struct one_output {
    enum phase phase;
    uint64_t offset;
    uint64_t total; /* bytes that the phase printed in all */
    const uint8_t *bytes;
    size_t n;
};

struct one {
    const char *sweep;
    int64_t number;
    const char *workload, *host, *variant; /* names of its cell */
    struct report_attempt attempt;
    const struct model_point *points; /* in the order in which they came */
    size_t point_count;
    const struct one_output *outputs; /* by phase and offset */
    size_t output_count;
};

/* 0 when one attempt can be rendered in that format; else -ERR_INVAL with text. */
int one_check_format(const char *format, struct diag *diag) MUST_CHECK;

/* Appends the attempt: "table", lines of a name and a value, times in seconds or milliseconds, and the output as it is; "json", the attempt as in the report's JSON, with
 * samples and output. 0, -ERR_INVAL with text for another format, or a failure of memory. */
int one_render(const struct one *one, const char *format, struct buf *out, struct diag *diag) MUST_CHECK;

#endif

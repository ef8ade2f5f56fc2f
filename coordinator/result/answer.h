/* answer.h: answers that are read from results: reports of a sweep, one attempt with its output. Reads only. */
#ifndef MAKESPAN_COORDINATOR_RESULT_ANSWER_H
#define MAKESPAN_COORDINATOR_RESULT_ANSWER_H

#include "common/attr.h"

#include <stdint.h>

struct buf;
struct diag;
struct store;

/* Appends the report of a sweep (NAME, NAME/N or id) in a format of verdict/report.h. 0; -ERR_NOTFOUND, -ERR_INVAL with text; or a failure of the store. */
int answer_report(struct store *store, const char *sweep, const char *format, struct buf *out, struct diag *diag) MUST_CHECK;

/* Appends everything that is kept of one attempt of that sweep in a format of verdict/one.h: its figures, marks, facts, samples, and what its commands printed.
 * -ERR_NOTFOUND with text when there is none. */
int answer_attempt(struct store *store, const char *sweep, int64_t run, uint32_t attempt, const char *format, struct buf *out, struct diag *diag) MUST_CHECK;

#endif

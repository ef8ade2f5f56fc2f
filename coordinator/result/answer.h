/* answer.h: answers that are read from results: reports of a sweep, one attempt with its output. Reads only. */
#ifndef MAKESPAN_COORDINATOR_RESULT_ANSWER_H
#define MAKESPAN_COORDINATOR_RESULT_ANSWER_H

#include "common/attr.h"

#include <stdint.h>

struct buf;
struct diag;
struct store;

/* The report of a sweep (NAME, NAME/N or id) in a format of verdict/report.h, made in steps that are short enough to serve others between them. 0; -ERR_NOTFOUND with text; or a failure of the
 * store. */
struct answer_job;
int answer_report_new(struct store *store, const char *sweep, const char *format, struct answer_job **out, struct diag *diag) MUST_CHECK;
/* 1: another step is needed; 0: the report is appended; -ERR_INVAL with text for an unknown format; or a failure of the store, with text. */
int answer_report_step(struct answer_job *answer, struct buf *out, struct diag *diag) MUST_CHECK;
void answer_job_free(struct answer_job **answer); /* NULL inside is fine */

/* Appends the same at once. */
int answer_report(struct store *store, const char *sweep, const char *format, struct buf *out, struct diag *diag) MUST_CHECK;

/* Appends everything that is kept of one attempt of that sweep in a format of verdict/one.h: its figures, marks, facts, samples, and what its commands printed.
 * -ERR_NOTFOUND with text when there is none. */
int answer_attempt(struct store *store, const char *sweep, int64_t run, uint32_t attempt, const char *format, struct buf *out, struct diag *diag) MUST_CHECK;

#endif

/* attempts.h: rows of attempts and their records: result, facts, marks, samples, output.
 * result/ingest.c alone writes them. See store.h for what holds for all functions.
 *
 * A worker's records of one attempt are numbered from 0. Each is stored once: a put advances the
 * attempt's next_seq in the same transaction. A record below next_seq is known and changes
 * nothing; one above leaves a gap and is -ERR_PROTO. */
#ifndef MAKESPAN_COORDINATOR_STORE_ATTEMPTS_H
#define MAKESPAN_COORDINATOR_STORE_ATTEMPTS_H

#include "common/attr.h"
#include "coordinator/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mem_arena;
struct store;

/* How far the records of an attempt have come. */
struct store_intake {
    int64_t run;
    uint32_t attempt;
    int64_t cell;
    int64_t begin_wall_ns; /* when it was begun here */
    uint32_t next_seq;     /* records stored so far */
    uint32_t count;        /* records in all; 0: END has not come */
    bool has_result;
    bool whole; /* END and all before it are stored */
};

/* Makes room for an attempt's records: once it was sent, or at its first record. Being there is
 * fine. -ERR_CONFLICT for an unknown run. */
int store_attempt_begin(struct store *store, int64_t run, uint32_t attempt,
                        int64_t wall_ns) MUST_CHECK;
int store_intake_get(struct store *store, int64_t run, uint32_t attempt,
                     struct store_intake *out) MUST_CHECK;
typedef int store_intake_f(const struct store_intake *intake, void *arg);
/* Those that are not whole, of a host (0: of every host), by run and attempt. */
int store_intakes_open(struct store *store, int64_t host, store_intake_f *f, void *arg) MUST_CHECK;

/* Puts. *stored (may be NULL) is false when the record was known. -ERR_NOTFOUND when the attempt
 * was not begun. */

/* The result, with the facts that `check` printed. Of the row it takes all but cell, next_seq,
 * count and whole; `late` and `out_of_order` may be set here or when it is settled. A second
 * result of an attempt is -ERR_PROTO. */
int store_attempt_put_result(struct store *store, uint32_t seq, const struct model_attempt *attempt,
                             const struct model_fact *facts, size_t fact_count,
                             bool *stored) MUST_CHECK;
int store_attempt_put_mark(struct store *store, uint32_t seq, const struct model_mark *mark,
                           bool *stored) MUST_CHECK;
int store_attempt_put_samples(struct store *store, int64_t run, uint32_t attempt, uint32_t seq,
                              const struct model_point *points, size_t count, int64_t wall_ns,
                              bool *stored) MUST_CHECK;
/* A piece of what the command of a phase printed: its place, its bytes, the bytes of the whole. */
struct store_output {
    enum phase phase;
    uint64_t offset;
    const uint8_t *bytes;
    size_t n;
    uint64_t total;
};
int store_attempt_put_output(struct store *store, int64_t run, uint32_t attempt, uint32_t seq,
                             const struct store_output *output, int64_t wall_ns,
                             bool *stored) MUST_CHECK;
/* The end: `count` records in all, this one included. The attempt is whole now. -ERR_PROTO when
 * the count is not seq + 1 or no result is among them. */
int store_attempt_put_end(struct store *store, int64_t run, uint32_t attempt, uint32_t seq,
                          uint32_t count, bool *stored) MUST_CHECK;

/* A mark that the coordinator adds (drift, cancelled late); it has no number of the worker's. */
int store_attempt_add_mark(struct store *store, const struct model_mark *mark) MUST_CHECK;
/* How the attempt counts, decided once it is whole: SUPERSEDED when another was first, else as
 * reported. */
int store_attempt_settle(struct store *store, int64_t run, uint32_t attempt, enum outcome outcome,
                         bool late, bool out_of_order) MUST_CHECK;

/* Reading. An attempt is there once its result is. */
int store_attempt_get(struct store *store, int64_t run, uint32_t attempt, struct mem_arena *arena,
                      struct model_attempt *out) MUST_CHECK;
typedef int store_attempt_f(const struct model_attempt *attempt, void *arg);
/* By attempt. */
int store_attempts_of_run(struct store *store, int64_t run, store_attempt_f *f,
                          void *arg) MUST_CHECK;
/* By run and attempt. */
int store_attempts_of_cell(struct store *store, int64_t cell, store_attempt_f *f,
                           void *arg) MUST_CHECK;
typedef int store_mark_f(const struct model_mark *mark, void *arg);
/* In the order in which they came. */
int store_marks_of_attempt(struct store *store, int64_t run, uint32_t attempt, store_mark_f *f,
                           void *arg) MUST_CHECK;
typedef int store_fact_f(const struct model_attempt_fact *fact, void *arg);
/* By key. */
int store_facts_of_attempt(struct store *store, int64_t run, uint32_t attempt, store_fact_f *f,
                           void *arg) MUST_CHECK;
typedef int store_point_f(const struct model_point *point, void *arg);
/* In the order in which they came. -ERR_CORRUPT when stored points cannot be read. */
int store_points_of_attempt(struct store *store, int64_t run, uint32_t attempt, store_point_f *f,
                            void *arg) MUST_CHECK;
typedef int store_output_f(const struct store_output *output, void *arg);
/* By phase and place; phase 0: every phase. */
int store_output_of_attempt(struct store *store, int64_t run, uint32_t attempt, int phase,
                            store_output_f *f, void *arg) MUST_CHECK;

/* Retention: removes what was stored before that time; *count (may be NULL) says how many
 * records. */
int store_prune_samples(struct store *store, int64_t before_wall_ns, size_t *count) MUST_CHECK;
int store_prune_output(struct store *store, int64_t before_wall_ns, size_t *count) MUST_CHECK;

#endif

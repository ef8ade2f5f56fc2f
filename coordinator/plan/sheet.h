/* sheet.h: a sweep file multiplied out over the fleet, before anything is written: which hosts,
 * which job counts, how many cells and runs, how long it will take. Private to coordinator/plan. */
#ifndef MAKESPAN_COORDINATOR_PLAN_SHEET_H
#define MAKESPAN_COORDINATOR_PLAN_SHEET_H

#include "coordinator/plan/state.h"
#include "proto/spec.h"

struct buf;
struct diag;
struct mem_arena;

struct sheet_point {
    int32_t jobs;
    const char *skip; /* why it is not measured; NULL: it is */
};

struct sheet_host {
    struct model_host row;
    const char *selector;           /* as written in the file */
    struct spec_pos pos;            /* of the selector */
    const char *skipped;            /* why nothing is done there; NULL */
    struct spec_settings settings;  /* all but the timeouts */
    struct spec_timeouts *timeouts; /* by workload */
    struct sheet_point *points;
    size_t point_count;
    int64_t cells; /* open ones */
    int64_t skipped_cells;
    int64_t runs; /* measured */
    int64_t warmups;
    bool known;          /* earlier sweeps tell how long its cells take */
    int64_t expected_ns; /* of all runs and warm-ups, when known */
};

struct sheet {
    struct mem_arena *arena; /* everything here lives in it */
    const struct spec *spec;
    const char *host; /* on this host alone; NULL: what the file says */
    struct sheet_host *hosts;
    size_t host_count;
    int64_t cells;
    int64_t runs;
    int64_t warmups;
    size_t archives; /* distinct ones */
    uint64_t archive_bytes;
};

/* Chooses the hosts: every host of `class:X`, one of `any:X` (connected and idle ones first, then
 * connected ones, then by name), HOST; each once. What cannot be is told at its place in the file.
 * 0, -ERR_INVAL with text in diag, or a failure of the store. */
int sheet_select(struct plan *plan, struct sheet *sheet, struct diag *diag) MUST_CHECK;
/* After spec_resolve(): settings, job counts, what does not fit the memory, numbers. As above. */
int sheet_expand(struct sheet *sheet, struct diag *diag) MUST_CHECK;
/* Reads how long the same cells took in the newest sweeps of the same name. 0 or a failure of the
 * store. */
int sheet_estimate(struct plan *plan, struct sheet *sheet) MUST_CHECK;
/* The longest expected time of one host, or its budget where that is less; 0: none is known. */
int64_t sheet_longest(const struct sheet *sheet);

/* Appends the plan for people, or as JSON with `schema: 1`. */
void sheet_print(const struct sheet *sheet, struct buf *out);
int sheet_print_json(const struct sheet *sheet, const char *ref, int64_t id,
                     struct buf *out) MUST_CHECK;

/* Writes every row of the sweep in this turn, and takes it into the planner's memory. `text` of n
 * bytes is the file, `sets` a JSON object. *id and *ref (in the sheet's arena) are its id and
 * NAME/N. 0, -ERR_EXISTS (the key), or a failure of the store. */
struct sheet_origin {
    const char *file;
    const char *text;
    const char *sets;
    const char *key; /* NULL */
    const char *who;
};
int sheet_accept(struct plan *plan, struct plan_now now, struct sheet *sheet,
                 const struct sheet_origin *origin, int64_t *id, const char **ref) MUST_CHECK;

#endif

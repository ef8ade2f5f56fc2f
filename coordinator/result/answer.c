/* answer.c: reads a sweep or an attempt from the store and has it rendered. Writes nothing. */
#include "coordinator/result/answer.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "coordinator/store/attempts.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/load.h"
#include "coordinator/store/runs.h"
#include "coordinator/store/sweeps.h"
#include "coordinator/store/verdicts.h"
#include "coordinator/verdict/one.h"
#include "coordinator/verdict/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A report larger than this is refused rather than let one question take the coordinator's memory. */
#define ANSWER_MEMORY ((size_t)1 << 30)

static int find_sweep(struct store *store, const char *ref, struct mem_arena *arena, struct model_sweep *out, struct diag *diag)
{
    int err = store_sweep_find(store, ref, arena, out);

    if (err == -ERR_NOTFOUND)
        return diag_error(diag, ERR_NOTFOUND, "there is no sweep %s: `makespan sweep list` shows those there are", ref);
    return err == 0 ? 0 : diag_error(diag, err, "the database cannot be read: %s", err_text(err));
}

/* --- a report, in steps --- */

/* Rows of a step: some milliseconds, also on an old machine. */
#define PAGE ((size_t)1024)

struct answer_job {
    struct mem_arena *arena;
    struct store_load *load; /* NULL once all is read */
    struct model_sweep_data data;
    struct report report;
    bool built;
    char *sweep;
    char *format;
};

int answer_report_new(struct store *store, const char *sweep, const char *format, struct answer_job **out, struct diag *diag)
{
    struct answer_job *a = mem_xzalloc(sizeof *a);
    struct model_sweep row;
    int err;

    a->arena = mem_arena_new(ANSWER_MEMORY);
    a->sweep = mem_xstrdup(sweep);
    a->format = mem_xstrdup(format);
    *out = a;
    if ((err = find_sweep(store, sweep, a->arena, &row, diag)) != 0)
        answer_job_free(out);
    else
        a->load = store_load_new(store, row.id, a->arena, &a->data);
    return err;
}

int answer_report_step(struct answer_job *a, struct buf *out, struct diag *diag)
{
    int err = 0;

    if (a->load != NULL) {
        if ((err = store_load_step(a->load, PAGE)) == 0) {
            store_load_free(&a->load);
            return 1;
        }
    } else if (!a->built) {
        err = report_build(a->arena, &a->data, &a->report);
        a->built = true;
        if (err == 0)
            return 1;
    } else {
        return report_render(&a->report, a->format, out, diag);
    }
    return err > 0 ? err : diag_error(diag, err, "the report of %s cannot be made: %s", a->sweep, err_text(err));
}

void answer_job_free(struct answer_job **answer)
{
    struct answer_job *a = *answer;

    if (a == NULL)
        return;
    store_load_free(&a->load);
    mem_arena_free(&a->arena);
    free(a->sweep);
    free(a->format);
    free(a);
    *answer = NULL;
}

int answer_report(struct store *store, const char *sweep, const char *format, struct buf *out, struct diag *diag)
{
    struct answer_job *a;
    int err = answer_report_new(store, sweep, format, &a, diag);

    if (err == 0)
        do
            err = answer_report_step(a, out, diag);
        while (err > 0);
    answer_job_free(&a);
    return err;
}

/* --- one attempt --- */

/* What is read of it, copied into the arena. */
struct reading {
    struct mem_arena *arena;
    struct model_mark *marks;
    struct model_attempt_fact *facts;
    struct model_point *points;
    struct one_output *outputs;
    struct model_retraction *retractions;
    size_t mark_count, fact_count, point_count, output_count, retraction_count;
    size_t mark_room, fact_room, point_room, output_room, retraction_room;
};

/* Room for one more in a list of the arena: the list, or NULL when the arena is full. */
static void *grow(struct mem_arena *arena, void *list, size_t count, size_t *room, size_t size)
{
    void *larger;

    if (count < *room)
        return list;
    *room = *room == 0 ? 16 : 2 * *room;
    larger = mem_arena_array(arena, *room, size);
    if (larger != NULL && count > 0)
        memcpy(larger, list, count * size);
    return larger;
}

static int read_mark(const struct model_mark *m, void *arg)
{
    struct reading *r = arg;
    struct model_mark *copy;

    if ((r->marks = grow(r->arena, r->marks, r->mark_count, &r->mark_room, sizeof *m)) == NULL)
        return -ERR_LIMIT;
    copy = &r->marks[r->mark_count++];
    *copy = *m;
    copy->text = mem_arena_strdup(r->arena, m->text);
    return copy->text == NULL ? -ERR_LIMIT : 0;
}

static int read_fact(const struct model_attempt_fact *f, void *arg)
{
    struct reading *r = arg;
    struct model_attempt_fact *copy;

    if ((r->facts = grow(r->arena, r->facts, r->fact_count, &r->fact_room, sizeof *f)) == NULL)
        return -ERR_LIMIT;
    copy = &r->facts[r->fact_count++];
    *copy = *f;
    copy->key = mem_arena_strdup(r->arena, f->key);
    copy->value = mem_arena_strdup(r->arena, f->value);
    return copy->key == NULL || copy->value == NULL ? -ERR_LIMIT : 0;
}

static int read_point(const struct model_point *p, void *arg)
{
    struct reading *r = arg;

    if ((r->points = grow(r->arena, r->points, r->point_count, &r->point_room, sizeof *p)) == NULL)
        return -ERR_LIMIT;
    r->points[r->point_count++] = *p;
    return 0;
}

static int read_output(const struct store_output *o, void *arg)
{
    struct reading *r = arg;
    struct one_output *copy;
    uint8_t *bytes = mem_arena_alloc(r->arena, o->n + 1);

    if (bytes == NULL || (r->outputs = grow(r->arena, r->outputs, r->output_count, &r->output_room, sizeof *copy)) == NULL)
        return -ERR_LIMIT;
    if (o->n > 0)
        memcpy(bytes, o->bytes, o->n);
    copy = &r->outputs[r->output_count++];
    *copy = (struct one_output){.phase = o->phase, .offset = o->offset, .total = o->total, .bytes = bytes, .n = o->n};
    return 0;
}

/* What they are for is not asked, only what they are of. */
static int read_retraction(const struct model_retraction *row, void *arg)
{
    struct reading *r = arg;

    if ((r->retractions = grow(r->arena, r->retractions, r->retraction_count, &r->retraction_room, sizeof *row)) == NULL)
        return -ERR_LIMIT;
    r->retractions[r->retraction_count] = *row;
    r->retractions[r->retraction_count].because = NULL;
    r->retractions[r->retraction_count++].who = NULL;
    return 0;
}

static int read_attempt(struct store *store, const struct model_run *run, uint32_t attempt, struct reading *r)
{
    int err = store_marks_of_attempt(store, run->id, attempt, read_mark, r);

    if (err == 0)
        err = store_facts_of_attempt(store, run->id, attempt, read_fact, r);
    if (err == 0)
        err = store_points_of_attempt(store, run->id, attempt, read_point, r);
    if (err == 0)
        err = store_output_of_attempt(store, run->id, attempt, 0, read_output, r);
    return err == 0 ? store_retractions_each(store, run->sweep, read_retraction, r) : err;
}

/* What a cell is called. */
struct names {
    struct model_cell cell;
    struct model_workload workload;
    struct model_host host;
    struct model_variant variant;
};

static int read_names(struct store *store, int64_t cell, struct mem_arena *arena, struct names *n)
{
    int err = store_cell_get(store, cell, arena, &n->cell);

    if (err == 0)
        err = store_workload_get(store, n->cell.workload, arena, &n->workload);
    if (err == 0)
        err = store_host_get(store, n->cell.host, arena, &n->host);
    return err == 0 ? store_variant_get(store, n->cell.variant, arena, &n->variant) : err;
}

static int show_attempt(const struct model_sweep *sweep, const struct names *names, const struct model_run *run, const struct model_attempt *a,
                        const struct reading *r, const char *format, struct buf *out, struct diag *diag)
{
    struct model_sweep_data retracted = {.retractions = r->retractions, .retraction_count = r->retraction_count};
    struct one one = {.sweep = sweep->name,
                      .number = sweep->number,
                      .workload = names->workload.name,
                      .host = names->host.name,
                      .variant = names->variant.name,
                      .attempt = {.row = a,
                                  .run = run,
                                  .counted = report_is_counted(&retracted, run, a),
                                  .marks = r->marks,
                                  .mark_count = r->mark_count,
                                  .facts = r->facts,
                                  .fact_count = r->fact_count},
                      .points = r->points,
                      .point_count = r->point_count,
                      .outputs = r->outputs,
                      .output_count = r->output_count};

    return one_render(&one, format, out, diag);
}

int answer_attempt(struct store *store, const char *sweep, int64_t run, uint32_t attempt, const char *format, struct buf *out, struct diag *diag)
{
    struct reading reading = {.arena = mem_arena_new(ANSWER_MEMORY)};
    struct model_sweep row;
    struct model_attempt a;
    struct model_run r;
    struct names names;
    int err = one_check_format(format, diag);

    if (err == 0)
        err = find_sweep(store, sweep, reading.arena, &row, diag);
    if (err != 0) {
        mem_arena_free(&reading.arena);
        return err;
    }
    err = store_run_get(store, run, reading.arena, &r);
    if (err == 0 && r.sweep != row.id)
        err = -ERR_NOTFOUND;
    if (err == 0)
        err = store_attempt_get(store, run, attempt, reading.arena, &a);
    if (err == 0)
        err = read_names(store, r.cell, reading.arena, &names);
    if (err == 0)
        err = read_attempt(store, &r, attempt, &reading);
    if (err == 0)
        err = show_attempt(&row, &names, &r, &a, &reading, format, out, diag);
    if (err == -ERR_NOTFOUND)
        diag_error(diag, ERR_NOTFOUND, "%s has no attempt %" PRId64 "/%" PRIu32 ": `makespan report %s --format csv` lists them", sweep, run, attempt,
                   sweep);
    else if (err != 0)
        diag_error(diag, err, "the attempt cannot be shown: %s", err_text(err));
    mem_arena_free(&reading.arena);
    return err;
}

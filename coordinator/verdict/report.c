/* report.c: works out what a report says: joins rows, counts attempts, describes the counted ones. Lays nothing out. */
#include "coordinator/verdict/report.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/jobs.h"
#include "common/mem.h"
#include "common/str.h"
#include "coordinator/verdict/render.h"
#include "coordinator/verdict/report_lines.h"

#include <stdlib.h>
#include <string.h>

/* An id with the row's index, sorted by id: the joins. */
struct ref {
    int64_t id;
    size_t index;
};

struct build {
    struct mem_arena *arena;
    const struct model_sweep_data *data;
    struct report *out;
    struct ref *runs;
    struct ref *cells;
    struct report_attempt *attempts; /* of all cells, by cell */
    struct report_cell *report_cells;
    struct report_note *notes;
    size_t note_count;
    int err;
};

static int compare_refs(const void *a, const void *b)
{
    const struct ref *x = a;
    const struct ref *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

static const struct ref *find_ref(const struct ref *refs, size_t n, int64_t id)
{
    struct ref key = {.id = id, .index = 0};

    return n == 0 ? NULL : bsearch(&key, refs, n, sizeof *refs, compare_refs);
}

/* The order of job counts in a report: none, rising numbers, max. */
static int64_t jobs_rank(int32_t jobs)
{
    return jobs == JOBS_MAX ? INT32_MAX : jobs;
}

static int compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static size_t host_place(const struct model_sweep_data *data, int64_t host)
{
    for (size_t i = 0; i < data->sweep_host_count; i++)
        if (data->sweep_hosts[i].host == host)
            return i;
    return data->sweep_host_count;
}

struct sort_cell {
    const struct model_cell *cell;
    size_t workload;
    size_t host;
    size_t variant;
};

static int compare_sort_cells(const void *a, const void *b)
{
    const struct sort_cell *x = a;
    const struct sort_cell *y = b;
    int c = (x->workload > y->workload) - (x->workload < y->workload);

    if (c == 0)
        c = (x->host > y->host) - (x->host < y->host);
    if (c == 0)
        c = compare_i64(jobs_rank(x->cell->jobs), jobs_rank(y->cell->jobs));
    if (c == 0)
        c = (x->variant > y->variant) - (x->variant < y->variant);
    return c != 0 ? c : compare_i64(x->cell->id, y->cell->id);
}

static const struct model_workload *find_workload(const struct model_sweep_data *data, int64_t id)
{
    for (size_t i = 0; i < data->workload_count; i++)
        if (data->workloads[i].id == id)
            return &data->workloads[i];
    return NULL;
}

static const struct model_variant *find_variant(const struct model_sweep_data *data, int64_t id)
{
    for (size_t i = 0; i < data->variant_count; i++)
        if (data->variants[i].id == id)
            return &data->variants[i];
    return NULL;
}

static const struct model_input *find_input(const struct model_sweep_data *data, int64_t workload, int64_t variant)
{
    for (size_t i = 0; i < data->input_count; i++)
        if (data->inputs[i].workload == workload && data->inputs[i].variant == variant)
            return &data->inputs[i];
    return NULL;
}

static bool is_retracted(const struct model_sweep_data *data, const struct model_run *run, uint32_t attempt)
{
    for (size_t i = 0; i < data->retraction_count; i++) {
        const struct model_retraction *r = &data->retractions[i];

        if ((r->cell == 0 || r->cell == run->cell) && (r->run == 0 || r->run == run->id) &&
            (r->attempt == 0 || r->attempt == attempt))
            return true;
    }
    return false;
}

bool report_is_counted(const struct model_sweep_data *data, const struct model_run *run, const struct model_attempt *a)
{
    return run->counted == a->attempt && a->outcome == OUTCOME_OK && !a->warmup && !run->warmup && a->real_ns.has &&
           run->state != RUN_REPLACED && !is_retracted(data, run, a->attempt);
}

static void add_note(struct build *b, struct report_cell *c, struct report_mark *m)
{
    struct report_note *note = NULL;

    for (size_t i = 0; i < b->note_count; i++)
        if (b->notes[i].mark == m->mark)
            note = &b->notes[i];
    if (note == NULL) {
        note = &b->notes[b->note_count++];
        note->mark = m->mark;
        note->text = m->text;
    }
    note->attempts += m->attempts;
    note->cells++;
    m->note = (size_t)(note - b->notes) + 1;
    c->mark_count++;
}

/* Marks of the cell's counted attempts, each kind once. */
static void collect_marks(struct build *b, struct report_cell *c)
{
    struct report_mark found[64];
    size_t n = 0;
    struct report_mark *marks;

    for (size_t i = 0; i < c->attempt_count; i++) {
        const struct report_attempt *a = &c->attempts[i];

        for (size_t k = 0; a->counted && k < a->mark_count; k++) {
            struct report_mark *m = NULL;
            bool again = false;

            for (size_t j = 0; j < k; j++)
                again = again || a->marks[j].mark == a->marks[k].mark;
            for (size_t j = 0; j < n; j++)
                if (found[j].mark == a->marks[k].mark)
                    m = &found[j];
            if (m == NULL && n < ARRAY_LEN(found) && vocab_mark((int)a->marks[k].mark) != NULL) {
                m = &found[n++];
                memset(m, 0, sizeof *m);
                m->mark = a->marks[k].mark;
                m->text = a->marks[k].text;
            }
            if (m != NULL && !again)
                m->attempts++;
        }
    }
    if (n == 0)
        return;
    marks = mem_arena_array(b->arena, n, sizeof *marks);
    if (marks == NULL) {
        b->err = -ERR_LIMIT;
        return;
    }
    memcpy(marks, found, n * sizeof *marks);
    c->marks = marks;
    for (size_t i = 0; i < n; i++)
        add_note(b, c, &marks[i]);
}

/* A sum of nanoseconds, none of them negative: seconds apart, since what a worker says of a few attempts may be more than one number holds. */
struct total {
    int64_t s;
    int64_t ns;
};

#define NS_A_SECOND INT64_C(1000000000)

static void total_add(struct total *total, int64_t ns)
{
    total->s += ns / NS_A_SECOND;
    total->ns += ns % NS_A_SECOND;
}

static double total_ns(const struct total *total)
{
    int64_t s = total->s + total->ns / NS_A_SECOND;
    int64_t ns = total->ns % NS_A_SECOND;

    return s < INT64_MAX / NS_A_SECOND ? (double)(s * NS_A_SECOND + ns) : (double)s * 1e9 + (double)ns;
}

static void describe_times(struct build *b, struct report_cell *c)
{
    double *values = mem_arena_array(b->arena, c->attempt_count + 1, sizeof *values);
    double *scratch = mem_arena_array(b->arena, c->attempt_count + 1, sizeof *scratch);
    struct total real = {0, 0}, user = {0, 0}, sys = {0, 0};
    size_t n = 0, n_user = 0, n_sys = 0;

    if (values == NULL || scratch == NULL) {
        b->err = -ERR_LIMIT;
        return;
    }
    for (size_t i = 0; i < c->attempt_count; i++) {
        const struct model_attempt *a = c->attempts[i].row;

        if (!c->attempts[i].counted)
            continue;
        values[n++] = (double)a->real_ns.v / 1e9;
        total_add(&real, a->real_ns.v);
        if (a->user_ns.has) {
            total_add(&user, a->user_ns.v);
            n_user++;
        }
        if (a->sys_ns.has) {
            total_add(&sys, a->sys_ns.v);
            n_sys++;
        }
    }
    if (stats_summarize(values, n, scratch, &c->real) != STATS_OK)
        return;
    c->real.mean = total_ns(&real) / ((double)n * 1e9);
    c->has_user = n_user > 0;
    c->user = c->has_user ? total_ns(&user) / ((double)n_user * 1e9) : 0;
    c->has_sys = n_sys > 0;
    c->sys = c->has_sys ? total_ns(&sys) / ((double)n_sys * 1e9) : 0;
    c->has_cpu = n_user == n && n_sys == n && total_ns(&real) > 0;
    c->cpu = c->has_cpu ? 100.0 * (total_ns(&user) + total_ns(&sys)) / total_ns(&real) : 0;
}

static void count_attempts(struct report_cell *c)
{
    for (size_t i = 0; i < c->attempt_count; i++) {
        const struct report_attempt *a = &c->attempts[i];

        if (a->row->warmup || a->run->warmup) {
            c->warmups++;
            continue;
        }
        switch (a->row->outcome) {
        case OUTCOME_OK:
            break;
        case OUTCOME_FAILED:
            c->failed++;
            break;
        case OUTCOME_INVALID:
            c->invalid++;
            break;
        case OUTCOME_INTERRUPTED:
            c->interrupted++;
            break;
        case OUTCOME_CANCELLED:
            c->cancelled++;
            break;
        case OUTCOME_SUPERSEDED:
            c->superseded++;
            break;
        }
    }
    c->flaky = c->failed > 0 && c->real.n > 0;
}

/* The attempts of one cell, in the order they were made, taken from `all` (by cell, then begin). */
static int fill_cell(struct build *b, struct report_cell *c, const struct report_attempt *first, size_t n)
{
    c->attempts = first;
    c->attempt_count = n;
    describe_times(b, c);
    count_attempts(c);
    collect_marks(b, c);
    return b->err;
}

static int compare_attempts(const void *a, const void *b)
{
    const struct report_attempt *x = a;
    const struct report_attempt *y = b;
    int c = compare_i64(x->run->cell, y->run->cell);

    if (c == 0)
        c = compare_i64(x->row->begin_wall_ns, y->row->begin_wall_ns);
    if (c == 0)
        c = compare_i64(x->run->id, y->run->id);
    return c != 0 ? c : compare_i64(x->row->attempt, y->row->attempt);
}

/* Joins attempts with their runs, marks and facts; rows whose run is not there are a damaged store. */
static int join_attempts(struct build *b)
{
    const struct model_sweep_data *d = b->data;
    size_t mark = 0, fact = 0;

    for (size_t i = 0; i < d->attempt_count; i++) {
        const struct model_attempt *row = &d->attempts[i];
        struct report_attempt *a = &b->attempts[i];
        const struct ref *run = find_ref(b->runs, d->run_count, row->run);

        if (run == NULL)
            return -ERR_CORRUPT;
        a->row = row;
        a->run = &d->runs[run->index];
        a->counted = report_is_counted(d, a->run, row);
        while (mark < d->mark_count && (d->marks[mark].run < row->run ||
                                        (d->marks[mark].run == row->run && d->marks[mark].attempt < row->attempt)))
            mark++;
        a->marks = d->mark_count == 0 ? NULL : &d->marks[mark < d->mark_count ? mark : 0];
        while (mark < d->mark_count && d->marks[mark].run == row->run && d->marks[mark].attempt == row->attempt) {
            mark++;
            a->mark_count++;
        }
        while (fact < d->fact_count && (d->facts[fact].run < row->run ||
                                        (d->facts[fact].run == row->run && d->facts[fact].attempt < row->attempt)))
            fact++;
        a->facts = d->fact_count == 0 ? NULL : &d->facts[fact < d->fact_count ? fact : 0];
        while (fact < d->fact_count && d->facts[fact].run == row->run && d->facts[fact].attempt == row->attempt) {
            fact++;
            a->fact_count++;
        }
    }
    if (d->attempt_count > 1)
        qsort(b->attempts, d->attempt_count, sizeof *b->attempts, compare_attempts);
    return 0;
}

static int order_cells(struct build *b)
{
    const struct model_sweep_data *d = b->data;
    struct sort_cell *order = mem_arena_array(b->arena, d->cell_count + 1, sizeof *order);

    if (order == NULL)
        return -ERR_LIMIT;
    for (size_t i = 0; i < d->cell_count; i++) {
        const struct model_cell *c = &d->cells[i];
        const struct model_workload *w = find_workload(d, c->workload);
        const struct model_variant *v = find_variant(d, c->variant);

        if (w == NULL || v == NULL || model_find_host(d, c->host) == NULL)
            return -ERR_CORRUPT;
        order[i] = (struct sort_cell){.cell = c, .workload = w->index, .host = host_place(d, c->host), .variant = v->index};
    }
    if (d->cell_count > 1)
        qsort(order, d->cell_count, sizeof *order, compare_sort_cells);
    for (size_t i = 0; i < d->cell_count; i++) {
        struct report_cell *c = &b->report_cells[i];

        c->cell = order[i].cell;
        c->host = model_find_host(d, c->cell->host);
        c->workload = find_workload(d, c->cell->workload);
        c->variant = find_variant(d, c->cell->variant);
        c->input = find_input(d, c->cell->workload, c->cell->variant);
        b->cells[i] = (struct ref){.id = c->cell->id, .index = i};
    }
    if (d->cell_count > 1)
        qsort(b->cells, d->cell_count, sizeof *b->cells, compare_refs);
    return 0;
}

static int count_runs(struct build *b)
{
    const struct model_sweep_data *d = b->data;

    for (size_t i = 0; i < d->run_count; i++) {
        const struct model_run *r = &d->runs[i];
        const struct ref *cell = find_ref(b->cells, d->cell_count, r->cell);

        if (cell == NULL)
            return -ERR_CORRUPT;
        if (r->warmup || r->state == RUN_REPLACED)
            continue;
        b->report_cells[cell->index].planned++;
        b->out->planned++;
        if (r->counted != 0)
            b->out->done++;
        else if (!model_run_is_end((int)r->state))
            b->report_cells[cell->index].missing++;
    }
    return 0;
}

/* Runs are drawn block by block: those that open cells will still get are planned all the same. */
static void count_undrawn(struct build *b)
{
    const struct model_sweep_data *d = b->data;

    for (size_t i = 0; i < d->cell_count; i++) {
        struct report_cell *c = &b->report_cells[i];
        size_t host = host_place(d, c->cell->host);
        int64_t until = host < d->sweep_host_count && c->cell->state == CELL_OPEN ? d->sweep_hosts[host].until_runs : 0;

        if (until > (int64_t)c->planned) {
            b->out->planned += (size_t)until - c->planned;
            c->planned = (size_t)until;
        }
    }
}

static int allocate(struct build *b)
{
    const struct model_sweep_data *d = b->data;

    b->runs = mem_arena_array(b->arena, d->run_count + 1, sizeof *b->runs);
    b->cells = mem_arena_array(b->arena, d->cell_count + 1, sizeof *b->cells);
    b->attempts = mem_arena_array(b->arena, d->attempt_count + 1, sizeof *b->attempts);
    b->report_cells = mem_arena_array(b->arena, d->cell_count + 1, sizeof *b->report_cells);
    b->notes = mem_arena_array(b->arena, 256, sizeof *b->notes); /* more than there are kinds of marks */
    if (b->runs == NULL || b->cells == NULL || b->attempts == NULL || b->report_cells == NULL || b->notes == NULL)
        return -ERR_LIMIT;
    for (size_t i = 0; i < d->run_count; i++)
        b->runs[i] = (struct ref){.id = d->runs[i].id, .index = i};
    if (d->run_count > 1)
        qsort(b->runs, d->run_count, sizeof *b->runs, compare_refs);
    return 0;
}

int report_build(struct mem_arena *arena, const struct model_sweep_data *data, struct report *out)
{
    struct build b = {.arena = arena, .data = data, .out = out};
    size_t at = 0;
    int err;

    memset(out, 0, sizeof *out);
    out->data = data;
    if ((err = allocate(&b)) != 0 || (err = order_cells(&b)) != 0 || (err = join_attempts(&b)) != 0 || (err = count_runs(&b)) != 0)
        return err;
    count_undrawn(&b);
    while (at < data->attempt_count) {
        int64_t id = b.attempts[at].run->cell;
        const struct ref *cell = find_ref(b.cells, data->cell_count, id);
        size_t n = 1;

        while (at + n < data->attempt_count && b.attempts[at + n].run->cell == id)
            n++;
        if (cell == NULL)
            return -ERR_CORRUPT;
        if ((err = fill_cell(&b, &b.report_cells[cell->index], &b.attempts[at], n)) != 0)
            return err;
        at += n;
    }
    out->cells = b.report_cells;
    out->cell_count = data->cell_count;
    out->notes = b.notes;
    out->note_count = b.note_count;
    out->provisional = !model_sweep_is_end((int)data->sweep.state);
    return b.err != 0 ? b.err : report_add_lines(arena, out);
}

static const char *const FORMATS[] = {"table", "mail", "csv", "json", "markdown", NULL};

const char *const *report_formats(void)
{
    return FORMATS;
}

int report_render(const struct report *report, const char *format, struct buf *out, struct diag *diag)
{
    static int (*const renderers[])(const struct report *, struct buf *) = {render_table, render_mail, render_csv, render_json,
                                                                            render_markdown};
    const char *near;

    for (size_t i = 0; FORMATS[i] != NULL; i++)
        if (strcmp(format, FORMATS[i]) == 0)
            return renderers[i](report, out);
    near = str_nearest(format, FORMATS, ARRAY_LEN(FORMATS) - 1);
    return diag_error(diag, ERR_INVAL, "unknown format \"%s\": %s%s%sone of table, mail, csv, json, markdown", format,
                      near == NULL ? "" : "did you mean ", near == NULL ? "" : near, near == NULL ? "" : "? It is ");
}

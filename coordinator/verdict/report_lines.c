/* report_lines.c: the lines below a report's table: what was not measured, failed, or is not what it seems. Owns nothing. */
#include "coordinator/verdict/report_lines.h"

#include "common/err.h"
#include "common/jobs.h"
#include "common/mem.h"
#include "coordinator/verdict/report.h"

#include <stdio.h>
#include <string.h>

struct build {
    struct mem_arena *arena;
    const struct model_sweep_data *data;
    const struct report *out;
    struct report_line *lines;
    size_t line_count;
    size_t line_room;
    int err;
};

/* Grows by doubling inside the arena: the lines below the table are few. */
static void add_line(struct build *b, const char *kind, const char *text)
{
    if (b->err != 0)
        return;
    if (text == NULL) {
        b->err = -ERR_LIMIT;
        return;
    }
    if (b->line_count == b->line_room) {
        size_t room = b->line_room == 0 ? 16 : b->line_room * 2;
        struct report_line *lines = mem_arena_array(b->arena, room, sizeof *lines);

        if (lines == NULL) {
            b->err = -ERR_LIMIT;
            return;
        }
        if (b->line_count > 0)
            memcpy(lines, b->lines, b->line_count * sizeof *lines);
        b->lines = lines;
        b->line_room = room;
    }
    b->lines[b->line_count].kind = kind;
    b->lines[b->line_count].text = text;
    b->line_count++;
}

/* "p6 -j2 (commit-3)", with the workload in front where there are several. */
static const char *cell_name(struct build *b, const struct report_cell *c)
{
    char jobs[16];
    const char *flag = jobs_flag(jobs, sizeof jobs, c->cell->jobs);
    const char *name = mem_arena_printf(b->arena, "%s%s%s%s%s (%s)", b->data->workload_count > 1 ? c->workload->name : "",
                                        b->data->workload_count > 1 ? ": " : "", c->host->name, flag[0] == '\0' ? "" : " ", flag,
                                        c->variant->name);

    if (name == NULL)
        b->err = -ERR_LIMIT;
    return name == NULL ? "" : name;
}

/* The text of the cell's first attempt with this outcome that has one. */
static const char *first_text(const struct report_cell *c, enum outcome outcome)
{
    for (size_t i = 0; i < c->attempt_count; i++) {
        const struct report_attempt *a = &c->attempts[i];

        if (a->row->outcome == outcome && !a->row->warmup && a->row->text != NULL && a->row->text[0] != '\0')
            return a->row->text;
    }
    return NULL;
}

static const char *first_invalid_mark(const struct report_cell *c)
{
    for (size_t i = 0; i < c->attempt_count; i++)
        for (size_t k = 0; k < c->attempts[i].mark_count; k++)
            if (c->attempts[i].row->outcome == OUTCOME_INVALID && c->attempts[i].marks[k].invalid)
                return vocab_mark((int)c->attempts[i].marks[k].mark);
    return NULL;
}

static void add_count_line(struct build *b, const struct report_cell *c, const char *kind, size_t n, const char *why)
{
    if (n > 0)
        add_line(b, kind,
                 mem_arena_printf(b->arena, "%s: %zu of %zu%s%s", cell_name(b, c), n, c->failed + c->invalid + c->interrupted +
                                                                                      c->cancelled + c->superseded + c->real.n,
                                  why == NULL ? "" : ": ", why == NULL ? "" : why));
}

static void cell_lines(struct build *b, const struct report_cell *c)
{
    const char *why = first_text(c, OUTCOME_INVALID);

    add_count_line(b, c, "failed", c->failed, first_text(c, OUTCOME_FAILED));
    if (c->flaky)
        add_line(b, "flaky",
                 mem_arena_printf(b->arena, "%s: the same build failed and passed (%zu and %zu attempts)", cell_name(b, c), c->failed, c->real.n));
    add_count_line(b, c, "invalid", c->invalid, why != NULL ? why : first_invalid_mark(c));
    add_count_line(b, c, "interrupted", c->interrupted, first_text(c, OUTCOME_INTERRUPTED));
    add_count_line(b, c, "cancelled", c->cancelled, first_text(c, OUTCOME_CANCELLED));
    add_count_line(b, c, "superseded", c->superseded, NULL);
    if (c->cell->state == CELL_SKIPPED || c->cell->state == CELL_FAILED)
        add_line(b, c->cell->state == CELL_SKIPPED ? "skipped" : "setup failed",
                 mem_arena_printf(b->arena, "%s%s%s", cell_name(b, c), c->cell->reason == NULL ? "" : ": ",
                                  c->cell->reason == NULL ? "" : c->cell->reason));
    if (c->input != NULL && c->input->host_dir != NULL)
        add_line(b, "source",
                 mem_arena_printf(b->arena, "%s: the host's own folder %s, not a source that was sent", cell_name(b, c),
                                  c->input->host_dir));
    if (c->input != NULL && c->input->dirty)
        add_line(b, "source", mem_arena_printf(b->arena, "%s: with uncommitted changes", cell_name(b, c)));
}

static const char *cell_fact(const struct report_cell *c, const char *key)
{
    for (size_t i = 0; i < c->attempt_count; i++)
        for (size_t k = 0; c->attempts[i].counted && k < c->attempts[i].fact_count; k++)
            if (strcmp(c->attempts[i].facts[k].key, key) == 0)
                return c->attempts[i].facts[k].value;
    return NULL;
}

/* Facts of check that differ between the variants of one host and job count: what was built is not the same. */
static void compare_facts(struct build *b, const struct report_cell *c, const struct report_cell *next)
{
    for (size_t i = 0; i < c->attempt_count; i++) {
        const struct report_attempt *a = &c->attempts[i];

        if (!a->counted)
            continue;
        for (size_t k = 0; k < a->fact_count; k++) {
            const char *other = cell_fact(next, a->facts[k].key);

            if (other != NULL && strcmp(other, a->facts[k].value) != 0)
                add_line(b, "facts",
                         mem_arena_printf(b->arena, "%s: %s is %s, but %s in (%s)", cell_name(b, c), a->facts[k].key,
                                          a->facts[k].value, other, next->variant->name));
        }
        return;
    }
}

/* How many there were; that some did not succeed is said, since what is measured after them may not be warm. */
static void warmup_line(struct build *b)
{
    size_t warmups = 0, bad = 0;
    char not_ok[40] = "";

    for (size_t i = 0; i < b->out->cell_count; i++) {
        const struct report_cell *c = &b->out->cells[i];

        warmups += c->warmups;
        for (size_t k = 0; k < c->attempt_count; k++) {
            const struct report_attempt *a = &c->attempts[k];

            bad += (a->row->warmup || a->run->warmup) && a->row->outcome != OUTCOME_OK;
        }
    }
    if (warmups == 0)
        return;
    if (bad > 0)
        snprintf(not_ok, sizeof not_ok, " (%zu not ok)", bad);
    add_line(b, "warm-up", mem_arena_printf(b->arena, "%zu throw-away attempt%s%s, in no number", warmups, warmups == 1 ? "" : "s", not_ok));
}

static void collect_lines(struct build *b)
{
    size_t nodata = 0;

    warmup_line(b);
    for (size_t i = 0; i < b->out->cell_count; i++)
        cell_lines(b, &b->out->cells[i]);
    for (size_t i = 0; i < b->data->run_count; i++)
        nodata += b->data->runs[i].state == RUN_NODATA && !b->data->runs[i].warmup;
    if (nodata > 0)
        add_line(b, "no data", mem_arena_printf(b->arena, "%zu run%s of hosts that were lost", nodata, nodata == 1 ? "" : "s"));
    for (size_t i = 0; i < b->data->sweep_host_count; i++) {
        const struct model_sweep_host *sh = &b->data->sweep_hosts[i];
        const struct model_host *host = model_find_host(b->data, sh->host);

        if (sh->skipped != NULL && host != NULL)
            add_line(b, "skipped", mem_arena_printf(b->arena, "%s: %s", host->name, sh->skipped));
    }
    for (size_t i = 0; i + 1 < b->out->cell_count; i++) {
        const struct report_cell *c = &b->out->cells[i];
        const struct report_cell *d = &b->out->cells[i + 1];

        if (c->host == d->host && c->workload == d->workload && c->cell->jobs == d->cell->jobs)
            compare_facts(b, c, d);
    }
}

int report_add_lines(struct mem_arena *arena, struct report *report)
{
    struct build b = {.arena = arena, .data = report->data, .out = report};

    collect_lines(&b);
    report->lines = b.lines;
    report->line_count = b.line_count;
    return b.err;
}

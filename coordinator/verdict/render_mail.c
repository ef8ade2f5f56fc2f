/* render_mail.c: the report for a mail: no line beyond 72 columns, spread in a second table. Owns nothing. */
#include "common/buf.h"
#include "common/jobs.h"
#include "common/str.h"
#include "coordinator/verdict/render.h"
#include "coordinator/verdict/report.h"

#include <stdio.h>
#include <string.h>

#define MAIL_WIDTH 72

/* Appends a name that takes at most `width` columns; a longer one ends in "~". */
static void add_name(struct buf *out, const char *name, size_t width)
{
    struct buf cut = BUF_INIT;
    size_t n = strlen(name);

    buf_add_str(&cut, name);
    while (n > 0 && str_columns(buf_str(&cut)) > width) {
        do
            n--;
        while (n > 0 && ((unsigned char)name[n] & 0xC0) == 0x80);
        buf_reset(&cut);
        buf_add(&cut, name, n);
        buf_add_char(&cut, '~');
    }
    render_pad(out, buf_str(&cut), width, 0);
    buf_fini(&cut);
}

static void add_right(struct buf *out, size_t width, int has, double value, int decimals)
{
    char t[64];

    render_pad(out, render_number(t, sizeof t, has, value, decimals), width, 1);
}

static void cut_blanks(struct buf *out)
{
    while (out->len > 0 && out->data[out->len - 1] == ' ')
        out->data[--out->len] = '\0';
}

static void end_line(struct buf *out)
{
    cut_blanks(out);
    buf_add_char(out, '\n');
}

static void add_cell(const struct report_cell *c, struct buf *out)
{
    char jobs[16];
    struct buf name = BUF_INIT;

    add_name(out, c->host->name, 12);
    buf_add_char(out, ' ');
    render_pad(out, jobs_flag(jobs, sizeof jobs, c->cell->jobs), 6, 0);
    buf_add_char(out, ' ');
    buf_printf(&name, "(%s)", c->variant->name);
    add_name(out, buf_str(&name), 14);
    buf_fini(&name);
}

static void times_row(const struct report_cell *c, struct buf *out)
{
    int any = c->real.n > 0;

    add_right(out, 9, any, c->real.mean, 2);
    buf_add_char(out, ' ');
    add_right(out, 9, c->has_user, c->user, 2);
    buf_add_char(out, ' ');
    add_right(out, 9, c->has_sys, c->sys, 2);
    buf_add_char(out, ' ');
    add_right(out, 5, c->has_cpu, c->cpu, 0);
    buf_add_str(out, "  ");
    add_cell(c, out);
    end_line(out);
}

/* The marks behind a row that begins at `line`: where they do not fit, the blanks before them go, and then they stand in a line of their own. */
static void add_marks(const struct report_cell *c, size_t line, struct buf *out)
{
    char marks[64];
    size_t n = strlen(render_marks(marks, sizeof marks, c));

    if (n > 0 && str_columns(buf_str(out) + line) + n > MAIL_WIDTH)
        cut_blanks(out);
    if (n > 0 && str_columns(buf_str(out) + line) + n > MAIL_WIDTH) {
        end_line(out);
        render_pad(out, marks, MAIL_WIDTH, 1);
    } else {
        buf_add_str(out, marks);
    }
    end_line(out);
}

static void spread_row(const struct report_cell *c, struct buf *out)
{
    size_t line = out->len;
    char t[64];
    int any = c->real.n > 0;

    snprintf(t, sizeof t, "%zu", c->real.n);
    render_pad(out, t, 4, 1);
    buf_add_char(out, ' ');
    add_right(out, 6, c->real.has_sd && c->real.mean > 0, 100 * c->real.sd / c->real.mean, 1);
    buf_add_char(out, ' ');
    add_right(out, 9, any, c->real.min, 2);
    buf_add_char(out, ' ');
    add_right(out, 9, any, c->real.median, 2);
    buf_add_str(out, "  ");
    add_cell(c, out);
    add_marks(c, line, out);
}

static void table(const struct report *report, size_t first, size_t n, struct buf *out)
{
    buf_add_str(out, "     real      user       sys  cpu%  host         -jN    (variant)\n");
    for (size_t i = first; i < first + n; i++)
        times_row(&report->cells[i], out);
    buf_add_str(out, "\n   n    sd%       min    median  host         -jN    (variant)\n");
    for (size_t i = first; i < first + n; i++)
        spread_row(&report->cells[i], out);
}

/* What is said of the sweep's state goes to a second line where both do not fit into one: a name has no blanks. */
static void title(const struct report *report, struct buf *out)
{
    struct buf line = BUF_INIT;
    const char *state;

    render_title(report, &line);
    state = strchr(buf_str(&line), ' ');
    if (state != NULL && str_columns(buf_str(&line)) > MAIL_WIDTH) {
        buf_add(out, buf_str(&line), (size_t)(state - buf_str(&line)));
        buf_printf(out, "\n%s", state + 1);
    } else {
        buf_add_str(out, buf_str(&line));
    }
    buf_add_str(out, "\n\n");
    buf_fini(&line);
}

int render_mail(const struct report *report, struct buf *out)
{
    size_t at = 0;

    title(report, out);
    if (report->cell_count == 0)
        buf_add_str(out, "no cells\n");
    while (at < report->cell_count) {
        size_t n = 1;

        while (at + n < report->cell_count && report->cells[at + n].workload == report->cells[at].workload)
            n++;
        if (at > 0)
            buf_add_char(out, '\n');
        if (render_many_workloads(report))
            buf_printf(out, "%s:\n", report->cells[at].workload->name);
        table(report, at, n, out);
        at += n;
    }
    if (report->line_count + report->note_count > 0)
        buf_add_char(out, '\n');
    render_below(report, "", MAIL_WIDTH, out);
    return out->err;
}

/* render_table.c: the report as the table of the mailing lists. Owns nothing. */
#include "common/buf.h"
#include "common/jobs.h"
#include "common/str.h"
#include "coordinator/verdict/render.h"
#include "coordinator/verdict/report.h"

#include <stdio.h>

struct widths {
    size_t host;
    size_t variant;
};

static struct widths measure(const struct report *report)
{
    struct widths w = {.host = 4, .variant = 9};

    for (size_t i = 0; i < report->cell_count; i++) {
        size_t host = str_columns(report->cells[i].host->name);
        size_t variant = str_columns(report->cells[i].variant->name) + 2;

        w.host = host > w.host ? host : w.host;
        w.variant = variant > w.variant ? variant : w.variant;
    }
    return w;
}

static void heading(struct widths w, struct buf *out)
{
    buf_add_str(out, "      real       user        sys   cpu%  ");
    render_pad(out, "host", w.host, 0);
    buf_add_str(out, "  -jN    ");
    render_pad(out, "(variant)", w.variant, 0);
    buf_add_str(out, "    n    sd%        min     median\n");
}

static void variant_name(const struct report_cell *c, struct widths w, struct buf *out)
{
    struct buf name = BUF_INIT;

    buf_printf(&name, "(%s)", c->variant->name);
    render_pad(out, buf_str(&name), w.variant, 0);
    buf_fini(&name);
}

static void row(const struct report_cell *c, struct widths w, struct buf *out)
{
    char t[64];
    char jobs[16];
    int any = c->real.n > 0;

    render_pad(out, render_number(t, sizeof t, any, c->real.mean, 2), 10, 1);
    buf_add_char(out, ' ');
    render_pad(out, render_number(t, sizeof t, c->has_user, c->user, 2), 10, 1);
    buf_add_char(out, ' ');
    render_pad(out, render_number(t, sizeof t, c->has_sys, c->sys, 2), 10, 1);
    buf_add_char(out, ' ');
    render_pad(out, render_number(t, sizeof t, c->has_cpu, c->cpu, 0), 6, 1);
    buf_add_str(out, "  ");
    render_pad(out, c->host->name, w.host, 0);
    buf_add_str(out, "  ");
    render_pad(out, jobs_flag(jobs, sizeof jobs, c->cell->jobs), 6, 0);
    buf_add_char(out, ' ');
    variant_name(c, w, out);
    buf_add_char(out, ' ');
    snprintf(t, sizeof t, "%zu", c->real.n);
    render_pad(out, t, 4, 1);
    buf_add_char(out, ' ');
    render_pad(out, render_number(t, sizeof t, c->real.has_sd && c->real.mean > 0, 100 * c->real.sd / c->real.mean, 1), 6, 1);
    buf_add_char(out, ' ');
    render_pad(out, render_number(t, sizeof t, any, c->real.min, 2), 10, 1);
    buf_add_char(out, ' ');
    render_pad(out, render_number(t, sizeof t, any, c->real.median, 2), 10, 1);
    buf_add_str(out, render_marks(t, sizeof t, c));
    buf_add_char(out, '\n');
}

int render_table(const struct report *report, struct buf *out)
{
    struct widths w = measure(report);
    const struct report_cell *last = NULL;

    render_title(report, out);
    buf_add_str(out, "\n\n");
    if (report->cell_count == 0)
        buf_add_str(out, "no cells\n");
    for (size_t i = 0; i < report->cell_count; i++) {
        const struct report_cell *c = &report->cells[i];

        if (last == NULL || last->workload != c->workload) {
            if (last != NULL)
                buf_add_char(out, '\n');
            if (render_many_workloads(report))
                buf_printf(out, "%s:\n", c->workload->name);
            heading(w, out);
        }
        row(c, w, out);
        last = c;
    }
    if (report->line_count + report->note_count > 0)
        buf_add_char(out, '\n');
    render_below(report, "", 0, out);
    return out->err;
}

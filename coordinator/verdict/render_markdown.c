/* render_markdown.c: the report as a table of GitHub-flavoured Markdown. Owns nothing. */
#include "common/buf.h"
#include "common/jobs.h"
#include "coordinator/verdict/render.h"
#include "coordinator/verdict/report.h"

#include <stdio.h>
#include <string.h>

/* Text in a cell: what Markdown would take for markup or the end of the cell is escaped. */
static void cell_text(struct buf *out, const char *s)
{
    for (; *s != '\0'; s++) {
        if (strchr("\\`*_{}[]<>()#+!|~&", *s) != NULL)
            buf_add_char(out, '\\');
        buf_add_char(out, *s == '\n' || *s == '\r' ? ' ' : *s);
    }
}

static void number(struct buf *out, int has, double value, int decimals)
{
    char t[64];

    buf_printf(out, "%s | ", render_number(t, sizeof t, has, value, decimals));
}

static void row(const struct report_cell *c, struct buf *out)
{
    char t[64];
    int any = c->real.n > 0;

    buf_add_str(out, "| ");
    number(out, any, c->real.mean, 2);
    number(out, c->has_user, c->user, 2);
    number(out, c->has_sys, c->sys, 2);
    number(out, c->has_cpu, c->cpu, 0);
    cell_text(out, c->host->name);
    buf_printf(out, " | %s | ", jobs_flag(t, sizeof t, c->cell->jobs));
    cell_text(out, c->variant->name);
    buf_printf(out, " | %zu | ", c->real.n);
    number(out, c->real.has_sd && c->real.mean > 0, 100 * c->real.sd / c->real.mean, 1);
    number(out, any, c->real.min, 2);
    buf_add_str(out, render_number(t, sizeof t, any, c->real.median, 2));
    cell_text(out, render_marks(t, sizeof t, c));
    buf_add_str(out, " |\n");
}

/* The lines below the table as a list. */
static void list_below(const struct report *report, struct buf *out)
{
    struct buf below = BUF_INIT;
    struct buf line = BUF_INIT;
    const char *p;

    render_below(report, "", 0, &below);
    if (below.len > 0)
        buf_add_char(out, '\n');
    for (p = buf_str(&below); *p != '\0'; p += strspn(p, "\n")) {
        size_t n = strcspn(p, "\n");

        buf_reset(&line);
        buf_add(&line, p, n);
        buf_add_str(out, "- ");
        cell_text(out, buf_str(&line));
        buf_add_char(out, '\n');
        p += n;
    }
    buf_fini(&line);
    buf_fini(&below);
}

int render_markdown(const struct report *report, struct buf *out)
{
    const struct report_cell *last = NULL;
    struct buf title = BUF_INIT;

    render_title(report, &title);
    buf_add_str(out, "**");
    cell_text(out, buf_str(&title));
    buf_add_str(out, "**\n");
    buf_fini(&title);
    for (size_t i = 0; i < report->cell_count; i++) {
        const struct report_cell *c = &report->cells[i];

        if (last == NULL || last->workload != c->workload) {
            buf_add_char(out, '\n');
            if (render_many_workloads(report)) {
                cell_text(out, c->workload->name);
                buf_add_str(out, ":\n\n");
            }
            buf_add_str(out, "| real | user | sys | cpu% | host | -jN | variant | n | sd% | min | median |\n"
                             "| ---: | ---: | ---: | ---: | :--- | :--- | :--- | ---: | ---: | ---: | ---: |\n");
        }
        row(c, out);
        last = c;
    }
    list_below(report, out);
    return out->err;
}

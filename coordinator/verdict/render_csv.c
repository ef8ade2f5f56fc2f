/* render_csv.c: the report as CSV (RFC 4180 with LF): one row an attempt, times in integer nanoseconds, absent numbers empty. Owns nothing. */
#include "common/buf.h"
#include "common/jobs.h"
#include "coordinator/verdict/render.h"
#include "coordinator/verdict/report.h"

#include <inttypes.h>
#include <string.h>

static void text(struct buf *out, const char *s)
{
    if (s == NULL)
        s = "";
    if (strpbrk(s, ",\"\r\n") == NULL) {
        buf_add_str(out, s);
    } else {
        buf_add_char(out, '"');
        for (; *s != '\0'; s++) {
            if (*s == '"')
                buf_add_char(out, '"');
            buf_add_char(out, *s);
        }
        buf_add_char(out, '"');
    }
    buf_add_char(out, ',');
}

static void number(struct buf *out, int64_t v)
{
    buf_printf(out, "%" PRId64 ",", v);
}

static void optional(struct buf *out, struct opt_i64 v)
{
    if (v.has)
        buf_printf(out, "%" PRId64, v.v);
    buf_add_char(out, ',');
}

static const char *const HEADING =
    "sweep,workload,host,class,variant,commit,jobs,run,attempt,block,slot,warmup,outcome,counted,real_ns,user_ns,sys_ns,cpu_way,"
    "max_rss_bytes,major_faults,voluntary_switches,involuntary_switches,read_bytes,write_bytes,foreign_ns,observer_ns,phase,ending,"
    "exit_status,signal,boot,visit,seed,begin_wall_ns,end_wall_ns,fingerprint,marks,text\n";

static void classes(struct buf *out, const struct model_host *host)
{
    struct buf list = BUF_INIT;

    for (size_t i = 0; i < host->class_count; i++)
        buf_printf(&list, "%s%s", i == 0 ? "" : " ", host->classes[i]);
    text(out, buf_str(&list));
    buf_fini(&list);
}

static void marks(struct buf *out, const struct report_attempt *a)
{
    struct buf list = BUF_INIT;

    for (size_t i = 0; i < a->mark_count; i++) {
        const char *word = vocab_mark((int)a->marks[i].mark);

        buf_printf(&list, "%s%s%s", i == 0 ? "" : " ", word == NULL ? "unknown" : word, a->marks[i].invalid ? "!" : "");
    }
    text(out, buf_str(&list));
    buf_fini(&list);
}

static void identity(const struct report *report, const struct report_cell *c, const struct report_attempt *a, struct buf *out)
{
    const struct model_sweep *s = &report->data->sweep;
    struct buf sweep = BUF_INIT;
    char jobs[16];

    buf_printf(&sweep, "%s/%" PRId64, s->name, s->number);
    text(out, buf_str(&sweep));
    buf_fini(&sweep);
    text(out, c->workload->name);
    text(out, c->host->name);
    classes(out, c->host);
    text(out, c->variant->name);
    text(out, c->input == NULL ? NULL : c->input->commit);
    text(out, jobs_text(jobs, sizeof jobs, a->row->jobs));
    number(out, a->run->id);
    number(out, a->row->attempt);
    number(out, a->run->block);
    number(out, a->run->slot);
    number(out, a->row->warmup || a->run->warmup);
    text(out, vocab_outcome((int)a->row->outcome));
    number(out, a->counted);
}

static void row(const struct report *report, const struct report_cell *c, const struct report_attempt *a, struct buf *out)
{
    const struct model_attempt *r = a->row;

    identity(report, c, a, out);
    optional(out, r->real_ns);
    optional(out, r->user_ns);
    optional(out, r->sys_ns);
    text(out, vocab_cpu_way((int)r->cpu_way));
    optional(out, r->max_rss_bytes);
    optional(out, r->major_faults);
    optional(out, r->voluntary_switches);
    optional(out, r->involuntary_switches);
    optional(out, r->read_bytes);
    optional(out, r->write_bytes);
    optional(out, r->foreign_ns);
    optional(out, r->observer_ns);
    text(out, vocab_phase((int)r->phase));
    text(out, vocab_ending((int)r->ending));
    optional(out, r->exit_status);
    optional(out, r->signal);
    text(out, r->boot_id);
    buf_printf(out, "%" PRIu64 ",", r->visit);
    buf_printf(out, "%" PRIu64 ",", report->data->sweep.seed);
    number(out, r->begin_wall_ns);
    number(out, r->end_wall_ns);
    text(out, r->fingerprint);
    marks(out, a);
    text(out, r->text);
    out->data[out->len - 1] = '\n'; /* the last comma */
}

int render_csv(const struct report *report, struct buf *out)
{
    buf_add_str(out, HEADING);
    for (size_t i = 0; i < report->cell_count; i++)
        for (size_t k = 0; k < report->cells[i].attempt_count && out->err == 0; k++)
            row(report, &report->cells[i], &report->cells[i].attempts[k], out);
    return out->err;
}

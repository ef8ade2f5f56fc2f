/* one.c: lays one attempt out. Owns the names of its lines; its members in JSON are render_json.c's. */
#include "coordinator/verdict/one.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/jobs.h"
#include "common/json.h"
#include "common/num.h"
#include "common/str.h"
#include "coordinator/verdict/render.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- text --- */

/* "93.774 s"; "412.300 ms" below a second. */
static const char *time_text(char *dst, size_t room, int64_t ns)
{
    char number[32];
    bool small = ns > -CLOCK_SEC && ns < CLOCK_SEC;

    snprintf(dst, room, "%s %s", num_seconds_text(number, sizeof number, small ? ns * 1000 : ns, 3), small ? "ms" : "s");
    return dst;
}

static void line_time(struct buf *out, const char *name, struct opt_i64 v)
{
    char text[48];

    buf_printf(out, "%-22s%s\n", name, v.has ? time_text(text, sizeof text, v.v) : "-");
}

static void line_size(struct buf *out, const char *name, struct opt_i64 v)
{
    char text[32];

    buf_printf(out, "%-22s%s\n", name, v.has && v.v >= 0 ? num_size_text(text, sizeof text, (uint64_t)v.v) : "-");
}

static void line_count(struct buf *out, const char *name, struct opt_i64 v)
{
    if (v.has)
        buf_printf(out, "%-22s%" PRId64 "\n", name, v.v);
    else
        buf_printf(out, "%-22s-\n", name);
}

static void line_text(struct buf *out, const char *name, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return;
    buf_printf(out, "%-22s", name);
    str_escape(out, text, strlen(text));
    buf_add_char(out, '\n');
}

static void show_figures(const struct report_attempt *attempt, struct buf *out)
{
    const struct model_attempt *a = attempt->row;
    char jobs[16];

    line_text(out, "jobs", jobs_text(jobs, sizeof jobs, a->jobs));
    line_text(out, "outcome", vocab_outcome((int)a->outcome));
    line_text(out, "counted", attempt->counted ? "yes" : "no");
    line_text(out, "ended in", vocab_phase((int)a->phase));
    line_text(out, "ending", vocab_ending((int)a->ending));
    line_count(out, "exit status", a->exit_status);
    line_count(out, "signal", a->signal);
    line_text(out, "because", a->text);
    line_text(out, "warm-up", a->warmup ? "yes" : "no");
    line_time(out, "real", a->real_ns);
    line_time(out, "user", a->user_ns);
    line_time(out, "sys", a->sys_ns);
    line_text(out, "CPU time taken by", vocab_cpu_way((int)a->cpu_way));
    line_time(out, "user by wait4", a->wait_user_ns);
    line_time(out, "sys by wait4", a->wait_sys_ns);
    line_size(out, "largest process", a->max_rss_bytes);
    line_size(out, "peak of the tree", a->tree_peak_bytes);
    line_count(out, "minor faults", a->minor_faults);
    line_count(out, "major faults", a->major_faults);
    line_count(out, "voluntary switches", a->voluntary_switches);
    line_count(out, "involuntary switches", a->involuntary_switches);
    line_size(out, "read", a->read_bytes);
    line_size(out, "written", a->write_bytes);
    line_time(out, "observer CPU", a->observer_ns);
    line_time(out, "foreign CPU", a->foreign_ns);
    line_time(out, "setup", a->setup_ns);
    line_time(out, "reset", a->reset_ns);
    line_time(out, "settle", a->settle_ns);
    line_time(out, "check", a->check_ns);
    line_text(out, "boot", a->boot_id);
    line_text(out, "tree key", a->tree_key);
    line_text(out, "archive", a->blob_seen);
    line_text(out, "tree", a->tree_seen);
    line_text(out, "kernel", a->kernel_seen);
    line_text(out, "fingerprint", a->fingerprint);
    line_text(out, "fingerprint text", a->fingerprint_text);
    line_text(out, "worker", a->worker_version);
    line_text(out, "variables left out", a->dropped_env);
}

static void show_marks(const struct report_attempt *a, struct buf *out)
{
    for (size_t i = 0; i < a->mark_count; i++) {
        const struct model_mark *m = &a->marks[i];
        const char *word = vocab_mark((int)m->mark);

        buf_printf(out, "%-22s%s: ", m->invalid ? "invalid by" : "mark", word == NULL ? "unknown" : word);
        str_escape(out, m->text, strlen(m->text));
        buf_add_char(out, '\n');
    }
    for (size_t i = 0; i < a->fact_count; i++) {
        buf_printf(out, "%-22s", "fact");
        str_escape(out, a->facts[i].key, strlen(a->facts[i].key));
        buf_add_char(out, '=');
        str_escape(out, a->facts[i].value, strlen(a->facts[i].value));
        buf_add_char(out, '\n');
    }
}

static void show_point(const struct model_point *p, struct buf *out)
{
    const char *word = vocab_instrument((int)p->what);
    const char *unit = vocab_instrument_unit((int)p->what);
    char at[48], value[48];

    time_text(at, sizeof at, p->at_ns);
    if (word == NULL || unit == NULL)
        buf_printf(out, "%-22sat %s: instrument %" PRIu32 " %" PRId64 "\n", "sample", at, p->what, p->value);
    else if (strcmp(unit, "ns") == 0)
        buf_printf(out, "%-22sat %s: %s %s\n", "sample", at, word, time_text(value, sizeof value, p->value));
    else if (strcmp(unit, "bytes") == 0 && p->value >= 0)
        buf_printf(out, "%-22sat %s: %s %s\n", "sample", at, word, num_size_text(value, sizeof value, (uint64_t)p->value));
    else
        buf_printf(out, "%-22sat %s: %s %" PRId64 " %s\n", "sample", at, word, p->value, unit);
}

static void show_output(const struct one *one, struct buf *out)
{
    uint64_t next = 0;

    for (size_t i = 0; i < one->output_count; i++) {
        const struct one_output *o = &one->outputs[i];
        const char *word = vocab_phase((int)o->phase);

        if (i == 0 || o->phase != one->outputs[i - 1].phase) {
            buf_printf(out, "\n--- output of %s, %" PRIu64 " bytes ---\n", word == NULL ? "an unknown phase" : word, o->total);
            next = 0;
        }
        if (o->offset > next)
            buf_printf(out, "\n--- %" PRIu64 " bytes left out ---\n", o->offset - next);
        buf_add(out, o->bytes, o->n);
        next = o->offset + o->n;
    }
}

static int render_text(const struct one *one, struct buf *out)
{
    buf_printf(out, "%s/%" PRId64 ", run %" PRId64 ", attempt %" PRIu32 "\n", one->sweep, one->number, one->attempt.row->run,
               one->attempt.row->attempt);
    line_text(out, "workload", one->workload);
    line_text(out, "host", one->host);
    line_text(out, "variant", one->variant);
    show_figures(&one->attempt, out);
    show_marks(&one->attempt, out);
    for (size_t i = 0; i < one->point_count; i++)
        show_point(&one->points[i], out);
    show_output(one, out);
    return out->err;
}

/* --- JSON --- */

static json_t *points_of(const struct one *one)
{
    json_t *list = json_array();

    for (size_t i = 0; i < one->point_count; i++) {
        const struct model_point *p = &one->points[i];
        const char *word = vocab_instrument((int)p->what);
        const char *unit = vocab_instrument_unit((int)p->what);
        json_t *o = json_object();

        json_set(o, "at_ns", json_integer(p->at_ns));
        json_set(o, "instrument", word == NULL ? json_integer(p->what) : json_string(word));
        json_set(o, "value", json_integer(p->value));
        json_set(o, "unit", unit == NULL ? json_null() : json_string(unit));
        json_array_append_new(list, o);
    }
    return list;
}

/* JSON knows only UTF-8: what is none becomes U+FFFD, byte by byte. */
static json_t *text_of(const uint8_t *bytes, size_t n)
{
    struct buf text = BUF_INIT;
    json_t *string;

    while (n > 0) {
        size_t good = str_utf8_bad(bytes, n);

        buf_add(&text, bytes, good);
        if (good < n) {
            buf_add_str(&text, "\xEF\xBF\xBD");
            good++;
        }
        bytes += good;
        n -= good;
    }
    string = text.err == 0 ? json_stringn(buf_str(&text), text.len) : NULL;
    buf_fini(&text);
    return string;
}

/* Pieces that follow on each other are one text: a character may lie across their border. NULL: no memory. */
static json_t *outputs_of(const struct one *one)
{
    json_t *list = json_array();

    for (size_t i = 0, end; i < one->output_count; i = end) {
        const struct one_output *first = &one->outputs[i];
        const char *word = vocab_phase((int)first->phase);
        struct buf joined = BUF_INIT;
        json_t *o = json_object();
        json_t *text = NULL;

        for (end = i; end < one->output_count && one->outputs[end].phase == first->phase &&
                      one->outputs[end].offset == first->offset + joined.len;
             end++)
            buf_add(&joined, one->outputs[end].bytes, one->outputs[end].n);
        if (joined.err == 0)
            text = text_of(joined.data, joined.len);
        buf_fini(&joined);
        if (text == NULL) {
            json_decref(o);
            json_decref(list);
            return NULL;
        }
        json_set(o, "phase", word == NULL ? json_null() : json_string(word));
        json_set(o, "offset", json_integer((json_int_t)first->offset));
        json_set(o, "total", json_integer((json_int_t)first->total));
        json_set(o, "text", text);
        json_array_append_new(list, o);
    }
    return list;
}

static int render_one_json(const struct one *one, struct buf *out)
{
    json_t *doc = json_object();
    json_t *outputs = outputs_of(one);
    char jobs[16];
    int err;

    if (doc == NULL || outputs == NULL) {
        json_decref(doc);
        json_decref(outputs);
        return -ERR_NOMEM;
    }
    json_set(doc, "schema", json_integer(1));
    json_set(doc, "sweep", json_string(one->sweep));
    json_set(doc, "number", json_integer(one->number));
    json_set(doc, "workload", json_string(one->workload));
    json_set(doc, "host", json_string(one->host));
    json_set(doc, "variant", json_string(one->variant));
    json_set(doc, "jobs", json_string(jobs_text(jobs, sizeof jobs, one->attempt.row->jobs)));
    json_set(doc, "attempt", render_json_attempt(&one->attempt));
    json_set(doc, "samples", points_of(one));
    json_set(doc, "output", outputs);
    err = json_print(doc, 2, out);
    json_decref(doc);
    buf_add_char(out, '\n');
    return err != 0 ? err : out->err;
}

/* --- which --- */

int one_check_format(const char *format, struct diag *diag)
{
    if (strcmp(format, "table") == 0 || strcmp(format, "json") == 0)
        return 0;
    return diag_error(diag, ERR_INVAL, "one attempt is shown as table or json, not as %s", format);
}

int one_render(const struct one *one, const char *format, struct buf *out, struct diag *diag)
{
    int err = one_check_format(format, diag);

    if (err != 0)
        return err;
    return strcmp(format, "json") == 0 ? render_one_json(one, out) : render_text(one, out);
}

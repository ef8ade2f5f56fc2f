/* render_json.c: the report as one JSON document, schema 1: the cells with their numbers, every attempt in its cell. Absent numbers are absent members. Owns nothing. */
#include "common/buf.h"
#include "common/err.h"
#include "common/jobs.h"
#include "common/json.h"
#include "coordinator/verdict/render.h"
#include "coordinator/verdict/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void set_text(json_t *o, const char *key, const char *value)
{
    if (value != NULL)
        json_set(o, key, json_string(value));
}

static void set_int(json_t *o, const char *key, int64_t value)
{
    json_set(o, key, json_integer((json_int_t)value));
}

static void set_opt(json_t *o, const char *key, struct opt_i64 value)
{
    if (value.has)
        set_int(o, key, value.v);
}

static void set_real(json_t *o, const char *key, bool has, double value)
{
    if (has)
        json_set(o, key, json_real(value));
}

static json_t *marks_of(const struct report_attempt *a)
{
    json_t *list = json_array();

    for (size_t i = 0; i < a->mark_count; i++) {
        json_t *m = json_object();

        set_text(m, "mark", vocab_mark((int)a->marks[i].mark));
        json_set(m, "invalid", json_boolean(a->marks[i].invalid));
        set_text(m, "text", a->marks[i].text);
        json_array_append_new(list, m);
    }
    return list;
}

static json_t *facts_of(const struct report_attempt *a)
{
    json_t *o = json_object();

    for (size_t i = 0; i < a->fact_count; i++)
        set_text(o, a->facts[i].key, a->facts[i].value);
    return o;
}

json_t *render_json_attempt(const struct report_attempt *a)
{
    const struct model_attempt *r = a->row;
    json_t *o = json_object();

    set_int(o, "run", r->run);
    set_int(o, "attempt", r->attempt);
    set_int(o, "block", a->run->block);
    set_int(o, "slot", a->run->slot);
    json_set(o, "warmup", json_boolean(r->warmup || a->run->warmup));
    json_set(o, "counted", json_boolean(a->counted));
    set_text(o, "outcome", vocab_outcome((int)r->outcome));
    set_text(o, "phase", vocab_phase((int)r->phase));
    set_text(o, "ending", vocab_ending((int)r->ending));
    set_opt(o, "exit_status", r->exit_status);
    set_opt(o, "signal", r->signal);
    set_text(o, "text", r->text);
    set_opt(o, "real_ns", r->real_ns);
    set_opt(o, "user_ns", r->user_ns);
    set_opt(o, "sys_ns", r->sys_ns);
    set_text(o, "cpu_way", vocab_cpu_way((int)r->cpu_way));
    set_opt(o, "wait_user_ns", r->wait_user_ns);
    set_opt(o, "wait_sys_ns", r->wait_sys_ns);
    set_opt(o, "max_rss_bytes", r->max_rss_bytes);
    set_opt(o, "tree_peak_bytes", r->tree_peak_bytes);
    set_opt(o, "minor_faults", r->minor_faults);
    set_opt(o, "major_faults", r->major_faults);
    set_opt(o, "voluntary_switches", r->voluntary_switches);
    set_opt(o, "involuntary_switches", r->involuntary_switches);
    set_opt(o, "read_bytes", r->read_bytes);
    set_opt(o, "write_bytes", r->write_bytes);
    set_opt(o, "observer_ns", r->observer_ns);
    set_opt(o, "foreign_ns", r->foreign_ns);
    set_opt(o, "setup_ns", r->setup_ns);
    set_opt(o, "reset_ns", r->reset_ns);
    set_opt(o, "settle_ns", r->settle_ns);
    set_opt(o, "check_ns", r->check_ns);
    set_int(o, "begin_wall_ns", r->begin_wall_ns);
    set_int(o, "end_wall_ns", r->end_wall_ns);
    set_text(o, "boot", r->boot_id);
    set_int(o, "visit", (int64_t)r->visit);
    set_text(o, "tree_key", r->tree_key);
    set_text(o, "blob_seen", r->blob_seen);
    set_text(o, "tree_seen", r->tree_seen);
    set_text(o, "fingerprint", r->fingerprint);
    set_text(o, "kernel", r->kernel_seen);
    set_text(o, "worker_version", r->worker_version);
    json_set(o, "marks", marks_of(a));
    json_set(o, "facts", facts_of(a));
    return o;
}

static json_t *cell_of(const struct report_cell *c)
{
    json_t *o = json_object();
    json_t *attempts = json_array();
    char jobs[16];

    set_text(o, "workload", c->workload->name);
    set_text(o, "host", c->host->name);
    set_text(o, "variant", c->variant->name);
    set_text(o, "jobs", jobs_text(jobs, sizeof jobs, c->cell->jobs));
    set_text(o, "state", model_cell_word((int)c->cell->state));
    set_text(o, "reason", c->cell->reason);
    if (c->input != NULL) {
        set_text(o, "commit", c->input->commit);
        set_text(o, "tree", c->input->tree);
        set_text(o, "host_dir", c->input->host_dir);
        json_set(o, "dirty", json_boolean(c->input->dirty));
    }
    set_int(o, "planned", (int64_t)c->planned);
    set_int(o, "n", (int64_t)c->real.n);
    set_real(o, "real", c->real.n > 0, c->real.mean);
    set_real(o, "user", c->has_user, c->user);
    set_real(o, "sys", c->has_sys, c->sys);
    set_real(o, "cpu_percent", c->has_cpu, c->cpu);
    set_real(o, "sd", c->real.has_sd, c->real.sd);
    set_real(o, "min", c->real.n > 0, c->real.min);
    set_real(o, "median", c->real.n > 0, c->real.median);
    set_real(o, "max", c->real.n > 0, c->real.max);
    set_int(o, "warmups", (int64_t)c->warmups);
    set_int(o, "failed", (int64_t)c->failed);
    set_int(o, "invalid", (int64_t)c->invalid);
    set_int(o, "interrupted", (int64_t)c->interrupted);
    set_int(o, "cancelled", (int64_t)c->cancelled);
    set_int(o, "superseded", (int64_t)c->superseded);
    json_set(o, "flaky", json_boolean(c->flaky));
    for (size_t i = 0; i < c->attempt_count; i++)
        json_array_append_new(attempts, render_json_attempt(&c->attempts[i]));
    json_set(o, "attempts", attempts);
    return o;
}

static json_t *lines_of(const struct report *report)
{
    json_t *list = json_array();

    for (size_t i = 0; i < report->line_count; i++) {
        json_t *o = json_object();

        set_text(o, "kind", report->lines[i].kind);
        set_text(o, "text", report->lines[i].text);
        json_array_append_new(list, o);
    }
    return list;
}

int render_json(const struct report *report, struct buf *out)
{
    const struct model_sweep *s = &report->data->sweep;
    json_t *doc = json_object();
    json_t *cells = json_array();
    char seed[24];
    int err;

    if (doc == NULL || cells == NULL) {
        json_decref(doc);
        json_decref(cells);
        return -ERR_NOMEM;
    }
    json_set(doc, "schema", json_integer(1));
    set_text(doc, "sweep", s->name);
    set_int(doc, "number", s->number);
    set_text(doc, "state", model_sweep_word((int)s->state));
    json_set(doc, "provisional", json_boolean(report->provisional));
    snprintf(seed, sizeof seed, "%" PRIu64, s->seed);
    json_set(doc, "seed", json_string(seed)); /* as a number it would not be exact in many readers */
    set_text(doc, "base", s->base);
    set_int(doc, "planned", (int64_t)report->planned);
    set_int(doc, "done", (int64_t)report->done);
    for (size_t i = 0; i < report->cell_count; i++)
        json_array_append_new(cells, cell_of(&report->cells[i]));
    json_set(doc, "cells", cells);
    json_set(doc, "lines", lines_of(report));
    err = json_print(doc, 2, out);
    buf_add_char(out, '\n');
    json_decref(doc);
    return err != 0 ? err : out->err;
}

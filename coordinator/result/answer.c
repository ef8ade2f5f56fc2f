/* answer.c: reads a sweep or an attempt from the store and has it rendered. Writes nothing. */
#include "coordinator/result/answer.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/jobs.h"
#include "common/mem.h"
#include "common/str.h"
#include "coordinator/store/attempts.h"
#include "coordinator/store/load.h"
#include "coordinator/store/runs.h"
#include "coordinator/store/sweeps.h"
#include "coordinator/verdict/report.h"

#include <inttypes.h>
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

int answer_report(struct store *store, const char *sweep, const char *format, struct buf *out, struct diag *diag)
{
    struct mem_arena *arena = mem_arena_new(ANSWER_MEMORY);
    struct model_sweep_data data;
    struct model_sweep row;
    struct report report;
    int err = find_sweep(store, sweep, arena, &row, diag);

    if (err == 0) {
        if ((err = store_load_sweep(store, row.id, arena, &data)) != 0 || (err = report_build(arena, &data, &report)) != 0)
            diag_error(diag, err, "the report of %s cannot be made: %s", sweep, err_text(err));
        else
            err = report_render(&report, format, out, diag);
    }
    mem_arena_free(&arena);
    return err;
}

static void line_opt(struct buf *out, const char *name, struct opt_i64 v, const char *unit)
{
    if (v.has)
        buf_printf(out, "%-22s%" PRId64 "%s%s\n", name, v.v, unit[0] == '\0' ? "" : " ", unit);
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

static void show_figures(const struct model_attempt *a, struct buf *out)
{
    char jobs[16];

    line_text(out, "outcome", vocab_outcome((int)a->outcome));
    line_text(out, "ended in", vocab_phase((int)a->phase));
    line_text(out, "ending", vocab_ending((int)a->ending));
    line_opt(out, "exit status", a->exit_status, "");
    line_opt(out, "signal", a->signal, "");
    line_text(out, "because", a->text);
    line_text(out, "warm-up", a->warmup ? "yes" : "no");
    line_text(out, "jobs", jobs_text(jobs, sizeof jobs, a->jobs));
    line_opt(out, "real", a->real_ns, "ns");
    line_opt(out, "user", a->user_ns, "ns");
    line_opt(out, "sys", a->sys_ns, "ns");
    line_text(out, "CPU time taken by", vocab_cpu_way((int)a->cpu_way));
    line_opt(out, "user by wait4", a->wait_user_ns, "ns");
    line_opt(out, "sys by wait4", a->wait_sys_ns, "ns");
    line_opt(out, "largest process", a->max_rss_bytes, "bytes");
    line_opt(out, "peak of the tree", a->tree_peak_bytes, "bytes");
    line_opt(out, "minor faults", a->minor_faults, "");
    line_opt(out, "major faults", a->major_faults, "");
    line_opt(out, "voluntary switches", a->voluntary_switches, "");
    line_opt(out, "involuntary switches", a->involuntary_switches, "");
    line_opt(out, "read", a->read_bytes, "bytes");
    line_opt(out, "written", a->write_bytes, "bytes");
    line_opt(out, "observer CPU", a->observer_ns, "ns");
    line_opt(out, "foreign CPU", a->foreign_ns, "ns");
    line_opt(out, "setup", a->setup_ns, "ns");
    line_opt(out, "reset", a->reset_ns, "ns");
    line_opt(out, "settle", a->settle_ns, "ns");
    line_opt(out, "check", a->check_ns, "ns");
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

static int show_mark(const struct model_mark *m, void *arg)
{
    struct buf *out = arg;
    const char *word = vocab_mark((int)m->mark);

    buf_printf(out, "%-22s%s: ", m->invalid ? "invalid by" : "mark", word == NULL ? "unknown" : word);
    str_escape(out, m->text, strlen(m->text));
    buf_add_char(out, '\n');
    return 0;
}

static int show_fact(const struct model_attempt_fact *f, void *arg)
{
    struct buf *out = arg;

    buf_add_str(out, "fact                  ");
    str_escape(out, f->key, strlen(f->key));
    buf_add_char(out, '=');
    str_escape(out, f->value, strlen(f->value));
    buf_add_char(out, '\n');
    return 0;
}

static int show_point(const struct model_point *p, void *arg)
{
    const char *word = vocab_instrument((int)p->what);
    const char *unit = vocab_instrument_unit((int)p->what);

    if (word == NULL || unit == NULL)
        buf_printf(arg, "sample                at %" PRId64 " ns: instrument %" PRIu32 " %" PRId64 "\n", p->at_ns, p->what, p->value);
    else
        buf_printf(arg, "sample                at %" PRId64 " ns: %s %" PRId64 " %s\n", p->at_ns, word, p->value, unit);
    return 0;
}

struct show_output {
    struct buf *out;
    int phase;
    uint64_t next;
};

static int show_output(const struct store_output *o, void *arg)
{
    struct show_output *s = arg;
    const char *word = vocab_phase((int)o->phase);

    if (s->phase != (int)o->phase) {
        buf_printf(s->out, "\n--- output of %s, %" PRIu64 " bytes ---\n", word == NULL ? "an unknown phase" : word, o->total);
        s->phase = (int)o->phase;
        s->next = 0;
    }
    if (o->offset > s->next)
        buf_printf(s->out, "\n--- %" PRIu64 " bytes left out ---\n", o->offset - s->next);
    buf_add(s->out, o->bytes, o->n);
    s->next = o->offset + o->n;
    return s->out->err;
}

int answer_attempt(struct store *store, const char *sweep, int64_t run, uint32_t attempt, struct buf *out, struct diag *diag)
{
    struct mem_arena *arena = mem_arena_new(ANSWER_MEMORY);
    struct show_output output = {.out = out, .phase = -1, .next = 0};
    struct model_sweep row;
    struct model_attempt a;
    struct model_run r;
    int err = find_sweep(store, sweep, arena, &row, diag);

    if (err != 0) {
        mem_arena_free(&arena);
        return err;
    }
    err = store_run_get(store, run, arena, &r);
    if (err == 0 && r.sweep != row.id)
        err = -ERR_NOTFOUND;
    if (err == 0)
        err = store_attempt_get(store, run, attempt, arena, &a);
    if (err == 0) {
        buf_printf(out, "%s/%" PRId64 ", run %" PRId64 ", attempt %" PRIu32 "\n", row.name, row.number, run, attempt);
        show_figures(&a, out);
        if ((err = store_marks_of_attempt(store, run, attempt, show_mark, out)) == 0 &&
            (err = store_facts_of_attempt(store, run, attempt, show_fact, out)) == 0 &&
            (err = store_points_of_attempt(store, run, attempt, show_point, out)) == 0)
            err = store_output_of_attempt(store, run, attempt, 0, show_output, &output);
    }
    if (err == -ERR_NOTFOUND)
        diag_error(diag, ERR_NOTFOUND, "%s has no attempt %" PRId64 "/%" PRIu32 ": `makespan report %s --format csv` lists them", sweep, run, attempt,
                   sweep);
    else if (err != 0)
        diag_error(diag, err, "the attempt cannot be shown: %s", err_text(err));
    mem_arena_free(&arena);
    return err;
}

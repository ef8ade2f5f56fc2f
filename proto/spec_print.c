/* spec_print.c: the effective settings as YAML in one order and one spelling: for people, and to be
 * hashed. `per` reads it back. */
#include "proto/spec_int.h"

#include "common/buf.h"
#include "common/num.h"

#include <inttypes.h>

static const char *duration(char dst[32], int64_t ns)
{
    return num_duration_text(dst, 32, ns);
}

static const char *percent(char dst[32], int64_t ppm)
{
    return num_percent_text(dst, 32, ppm);
}

static void print_jobs(const struct spec_settings *s, struct buf *out)
{
    char share[32];
    buf_add_str(out, "jobs: [");
    for (size_t i = 0; i < s->job_count; i++) {
        const struct jobs_item *item = &s->jobs[i];
        buf_add_str(out, i == 0 ? "" : ", ");
        switch (item->kind) {
        case JOBS_ITEM_NONE:
            buf_add_str(out, "none");
            break;
        case JOBS_ITEM_MAX:
            buf_add_str(out, "max");
            break;
        case JOBS_ITEM_SHARE:
            buf_add_str(out, percent(share, item->share_ppm));
            break;
        case JOBS_ITEM_RANGE:
            buf_printf(out, "%" PRId32, item->first);
            if (item->first != item->last) {
                buf_printf(out, "..%" PRId32, item->last);
            }
            if (item->first != item->last && item->step != 1) {
                buf_printf(out, "/%" PRId32, item->step);
            }
            break;
        }
    }
    buf_add_str(out, "]\n");
}

static void print_repeat(const struct spec_repeat *r, struct buf *out)
{
    static const char *const words[] = {"verdict", "gate", "precision"};
    char budget[32];
    buf_printf(out, "repeat: {warmup: %" PRIu32 ", until: ", r->warmup);
    if (r->until == SPEC_UNTIL_RUNS) {
        buf_printf(out, "%" PRIu32, r->runs);
    } else {
        buf_add_str(out, words[r->until]);
    }
    if (r->policy != NULL) {
        buf_printf(out, ", policy: \"%s\"", r->policy);
    }
    buf_add_str(out, ", looks: [");
    for (size_t i = 0; i < r->look_count; i++) {
        buf_printf(out, "%s%" PRIu32, i == 0 ? "" : ", ", r->looks[i]);
    }
    buf_add_char(out, ']');
    if (r->budget_ns != 0) {
        buf_printf(out, ", budget: %s", duration(budget, r->budget_ns));
    }
    buf_add_str(out, "}\n");
}

static void print_order(const struct spec_settings *s, struct buf *out)
{
    static const char *const words[] = {"interleave", "shuffle"};
    if (s->seed_given) {
        buf_printf(out, "order: {by: %s, seed: %" PRIu64 "}\n", words[s->order], s->seed);
    } else {
        buf_printf(out, "order: %s\n", words[s->order]);
    }
}

/* The largest unit that divides the bytes. */
static void print_size(int64_t bytes, struct buf *out)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } units[] = {{"TiB", INT64_C(1) << 40},
                 {"GiB", INT64_C(1) << 30},
                 {"MiB", INT64_C(1) << 20},
                 {"KiB", INT64_C(1) << 10},
                 {"TB", INT64_C(1000000000000)},
                 {"GB", 1000000000},
                 {"MB", 1000000},
                 {"KB", 1000},
                 {"B", 1}};
    size_t i = 0;
    while (bytes % units[i].bytes != 0) {
        i++;
    }
    buf_printf(out, "%" PRId64 "%s", bytes / units[i].bytes, units[i].name);
}

void spec_print_settings(const struct spec_settings *s, struct buf *out)
{
    static const char *const otherwise[] = {"mark", "skip", "fail"};
    static const char *const caches[] = {"keep", "drop"};
    static const char *const reboot[] = {"never", "variant", "run"};
    static const char *const priority[] = {"gate", "normal", "idle"};
    static const char *const observe[] = {"normal", "silent"};
    char a[32];
    char b[32];
    char c[32];
    char d[32];
    print_jobs(s, out);
    buf_printf(out, "tolerance: %s\n", percent(a, s->tolerance_ppm));
    buf_printf(out, "error: {pass: %s, blame: %s}\n", percent(a, s->error_pass_ppm),
               percent(b, s->error_blame_ppm));
    print_repeat(&s->repeat, out);
    print_order(s, out);
    buf_printf(out, "quiet: {foreign: %s, for: %s, within: %s, else: %s}\n",
               percent(a, s->quiet.foreign_ppm), duration(b, s->quiet.for_ns),
               duration(c, s->quiet.within_ns), otherwise[s->quiet.otherwise]);
    buf_printf(out,
               "retry: {invalid: %" PRIu32 ", interrupted: %" PRIu32 ", failed: %" PRIu32 "}\n",
               s->retry.invalid, s->retry.interrupted, s->retry.failed);
    buf_printf(out, "caches: %s\nreboot: %s\n", caches[s->caches], reboot[s->reboot]);
    if (s->memory_per_job != 0) {
        buf_add_str(out, "memory: {per_job: ");
        print_size(s->memory_per_job, out);
        buf_add_str(out, "}\n");
    }
    buf_printf(out, "priority: %s\nobserve: %s\nahead: %s\n", priority[s->priority],
               observe[s->observe], duration(a, s->ahead_ns));
    buf_printf(out, "machine: {cpus: \"%s\", nice: %" PRId32 ", governor: \"%s\", calibrate: %s}\n",
               s->machine.cpus != NULL ? s->machine.cpus : "all", s->machine.nice,
               s->machine.governor != NULL ? s->machine.governor : "keep",
               s->machine.calibrate ? "true" : "false");
    buf_printf(out, "timeout: {setup: %s, reset: %s, run: %s, check: %s}\n",
               duration(a, s->timeout.setup_ns), duration(b, s->timeout.reset_ns),
               duration(c, s->timeout.run_ns), duration(d, s->timeout.check_ns));
}

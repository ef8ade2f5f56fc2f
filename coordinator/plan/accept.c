/* accept.c: a sheet becomes rows, all in one turn, and then a sweep in the planner's memory. */
#include "common/buf.h"
#include "common/err.h"
#include "common/json.h"
#include "common/mem.h"
#include "common/prng.h"
#include "common/str.h"
#include "coordinator/plan/sheet.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/sweeps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct accepting {
    struct plan *plan;
    struct plan_now now;
    struct sheet *sheet;
    const struct sheet_origin *origin;
    struct model_sweep sweep;
    int64_t *workloads; /* ids, by index */
    int64_t *variants;
    size_t workload_count;
    size_t variant_count;
};

static int ids_of(struct accepting *a, int64_t **ids, size_t n)
{
    *ids = mem_arena_array(a->sheet->arena, n + 1, sizeof(**ids));
    return *ids != NULL ? 0 : -ERR_NOMEM;
}

/* The planned comparisons by the names of their variants. */
static int compare_json(struct accepting *a, struct buf *out)
{
    size_t n;
    size_t count;
    const struct spec_pair *pairs = spec_pairs(a->sheet->spec, &n);
    const struct spec_variant *variants = spec_variants(a->sheet->spec, &count);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *pair = json_object();
        json_set(pair, "base", json_string(variants[pairs[i].base].name));
        json_set(pair, "head", json_string(variants[pairs[i].head].name));
        json_array_append_new(list, pair);
    }
    int rc = json_print(list, 0, out);
    json_decref(list);
    return rc;
}

static int write_sweep(struct accepting *a)
{
    struct spec_settings all;
    struct buf compare = BUF_INIT;
    size_t count;
    spec_settings_for(a->sheet->spec, "", NULL, 0, 0, &all);
    const struct spec_variant *variants = spec_variants(a->sheet->spec, &count);
    struct model_sweep *s = &a->sweep;
    int rc = compare_json(a, &compare);
    s->name = spec_name(a->sheet->spec);
    s->state = SWEEP_ACTIVE;
    s->priority = (int)all.priority;
    uint64_t (*any_seed)(void *arg) = a->plan->ops->random;
    s->seed = all.seed_given ? all.seed : any_seed(a->plan->arg);
    s->file = a->origin->file;
    s->text = a->origin->text;
    s->sets = a->origin->sets;
    s->base = variants[spec_base(a->sheet->spec)].name;
    s->compare = buf_str(&compare);
    s->tolerance_ppm = all.tolerance_ppm;
    s->key = a->origin->key;
    s->submitted_by = a->origin->who;
    s->submitted_wall_ns = a->now.wall_ns;
    if (rc == 0) {
        rc = store_sweep_insert(a->plan->store, s, &s->id, &s->number);
    }
    buf_fini(&compare);
    s->compare = s->text = NULL;
    return rc;
}

static int source_kind(const struct spec_source *source)
{
    switch (source->kind) {
    case SPEC_SOURCE_HOST_DIR:
        return SOURCE_HOST_DIR;
    case SPEC_SOURCE_NONE:
        return SOURCE_NONE;
    case SPEC_SOURCE_GIT:
    case SPEC_SOURCE_DIR:
    case SPEC_SOURCE_ARCHIVE:
        break;
    }
    return SOURCE_ARCHIVE;
}

static int write_workloads(struct accepting *a)
{
    const struct spec_workload *workloads = spec_workloads(a->sheet->spec, &a->workload_count);
    int rc = ids_of(a, &a->workloads, a->workload_count);
    for (size_t i = 0; rc == 0 && i < a->workload_count; i++) {
        const struct spec_workload *w = &workloads[i];
        struct model_workload row = {.sweep = a->sweep.id,
                                     .index = (uint32_t)i,
                                     .name = w->name,
                                     .source_kind = source_kind(&w->source),
                                     .source = w->source.path,
                                     .setup = w->setup,
                                     .reset = w->reset,
                                     .run = w->run,
                                     .check = w->check,
                                     .fingerprint = w->fingerprint};
        rc = store_workload_insert(a->plan->store, &row, &a->workloads[i]);
    }
    return rc;
}

static int env_of(struct accepting *a, const struct spec_variant *v, const char ***out)
{
    const char **env = mem_arena_array(a->sheet->arena, v->env_count + 1, sizeof(char *));
    if (env == NULL) {
        return -ERR_NOMEM;
    }
    for (size_t i = 0; i < v->env_count; i++) {
        env[i] = mem_arena_printf(a->sheet->arena, "%s=%s", v->env[i].name, v->env[i].value);
        if (env[i] == NULL) {
            return -ERR_NOMEM;
        }
    }
    *out = env;
    return 0;
}

static int write_variants(struct accepting *a)
{
    const struct spec_variant *variants = spec_variants(a->sheet->spec, &a->variant_count);
    int rc = ids_of(a, &a->variants, a->variant_count);
    for (size_t i = 0; rc == 0 && i < a->variant_count; i++) {
        const char **env = NULL;
        rc = env_of(a, &variants[i], &env);
        struct model_variant row = {.sweep = a->sweep.id,
                                    .index = (uint32_t)i,
                                    .name = variants[i].name,
                                    .kernel = variants[i].kernel,
                                    .env = env,
                                    .env_count = variants[i].env_count};
        if (rc == 0) {
            rc = store_variant_insert(a->plan->store, &row, &a->variants[i]);
        }
    }
    return rc;
}

static int write_input(struct accepting *a, size_t w, size_t v)
{
    size_t n;
    const struct spec_workload *workload = &spec_workloads(a->sheet->spec, &n)[w];
    const struct spec_variant *variant = &spec_variants(a->sheet->spec, &n)[v];
    const struct spec_rev *rev = spec_rev_of(a->sheet->spec, v, w);
    const char *own = variant->rev != NULL ? variant->rev : workload->source.rev;
    struct model_input row = {.workload = a->workloads[w],
                              .variant = a->variants[v],
                              .expr = own != NULL ? own : "",
                              .commit = rev != NULL ? rev->commit : "",
                              .tree = rev != NULL ? rev->tree : "",
                              .subject = rev != NULL && rev->subject != NULL ? rev->subject : "",
                              .dirty = rev != NULL && rev->dirty};
    if (rev != NULL && rev->blob[0] != '\0') {
        row.has_blob = true;
        row.size = (uint64_t)rev->size;
        int rc = str_unhex(row.blob, MODEL_HASH, rev->blob);
        if (rc < 0) {
            return rc;
        }
    }
    if (workload->source.kind == SPEC_SOURCE_HOST_DIR) {
        row.host_dir = workload->source.path;
    }
    return store_input_insert(a->plan->store, &row);
}

static int write_inputs(struct accepting *a)
{
    int rc = 0;
    for (size_t w = 0; rc == 0 && w < a->workload_count; w++) {
        for (size_t v = 0; rc == 0 && v < a->variant_count; v++) {
            rc = write_input(a, w, v);
        }
    }
    return rc;
}

/* The host's own seed, from the sweep's. */
static uint64_t host_seed(const struct accepting *a, const struct sheet_host *h)
{
    struct prng g;
    uint64_t words[] = {(uint64_t)h->row.id};
    uint64_t seed = h->settings.seed_given ? h->settings.seed : a->sweep.seed;
    prng_init_words(&g, seed, words, 1);
    return g.state;
}

static void fill_host(const struct accepting *a, const struct sheet_host *h, const char *settings,
                      struct model_sweep_host *row)
{
    const struct spec_settings *s = &h->settings;
    *row = (struct model_sweep_host){.sweep = a->sweep.id,
                                     .host = h->row.id,
                                     .selector = h->selector,
                                     .seed = host_seed(a, h),
                                     .order = s->order == SPEC_ORDER_SHUFFLE ? ORDER_SHUFFLE
                                                                             : ORDER_INTERLEAVE,
                                     .until_runs = s->repeat.runs,
                                     .warmup = s->repeat.warmup,
                                     .budget_ns = s->repeat.budget_ns,
                                     .retry_invalid = s->retry.invalid,
                                     .retry_interrupted = s->retry.interrupted,
                                     .retry_failed = s->retry.failed,
                                     .settle_timeout_ns = s->quiet.within_ns,
                                     .next_block = s->repeat.warmup > 0 ? 0 : 1,
                                     .finished = h->skipped != NULL,
                                     .skipped = h->skipped,
                                     .settings = settings};
}

static int write_cells(struct accepting *a, const struct sheet_host *h)
{
    struct model_cell row = {.sweep = a->sweep.id, .host = h->row.id};
    int rc = 0;
    for (size_t w = 0; rc == 0 && w < a->workload_count; w++) {
        const struct spec_timeouts *t = &h->timeouts[w];
        row.workload = a->workloads[w];
        row.setup_timeout_ns = t->setup_ns;
        row.reset_timeout_ns = t->reset_ns;
        row.run_timeout_ns = t->run_ns;
        row.check_timeout_ns = t->check_ns;
        for (size_t p = 0; rc == 0 && p < h->point_count; p++) {
            row.jobs = h->points[p].jobs;
            row.reason = h->points[p].skip;
            row.state = row.reason != NULL ? CELL_SKIPPED : CELL_OPEN;
            for (size_t v = 0; rc == 0 && v < a->variant_count; v++) {
                int64_t id;
                row.variant = a->variants[v];
                rc = store_cell_insert(a->plan->store, &row, &id);
            }
        }
    }
    return rc;
}

static int write_host(struct accepting *a, const struct sheet_host *h)
{
    struct model_sweep_host row;
    struct buf settings = BUF_INIT;
    spec_print_settings(&h->settings, &settings);
    fill_host(a, h, buf_str(&settings), &row);
    int rc = settings.err;
    if (rc == 0) {
        rc = store_sweep_host_insert(a->plan->store, &row);
    }
    buf_fini(&settings);
    return rc == 0 ? write_cells(a, h) : rc;
}

static int find_host(struct accepting *a, int64_t id, struct plan_host **out)
{
    struct model_host row;
    *out = plan_find_host(a->plan, id);
    if (*out != NULL) {
        return 0;
    }
    int rc = store_host_get(a->plan->store, id, plan_scratch(a->plan), &row);
    if (rc < 0) {
        return plan_fail(a->plan, rc);
    }
    *out = plan_keep_host(a->plan, &row, a->now);
    return 0;
}

/* What was written is what the planner works with from now on. */
static int take_in(struct accepting *a)
{
    struct plan_sweep *sweep = plan_add_sweep(a->plan, &a->sweep, a->now);
    for (size_t i = 0; i < a->sheet->host_count; i++) {
        const struct sheet_host *h = &a->sheet->hosts[i];
        if (h->skipped != NULL) {
            continue;
        }
        struct model_sweep_host row;
        struct plan_node *node;
        struct plan_host *host;
        int rc = find_host(a, h->row.id, &host);
        fill_host(a, h, NULL, &row);
        if (rc == 0) {
            rc = plan_add_node(a->plan, sweep, host, &row, a->now, &node);
        }
        if (rc < 0) {
            return rc;
        }
    }
    return plan_event(a->plan, a->now, EVENT_SWEEP_ACCEPTED, a->sweep.id, 0, 0, a->origin->who,
                      "%s: %" PRId64 " runs on %zu host%s", sweep->ref, a->sheet->runs,
                      a->sheet->host_count, a->sheet->host_count == 1 ? "" : "s");
}

int sheet_accept(struct plan *plan, struct plan_now now, struct sheet *sheet,
                 const struct sheet_origin *origin, int64_t *id, const char **ref)
{
    struct accepting a = {.plan = plan, .now = now, .sheet = sheet, .origin = origin};
    int rc = write_sweep(&a);
    if (rc == 0) {
        rc = write_workloads(&a);
    }
    if (rc == 0) {
        rc = write_variants(&a);
    }
    if (rc == 0) {
        rc = write_inputs(&a);
    }
    for (size_t i = 0; rc == 0 && i < sheet->host_count; i++) {
        rc = write_host(&a, &sheet->hosts[i]);
    }
    if (rc < 0) {
        return rc;
    }
    *id = a.sweep.id;
    *ref = mem_arena_printf(sheet->arena, "%s/%" PRId64, a.sweep.name, a.sweep.number);
    return *ref != NULL ? take_in(&a) : -ERR_NOMEM;
}

/* spec.c: a sweep file from its text to records, and the records' doors. Owns the top level of the
 * file; each key has its own file. */
#include "proto/spec.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/yaml.h"
#include "proto/spec_int.h"

#include <stdlib.h>
#include <string.h>

#define ARENA_CAP ((size_t)64 * 1024 * 1024)
#define TOP_KEYS_MAX 48

/* The keys that may stand at the top; false when the file is no map. */
static bool check_top(struct spec_ctx *ctx, const struct yaml_node *root)
{
    static const char *const own[] = {"sweep",   "params",   "workloads", "workload",
                                      "system",  "variants", "axes",      "base",
                                      "compare", "hosts",    "per"};
    const char *keys[TOP_KEYS_MAX];
    size_t n = 0;
    for (; n < ARRAY_LEN(own); n++) {
        keys[n] = own[n];
    }
    /* the last setting, `timeout`, is for `per` */
    for (size_t i = 0; spec_setting_word(i + 1) != NULL; i++) {
        keys[n++] = spec_setting_word(i);
    }
    if (root->kind != YAML_MAP || root->count == 0) {
        spec_mistake(ctx, spec_pos_of(root), ERR_INVAL,
                     "a sweep file is a map that begins with `sweep: NAME`");
        return false;
    }
    const struct yaml_node *timeout = yaml_get(root, "timeout");
    if (timeout != NULL) {
        keys[n++] = "timeout"; /* one message for it, below */
        spec_mistake(ctx, spec_pos_of(timeout), ERR_INVAL,
                     "timeout: belongs into a workload or into `per`");
    }
    return spec_read_map(ctx, root, "", keys, n);
}

static void read_name(struct spec_ctx *ctx, const struct yaml_node *root)
{
    const struct yaml_node *sweep = yaml_get(root, "sweep");
    if (sweep == NULL) {
        spec_mistake(ctx, (struct spec_pos){1, 1}, ERR_NOTFOUND, "`sweep`, the name, is missing");
        return;
    }
    ctx->spec->name = spec_read_name(ctx, sweep, "sweep");
}

static void read_variants(struct spec_ctx *ctx, const struct yaml_node *root)
{
    struct spec *spec = ctx->spec;
    struct spec_axis axes[SPEC_MAX_AXES + 1];
    size_t n = spec_read_axes(ctx, yaml_get(root, "axes"), yaml_get(root, "variants"), axes);
    if (n == 0 || spec->workload_count == 0 || spec->full) {
        return;
    }
    spec_make_drafts(ctx, axes, n);
    spec_preview_variants(spec);
}

static bool wrote(const struct spec_layer *layer, enum spec_key key)
{
    return (layer->written & (UINT64_C(1) << key)) != 0;
}

/* `until: gate` asks a policy, its own or that of the top. */
static void check_policy(struct spec_ctx *ctx, const struct spec_layer *layer)
{
    bool gate = wrote(layer, SPEC_KEY_UNTIL) && layer->values.repeat.until == SPEC_UNTIL_GATE;
    if (gate && !wrote(layer, SPEC_KEY_POLICY) && !wrote(&ctx->spec->top, SPEC_KEY_POLICY)) {
        spec_mistake(ctx, layer->pos[SPEC_KEY_UNTIL], ERR_NOTFOUND,
                     "repeat.until: gate needs `policy`");
    }
}

static void read_settings(struct spec_ctx *ctx, const struct yaml_node *root)
{
    struct spec *spec = ctx->spec;
    for (size_t i = 0; spec_setting_word(i + 1) != NULL; i++) {
        const struct yaml_node *value = yaml_get(root, spec_setting_word(i));
        if (value != NULL) {
            spec_read_setting(ctx, spec_setting_word(i), value, &spec->top);
        }
    }
    const struct yaml_node *hosts = yaml_get(root, "hosts");
    const struct yaml_node *per = yaml_get(root, "per");
    if (hosts != NULL) {
        spec_read_hosts(ctx, hosts);
    }
    if (per != NULL) {
        spec_read_per(ctx, per);
    }
    check_policy(ctx, &spec->top);
    spec_notyet_layer(ctx, &spec->top);
    for (size_t i = 0; i < spec->override_count; i++) {
        check_policy(ctx, &spec->override_layers[i]);
        spec_notyet_layer(ctx, &spec->override_layers[i]);
    }
}

static void read_all(struct spec_ctx *ctx, const struct yaml_node *root,
                     const struct spec_set *sets, size_t set_count)
{
    struct spec *spec = ctx->spec;
    if (!check_top(ctx, root)) {
        return;
    }
    read_name(ctx, root);
    spec_read_params(ctx, yaml_get(root, "params"), sets, set_count);
    spec_read_workloads(ctx, yaml_get(root, "workloads"), yaml_get(root, "workload"));
    const struct yaml_node *system = yaml_get(root, "system");
    if (system != NULL) {
        spec_read_system(ctx, system);
    }
    read_settings(ctx, root);
    read_variants(ctx, root);
    spec_read_base(ctx, yaml_get(root, "base"), yaml_get(root, "compare"));
    if (spec->draft_count > 0 && !spec_has_ranges(spec)) {
        spec_check_names(ctx);
    }
    spec_warn_jobs(ctx);
    if (ctx->mistakes == 0) {
        spec_warn_unused_params(ctx);
    }
}

/* The code of a reading: the first mistake; else "not yet". */
static int outcome(struct spec_ctx *ctx)
{
    if (ctx->spec->full) {
        spec_mistake(ctx, (struct spec_pos){1, 1}, ERR_LIMIT, "the sweep is too large");
    }
    if (ctx->mistakes > 0) {
        return ctx->code;
    }
    return ctx->refusals > 0 ? -ERR_NOTYET : 0;
}

int spec_parse(const char *file, const void *text, size_t n, const struct spec_set *sets,
               size_t set_count, struct spec **out, struct diag *diag)
{
    *out = NULL;
    struct yaml_doc *doc = yaml_parse(file, text, n, diag);
    if (doc == NULL) {
        return -ERR_SYNTAX;
    }
    struct spec *spec = mem_xzalloc(sizeof(*spec));
    spec->arena = mem_arena_new(ARENA_CAP);
    spec->file = spec_copy(spec, file);
    struct spec_ctx ctx = {.spec = spec, .diag = diag};
    read_all(&ctx, yaml_root(doc), sets, set_count);
    yaml_doc_free(&doc);
    int rc = outcome(&ctx);
    if (rc < 0) {
        spec_free(&spec);
    }
    *out = spec;
    return rc;
}

void spec_free(struct spec **spec)
{
    if (*spec == NULL) {
        return;
    }
    free((*spec)->pairs);
    mem_arena_free(&(*spec)->arena);
    free(*spec);
    *spec = NULL;
}

const char *spec_file(const struct spec *spec)
{
    return spec->file;
}

const char *spec_name(const struct spec *spec)
{
    return spec->name;
}

const struct spec_param *spec_params(const struct spec *spec, size_t *n)
{
    *n = spec->param_count;
    return spec->params;
}

const struct spec_workload *spec_workloads(const struct spec *spec, size_t *n)
{
    *n = spec->workload_count;
    return spec->workloads;
}

const struct spec_host *spec_hosts(const struct spec *spec, size_t *n)
{
    *n = spec->host_count;
    return spec->hosts;
}

const struct spec_host *spec_overrides(const struct spec *spec, size_t *n)
{
    *n = spec->override_count;
    return spec->overrides;
}

const struct spec_system *spec_system(const struct spec *spec)
{
    return &spec->system;
}

const struct spec_expr *spec_exprs(const struct spec *spec, size_t *n)
{
    *n = spec->expr_count;
    return spec->exprs;
}

bool spec_is_resolved(const struct spec *spec)
{
    return spec->resolved;
}

const struct spec_variant *spec_variants(const struct spec *spec, size_t *n)
{
    *n = spec->variant_count;
    return spec->variants;
}

uint32_t spec_base(const struct spec *spec)
{
    assert(spec->resolved);
    return spec->base;
}

const struct spec_pair *spec_pairs(const struct spec *spec, size_t *n)
{
    assert(spec->resolved);
    *n = spec->pair_count;
    return spec->pairs;
}

const struct spec_rev *spec_rev_of(const struct spec *spec, size_t variant, size_t workload)
{
    if (!spec->resolved || variant >= spec->variant_count || workload >= spec->workload_count) {
        return NULL;
    }
    return spec->revs[variant * spec->workload_count + workload];
}

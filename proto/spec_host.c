/* spec_host.c: `hosts` and `per`: who is meant, and what holds there. Whether such a host exists,
 * the coordinator says. */
#include "proto/spec_int.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/yaml.h"

#include <string.h>

/* HOST, class:NAME or any:NAME. */
static bool read_selector(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                          struct spec_host *out)
{
    static const char class_prefix[] = "class:";
    static const char any_prefix[] = "any:";
    const char *text = spec_read_text(ctx, node, what);
    if (text == NULL) {
        return false;
    }
    const char *name = text;
    out->kind = SPEC_HOST_NAME;
    out->pos = spec_pos_of(node);
    if (str_starts(text, class_prefix)) {
        out->kind = SPEC_HOST_CLASS;
        name += strlen(class_prefix);
    } else if (str_starts(text, any_prefix)) {
        out->kind = SPEC_HOST_ANY;
        name += strlen(any_prefix);
    }
    if (!str_is_name(name)) {
        spec_mistake(
            ctx, out->pos, ERR_INVAL,
            "%s: `%s` is not a host, class:NAME or any:NAME (A-Z a-z 0-9 . _ + , = - in names)",
            what, spec_show(ctx->spec, text));
        return false;
    }
    out->name = spec_copy(ctx->spec, name);
    return true;
}

void spec_read_hosts(struct spec_ctx *ctx, const struct yaml_node *node)
{
    struct spec *spec = ctx->spec;
    const struct yaml_node *one;
    size_t n = 0;
    const struct yaml_node *const *items =
        spec_read_list(ctx, node, "hosts", SPEC_MAX_HOSTS, &one, &n);
    spec->hosts = items != NULL ? spec_alloc(spec, n, sizeof(*spec->hosts)) : NULL;
    if (spec->hosts == NULL) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct spec_host *host = &spec->hosts[spec->host_count];
        if (!read_selector(ctx, items[i], "hosts", host)) {
            continue;
        }
        for (size_t k = 0; k < spec->host_count; k++) {
            if (spec->hosts[k].kind == host->kind && str_eq(spec->hosts[k].name, host->name)) {
                spec_mistake(ctx, host->pos, ERR_EXISTS, "hosts: `%s` was given before, in line %u",
                             items[i]->text, spec->hosts[k].pos.line);
                break;
            }
        }
        spec->host_count++;
    }
}

static void read_override(struct spec_ctx *ctx, const struct yaml_node *key,
                          const struct yaml_node *map)
{
    struct spec *spec = ctx->spec;
    const char *keys[SPEC_SETTINGS_MAX];
    size_t n = 0;
    while (n < ARRAY_LEN(keys) && spec_setting_word(n) != NULL) {
        keys[n] = spec_setting_word(n);
        n++;
    }
    struct spec_host *host = &spec->overrides[spec->override_count];
    struct spec_layer *layer = &spec->override_layers[spec->override_count];
    if (!read_selector(ctx, key, "per", host)) {
        return;
    }
    if (host->kind == SPEC_HOST_ANY) {
        spec_mistake(ctx, host->pos, ERR_INVAL, "per: write class:%s; any: is for `hosts` only",
                     host->name);
        return;
    }
    if (!spec_read_map(ctx, map, "per", keys, n)) {
        return;
    }
    for (size_t i = 0; i < map->count; i++) {
        spec_read_setting(ctx, map->keys[i]->text, map->items[i], layer);
    }
    spec->override_count++;
}

void spec_read_per(struct spec_ctx *ctx, const struct yaml_node *node)
{
    struct spec *spec = ctx->spec;
    if (node->kind != YAML_MAP || node->count == 0) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL,
                     "per: must be a map, as {\"class:NAME\": {...}, HOST: {...}}");
        return;
    }
    if (node->count > SPEC_MAX_HOSTS) {
        spec_mistake(ctx, spec_pos_of(node), ERR_LIMIT, "per: more than %d items", SPEC_MAX_HOSTS);
        return;
    }
    spec->overrides = spec_alloc(spec, node->count, sizeof(*spec->overrides));
    spec->override_layers = spec_alloc(spec, node->count, sizeof(*spec->override_layers));
    for (size_t i = 0; i < node->count && !spec->full; i++) {
        read_override(ctx, node->keys[i], node->items[i]);
    }
}

int spec_require_hosts(const struct spec *spec, struct diag *diag)
{
    if (spec->host_count > 0) {
        return 0;
    }
    return diag_error_at(diag, ERR_INVAL, spec->file, 1, 1, "`hosts` is missing: on which hosts?");
}

static bool matches(const struct spec_host *who, const char *host, const char *const *classes,
                    size_t n)
{
    if (who->kind == SPEC_HOST_NAME) {
        return str_eq(who->name, host);
    }
    for (size_t i = 0; i < n; i++) {
        if (str_eq(who->name, classes[i])) {
            return true;
        }
    }
    return false;
}

void spec_settings_for(const struct spec *spec, const char *host, const char *const *classes,
                       size_t class_count, size_t workload, struct spec_settings *out)
{
    static const enum spec_host_kind order[] = {SPEC_HOST_CLASS, SPEC_HOST_NAME};
    uint64_t written = spec->top.written;
    spec_settings_defaults(out);
    spec_layer_apply(&spec->top, out);
    assert(workload < spec->workload_count);
    out->timeout = spec->workloads[workload].timeout;
    for (size_t pass = 0; pass < ARRAY_LEN(order); pass++) {
        for (size_t i = 0; i < spec->override_count; i++) {
            if (spec->overrides[i].kind == order[pass] &&
                matches(&spec->overrides[i], host, classes, class_count)) {
                spec_layer_apply(&spec->override_layers[i], out);
                written |= spec->override_layers[i].written;
            }
        }
    }
    if ((written & (UINT64_C(1) << SPEC_KEY_UNTIL)) == 0) {
        spec_notyet_until(out);
    }
}

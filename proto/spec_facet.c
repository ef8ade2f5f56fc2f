/* spec_facet.c: the items of `variants` and of the axes in `axes`: what each says of a variant.
 * Their product: spec_draft.c. */
#include "proto/spec_int.h"

#include "common/err.h"
#include "common/num.h"
#include "common/str.h"
#include "common/yaml.h"

#include <stdio.h>
#include <string.h>

static bool is_env_name(const char *s)
{
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return s[0] != '\0' && strchr(first, s[0]) != NULL && s[strspn(s, all)] == '\0' &&
           strlen(s) <= SPEC_TEXT_MAX;
}

/* What the worker sets itself for every command. */
static bool is_env_taken(const char *s)
{
    static const char *const taken[] = {"JOBS", "JFLAG",  "NCPU",         "VARIANT",
                                        "REV",  "KERNEL", "KERNEL_SHORT", "SRC",
                                        "OBJ",  "HOME",   "TMPDIR"};
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        if (str_eq(s, taken[i])) {
            return true;
        }
    }
    return str_starts(s, "OBJ") && s[3] != '\0' && s[3 + strspn(s + 3, "0123456789")] == '\0';
}

static bool check_env_name(struct spec_ctx *ctx, const struct yaml_node *key, const char *what)
{
    const char *shown = spec_show(ctx->spec, key->text);
    if (!is_env_name(key->text)) {
        spec_mistake(ctx, spec_pos_of(key), ERR_INVAL,
                     "%s: `%s` is not a name of an environment variable", what, shown);
        return false;
    }
    if (is_env_taken(key->text)) {
        spec_mistake(ctx, spec_pos_of(key), ERR_INVAL,
                     "%s: `%s` is set for every command and cannot be chosen", what, shown);
        return false;
    }
    return true;
}

/* NAME=VALUE is one text where it travels to a worker. */
static bool check_env_size(struct spec_ctx *ctx, const struct yaml_node *key,
                           const struct yaml_node *node, const char *value)
{
    if (strlen(key->text) + 1 + strlen(value) <= SPEC_MAX_VALUE) {
        return true;
    }
    spec_mistake(ctx, spec_pos_of(node), ERR_LIMIT, "env: `%s` with its value has more than %d bytes",
                 spec_show(ctx->spec, key->text), SPEC_MAX_VALUE);
    return false;
}

static void read_env(struct spec_ctx *ctx, const struct yaml_node *node, struct spec_facet *out)
{
    if (node->kind != YAML_MAP || node->count == 0) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL, "env: must be a map, as {NAME: value}");
        return;
    }
    if (node->count > SPEC_MAX_ENV) {
        spec_mistake(ctx, spec_pos_of(node), ERR_LIMIT, "env: more than %d variables",
                     SPEC_MAX_ENV);
        return;
    }
    struct spec_env *env = spec_alloc(ctx->spec, node->count, sizeof(*env));
    if (env == NULL) {
        return;
    }
    size_t n = 0;
    for (size_t i = 0; i < node->count; i++) {
        bool fine = check_env_name(ctx, node->keys[i], "env");
        const char *value = spec_read_value(ctx, node->items[i], "env");
        if (fine && value != NULL && check_env_size(ctx, node->keys[i], node->items[i], value)) {
            env[n].name = spec_copy(ctx->spec, node->keys[i]->text);
            env[n].value = value;
            n++;
        }
    }
    out->env = env;
    out->env_count = n;
}

/* `tmpfs`, `disk`, or {tmpfs: COUNT, size: SIZE}. */
static void read_place(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                       uint32_t most, struct spec_place *out)
{
    static const char *const keys[] = {"tmpfs", "size"};
    static const char *const words[] = {"disk", "tmpfs"};
    int word = 0;
    if (node->kind == YAML_SCALAR) {
        if (spec_read_word(ctx, node, what, words, ARRAY_LEN(words), &word)) {
            out->kind = word == 0 ? SPEC_PLACE_DISK : SPEC_PLACE_TMPFS;
        }
        return;
    }
    if (!spec_read_map(ctx, node, what, keys, ARRAY_LEN(keys))) {
        return;
    }
    const struct yaml_node *count = yaml_get(node, "tmpfs");
    const struct yaml_node *size = yaml_get(node, "size");
    out->kind = SPEC_PLACE_TMPFS;
    if (count == NULL) {
        spec_mistake(ctx, spec_pos_of(node), ERR_NOTFOUND,
                     "%s: `tmpfs`, the number of file systems, is missing", what);
    } else if (!spec_read_u32(ctx, count, what, 1, most, &out->count)) {
        out->count = 1;
    }
    if (size != NULL) {
        (void)spec_read_size(ctx, size, what, &out->size);
    }
}

static void read_storage(struct spec_ctx *ctx, const struct yaml_node *node,
                         struct spec_storage *out)
{
    static const char *const keys[] = {"src", "obj"};
    out->given = true;
    out->pos = spec_pos_of(node);
    out->src = (struct spec_place){.kind = SPEC_PLACE_DISK, .count = 1};
    out->obj = out->src;
    if (!spec_read_map(ctx, node, "storage", keys, ARRAY_LEN(keys))) {
        return;
    }
    const struct yaml_node *src = yaml_get(node, "src");
    const struct yaml_node *obj = yaml_get(node, "obj");
    if (src != NULL) {
        read_place(ctx, src, "storage.src", 1, &out->src);
    }
    if (obj != NULL) {
        read_place(ctx, obj, "storage.obj", SPEC_MAX_OBJ, &out->obj);
    }
    spec_notyet_storage(ctx, out->pos);
}

static void set_rev(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                    struct spec_facet *out)
{
    out->rev_pos = spec_pos_of(node);
    out->has_rev = spec_read_rev(ctx, node, what, true, &out->rev);
}

static void set_kernel(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                       struct spec_facet *out)
{
    struct spec_rev_text text;
    out->kernel_pos = spec_pos_of(node);
    if (spec_read_rev(ctx, node, what, false, &text)) {
        out->kernel = text.text;
    }
}

/* An item without a name of its own is called as its revision or kernel, where that is a name. */
static void set_default_name(struct spec_ctx *ctx, struct spec_facet *out, bool sound)
{
    const char *text = out->has_rev ? out->rev.text : out->kernel;
    if (out->has_rev && out->rev.range) {
        return;
    }
    if (text != NULL && str_is_name(text)) {
        out->name = text;
        return;
    }
    if (text != NULL) {
        spec_mistake(ctx, out->pos, ERR_NOTFOUND,
                     "`%s` is no name for a variant; give it one with `name`",
                     spec_show(ctx->spec, text));
    } else if (sound) {
        spec_mistake(ctx, out->pos, ERR_NOTFOUND, "the variant has no `name`");
    }
}

static void read_facet(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                       struct spec_facet *out)
{
    static const char *const keys[] = {"name", "rev", "kernel", "env", "storage"};
    out->pos = spec_pos_of(node);
    if (!spec_read_map(ctx, node, what, keys, ARRAY_LEN(keys))) {
        return;
    }
    const struct yaml_node *name = yaml_get(node, "name");
    const struct yaml_node *rev = yaml_get(node, "rev");
    const struct yaml_node *kernel = yaml_get(node, "kernel");
    const struct yaml_node *env = yaml_get(node, "env");
    const struct yaml_node *storage = yaml_get(node, "storage");
    if (rev != NULL) {
        set_rev(ctx, rev, "rev", out);
    }
    if (kernel != NULL) {
        set_kernel(ctx, kernel, "kernel", out);
    }
    if (env != NULL) {
        read_env(ctx, env, out);
    }
    if (storage != NULL) {
        read_storage(ctx, storage, &out->storage);
    }
    if (name != NULL) {
        out->name = spec_read_name(ctx, name, "name");
    } else {
        set_default_name(ctx, out, rev == NULL && kernel == NULL);
    }
}

/* A value of the axis `rev`, of `kernel`, or of an environment variable. */
static void read_axis_value(struct spec_ctx *ctx, const struct yaml_node *node, const char *axis,
                            struct spec_facet *out)
{
    out->pos = spec_pos_of(node);
    if (str_eq(axis, "rev") || str_eq(axis, "kernel")) {
        if (axis[0] == 'r') {
            set_rev(ctx, node, "axes.rev", out);
        } else {
            set_kernel(ctx, node, "axes.kernel", out);
        }
        set_default_name(ctx, out, false);
        return;
    }
    const char *value = spec_read_value(ctx, node, axis);
    struct spec_env *env = value != NULL ? spec_alloc(ctx->spec, 1, sizeof(*env)) : NULL;
    if (env == NULL) {
        return;
    }
    env->name = axis;
    env->value = value;
    out->env = env;
    out->env_count = 1;
    if (!str_is_name(value)) {
        spec_mistake(ctx, out->pos, ERR_INVAL,
                     "axes: `%s` is no name for a variant; write {name: NAME, env: {%s: ...}}",
                     spec_show(ctx->spec, value), axis);
        return;
    }
    out->name = value;
}

/* The item before i whose name item i has again, or i. */
static size_t find_same(const struct spec_facet *facets, size_t i)
{
    size_t k = 0;
    for (; k < i; k++) {
        bool ranges =
            facets[i].has_rev && facets[i].rev.range && facets[k].has_rev && facets[k].rev.range;
        bool same = facets[i].name != NULL ? str_eq(facets[i].name, facets[k].name)
                                           : ranges && facets[k].name == NULL &&
                                                 str_eq(facets[i].rev.text, facets[k].rev.text);
        if (same) {
            break;
        }
    }
    return k;
}

/* Says names that occur twice among the items of one axis, and takes the later ones out, so that what
 * refers to variants is looked at too. The number of items that are left. */
static size_t drop_same_names(struct spec_ctx *ctx, struct spec_facet *facets, size_t n,
                              const char *what)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        facets[kept] = facets[i];
        size_t k = find_same(facets, kept);
        if (k == kept) {
            kept++;
            continue;
        }
        spec_mistake(ctx, facets[kept].pos, ERR_EXISTS, "the %s `%s` was given before, in line %u",
                     what, facets[kept].name != NULL ? facets[kept].name : facets[kept].rev.text,
                     facets[k].pos.line);
    }
    return kept;
}

/* An axis of plain values other than `rev` and `kernel` is an environment variable. */
static bool check_variable_axis(struct spec_ctx *ctx, const struct yaml_node *key)
{
    if (str_eq(key->text, "storage") || str_eq(key->text, "env") || str_eq(key->text, "name")) {
        spec_mistake(ctx, spec_pos_of(key), ERR_INVAL,
                     "axes: the items of `%s` must be maps, as {name: NAME, env: {...}}",
                     key->text);
        return false;
    }
    return check_env_name(ctx, key, "axes");
}

static bool read_items(struct spec_ctx *ctx, const struct yaml_node *node,
                       const struct yaml_node *key, struct spec_axis *out)
{
    const struct yaml_node *one;
    size_t n = 0;
    const char *what = key != NULL ? "axes" : "variants";
    out->pos = spec_pos_of(node);
    const struct yaml_node *const *items =
        spec_read_list(ctx, node, what, SPEC_MAX_VARIANTS, &one, &n);
    struct spec_facet *facets = items != NULL ? spec_alloc(ctx->spec, n, sizeof(*facets)) : NULL;
    if (facets == NULL) {
        return false;
    }
    size_t before = ctx->mistakes;
    bool special = key != NULL && (str_eq(key->text, "rev") || str_eq(key->text, "kernel"));
    for (size_t i = 0; i < n; i++) {
        if (key == NULL || items[i]->kind != YAML_SCALAR) {
            read_facet(ctx, items[i], what, &facets[i]);
        } else if (special || check_variable_axis(ctx, key)) {
            read_axis_value(ctx, items[i], out->name, &facets[i]);
        } else {
            return false;
        }
    }
    bool fine = ctx->mistakes == before;
    out->facets = facets;
    out->count = fine ? drop_same_names(ctx, facets, n, key != NULL ? "value" : "variant") : n;
    return fine;
}

size_t spec_read_axes(struct spec_ctx *ctx, const struct yaml_node *axes,
                      const struct yaml_node *variants, struct spec_axis out[SPEC_MAX_AXES + 1])
{
    size_t n = 0;
    bool fine = true;
    memset(out, 0, (SPEC_MAX_AXES + 1) * sizeof(*out));
    if (axes != NULL) {
        if (axes->kind != YAML_MAP || axes->count == 0 || axes->count > SPEC_MAX_AXES) {
            spec_mistake(ctx, spec_pos_of(axes), ERR_INVAL,
                         "axes: must be a map of 1 to %d lists, as {rev: [a, b]}", SPEC_MAX_AXES);
            fine = false;
        }
        for (size_t i = 0; fine && i < axes->count; i++) {
            out[n].name = spec_copy(ctx->spec, axes->keys[i]->text);
            n++;
        }
        for (size_t i = 0; i < n; i++) {
            fine = read_items(ctx, axes->items[i], axes->keys[i], &out[i]) && fine;
        }
    }
    if (variants != NULL) {
        fine = read_items(ctx, variants, NULL, &out[n]) && fine;
        n++;
    }
    if (n == 0 && fine) {
        struct spec_facet *only = spec_alloc(ctx->spec, 1, sizeof(*only));
        if (only == NULL) {
            return 0;
        }
        only->name = "default";
        only->pos = (struct spec_pos){1, 1};
        out[0] = (struct spec_axis){.facets = only, .count = 1, .pos = only->pos};
        n = 1;
    }
    return fine ? n : 0;
}

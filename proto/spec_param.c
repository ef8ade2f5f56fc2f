/* spec_param.c: the parameters of a sweep file, their overrides, and values of `env` with
 * parameters in them.
 *
 * `%{name}` stands for the parameter's value; `%%{` for the two characters `%{`. Commands:
 * spec_shell.c. */
#include "proto/spec_int.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/yaml.h"

#include <string.h>

static const char *nearest_param(const struct spec *spec, const char *word)
{
    const char *names[SPEC_MAX_PARAMS];
    for (size_t i = 0; i < spec->param_count; i++) {
        names[i] = spec->params[i].name;
    }
    return str_nearest(word, names, spec->param_count);
}

/* A mistake in --set has no place in the file. */
static void set_mistake(struct spec_ctx *ctx, int code, const char *name, const char *text,
                        const char *near)
{
    const char *shown = spec_show(ctx->spec, name);
    int rc = near == NULL ? diag_error(ctx->diag, code, "--set %s: %s", shown, text)
                          : diag_error(ctx->diag, code, "--set %s: %s; did you mean `%s`?", shown,
                                       text, near);
    if (ctx->mistakes == 0) {
        ctx->code = rc;
    }
    ctx->mistakes++;
}

static void apply_set(struct spec_ctx *ctx, const struct spec_set *set)
{
    struct spec *spec = ctx->spec;
    for (size_t i = 0; i < spec->param_count; i++) {
        struct spec_param *p = &spec->params[i];
        if (!str_eq(p->name, set->name)) {
            continue;
        }
        size_t n = strlen(set->value);
        if (n > SPEC_MAX_VALUE || !str_is_utf8(set->value, n)) {
            set_mistake(ctx, ERR_INVAL, set->name, "the value is not UTF-8 of at most 4096 bytes",
                        NULL);
            return;
        }
        p->value = spec_copy(spec, set->value);
        p->is_set = true;
        return;
    }
    set_mistake(ctx, ERR_NOTFOUND, set->name, "the file has no such parameter",
                nearest_param(spec, set->name));
}

static bool read_param(struct spec_ctx *ctx, const struct yaml_node *key,
                       const struct yaml_node *value, struct spec_param *out)
{
    if (!str_is_name(key->text)) {
        spec_mistake(ctx, spec_pos_of(key), ERR_INVAL,
                     "params: `%s` is not a name: 1 to 64 of A-Z a-z 0-9 . _ + , = -",
                     spec_show(ctx->spec, key->text));
        return false;
    }
    if (value->kind != YAML_SCALAR) {
        spec_mistake(ctx, spec_pos_of(value), ERR_INVAL,
                     "params: the value of `%s` must be plain text", key->text);
        return false;
    }
    if (strlen(value->text) > SPEC_MAX_VALUE) {
        spec_mistake(ctx, spec_pos_of(value), ERR_LIMIT,
                     "params: the value of `%s` is longer than %d bytes", key->text,
                     SPEC_MAX_VALUE);
        return false;
    }
    out->name = spec_copy(ctx->spec, key->text);
    out->value = spec_copy(ctx->spec, value->text);
    out->pos = spec_pos_of(key);
    return true;
}

void spec_read_params(struct spec_ctx *ctx, const struct yaml_node *node,
                      const struct spec_set *sets, size_t set_count)
{
    struct spec *spec = ctx->spec;
    if (node != NULL && node->kind != YAML_MAP) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL, "params: must be a map, as {name: value}");
        return;
    }
    if (node != NULL && node->count > SPEC_MAX_PARAMS) {
        spec_mistake(ctx, spec_pos_of(node), ERR_LIMIT, "params: more than %d", SPEC_MAX_PARAMS);
        return;
    }
    size_t n = node != NULL ? node->count : 0;
    spec->params = spec_alloc(spec, n, sizeof(*spec->params));
    spec->param_used = spec_alloc(spec, n, sizeof(*spec->param_used));
    if (spec->full) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (read_param(ctx, node->keys[i], node->items[i], &spec->params[spec->param_count])) {
            spec->param_count++;
        }
    }
    for (size_t i = 0; i < set_count; i++) {
        apply_set(ctx, &sets[i]);
    }
}

void spec_warn_unused_params(struct spec_ctx *ctx)
{
    const struct spec *spec = ctx->spec;
    for (size_t i = 0; i < spec->param_count; i++) {
        if (!spec->param_used[i]) {
            spec_warning(ctx, spec->params[i].pos, "params: `%s` is used nowhere",
                         spec->params[i].name);
        }
    }
}

const char *spec_param_value(struct spec_ctx *ctx, struct spec_pos pos, const char *name, size_t n)
{
    struct spec *spec = ctx->spec;
    for (size_t i = 0; i < spec->param_count; i++) {
        const struct spec_param *p = &spec->params[i];
        if (strlen(p->name) == n && memcmp(p->name, name, n) == 0) {
            spec->param_used[i] = true;
            return p->value;
        }
    }
    char *word = mem_arena_strndup(spec->arena, name, n);
    if (word == NULL) {
        spec->full = true;
        return NULL;
    }
    const char *near = ctx->mistakes < SPEC_MAX_HINTS ? nearest_param(spec, word) : NULL;
    if (near != NULL) {
        spec_mistake(ctx, pos, ERR_NOTFOUND,
                     "`%%{%s}`: there is no such parameter; did you mean `%s`?",
                     spec_show(spec, word), near);
    } else {
        spec_mistake(ctx, pos, ERR_NOTFOUND, "`%%{%s}`: there is no such parameter in `params`",
                     spec_show(spec, word));
    }
    return NULL;
}

/* Puts the parameters into text; false after a mistake. */
static bool put_values(struct spec_ctx *ctx, struct spec_pos pos, const char *text, struct buf *out)
{
    bool fine = true;
    while (*text != '\0') {
        if (strncmp(text, "%%{", 3) == 0) {
            buf_add_str(out, "%{");
            text += 3;
            continue;
        }
        if (strncmp(text, "%{", 2) != 0) {
            buf_add_char(out, *text);
            text++;
            continue;
        }
        const char *end = strchr(text, '}');
        if (end == NULL) {
            spec_mistake(ctx, pos, ERR_INVAL,
                         "`%%{` without its `}`; a plain `%%{` is written `%%%%{`");
            return false;
        }
        const char *value = spec_param_value(ctx, pos, text + 2, (size_t)(end - text) - 2);
        fine = fine && value != NULL;
        buf_add_str(out, value != NULL ? value : "");
        text = end + 1;
    }
    return fine;
}

const char *spec_read_value(struct spec_ctx *ctx, const struct yaml_node *node, const char *what)
{
    if (node->kind != YAML_SCALAR) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL, "%s: must be plain text", what);
        return NULL;
    }
    struct buf value;
    buf_init(&value, SPEC_MAX_VALUE);
    bool fine = put_values(ctx, spec_pos_of(node), node->text, &value);
    const char *copy = NULL;
    if (fine && value.err < 0) {
        spec_mistake(ctx, spec_pos_of(node), ERR_LIMIT, "%s: the value is longer than %d bytes",
                     what, SPEC_MAX_VALUE);
    } else if (fine) {
        copy = spec_copy(ctx->spec, buf_str(&value));
    }
    buf_fini(&value);
    return copy;
}

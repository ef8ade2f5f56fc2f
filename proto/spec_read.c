/* spec_read.c: nodes of the sweep file to values, with located messages. Owns the wording of
 * mistakes in single values. */
#include "proto/spec_int.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "common/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_MAX 1024
#define SHOWN_MAX 60

struct spec_pos spec_pos_of(const struct yaml_node *node)
{
    return (struct spec_pos){node->line, node->column};
}

void spec_mistake(struct spec_ctx *ctx, struct spec_pos pos, int code, const char *fmt, ...)
{
    char text[MESSAGE_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    int rc = diag_error_at(ctx->diag, code, ctx->spec->file, pos.line, pos.column, "%s", text);
    if (rc == -ERR_NOTYET) {
        ctx->refusals++;
        return;
    }
    if (ctx->mistakes == 0) {
        ctx->code = rc;
    }
    ctx->mistakes++;
}

void spec_warning(struct spec_ctx *ctx, struct spec_pos pos, const char *fmt, ...)
{
    char text[MESSAGE_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    diag_warn_at(ctx->diag, ctx->spec->file, pos.line, pos.column, "%s", text);
}

void *spec_alloc(struct spec *spec, size_t count, size_t size)
{
    void *p = mem_arena_array(spec->arena, count, size);
    spec->full = spec->full || p == NULL;
    return p;
}

const char *spec_copy(struct spec *spec, const char *text)
{
    const char *copy = mem_arena_strdup(spec->arena, text);
    spec->full = spec->full || copy == NULL;
    return copy != NULL ? copy : "";
}

const char *spec_show(struct spec *spec, const char *text)
{
    size_t len = strlen(text);
    size_t n = len;
    if (len > SHOWN_MAX) {
        n = SHOWN_MAX;
        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80) {
            n--;
        }
    }
    char *shown = spec_alloc(spec, n + 4, 1);
    if (shown == NULL) {
        return "";
    }
    memcpy(shown, text, n);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)shown[i];
        if (c == 0xc2 && (unsigned char)shown[i + 1] < 0xa0) { /* U+0080 to U+009F */
            shown[i++] = ' ';
            shown[i] = ' ';
        } else if (c < 0x20 || c == 0x7f) {
            shown[i] = ' ';
        }
    }
    if (n < len) {
        memcpy(shown + n, "...", 4);
    }
    return shown;
}

bool spec_is_clean(const char *text, size_t max)
{
    size_t n = strlen(text);
    if (n == 0 || n > max || !str_is_utf8(text, n)) {
        return false;
    }
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        if (*p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0)) {
            return false;
        }
    }
    return true;
}

static void unknown_key(struct spec_ctx *ctx, const struct yaml_node *key, const char *what,
                        const char *const *keys, size_t n)
{
    const char *shown = spec_show(ctx->spec, key->text);
    const char *near = ctx->mistakes < SPEC_MAX_HINTS ? str_nearest(key->text, keys, n) : NULL;
    const char *in = what[0] != '\0' ? " in " : "";
    if (near != NULL) {
        spec_mistake(ctx, spec_pos_of(key), ERR_NOTFOUND,
                     "unknown key `%s`%s%s; did you mean `%s`?", shown, in, what, near);
    } else {
        spec_mistake(ctx, spec_pos_of(key), ERR_NOTFOUND, "unknown key `%s`%s%s", shown, in, what);
    }
}

bool spec_read_map(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                   const char *const *keys, size_t n)
{
    if (node->kind != YAML_MAP) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL, "%s: must be a map, as {%s: ...}", what,
                     keys[0]);
        return false;
    }
    if (node->count == 0) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL, "%s: the map is empty", what);
        return false;
    }
    for (size_t i = 0; i < node->count; i++) {
        bool known = false;
        for (size_t k = 0; k < n && !known; k++) {
            known = str_eq(node->keys[i]->text, keys[k]);
        }
        if (!known) {
            unknown_key(ctx, node->keys[i], what, keys, n);
        }
    }
    return true;
}

const struct yaml_node *const *spec_read_list(struct spec_ctx *ctx, const struct yaml_node *node,
                                              const char *what, size_t max,
                                              const struct yaml_node **one, size_t *n)
{
    if (node->kind == YAML_SCALAR && node->text[0] != '\0') {
        *one = node;
        *n = 1;
        return one;
    }
    if (node->kind == YAML_MAP) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL, "%s: must be a list, as [a, b]", what);
        return NULL;
    }
    if (node->count == 0) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL, "%s: the list is empty", what);
        return NULL;
    }
    if (node->count > max) {
        spec_mistake(ctx, spec_pos_of(node), ERR_LIMIT, "%s: more than %zu items", what, max);
        return NULL;
    }
    *n = node->count;
    return node->items;
}

static const char *scalar_of(struct spec_ctx *ctx, const struct yaml_node *node, const char *what)
{
    if (node->kind != YAML_SCALAR) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL, "%s: must be plain text, not a %s", what,
                     node->kind == YAML_MAP ? "map" : "list");
        return NULL;
    }
    if (node->text[0] == '\0') {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL, "%s: is empty", what);
        return NULL;
    }
    return node->text;
}

const char *spec_read_text(struct spec_ctx *ctx, const struct yaml_node *node, const char *what)
{
    const char *text = scalar_of(ctx, node, what);
    if (text != NULL && strstr(text, "%{") != NULL) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL,
                     "%s: parameters are put into commands and `env` only", what);
        return NULL;
    }
    return text;
}

const char *spec_read_clean(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                            size_t max)
{
    const char *text = spec_read_text(ctx, node, what);
    if (text == NULL) {
        return NULL;
    }
    if (strlen(text) > max) {
        spec_mistake(ctx, spec_pos_of(node), ERR_LIMIT, "%s: longer than %zu bytes", what, max);
        return NULL;
    }
    if (!spec_is_clean(text, max)) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL,
                     "%s: line breaks and control characters are not allowed", what);
        return NULL;
    }
    return spec_copy(ctx->spec, text);
}

const char *spec_read_name(struct spec_ctx *ctx, const struct yaml_node *node, const char *what)
{
    const char *text = spec_read_text(ctx, node, what);
    if (text == NULL) {
        return NULL;
    }
    if (!str_is_name(text)) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL,
                     "%s: `%s` is not a name: 1 to 64 of A-Z a-z 0-9 . _ + , = -", what,
                     spec_show(ctx->spec, text));
        return NULL;
    }
    return spec_copy(ctx->spec, text);
}

bool spec_read_duration(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                        int64_t min, int64_t max, int64_t *out)
{
    char lo[32];
    char hi[32];
    int64_t v = 0;
    const char *text = spec_read_text(ctx, node, what);
    if (text == NULL) {
        return false;
    }
    int rc = num_parse_duration(text, &v);
    if (rc == -ERR_INVAL) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL,
                     "%s: `%s` is not a duration: a number and a unit, as 30s or 1h30m", what,
                     spec_show(ctx->spec, text));
        return false;
    }
    if (rc < 0 || v < min || v > max) {
        spec_mistake(ctx, spec_pos_of(node), ERR_RANGE, "%s: must be from %s to %s", what,
                     num_duration_text(lo, sizeof(lo), min),
                     num_duration_text(hi, sizeof(hi), max));
        return false;
    }
    *out = v;
    return true;
}

bool spec_read_percent(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                       int64_t min, int64_t max, int64_t *out)
{
    char lo[32];
    char hi[32];
    int64_t v = 0;
    const char *text = spec_read_text(ctx, node, what);
    if (text == NULL) {
        return false;
    }
    int rc = num_parse_percent(text, &v);
    if (rc == -ERR_INVAL) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL,
                     "%s: `%s` is not a percentage: a number and %%, as 2%%", what,
                     spec_show(ctx->spec, text));
        return false;
    }
    if (rc < 0 || v < min || v > max) {
        spec_mistake(ctx, spec_pos_of(node), ERR_RANGE, "%s: must be from %s to %s", what,
                     num_percent_text(lo, sizeof(lo), min), num_percent_text(hi, sizeof(hi), max));
        return false;
    }
    *out = v;
    return true;
}

bool spec_read_size(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                    int64_t *out)
{
    const uint64_t max = UINT64_C(1) << 50;
    uint64_t v = 0;
    const char *text = spec_read_text(ctx, node, what);
    if (text == NULL) {
        return false;
    }
    int rc = num_parse_size(text, &v);
    if (rc == -ERR_INVAL) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL,
                     "%s: `%s` is not a size: a number and a unit, as 40MB or 2GiB", what,
                     spec_show(ctx->spec, text));
        return false;
    }
    if (rc < 0 || v < 1 || v > max) {
        spec_mistake(ctx, spec_pos_of(node), ERR_RANGE, "%s: must be from 1B to 1024TiB", what);
        return false;
    }
    *out = (int64_t)v;
    return true;
}

bool spec_read_u32(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                   uint32_t min, uint32_t max, uint32_t *out)
{
    uint64_t v = 0;
    const char *text = spec_read_text(ctx, node, what);
    if (text == NULL) {
        return false;
    }
    int rc = num_parse_u64(text, &v);
    if (rc == -ERR_INVAL) {
        spec_mistake(ctx, spec_pos_of(node), ERR_INVAL,
                     "%s: `%s` is not a whole number from %u to %u", what,
                     spec_show(ctx->spec, text), min, max);
        return false;
    }
    if (rc < 0 || v < min || v > max) {
        if (min == max) {
            spec_mistake(ctx, spec_pos_of(node), ERR_RANGE, "%s: must be %u", what, min);
        } else {
            spec_mistake(ctx, spec_pos_of(node), ERR_RANGE, "%s: must be from %u to %u", what, min,
                         max);
        }
        return false;
    }
    *out = (uint32_t)v;
    return true;
}

bool spec_read_bool(struct spec_ctx *ctx, const struct yaml_node *node, const char *what, bool *out)
{
    static const char *const words[] = {"no", "false", "off", "yes", "true", "on"};
    const char *text = spec_read_text(ctx, node, what);
    if (text == NULL) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eq(text, words[i])) {
            *out = i >= ARRAY_LEN(words) / 2;
            return true;
        }
    }
    spec_mistake(ctx, spec_pos_of(node), ERR_INVAL, "%s: must be true or false", what);
    return false;
}

bool spec_read_word(struct spec_ctx *ctx, const struct yaml_node *node, const char *what,
                    const char *const *words, size_t n, int *out)
{
    char list[256] = "";
    const char *text = spec_read_text(ctx, node, what);
    if (text == NULL) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (str_eq(text, words[i])) {
            *out = (int)i;
            return true;
        }
        size_t len = strlen(list);
        snprintf(list + len, sizeof(list) - len, "%s%s", i == 0 ? "" : ", ", words[i]);
    }
    spec_mistake(ctx, spec_pos_of(node), ERR_INVAL, "%s: `%s` is not one of %s", what,
                 spec_show(ctx->spec, text), list);
    return false;
}

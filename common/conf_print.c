/* conf_print.c: the effective values of a configuration as YAML that conf_parse() reads back. Owns
 * the spelling of values. */
#include "common/conf.h"

#include "common/buf.h"
#include "common/num.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Whether the text can stand without quotes anywhere, in a flow list too. */
static bool is_plain(const char *s)
{
    static const char safe[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./@%+=-";
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_/";
    return s[0] != '\0' && strchr(first, s[0]) != NULL && strspn(s, safe) == strlen(s);
}

/* The code point at p when it has to be escaped though it is no ASCII: controls, line breaks, byte
 * order marks. Length in *n. */
static unsigned special_code(const unsigned char *p, size_t *n)
{
    if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0) {
        *n = 2;
        return p[1];
    }
    if ((p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9)) ||
        (p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf) ||
        (p[0] == 0xef && p[1] == 0xbf && p[2] >= 0xbe)) {
        *n = 3;
        return ((p[0] & 0x0fu) << 12) | ((p[1] & 0x3fu) << 6) | (p[2] & 0x3fu);
    }
    return 0;
}

void conf_add_text(struct buf *out, const char *s)
{
    if (is_plain(s)) {
        buf_add_str(out, s);
        return;
    }
    buf_add_char(out, '"');
    const unsigned char *p = (const unsigned char *)s;
    while (*p != '\0') {
        size_t n = 1;
        unsigned code = special_code(p, &n);
        if (code != 0) {
            buf_printf(out, "\\u%04x", code);
        } else if (*p == '"' || *p == '\\') {
            buf_add_char(out, '\\');
            buf_add_char(out, (char)*p);
        } else if (*p < 0x20 || *p == 0x7f) {
            buf_printf(out, "\\x%02x", *p);
        } else {
            buf_add_char(out, (char)*p);
        }
        p += n;
    }
    buf_add_char(out, '"');
}

/* A size as people write it, where that is exact; else in bytes. */
static void add_size(struct buf *out, int64_t bytes)
{
    char text[32];
    uint64_t back = 0;
    num_size_text(text, sizeof(text), (uint64_t)bytes);
    char *space = strchr(text, ' ');
    if (space != NULL) {
        memmove(space, space + 1, strlen(space));
    }
    if (num_parse_size(text, &back) == 0 && back == (uint64_t)bytes) {
        buf_add_str(out, text);
    } else {
        buf_printf(out, "%" PRId64 "B", bytes);
    }
}

static void add_list(struct buf *out, const struct conf_list *list)
{
    buf_add_char(out, '[');
    for (size_t i = 0; i < list->count; i++) {
        buf_add_str(out, i == 0 ? "" : ", ");
        conf_add_text(out, list->items[i]);
    }
    buf_add_char(out, ']');
}

static void add_map(struct buf *out, const struct conf_map *map)
{
    buf_add_char(out, '{');
    for (size_t i = 0; i < map->count; i++) {
        buf_add_str(out, i == 0 ? "" : ", ");
        conf_add_text(out, map->keys[i]);
        buf_add_str(out, ": ");
        conf_add_text(out, map->values[i]);
    }
    buf_add_char(out, '}');
}

static bool is_unset(const struct conf_row *row, const void *member)
{
    return (row->type == CONF_STR || row->type == CONF_PATH) && *(char *const *)member == NULL;
}

static void add_value(struct buf *out, const struct conf_row *row, const void *member)
{
    char text[32];
    switch (row->type) {
    case CONF_STR:
    case CONF_PATH:
        conf_add_text(out, *(char *const *)member);
        break;
    case CONF_BOOL:
        buf_add_str(out, *(const bool *)member ? "yes" : "no");
        break;
    case CONF_INT:
        buf_printf(out, "%" PRId64, *(const int64_t *)member);
        break;
    case CONF_DURATION:
        buf_add_str(out, num_duration_text(text, sizeof(text), *(const int64_t *)member));
        break;
    case CONF_SIZE:
        add_size(out, *(const int64_t *)member);
        break;
    case CONF_PERCENT:
        buf_add_str(out, num_percent_text(text, sizeof(text), *(const int64_t *)member));
        break;
    case CONF_ENUM:
        conf_add_text(out, row->choices[*(const int *)member]);
        break;
    case CONF_LIST:
        add_list(out, member);
        break;
    case CONF_MAP:
        add_map(out, member);
        break;
    }
}

/* Bytes that the two names have in common, up to and with the last point. */
static size_t common_maps(const char *a, const char *b)
{
    size_t common = 0;
    for (size_t i = 0; a[i] != '\0' && a[i] == b[i]; i++) {
        if (a[i] == '.') {
            common = i + 1;
        }
    }
    return common;
}

/* Whether any row below rows[i]'s map (the first `len` bytes of its name) has a value: a map of
 * comments alone would not be one. */
static bool map_has_value(const struct conf_row *rows, size_t n, size_t i, size_t len,
                          const void *conf)
{
    for (size_t k = i; k < n && strncmp(rows[k].name, rows[i].name, len) == 0; k++) {
        if (!rows[k].obsolete && !is_unset(&rows[k], (const char *)conf + rows[k].offset)) {
            return true;
        }
    }
    return false;
}

static void add_row(struct buf *out, const struct conf_row *rows, size_t n, size_t i,
                    const char *before, const void *conf)
{
    const struct conf_row *row = &rows[i];
    const void *member = (const char *)conf + row->offset;
    const char *word = row->name;
    size_t shared = common_maps(row->name, before);
    int depth = 0;
    for (const char *point = strchr(word, '.'); point != NULL; point = strchr(word, '.')) {
        size_t len = (size_t)(point - row->name) + 1;
        if (len > shared) {
            const char *comment = map_has_value(rows, n, i, len, conf) ? "" : "# ";
            buf_printf(out, "%*s%s%.*s:\n", depth * 2, "", comment, (int)(point - word), word);
        }
        word = point + 1;
        depth++;
    }
    if (is_unset(row, member)) {
        buf_printf(out, "%*s# %s: (unset)", depth * 2, "", word);
    } else {
        buf_printf(out, "%*s%s: ", depth * 2, "", word);
        add_value(out, row, member);
    }
    buf_printf(out, "  # %s\n", row->help);
}

void conf_print(const struct conf_row *rows, size_t n, const void *conf, struct buf *out)
{
    const char *before = "";
    for (size_t i = 0; i < n; i++) {
        if (rows[i].obsolete) {
            continue;
        }
        add_row(out, rows, n, i, before, conf);
        before = rows[i].name;
    }
}

void conf_show(const struct conf_row *rows, size_t n, const void *conf)
{
    struct buf text = BUF_INIT;

    conf_print(rows, n, conf, &text);
    fputs(buf_str(&text), stdout);
    buf_fini(&text);
}

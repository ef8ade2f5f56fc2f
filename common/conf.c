/* conf.c: configuration by schema rows: defaults and reading. Owns no option itself. Printing:
 * conf_print.c. */
#include "common/conf.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "common/yaml.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX 256

/* Where one value goes and where its messages point. */
struct target {
    const char *file;
    const struct yaml_node *node;
    const struct conf_row *row;
    void *member;
    struct diag *diag;
};

static void *member_of(const struct conf_row *row, void *out)
{
    return (char *)out + row->offset;
}

static void list_free(struct conf_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i]);
    }
    free(list->items);
    *list = (struct conf_list){NULL, 0};
}

static void map_free(struct conf_map *map)
{
    for (size_t i = 0; i < map->count; i++) {
        free(map->keys[i]);
        free(map->values[i]);
    }
    free(map->keys);
    free(map->values);
    *map = (struct conf_map){NULL, NULL, 0};
}

/* The member with nothing in it; what it held is not freed. */
static void clear_member(const struct conf_row *row, void *member)
{
    switch (row->type) {
    case CONF_STR:
    case CONF_PATH:
        *(char **)member = NULL;
        break;
    case CONF_BOOL:
        *(bool *)member = false;
        break;
    case CONF_INT:
    case CONF_DURATION:
    case CONF_SIZE:
    case CONF_PERCENT:
        *(int64_t *)member = 0;
        break;
    case CONF_ENUM:
        *(int *)member = 0;
        break;
    case CONF_LIST:
        *(struct conf_list *)member = (struct conf_list){NULL, 0};
        break;
    case CONF_MAP:
        *(struct conf_map *)member = (struct conf_map){NULL, NULL, 0};
        break;
    }
}

static void free_member(const struct conf_row *row, void *member)
{
    switch (row->type) {
    case CONF_STR:
    case CONF_PATH:
        free(*(char **)member);
        break;
    case CONF_LIST:
        list_free(member);
        break;
    case CONF_MAP:
        map_free(member);
        break;
    case CONF_BOOL:
    case CONF_INT:
    case CONF_DURATION:
    case CONF_SIZE:
    case CONF_PERCENT:
    case CONF_ENUM:
        break;
    }
    clear_member(row, member);
}

static int fail(const struct target *t, int code, const char *text)
{
    return diag_error_at(t->diag, code, t->file, t->node->line, t->node->column, "%s: %s",
                         t->row->name, text);
}

/* A limit in the unit that people write. */
static const char *limit_text(char *dst, size_t room, const struct conf_row *row, int64_t v)
{
    if (row->type == CONF_DURATION) {
        return num_duration_text(dst, room, v);
    }
    if (row->type == CONF_SIZE) {
        return num_size_text(dst, room, (uint64_t)v);
    }
    if (row->type == CONF_PERCENT) {
        return num_percent_text(dst, room, v);
    }
    snprintf(dst, room, "%" PRId64, v);
    return dst;
}

/* Reads a number of the row's kind; -ERR_INVAL and what was expected, or -ERR_RANGE. */
static int parse_number(const struct conf_row *row, const char *text, int64_t *v,
                        const char **expected)
{
    if (row->type == CONF_DURATION) {
        *expected = "not a duration: a number and a unit, as 30s or 1h30m";
        return num_parse_duration(text, v);
    }
    if (row->type == CONF_PERCENT) {
        *expected = "not a percentage: a number and %, as 2%";
        return num_parse_percent(text, v);
    }
    if (row->type == CONF_SIZE) {
        *expected = "not a size: a number and a unit, as 300MB or 2GiB";
        uint64_t bytes = 0;
        int rc = num_parse_size(text, &bytes);
        if (rc == 0 && bytes > INT64_MAX) {
            return -ERR_RANGE;
        }
        *v = (int64_t)bytes;
        return rc;
    }
    *expected = "not a whole number";
    return num_parse_i64(text, v);
}

static int set_number(const struct target *t, const char *text)
{
    const struct conf_row *row = t->row;
    const char *expected = "";
    int64_t v = 0;
    int rc = parse_number(row, text, &v, &expected);
    if (rc == -ERR_INVAL) {
        return fail(t, ERR_INVAL, expected);
    }
    if (rc < 0 || (row->min != row->max && (v < row->min || v > row->max))) {
        char lo[32] = "";
        char hi[32] = "";
        if (row->min == row->max) {
            return fail(t, ERR_RANGE, "the number is too large");
        }
        return diag_error_at(t->diag, ERR_RANGE, t->file, t->node->line, t->node->column,
                             "%s: must be from %s to %s", row->name,
                             limit_text(lo, sizeof(lo), row, row->min),
                             limit_text(hi, sizeof(hi), row, row->max));
    }
    *(int64_t *)t->member = v;
    return 0;
}

static int set_bool(const struct target *t, const char *text)
{
    bool yes = str_eq(text, "yes") || str_eq(text, "true") || str_eq(text, "on");
    bool no = str_eq(text, "no") || str_eq(text, "false") || str_eq(text, "off");
    if (!yes && !no) {
        return fail(t, ERR_INVAL, "must be yes or no");
    }
    *(bool *)t->member = yes;
    return 0;
}

static int set_enum(const struct target *t, const char *text)
{
    struct buf words;
    buf_init(&words, 1024);
    for (int i = 0; t->row->choices[i] != NULL; i++) {
        if (str_eq(text, t->row->choices[i])) {
            *(int *)t->member = i;
            buf_fini(&words);
            return 0;
        }
        buf_printf(&words, "%s%s", i == 0 ? "must be one of " : ", ", t->row->choices[i]);
    }
    int rc = fail(t, ERR_INVAL, buf_str(&words));
    buf_fini(&words);
    return rc;
}

/* Any type that is written as one text. */
static int set_text(const struct target *t, const char *text)
{
    switch (t->row->type) {
    case CONF_PATH:
        if (text[0] != '/') {
            return fail(t, ERR_INVAL, "must be an absolute path");
        }
        *(char **)t->member = mem_xstrdup(text);
        return 0;
    case CONF_STR:
        *(char **)t->member = mem_xstrdup(text);
        return 0;
    case CONF_BOOL:
        return set_bool(t, text);
    case CONF_ENUM:
        return set_enum(t, text);
    case CONF_INT:
    case CONF_DURATION:
    case CONF_SIZE:
    case CONF_PERCENT:
        return set_number(t, text);
    case CONF_LIST:
    case CONF_MAP:
        break;
    }
    return fail(t, ERR_INVAL, "cannot be written as one text");
}

static int set_list(const struct target *t)
{
    const struct yaml_node *node = t->node;
    struct conf_list *list = t->member;
    for (size_t i = 0; i < node->count; i++) {
        if (node->items[i]->kind != YAML_SCALAR) {
            struct target item = *t;
            item.node = node->items[i];
            return fail(&item, ERR_INVAL, "the items of this list must be plain text");
        }
    }
    list->items = mem_xarray(node->count, sizeof(*list->items));
    list->count = node->count;
    for (size_t i = 0; i < node->count; i++) {
        list->items[i] = mem_xstrdup(node->items[i]->text);
    }
    return 0;
}

static int set_map(const struct target *t)
{
    const struct yaml_node *node = t->node;
    struct conf_map *map = t->member;
    for (size_t i = 0; i < node->count; i++) {
        if (node->items[i]->kind != YAML_SCALAR) {
            struct target item = *t;
            item.node = node->items[i];
            return fail(&item, ERR_INVAL, "the values of this map must be plain text");
        }
    }
    map->keys = mem_xarray(node->count, sizeof(*map->keys));
    map->values = mem_xarray(node->count, sizeof(*map->values));
    map->count = node->count;
    for (size_t i = 0; i < node->count; i++) {
        map->keys[i] = mem_xstrdup(node->keys[i]->text);
        map->values[i] = mem_xstrdup(node->items[i]->text);
    }
    return 0;
}

/* Reads the node into an empty member. */
static int set_empty(const struct target *t)
{
    enum conf_type type = t->row->type;
    if (type == CONF_LIST) {
        return t->node->kind == YAML_LIST ? set_list(t)
                                          : fail(t, ERR_INVAL, "must be a list, as [a, b]");
    }
    if (type == CONF_MAP) {
        return t->node->kind == YAML_MAP ? set_map(t)
                                         : fail(t, ERR_INVAL, "must be a map, as {a: b}");
    }
    return t->node->kind == YAML_SCALAR
               ? set_text(t, t->node->text)
               : fail(t, ERR_INVAL, "must be plain text, not a list or a map");
}

/* Replaces the member's value; a value that is refused leaves the old one. */
static int set_member(const struct target *t)
{
    union {
        char *text;
        bool flag;
        int64_t number;
        int choice;
        struct conf_list list;
        struct conf_map map;
    } fresh;
    static const size_t sizes[] = {[CONF_STR] = sizeof(char *),
                                   [CONF_PATH] = sizeof(char *),
                                   [CONF_BOOL] = sizeof(bool),
                                   [CONF_INT] = sizeof(int64_t),
                                   [CONF_DURATION] = sizeof(int64_t),
                                   [CONF_SIZE] = sizeof(int64_t),
                                   [CONF_PERCENT] = sizeof(int64_t),
                                   [CONF_ENUM] = sizeof(int),
                                   [CONF_LIST] = sizeof(struct conf_list),
                                   [CONF_MAP] = sizeof(struct conf_map)};
    struct target part = *t;
    part.member = &fresh;
    clear_member(t->row, &fresh);
    int rc = set_empty(&part);
    if (rc < 0) {
        free_member(t->row, &fresh);
        return rc;
    }
    free_member(t->row, t->member);
    memcpy(t->member, &fresh, sizes[t->row->type]);
    return 0;
}

/* A default as it would be written in the file. Scalars are taken as they are, so that ":7443"
 * needs no quotes. */
static int set_default(const struct conf_row *row, void *member)
{
    struct yaml_node scalar = {.kind = YAML_SCALAR, .text = row->dflt};
    struct target t = {"default", &scalar, row, member, NULL};
    if (row->type != CONF_LIST && row->type != CONF_MAP) {
        return set_member(&t);
    }
    struct yaml_doc *doc = yaml_parse("default", row->dflt, strlen(row->dflt), NULL);
    if (doc == NULL) {
        return -ERR_SYNTAX;
    }
    t.node = yaml_root(doc);
    int rc = set_member(&t);
    yaml_doc_free(&doc);
    return rc;
}

void conf_defaults(const struct conf_row *rows, size_t n, void *out)
{
    for (size_t i = 0; i < n; i++) {
        void *member = member_of(&rows[i], out);
        clear_member(&rows[i], member);
        if (rows[i].dflt != NULL) {
            int rc = set_default(&rows[i], member);
            assert(rc == 0);
            (void)rc;
        }
    }
}

struct reader {
    const struct conf_row *rows;
    size_t n;
    const char *file;
    void *out;
    struct diag *diag;
    bool *seen; /* one a row */
};

/* Whether the row's name is prefix + one word, or begins so and goes on below it. Gives the word's
 * length. */
static bool row_below(const struct conf_row *row, const char *prefix, size_t *word, bool *deeper)
{
    size_t n = strlen(prefix);
    if (strncmp(row->name, prefix, n) != 0) {
        return false;
    }
    *word = strcspn(row->name + n, ".");
    *deeper = row->name[n + *word] == '.';
    return true;
}

static int unknown_key(const struct reader *r, const struct yaml_node *key, const char *prefix)
{
    char words[MEMBERS_MAX][64];
    const char *candidates[MEMBERS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < r->n && count < MEMBERS_MAX; i++) {
        size_t len = 0;
        bool deeper = false;
        if (row_below(&r->rows[i], prefix, &len, &deeper) && len < sizeof(words[0])) {
            memcpy(words[count], r->rows[i].name + strlen(prefix), len);
            words[count][len] = '\0';
            candidates[count] = words[count];
            count++;
        }
    }
    const char *near = str_nearest(key->text, candidates, count);
    if (near != NULL) {
        return diag_error_at(r->diag, ERR_NOTFOUND, r->file, key->line, key->column,
                             "unknown option `%s%.100s`; did you mean `%s`?", prefix, key->text,
                             near);
    }
    return diag_error_at(r->diag, ERR_NOTFOUND, r->file, key->line, key->column,
                         "unknown option `%s%.100s`", prefix, key->text);
}

static int read_value(const struct reader *r, size_t index, const struct yaml_node *key,
                      const struct yaml_node *value)
{
    const struct conf_row *row = &r->rows[index];
    r->seen[index] = true;
    if (row->obsolete) {
        diag_warn_at(r->diag, r->file, key->line, key->column, "%s is obsolete", row->name);
    }
    struct target t = {r->file, value, row, member_of(row, r->out), r->diag};
    return set_member(&t);
}

static int read_map(const struct reader *r, const struct yaml_node *map, const char *prefix);

/* One pair; `prefix` is "" or "limits.". */
static int read_pair(const struct reader *r, const struct yaml_node *key,
                     const struct yaml_node *value, const char *prefix)
{
    size_t len = strlen(key->text);
    for (size_t i = 0; i < r->n; i++) {
        size_t word = 0;
        bool deeper = false;
        if (!row_below(&r->rows[i], prefix, &word, &deeper) || word != len ||
            memcmp(r->rows[i].name + strlen(prefix), key->text, len) != 0) {
            continue;
        }
        if (!deeper) {
            return read_value(r, i, key, value);
        }
        if (value->kind != YAML_MAP) {
            return diag_error_at(r->diag, ERR_INVAL, r->file, value->line, value->column,
                                 "%s%s: must be a map", prefix, key->text);
        }
        char *below = mem_xasprintf("%s%s.", prefix, key->text);
        int rc = read_map(r, value, below);
        free(below);
        return rc;
    }
    return unknown_key(r, key, prefix);
}

static int read_map(const struct reader *r, const struct yaml_node *map, const char *prefix)
{
    int first = 0;
    for (size_t i = 0; i < map->count; i++) {
        int rc = read_pair(r, map->keys[i], map->items[i], prefix);
        if (rc < 0 && first == 0) {
            first = rc;
        }
    }
    return first;
}

static int check_required(const struct reader *r)
{
    int first = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (!r->rows[i].required || r->seen[i]) {
            continue;
        }
        int rc = diag_error_at(r->diag, ERR_NOTFOUND, r->file, 1, 1, "%s is missing: %s",
                               r->rows[i].name, r->rows[i].help);
        first = first == 0 ? rc : first;
    }
    return first;
}

/* Whether a text holds no value at all: only blank lines, comments and a document's beginning. */
static bool is_blank(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n) {
        const char *end = memchr(text + i, '\n', n - i);
        size_t stop = end != NULL ? (size_t)(end - text) : n;
        size_t k = i;
        while (k < stop && (text[k] == ' ' || text[k] == '\t' || text[k] == '\r')) {
            k++;
        }
        bool begin = k == i && stop - k >= 3 && memcmp(text + k, "---", 3) == 0;
        if (begin) {
            k += 3;
            while (k < stop && (text[k] == ' ' || text[k] == '\t' || text[k] == '\r')) {
                k++;
            }
        }
        if (k < stop && text[k] != '#') {
            return false;
        }
        i = stop + 1;
    }
    return true;
}

int conf_parse(const struct conf_row *rows, size_t n, const char *file, const void *text,
               size_t n_text, void *out, struct diag *diag)
{
    struct yaml_doc *doc = NULL;
    int rc = 0;
    if (!is_blank(text, n_text)) {
        doc = yaml_parse(file, text, n_text, diag);
        if (doc == NULL) {
            return -ERR_SYNTAX;
        }
        const struct yaml_node *root = yaml_root(doc);
        if (root->kind != YAML_MAP) {
            rc = diag_error_at(diag, ERR_INVAL, file, root->line, root->column,
                               "options are written as `name: value`");
            yaml_doc_free(&doc);
            return rc;
        }
    }
    struct reader r = {rows, n, file, out, diag, mem_xarray(n, sizeof(bool))};
    if (doc != NULL) {
        rc = read_map(&r, yaml_root(doc), "");
    }
    int missing = check_required(&r);
    free(r.seen);
    yaml_doc_free(&doc);
    return rc < 0 ? rc : missing;
}

int conf_load(const struct conf_row *rows, size_t n, const char *path, void *out, struct diag *diag)
{
    struct buf text = BUF_INIT;
    int rc = file_read_all(path, YAML_MAX_BYTES, &text);
    if (rc < 0) {
        buf_fini(&text);
        return diag_error(diag, rc, "%s: %s", path,
                          rc == -ERR_LIMIT ? "larger than 1 MiB" : err_text(rc));
    }
    rc = conf_parse(rows, n, path, buf_str(&text), text.len, out, diag);
    buf_fini(&text);
    return rc;
}

int conf_read(const struct conf_row *rows, size_t n, const char *path, void *out, struct diag *diag)
{
    conf_defaults(rows, n, out);
    return path == NULL ? 0 : conf_load(rows, n, path, out, diag);
}

void conf_free(const struct conf_row *rows, size_t n, void *conf)
{
    for (size_t i = 0; i < n; i++) {
        free_member(&rows[i], member_of(&rows[i], conf));
    }
}

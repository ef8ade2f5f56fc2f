/* yaml.c: from libyaml's events to a tree in one arena. Owns the limits and what is refused; knows
 * nothing of any schema. */
#include "common/yaml.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define MAX_DEPTH 32
#define MAX_NODES 100000
#define ARENA_CAP ((size_t)64 * 1024 * 1024)
#define KEY_SHOWN 100      /* bytes of a key in a message */
#define DIRECTIVES_MAX 100

struct yaml_doc {
    struct mem_arena *arena;
    const char *file;
    const struct yaml_node *root;
};

/* A list or map whose end has not come yet. */
struct frame {
    struct yaml_node *node;
    const struct yaml_node **items; /* owned until the end */
    const struct yaml_node **keys;
    const struct yaml_node *key; /* waits for its value */
    size_t count;
    size_t room;
};

struct builder {
    yaml_parser_t parser;
    struct yaml_doc *doc;
    struct diag *diag;
    struct frame stack[MAX_DEPTH];
    size_t depth;
    size_t nodes;
    struct yaml_node *root;
};

static int fail_at(struct builder *b, int code, const yaml_mark_t *mark, const char *text)
{
    return diag_error_at(b->diag, code, b->doc->file, (unsigned)mark->line + 1,
                         (unsigned)mark->column + 1, "%s", text);
}

/* A message at the place of a byte; what lies before the byte is well-formed UTF-8. */
static int fail_at_byte(struct builder *b, int code, const unsigned char *text, size_t offset,
                        const char *message)
{
    unsigned line = 1;
    unsigned column = 1;
    for (size_t i = 0; i < offset; i++) {
        if (text[i] == '\n' || (text[i] == '\r' && (i + 1 == offset || text[i + 1] != '\n'))) {
            line++;
            column = 1;
        } else if ((text[i] & 0xc0) != 0x80) {
            column++;
        }
    }
    return diag_error_at(b->diag, code, b->doc->file, line, column, "%s", message);
}

/* What libyaml says about a syntax error, in one line. */
static int fail_syntax(struct builder *b, const unsigned char *text, size_t n)
{
    const yaml_parser_t *p = &b->parser;
    const char *problem = p->problem != NULL ? p->problem : "not understood";
    if (p->error == YAML_MEMORY_ERROR) {
        return diag_error(b->diag, ERR_NOMEM, "%s: out of memory", b->doc->file);
    }
    if (p->error == YAML_READER_ERROR) {
        return fail_at_byte(b, ERR_SYNTAX, text, p->problem_offset < n ? p->problem_offset : n,
                            problem);
    }
    if (p->context != NULL) {
        return diag_error_at(b->diag, ERR_SYNTAX, b->doc->file, (unsigned)p->problem_mark.line + 1,
                             (unsigned)p->problem_mark.column + 1, "syntax error: %s, %s", problem,
                             p->context);
    }
    return diag_error_at(b->diag, ERR_SYNTAX, b->doc->file, (unsigned)p->problem_mark.line + 1,
                         (unsigned)p->problem_mark.column + 1, "syntax error: %s", problem);
}

static int no_memory(struct builder *b)
{
    return diag_error(b->diag, ERR_NOMEM, "%s: out of memory", b->doc->file);
}

/* Places a finished or opened node in the list or map that is open. */
static int attach(struct builder *b, struct yaml_node *node, const yaml_mark_t *mark)
{
    if (b->depth == 0) {
        b->root = node;
        return 0;
    }
    struct frame *f = &b->stack[b->depth - 1];
    bool map = f->node->kind == YAML_MAP;
    if (map && f->key == NULL) {
        if (node->kind != YAML_SCALAR) {
            return fail_at(b, ERR_INVAL, mark, "a key must be plain text, not a list or a map");
        }
        f->key = node;
        return 0;
    }
    if (f->count == f->room) {
        f->room = f->room == 0 ? 8 : f->room * 2;
        f->items = mem_xrealloc(f->items, f->room, sizeof(*f->items));
        f->keys = mem_xrealloc(f->keys, f->room, sizeof(*f->keys));
    }
    f->items[f->count] = node;
    f->keys[f->count] = f->key;
    f->key = NULL;
    f->count++;
    return 0;
}

static struct yaml_node *new_node(struct builder *b, enum yaml_kind kind, const yaml_event_t *event,
                                  int *rc)
{
    *rc = 0;
    if (++b->nodes > MAX_NODES) {
        *rc = fail_at(b, ERR_LIMIT, &event->start_mark, "more than 100000 values");
        return NULL;
    }
    struct yaml_node *node = mem_arena_alloc(b->doc->arena, sizeof(*node));
    if (node == NULL) {
        *rc = no_memory(b);
        return NULL;
    }
    node->kind = kind;
    node->line = (unsigned)event->start_mark.line + 1;
    node->column = (unsigned)event->start_mark.column + 1;
    node->text = "";
    return node;
}

static int check_properties(struct builder *b, const yaml_event_t *event, const yaml_char_t *anchor,
                            const yaml_char_t *tag)
{
    if (anchor != NULL) {
        return fail_at(b, ERR_INVAL, &event->start_mark, "anchors and aliases are not allowed");
    }
    if (tag != NULL) {
        return fail_at(b, ERR_INVAL, &event->start_mark, "tags are not allowed");
    }
    return 0;
}

static int on_scalar(struct builder *b, const yaml_event_t *event)
{
    int rc = check_properties(b, event, event->data.scalar.anchor, event->data.scalar.tag);
    if (rc < 0) {
        return rc;
    }
    const char *value = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (memchr(value, 0, length) != NULL) {
        return fail_at(b, ERR_INVAL, &event->start_mark, "a NUL character is not allowed");
    }
    struct yaml_node *node = new_node(b, YAML_SCALAR, event, &rc);
    if (node == NULL) {
        return rc;
    }
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->text = mem_arena_strndup(b->doc->arena, value, length);
    if (node->text == NULL) {
        return no_memory(b);
    }
    return attach(b, node, &event->start_mark);
}

static int on_open(struct builder *b, const yaml_event_t *event, enum yaml_kind kind)
{
    bool map = kind == YAML_MAP;
    int rc = check_properties(
        b, event, map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor,
        map ? event->data.mapping_start.tag : event->data.sequence_start.tag);
    if (rc < 0) {
        return rc;
    }
    if (b->depth == MAX_DEPTH) {
        return fail_at(b, ERR_LIMIT, &event->start_mark,
                       "lists and maps are nested more than 32 deep");
    }
    struct yaml_node *node = new_node(b, kind, event, &rc);
    if (node == NULL) {
        return rc;
    }
    rc = attach(b, node, &event->start_mark);
    if (rc < 0) {
        return rc;
    }
    b->stack[b->depth] = (struct frame){.node = node};
    b->depth++;
    return 0;
}

/* By text, and equal texts in the order of the file. */
static int compare_keys(const void *a, const void *b)
{
    const struct yaml_node *x = *(const struct yaml_node *const *)a;
    const struct yaml_node *y = *(const struct yaml_node *const *)b;
    int order = strcmp(x->text, y->text);
    if (order != 0) {
        return order;
    }
    if (x->line != y->line) {
        return x->line < y->line ? -1 : 1;
    }
    return x->column < y->column ? -1 : x->column > y->column;
}

/* The key that repeats an earlier one and stands first in the file is refused. */
static int check_duplicates(struct builder *b, const struct frame *f)
{
    const struct yaml_node **sorted = mem_xarray(f->count + 1, sizeof(*sorted));
    if (f->count != 0) {
        memcpy(sorted, f->keys, f->count * sizeof(*sorted));
        qsort(sorted, f->count, sizeof(*sorted), compare_keys);
    }
    const struct yaml_node *found = NULL;
    const struct yaml_node *first = NULL;
    for (size_t i = 1; i < f->count; i++) {
        const struct yaml_node *k = sorted[i];
        if (strcmp(k->text, sorted[i - 1]->text) != 0) {
            continue;
        }
        if (found == NULL || k->line < found->line ||
            (k->line == found->line && k->column < found->column)) {
            found = k;
            first = sorted[i - 1];
        }
    }
    free(sorted);
    if (found == NULL) {
        return 0;
    }
    struct buf shown = BUF_INIT;
    size_t n = strnlen(found->text, KEY_SHOWN + 1);
    if (n > KEY_SHOWN) {
        for (n = KEY_SHOWN; n > 0 && ((unsigned char)found->text[n] & 0xc0) == 0x80; n--) {
        }
    }
    str_show(&shown, found->text, n);
    int rc = diag_error_at(b->diag, ERR_EXISTS, b->doc->file, found->line, found->column,
                           "the key `%s` was given before, in line %u", buf_str(&shown),
                           first->line);
    buf_fini(&shown);
    return rc;
}

static int on_close(struct builder *b)
{
    struct frame *f = &b->stack[b->depth - 1];
    struct yaml_node *node = f->node;
    bool map = node->kind == YAML_MAP;
    if (map) {
        int rc = check_duplicates(b, f);
        if (rc < 0) {
            return rc;
        }
    }
    const struct yaml_node **items = mem_arena_array(b->doc->arena, f->count, sizeof(*items));
    const struct yaml_node **keys =
        map ? mem_arena_array(b->doc->arena, f->count, sizeof(*keys)) : NULL;
    if (items == NULL || (map && keys == NULL)) {
        return no_memory(b);
    }
    for (size_t i = 0; i < f->count; i++) {
        items[i] = f->items[i];
        if (map) {
            keys[i] = f->keys[i];
        }
    }
    node->count = f->count;
    node->items = items;
    node->keys = keys;
    free(f->items);
    free(f->keys);
    b->depth--;
    return 0;
}

/* 0: go on; 1: the stream has ended. */
static int on_event(struct builder *b, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (b->root != NULL) {
            return fail_at(b, ERR_INVAL, &event->start_mark,
                           "a second document (`---`) is not allowed");
        }
        return 0;
    case YAML_ALIAS_EVENT:
        return fail_at(b, ERR_INVAL, &event->start_mark, "anchors and aliases are not allowed");
    case YAML_SCALAR_EVENT:
        return on_scalar(b, event);
    case YAML_SEQUENCE_START_EVENT:
        return on_open(b, event, YAML_LIST);
    case YAML_MAPPING_START_EVENT:
        return on_open(b, event, YAML_MAP);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return on_close(b);
    case YAML_STREAM_END_EVENT:
        return 1;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return 0;
    }
    return 0;
}

/* Length of the line break at p, or 0. libyaml takes U+0085, U+2028 and U+2029 for one too. */
static size_t break_length(const unsigned char *p, size_t left)
{
    if (p[0] == '\n' || p[0] == '\r') {
        return 1;
    }
    if (left >= 2 && p[0] == 0xc2 && p[1] == 0x85) {
        return 2;
    }
    return left >= 3 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9) ? 3 : 0;
}

/* The place of the first line with %TAG beyond DIRECTIVES_MAX, or n. Such a line is a directive before a document, and libyaml compares each with
 * all before it: a file full of them would take minutes. */
static size_t find_tag_directive(const unsigned char *text, size_t n)
{
    size_t count = 0;
    size_t at = n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* a byte order mark */
    while (at < n) {
        if (n - at >= 4 && memcmp(text + at, "%TAG", 4) == 0 && ++count > DIRECTIVES_MAX) {
            return at;
        }
        while (at < n && break_length(text + at, n - at) == 0) {
            at++;
        }
        at += at < n ? break_length(text + at, n - at) : 0;
    }
    return n;
}

static int check_bytes(struct builder *b, const unsigned char *text, size_t n)
{
    if (n > YAML_MAX_BYTES) {
        return diag_error_at(b->diag, ERR_LIMIT, b->doc->file, 1, 1,
                             "the file is larger than 1 MiB (%zu bytes)", n);
    }
    size_t bad = str_utf8_bad(text, n);
    const unsigned char *nul = n != 0 ? memchr(text, 0, n) : NULL;
    if (nul != NULL && (size_t)(nul - text) < bad) {
        return fail_at_byte(b, ERR_SYNTAX, text, (size_t)(nul - text), "a NUL byte is not allowed");
    }
    if (bad < n) {
        return fail_at_byte(b, ERR_SYNTAX, text, bad, "the file is not UTF-8");
    }
    size_t tag = find_tag_directive(text, n);
    if (tag < n) {
        return fail_at_byte(b, ERR_LIMIT, text, tag, "more than 100 directives");
    }
    return 0;
}

static int build(struct builder *b, const unsigned char *text, size_t n)
{
    int rc = check_bytes(b, text, n);
    if (rc < 0) {
        return rc;
    }
    yaml_parser_set_encoding(&b->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b->parser, n != 0 ? text : (const unsigned char *)"", n);
    do {
        yaml_event_t event;
        if (!yaml_parser_parse(&b->parser, &event)) {
            return fail_syntax(b, text, n);
        }
        rc = on_event(b, &event);
        yaml_event_delete(&event);
    } while (rc == 0);
    if (rc < 0) {
        return rc;
    }
    if (b->root == NULL ||
        (b->root->kind == YAML_SCALAR && b->root->plain && b->root->text[0] == '\0')) {
        return diag_error_at(b->diag, ERR_END, b->doc->file, 1, 1, "the file is empty");
    }
    b->doc->root = b->root;
    return 0;
}

struct yaml_doc *yaml_parse(const char *file, const void *text, size_t n, struct diag *diag)
{
    struct yaml_doc *doc = mem_xzalloc(sizeof(*doc));
    doc->arena = mem_arena_new(ARENA_CAP);
    doc->file = mem_arena_strdup(doc->arena, file);
    struct builder *b = mem_xzalloc(sizeof(*b));
    b->doc = doc;
    b->diag = diag;
    int rc;
    if (doc->file == NULL || !yaml_parser_initialize(&b->parser)) {
        rc = diag_error(diag, ERR_NOMEM, "%.200s: out of memory", file);
    } else {
        rc = build(b, text, n);
        yaml_parser_delete(&b->parser);
    }
    while (b->depth > 0) {
        b->depth--;
        free(b->stack[b->depth].items);
        free(b->stack[b->depth].keys);
    }
    free(b);
    if (rc < 0) {
        yaml_doc_free(&doc);
    }
    return doc;
}

void yaml_doc_free(struct yaml_doc **doc)
{
    if (*doc == NULL) {
        return;
    }
    mem_arena_free(&(*doc)->arena);
    free(*doc);
    *doc = NULL;
}

const struct yaml_node *yaml_root(const struct yaml_doc *doc)
{
    return doc->root;
}

const char *yaml_file(const struct yaml_doc *doc)
{
    return doc->file;
}

const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key)
{
    if (map->kind != YAML_MAP) {
        return NULL;
    }
    for (size_t i = 0; i < map->count; i++) {
        if (strcmp(map->keys[i]->text, key) == 0) {
            return map->items[i];
        }
    }
    return NULL;
}

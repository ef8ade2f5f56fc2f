/* diag.c: the list of messages for people. Owns copies of all texts and file names; prints only in diag_show(). */
#include "common/diag.h"

#include "common/buf.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX ((size_t)64 * 1024)
#define ARENA_MAX ((size_t)16 * 1024 * 1024)

struct place {
    const char *file;
    unsigned line;
    unsigned column;
};

struct diag {
    struct mem_arena *arena;
    struct diag_item *items;
    size_t count;
    size_t room;
    size_t max;
    size_t errors;  /* those that were not kept included */
    size_t dropped; /* messages of any level that were not kept */
    const char *first_error;
};

struct diag *diag_new(size_t max)
{
    struct diag *diag = mem_xzalloc(sizeof(*diag));
    diag->arena = mem_arena_new(ARENA_MAX);
    diag->max = max;
    return diag;
}

void diag_free(struct diag **diag)
{
    if (*diag == NULL) {
        return;
    }
    mem_arena_free(&(*diag)->arena);
    free((*diag)->items);
    free(*diag);
    *diag = NULL;
}

void diag_clear(struct diag *diag)
{
    if (diag == NULL) {
        return;
    }
    mem_arena_free(&diag->arena);
    diag->arena = mem_arena_new(ARENA_MAX);
    diag->count = 0;
    diag->errors = 0;
    diag->dropped = 0;
    diag->first_error = NULL;
}

/* The formatted text in the arena, cut at TEXT_MAX bytes; NULL when there is no memory for it. */
static const char *format_text(struct diag *diag, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *text = NULL;
    if (n >= 0) {
        size_t len = (size_t)n < TEXT_MAX ? (size_t)n : TEXT_MAX;
        text = mem_arena_alloc(diag->arena, len + 1);
        if (text != NULL) {
            vsnprintf(text, len + 1, fmt, again);
        }
    }
    va_end(again);
    return text;
}

/* The name's copy; the one of the item before is shared. */
static const char *keep_file(struct diag *diag, const char *file)
{
    const char *last = diag->count > 0 ? diag->items[diag->count - 1].file : NULL;
    if (last != NULL && strcmp(last, file) == 0) {
        return last;
    }
    return mem_arena_strdup(diag->arena, file);
}

static void add(struct diag *diag, enum diag_level level, int code, struct place place, const char *fmt, va_list ap)
{
    if (diag == NULL) {
        return;
    }
    if (level == DIAG_ERROR) {
        diag->errors++;
    }
    if (diag->count == diag->max) {
        diag->dropped++;
        if (level != DIAG_ERROR || diag->first_error != NULL || diag->count == 0) {
            return;
        }
        diag->count--; /* the first error takes the place of the last warning or note */
    }
    const char *file = place.file != NULL ? keep_file(diag, place.file) : NULL;
    const char *text = format_text(diag, fmt, ap);
    if (text == NULL || (place.file != NULL && file == NULL)) {
        diag->dropped++;
        return;
    }
    if (diag->count == diag->room) {
        diag->room = diag->room != 0 ? diag->room * 2 : 8;
        diag->items = mem_xrealloc(diag->items, diag->room, sizeof(diag->items[0]));
    }
    diag->items[diag->count++] = (struct diag_item){level, code, file, place.line, place.column, text};
    if (level == DIAG_ERROR && diag->first_error == NULL) {
        diag->first_error = text;
    }
}

/* The negative form of a code of either sign; 0, which is no error, becomes -ERR_SYS. */
static int negative(int code)
{
    if (code == 0) {
        return -ERR_SYS;
    }
    return code < 0 ? code : -code;
}

int diag_error(struct diag *diag, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(diag, DIAG_ERROR, -negative(code), (struct place){NULL, 0, 0}, fmt, ap);
    va_end(ap);
    return negative(code);
}

int diag_error_at(struct diag *diag, int code, const char *file, unsigned line, unsigned column, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(diag, DIAG_ERROR, -negative(code), (struct place){file, line, column}, fmt, ap);
    va_end(ap);
    return negative(code);
}

int diag_warn(struct diag *diag, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(diag, DIAG_WARNING, 0, (struct place){NULL, 0, 0}, fmt, ap);
    va_end(ap);
    return 0;
}

int diag_warn_at(struct diag *diag, const char *file, unsigned line, unsigned column, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(diag, DIAG_WARNING, 0, (struct place){file, line, column}, fmt, ap);
    va_end(ap);
    return 0;
}

int diag_note(struct diag *diag, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(diag, DIAG_NOTE, 0, (struct place){NULL, 0, 0}, fmt, ap);
    va_end(ap);
    return 0;
}

size_t diag_count(const struct diag *diag)
{
    return diag != NULL ? diag->count : 0;
}

size_t diag_errors(const struct diag *diag)
{
    return diag != NULL ? diag->errors : 0;
}

const struct diag_item *diag_get(const struct diag *diag, size_t index)
{
    return diag != NULL && index < diag->count ? &diag->items[index] : NULL;
}

const char *diag_first(const struct diag *diag)
{
    return diag != NULL && diag->first_error != NULL ? diag->first_error : "";
}

/* Messages without a place come first, then by file, line and column; the order of adding decides among equals. */
static int compare_items(const void *a, const void *b)
{
    const struct diag_item *const *pa = a;
    const struct diag_item *const *pb = b;
    const struct diag_item *x = *pa;
    const struct diag_item *y = *pb;
    if (x->file != y->file) {
        if (x->file == NULL || y->file == NULL) {
            return x->file == NULL ? -1 : 1;
        }
        int c = strcmp(x->file, y->file);
        if (c != 0) {
            return c;
        }
    }
    if (x->line != y->line) {
        return x->line < y->line ? -1 : 1;
    }
    if (x->column != y->column) {
        return x->column < y->column ? -1 : 1;
    }
    return x < y ? -1 : x > y;
}

/* Appends text with control characters but newline and tab, and bytes that are not UTF-8, as \xHH: texts quote what peers and files say. */
static void add_clean(struct buf *out, const char *text)
{
    for (;;) {
        size_t n = strcspn(text, "\n\t");
        str_show(out, text, n);
        if (text[n] == '\0') {
            return;
        }
        buf_add_char(out, text[n]);
        text += n + 1;
    }
}

static void print_item(const struct diag_item *item, struct buf *out)
{
    if (item->file != NULL) {
        add_clean(out, item->file);
        if (item->line != 0) {
            buf_printf(out, ":%u", item->line);
        }
        if (item->line != 0 && item->column != 0) {
            buf_printf(out, ":%u", item->column);
        }
        buf_add_str(out, ": ");
    }
    if (item->level == DIAG_WARNING) {
        buf_add_str(out, "warning: ");
    } else if (item->level == DIAG_NOTE) {
        buf_add_str(out, "note: ");
    }
    add_clean(out, item->text);
    buf_add_char(out, '\n');
}

void diag_print(const struct diag *diag, struct buf *out)
{
    if (diag == NULL) {
        return;
    }
    if (diag->count > 0) {
        const struct diag_item **order = mem_xarray(diag->count, sizeof(*order));
        for (size_t i = 0; i < diag->count; i++) {
            order[i] = &diag->items[i];
        }
        qsort(order, diag->count, sizeof(*order), compare_items);
        for (size_t i = 0; i < diag->count; i++) {
            print_item(order[i], out);
        }
        free(order);
    }
    if (diag->dropped > 0) {
        buf_printf(out, "%zu more message%s not shown\n", diag->dropped, diag->dropped == 1 ? " is" : "s are");
    }
}

void diag_show(const struct diag *diag)
{
    struct buf text = BUF_INIT;

    diag_print(diag, &text);
    fputs(buf_str(&text), stderr);
    buf_fini(&text);
}

/* out.c: tables, bars and spans for people. Owns no state but the table's. */
#include "coordinator/ctl/out.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct out_table {
    const char *const *headings;
    size_t columns;
    char **cells;
    size_t count;
    size_t room;
};

struct out_table *out_table_new(const char *const *headings, size_t columns)
{
    struct out_table *t = mem_xzalloc(sizeof *t);

    t->headings = headings;
    t->columns = columns;
    return t;
}

void out_table_free(struct out_table **table)
{
    struct out_table *t = *table;

    if (t == NULL)
        return;
    for (size_t i = 0; i < t->count; i++)
        free(t->cells[i]);
    free(t->cells);
    free(t);
    *table = NULL;
}

void out_cell(struct out_table *t, const char *text)
{
    struct buf safe = BUF_INIT;

    if (text == NULL || text[0] == '\0')
        text = "-";
    str_escape(&safe, text, strlen(text));
    if (t->count == t->room) {
        t->room = t->room == 0 ? 64 : t->room * 2;
        t->cells = mem_xrealloc(t->cells, t->room, sizeof *t->cells);
    }
    t->cells[t->count++] = mem_xstrdup(buf_str(&safe));
    buf_fini(&safe);
}

void out_cellf(struct out_table *t, const char *fmt, ...)
{
    struct buf text = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    out_cell(t, buf_str(&text));
    buf_fini(&text);
}

static size_t width_of(const struct out_table *t, size_t column)
{
    const char *h = t->headings[column];
    size_t width = str_columns(h[0] == '>' ? h + 1 : h);

    for (size_t i = column; i < t->count; i += t->columns) {
        size_t w = str_columns(t->cells[i]);

        width = w > width ? w : width;
    }
    return width;
}

static void add_padded(struct buf *out, const char *text, size_t width, bool right, bool last)
{
    size_t pad = width - str_columns(text);

    for (size_t i = 0; right && i < pad; i++)
        buf_add_char(out, ' ');
    buf_add_str(out, text);
    for (size_t i = 0; !right && !last && i < pad; i++)
        buf_add_char(out, ' ');
    buf_add_str(out, last ? "\n" : "  ");
}

void out_table_print(const struct out_table *t, struct buf *out)
{
    size_t *widths = mem_xarray(t->columns, sizeof *widths);

    assert(t->count % t->columns == 0);
    for (size_t c = 0; c < t->columns; c++)
        widths[c] = width_of(t, c);
    for (size_t c = 0; c < t->columns; c++) {
        bool right = t->headings[c][0] == '>';

        add_padded(out, right ? t->headings[c] + 1 : t->headings[c], widths[c], right, c + 1 == t->columns);
    }
    for (size_t i = 0; i < t->count; i++) {
        size_t c = i % t->columns;

        add_padded(out, t->cells[i], widths[c], t->headings[c][0] == '>', c + 1 == t->columns);
    }
    free(widths);
}

void out_bar(struct buf *out, int64_t done, int64_t all, size_t width)
{
    size_t full = all <= 0 || done <= 0 ? 0 : done >= all ? width : (size_t)(done * (int64_t)width / all);

    buf_add_char(out, '[');
    for (size_t i = 0; i < width; i++)
        buf_add_char(out, i < full ? '=' : i == full && done > 0 ? '>' : ' ');
    buf_add_char(out, ']');
}

const char *out_span(char *dst, size_t room, int64_t ns)
{
    int64_t s = ns / CLOCK_SEC;

    if (ns < 0)
        snprintf(dst, room, "-");
    else if (s >= 86400)
        snprintf(dst, room, "%" PRId64 " d %02" PRId64 " h", s / 86400, s / 3600 % 24);
    else if (s >= 3600)
        snprintf(dst, room, "%" PRId64 " h %02" PRId64 " m", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf(dst, room, "%" PRId64 " m %02" PRId64 " s", s / 60, s % 60);
    else
        snprintf(dst, room, "%" PRId64 " s", s);
    return dst;
}

const char *out_time(char *dst, size_t room, int64_t wall_ns)
{
    time_t s = (time_t)(wall_ns / CLOCK_SEC);
    struct tm tm;

    if (wall_ns == 0 || gmtime_r(&s, &tm) == NULL || strftime(dst, room, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        snprintf(dst, room, "-");
    return dst;
}

int out_close(void)
{
    int failed = ferror(stdout) != 0;
    int saved;

    errno = 0;
    failed |= fflush(stdout) != 0;
    saved = errno;
    return failed && saved != EPIPE ? -ERR_IO : 0;
}

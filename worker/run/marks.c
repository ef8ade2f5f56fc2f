/* marks.c: the list of marks of an attempt. */
#include "worker/run/marks.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct marks_item *marks_find(const struct marks *marks, enum mark mark)
{
    for (size_t i = 0; i < marks->count; i++)
        if (marks->list[i].mark == mark)
            return &marks->list[i];
    return NULL;
}

void marks_add(struct marks *marks, enum mark mark, const char *fmt, ...)
{
    struct marks_item *item;
    va_list ap;

    if (marks->count == MARKS_MAX || marks_find(marks, mark) != NULL)
        return;
    item = &marks->list[marks->count++];
    item->mark = mark;
    item->invalid = vocab_mark_invalid((int)mark);
    va_start(ap, fmt);
    (void)vsnprintf(item->text, sizeof(item->text), fmt, ap);
    va_end(ap);
}

void marks_merge(struct marks *marks, const struct marks *more)
{
    for (size_t i = 0; i < more->count && marks->count < MARKS_MAX; i++)
        if (marks_find(marks, more->list[i].mark) == NULL)
            marks->list[marks->count++] = more->list[i];
}

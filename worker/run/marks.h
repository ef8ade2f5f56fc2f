/* marks.h: what a reader must know about an attempt, collected while it is made: a short list in
 * fixed memory. */
#ifndef MAKESPAN_WORKER_RUN_MARKS_H
#define MAKESPAN_WORKER_RUN_MARKS_H

#include "common/attr.h"
#include "common/vocab.h"

#include <stdbool.h>
#include <stddef.h>

enum { MARKS_MAX = 24, MARKS_TEXT_MAX = 320 };

struct marks {
    size_t count;
    struct marks_item {
        enum mark mark;
        bool invalid;              /* as the vocabulary says; the slot may change it */
        char text[MARKS_TEXT_MAX]; /* UTF-8 in one line */
    } list[MARKS_MAX];
};

/* Adds a mark; one that is there already keeps its first text. What does not fit is left out
 * (the table holds every mark of the vocabulary that a worker sets). */
void marks_add(struct marks *marks, enum mark mark, const char *fmt, ...) PRINTF_LIKE(3, 4);
const struct marks_item *marks_find(const struct marks *marks, enum mark mark);
void marks_merge(struct marks *marks, const struct marks *more);

#endif

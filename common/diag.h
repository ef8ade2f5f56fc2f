/* diag.h: messages for people, with the place they speak of: a list that a fallible function fills and its caller shows. */
#ifndef MAKESPAN_COMMON_DIAG_H
#define MAKESPAN_COMMON_DIAG_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>

struct buf;

enum diag_level { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE };

struct diag_item {
    enum diag_level level;
    int code;         /* ERR_*, positive */
    const char *file; /* NULL: no place */
    unsigned line;    /* from 1; 0: none */
    unsigned column;  /* from 1; 0: none */
    const char *text;
};

struct diag;

/* At most `max` items are kept, the first error among them; what comes after is counted and said in one last line. */
struct diag *diag_new(size_t max) MUST_CHECK;
void diag_free(struct diag **diag);
void diag_clear(struct diag *diag);

/* Add one message. `diag` may be NULL (nothing is kept). `code` may be positive or negative. Each returns the negative code, so
 * that `return diag_error(d, ERR_INVAL, "…");` is the whole error path; a warning and a note return 0. */
int diag_error(struct diag *diag, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
int diag_error_at(struct diag *diag, int code, const char *file, unsigned line, unsigned column, const char *fmt, ...)
    PRINTF_LIKE(6, 7);
int diag_warn(struct diag *diag, const char *fmt, ...) PRINTF_LIKE(2, 3);
int diag_warn_at(struct diag *diag, const char *file, unsigned line, unsigned column, const char *fmt, ...) PRINTF_LIKE(5, 6);
int diag_note(struct diag *diag, const char *fmt, ...) PRINTF_LIKE(2, 3);

size_t diag_count(const struct diag *diag);  /* of all levels */
size_t diag_errors(const struct diag *diag); /* of level DIAG_ERROR, those beyond `max` included */
const struct diag_item *diag_get(const struct diag *diag, size_t index);
/* Text of the first error, "" when there is none. Never NULL. */
const char *diag_first(const struct diag *diag);
/* Appends every item in order of file, line, column: "file:line:column: text\n", warnings as "…: warning: text". */
void diag_print(const struct diag *diag, struct buf *out);
/* The same to standard error. */
void diag_show(const struct diag *diag);

#endif

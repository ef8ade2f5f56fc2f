/* conf.h: configuration of the daemons: a YAML map read into a struct by schema rows.
 *
 * A row is an option: its name, type, limits, default, unit and help. The same rows check a file, print the effective values and the help, and are compared
 * with the manual page by a test. */
#ifndef MAKESPAN_COMMON_CONF_H
#define MAKESPAN_COMMON_CONF_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct diag;

enum conf_type {
    CONF_STR,      /* char *, owned */
    CONF_PATH,     /* char *, owned; must be absolute */
    CONF_BOOL,     /* bool; yes, no, true, false, on, off */
    CONF_INT,      /* int64_t */
    CONF_DURATION, /* int64_t, nanoseconds */
    CONF_SIZE,     /* int64_t, bytes */
    CONF_PERCENT,  /* int64_t, parts per million */
    CONF_ENUM,     /* int; `choices` is a NULL-terminated list, the value is the index */
    CONF_LIST,     /* struct conf_list of scalars */
    CONF_MAP,      /* struct conf_map of scalar to scalar */
};

struct conf_list {
    char **items;
    size_t count;
};

struct conf_map {
    char **keys;
    char **values;
    size_t count;
};

struct conf_row {
    const char *name; /* "listen", or "limits.samples" for a member of a nested map */
    enum conf_type type;
    size_t offset; /* offsetof() in the caller's struct */
    const char *dflt; /* as it would be written in the file; NULL: unset (NULL string, 0, empty) */
    int64_t min;
    int64_t max; /* min == max: no limit */
    const char *const *choices;
    bool required;
    bool obsolete; /* still read, with a warning */
    const char *help; /* one sentence */
};

/* Fills the struct, whatever it holds, with the defaults. A default that its own row does not allow is a bug and asserts. */
void conf_defaults(const struct conf_row *rows, size_t n, void *out);
/* Reads text over what conf_defaults() put into `out`: all mistakes at once in diag, an unknown key with the nearest name. 0 or negative; then `out` holds what
 * could be read and is still to be given to conf_free(). `n_text` 0 (an empty file, or comments alone) is fine. */
int conf_parse(const struct conf_row *rows, size_t n, const char *file, const void *text, size_t n_text, void *out,
               struct diag *diag) MUST_CHECK;
/* Reads the file; a missing one is -ERR_NOTFOUND with text. */
int conf_load(const struct conf_row *rows, size_t n, const char *path, void *out, struct diag *diag) MUST_CHECK;
/* conf_defaults(), and the file over them unless `path` is NULL. */
int conf_read(const struct conf_row *rows, size_t n, const char *path, void *out, struct diag *diag) MUST_CHECK;
/* Appends the effective values as YAML, each with its unit and, behind #, the help; conf_parse() reads the same values from it. An unset
 * value is a comment. Members of one nested map must be rows that follow each other. */
void conf_print(const struct conf_row *rows, size_t n, const void *conf, struct buf *out);
/* The same to standard output. */
void conf_show(const struct conf_row *rows, size_t n, const void *conf);
/* Appends one text as a scalar of YAML, in quotes where it needs them. */
void conf_add_text(struct buf *out, const char *s);
/* Frees every owned member. */
void conf_free(const struct conf_row *rows, size_t n, void *conf);

#endif

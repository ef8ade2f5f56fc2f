/* opts.h: options and arguments of one command, read by its table. */
#ifndef MAKESPAN_COORDINATOR_CTL_OPTS_H
#define MAKESPAN_COORDINATOR_CTL_OPTS_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>

struct diag;

struct opts_row {
    const char *name; /* "wait": --wait */
    char letter;      /* 'w': -w; 0: none */
    const char *arg;  /* what it takes, for the help ("NAME=VALUE"); NULL: nothing */
    const char *help;
};

enum { OPTS_MAX_ROWS = 24, OPTS_MAX_VALUES = 256 };

struct opts {
    const struct opts_row *rows;
    size_t row_count;
    const char **args; /* what is no option */
    size_t arg_count;
    struct {
        size_t row;
        const char *value;
    } values[OPTS_MAX_VALUES];
    size_t value_count;
};

/* Reads argv[0..argc): "--name value", "--name=value", "-n value", "-nvalue", "--" ends the options. `args` has room for argc. 0, or -ERR_INVAL with text: an unknown option with the nearest one, a
 * missing or superfluous value. */
int opts_parse(const struct opts_row *rows, size_t row_count, int argc, char **argv, const char **args, struct opts *out,
               struct diag *diag) MUST_CHECK;
bool opts_has(const struct opts *opts, const char *name);
/* The last value, or NULL. */
const char *opts_get(const struct opts *opts, const char *name);
/* The i-th value of an option that may stand several times, or NULL. */
const char *opts_nth(const struct opts *opts, const char *name, size_t i);

#endif

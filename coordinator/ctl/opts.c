/* opts.c: reads the options of a command by its table. Owns nothing. */
#include "coordinator/ctl/opts.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/str.h"

#include <string.h>

static int find_long(const struct opts_row *rows, size_t n, const char *name, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(rows[i].name) == len && strncmp(rows[i].name, name, len) == 0)
            return (int)i;
    return -1;
}

static int find_letter(const struct opts_row *rows, size_t n, char letter)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].letter != 0 && rows[i].letter == letter)
            return (int)i;
    return -1;
}

static int unknown(const struct opts_row *rows, size_t n, const char *word, size_t len, struct diag *diag)
{
    const char *names[OPTS_MAX_ROWS];
    const char *near;
    char name[64];

    if (len >= sizeof name)
        len = sizeof name - 1;
    memcpy(name, word, len);
    name[len] = '\0';
    for (size_t i = 0; i < n; i++)
        names[i] = rows[i].name;
    near = str_nearest(name, names, n);
    return diag_error(diag, ERR_INVAL, "unknown option --%s%s%s%s", name, near == NULL ? "" : ": did you mean --", near == NULL ? "" : near,
                      near == NULL ? "" : "?");
}

static int add(struct opts *o, size_t row, const char *value, struct diag *diag)
{
    if (o->value_count == OPTS_MAX_VALUES)
        return diag_error(diag, ERR_LIMIT, "more than %d options", OPTS_MAX_VALUES);
    o->values[o->value_count].row = row;
    o->values[o->value_count].value = value;
    o->value_count++;
    return 0;
}

/* One option at argv[*i]; *i goes on to the last word that it took. */
static int read_option(struct opts *o, int argc, char **argv, int *i, struct diag *diag)
{
    const char *word = argv[*i];
    bool is_long = word[1] == '-';
    const char *value = NULL;
    int row;

    if (is_long) {
        size_t len = strcspn(word + 2, "=");

        row = find_long(o->rows, o->row_count, word + 2, len);
        if (row < 0)
            return unknown(o->rows, o->row_count, word + 2, len, diag);
        if (word[2 + len] == '=')
            value = word + 2 + len + 1;
    } else {
        row = find_letter(o->rows, o->row_count, word[1]);
        if (row < 0)
            return diag_error(diag, ERR_INVAL, "unknown option -%c", word[1]);
        if (word[2] != '\0')
            value = word + 2;
    }
    if (o->rows[row].arg == NULL && value != NULL)
        return diag_error(diag, ERR_INVAL, "--%s takes no value", o->rows[row].name);
    if (o->rows[row].arg != NULL && value == NULL) {
        if (*i + 1 >= argc)
            return diag_error(diag, ERR_INVAL, "--%s needs %s", o->rows[row].name, o->rows[row].arg);
        value = argv[++*i];
    }
    return add(o, (size_t)row, value, diag);
}

int opts_parse(const struct opts_row *rows, size_t row_count, int argc, char **argv, const char **args, struct opts *out,
               struct diag *diag)
{
    bool options = true;

    memset(out, 0, sizeof *out);
    out->rows = rows;
    out->row_count = row_count;
    out->args = args;
    for (int i = 0; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && argv[i][0] == '-' && argv[i][1] != '\0') {
            int err = read_option(out, argc, argv, &i, diag);

            if (err != 0)
                return err;
        } else {
            args[out->arg_count++] = argv[i];
        }
    }
    return 0;
}

const char *opts_nth(const struct opts *opts, const char *name, size_t i)
{
    for (size_t k = 0; k < opts->value_count; k++)
        if (strcmp(opts->rows[opts->values[k].row].name, name) == 0 && i-- == 0)
            return opts->values[k].value;
    return NULL;
}

bool opts_has(const struct opts *opts, const char *name)
{
    for (size_t k = 0; k < opts->value_count; k++)
        if (strcmp(opts->rows[opts->values[k].row].name, name) == 0)
            return true;
    return false;
}

const char *opts_get(const struct opts *opts, const char *name)
{
    const char *value = NULL;

    for (size_t k = 0; k < opts->value_count; k++)
        if (strcmp(opts->rows[opts->values[k].row].name, name) == 0)
            value = opts->values[k].value;
    return value;
}

/* cmds.c: finds commands, and says what they take. Owns the tables of options. */
#include "coordinator/ctl/cmds.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/str.h"

#include <string.h>

#define ROW_FORMAT_JSON                                                                            \
    {                                                                                              \
        "format", 'f', "FORMAT", "table (the default) or json"                                        \
    }
#define ROW_SET                                                                                    \
    {                                                                                              \
        "set", 's', "NAME=VALUE", "give a parameter of the sweep file another value; may be given several times" \
    }
#define ROW_COORDINATOR                                                                            \
    {                                                                                              \
        "coordinator", 0, "HOST:PORT", "talk to this coordinator instead of the one that was written down" \
    }

static const struct opts_row ROWS_NONE[] = {ROW_COORDINATOR};
static const struct opts_row ROWS_SHOW[] = {ROW_FORMAT_JSON, ROW_COORDINATOR};
static const struct opts_row ROWS_WHY[] = {{"because", 'b', "TEXT", "why; stands in the sweep's history"}, ROW_COORDINATOR};
static const struct opts_row ROWS_FILE[] = {ROW_SET, ROW_FORMAT_JSON, ROW_COORDINATOR};
static const struct opts_row ROWS_RUN[] = {
    ROW_SET,
    {"yes", 'y', NULL, "agree to more than a day of work"},
    {"wait", 'w', NULL, "follow it and end when it ends: 0 every cell has its runs, 1 some failed, 2 ended early, 3 hosts missing"},
    {"key", 'k', "KEY", "submit once: the same key and file mean the sweep that is there"},
    ROW_COORDINATOR};
static const struct opts_row ROWS_REPORT[] = {
    {"format", 'f', "FORMAT", "table (the default), mail, csv, json or markdown"},
    {"attempt", 'a', "RUN[/N]", "one attempt alone, with its samples and output, as table or json (run and attempt as in the CSV)"},
    ROW_COORDINATOR};
static const struct opts_row ROWS_TOKEN[] = {
    {"role", 'r', "ROLE", "worker (the default), viewer, submitter or admin"},
    {"class", 'c', "CLASS", "the host that joins gets this class; may be given several times"},
    {"ttl", 't', "SPAN", "its life, a minute to 30 days; 1h by default"},
    {"name", 'n', "NAME", "the holder gets this name; a host that is there gets a new key"},
    ROW_COORDINATOR};
static const struct opts_row ROWS_LOGIN[] = {{"name", 'n', "NAME", "your name in the fleet, instead of the system's"},
                                             {"force", 0, NULL, "replace the identity that is there"}};
static const struct opts_row ROWS_INIT[] = {{"dir", 'd', "DIR", "the coordinator's folder, instead of /var/lib/makespan"},
                                            {"listen", 'l', "[HOST]:PORT", "where it will listen; written to makespand.yaml in DIR, else in /etc/makespan"},
                                            {"address", 'a', "HOST:PORT", "where it is reached, when --listen does not say so"},
                                            {"name", 'n', "NAME", "the admin's name, instead of the system's"}};
static const struct opts_row ROWS_LOCAL[] = {
    ROW_SET,
    {"class", 'c', "CLASS", "take the overrides of this class in the sweep file's `per`; may be given several times"},
    {"format", 'f', "FORMAT", "format of the report: table (the default), mail, csv, json or markdown"},
    {"keep", 0, "DIR", "leave database, archives and trees in this folder (it must not be there yet)"}};

#define COUNT(rows) ARRAY_LEN(ROWS_##rows)

static const struct cmd CMDS[] = {
#define CMD(noun, verb, args, least, most, function, options, help)                                \
    {noun, verb, args, help, least, most, function, ROWS_##options, COUNT(options)},
#include "coordinator/ctl/cmds.def"
#undef CMD
};

const struct cmd *cmds_all(size_t *n)
{
    *n = ARRAY_LEN(CMDS);
    return CMDS;
}

static void nearest_noun(const char *word, struct diag *diag)
{
    const char *words[ARRAY_LEN(CMDS)];
    const char *near;

    if (word[0] == '-') {
        diag_error(diag, ERR_INVAL, "%s stands before the command: options come behind it; makespan -h lists the commands", word);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(CMDS); i++)
        words[i] = CMDS[i].noun;
    near = str_nearest(word, words, ARRAY_LEN(CMDS));
    diag_error(diag, ERR_INVAL, "unknown command %s%s%s%smakespan -h lists them", word, near == NULL ? "" : "; did you mean ",
               near == NULL ? "" : near, near == NULL ? ": " : "? ");
}

static void nearest_verb(const char *noun, const char *word, struct diag *diag)
{
    const char *words[ARRAY_LEN(CMDS)];
    const char *near;
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(CMDS); i++)
        if (strcmp(CMDS[i].noun, noun) == 0)
            words[n++] = CMDS[i].verb;
    near = str_nearest(word, words, n);
    diag_error(diag, ERR_INVAL, "unknown command %s %s%s%s%smakespan %s -h lists them", noun, word, near == NULL ? "" : "; did you mean ",
               near == NULL ? "" : near, near == NULL ? ": " : "? ", noun);
}

const struct cmd *cmds_find(int argc, char **argv, int *words, struct diag *diag)
{
    bool noun_known = false;

    if (argc == 0) {
        diag_error(diag, ERR_INVAL, "what is to be done? makespan -h lists the commands");
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(CMDS); i++) {
        if (strcmp(CMDS[i].noun, argv[0]) != 0)
            continue;
        noun_known = true;
        if (CMDS[i].verb[0] == '\0') {
            *words = 1;
            return &CMDS[i];
        }
        if (argc > 1 && strcmp(CMDS[i].verb, argv[1]) == 0) {
            *words = 2;
            return &CMDS[i];
        }
    }
    if (!noun_known)
        nearest_noun(argv[0], diag);
    else if (argc == 1)
        diag_error(diag, ERR_INVAL, "%s needs a verb: makespan %s -h lists them", argv[0], argv[0]);
    else
        nearest_verb(argv[0], argv[1], diag);
    return NULL;
}

static void add_name(const struct cmd *cmd, struct buf *out)
{
    buf_printf(out, "%s%s%s", cmd->noun, cmd->verb[0] == '\0' ? "" : " ", cmd->verb);
}

void cmds_list(const char *noun, struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(CMDS); i++) {
        struct buf name = BUF_INIT;

        if (noun != NULL && strcmp(CMDS[i].noun, noun) != 0)
            continue;
        add_name(&CMDS[i], &name);
        buf_printf(&name, "%s%s", CMDS[i].args[0] == '\0' ? "" : " ", CMDS[i].args);
        buf_printf(out, "  %-26s %s\n", buf_str(&name), CMDS[i].help);
        buf_fini(&name);
    }
}

void cmds_usage(const struct cmd *cmd, struct buf *out)
{
    buf_add_str(out, "usage: makespan ");
    add_name(cmd, out);
    buf_printf(out, " [options]%s%s\n\n%s\n\n", cmd->args[0] == '\0' ? "" : " ", cmd->args, cmd->help);
    if (strcmp(cmd->args, "SWEEP") == 0)
        buf_add_str(out, "SWEEP is a name (its newest sweep), NAME/N, or an id.\n\n");
    else if (strcmp(cmd->args, "FILE") == 0)
        buf_printf(out, "FILE is a sweep file, makespan-sweep(5)%s.\n\n", strcmp(cmd->noun, "sweep") == 0 ? "; - is standard input" : "");
    for (size_t i = 0; i < cmd->row_count; i++) {
        const struct opts_row *row = &cmd->rows[i];
        struct buf name = BUF_INIT;

        if (row->letter != 0)
            buf_printf(&name, "-%c, --%s", row->letter, row->name);
        else
            buf_printf(&name, "    --%s", row->name);
        buf_printf(&name, "%s%s", row->arg == NULL ? "" : " ", row->arg == NULL ? "" : row->arg);
        buf_printf(out, "  %-28s %s\n", buf_str(&name), row->help);
        buf_fini(&name);
    }
    buf_add_str(out, "  -h, --help                   print this\n\nManual: makespan(1).\n");
}

/* cmds.h: the commands, each a function in its cmd_*.c; the table is cmds.def. */
#ifndef MAKESPAN_COORDINATOR_CTL_CMDS_H
#define MAKESPAN_COORDINATOR_CTL_CMDS_H

#include "common/attr.h"
#include "coordinator/ctl/ctl.h"
#include "coordinator/ctl/opts.h"

#include <stddef.h>

struct buf;
struct diag;

struct cmd {
    const char *noun;
    const char *verb; /* "": the noun alone */
    const char *args; /* for the help: "SWEEP" */
    const char *help; /* one line */
    size_t min_args, max_args;
    ctl_f *run;
    const struct opts_row *rows;
    size_t row_count;
};

/* All commands, in the order of the help. */
const struct cmd *cmds_all(size_t *n);
/* Finds the command of argv (the words after the program's name) and says how many words its name has. NULL with text in diag: unknown, with the nearest; or `want_help` is set: a noun alone. */
const struct cmd *cmds_find(int argc, char **argv, int *words, struct diag *diag);
/* Appends the list of all commands, or those of one noun. */
void cmds_list(const char *noun, struct buf *out);
/* Appends usage and options of one. */
void cmds_usage(const struct cmd *cmd, struct buf *out);

ctl_f cmd_local, cmd_init, cmd_token_create, cmd_login;
ctl_f cmd_host_list, cmd_host_show, cmd_host_drain, cmd_host_resume, cmd_host_label, cmd_host_unlabel, cmd_host_revoke;
ctl_f cmd_sweep_check, cmd_sweep_plan, cmd_sweep_run, cmd_sweep_list, cmd_sweep_show, cmd_sweep_pause, cmd_sweep_resume, cmd_sweep_cancel,
    cmd_sweep_retry;
ctl_f cmd_watch, cmd_report;

#endif

/* ctl.h: what every command of the operator's program is given, and the exit statuses. */
#ifndef MAKESPAN_COORDINATOR_CTL_CTL_H
#define MAKESPAN_COORDINATOR_CTL_CTL_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>

struct diag;
struct loop;
struct opts;

/* Exit statuses; when several hold, the first of 64, 1, 3, 2, 0. */
enum ctl_exit { CTL_DONE = 0, CTL_NO = 1, CTL_UNDECIDED = 2, CTL_INFRASTRUCTURE = 3, CTL_USAGE = 64 };

struct ctl {
    struct loop *loop;
    const char *program; /* argv[0] */
    const char *home;    /* the configuration directory */
    const char *address; /* --coordinator, or NULL: the configuration's */
    bool json;           /* --format json */
    bool color;          /* standard output is a terminal and NO_COLOR is not set */
    bool terminal;       /* standard output is a terminal */
    struct diag *diag;   /* what is shown on standard error at the end */
};

/* A command: one row of cmds.def. Returns an exit status. */
typedef int ctl_f(struct ctl *ctl, const struct opts *opts);

/* The status that holds when both do. */
int ctl_exit_join(int a, int b);
/* CTL_USAGE for what the caller got wrong, else CTL_INFRASTRUCTURE; 0 for 0. */
int ctl_exit_of(int code);
/* Writes to standard output and standard error; a failure of standard output (but a closed pipe) is told once, at the end, by out_close(). */

#endif

/* cmd_init.c: init: has makespand make a fleet, and keeps the admin's identity. */
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/str.h"
#include "coordinator/ctl/children.h"
#include "coordinator/ctl/cmds.h"
#include "coordinator/ctl/home.h"

#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

int cmd_init(struct ctl *ctl, const struct opts *opts)
{
    const struct passwd *pw = getpwuid(geteuid());
    const char *name = opts_get(opts, "name");
    const char *dir = opts_get(opts, "dir");
    const char *argv[12];
    char program[FILE_PATH_MAX];
    size_t n = 0;
    int status;

    if (!str_is_name(opts->args[0])) {
        diag_error(ctl->diag, ERR_INVAL, "%s is no name for a fleet: letters, digits and . _ + , = - up to 64", opts->args[0]);
        return CTL_USAGE;
    }
    if (children_find(ctl, "makespand", program, sizeof program) != 0)
        return CTL_INFRASTRUCTURE;
    if (name == NULL)
        name = pw != NULL && str_is_name(pw->pw_name) ? pw->pw_name : "admin";
    argv[n++] = program;
    argv[n++] = "--init";
    argv[n++] = "--fleet";
    argv[n++] = opts->args[0];
    argv[n++] = "--operator-dir";
    argv[n++] = ctl->home;
    argv[n++] = "--operator";
    argv[n++] = name;
    if (dir != NULL) {
        argv[n++] = "--dir";
        argv[n++] = dir;
    }
    argv[n] = NULL;
    status = children_run(ctl, argv, STDOUT_FILENO, STDERR_FILENO);
    if (status < 0)
        return CTL_INFRASTRUCTURE;
    if (status == 0 && home_write_address(ctl->home, "127.0.0.1:7443", ctl->diag) != 0)
        return CTL_INFRASTRUCTURE;
    if (status == 0)
        fprintf(stderr, "next: start makespand%s%s, then `makespan token create --role worker` and on each host `makespan-worker join HOST:7443 TOKEN`\n",
                dir == NULL ? "" : " --dir ", dir == NULL ? "" : dir);
    return status;
}

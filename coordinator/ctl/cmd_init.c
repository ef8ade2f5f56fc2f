/* cmd_init.c: init: has makespand make a fleet and write the admin's identity. */
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/str.h"
#include "coordinator/ctl/children.h"
#include "coordinator/ctl/cmds.h"

#include <pwd.h>
#include <unistd.h>

int cmd_init(struct ctl *ctl, const struct opts *opts)
{
    const struct passwd *pw = getpwuid(geteuid());
    const char *name = opts_get(opts, "name");
    const char *dir = opts_get(opts, "dir");
    const char *argv[16];
    char program[FILE_PATH_MAX], whole[FILE_PATH_MAX];
    size_t n = 0;
    int status;

    if (!str_is_name(opts->args[0])) {
        diag_error(ctl->diag, ERR_INVAL, "%s is no name for a fleet: letters, digits and . _ + , = - up to 64", opts->args[0]);
        return CTL_USAGE;
    }
    if (dir != NULL && file_absolute(whole, sizeof whole, dir) != 0) {
        diag_error(ctl->diag, ERR_INVAL, "--dir %s: its whole name is too long, or the current folder is gone", dir);
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
        argv[n++] = whole;
    }
    if (opts_get(opts, "listen") != NULL) {
        argv[n++] = "--listen";
        argv[n++] = opts_get(opts, "listen");
    }
    if (opts_get(opts, "address") != NULL) {
        argv[n++] = "--address";
        argv[n++] = opts_get(opts, "address");
    }
    argv[n] = NULL;
    status = children_run(ctl, argv, STDOUT_FILENO, STDERR_FILENO);
    return status < 0 ? CTL_INFRASTRUCTURE : status;
}

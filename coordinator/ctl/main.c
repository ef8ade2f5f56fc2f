/* main.c: makespan, the operator's command: finds the command, gives it its surroundings, shows what went wrong. Wiring only. */
#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/version.h"
#include "coordinator/ctl/cmds.h"
#include "coordinator/ctl/ctl.h"
#include "coordinator/ctl/home.h"
#include "coordinator/ctl/out.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print(struct buf *text)
{
    fputs(buf_str(text), stdout);
    buf_fini(text);
}

static void help(const char *noun)
{
    struct buf text = BUF_INIT;

    if (noun == NULL)
        buf_add_str(&text, "usage: makespan COMMAND [options] [arguments]\n\n"
                           "Times builds on a fleet of machines and says what a change did to each of them.\n\n");
    else
        buf_printf(&text, "usage: makespan %s COMMAND [options] [arguments]\n\n", noun);
    cmds_list(noun, &text);
    if (noun == NULL)
        buf_add_str(&text, "\n  makespan COMMAND -h          what a command takes\n"
                           "  makespan -V                  the version\n\n"
                           "Manual: makespan(1), makespan-sweep(5).\n");
    print(&text);
}

static bool is_help(const char *word)
{
    return strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0;
}

/* Whether -h stands among the words (before "--"). */
static bool wants_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (is_help(argv[i]))
            return true;
    return false;
}

static bool is_noun(const char *word)
{
    size_t n;
    const struct cmd *all = cmds_all(&n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].noun, word) == 0 && all[i].verb[0] != '\0')
            return true;
    return false;
}

/* Those that know other formats check theirs themselves. */
static int read_format(struct ctl *ctl, const struct cmd *cmd, const char *format)
{
    ctl->json = format != NULL && strcmp(format, "json") == 0;
    if (format == NULL || ctl->json || cmd->run == cmd_report || cmd->run == cmd_local ||
        strcmp(format, "table") == 0)
        return 0;
    return diag_error(ctl->diag, ERR_INVAL, "--format %s: table and json are there", format);
}

static void note_help(struct ctl *ctl, const struct cmd *cmd)
{
    diag_note(ctl->diag, "makespan %s%s%s -h shows what it takes", cmd->noun, cmd->verb[0] == '\0' ? "" : " ", cmd->verb);
}

static int run(struct ctl *ctl, const struct cmd *cmd, int argc, char **argv)
{
    const char **args = mem_xarray((size_t)argc + 1, sizeof *args);
    struct opts *opts = mem_xzalloc(sizeof *opts);
    int status = CTL_USAGE;

    if (opts_parse(cmd->rows, cmd->row_count, argc, argv, args, opts, ctl->diag) != 0) {
        note_help(ctl, cmd);
    } else if (opts->arg_count < cmd->min_args || opts->arg_count > cmd->max_args) {
        diag_error(ctl->diag, ERR_INVAL, "%s%s%s takes %s", cmd->noun, cmd->verb[0] == '\0' ? "" : " ", cmd->verb,
                   cmd->args[0] == '\0' ? "no arguments" : cmd->args);
        note_help(ctl, cmd);
    } else if (read_format(ctl, cmd, opts_get(opts, "format")) == 0) {
        ctl->address = opts_get(opts, "coordinator");
        status = cmd->run(ctl, opts);
    }
    free(opts);
    free(args);
    return status;
}

static int start(const char *program, const struct cmd *cmd, int argc, char **argv, struct diag *diag)
{
    char home[FILE_PATH_MAX];
    struct ctl ctl = {.program = program, .home = home, .diag = diag};
    int status;

    if (home_find(home, sizeof home, diag) != 0)
        return CTL_INFRASTRUCTURE;
    ctl.terminal = isatty(STDOUT_FILENO) != 0;
    ctl.color = ctl.terminal && getenv("NO_COLOR") == NULL;
    ctl.loop = loop_new();
    if (ctl.loop == NULL) {
        diag_error(diag, ERR_SYS, "the system gives no event loop");
        return CTL_INFRASTRUCTURE;
    }
    status = run(&ctl, cmd, argc, argv);
    loop_free(&ctl.loop);
    return status;
}

static int dispatch(const char *program, int argc, char **argv, struct diag *diag)
{
    int words = 0;
    const struct cmd *cmd;

    if (argc > 0 && is_help(argv[0])) {
        help(NULL);
        return CTL_DONE;
    }
    if (argc > 0 && (strcmp(argv[0], "-V") == 0 || strcmp(argv[0], "--version") == 0)) {
        printf("makespan %s\n", version_text());
        return CTL_DONE;
    }
    if (argc > 1 && is_help(argv[1]) && is_noun(argv[0])) {
        help(argv[0]);
        return CTL_DONE;
    }
    cmd = cmds_find(argc, argv, &words, diag);
    if (cmd == NULL)
        return CTL_USAGE;
    if (wants_help(argc - words, argv + words)) {
        struct buf text = BUF_INIT;

        cmds_usage(cmd, &text);
        print(&text);
        return CTL_DONE;
    }
    return start(program, cmd, argc - words, argv + words, diag);
}

int main(int argc, char **argv)
{
    struct diag *diag = diag_new(1000);
    int status;

    signal(SIGPIPE, SIG_IGN);
    if (log_open("makespan", NULL, LOG_ERROR) != 0)
        return CTL_INFRASTRUCTURE;
    status = dispatch(argv[0], argc - 1, argv + 1, diag);
    if (out_close() != 0) {
        diag_error(diag, ERR_IO, "standard output could not be written");
        status = ctl_exit_join(status, CTL_INFRASTRUCTURE);
    }
    diag_show(diag);
    diag_free(&diag);
    log_close();
    return status;
}

/* children.c: runs makespand and makespan-worker for `init` and `local`. Owns the children and their pipes. */
#include "coordinator/ctl/children.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/proc.h"
#include "coordinator/ctl/ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* After its standard input ended a program has this long to end, and once more after SIGTERM. */
#define END_WAIT (15 * CLOCK_SEC)
#define LOG_TAIL ((size_t)2000)

struct child {
    struct proc *proc;
    bool ended;
    struct proc_end end;
    int guard; /* the writing end of its standard input */
    char *log;
    char *name;
};

static bool in_path(const char *name)
{
    const char *path = getenv("PATH");
    char file[FILE_PATH_MAX];

    while (path != NULL && *path != '\0') {
        size_t n = strcspn(path, ":");

        if (n > 0 && snprintf(file, sizeof file, "%.*s/%s", (int)n, path, name) < (int)sizeof file && access(file, X_OK) == 0)
            return true;
        path += n + (path[n] == ':');
    }
    return false;
}

int children_find(struct ctl *ctl, const char *name, char *dst, size_t room)
{
    const char *slash = strrchr(ctl->program, '/');

    if (slash != NULL && snprintf(dst, room, "%.*s/%s", (int)(slash - ctl->program), ctl->program, name) < (int)room &&
        access(dst, X_OK) == 0)
        return 0;
    if (in_path(name)) {
        snprintf(dst, room, "%s", name);
        return 0;
    }
    return diag_error(ctl->diag, ERR_NOTFOUND, "the program %s is neither beside makespan nor in PATH: install the package that has it (%s)", name,
                      strcmp(name, "makespand") == 0 ? "makespan-coordinator" : "makespan-worker");
}

static void on_end(struct proc *proc, const struct proc_end *end, void *arg)
{
    struct child *c = arg;

    (void)proc;
    c->end = *end;
    c->ended = true;
}

static int spawn(struct ctl *ctl, struct child *c, const char *const *argv, int in_fd, int out_fd, int err_fd, bool new_session)
{
    struct proc_spec spec = PROC_SPEC_INIT;
    int err;

    spec.argv = argv;
    spec.env = (const char *const *)environ;
    spec.in_fd = in_fd;
    spec.out_fd = out_fd;
    spec.err_fd = err_fd;
    spec.new_session = new_session;
    err = proc_spawn(ctl->loop, &spec, on_end, c, &c->proc, ctl->diag);
    if (err != 0 && diag_errors(ctl->diag) == 0)
        diag_error(ctl->diag, err, "%s cannot be started: %s", argv[0], err_text(err));
    return err;
}

int children_run(struct ctl *ctl, const char *const *argv, int out_fd, int err_fd)
{
    struct child c = {.guard = -1};
    int err;

    fflush(stdout);
    err = spawn(ctl, &c, argv, -1, out_fd, err_fd, false);
    if (err != 0)
        return err;
    while (!c.ended)
        loop_turn(ctl->loop, CLOCK_SEC);
    proc_free(&c.proc);
    if (c.end.exec_failed)
        return diag_error(ctl->diag, ERR_CHILD, "%s cannot be started: %s", argv[0], strerror(c.end.errno_value));
    if (c.end.signaled)
        return diag_error(ctl->diag, ERR_CHILD, "%s was ended by signal %d", argv[0], c.end.signal);
    return c.end.exit_status;
}

static int make_guard(struct ctl *ctl, int pair[2])
{
    if (pipe(pair) < 0)
        return diag_error(ctl->diag, err_from_errno(errno), "no pipe: %s", strerror(errno));
    if (fcntl(pair[0], F_SETFD, FD_CLOEXEC) < 0 || fcntl(pair[1], F_SETFD, FD_CLOEXEC) < 0) {
        int saved = errno;

        close(pair[0]);
        close(pair[1]);
        return diag_error(ctl->diag, err_from_errno(saved), "no pipe: %s", strerror(saved));
    }
    return 0;
}

int children_start(struct ctl *ctl, const char *const *argv, const char *log, struct child **out)
{
    struct child *c = mem_xzalloc(sizeof *c);
    int pair[2];
    int err = make_guard(ctl, pair);
    int log_fd;

    *out = NULL;
    if (err != 0) {
        free(c);
        return err;
    }
    log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_fd < 0)
        err = diag_error(ctl->diag, err_from_errno(errno), "%s: %s", log, strerror(errno));
    else /* Ctrl-C is for the command alone: it still asks for the report, then ends its children */
        err = spawn(ctl, c, argv, pair[0], log_fd, log_fd, true);
    close(pair[0]);
    if (log_fd >= 0)
        close(log_fd);
    if (err != 0) {
        close(pair[1]);
        free(c);
        return err;
    }
    c->guard = pair[1];
    c->log = mem_xstrdup(log);
    c->name = mem_xstrdup(argv[0]);
    *out = c;
    return 0;
}

bool children_alive(const struct child *child)
{
    return !child->ended;
}

static void wait_end(struct ctl *ctl, const struct child *c)
{
    int64_t until = clock_mono_ns() + END_WAIT;

    while (!c->ended && clock_mono_ns() < until)
        loop_turn(ctl->loop, 100 * CLOCK_MS);
}

void children_stop(struct ctl *ctl, struct child **child)
{
    struct child *c = *child;

    if (c == NULL)
        return;
    close(c->guard);
    wait_end(ctl, c);
    if (!c->ended && proc_signal(c->proc, SIGTERM, false) == 0)
        wait_end(ctl, c);
    if (!c->ended && proc_signal(c->proc, SIGKILL, false) == 0) {
        diag_warn(ctl->diag, "%s had to be killed", c->name);
        wait_end(ctl, c);
    }
    proc_free(&c->proc);
    free(c->log);
    free(c->name);
    free(c);
    *child = NULL;
}

void children_show_file(const char *name, const char *path)
{
    struct buf text = BUF_INIT;
    size_t skip;

    if (file_read_all(path, (size_t)64 * 1024 * 1024, &text) == 0) {
        skip = text.len > LOG_TAIL ? text.len - LOG_TAIL : 0;
        fprintf(stderr, "%s says:\n%s", name, buf_str(&text) + skip);
    }
    buf_fini(&text);
}

void children_show_log(const struct child *child)
{
    children_show_file(child->name, child->log);
}

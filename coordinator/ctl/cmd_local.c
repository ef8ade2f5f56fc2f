/* cmd_local.c: local: a private coordinator and worker for one sweep on this machine: started, used, ended. The same programs, the same way of the data. */
#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/json.h"
#include "common/loop.h"
#include "common/str.h"
#include "coordinator/ctl/call.h"
#include "coordinator/ctl/children.h"
#include "coordinator/ctl/cmd_report.h"
#include "coordinator/ctl/cmds.h"
#include "coordinator/ctl/follow.h"
#include "coordinator/ctl/submit.h"
#include "proto/msg.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define START_WAIT (30 * CLOCK_SEC)

struct local {
    struct ctl ctl; /* with the private fleet's identity and address */
    const struct opts *opts;
    char dir[FILE_PATH_MAX - 128]; /* with room for the names in it */
    char home[FILE_PATH_MAX];
    char address[64];
    char host[65];
    char token[128];
    struct child *coordinator;
    struct child *worker;
    struct call *call;
    struct call *asked; /* what a signal interrupts; NULL while somebody else sees to it */
    bool stop;          /* a signal came: what was begun is ended, and the folder removed */
    bool begun;         /* the sweep */
};

/* --- signals --- */

static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};

static void on_signal(int number, void *arg)
{
    struct local *l = arg;

    (void)number;
    l->stop = true;
    if (l->asked != NULL)
        call_interrupt(l->asked);
}

/* What the caller had ignored, as nohup(1) does, stays so. */
static void watch_signals(struct local *l, struct loop_signal *watched[ARRAY_LEN(SIGNALS)])
{
    struct sigaction before;

    for (size_t i = 0; i < ARRAY_LEN(SIGNALS); i++)
        if (sigaction(SIGNALS[i], NULL, &before) != 0 || before.sa_handler != SIG_IGN)
            watched[i] = loop_signal_new(l->ctl.loop, SIGNALS[i], on_signal, l);
}

static int stopped(struct local *l)
{
    diag_clear(l->ctl.diag); /* what ended in the middle */
    diag_error(l->ctl.diag, ERR_STATE, "interrupted: nothing was measured");
    return CTL_UNDECIDED;
}

/* dir/name. The folder's name was checked to leave room. */
static const char *in_dir(const struct local *l, char *dst, size_t room, const char *name)
{
    snprintf(dst, room, "%s/%s", l->dir, name);
    return dst;
}

static int make_dir(struct local *l)
{
    const char *keep = opts_get(l->opts, "keep");
    const char *tmp = getenv("TMPDIR");
    int n;

    if (keep != NULL) {
        if (file_exists(keep))
            return diag_error(l->ctl.diag, ERR_EXISTS, "--keep %s: it is there already", keep);
        if (file_absolute(l->dir, FILE_PATH_MAX - 300, keep) != 0 || file_mkdirs(l->dir, 0700) != 0)
            return diag_error(l->ctl.diag, ERR_IO, "--keep %s: the folder cannot be made", keep);
        return 0;
    }
    n = snprintf(l->dir, sizeof l->dir, "%s/makespan-local-XXXXXX", tmp != NULL && tmp[0] == '/' ? tmp : "/var/tmp");
    if (n >= FILE_PATH_MAX - 300 || mkdtemp(l->dir) == NULL) {
        l->dir[0] = '\0';
        return diag_error(l->ctl.diag, ERR_IO, "no temporary folder can be made: TMPDIR names where");
    }
    return 0;
}

/* What a program says on its way is shown only when it fails: it speaks to somebody who sets up a fleet by hand. Exit status, or negative. */
static int run_quietly(struct local *l, const char *const *argv)
{
    char log[FILE_PATH_MAX];
    int fd = open(in_dir(l, log, sizeof log, "start.log"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int status;

    if (fd < 0)
        return diag_error(l->ctl.diag, ERR_IO, "%s cannot be written", log);
    status = children_run(&l->ctl, argv, fd, fd);
    close(fd);
    if (status != 0)
        children_show_file(argv[0], log);
    return status;
}

static int make_fleet(struct local *l, const char *makespand)
{
    char dir[FILE_PATH_MAX];
    const char *argv[] = {makespand, "--init", "--fleet", "local", "--operator-dir", l->home, "--dir", in_dir(l, dir, sizeof dir, "coordinator"), NULL};
    int status = run_quietly(l, argv);

    return status == 0 ? 0 : diag_error(l->ctl.diag, ERR_CHILD, "the private fleet could not be made");
}

static int start_coordinator(struct local *l, const char *makespand)
{
    char dir[FILE_PATH_MAX], port[FILE_PATH_MAX], log[FILE_PATH_MAX];
    const char *argv[] = {makespand,     "--guard", "--dir", in_dir(l, dir, sizeof dir, "coordinator"),     "--listen", "127.0.0.1:0",
                          "--port-file", in_dir(l, port, sizeof port, "port"), NULL};
    int64_t until = clock_mono_ns() + START_WAIT;
    struct buf text = BUF_INIT;
    int err = children_start(&l->ctl, argv, in_dir(l, log, sizeof log, "coordinator.log"), &l->coordinator);

    if (err != 0)
        return err;
    while (!l->stop && children_alive(l->coordinator) && !file_exists(port) && clock_mono_ns() < until)
        loop_turn(l->ctl.loop, 20 * CLOCK_MS);
    if (l->stop)
        return -ERR_STATE;
    if (!file_exists(port) || (err = file_read_all(port, 64, &text)) != 0) {
        children_show_log(l->coordinator);
        err = diag_error(l->ctl.diag, ERR_CHILD, "the private coordinator did not start");
    } else {
        snprintf(l->address, sizeof l->address, "127.0.0.1:%.*s", (int)strcspn(buf_str(&text), "\n"), buf_str(&text));
        l->ctl.address = l->address;
    }
    buf_fini(&text);
    return err;
}

static int make_token(struct local *l)
{
    const char *classes[16];
    struct msg m = {.type = MSG_TOKEN_CREATE};
    struct buf body = BUF_INIT;
    size_t n = 0;
    int status;

    for (; n < ARRAY_LEN(classes) && opts_nth(l->opts, "class", n) != NULL; n++)
        classes[n] = opts_nth(l->opts, "class", n);
    m.u.token_create.call = call_number(l->call);
    m.u.token_create.role = "worker";
    m.u.token_create.classes = classes;
    m.u.token_create.classes_count = n;
    m.u.token_create.ttl_ns = CLOCK_HOUR;
    status = call_document(l->call, m.u.token_create.call, &m, &body);
    snprintf(l->token, sizeof l->token, "%.*s", (int)strcspn(buf_str(&body), "\n"), buf_str(&body));
    buf_fini(&body);
    return status;
}

static int join_worker(struct local *l, const char *worker)
{
    char dir[FILE_PATH_MAX];
    const char *argv[] = {worker, "join", l->address, l->token, "--name", l->host, "--dir", in_dir(l, dir, sizeof dir, "worker"), NULL};
    int status = run_quietly(l, argv);

    return status == 0 ? 0 : diag_error(l->ctl.diag, ERR_CHILD, "the private worker could not join");
}

/* Whether the coordinator has heard of the worker. */
static bool worker_is_up(struct local *l)
{
    struct msg m = {.type = MSG_HOST_LIST};
    struct buf body = BUF_INIT;
    json_t *doc = NULL;
    bool up = false;

    m.u.host_list.call = call_number(l->call);
    if (call_document(l->call, m.u.host_list.call, &m, &body) == 0 &&
        (doc = json_parse("hosts", buf_str(&body), body.len, NULL)) != NULL)
        up = json_int(json_array_get(json_object_get(doc, "hosts"), 0), "seen_wall_ns", 0) > 0;
    json_decref(doc);
    buf_fini(&body);
    return up;
}

static int start_worker(struct local *l, const char *worker)
{
    char conf[FILE_PATH_MAX], log[FILE_PATH_MAX];
    const char *argv[] = {worker, "--guard", "-c", in_dir(l, conf, sizeof conf, "worker/worker.yaml"), NULL};
    int64_t until = clock_mono_ns() + START_WAIT;
    bool up = false;
    int err = children_start(&l->ctl, argv, in_dir(l, log, sizeof log, "worker.log"), &l->worker);

    if (err != 0)
        return err;
    while (!l->stop && children_alive(l->worker) && clock_mono_ns() < until && !(up = worker_is_up(l)))
        loop_turn(l->ctl.loop, 50 * CLOCK_MS);
    if (l->stop)
        return -ERR_STATE;
    if (!up) {
        children_show_log(l->worker);
        return diag_error(l->ctl.diag, ERR_CHILD, "the private worker did not start");
    }
    return 0;
}

static void own_host(struct local *l)
{
    char name[256] = "";

    if (gethostname(name, sizeof name - 1) != 0)
        name[0] = '\0';
    name[strcspn(name, ".")] = '\0';
    str_copy(l->host, sizeof l->host, str_is_name(name) ? name : "localhost");
}

static const char *format_of(const struct opts *opts)
{
    return opts_get(opts, "format") == NULL ? "table" : opts_get(opts, "format");
}

static int run_sweep(struct local *l)
{
    struct submit submit = {.action = "run", .file = l->opts->args[0], .host = l->host, .yes = true};
    struct buf out = BUF_INIT;
    char name[96];
    int status = submit_sweep(&l->ctl, l->opts, &submit, &l->call, &out);

    snprintf(name, sizeof name, "%.*s", (int)strcspn(buf_str(&out), "\n"), buf_str(&out));
    buf_fini(&out);
    l->asked = NULL;
    if (status != 0 || l->stop)
        return status;
    l->begun = true; /* a signal ends the following, and the report is made */
    status = follow_sweep(&l->ctl, &l->call, name, stderr, true);
    if (l->call == NULL)
        return status;
    return ctl_exit_join(status, report_print(l->call, name, format_of(l->opts)));
}

static int all(struct local *l)
{
    char makespand[FILE_PATH_MAX], worker[FILE_PATH_MAX];
    int status;

    own_host(l);
    if (children_find(&l->ctl, "makespand", makespand, sizeof makespand) != 0 ||
        children_find(&l->ctl, "makespan-worker", worker, sizeof worker) != 0 || make_dir(l) != 0)
        return CTL_INFRASTRUCTURE;
    in_dir(l, l->home, sizeof l->home, "operator");
    l->ctl.home = l->home;
    if (make_fleet(l, makespand) != 0 || l->stop || start_coordinator(l, makespand) != 0)
        return CTL_INFRASTRUCTURE;
    if ((status = call_open(&l->ctl, &l->call)) != 0 || l->stop)
        return status;
    l->asked = l->call;
    if ((status = make_token(l)) != 0 || l->stop)
        return status;
    if (join_worker(l, worker) != 0 || l->stop || start_worker(l, worker) != 0)
        return CTL_INFRASTRUCTURE;
    return run_sweep(l);
}

int cmd_local(struct ctl *ctl, const struct opts *opts)
{
    struct local l = {.ctl = *ctl, .opts = opts};
    struct loop_signal *watched[ARRAY_LEN(SIGNALS)] = {NULL};
    int status = report_check_format(format_of(opts), ctl->diag); /* before anything is started */

    l.ctl.json = false; /* --format is the report's: the sweep's name comes as text */
    if (status == 0)
        status = submit_check(ctl, opts, opts->args[0]);
    if (status != 0)
        return status;
    watch_signals(&l, watched);
    status = all(&l);
    loop_turn(ctl->loop, 0); /* a signal that ended a child may wait still */
    if (l.stop && !l.begun)
        status = stopped(&l);
    call_close(&l.call);
    children_stop(&l.ctl, &l.worker);
    children_stop(&l.ctl, &l.coordinator);
    if (opts_get(opts, "keep") == NULL && l.dir[0] != '\0' && file_remove_tree(l.dir) != 0)
        diag_warn(ctl->diag, "the temporary folder %s could not be removed", l.dir);
    for (size_t i = 0; i < ARRAY_LEN(SIGNALS); i++)
        loop_signal_free(&watched[i]);
    return status;
}

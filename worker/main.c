/* main.c: makespan-worker: options, configuration, and the order in which everything starts and
 * ends. Wiring only. */
#include "common/buf.h"
#include "common/daemon.h"
#include "common/diag.h"
#include "common/stop.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/version.h"
#include "worker/agent.h"
#include "worker/conf.h"
#include "worker/identity.h"
#include "worker/join.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_DONE = 0, EXIT_INFRASTRUCTURE = 3, EXIT_USAGE = 64 };

static const char *const USAGE =
    "usage: makespan-worker [-b] [-c FILE] [--guard] [run]\n"
    "       makespan-worker -n | -p [-c FILE]\n"
    "       makespan-worker join HOST:PORT TOKEN [--name NAME] [--dir DIR] [-c FILE]\n"
    "\n"
    "Runs and times builds on this host for the coordinator of its fleet.\n"
    "\n"
    "  -b, --background   go to the background once everything is ready; log.file says\n"
    "                     where the log goes then\n"
    "  -c, --config FILE  read this configuration; else " WORKER_CONF_PATH "\n"
    "                     where it exists (join writes it when it is not there)\n"
    "      --guard        end when standard input ends\n"
    "  -n, --check        check the configuration and end\n"
    "  -p, --print        print the effective configuration and end\n"
    "      --name NAME    join: name of this host; else its own, up to the first dot\n"
    "      --dir DIR      join: the worker's folder; else " WORKER_DIR ";\n"
    "                     the configuration is DIR/worker.yaml then\n"
    "  -V, --version      print the version and end\n"
    "  -h, --help         print this and end\n"
    "\n"
    "SIGTERM: the run in progress is killed and reported as interrupted, then the worker\n"
    "ends; a second one ends it at once.\n"
    "Exit status: 0 done, 3 it could not start, go on or join, 64 usage or configuration.\n"
    "Manual: makespan-worker(8), makespan-worker.yaml(5).\n";

struct options {
    bool background, check, print, guard, join;
    const char *config, *name, *dir, *address, *token;
};

enum { OPT_GUARD = 256, OPT_NAME, OPT_DIR };

static const struct option LONG_OPTIONS[] = {
    {"background", no_argument, NULL, 'b'},    {"config", required_argument, NULL, 'c'},
    {"guard", no_argument, NULL, OPT_GUARD},   {"check", no_argument, NULL, 'n'},
    {"print", no_argument, NULL, 'p'},         {"name", required_argument, NULL, OPT_NAME},
    {"dir", required_argument, NULL, OPT_DIR}, {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
};

static int usage(const char *text, const char *what)
{
    fprintf(stderr, "makespan-worker: %s%s: makespan-worker -h shows the options\n", text, what);
    return EXIT_USAGE;
}

/* The words behind the options; -1 to go on, else the exit status. */
static int read_words(int argc, char **argv, struct options *o)
{
    int n = argc - optind;
    char **word = argv + optind;

    o->join = n > 0 && strcmp(word[0], "join") == 0;
    if (o->join && n != 3)
        return usage("join wants HOST:PORT and TOKEN", "");
    if (o->join) {
        o->address = word[1];
        o->token = word[2];
        return o->check || o->print ? usage("join takes neither -n nor -p", "") : -1;
    }
    if (o->name != NULL || o->dir != NULL)
        return usage("--name and --dir belong to join", "");
    if (o->guard && o->background)
        return usage("--guard and -b exclude each other", "");
    if (n > 1 || (n == 1 && strcmp(word[0], "run") != 0))
        return usage("unexpected argument ", word[n > 1 && strcmp(word[0], "run") == 0 ? 1 : 0]);
    return -1;
}

/* Reads the options; -1 to go on, else the exit status. */
static int read_options(int argc, char **argv, struct options *o)
{
    int c;

    *o = (struct options){0};
    while ((c = getopt_long(argc, argv, "bc:npVh", LONG_OPTIONS, NULL)) != -1) {
        switch (c) {
        case 'b':
            o->background = true;
            break;
        case 'c':
            o->config = optarg;
            break;
        case OPT_GUARD:
            o->guard = true;
            break;
        case 'n':
            o->check = true;
            break;
        case 'p':
            o->print = true;
            break;
        case OPT_NAME:
            o->name = optarg;
            break;
        case OPT_DIR:
            o->dir = optarg;
            break;
        case 'V':
            printf("makespan-worker %s\n", version_text());
            return EXIT_DONE;
        case 'h':
            fputs(USAGE, stdout);
            return EXIT_DONE;
        default:
            fputs("makespan-worker -h shows the options\n", stderr);
            return EXIT_USAGE;
        }
    }
    return read_words(argc, argv, o);
}

/* --- join --- */

/* Where the configuration is: that of -c, that of --dir, or the usual place. */
static int config_path(const struct options *o, const char *dir, char *dst, size_t room)
{
    if (o->config == NULL && o->dir != NULL)
        return file_path(dst, room, dir, "worker.yaml");
    return file_absolute(dst, room, o->config != NULL ? o->config : WORKER_CONF_PATH);
}

static bool is_usage_error(int err)
{
    return err == -ERR_SYNTAX || err == -ERR_CHECKSUM || err == -ERR_VERSION || err == -ERR_INVAL;
}

static int do_join(const struct options *o, struct diag *diag)
{
    char dir[FILE_PATH_MAX], config[FILE_PATH_MAX];
    struct worker_join join = {
        .address = o->address, .token = o->token, .name = o->name, .dir = dir, .config = config};
    struct buf said = BUF_INIT;
    int err = file_absolute(dir, sizeof dir, o->dir != NULL ? o->dir : WORKER_DIR);

    if (err == 0)
        err = config_path(o, dir, config, sizeof config);
    if (err != 0)
        err = diag_error(diag, ERR_INVAL, "the name of the folder is too long, or the current folder is gone");
    else
        err = worker_join(&join, &said, diag);
    fputs(buf_str(&said), stdout);
    buf_fini(&said);
    return err == 0 ? EXIT_DONE : is_usage_error(err) ? EXIT_USAGE : EXIT_INFRASTRUCTURE;
}

/* --- run --- */

struct serving {
    struct loop *loop;
    struct agent *agent;
    unsigned signals;
};

static void on_stopped(void *arg)
{
    struct serving *s = arg;

    loop_stop(s->loop);
}

static void end(struct serving *s, const char *why)
{
    if (s->signals++ > 0 || s->agent == NULL) {
        log_info("%s: the worker ends at once", why);
        loop_stop(s->loop);
        return;
    }
    log_info("%s: the worker stops", why);
    agent_stop(s->agent, on_stopped, s);
}

/* Without whoever started it there is nobody to wait for. */
static void on_stop(void *arg, bool guard, const char *why)
{
    struct serving *s = arg;

    if (guard)
        s->signals = 1;
    end(s, why);
}

static int serve(const struct options *o, const struct worker_conf *conf, struct identity *identity,
                 int ready_fd, struct diag *diag)
{
    struct serving s = {.loop = loop_new()};
    struct agent_setup setup = {.loop = s.loop, .conf = conf, .identity = identity};
    struct stop *stop;
    int err;

    if (s.loop == NULL)
        return diag_error(diag, ERR_SYS, "the system gives no event loop");
    stop = stop_new(s.loop, o->guard, on_stop, &s);
    err = agent_new(&setup, &s.agent, diag);
    if (err == 0) {
        log_info("makespan-worker %s, %s of fleet %s, folder %s", version_text(), identity->name,
                 identity->fleet, conf->dir);
        daemon_ready(ready_fd);
        loop_run(s.loop);
    }
    agent_free(&s.agent);
    stop_free(&stop);
    loop_free(&s.loop);
    return err;
}

static int run(const struct options *o, const struct worker_conf *conf, struct diag *diag)
{
    struct identity identity;
    int ready_fd = -1;
    int err = log_open("makespan-worker", conf->log_file, (enum log_level)conf->log_level);

    if (err != 0)
        return diag_error(diag, err, "the log %s cannot be opened: %s",
                          conf->log_file == NULL ? "" : conf->log_file, err_text(err));
    daemon_max_files();
    err = identity_load(conf->dir, &identity, diag);
    if (err == 0 && o->background)
        err = daemon_start(&ready_fd, diag);
    if (err == 0)
        err = serve(o, conf, &identity, ready_fd, diag);
    identity_fini(&identity);
    log_close();
    return err;
}

int main(int argc, char **argv)
{
    struct options o;
    struct worker_conf conf;
    struct diag *diag;
    const struct conf_row *rows;
    const char *path;
    size_t n;
    int status = read_options(argc, argv, &o);

    if (status >= 0)
        return status;
    signal(SIGPIPE, SIG_IGN);
    /* Builds get it, whoever starts this; folders that builds have to get through have it too. What
     * is secret has a mode of its own. */
    umask(022);
    diag = diag_new(64);
    if (o.join) {
        status = do_join(&o, diag);
    } else {
        path = o.config != NULL                ? o.config
               : file_exists(WORKER_CONF_PATH) ? WORKER_CONF_PATH
                                               : NULL;
        status = worker_conf_load(path, &conf, diag) == 0 ? EXIT_DONE : EXIT_USAGE;
        rows = worker_conf_rows(&n);
        if (status == EXIT_DONE && o.print)
            conf_show(rows, n, &conf);
        else if (status == EXIT_DONE && !o.check && run(&o, &conf, diag) != 0)
            status = EXIT_INFRASTRUCTURE;
        worker_conf_free(&conf);
    }
    diag_show(diag);
    diag_free(&diag);
    return status;
}

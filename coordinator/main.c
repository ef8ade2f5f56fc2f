/* main.c: makespand, the coordinator daemon: options, configuration, and the order in which everything starts and ends. Wiring only. */
#include "common/daemon.h"
#include "common/diag.h"
#include "common/stop.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/version.h"
#include "coordinator/conf.h"
#include "coordinator/coord.h"
#include "coordinator/init.h"
#include "coordinator/web/web.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_DONE = 0, EXIT_INFRASTRUCTURE = 3, EXIT_USAGE = 64 };

static const char *const USAGE =
    "usage: makespand [-b | --guard] [-c FILE] [-d DIR] [-l ADDRESS] [--port-file FILE]\n"
    "       makespand -n | -p [-c FILE]\n"
    "       makespand --init --fleet NAME --operator-dir DIR [--operator NAME] [--address ADDR]\n"
    "                 [-c FILE] [-d DIR] [-l ADDRESS]\n"
    "\n"
    "The coordinator of a fleet: takes sweeps, hands runs to workers, keeps the results.\n"
    "\n"
    "  -b, --background     go to the background once it listens; log.file says where the log goes then\n"
    "  -c, --config FILE    read this configuration; else " COORD_CONF_PATH " where it exists\n"
    "  -d, --dir DIR        the folder of the database, instead of the configuration's\n"
    "  -l, --listen ADDRESS the address, instead of the configuration's; with --init also\n"
    "                       written to FILE, to makespand.yaml in DIR, or to the usual one\n"
    "  -n, --check          check the configuration and end\n"
    "  -p, --print          print the effective configuration and end\n"
    "      --guard          end when standard input ends\n"
    "      --port-file FILE write the port that is listened at to this file once it is\n"
    "      --init           make a fleet: its authority, its database, an admin's identity\n"
    "      --fleet NAME     the name of the new fleet\n"
    "      --operator-dir DIR  where the admin's identity is written\n"
    "      --operator NAME  the admin's name; else admin\n"
    "      --address ADDR   HOST:PORT by which the coordinator is reached; else this machine\n"
    "  -V, --version        print the version and end\n"
    "  -h, --help           print this and end\n"
    "\n"
    "Exit status: 0 done, 3 it could not start or go on, 64 usage or configuration.\n"
    "Manual: makespand(8), makespand.yaml(5).\n";

struct options {
    bool background, check, print, init, guard;
    const char *config, *dir, *listen, *port_file, *fleet, *operator_dir, *operator_name, *address;
};

enum { OPT_INIT = 256, OPT_FLEET, OPT_OPERATOR_DIR, OPT_OPERATOR, OPT_ADDRESS, OPT_PORT_FILE, OPT_GUARD };

static const struct option LONG_OPTIONS[] = {
    {"background", no_argument, NULL, 'b'},
    {"config", required_argument, NULL, 'c'},
    {"dir", required_argument, NULL, 'd'},
    {"listen", required_argument, NULL, 'l'},
    {"check", no_argument, NULL, 'n'},
    {"print", no_argument, NULL, 'p'},
    {"port-file", required_argument, NULL, OPT_PORT_FILE},
    {"guard", no_argument, NULL, OPT_GUARD},
    {"init", no_argument, NULL, OPT_INIT},
    {"fleet", required_argument, NULL, OPT_FLEET},
    {"operator-dir", required_argument, NULL, OPT_OPERATOR_DIR},
    {"operator", required_argument, NULL, OPT_OPERATOR},
    {"address", required_argument, NULL, OPT_ADDRESS},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* Reads the options; -1 to go on, else the exit status. */
static int read_options(int argc, char **argv, struct options *o)
{
    int c;

    *o = (struct options){.operator_name = "admin"};
    while ((c = getopt_long(argc, argv, "bc:d:l:npVh", LONG_OPTIONS, NULL)) != -1) {
        switch (c) {
        case 'b':
            o->background = true;
            break;
        case 'c':
            o->config = optarg;
            break;
        case 'd':
            o->dir = optarg;
            break;
        case 'l':
            o->listen = optarg;
            break;
        case 'n':
            o->check = true;
            break;
        case 'p':
            o->print = true;
            break;
        case OPT_PORT_FILE:
            o->port_file = optarg;
            break;
        case OPT_GUARD:
            o->guard = true;
            break;
        case OPT_INIT:
            o->init = true;
            break;
        case OPT_FLEET:
            o->fleet = optarg;
            break;
        case OPT_OPERATOR_DIR:
            o->operator_dir = optarg;
            break;
        case OPT_OPERATOR:
            o->operator_name = optarg;
            break;
        case OPT_ADDRESS:
            o->address = optarg;
            break;
        case 'V':
            printf("makespand %s\n", version_text());
            return EXIT_DONE;
        case 'h':
            fputs(USAGE, stdout);
            return EXIT_DONE;
        default:
            fputs("makespand -h shows the options\n", stderr);
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "makespand: unexpected argument %s: makespand -h shows the options\n", argv[optind]);
        return EXIT_USAGE;
    }
    if (o->guard && o->background) {
        fputs("makespand: --guard and -b exclude each other: makespand -h shows the options\n", stderr);
        return EXIT_USAGE;
    }
    if (o->init && (o->fleet == NULL || o->operator_dir == NULL)) {
        fputs("makespand: --init needs --fleet NAME and --operator-dir DIR\n", stderr);
        return EXIT_USAGE;
    }
    if (!o->init && (o->fleet != NULL || o->operator_dir != NULL || o->address != NULL)) {
        fputs("makespand: --fleet, --operator-dir and --address belong to --init\n", stderr);
        return EXIT_USAGE;
    }
    return -1;
}

static void replace(char **member, const char *value)
{
    char *copy;

    if (value == NULL)
        return;
    copy = strdup(value);
    if (copy == NULL)
        abort();
    free(*member);
    *member = copy;
}

/* The file of -c; for a new fleet in a folder of its own the one there; else the usual one. */
static int find_config(const struct options *o, char *dst, size_t room, struct diag *diag)
{
    const char *path = o->config != NULL ? o->config : COORD_CONF_PATH;
    int err = o->init && o->config == NULL && o->dir != NULL ? file_path(dst, room, o->dir, "makespand.yaml") : file_absolute(dst, room, path);

    return err == 0 ? 0 : diag_error(diag, ERR_INVAL, "the name of the configuration is too long");
}

static int load(const struct options *o, struct coord_conf *conf, struct diag *diag)
{
    char path[FILE_PATH_MAX];
    int err = find_config(o, path, sizeof path, diag);
    bool optional = o->config == NULL || (o->init && o->listen != NULL); /* init writes it */
    int err_load = coord_conf_load(err != 0 || (optional && !file_exists(path)) ? NULL : path, conf, diag);

    if (err != 0 || err_load != 0)
        return err != 0 ? err : err_load;
    replace(&conf->dir, o->dir);
    replace(&conf->listen, o->listen);
    if (conf->dir[0] != '/')
        return diag_error(diag, ERR_INVAL, "the folder %s must be given with its whole path", conf->dir);
    return 0;
}

/* Where the configuration of a new fleet's daemon is, or goes to. */
static int begin_fleet(const struct options *o, const struct coord_conf *conf, struct diag *diag)
{
    char config[FILE_PATH_MAX];
    int err = find_config(o, config, sizeof config, diag);
    struct init_request request = {.fleet = o->fleet,
                                   .operator_dir = o->operator_dir,
                                   .operator_name = o->operator_name,
                                   .config = config,
                                   .write_config = o->listen != NULL,
                                   .address = o->address};

    return err == 0 ? init_fleet(&request, conf, diag) : err;
}

static void on_end(void *arg, bool guard, const char *why)
{
    (void)guard;
    log_info("%s: the coordinator stops", why);
    loop_stop(arg);
}

static int write_port(const struct options *o, uint16_t port, struct diag *diag)
{
    char text[16];
    int n = snprintf(text, sizeof text, "%u\n", port);
    int err;

    if (o->port_file == NULL)
        return 0;
    err = file_write_atomic(o->port_file, text, (size_t)n, 0644);
    return err == 0 ? 0 : diag_error(diag, err, "the file %s cannot be written: %s", o->port_file, err_text(err));
}

/* Until a signal says to stop. `ready_fd` is that of daemon_start(), or -1. */
static int serve(const struct options *o, const struct coord_conf *conf, int ready_fd, struct diag *diag)
{
    struct loop *loop = loop_new();
    struct stop *stop = NULL;
    struct coord *coord = NULL;
    int err;

    if (loop == NULL)
        return diag_error(diag, ERR_SYS, "the system gives no event loop");
    stop = stop_new(loop, o->guard, on_end, loop);
    err = coord_new(loop, conf, NULL, &coord, diag);
    if (err == 0)
        err = write_port(o, coord_port(coord), diag);
    if (err == 0) {
        log_info("makespand %s listens at %s (port %u), folder %s", version_text(), conf->listen, coord_port(coord), conf->dir);
        daemon_ready(ready_fd);
        loop_run(loop);
    }
    coord_free(&coord);
    stop_free(&stop);
    loop_free(&loop);
    return err;
}

/* The dashboard's process: nothing to do yet but to end with the coordinator (conf.c refuses web.enabled). */
static int web_child(int fd, void *arg)
{
    (void)fd;
    (void)arg;
    return 0;
}

static int run(const struct options *o, const struct coord_conf *conf, struct diag *diag)
{
    struct web *web = NULL;
    int ready_fd = -1;
    int err = log_open("makespand", conf->log_file, (enum log_level)conf->log_level);

    if (err != 0)
        return diag_error(diag, err, "the log %s cannot be opened: %s", conf->log_file == NULL ? "" : conf->log_file, err_text(err));
    signal(SIGPIPE, SIG_IGN);
    daemon_max_files();
    if (o->background)
        err = daemon_start(&ready_fd, diag);
    /* Before any event base exists: kqueue does not survive a fork, and the child must hold no key. */
    if (err == 0 && conf->web)
        err = web_fork(web_child, NULL, &web, diag);
    if (err == 0)
        err = serve(o, conf, ready_fd, diag);
    web_free(&web);
    log_close();
    return err;
}

int main(int argc, char **argv)
{
    struct options o;
    struct coord_conf conf;
    const struct conf_row *rows;
    struct diag *diag;
    size_t n;
    int status = read_options(argc, argv, &o);
    int err;

    if (status >= 0)
        return status;
    diag = diag_new(64);
    err = load(&o, &conf, diag);
    status = err == 0 ? EXIT_DONE : EXIT_USAGE;
    if (err == 0 && o.print) {
        rows = coord_conf_rows(&n);
        conf_show(rows, n, &conf);
    } else if (err == 0 && !o.check) {
        err = o.init ? begin_fleet(&o, &conf, diag) : run(&o, &conf, diag);
        status = err == 0 ? EXIT_DONE : o.init && err == -ERR_INVAL ? EXIT_USAGE : EXIT_INFRASTRUCTURE;
    }
    diag_show(diag);
    coord_conf_free(&conf);
    diag_free(&diag);
    return status;
}

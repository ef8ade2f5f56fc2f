/* init.c: makes a fleet. Owns the text of a first configuration; keys and certificates are ca's. */
#include "coordinator/init.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/conf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/str.h"
#include "coordinator/ca/ca.h"
#include "coordinator/conf.h"
#include "coordinator/store/store.h"
#include "proto/conn_addr.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Where others find the coordinator. */
struct places {
    char operator_address[CONN_HOST_MAX + 16]; /* for operators of this machine */
    char join_address[CONN_HOST_MAX + 16];     /* for the hint how a host joins */
};

static bool is_every_address(const char *host)
{
    return host[0] == '\0' || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

static void put_address(char *dst, size_t room, const char *host, unsigned port)
{
    bool v6 = strchr(host, ':') != NULL;

    snprintf(dst, room, "%s%s%s:%u", v6 ? "[" : "", host, v6 ? "]" : "", port);
}

static int find_places(const struct init_request *r, const char *listen, struct places *out, struct diag *diag)
{
    char host[CONN_HOST_MAX], name[CONN_HOST_MAX] = "";
    uint16_t port = 0;
    int err = r->address != NULL ? conn_addr_split(r->address, false, host, &port, diag) : conn_addr_split(listen, true, host, &port, diag);

    if (err != 0)
        return err;
    if (port == 0)
        return diag_error(diag, ERR_INVAL, "listen: %s: nobody would find a port that the system chooses: give one, or --address", listen);
    put_address(out->operator_address, sizeof out->operator_address, is_every_address(host) ? "127.0.0.1" : host, port);
    if (is_every_address(host) && gethostname(name, sizeof name - 1) == 0 && name[0] != '\0')
        put_address(out->join_address, sizeof out->join_address, name, port);
    else
        put_address(out->join_address, sizeof out->join_address, is_every_address(host) ? "HOST" : host, port);
    return 0;
}

/* --- the configuration --- */

static int check_config(const struct init_request *r, const struct coord_conf *conf, struct diag *diag)
{
    struct coord_conf there;
    int err;

    if (!r->write_config || !file_exists(r->config))
        return 0;
    err = coord_conf_load(r->config, &there, diag);
    if (err == 0 && !str_eq(there.listen, conf->listen))
        err = diag_error(diag, ERR_INVAL, "%s is there already and says listen: %s, not %s: change it there", r->config, there.listen, conf->listen);
    if (err == 0 && !str_eq(there.dir, conf->dir))
        err = diag_error(diag, ERR_INVAL, "%s is there already and says dir: %s, not %s: change it there", r->config, there.dir, conf->dir);
    coord_conf_free(&there);
    return err;
}

static int write_config(const struct init_request *r, const struct coord_conf *conf, struct diag *diag)
{
    struct buf text = BUF_INIT;
    char parent[FILE_PATH_MAX];
    char *slash;
    int err = 0;

    if (!r->write_config || file_exists(r->config))
        return 0;
    buf_add_str(&text, "# Written by makespan init; all options: makespand.yaml(5).\nlisten: ");
    conf_add_text(&text, conf->listen);
    buf_add_str(&text, "\ndir: ");
    conf_add_text(&text, conf->dir);
    buf_add_char(&text, '\n');
    str_copy(parent, sizeof parent, r->config);
    slash = strrchr(parent, '/');
    if (slash != NULL && slash != parent) {
        *slash = '\0';
        err = file_mkdirs(parent, 0755);
    }
    if (err == 0)
        err = file_write_atomic(r->config, text.data, text.len, 0644);
    buf_fini(&text);
    if (err == 0)
        return 0;
    return diag_error(diag, err, "the fleet was made, but %s cannot be written: %s; write it by hand: listen: %s, dir: %s", r->config,
                      err_text(err), conf->listen, conf->dir);
}

static int write_address(const struct init_request *r, const struct places *places, struct diag *diag)
{
    char path[FILE_PATH_MAX];
    struct buf text = BUF_INIT;
    int err = file_path(path, sizeof path, r->operator_dir, CA_OPERATOR_ADDRESS);

    buf_printf(&text, "%s\n", places->operator_address);
    if (err == 0)
        err = file_write_atomic(path, text.data, text.len, 0644);
    buf_fini(&text);
    return err == 0 ? 0 : diag_error(diag, err, "%s/" CA_OPERATOR_ADDRESS " cannot be written: %s", r->operator_dir, err_text(err));
}

/* --- the fleet --- */

static int make_authority(const struct init_request *r, const char *dir, struct diag *diag)
{
    struct store *store = NULL;
    char path[FILE_PATH_MAX];
    int err = file_mkdirs(dir, 0700);

    if (err != 0)
        return diag_error(diag, err, "the folder %s cannot be made: %s", dir, err_text(err));
    if ((err = file_path(path, sizeof path, dir, "makespan.db")) != 0)
        return diag_error(diag, err, "the name of the folder %s is too long", dir);
    err = store_open(path, NULL, 0, &store, diag);
    if (err == 0) {
        struct ca_init init = {.dir = dir,
                               .fleet = r->fleet,
                               .operator_dir = r->operator_dir,
                               .operator_name = r->operator_name,
                               .store = store,
                               .wall_ns = clock_wall_ns()};

        err = ca_init(&init, diag);
    }
    store_close(&store);
    return err;
}

static void say_next(const struct init_request *r, const struct coord_conf *conf, const struct places *places)
{
    const char *option = "", *value = "";

    if (file_exists(r->config) && strcmp(r->config, COORD_CONF_PATH) != 0) {
        option = " -c ";
        value = r->config;
    } else if (!file_exists(r->config) && strcmp(conf->dir, COORD_DIR) != 0) {
        option = " --dir ";
        value = conf->dir;
    }
    fprintf(stderr,
            "next: start `makespand%s%s`, then `makespan token create --role worker`, and on each host `makespan-worker join %s TOKEN`\n",
            option, value, places->join_address);
}

int init_fleet(const struct init_request *r, const struct coord_conf *conf, struct diag *diag)
{
    struct places places;
    int err = find_places(r, conf->listen, &places, diag);

    if (err == 0)
        err = check_config(r, conf, diag);
    if (err == 0)
        err = make_authority(r, conf->dir, diag);
    if (err == 0)
        err = write_config(r, conf, diag);
    if (err == 0)
        err = write_address(r, &places, diag);
    if (err != 0)
        return err;
    printf("fleet %s: authority and database in %s, identity of %s in %s\n", r->fleet, conf->dir, r->operator_name, r->operator_dir);
    fflush(stdout);
    say_next(r, conf, &places);
    return 0;
}

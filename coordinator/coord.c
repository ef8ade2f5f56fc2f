/* coord.c: wires the rooms together, and ends each turn: the plan does what is due, all rows of the turn are committed at once, and only then leaves what was promised.
 *
 * When the commit fails, nothing that was promised leaves: the rooms forget the turn, the workers whose records were in it are cut off and deliver again, and until a write succeeds nothing new is
 * accepted and nothing is handed out. */
#include "coordinator/coord.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/rand.h"
#include "coordinator/blob/blob.h"
#include "coordinator/ca/ca.h"
#include "coordinator/conf.h"
#include "coordinator/net/net.h"
#include "coordinator/news/news.h"
#include "coordinator/plan/fleet.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/sweep.h"
#include "coordinator/resolve.h"
#include "coordinator/result/ingest.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/store.h"
#include "proto/pki.h"
#include "proto/tls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between tries to write while the database cannot be written. */
#define PROBE_PAUSE CLOCK_SEC
/* The coordinator's own certificate is looked at this often. */
#define RENEW_PAUSE CLOCK_DAY

struct coord {
    unsigned magic;
    const struct coord_conf *conf;
    struct loop *loop;
    struct store *store;
    struct ca *ca;
    struct news *news;
    struct blob *blob;
    struct resolve *resolve;
    struct ingest *ingest;
    struct plan *plan;
    struct net *net;
    struct tls *tls;
    struct loop_timer *wake;  /* the plan's */
    struct loop_timer *probe; /* while stuck */
    struct loop_timer *renew;
    bool stuck;
    char stuck_text[512];
};
#define COORD_MAGIC 0x636f6f72u

static struct plan_now now(void)
{
    return (struct plan_now){.mono_ns = clock_mono_ns(), .wall_ns = clock_wall_ns()};
}

/* --- upwards from the plan and from ingest --- */

static void op_assign(void *arg, const struct plan_assignment *assignment)
{
    struct coord *c = arg;

    net_send_assign(c->net, assignment);
}

static void op_withdraw(void *arg, int64_t host, int64_t run, uint32_t attempt)
{
    struct coord *c = arg;

    net_send_withdraw(c->net, host, run, attempt);
}

static void op_cancel(void *arg, int64_t host, int64_t run, uint32_t attempt, const char *text)
{
    struct coord *c = arg;

    net_send_cancel(c->net, host, run, attempt, text);
}

static void op_away_ok(void *arg, int64_t host, int64_t run, uint32_t attempt)
{
    struct coord *c = arg;

    net_send_away_ok(c->net, host, run, attempt);
}

static int op_event(void *arg, const struct model_event *event)
{
    struct coord *c = arg;

    return news_add(c->news, event->kind, event->sweep, event->host, event->run, event->who, "%s", event->text);
}

static int op_resolve(void *arg, uint64_t ticket, const struct spec_expr *expr, bool archive, struct diag *diag)
{
    struct coord *c = arg;

    return resolve_start(c->resolve, ticket, expr, archive, diag);
}

static void op_resolve_cancel(void *arg, uint64_t ticket)
{
    struct coord *c = arg;

    resolve_cancel(c->resolve, ticket);
}

static uint64_t op_random(void *arg)
{
    uint64_t v;

    (void)arg;
    rand_bytes(&v, sizeof v);
    return v;
}

static const struct plan_ops PLAN_OPS = {.assign = op_assign,
                                         .withdraw = op_withdraw,
                                         .cancel = op_cancel,
                                         .away_ok = op_away_ok,
                                         .event = op_event,
                                         .resolve = op_resolve,
                                         .resolve_cancel = op_resolve_cancel,
                                         .random = op_random};

static bool op_out_of_order(void *arg, int64_t run, uint32_t attempt)
{
    struct coord *c = arg;

    return plan_out_of_order(c->plan, run, attempt);
}

static int op_whole(void *arg, int64_t host, const struct model_attempt *attempt)
{
    struct coord *c = arg;

    return plan_attempt_whole(c->plan, now(), host, attempt);
}

static int op_rejected(void *arg, int64_t host, int64_t run, uint32_t attempt, const char *why)
{
    struct coord *c = arg;

    return plan_attempt_rejected(c->plan, now(), host, run, attempt, why);
}

static const struct ingest_ops INGEST_OPS = {.out_of_order = op_out_of_order, .whole = op_whole, .rejected = op_rejected, .event = op_event};

static void on_resolved(void *arg, uint64_t ticket, int code, const struct spec_rev *revs, size_t n, const char *text)
{
    struct coord *c = arg;

    plan_resolved(c->plan, now(), ticket, code, revs, n, text);
}

static int op_host_of(void *arg, const char *name, const char *key_hash, int64_t *id, enum host_state *state)
{
    struct coord *c = arg;
    struct mem_arena *arena = mem_arena_new(0);
    struct model_host host;
    int err = store_host_by_name(c->store, name, arena, &host);

    if (err == 0 && (host.key_hash == NULL || strcmp(host.key_hash, key_hash) != 0))
        err = -ERR_NOTFOUND;
    if (err == 0) {
        *id = host.id;
        *state = host.state;
    }
    mem_arena_free(&arena);
    return err;
}

static const char *op_refusing(void *arg)
{
    struct coord *c = arg;

    return c->stuck ? c->stuck_text : NULL;
}

static const struct net_ops NET_OPS = {.host_of = op_host_of, .refusing = op_refusing};

/* --- the turn --- */

static void get_stuck(struct coord *c, int code, const char *text)
{
    uint64_t left = 0;
    char size[32];

    if (file_disk_free(c->conf->dir, &left) == 0)
        num_size_text(size, sizeof size, left);
    else
        snprintf(size, sizeof size, "unknown");
    snprintf(c->stuck_text, sizeof c->stuck_text,
             "the coordinator cannot write its database in %s (%s; free space: %s): it accepts nothing new until it can; make room there, it goes on by itself",
             c->conf->dir, text[0] == '\0' ? err_text(code) : text, size);
    if (!c->stuck)
        log_error("%s", c->stuck_text);
    c->stuck = true;
    loop_timer_set(c->probe, PROBE_PAUSE);
}

static void lose_turn(struct coord *c, int code, const char *text)
{
    int err;

    get_stuck(c, code, text);
    store_rollback(c->store);
    ingest_rolled_back(c->ingest);
    news_rolled_back(c->news);
    err = plan_rolled_back(c->plan, now(), code);
    if (err != 0)
        log_error("the plan cannot be read again: %s", err_text(err));
    net_rolled_back(c->net, c->stuck_text);
    /* Links that were closed by that wrote their ends: they are lost too, and repeated by the next HELLO. */
    store_rollback(c->store);
    news_rolled_back(c->news);
}

static void on_turn(void *arg)
{
    struct coord *c;
    struct diag *diag;
    int64_t next = INT64_MAX;
    int err;

    CAST_OBJ(c, arg, COORD_MAGIC);
    loop_doing(c->loop, "the plan");
    if (!c->stuck)
        next = plan_turn(c->plan, now());
    if (next == INT64_MAX)
        loop_timer_clear(c->wake);
    else
        loop_timer_set(c->wake, next - clock_mono_ns());
    loop_doing(c->loop, "the commit");
    diag = diag_new(2);
    err = plan_failed(c->plan);
    if (err == 0)
        err = store_commit(c->store, diag);
    if (err != 0) {
        lose_turn(c, err, diag_first(diag));
    } else {
        ingest_committed(c->ingest);
        news_committed(c->news);
        plan_committed(c->plan);
        net_committed(c->net);
    }
    diag_free(&diag);
}

/* The turn that a timer begins does all that is to be done. */
static void on_wake(void *arg)
{
    struct coord *c;

    CAST_OBJ(c, arg, COORD_MAGIC);
    loop_doing(c->loop, "the plan's timer");
}

static void on_probe(void *arg)
{
    struct coord *c;
    struct diag *diag = diag_new(2);
    char text[32];
    int err;

    CAST_OBJ(c, arg, COORD_MAGIC);
    loop_doing(c->loop, "trying to write");
    snprintf(text, sizeof text, "%" PRId64, clock_wall_ns());
    err = store_meta_set(c->store, "written", text);
    if (err == 0)
        err = store_commit(c->store, diag);
    if (err == 0) {
        c->stuck = false;
        log_info("the database can be written again");
    } else {
        lose_turn(c, err, diag_first(diag)); /* with whatever else was written in this turn */
    }
    diag_free(&diag);
}

/* --- TLS --- */

static int64_t tls_now(void *arg)
{
    (void)arg;
    return clock_wall_ns() / CLOCK_SEC;
}

static bool tls_is_revoked(const char *serial, void *arg)
{
    struct coord *c = arg;

    return ca_is_revoked(serial, c->ca);
}

struct identity {
    struct pki_key *key;
    struct pki_cert *cert;
    struct pki_cert *authority;
};

static int read_identity(struct coord *c, struct identity *id, struct diag *diag)
{
    int err = pki_key_read(ca_server_key_path(c->ca), &id->key, diag);

    if (err == 0)
        err = pki_cert_read(ca_server_cert_path(c->ca), &id->cert, diag);
    if (err == 0)
        err = pki_cert_read(ca_authority_path(c->ca), &id->authority, diag);
    return err;
}

static void free_identity(struct identity *id)
{
    pki_key_free(&id->key);
    pki_cert_free(&id->cert);
    pki_cert_free(&id->authority);
}

static int open_tls(struct coord *c, struct diag *diag)
{
    struct identity id = {NULL, NULL, NULL};
    int err = read_identity(c, &id, diag);

    if (err == 0) {
        struct tls_server_config config = {.key = id.key,
                                           .cert = id.cert,
                                           .authority = id.authority,
                                           .joining = true,
                                           .now_s = tls_now,
                                           .is_revoked = tls_is_revoked,
                                           .arg = c};

        err = tls_new_server(&config, &c->tls, diag);
    }
    free_identity(&id);
    return err;
}

static void on_renew(void *arg)
{
    struct coord *c;
    struct identity id = {NULL, NULL, NULL};
    struct diag *diag = diag_new(2);
    bool renewed = false;
    int err;

    CAST_OBJ(c, arg, COORD_MAGIC);
    loop_doing(c->loop, "the coordinator's certificate");
    err = ca_renew_server(c->ca, clock_wall_ns(), &renewed, diag);
    if (err == 0 && renewed && (err = read_identity(c, &id, diag)) == 0)
        err = tls_renew(c->tls, id.key, id.cert, diag);
    if (err != 0)
        log_error("the coordinator's certificate cannot be renewed: %s", diag_first(diag));
    else if (renewed)
        log_info("the coordinator's certificate was renewed");
    free_identity(&id);
    diag_free(&diag);
    loop_timer_set(c->renew, RENEW_PAUSE);
}

/* --- life --- */

static int open_rooms(struct coord *c, const char *vfs, struct diag *diag)
{
    struct blob_limits limits = {
        .size_max = (uint64_t)c->conf->archive_max, .disk_keep = (uint64_t)c->conf->disk_keep, .git_ns = c->conf->git_ns};
    struct plan_conf plan_conf = {.lost_after_ns = c->conf->lost_after_ns, .take_ns = c->conf->take_ns};
    char path[FILE_PATH_MAX];
    int err;

    if ((err = file_path(path, sizeof path, c->conf->dir, "makespan.db")) != 0)
        return diag_error(diag, err, "the name of the folder %s is too long", c->conf->dir);
    if (!file_exists(path))
        return diag_error(diag, ERR_NOTFOUND, "there is no fleet in %s: make one with `makespan init` (or `makespand --init`)", c->conf->dir);
    if ((err = store_open(path, vfs, 0, &c->store, diag)) != 0)
        return err;
    if ((err = ca_open(c->conf->dir, c->store, clock_wall_ns(), &c->ca, diag)) != 0)
        return err;
    if ((err = news_new(c->store, &c->news)) != 0)
        return diag_error(diag, err, "the event table cannot be read: %s", err_text(err));
    if ((err = blob_open(c->loop, c->store, c->conf->dir, &limits, &c->blob, diag)) != 0)
        return err;
    c->resolve = resolve_new(c->blob, on_resolved, c);
    c->ingest = ingest_new(c->store, &INGEST_OPS, c);
    if ((err = plan_new(c->store, &PLAN_OPS, c, &plan_conf, now(), &c->plan, diag)) != 0)
        return err;
    return 0;
}

static int open_net(struct coord *c, struct diag *diag)
{
    struct net_rooms rooms = {.loop = c->loop,
                              .store = c->store,
                              .plan = c->plan,
                              .ingest = c->ingest,
                              .news = c->news,
                              .blob = c->blob,
                              .ca = c->ca};
    struct net_conf conf = {.listen = c->conf->listen,
                            .beat_ns = c->conf->beat_ns,
                            .handshake_ns = c->conf->handshake_ns,
                            .hello_ns = c->conf->hello_ns,
                            .max_connections = (size_t)c->conf->max_connections};
    int err = open_tls(c, diag);

    if (err != 0)
        return err;
    c->net = net_new(&rooms, &conf, &NET_OPS, c);
    return net_listen(c->net, c->tls, diag);
}

int coord_new(struct loop *loop, const struct coord_conf *conf, const char *vfs, struct coord **out, struct diag *diag)
{
    struct coord *c = mem_xzalloc(sizeof *c);
    int err;

    c->magic = COORD_MAGIC;
    c->loop = loop;
    c->conf = conf;
    c->wake = loop_timer_new(loop, on_wake, c);
    c->probe = loop_timer_new(loop, on_probe, c);
    c->renew = loop_timer_new(loop, on_renew, c);
    *out = c;
    if ((err = open_rooms(c, vfs, diag)) != 0 || (err = open_net(c, diag)) != 0) {
        coord_free(out);
        return err;
    }
    loop_hook_add(loop, on_turn, c);
    loop_timer_set(c->wake, 0); /* the first turn hands out what is due */
    loop_timer_set(c->renew, RENEW_PAUSE);
    return 0;
}

void coord_free(struct coord **coord)
{
    struct coord *c = *coord;

    if (c == NULL)
        return;
    loop_hook_remove(c->loop, on_turn, c);
    net_free(&c->net);
    tls_free(&c->tls);
    plan_free(&c->plan);
    ingest_free(&c->ingest);
    resolve_free(&c->resolve);
    blob_close(&c->blob);
    news_free(&c->news);
    ca_close(&c->ca);
    store_close(&c->store);
    loop_timer_free(&c->renew);
    loop_timer_free(&c->probe);
    loop_timer_free(&c->wake);
    c->magic = 0;
    free(c);
    *coord = NULL;
}

uint16_t coord_port(const struct coord *coord)
{
    return net_port(coord->net);
}

bool coord_is_stuck(const struct coord *coord)
{
    return coord->stuck;
}

struct store *coord_store(const struct coord *coord)
{
    return coord->store;
}

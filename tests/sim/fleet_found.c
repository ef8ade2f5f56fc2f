/* fleet_found.c: how a simulated fleet comes to be: the authority by ca_init(), each worker's
 * certificate by a token and ca_join(), the operator's as init leaves it, and a small archive. */
#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/fileio.h"
#include "common/str.h"
#include "coordinator/ca/ca.h"
#include "coordinator/store/store.h"
#include "proto/pki.h"
#include "proto/token.h"
#include "tests/sim/disk.h"
#include "tests/sim/fleet_int.h"
#include "tests/sim/sim.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OP_DIR "/srv/op"

/* Of the making of a fleet nothing may fail. */
static void need(int rc, const char *what, const struct diag *diag)
{
    if (rc != 0) {
        fprintf(stderr, "simulation: %s: %s (%d)\n", what, diag_first(diag), rc);
        abort();
    }
}

/* A worker's key stays there; its request comes here. */
static void make_key(struct node *node, struct buf *request, struct diag *diag)
{
    struct pki_key *key = NULL;
    sim_enter(node);
    need(file_mkdirs(FLEET_WORKER_DIR, 0700), "a worker's folder", diag);
    need(pki_key_make(&key, diag), "a worker's key", diag);
    need(pki_key_write(key, FLEET_WORKER_DIR "/" IDENTITY_KEY, diag), "a worker's key", diag);
    need(pki_request_make(key, request, diag), "a worker's request", diag);
    sim_enter(NULL);
    pki_key_free(&key);
}

static void write_cert(struct node *node, const char *path, const uint8_t *der, size_t n,
                       struct diag *diag)
{
    struct pki_cert *cert = NULL;
    sim_enter(node);
    need(pki_cert_from_der(der, n, &cert, diag), "a certificate", diag);
    need(pki_cert_write(cert, path, diag), path, diag);
    sim_enter(NULL);
    pki_cert_free(&cert);
}

static void join(struct fleet *f, struct ca *ca, struct node *node, struct diag *diag)
{
    struct ca_token_request token = {.role = ROLE_WORKER, .ttl_ns = CLOCK_HOUR, .made_by = "admin"};
    struct buf request = BUF_INIT;
    struct ca_grant grant;
    enum close_reason reason;
    struct token parsed;
    char text[CA_TOKEN_TEXT];
    size_t n;
    make_key(node, &request, diag);
    sim_enter(f->coord_node);
    need(ca_token_make(ca, &token, clock_wall_ns(), text, diag), "a token", diag);
    need(token_parse(text, &parsed, diag), "a token", diag);
    struct ca_request wish = {.token_id = parsed.id,
                              .secret = parsed.secret,
                              .csr = request.data,
                              .csr_len = request.len,
                              .name = node_name(node),
                              .role = ROLE_WORKER,
                              .wall_ns = clock_wall_ns()};
    need(ca_join(ca, &wish, clock_wall_ns(), &grant, &reason, diag), "a join", diag);
    const uint8_t *authority = ca_authority_der(ca, &n);
    sim_enter(NULL);
    write_cert(node, FLEET_WORKER_DIR "/" IDENTITY_CERT, grant.cert, grant.cert_len, diag);
    write_cert(node, FLEET_WORKER_DIR "/" IDENTITY_AUTHORITY, authority, n, diag);
    buf_fini(&request);
}

/* A ustar archive of one small file, src/main.c. */
static void make_archive(struct fleet *f)
{
    static const char text[] = "int main(void) { return 0; }\n";
    uint8_t *h = f->archive;
    unsigned sum = 0;
    memcpy(h, "src/main.c", 10);
    memcpy(h + 100, "0000644", 7);
    memcpy(h + 108, "0000000", 7);
    memcpy(h + 116, "0000000", 7);
    snprintf((char *)h + 124, 12, "%011zo", sizeof(text) - 1);
    memcpy(h + 136, "00000000000", 11);
    memset(h + 148, ' ', 8);
    h[156] = '0';
    memcpy(h + 257, "ustar\00000", 8);
    for (size_t i = 0; i < 512; i++) {
        sum += h[i];
    }
    snprintf((char *)h + 148, 8, "%06o", sum);
    memcpy(f->archive + 512, text, sizeof(text) - 1);
    pki_sha256(f->archive, sizeof(f->archive), f->archive_hash);
}

/* The disks of a new fleet, and the operator's identity. They are made once a process, from numbers
 * that do not depend on any seed, and are the same in each world. */
static struct {
    unsigned workers;
    struct disk *coord, *worker[FLEET_WORKERS];
    struct pki_key *key;
    struct pki_cert *cert, *authority;
} made;

static void make_authority(struct fleet *f, struct store *store, struct diag *diag)
{
    struct ca_init init = {.dir = FLEET_COORD_DIR,
                           .fleet = "lab",
                           .operator_dir = OP_DIR,
                           .operator_name = "admin",
                           .store = store,
                           .wall_ns = clock_wall_ns()};
    need(ca_init(&init, diag), "the authority", diag);
    need(pki_key_read(OP_DIR "/" CA_OPERATOR_KEY, &made.key, diag), "the operator's key", diag);
    need(pki_cert_read(OP_DIR "/" CA_OPERATOR_CERT, &made.cert, diag), "its certificate", diag);
    need(pki_cert_read(OP_DIR "/" CA_OPERATOR_AUTHORITY, &made.authority, diag), "its authority",
         diag);
    (void)f;
}

static void make_fleet(struct fleet *f, struct diag *diag)
{
    struct store *store = NULL;
    struct ca *ca = NULL;
    sim_enter(f->coord_node);
    need(file_mkdirs(FLEET_COORD_DIR, 0700), "the coordinator's folder", diag);
    need(store_open(FLEET_COORD_DIR "/makespan.db", "sim", 0, &store, diag), "the store", diag);
    make_authority(f, store, diag);
    need(ca_open(FLEET_COORD_DIR, store, clock_wall_ns(), &ca, diag), "the authority", diag);
    sim_enter(NULL);
    for (unsigned i = 0; i < f->conf.workers; i++) {
        join(f, ca, f->member[i].node, diag);
    }
    sim_enter(f->coord_node);
    need(store_commit(store, diag), "the rows", diag);
    ca_close(&ca);
    store_close(&store);
    sim_enter(NULL);
}

static void forget_fleet(void)
{
    disk_free(&made.coord);
    for (unsigned i = 0; i < made.workers; i++) {
        disk_free(&made.worker[i]);
    }
    pki_key_free(&made.key);
    pki_cert_free(&made.cert);
    pki_cert_free(&made.authority);
    made.workers = 0;
}

/* The disk as it was made becomes the node's copy of it. */
static struct disk *keep(struct node *node)
{
    struct disk *disk = node->disk;
    node->disk = NULL;
    disk_sync_all(disk);
    return disk;
}

void fleet_found(struct fleet *f)
{
    if (made.workers != f->conf.workers) {
        struct diag *diag = diag_new(4);
        struct prng luck = f->world->luck;
        forget_fleet();
        prng_init(&f->world->luck, f->conf.workers);
        for (struct node *n = f->world->nodes; n != NULL; n = n->next) {
            prng_init(&n->prng, n->index);
        }
        make_fleet(f, diag);
        f->world->luck = luck;
        made.coord = keep(f->coord_node);
        for (unsigned i = 0; i < f->conf.workers; i++) {
            made.worker[i] = keep(f->member[i].node);
        }
        made.workers = f->conf.workers;
        diag_free(&diag);
        sim_vfs_reseed();
    }
    disk_free(&f->coord_node->disk);
    f->coord_node->disk = disk_copy(made.coord);
    for (unsigned i = 0; i < f->conf.workers; i++) {
        disk_free(&f->member[i].node->disk);
        f->member[i].node->disk = disk_copy(made.worker[i]);
    }
    f->op.key = made.key;
    f->op.cert = made.cert;
    f->op.authority = made.authority;
    make_archive(f);
}

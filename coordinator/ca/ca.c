/* ca.c: the authority's files: reading them, and the coordinator's own certificate. */
#include "coordinator/ca/ca.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "coordinator/ca/ca_priv.h"
#include "coordinator/store/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define RENEW_BEFORE_S (30 * PKI_DAY_S)
#define SERVER_NAME "coordinator"

int ca_store_fails(struct store *store, int code, struct diag *diag)
{
    return diag_error(diag, code, "the database cannot be used: %s: %s", err_text(code),
                      store_error(store));
}

int ca_issue_own(const struct pki_key *authority_key, const struct pki_cert *authority,
                 const struct pki_key *key, enum role role, const char *name, int64_t now_s,
                 struct pki_cert **out, struct pki_id *id, struct diag *diag)
{
    struct buf request = BUF_INIT;
    *out = NULL;
    int rc = pki_request_make(key, &request, diag);
    if (rc == 0) {
        rc = pki_issue(authority_key, authority, request.data, request.len, role, name, now_s, out,
                       diag);
    }
    if (rc == 0) {
        rc = pki_cert_id(*out, id, diag);
    }
    if (rc < 0) {
        pki_cert_free(out);
    }
    buf_fini(&request);
    return rc;
}

int ca_key_at(const char *path, struct pki_key **out, struct diag *diag)
{
    if (file_exists(path)) {
        return pki_key_read(path, out, diag);
    }
    int rc = pki_key_make(out, diag);
    if (rc == 0) {
        rc = pki_key_write(*out, path, diag);
    }
    if (rc < 0) {
        pki_key_free(out);
    }
    return rc;
}

/* --- the coordinator's own certificate --- */

/* Whether the certificate in the file serves until `until_s`, with its end. */
static bool serves(const struct ca *ca, const struct pki_key *key, int64_t until_s, int64_t *end_s)
{
    struct pki_cert *cert = NULL;
    struct pki_id id;
    struct diag *quiet = diag_new(1); /* whatever is wrong with it: another is made */
    bool good = file_exists(ca->server_cert_path) &&
                pki_cert_read(ca->server_cert_path, &cert, quiet) == 0 &&
                pki_cert_id(cert, &id, quiet) == 0 && id.role == ROLE_COORDINATOR &&
                strcmp(id.fleet, ca->fleet) == 0 && pki_cert_is_issued_by(cert, ca->cert) &&
                pki_cert_is_of_key(cert, key) && id.end_s >= until_s;
    if (good) {
        *end_s = id.end_s;
    }
    pki_cert_free(&cert);
    diag_free(&quiet);
    return good;
}

int ca_renew_server(struct ca *ca, int64_t wall_ns, bool *renewed, struct diag *diag)
{
    struct pki_key *key = NULL;
    struct pki_cert *cert = NULL;
    struct pki_id id;
    int64_t begin_s = 0;
    int64_t authority_end_s = 0;
    int64_t now_s = wall_ns / CA_NS;
    *renewed = false;
    int rc = pki_cert_dates(ca->cert, &begin_s, &authority_end_s);
    if (rc == 0) {
        rc = ca_key_at(ca->server_key_path, &key, diag);
    }
    if (rc < 0) {
        return rc;
    }
    /* Near the authority's own end no certificate has more than what is left of it. */
    int64_t until_s =
        now_s + RENEW_BEFORE_S < authority_end_s ? now_s + RENEW_BEFORE_S : authority_end_s;
    if (!serves(ca, key, until_s, &ca->server_end_s)) {
        rc = ca_issue_own(ca->key, ca->cert, key, ROLE_COORDINATOR, SERVER_NAME, now_s, &cert, &id,
                          diag);
        if (rc == 0) {
            rc = pki_cert_write(cert, ca->server_cert_path, diag);
        }
        if (rc == 0) {
            ca->server_end_s = id.end_s;
            *renewed = true;
        }
    }
    pki_cert_free(&cert);
    pki_key_free(&key);
    return rc;
}

/* --- opening --- */

static int set_paths(struct ca *ca, const char *dir, struct diag *diag)
{
    int rc = file_path(ca->key_path, sizeof(ca->key_path), dir, CA_KEY);
    if (rc == 0) {
        rc = file_path(ca->cert_path, sizeof(ca->cert_path), dir, CA_CERT);
    }
    if (rc == 0) {
        rc = file_path(ca->server_key_path, sizeof(ca->server_key_path), dir, CA_SERVER_KEY);
    }
    if (rc == 0) {
        rc = file_path(ca->server_cert_path, sizeof(ca->server_cert_path), dir, CA_SERVER_CERT);
    }
    return rc < 0 ? diag_error(diag, rc, "%s: the folder's name is too long", dir) : 0;
}

static int read_authority(struct ca *ca, const char *dir, struct diag *diag)
{
    struct buf der = BUF_INIT;
    if (!file_exists(ca->key_path) || !file_exists(ca->cert_path)) {
        return diag_error(diag, ERR_NOTFOUND,
                          "%s: there is no authority here: `makespan init` makes one", dir);
    }
    int rc = pki_key_read(ca->key_path, &ca->key, diag);
    if (rc == 0) {
        rc = pki_cert_read(ca->cert_path, &ca->cert, diag);
    }
    if (rc == 0) {
        rc = pki_cert_fleet(ca->cert, ca->fleet, diag);
    }
    if (rc == 0 && !pki_cert_is_of_key(ca->cert, ca->key)) {
        rc = diag_error(diag, ERR_CONFLICT, "%s: " CA_CERT " is not the certificate of " CA_KEY,
                        dir);
    }
    if (rc == 0) {
        rc = pki_cert_key_hash(ca->cert, ca->hash);
    }
    if (rc == 0) {
        rc = pki_cert_to_der(ca->cert, &der);
    }
    if (rc == 0) {
        ca->der_len = der.len;
        ca->der = (uint8_t *)buf_take(&der);
        rc = ca->der == NULL ? -ERR_NOMEM : 0;
    }
    buf_fini(&der);
    return rc;
}

/* The database and the authority are of one fleet. */
static int check_fleet(struct ca *ca, const char *dir, struct diag *diag)
{
    struct mem_arena *arena = mem_arena_new(0);
    const char *fleet = NULL;
    int rc = store_meta_get(ca->store, "fleet", arena, &fleet);
    if (rc == -ERR_NOTFOUND) {
        rc = diag_error(diag, ERR_NOTFOUND,
                        "%s: the fleet was not made to the end: `makespan init` goes on", dir);
    } else if (rc < 0) {
        rc = ca_store_fails(ca->store, rc, diag);
    } else if (strcmp(fleet, ca->fleet) != 0) {
        rc = diag_error(diag, ERR_FLEET,
                        "%s: the database is of fleet %s and the authority of fleet %s", dir, fleet,
                        ca->fleet);
    }
    mem_arena_free(&arena);
    return rc;
}

static int check_end(struct ca *ca, const char *dir, int64_t now_s, struct diag *diag)
{
    int64_t begin_s = 0;
    int64_t end_s = 0;
    char end[PKI_TIME_TEXT];
    char now[PKI_TIME_TEXT];
    int rc = pki_cert_dates(ca->cert, &begin_s, &end_s);
    if (rc < 0) {
        return diag_error(diag, rc, "%s: the dates of " CA_CERT " cannot be read", dir);
    }
    if (now_s >= end_s) {
        return diag_error(diag, ERR_EXPIRED,
                          "%s: the authority of fleet %s ended at %s, and the clock says %s", dir,
                          ca->fleet, pki_time_text(end, end_s), pki_time_text(now, now_s));
    }
    return 0;
}

int ca_open(const char *dir, struct store *store, int64_t wall_ns, struct ca **out,
            struct diag *diag)
{
    bool renewed = false;
    struct ca *ca = mem_xzalloc(sizeof(*ca));
    ca->magic = CA_MAGIC;
    ca->store = store;
    int rc = set_paths(ca, dir, diag);
    if (rc == 0) {
        rc = read_authority(ca, dir, diag);
    }
    if (rc == 0) {
        rc = check_fleet(ca, dir, diag);
    }
    if (rc == 0) {
        rc = check_end(ca, dir, wall_ns / CA_NS, diag);
    }
    if (rc == 0) {
        rc = ca_renew_server(ca, wall_ns, &renewed, diag);
    }
    if (rc < 0) {
        ca_close(&ca);
    }
    *out = ca;
    return rc;
}

void ca_close(struct ca **ca)
{
    if (*ca == NULL) {
        return;
    }
    assert((*ca)->magic == CA_MAGIC);
    (*ca)->magic = 0;
    pki_key_free(&(*ca)->key);
    pki_cert_free(&(*ca)->cert);
    free((*ca)->der);
    free(*ca);
    *ca = NULL;
}

const char *ca_fleet(const struct ca *ca)
{
    return ca->fleet;
}

const uint8_t *ca_authority_der(const struct ca *ca, size_t *n)
{
    *n = ca->der_len;
    return ca->der;
}

const uint8_t *ca_authority_hash(const struct ca *ca)
{
    return ca->hash;
}

const char *ca_authority_path(const struct ca *ca)
{
    return ca->cert_path;
}

const char *ca_server_key_path(const struct ca *ca)
{
    return ca->server_key_path;
}

const char *ca_server_cert_path(const struct ca *ca)
{
    return ca->server_cert_path;
}

int64_t ca_server_end_s(const struct ca *ca)
{
    return ca->server_end_s;
}

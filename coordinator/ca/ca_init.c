/* ca_init.c: the beginning of a fleet: its authority and the first admin. The row that says
 * which fleet this is comes last: until it is committed, an init that was interrupted can be
 * repeated. */
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "coordinator/ca/ca_priv.h"
#include "coordinator/store/store.h"
#include "coordinator/store/trust.h"

#include <string.h>

int ca_note_cert(struct store *store, const struct pki_id *id, int64_t wall_ns, struct diag *diag)
{
    struct model_cert cert = {.serial = id->serial,
                              .role = id->role,
                              .name = id->name,
                              .key_hash = id->key_hash,
                              .end_s = id->end_s,
                              .issued_wall_ns = wall_ns};
    int rc = store_cert_insert(store, &cert);
    return rc < 0 ? ca_store_fails(store, rc, diag) : 0;
}

struct start {
    const struct ca_init *init;
    struct diag *diag;
    struct pki_key *authority_key;
    struct pki_cert *authority;
    struct pki_key *admin_key;
    struct pki_cert *admin;
};

static int path_in(const char *dir, const char *name, char path[FILE_PATH_MAX], struct diag *diag)
{
    int rc = file_path(path, FILE_PATH_MAX, dir, name);
    return rc < 0 ? diag_error(diag, rc, "%s: the folder's name is too long", dir) : 0;
}

static int make_dir(const char *dir, struct diag *diag)
{
    int rc = file_mkdirs(dir, 0700);
    return rc < 0 ? diag_error(diag, rc, "%s: the folder cannot be made: %s", dir, err_text(rc))
                  : 0;
}

static int check(const struct ca_init *init, struct diag *diag)
{
    const char *fleet = NULL;
    if (!str_is_name(init->fleet)) {
        return diag_error(diag, ERR_INVAL,
                          "`%s` is no name for a fleet: 1 to 64 of A-Z a-z 0-9 . _ + , = -",
                          init->fleet);
    }
    if (!str_is_name(init->operator_name)) {
        return diag_error(diag, ERR_INVAL,
                          "`%s` is no name for an operator: 1 to 64 of A-Z a-z 0-9 . _ + , = -",
                          init->operator_name);
    }
    struct mem_arena *arena = mem_arena_new(0);
    int rc = store_meta_get(init->store, "fleet", arena, &fleet);
    if (rc == 0) {
        rc = diag_error(diag, ERR_EXISTS,
                        "%s: fleet %s was made here already, and nothing is overwritten", init->dir,
                        fleet);
    } else if (rc == -ERR_NOTFOUND) {
        rc = 0;
    } else {
        rc = ca_store_fails(init->store, rc, diag);
    }
    mem_arena_free(&arena);
    return rc;
}

/* The authority: its key, and its certificate, which an earlier init may have made. */
static int make_authority(struct start *s)
{
    char key_path[FILE_PATH_MAX];
    char cert_path[FILE_PATH_MAX];
    char fleet[65];
    const struct ca_init *init = s->init;
    int rc = path_in(init->dir, CA_KEY, key_path, s->diag);
    if (rc == 0) {
        rc = path_in(init->dir, CA_CERT, cert_path, s->diag);
    }
    if (rc == 0) {
        rc = ca_key_at(key_path, &s->authority_key, s->diag);
    }
    if (rc < 0) {
        return rc;
    }
    if (!file_exists(cert_path)) {
        rc = pki_authority_make(s->authority_key, init->fleet, init->wall_ns / CA_NS, &s->authority,
                                s->diag);
        return rc == 0 ? pki_cert_write(s->authority, cert_path, s->diag) : rc;
    }
    rc = pki_cert_read(cert_path, &s->authority, s->diag);
    if (rc == 0) {
        rc = pki_cert_fleet(s->authority, fleet, s->diag);
    }
    if (rc == 0 && !pki_cert_is_of_key(s->authority, s->authority_key)) {
        rc = diag_error(s->diag, ERR_CONFLICT, "%s: " CA_CERT " is not the certificate of " CA_KEY,
                        init->dir);
    }
    if (rc == 0 && strcmp(fleet, init->fleet) != 0) {
        rc = diag_error(s->diag, ERR_CONFLICT,
                        "%s: an init of fleet %s was begun here: give this name, or remove " CA_KEY
                        " and " CA_CERT,
                        init->dir, fleet);
    }
    return rc;
}

/* An identity of another fleet in the operator's folder is not overwritten. */
static int check_operator_dir(struct start *s, const char *cert_path)
{
    struct pki_cert *cert = NULL;
    if (!file_exists(cert_path)) {
        return 0;
    }
    int rc = pki_cert_read(cert_path, &cert, s->diag);
    if (rc == 0 && !pki_cert_is_issued_by(cert, s->authority)) {
        rc = diag_error(
            s->diag, ERR_EXISTS,
            "%s: there is an identity of another fleet: choose another folder, or move it away",
            s->init->operator_dir);
    }
    pki_cert_free(&cert);
    return rc;
}

static int make_admin(struct start *s)
{
    char key_path[FILE_PATH_MAX];
    char cert_path[FILE_PATH_MAX];
    char authority_path[FILE_PATH_MAX];
    struct pki_id id;
    const struct ca_init *init = s->init;
    int rc = path_in(init->operator_dir, CA_OPERATOR_KEY, key_path, s->diag);
    if (rc == 0) {
        rc = path_in(init->operator_dir, CA_OPERATOR_CERT, cert_path, s->diag);
    }
    if (rc == 0) {
        rc = path_in(init->operator_dir, CA_OPERATOR_AUTHORITY, authority_path, s->diag);
    }
    if (rc == 0) {
        rc = check_operator_dir(s, cert_path);
    }
    if (rc == 0) {
        rc = ca_key_at(key_path, &s->admin_key, s->diag);
    }
    if (rc == 0) {
        rc = ca_issue_own(s->authority_key, s->authority, s->admin_key, ROLE_ADMIN,
                          init->operator_name, init->wall_ns / CA_NS, &s->admin, &id, s->diag);
    }
    if (rc == 0) {
        rc = pki_cert_write(s->authority, authority_path, s->diag);
    }
    if (rc == 0) {
        rc = pki_cert_write(s->admin, cert_path, s->diag);
    }
    if (rc == 0) {
        rc = ca_note_cert(init->store, &id, init->wall_ns, s->diag);
    }
    return rc;
}

static int finish(struct start *s)
{
    struct ca *ca = NULL;
    const struct ca_init *init = s->init;
    int rc = store_meta_set(init->store, "fleet", init->fleet);
    if (rc < 0) {
        return ca_store_fails(init->store, rc, s->diag);
    }
    rc = store_commit(init->store, s->diag);
    if (rc == 0) {
        /* Makes the coordinator's own certificate. */
        rc = ca_open(init->dir, init->store, init->wall_ns, &ca, s->diag);
    }
    ca_close(&ca);
    return rc;
}

int ca_init(const struct ca_init *init, struct diag *diag)
{
    struct start s = {.init = init, .diag = diag};
    int rc = check(init, diag);
    if (rc == 0) {
        rc = make_dir(init->dir, diag);
    }
    if (rc == 0) {
        rc = make_dir(init->operator_dir, diag);
    }
    if (rc == 0) {
        rc = make_authority(&s);
    }
    if (rc == 0) {
        rc = make_admin(&s);
    }
    if (rc == 0) {
        rc = finish(&s);
    }
    if (rc < 0) {
        store_rollback(init->store);
    }
    pki_key_free(&s.authority_key);
    pki_cert_free(&s.authority);
    pki_key_free(&s.admin_key);
    pki_cert_free(&s.admin);
    return rc;
}

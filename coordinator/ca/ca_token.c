/* ca_token.c: making tokens, and revocation. */
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "coordinator/ca/ca_priv.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/store.h"
#include "coordinator/store/trust.h"
#include "proto/token.h"

#include <assert.h>
#include <string.h>

#define TTL_MIN_NS (60 * CA_NS)
#define TTL_MAX_NS (30 * PKI_DAY_S * CA_NS)

_Static_assert((int)CA_TOKEN_TEXT >= (int)TOKEN_TEXT_SIZE, "room for a token's text");

bool ca_is_operator(enum role role)
{
    return role == ROLE_VIEWER || role == ROLE_SUBMITTER || role == ROLE_ADMIN;
}

/* --- tokens --- */

static int check_token_request(const struct ca_token_request *r, struct diag *diag)
{
    if (r->role != ROLE_WORKER && !ca_is_operator(r->role)) {
        return diag_error(diag, ERR_INVAL, "a token is for a worker, viewer, submitter or admin");
    }
    if (r->ttl_ns < TTL_MIN_NS || r->ttl_ns > TTL_MAX_NS) {
        return diag_error(diag, ERR_RANGE, "a token lives from a minute to 30 days");
    }
    if (r->name != NULL && !str_is_name(r->name)) {
        return diag_error(diag, ERR_INVAL, "`%s` is no name: 1 to 64 of A-Z a-z 0-9 . _ + , = -",
                          r->name);
    }
    if (r->class_count > 0 && r->role != ROLE_WORKER) {
        return diag_error(diag, ERR_INVAL, "only a worker's token has classes");
    }
    for (size_t i = 0; i < r->class_count; i++) {
        if (!str_is_name(r->classes[i])) {
            return diag_error(diag, ERR_INVAL,
                              "`%s` is no name for a class: 1 to 64 of A-Z a-z 0-9 . _ + , = -",
                              r->classes[i]);
        }
    }
    return 0;
}

int ca_token_make(struct ca *ca, const struct ca_token_request *request, int64_t wall_ns,
                  char text[CA_TOKEN_TEXT], struct diag *diag)
{
    struct token token;
    assert(ca->magic == CA_MAGIC);
    text[0] = '\0';
    int rc = check_token_request(request, diag);
    if (rc < 0) {
        return rc;
    }
    token_make(ca->hash, &token);
    struct model_token row = {.role = request->role,
                              .classes = request->classes,
                              .class_count = request->class_count,
                              .name = request->name,
                              .end_wall_ns = wall_ns + request->ttl_ns,
                              .made_wall_ns = wall_ns,
                              .made_by = request->made_by};
    memcpy(row.id, token.id, sizeof(row.id));
    token_hash(token.secret, row.secret_hash);
    rc = store_token_insert(ca->store, &row);
    if (rc == 0) {
        token_format(&token, text);
    } else {
        rc = ca_store_fails(ca->store, rc, diag);
    }
    token_wipe(&token);
    return rc;
}

/* --- revocation --- */

bool ca_is_revoked(const char *serial, void *arg)
{
    struct ca *ca = arg;
    bool revoked = true;
    assert(ca->magic == CA_MAGIC);
    return store_cert_is_revoked(ca->store, serial, &revoked) < 0 || revoked;
}

int ca_revoke_host(struct ca *ca, const char *name, int64_t wall_ns, struct diag *diag)
{
    struct mem_arena *arena = mem_arena_new(0);
    struct model_host host;
    size_t count = 0;
    int rc = store_host_by_name(ca->store, name, arena, &host);
    if (rc == 0) {
        int savepoint = store_savepoint(ca->store);
        rc = savepoint < 0 ? savepoint : store_host_set_state(ca->store, host.id, HOST_REVOKED);
        if (rc == 0) {
            rc = store_certs_revoke(ca->store, ROLE_WORKER, name, wall_ns, &count);
        }
        if (rc == 0) {
            rc = store_release(ca->store, savepoint);
        } else if (savepoint > 0) {
            store_revert(ca->store, savepoint);
        }
    }
    mem_arena_free(&arena);
    if (rc == -ERR_NOTFOUND) {
        return diag_error(diag, ERR_NOTFOUND, "there is no host %s", name);
    }
    return rc < 0 ? ca_store_fails(ca->store, rc, diag) : 0;
}

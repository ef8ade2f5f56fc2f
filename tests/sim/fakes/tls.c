/* tls.c: proto/tls.h without TLS: who shows what, and whom each side takes, with the rules of the
 * real module in the same order. Signatures are checked once, when the context is made. */
#include "proto/tls.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/sim/fakes/wire.h"

#include <stdlib.h>
#include <string.h>

struct tls {
    unsigned holds;
    bool closed; /* its creator has let go of it */
    bool server, joining, late_clock_ok;
    struct tls_end end;
    size_t authority_bytes; /* of end.authority that are known: all, or a joiner's 16 */
    tls_now_f *now_s;
    tls_is_revoked_f *is_revoked;
    void *arg;
};

static int show(struct tls *tls, const struct pki_key *key, const struct pki_cert *cert,
                const struct pki_cert *authority, struct diag *diag)
{
    if (!pki_cert_is_of_key(cert, key)) {
        return diag_error(diag, ERR_CONFLICT, "the key is not the certificate's");
    }
    if (!pki_cert_is_issued_by(cert, authority)) {
        return diag_error(diag, ERR_CONFLICT, "the certificate is not of this authority");
    }
    tls->authority_bytes = sizeof(tls->end.authority);
    int rc = pki_cert_id(cert, &tls->end.id, diag);
    return rc != 0 ? rc : pki_cert_key_hash(authority, tls->end.authority);
}

static int give(struct tls *tls, int rc, struct tls **out)
{
    tls->holds = 1;
    *out = rc == 0 ? tls : NULL;
    if (rc != 0) {
        free(tls);
    }
    return rc;
}

int tls_new_server(const struct tls_server_config *config, struct tls **out, struct diag *diag)
{
    struct tls *tls = mem_xzalloc(sizeof(*tls));
    tls->server = true;
    tls->joining = config->joining;
    tls->now_s = config->now_s;
    tls->is_revoked = config->is_revoked;
    tls->arg = config->arg;
    return give(tls, show(tls, config->key, config->cert, config->authority, diag), out);
}

int tls_new_client(const struct tls_client_config *config, struct tls **out, struct diag *diag)
{
    struct tls *tls = mem_xzalloc(sizeof(*tls));
    tls->late_clock_ok = config->late_clock_ok;
    tls->now_s = config->now_s;
    tls->arg = config->arg;
    return give(tls, show(tls, config->key, config->cert, config->authority, diag), out);
}

int tls_new_joiner(const struct tls_joiner_config *config, struct tls **out, struct diag *diag)
{
    struct tls *tls = mem_xzalloc(sizeof(*tls));
    (void)diag;
    tls->late_clock_ok = config->late_clock_ok;
    tls->now_s = config->now_s;
    tls->arg = config->arg;
    tls->end.joiner = true;
    tls->authority_bytes = 16;
    memcpy(tls->end.authority, config->authority, tls->authority_bytes);
    return give(tls, 0, out);
}

/* What is renewed has the authority that is there. */
int tls_renew(struct tls *tls, const struct pki_key *key, const struct pki_cert *cert,
              struct diag *diag)
{
    if (!pki_cert_is_of_key(cert, key)) {
        return diag_error(diag, ERR_CONFLICT, "the key is not the certificate's");
    }
    return pki_cert_id(cert, &tls->end.id, diag);
}

void tls_free(struct tls **tls)
{
    if (*tls == NULL) {
        return;
    }
    (*tls)->closed = true;
    sim_tls_release(*tls);
    *tls = NULL;
}

void sim_tls_hold(struct tls *tls)
{
    tls->holds++;
}

void sim_tls_release(struct tls *tls)
{
    if (--tls->holds == 0) {
        free(tls);
    }
}

const struct tls_end *sim_tls_end(const struct tls *tls)
{
    return &tls->end;
}

enum close_reason sim_tls_judge(const struct tls *tls, const struct tls_end *other)
{
    if (tls->closed) {
        return CLOSE_TLS;
    }
    if (other->joiner) { /* it shows nothing */
        return tls->joining ? CLOSE_NONE : CLOSE_TLS;
    }
    if (memcmp(tls->end.authority, other->authority, tls->authority_bytes) != 0) {
        return CLOSE_CERT_AUTHORITY;
    }
    if (tls->server == (other->id.role == ROLE_COORDINATOR)) {
        return CLOSE_CERT_ROLE;
    }
    int64_t now_s = tls->now_s(tls->arg);
    if (now_s > other->id.end_s) {
        return CLOSE_CERT_EXPIRED;
    }
    if (now_s < other->id.begin_s && !tls->late_clock_ok) {
        return CLOSE_CERT_NOT_YET;
    }
    if (tls->is_revoked != NULL && tls->is_revoked(other->id.serial, tls->arg)) {
        return CLOSE_REVOKED;
    }
    return CLOSE_NONE;
}

/* ca_join.c: who gets a certificate for a token, and the rows of it. */
#include "common/buf.h"
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
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CLOCK_OFF_S 60
#define NEW_TOKEN "an admin makes a new one with `makespan token create`"

_Static_assert((int)CA_CERT_MAX >= (int)PKI_CERT_MAX, "room for a certificate");

/* --- joining: a ladder of steps, the first that fails gives the reason --- */

struct joining {
    struct ca *ca;
    const struct ca_request *request;
    int64_t wall_ns;
    struct ca_grant *grant;
    enum close_reason *reason;
    struct diag *diag;
    struct mem_arena *arena;
    struct model_token token;
    char key_hash[PKI_HASH_TEXT];
    struct model_host host; /* of a worker that is known */
    bool has_host;
    struct pki_cert *cert;
    struct pki_id id;
};

/* Ends the ladder with a reason and a sentence. */
static int refuse(struct joining *j, enum close_reason reason, int code, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

static int refuse(struct joining *j, enum close_reason reason, int code, const char *fmt, ...)
{
    struct buf text = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    *j->reason = reason;
    int rc = diag_error(j->diag, code, "%s", buf_str(&text));
    buf_fini(&text);
    return rc;
}

static int store_fails(struct joining *j, int code)
{
    *j->reason = CLOSE_STORE;
    return ca_store_fails(j->ca->store, code, j->diag);
}

static void warn(struct joining *j, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void warn(struct joining *j, const char *fmt, ...)
{
    struct ca_grant *g = j->grant;
    va_list ap;
    if (g->warning_count == CA_WARNINGS) {
        return;
    }
    va_start(ap, fmt);
    vsnprintf(g->warnings[g->warning_count++], sizeof(g->warnings[0]), fmt, ap);
    va_end(ap);
}

static int find_token(struct joining *j)
{
    char end[PKI_TIME_TEXT];
    char now[PKI_TIME_TEXT];
    const struct model_token *t = &j->token;
    int rc = store_token_get(j->ca->store, j->request->token_id, j->arena, &j->token);
    if (rc < 0 && rc != -ERR_NOTFOUND) {
        return store_fails(j, rc);
    }
    if (rc < 0 || !token_matches(j->request->secret, t->secret_hash)) {
        return refuse(j, CLOSE_TOKEN_UNKNOWN, ERR_NOTFOUND,
                      "the token is not known to fleet %s: " NEW_TOKEN, j->ca->fleet);
    }
    if (j->wall_ns >= t->end_wall_ns) {
        return refuse(j, CLOSE_TOKEN_EXPIRED, ERR_EXPIRED,
                      "the token ended at %s (the coordinator's clock says %s): " NEW_TOKEN,
                      pki_time_text(end, t->end_wall_ns / CA_NS),
                      pki_time_text(now, j->wall_ns / CA_NS));
    }
    return 0;
}

static int check_role(struct joining *j)
{
    enum role want = j->request->role;
    enum role have = j->token.role;
    if (want == have || (want == ROLE_VIEWER && ca_is_operator(have))) {
        return 0;
    }
    const char *word = vocab_role((int)want);
    return refuse(j, CLOSE_TOKEN_ROLE, ERR_DENIED, "the token's role is %s and not %s: %s takes it",
                  vocab_role((int)have), word != NULL ? word : "one that is unknown here",
                  have == ROLE_WORKER ? "`makespan-worker join`" : "`makespan login`");
}

static int check_request(struct joining *j)
{
    uint8_t hash[PKI_HASH_SIZE];
    int rc = pki_request_check(j->request->csr, j->request->csr_len, hash, j->diag);
    if (rc < 0) {
        *j->reason = CLOSE_DECODE;
        return rc;
    }
    str_hex(j->key_hash, hash, sizeof(hash));
    return 0;
}

/* The token was used before: with this key, its certificate is given again. */
static int give_again(struct joining *j)
{
    const struct model_token *t = &j->token;
    bool revoked = true;
    if (strcmp(t->used_key_hash, j->key_hash) != 0) {
        return refuse(
            j, CLOSE_TOKEN_USED, ERR_USED,
            "the token was used already by %s with another key: a token is for one key, " NEW_TOKEN,
            t->used_name);
    }
    int rc = pki_cert_from_der(t->cert, t->cert_len, &j->cert, j->diag);
    if (rc == 0) {
        rc = pki_cert_id(j->cert, &j->id, j->diag);
    }
    if (rc < 0) {
        *j->reason = CLOSE_STORE;
        return rc;
    }
    rc = store_cert_is_revoked(j->ca->store, j->id.serial, &revoked);
    if (rc < 0 && rc != -ERR_NOTFOUND) {
        return store_fails(j, rc);
    }
    if (revoked) {
        return refuse(j, CLOSE_REVOKED, ERR_DENIED,
                      "the certificate that the token gave to %s was revoked: " NEW_TOKEN
                      ", with --name %s",
                      t->used_name, t->used_name);
    }
    j->grant->again = true;
    return 0;
}

static int choose_name(struct joining *j)
{
    const char *name = j->token.name != NULL ? j->token.name : j->request->name;
    if (!str_is_name(name)) {
        struct buf shown = BUF_INIT;
        str_escape(&shown, name, strlen(name));
        int rc = refuse(j, CLOSE_NAME_TAKEN, ERR_INVAL,
                        "`%s` is no name: 1 to 64 of A-Z a-z 0-9 . _ + , = -", buf_str(&shown));
        buf_fini(&shown);
        return rc;
    }
    str_copy(j->grant->name, sizeof(j->grant->name), name);
    return 0;
}

static int check_worker(struct joining *j)
{
    struct model_host other;
    const char *name = j->grant->name;
    int rc = store_host_by_name(j->ca->store, name, j->arena, &j->host);
    if (rc < 0 && rc != -ERR_NOTFOUND) {
        return store_fails(j, rc);
    }
    j->has_host = rc == 0;
    bool same_key = j->has_host && str_eq(j->host.key_hash, j->key_hash);
    if (j->has_host && j->token.name == NULL && (!same_key || j->host.state == HOST_REVOKED)) {
        return refuse(j, CLOSE_NAME_TAKEN, ERR_EXISTS,
                      "there is a host %s already%s: a token made with --name %s lets it join "
                      "anew; for another host choose "
                      "another name",
                      name,
                      j->host.state == HOST_REVOKED ? ", which was revoked" : " with another key",
                      name);
    }
    rc = store_host_by_key(j->ca->store, j->key_hash, j->arena, &other);
    if (rc < 0 && rc != -ERR_NOTFOUND) {
        return store_fails(j, rc);
    }
    if (rc == 0 && !(j->has_host && other.id == j->host.id)) {
        return refuse(j, CLOSE_NAME_TAKEN, ERR_EXISTS,
                      "the key belongs to host %s: join with that name, or with a key of its own",
                      other.name);
    }
    return 0;
}

/* Whether an operator's certificate of the name is in force with another key. */
static int see_operator(const struct model_cert *cert, void *arg)
{
    struct joining *j = arg;
    bool other = ca_is_operator(cert->role) && cert->revoked_wall_ns == 0 &&
                 cert->end_s > j->wall_ns / CA_NS && strcmp(cert->key_hash, j->key_hash) != 0;
    return other ? 1 : 0;
}

static int check_operator(struct joining *j)
{
    const char *name = j->grant->name;
    if (j->token.name != NULL) {
        return 0;
    }
    int rc = store_certs_each(j->ca->store, 0, name, see_operator, j);
    if (rc == 1) {
        return refuse(j, CLOSE_NAME_TAKEN, ERR_EXISTS,
                      "there is an operator %s already with another key: a token made with --name "
                      "%s allows a second key; "
                      "for somebody else choose another name",
                      name, name);
    }
    return rc < 0 ? store_fails(j, rc) : 0;
}

static int issue(struct joining *j)
{
    const struct ca *ca = j->ca;
    int rc = pki_issue(ca->key, ca->cert, j->request->csr, j->request->csr_len, j->token.role,
                       j->grant->name, j->wall_ns / CA_NS, &j->cert, j->diag);
    if (rc == 0) {
        rc = pki_cert_id(j->cert, &j->id, j->diag);
    }
    if (rc < 0) {
        *j->reason = rc == -ERR_EXPIRED ? CLOSE_CERT_EXPIRED : CLOSE_TLS;
    }
    return rc;
}

static int check_clock(struct joining *j)
{
    char theirs[PKI_TIME_TEXT];
    char ours[PKI_TIME_TEXT];
    char end[PKI_TIME_TEXT];
    int64_t their_s = j->request->wall_ns / CA_NS;
    int64_t our_s = j->wall_ns / CA_NS;
    pki_time_text(theirs, their_s);
    pki_time_text(ours, our_s);
    if (their_s >= j->id.end_s) {
        return refuse(j, CLOSE_CLOCK, ERR_EXPIRED,
                      "the clock of this host says %s, at or beyond the certificate's end %s; the "
                      "coordinator's clock says %s: "
                      "set the clock and join again",
                      theirs, pki_time_text(end, j->id.end_s), ours);
    }
    if (their_s < j->id.begin_s) {
        warn(j,
             "the clock of this host says %s, before the certificate's beginning; the "
             "coordinator's says %s: it works, but "
             "times of day will be wrong until the clock is set",
             theirs, ours);
    } else if (their_s > our_s + CLOCK_OFF_S || their_s < our_s - CLOCK_OFF_S) {
        warn(j, "the clock of this host says %s, the coordinator's says %s: set one of them",
             theirs, ours);
    }
    return 0;
}

/* --- the rows --- */

struct clone {
    struct joining *j;
    int64_t self;
};

static int see_clone(const struct model_host *host, void *arg)
{
    struct clone *c = arg;
    if (host->id != c->self && str_eq(host->machine_id, c->j->request->machine_id)) {
        warn(c->j,
             "host %s has the same machine id: if this is no clone of it, the two are one machine",
             host->name);
    }
    return 0;
}

static int write_host(struct joining *j)
{
    struct store *store = j->ca->store;
    int64_t id = j->host.id;
    size_t revoked = 0;
    int rc = 0;
    if (!j->has_host) {
        struct model_host host = {.name = j->grant->name,
                                  .state = HOST_ACTIVE,
                                  .classes = j->token.classes,
                                  .class_count = j->token.class_count,
                                  .machine_id = j->request->machine_id,
                                  .key_hash = j->key_hash,
                                  .joined_wall_ns = j->wall_ns};
        rc = store_host_insert(store, &host, &id);
    } else {
        j->grant->rekeyed = !str_eq(j->host.key_hash, j->key_hash);
        if (j->grant->rekeyed) {
            rc = store_certs_revoke(store, ROLE_WORKER, j->grant->name, j->wall_ns, &revoked);
        }
        if (rc == 0) {
            rc = store_host_set_key(store, id, j->key_hash, j->wall_ns);
        }
        if (rc == 0 && j->host.state == HOST_REVOKED) {
            rc = store_host_set_state(store, id, HOST_ACTIVE);
        }
        if (rc == 0) {
            rc = store_host_set_identity(store, id, j->request->machine_id, NULL);
        }
        for (size_t i = 0; i < j->token.class_count && rc == 0; i++) {
            rc = store_host_add_class(store, id, j->token.classes[i]);
        }
    }
    j->grant->host = id;
    if (rc == 0 && j->request->machine_id != NULL) {
        struct clone c = {j, id};
        rc = store_hosts_each(store, see_clone, &c);
    }
    return rc;
}

static int write_rows(struct joining *j, const struct buf *der)
{
    struct store *store = j->ca->store;
    int savepoint = store_savepoint(store);
    int rc = savepoint < 0 ? savepoint : 0;
    if (rc == 0 && j->token.role == ROLE_WORKER) {
        rc = write_host(j);
    }
    if (rc == 0) {
        struct model_cert row = {.serial = j->id.serial,
                                 .role = j->id.role,
                                 .name = j->id.name,
                                 .key_hash = j->id.key_hash,
                                 .end_s = j->id.end_s,
                                 .issued_wall_ns = j->wall_ns};
        rc = store_cert_insert(store, &row);
    }
    if (rc == 0) {
        rc = store_token_use(store, j->token.id, j->key_hash, j->grant->name, der->data, der->len);
    }
    if (rc == 0) {
        rc = store_release(store, savepoint);
    } else if (savepoint > 0) {
        store_revert(store, savepoint);
    }
    return rc < 0 ? store_fails(j, rc) : 0;
}

/* The host of a certificate that is given again. */
static int find_host_again(struct joining *j)
{
    int rc = store_host_by_name(j->ca->store, j->grant->name, j->arena, &j->host);
    j->grant->host = rc == 0 ? j->host.id : 0;
    return rc < 0 && rc != -ERR_NOTFOUND ? store_fails(j, rc) : 0;
}

static int join_anew(struct joining *j)
{
    int rc = choose_name(j);
    if (rc == 0) {
        rc = j->token.role == ROLE_WORKER ? check_worker(j) : check_operator(j);
    }
    if (rc == 0) {
        rc = issue(j);
    }
    return rc;
}

static int join_again(struct joining *j)
{
    int rc = give_again(j);
    if (rc == 0) {
        str_copy(j->grant->name, sizeof(j->grant->name), j->token.used_name);
        rc = j->token.role == ROLE_WORKER ? find_host_again(j) : 0;
    }
    return rc;
}

static int grant_it(struct joining *j)
{
    struct buf der = BUF_INIT;
    int rc = pki_cert_to_der(j->cert, &der);
    if (rc == 0 && der.len > sizeof(j->grant->cert)) {
        rc = -ERR_LIMIT;
    }
    if (rc < 0) {
        rc = refuse(j, CLOSE_TLS, rc, "the certificate cannot be written: %s", err_text(rc));
    } else {
        memcpy(j->grant->cert, der.data, der.len);
        j->grant->cert_len = der.len;
        j->grant->role = j->id.role;
        rc = j->grant->again ? 0 : write_rows(j, &der);
    }
    buf_fini(&der);
    return rc;
}

int ca_join(struct ca *ca, const struct ca_request *request, int64_t wall_ns, struct ca_grant *out,
            enum close_reason *reason, struct diag *diag)
{
    assert(ca->magic == CA_MAGIC);
    memset(out, 0, sizeof(*out));
    *reason = CLOSE_NONE;
    struct joining j = {.ca = ca,
                        .request = request,
                        .wall_ns = wall_ns,
                        .grant = out,
                        .reason = reason,
                        .diag = diag,
                        .arena = mem_arena_new(0)};
    int rc = find_token(&j);
    if (rc == 0) {
        rc = check_role(&j);
    }
    if (rc == 0) {
        rc = check_request(&j);
    }
    if (rc == 0) {
        rc = j.token.used_key_hash != NULL ? join_again(&j) : join_anew(&j);
    }
    if (rc == 0) {
        rc = check_clock(&j);
    }
    if (rc == 0) {
        rc = grant_it(&j);
    }
    if (rc < 0) {
        memset(out, 0, sizeof(*out));
    }
    pki_cert_free(&j.cert);
    mem_arena_free(&j.arena);
    return rc;
}

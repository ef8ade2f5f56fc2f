/* tls.c: contexts: which protocol, keys, certificates and names in ALPN a connection may use. Whom
 * to trust is tls_trust.c, what alerts mean tls_alert.c, one connection tls_session.c. */
#include "proto/tls.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "proto/tls_ctx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ChaCha20 first: it is the faster one on a processor without AES instructions, and fast enough on
 * the others. All keys are on P-256. */
#define CIPHERS "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256"
#define GROUPS "X25519:P-256"
#define SIGNATURES "ECDSA+SHA256"

/* Names as they stand in ALPN: each behind its length. */
#define ALPN_BYTES "\x0a" TLS_ALPN
#define ALPN_JOIN_BYTES "\x0f" TLS_ALPN_JOIN

_Static_assert(sizeof(TLS_ALPN) - 1 == 0x0a, "length in ALPN_BYTES");
_Static_assert(sizeof(TLS_ALPN_JOIN) - 1 == 0x0f, "length in ALPN_JOIN_BYTES");

#define ALERT_NO_PROTOCOL 120

/* --- the socket below TLS: send() that raises no SIGPIPE, bytes counted, errno kept --- */

static int socket_write(BIO *bio, const char *data, int n)
{
    struct tls_session *s = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (n <= 0) {
        return 0;
    }
    ssize_t rc = send(s->fd, data, (size_t)n, MSG_NOSIGNAL);
    if (rc < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
            BIO_set_retry_write(bio);
        } else {
            s->sys_errno = errno;
        }
        return -1;
    }
    s->bytes_out += (uint64_t)rc;
    return (int)rc;
}

static int socket_read(BIO *bio, char *dst, int room)
{
    struct tls_session *s = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (room <= 0) {
        return 0;
    }
    ssize_t rc = recv(s->fd, dst, (size_t)room, 0);
    if (rc < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
            BIO_set_retry_read(bio);
        } else {
            s->sys_errno = errno;
        }
        return -1;
    }
    s->eof = rc == 0;
    s->bytes_in += (uint64_t)rc;
    return (int)rc;
}

static long socket_ctrl(BIO *bio, int command, long number, void *pointer)
{
    const struct tls_session *s = BIO_get_data(bio);
    (void)number;
    (void)pointer;
    switch (command) {
    case BIO_CTRL_FLUSH:
        return 1;
    case BIO_CTRL_EOF:
        return s->eof;
    default:
        return 0;
    }
}

static int socket_create(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

static BIO_METHOD *socket_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "makespan socket");
    if (m != NULL &&
        (BIO_meth_set_write(m, socket_write) != 1 || BIO_meth_set_read(m, socket_read) != 1 ||
         BIO_meth_set_ctrl(m, socket_ctrl) != 1 || BIO_meth_set_create(m, socket_create) != 1)) {
        BIO_meth_free(m);
        m = NULL;
    }
    return m;
}

/* --- ALPN --- */

/* Without ALPN the choice below is never asked for; so it is asked for here. A hello without
 * TLS 1.3 is left to OpenSSL, which has the right alert for it. */
static int on_hello(SSL *ssl, int *alert, void *arg)
{
    const unsigned char *ext;
    size_t n;
    (void)arg;
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_supported_versions, &ext, &n) != 1 ||
        SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &ext,
                                  &n) == 1) {
        return SSL_CLIENT_HELLO_SUCCESS;
    }
    tls_session_blame(SSL_get_app_data(ssl), CLOSE_VERSION, false,
                      "the client does not name the protocol that it speaks: it is no program of "
                      "Makespan");
    *alert = ALERT_NO_PROTOCOL;
    return SSL_CLIENT_HELLO_ERROR;
}

/* The place of a name (behind its length) in a client's list, or NULL. */
static const unsigned char *find_alpn(const unsigned char *list, unsigned n, const char *name)
{
    size_t size = strlen(name);
    for (unsigned i = 0; i < n; i += list[i] + 1u) {
        if (list[i] == size && i + 1 + size <= n && memcmp(list + i + 1, name, size) == 0) {
            return list + i + 1;
        }
    }
    return NULL;
}

/* The joining protocol alone asks for no certificate; everything else does. */
static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                   const unsigned char *list, unsigned n, void *arg)
{
    struct tls *tls;
    struct tls_session *s;
    CAST_OBJ(tls, arg, TLS_MAGIC);
    CAST_OBJ(s, SSL_get_app_data(ssl), TLS_SESSION_MAGIC);
    const unsigned char *at = find_alpn(list, n, TLS_ALPN);
    if (at == NULL && tls->joining) {
        at = find_alpn(list, n, TLS_ALPN_JOIN);
        if (at != NULL) {
            s->joining = true;
            SSL_set_verify(ssl, SSL_VERIFY_NONE, NULL);
        }
    }
    if (at == NULL) {
        tls_session_blame(s, CLOSE_VERSION, false,
                          "the client speaks another protocol than " TLS_ALPN);
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = at;
    *out_size = at[-1];
    return SSL_TLSEXT_ERR_OK;
}

/* --- contexts --- */

static struct tls *tls_new(enum tls_kind kind)
{
    struct tls *tls = mem_xzalloc(sizeof(*tls));
    tls->magic = TLS_MAGIC;
    tls->holds = 1;
    tls->kind = kind;
    return tls;
}

void tls_hold(struct tls *tls)
{
    tls->holds++;
}

void tls_release(struct tls *tls)
{
    if (--tls->holds > 0) {
        return;
    }
    SSL_CTX_free(tls->ctx);
    BIO_meth_free(tls->socket);
    tls->magic = 0;
    free(tls);
}

void tls_free(struct tls **tls)
{
    if (*tls == NULL) {
        return;
    }
    (*tls)->gone = true;
    tls_release(*tls);
    *tls = NULL;
}

/* What holds for every context: TLS 1.3 and nothing that outlives or resumes a connection. */
static int set_up(struct tls *tls, struct diag *diag)
{
    tls->socket = socket_method();
    tls->ctx = SSL_CTX_new(tls->kind == TLS_SERVER ? TLS_server_method() : TLS_client_method());
    SSL_CTX *ctx = tls->ctx;
    if (tls->socket == NULL || ctx == NULL ||
        SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(ctx, CIPHERS) != 1 || SSL_CTX_set1_groups_list(ctx, GROUPS) != 1 ||
        SSL_CTX_set1_sigalgs_list(ctx, SIGNATURES) != 1 || SSL_CTX_set_num_tickets(ctx, 0) != 1) {
        return pki_fail(diag, ERR_TLS, "TLS cannot be set up");
    }
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    /* A read ends with each record, also with one that only changes keys: the other side may send those without end. */
    SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_cert_list(ctx, 4 * PKI_CERT_MAX);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_cert_verify_callback(ctx, tls_trust_check, tls);
    return 0;
}

/* The own certificate; a server shows its authority's too, so that a joiner can compare the key. */
static int use_certificate(struct tls *tls, const struct pki_key *key, const struct pki_cert *cert,
                           X509 *authority, struct diag *diag)
{
    int err = pki_cert_id(cert, &tls->self, diag);
    if (err < 0) {
        return err;
    }
    bool coordinator = tls->self.role == ROLE_COORDINATOR;
    if (coordinator != (tls->kind == TLS_SERVER)) {
        return diag_error(diag, ERR_INVAL, "a certificate of the role %s cannot be used here",
                          vocab_role((int)tls->self.role));
    }
    if (!pki_cert_is_of_key(cert, key)) {
        return diag_error(diag, ERR_CONFLICT, "the certificate of %s %s belongs to another key",
                          vocab_role((int)tls->self.role), tls->self.name);
    }
    STACK_OF(X509) *chain = sk_X509_new_null();
    bool ok =
        chain != NULL && (authority == NULL || sk_X509_push(chain, authority) > 0) &&
        SSL_CTX_use_cert_and_key(tls->ctx, pki_cert_x509(cert), pki_key_pkey(key), chain, 1) == 1;
    sk_X509_free(chain);
    return ok ? 0 : pki_fail(diag, ERR_TLS, "the certificate cannot be used");
}

static int use_authority(struct tls *tls, const struct pki_cert *authority,
                         const struct pki_cert *cert, struct diag *diag)
{
    int err = pki_cert_fleet(authority, tls->fleet, diag);
    if (err < 0) {
        return err;
    }
    if (!pki_cert_is_issued_by(cert, authority)) {
        return diag_error(diag, ERR_CONFLICT,
                          "the certificate was not issued by the authority of the fleet %s",
                          tls->fleet);
    }
    X509_STORE *store = X509_STORE_new();
    bool ok = store != NULL && X509_STORE_add_cert(store, pki_cert_x509(authority)) == 1 &&
              SSL_CTX_set1_verify_cert_store(tls->ctx, store) == 1;
    X509_STORE_free(store);
    return ok ? 0 : pki_fail(diag, ERR_TLS, "the authority's certificate cannot be used");
}

static int hand_over(struct tls *tls, int err, struct tls **out)
{
    if (err < 0) {
        tls_release(tls);
        return err;
    }
    *out = tls;
    return 0;
}

int tls_new_server(const struct tls_server_config *config, struct tls **out, struct diag *diag)
{
    *out = NULL;
    struct tls *tls = tls_new(TLS_SERVER);
    tls->joining = config->joining;
    tls->now_s = config->now_s;
    tls->is_revoked = config->is_revoked;
    tls->arg = config->arg;
    int err = set_up(tls, diag);
    if (err == 0) {
        err = use_authority(tls, config->authority, config->cert, diag);
    }
    if (err == 0) {
        err =
            use_certificate(tls, config->key, config->cert, pki_cert_x509(config->authority), diag);
    }
    if (err == 0) {
        SSL_CTX_set_client_hello_cb(tls->ctx, on_hello, NULL);
        SSL_CTX_set_alpn_select_cb(tls->ctx, on_alpn, tls);
    }
    return hand_over(tls, err, out);
}

static int set_alpn(struct tls *tls, const char *bytes, struct diag *diag)
{
    return SSL_CTX_set_alpn_protos(tls->ctx, (const unsigned char *)bytes,
                                   (unsigned)strlen(bytes)) == 0
               ? 0
               : pki_fail(diag, ERR_TLS, "TLS cannot be set up");
}

int tls_new_client(const struct tls_client_config *config, struct tls **out, struct diag *diag)
{
    *out = NULL;
    struct tls *tls = tls_new(TLS_CLIENT);
    tls->now_s = config->now_s;
    tls->arg = config->arg;
    tls->late_clock_ok = config->late_clock_ok;
    int err = set_up(tls, diag);
    if (err == 0) {
        err = use_authority(tls, config->authority, config->cert, diag);
    }
    if (err == 0) {
        err = use_certificate(tls, config->key, config->cert, NULL, diag);
    }
    if (err == 0) {
        err = set_alpn(tls, ALPN_BYTES, diag);
    }
    return hand_over(tls, err, out);
}

int tls_new_joiner(const struct tls_joiner_config *config, struct tls **out, struct diag *diag)
{
    *out = NULL;
    struct tls *tls = tls_new(TLS_JOINER);
    tls->now_s = config->now_s;
    tls->arg = config->arg;
    tls->late_clock_ok = config->late_clock_ok;
    memcpy(tls->authority, config->authority, sizeof(tls->authority));
    int err = set_up(tls, diag);
    if (err == 0) {
        err = set_alpn(tls, ALPN_JOIN_BYTES, diag);
    }
    return hand_over(tls, err, out);
}

int tls_renew(struct tls *tls, const struct pki_key *key, const struct pki_cert *cert,
              struct diag *diag)
{
    STACK_OF(X509) *chain = NULL;
    X509 *authority = SSL_CTX_get0_chain_certs(tls->ctx, &chain) == 1 && chain != NULL
                          ? sk_X509_value(chain, 0)
                          : NULL;
    if (tls->kind != TLS_SERVER || authority == NULL) {
        return diag_error(diag, ERR_STATE, "only a server's certificate is renewed");
    }
    struct pki_cert *issuer = pki_cert_wrap(authority);
    int err = 0;
    if (!pki_cert_is_issued_by(cert, issuer)) {
        err = diag_error(diag, ERR_CONFLICT,
                         "the new certificate was not issued by the authority of the fleet %s",
                         tls->fleet);
    } else {
        err = use_certificate(tls, key, cert, pki_cert_x509(issuer), diag);
    }
    pki_cert_free(&issuer);
    return err;
}

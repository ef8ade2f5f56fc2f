/* tls_ctx.h: what a context and a session of TLS consist of, for tls*.c alone. */
#ifndef MAKESPAN_PROTO_TLS_CTX_H
#define MAKESPAN_PROTO_TLS_CTX_H

#include "common/attr.h"
#include "proto/close.h"
#include "proto/pki.h"
#include "proto/pki_ossl.h"
#include "proto/tls.h"
#include "proto/tls_session.h"
#include "proto/token.h"

#include <stdbool.h>
#include <stdint.h>

#define TLS_MAGIC 0x746c7363u
#define TLS_SESSION_MAGIC 0x746c7373u

enum tls_kind { TLS_SERVER, TLS_CLIENT, TLS_JOINER };

struct tls {
    unsigned magic;
    unsigned holds; /* the creator's, and one of each session */
    bool gone;      /* the creator gave its hold up: now_s, is_revoked and arg are dead */
    enum tls_kind kind;
    SSL_CTX *ctx;
    BIO_METHOD *socket;
    char fleet[65];     /* of the authority; a joiner does not know it yet */
    struct pki_id self; /* of the own certificate; a joiner has none */
    uint8_t
        authority[TOKEN_AUTHORITY_SIZE]; /* a joiner's: start of the hash of the authority's key */
    bool joining;
    bool late_clock_ok;
    tls_now_f *now_s;
    tls_is_revoked_f *is_revoked;
    void *arg;
};

struct tls_session {
    unsigned magic;
    struct tls *tls; /* held */
    SSL *ssl;
    int fd; /* borrowed */
    bool eof;
    bool broken; /* after a failure OpenSSL must not be asked to write any more */
    bool joining;
    bool shaken; /* the handshake is over: the other side has proven who it is */
    bool by_peer;
    int sys_errno; /* of the last failed read or write */
    uint64_t bytes_in, bytes_out;
    enum close_reason reason; /* why it failed; CLOSE_NONE: it did not */
    char *text;
    struct pki_id *peer; /* from the certificate, until it is taken; NULL without one */
};

/* Notes why the session fails; the first reason stays. */
void tls_session_blame(struct tls_session *s, enum close_reason reason, bool by_peer,
                       const char *fmt, ...) PRINTF_LIKE(4, 5);

/* Notes who the other side is. */
void tls_session_know(struct tls_session *s, const struct pki_id *id);

/* Called by OpenSSL in place of its own verification: 1 when the other side is trusted. Otherwise
 * the session knows the reason and OpenSSL which alert to send. */
int tls_trust_check(X509_STORE_CTX *xs, void *tls);

/* Notes what an alert from the other side means. */
void tls_alert_explain(struct tls_session *s, int alert);

#endif

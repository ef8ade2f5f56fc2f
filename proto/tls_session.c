/* tls_session.c: one connection's TLS on a socket that conn*.c owns. Owns OpenSSL's SSL object and
 * the reason of its failure; keeps as little as it can while the connection is idle. */
#include "proto/tls_session.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "proto/tls_ctx.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define ALERT_REASON_BASE 1000 /* OpenSSL counts alerts that it received from here */

void tls_session_blame(struct tls_session *s, enum close_reason reason, bool by_peer,
                       const char *fmt, ...)
{
    if (s->reason != CLOSE_NONE) {
        return;
    }
    struct buf text = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    s->reason = reason;
    s->by_peer = by_peer;
    s->text = buf_take(&text);
    buf_fini(&text);
}

void tls_session_know(struct tls_session *s, const struct pki_id *id)
{
    if (s->peer == NULL) {
        s->peer = mem_xzalloc(sizeof(*s->peer));
    }
    *s->peer = *id;
}

int tls_session_new(struct tls *tls, int fd, struct tls_session **out, struct diag *diag)
{
    *out = NULL;
    ERR_clear_error();
    SSL *ssl = SSL_new(tls->ctx);
    BIO *bio = BIO_new(tls->socket);
    if (ssl == NULL || bio == NULL) {
        SSL_free(ssl);
        BIO_free(bio);
        return pki_fail(diag, ERR_NOMEM, "no TLS session could be made");
    }
    struct tls_session *s = mem_xzalloc(sizeof(*s));
    s->magic = TLS_SESSION_MAGIC;
    s->tls = tls;
    s->ssl = ssl;
    s->fd = fd;
    tls_hold(tls);
    BIO_set_data(bio, s);
    SSL_set_bio(ssl, bio, bio);
    SSL_set_app_data(ssl, s);
    if (tls->kind == TLS_SERVER) {
        SSL_set_accept_state(ssl);
    } else {
        SSL_set_connect_state(ssl);
    }
    *out = s;
    return 0;
}

void tls_session_free(struct tls_session **s)
{
    if (*s == NULL) {
        return;
    }
    SSL_free((*s)->ssl);
    tls_release((*s)->tls);
    free((*s)->text);
    free((*s)->peer);
    (*s)->magic = 0;
    free(*s);
    *s = NULL;
}

/* What OpenSSL itself found wrong, in words for the cases that people meet. */
static void explain(struct tls_session *s, unsigned long e)
{
    switch (ERR_GET_REASON(e)) {
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
        tls_session_blame(s, CLOSE_TLS, false, "a request of HTTP came in place of TLS");
        return;
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_BAD_RECORD_TYPE:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
        tls_session_blame(s, CLOSE_TLS, false, "what came is not TLS: is this the right port?");
        return;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
        tls_session_blame(s, CLOSE_TLS, false, "the other side does not speak TLS 1.3");
        return;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        tls_session_blame(s, CLOSE_TLS, false, "the client showed no certificate");
        return;
    default:
        break;
    }
    const char *reason = ERR_reason_error_string(e);
    tls_session_blame(s, CLOSE_TLS, false, "TLS failed: %s",
                      reason != NULL ? reason : "no reason given");
}

static enum tls_io failed(struct tls_session *s)
{
    s->broken = true;
    ERR_clear_error();
    return TLS_FAILED;
}

/* The result of a call of OpenSSL's that did not succeed. */
static enum tls_io result(struct tls_session *s, int rc)
{
    int error = SSL_get_error(s->ssl, rc);
    unsigned long e = ERR_peek_error(); /* only the first says why */
    switch (error) {
    case SSL_ERROR_WANT_READ:
        return TLS_WANT_READ;
    case SSL_ERROR_WANT_WRITE:
        return TLS_WANT_WRITE;
    case SSL_ERROR_ZERO_RETURN:
        return TLS_EOF;
    case SSL_ERROR_SYSCALL:
        if (s->reason == CLOSE_NONE && s->sys_errno == 0) {
            return TLS_EOF;
        }
        tls_session_blame(s, CLOSE_IO, false, "%s", strerror(s->sys_errno));
        return failed(s);
    case SSL_ERROR_SSL:
        if (ERR_GET_LIB(e) == ERR_LIB_SSL && ERR_GET_REASON(e) > ALERT_REASON_BASE) {
            tls_alert_explain(s, ERR_GET_REASON(e) - ALERT_REASON_BASE);
        } else {
            explain(s, e);
        }
        return failed(s);
    default:
        tls_session_blame(s, CLOSE_TLS, false, "TLS failed: result %d", error);
        return failed(s);
    }
}

/* A server that picks no protocol, or another one, is none of ours. */
static bool agreed(struct tls_session *s)
{
    const unsigned char *name;
    unsigned n;
    const char *want = s->tls->kind == TLS_JOINER || s->joining ? TLS_ALPN_JOIN : TLS_ALPN;
    SSL_get0_alpn_selected(s->ssl, &name, &n);
    if (n == strlen(want) && memcmp(name, want, n) == 0) {
        return true;
    }
    tls_session_blame(s, CLOSE_VERSION, false, "the other side does not speak %s", want);
    return false;
}

enum tls_io tls_session_handshake(struct tls_session *s)
{
    assert(s->magic == TLS_SESSION_MAGIC);
    ERR_clear_error();
    int rc = SSL_do_handshake(s->ssl);
    if (rc != 1) {
        return result(s, rc);
    }
    s->shaken = true;
    return agreed(s) ? TLS_DONE : failed(s);
}

enum tls_io tls_session_read(struct tls_session *s, void *dst, size_t room, size_t *got)
{
    ERR_clear_error();
    int rc = SSL_read_ex(s->ssl, dst, room, got);
    return rc == 1 ? TLS_DONE : result(s, rc);
}

enum tls_io tls_session_write(struct tls_session *s, const void *data, size_t n, size_t *put)
{
    ERR_clear_error();
    int rc = SSL_write_ex(s->ssl, data, n, put);
    if (rc == 1) {
        return TLS_DONE;
    }
    if (SSL_get_error(s->ssl, rc) == SSL_ERROR_SYSCALL) {
        /* The network is gone, but an alert or a last message may have come before. */
        ERR_clear_error();
        return TLS_EOF;
    }
    return result(s, rc);
}

void tls_session_shutdown(struct tls_session *s)
{
    if (s->broken || !SSL_is_init_finished(s->ssl)) {
        return;
    }
    ERR_clear_error();
    (void)SSL_shutdown(s->ssl); /* one way only: nobody waits for the answer */
    ERR_clear_error();
}

enum close_reason tls_session_reason(const struct tls_session *s)
{
    return s->reason != CLOSE_NONE ? s->reason : CLOSE_IO;
}

const char *tls_session_text(const struct tls_session *s)
{
    if (s->text != NULL) {
        return s->text;
    }
    return s->sys_errno != 0 ? strerror(s->sys_errno) : close_text((uint32_t)tls_session_reason(s));
}

bool tls_session_by_peer(const struct tls_session *s)
{
    return s->by_peer;
}

bool tls_session_take_peer(struct tls_session *s, struct pki_id *out)
{
    if (s->peer == NULL) {
        return false;
    }
    *out = *s->peer;
    free(s->peer);
    s->peer = NULL;
    return true;
}

bool tls_session_is_joining(const struct tls_session *s)
{
    return s->joining || s->tls->kind == TLS_JOINER;
}

uint64_t tls_session_bytes_in(const struct tls_session *s)
{
    return s->bytes_in;
}

uint64_t tls_session_bytes_out(const struct tls_session *s)
{
    return s->bytes_out;
}

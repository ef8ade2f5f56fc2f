/* tls_trust.c: whether the other side's certificate is good: its authority, whose it is, its role,
 * its dates, and that it was not revoked. A ladder: the first step that fails gives the reason, a
 * sentence for people on this side, and the alert that tells the other side. */
#include "proto/tls_ctx.h"

#include "common/err.h"
#include "common/str.h"

#include <inttypes.h>
#include <string.h>

struct trial {
    X509_STORE_CTX *xs;
    struct tls *tls;
    struct tls_session *s;
    struct pki_cert *cert;   /* the other side's */
    struct pki_cert *anchor; /* the authority that vouches for it */
    struct pki_id id;        /* valid from the step `identity` on */
    char fleet[65];          /* the authority's */
};

/* Which alert OpenSSL sends for an error of verification is fixed in it; these are chosen so that
 * every reason has an alert of its own (tls_alert.c reads them). */
enum {
    TELL_AUTHORITY = X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, /* unknown_ca */
    TELL_EXPIRED = X509_V_ERR_CERT_HAS_EXPIRED,                    /* certificate_expired */
    TELL_NOT_YET = X509_V_ERR_CERT_NOT_YET_VALID,                  /* bad_certificate */
    TELL_ROLE = X509_V_ERR_INVALID_PURPOSE,                        /* unsupported_certificate */
    TELL_REVOKED = X509_V_ERR_CERT_REVOKED,                        /* certificate_revoked */
    TELL_OTHER = X509_V_ERR_APPLICATION_VERIFICATION,              /* handshake_failure */
};

#define FAIL(t, tell, reason, ...)                                                                 \
    (X509_STORE_CTX_set_error((t)->xs, (tell)),                                                    \
     tls_session_blame((t)->s, (reason), false, __VA_ARGS__), false)

static bool still_there(struct trial *t)
{
    return !t->tls->gone || FAIL(t, TELL_OTHER, CLOSE_SHUTDOWN, "the program stops");
}

static bool other_authority(struct trial *t)
{
    switch (t->tls->kind) {
    case TLS_SERVER:
        return FAIL(
            t, TELL_AUTHORITY, CLOSE_CERT_AUTHORITY,
            "the client's certificate was not issued by the authority of this fleet, %s: it "
            "must join with a token of this fleet",
            t->tls->fleet);
    case TLS_CLIENT:
        return FAIL(t, TELL_AUTHORITY, CLOSE_CERT_AUTHORITY,
                    "the server's certificate was not issued by the authority of this fleet, %s: "
                    "another fleet's coordinator answers at this address",
                    t->tls->fleet);
    case TLS_JOINER:
        break;
    }
    return FAIL(t, TELL_AUTHORITY, CLOSE_CERT_AUTHORITY,
                "the token is of another fleet than the coordinator at this address: check the "
                "address, or ask for a token of its fleet; nothing was sent");
}

/* A joiner takes for the authority the certificate, of those shown, whose key the token names. */
static bool find_anchor(struct trial *t)
{
    if (t->tls->kind != TLS_JOINER) {
        return true;
    }
    STACK_OF(X509) *shown = X509_STORE_CTX_get0_untrusted(t->xs);
    for (int i = 0; i < sk_X509_num(shown); i++) {
        struct pki_cert *one = pki_cert_wrap(sk_X509_value(shown, i));
        uint8_t hash[PKI_HASH_SIZE];
        if (pki_cert_key_hash(one, hash) == 0 &&
            pki_equal(hash, t->tls->authority, sizeof(t->tls->authority))) {
            t->anchor = one;
            return true;
        }
        pki_cert_free(&one);
    }
    return other_authority(t);
}

/* OpenSSL builds and checks the chain of signatures, without dates. */
static bool chain(struct trial *t)
{
    X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(t->xs), X509_V_FLAG_NO_CHECK_TIME);
    STACK_OF(X509) *trusted = NULL;
    if (t->anchor != NULL) {
        trusted = sk_X509_new_null();
        if (trusted == NULL || sk_X509_push(trusted, pki_cert_x509(t->anchor)) <= 0) {
            sk_X509_free(trusted);
            return FAIL(t, TELL_OTHER, CLOSE_TLS, "memory is out");
        }
        X509_STORE_CTX_set0_trusted_stack(t->xs, trusted);
    }
    bool ok = X509_verify_cert(t->xs) == 1;
    sk_X509_free(trusted);
    int error = X509_STORE_CTX_get_error(t->xs);
    if (ok) {
        STACK_OF(X509) *built = X509_STORE_CTX_get0_chain(t->xs);
        int last = sk_X509_num(built) - 1;
        if (t->anchor == NULL && last > 0) {
            t->anchor = pki_cert_wrap(sk_X509_value(built, last));
        }
        return t->anchor != NULL || other_authority(t);
    }
    switch (error) {
    case X509_V_ERR_INVALID_PURPOSE:
        return true; /* the step `role` says more */
    case X509_V_ERR_OUT_OF_MEM:
    case X509_V_ERR_UNSPECIFIED:
        return FAIL(t, TELL_OTHER, CLOSE_TLS, "the certificate cannot be checked: %s",
                    X509_verify_cert_error_string(error));
    default:
        return other_authority(t);
    }
}

static bool identity(struct trial *t)
{
    if (pki_cert_id(t->cert, &t->id, NULL) < 0) {
        return FAIL(t, TELL_OTHER, CLOSE_CERT_ROLE,
                    "the certificate names no member of a fleet (urn:makespan:FLEET:ROLE:NAME)");
    }
    /* With a wrong purpose the chain may be without an anchor: the step `role` refuses it. */
    if (t->anchor == NULL) {
        return true;
    }
    if (pki_cert_fleet(t->anchor, t->fleet, NULL) < 0 || !str_eq(t->fleet, t->id.fleet)) {
        return FAIL(t, TELL_AUTHORITY, CLOSE_CERT_AUTHORITY,
                    "the certificate is for the fleet %s, and its authority is another's",
                    t->id.fleet);
    }
    return true;
}

static bool role(struct trial *t)
{
    bool coordinator = t->id.role == ROLE_COORDINATOR;
    bool purpose_ok = X509_STORE_CTX_get_error(t->xs) == X509_V_OK;
    const char *word = vocab_role((int)t->id.role);
    if (t->tls->kind == TLS_SERVER && (coordinator || !purpose_ok)) {
        return FAIL(t, TELL_ROLE, CLOSE_CERT_ROLE,
                    "the certificate of %s %s is not one with which to connect to a coordinator",
                    word, t->id.name);
    }
    if (t->tls->kind != TLS_SERVER && !coordinator) {
        return FAIL(t, TELL_ROLE, CLOSE_CERT_ROLE,
                    "the server at this address has the certificate of %s %s, not that of a "
                    "coordinator: do not trust it",
                    word, t->id.name);
    }
    if (t->tls->kind != TLS_SERVER && !purpose_ok) {
        return FAIL(
            t, TELL_ROLE, CLOSE_CERT_ROLE,
            "the certificate of the server at this address (%s %s) is not one for servers: do "
            "not trust it",
            word, t->id.name);
    }
    return true;
}

static bool begun(struct trial *t, int64_t now)
{
    if (now >= t->id.begin_s || t->tls->late_clock_ok) {
        return true;
    }
    char begin_text[PKI_TIME_TEXT], now_text[PKI_TIME_TEXT];
    pki_time_text(begin_text, t->id.begin_s);
    pki_time_text(now_text, now);
    if (t->tls->kind == TLS_SERVER) {
        return FAIL(
            t, TELL_NOT_YET, CLOSE_CERT_NOT_YET,
            "the certificate of %s %s begins on %s, and by the clock of this coordinator it is "
            "%s: set the clock",
            vocab_role((int)t->id.role), t->id.name, begin_text, now_text);
    }
    return FAIL(
        t, TELL_NOT_YET, CLOSE_CERT_NOT_YET,
        "the coordinator's certificate begins on %s, and by the clock of this host it is %s: "
        "set the clock",
        begin_text, now_text);
}

static bool not_ended(struct trial *t, int64_t now)
{
    int64_t authority_begin, authority_end;
    if (pki_cert_dates(t->anchor, &authority_begin, &authority_end) < 0) {
        return FAIL(t, TELL_OTHER, CLOSE_TLS, "the dates of the authority cannot be read");
    }
    char end_text[PKI_TIME_TEXT], now_text[PKI_TIME_TEXT];
    pki_time_text(now_text, now);
    if (now > authority_end) {
        return FAIL(
            t, TELL_EXPIRED, CLOSE_CERT_EXPIRED,
            "the authority of the fleet %s ended on %s, and by the clock of this host it is %s: "
            "set the clock if it is wrong; else the fleet needs a new authority",
            t->fleet, pki_time_text(end_text, authority_end), now_text);
    }
    if (now <= t->id.end_s) {
        return true;
    }
    pki_time_text(end_text, t->id.end_s);
    if (t->tls->kind == TLS_SERVER) {
        return FAIL(
            t, TELL_EXPIRED, CLOSE_CERT_EXPIRED,
            "the certificate of %s %s ended on %s: an admin must make a new token and it must "
            "join again",
            vocab_role((int)t->id.role), t->id.name, end_text);
    }
    return FAIL(
        t, TELL_EXPIRED, CLOSE_CERT_EXPIRED,
        "the coordinator's certificate ended on %s, and by the clock of this host it is %s: set "
        "the clock if it is wrong; else restart makespand, which renews its certificate",
        end_text, now_text);
}

static bool dates(struct trial *t)
{
    int64_t now = t->tls->now_s(t->tls->arg);
    return not_ended(t, now) && begun(t, now);
}

static bool not_revoked(struct trial *t)
{
    if (t->tls->is_revoked == NULL || !t->tls->is_revoked(t->id.serial, t->tls->arg)) {
        return true;
    }
    return FAIL(
        t, TELL_REVOKED, CLOSE_REVOKED,
        "the certificate of %s %s was revoked: an admin must make a new token and it must join "
        "again",
        vocab_role((int)t->id.role), t->id.name);
}

int tls_trust_check(X509_STORE_CTX *xs, void *arg)
{
    struct tls *tls;
    struct tls_session *s;
    CAST_OBJ(tls, arg, TLS_MAGIC);
    const SSL *ssl = X509_STORE_CTX_get_ex_data(xs, SSL_get_ex_data_X509_STORE_CTX_idx());
    CAST_OBJ(s, SSL_get_app_data(ssl), TLS_SESSION_MAGIC);
    struct trial t = {.xs = xs, .tls = tls, .s = s};
    t.cert = pki_cert_wrap(X509_STORE_CTX_get0_cert(xs));
    bool ok = still_there(&t) && find_anchor(&t) && chain(&t) && identity(&t) && role(&t) &&
              dates(&t) && not_revoked(&t);
    if (ok) {
        tls_session_know(s, &t.id);
    }
    pki_cert_free(&t.cert);
    pki_cert_free(&t.anchor);
    return ok;
}

/* tls_alert.c: what an alert from the other side means for people on this side. In TLS 1.3 this
 * is how a client learns, often only after its own handshake is over, why a server will not have
 * it. */
#include "proto/tls_ctx.h"

#include "common/vocab.h"

#include <stdio.h>

/* Numbers of RFC 8446, section 6. */
enum {
    ALERT_BAD_CERTIFICATE = 42,
    ALERT_UNSUPPORTED_CERTIFICATE = 43,
    ALERT_CERTIFICATE_REVOKED = 44,
    ALERT_CERTIFICATE_EXPIRED = 45,
    ALERT_UNKNOWN_CA = 48,
    ALERT_PROTOCOL_VERSION = 70,
    ALERT_CERTIFICATE_REQUIRED = 116,
    ALERT_NO_APPLICATION_PROTOCOL = 120,
};

/* To a client: the coordinator refuses its certificate. */
static void client_refused(struct tls_session *s, int alert)
{
    const struct pki_id *self = &s->tls->self;
    const char *role = vocab_role((int)self->role);
    char time[PKI_TIME_TEXT];
    switch (alert) {
    case ALERT_UNKNOWN_CA:
        tls_session_blame(
            s, CLOSE_CERT_AUTHORITY, true,
            "the coordinator at this address is of another fleet than this certificate "
            "(%s %s of %s): check the address, or join its fleet with a token of its own",
            role, self->name, self->fleet);
        return;
    case ALERT_CERTIFICATE_EXPIRED:
        tls_session_blame(
            s, CLOSE_CERT_EXPIRED, true,
            "the coordinator says that the certificate of %s %s is past its end, %s: an "
            "admin must make a new token and it must join again; if that day has not "
            "come, the coordinator's clock is wrong",
            role, self->name, pki_time_text(time, self->end_s));
        return;
    case ALERT_BAD_CERTIFICATE:
        tls_session_blame(
            s, CLOSE_CERT_NOT_YET, true,
            "the coordinator says that the certificate of %s %s has not begun, which it "
            "does on %s: the coordinator's clock is late",
            role, self->name, pki_time_text(time, self->begin_s));
        return;
    case ALERT_UNSUPPORTED_CERTIFICATE:
        tls_session_blame(s, CLOSE_CERT_ROLE, true,
                          "the coordinator takes no connection from a certificate of the role %s",
                          role);
        return;
    default:
        tls_session_blame(
            s, CLOSE_REVOKED, true,
            "the certificate of %s %s was revoked: an admin must make a new token and it "
            "must join again",
            role, self->name);
        return;
    }
}

/* To a server: a client does not trust it. */
static void server_refused(struct tls_session *s, int alert)
{
    switch (alert) {
    case ALERT_UNKNOWN_CA:
        tls_session_blame(s, CLOSE_CERT_AUTHORITY, true,
                          "the client says that it is of another fleet than this coordinator (%s)",
                          s->tls->fleet);
        return;
    case ALERT_CERTIFICATE_EXPIRED:
        tls_session_blame(s, CLOSE_CERT_EXPIRED, true,
                          "by the client's clock this coordinator's certificate is past its end");
        return;
    case ALERT_BAD_CERTIFICATE:
        tls_session_blame(s, CLOSE_CERT_NOT_YET, true,
                          "by the client's clock this coordinator's certificate has not begun");
        return;
    default:
        tls_session_blame(s, CLOSE_CERT_ROLE, true,
                          "the client does not take this program for a coordinator");
        return;
    }
}

void tls_alert_explain(struct tls_session *s, int alert)
{
    switch (alert) {
    case ALERT_BAD_CERTIFICATE:
    case ALERT_UNSUPPORTED_CERTIFICATE:
    case ALERT_CERTIFICATE_REVOKED:
    case ALERT_CERTIFICATE_EXPIRED:
    case ALERT_UNKNOWN_CA:
        /* Before its own handshake is over a client hears nobody in particular; in TLS 1.3 a server judges a client's certificate after that. */
        if (s->tls->kind == TLS_CLIENT && s->shaken) {
            client_refused(s, alert);
            return;
        }
        if (s->tls->kind == TLS_SERVER) {
            server_refused(s, alert);
            return;
        }
        break;
    case ALERT_PROTOCOL_VERSION:
        tls_session_blame(s, CLOSE_TLS, true, "the other side does not speak TLS 1.3");
        return;
    case ALERT_CERTIFICATE_REQUIRED:
        tls_session_blame(s, CLOSE_TLS, true, "the other side asks for a certificate");
        return;
    case ALERT_NO_APPLICATION_PROTOCOL:
        tls_session_blame(
            s, CLOSE_VERSION, true,
            "the server at this address does not speak %s: another version of Makespan, "
            "another program, or a coordinator with which nobody can join",
            s->tls->kind == TLS_JOINER ? TLS_ALPN_JOIN : TLS_ALPN);
        return;
    default:
        break;
    }
    tls_session_blame(s, CLOSE_TLS, true, "the other side ended TLS: %s",
                      SSL_alert_desc_string_long(alert));
}

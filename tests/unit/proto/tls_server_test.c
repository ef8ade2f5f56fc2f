/* Whom the coordinator's side of TLS refuses, with what alert: clients as no program of ours is. */
#include "proto/pki_ossl.h"
#include "tests/unit/proto/meeting.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

static struct trust_cast cast;

static void set_up(void)
{
    trust_cast_init(&cast);
}

static void tear_down(void)
{
    trust_cast_fini(&cast);
}

TestSuite(tls_server, .init = set_up, .fini = tear_down);

/* A client that trusts everybody, as no program of ours does, to see what the server alone
 * decides. */
struct raw {
    SSL_CTX *ctx;
    SSL *ssl;
    int fd;
    struct meeting_side server;
    int alert; /* that came; 0: none */
    bool done;
};

static void raw_start(struct raw *raw, struct tls *server, const struct trust_pair *self,
                      const char *alpn, int version)
{
    int fds[2];
    memset(raw, 0, sizeof(*raw));
    meeting_sockets(fds);
    raw->ctx = SSL_CTX_new(TLS_client_method());
    cr_assert_eq(SSL_CTX_set_max_proto_version(raw->ctx, version), 1);
    if (self != NULL) {
        cr_assert_eq(SSL_CTX_use_certificate(raw->ctx, pki_cert_x509(self->cert)), 1);
        cr_assert_eq(SSL_CTX_use_PrivateKey(raw->ctx, pki_key_pkey(self->key)), 1);
    }
    if (alpn != NULL) {
        cr_assert_eq(
            SSL_CTX_set_alpn_protos(raw->ctx, (const unsigned char *)alpn, (unsigned)strlen(alpn)),
            0);
    }
    raw->ssl = SSL_new(raw->ctx);
    raw->fd = fds[1];
    SSL_set_fd(raw->ssl, fds[1]);
    SSL_set_connect_state(raw->ssl);
    raw->server.fd = fds[0];
    raw->server.io = TLS_WANT_READ;
    cr_assert_eq(tls_session_new(server, fds[0], &raw->server.s, NULL), 0);
}

static void raw_meet(struct raw *raw)
{
    for (int i = 0; i < 50; i++) {
        char byte;
        ERR_clear_error();
        int rc = raw->done ? SSL_read(raw->ssl, &byte, 1) : SSL_do_handshake(raw->ssl);
        if (!raw->done && rc == 1) {
            raw->done = true;
        }
        int reason = ERR_GET_REASON(ERR_peek_error());
        if (rc <= 0 && SSL_get_error(raw->ssl, rc) == SSL_ERROR_SSL && reason > 1000) {
            raw->alert = reason - 1000;
        }
        raw->server.io = meeting_advance(&raw->server);
    }
    ERR_clear_error();
}

static void raw_part(struct raw *raw)
{
    tls_session_free(&raw->server.s);
    SSL_free(raw->ssl);
    SSL_CTX_free(raw->ctx);
    close(raw->fd);
    close(raw->server.fd);
}

#define ALPN "\x0amakespan/1"
#define ALPN_JOIN "\x0fmakespan-join/1"

static void expect_refused(const struct trust_pair *self, const char *alpn, int version,
                           enum close_reason reason, const char *text, int alert)
{
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    struct raw raw;
    raw_start(&raw, server, self, alpn, version);
    raw_meet(&raw);
    meeting_expect_failed(&raw.server, reason, false, text);
    cr_expect_eq(raw.alert, alert, "alert %d", raw.alert);
    raw_part(&raw);
    tls_free(&server);
}

Test(tls_server, server_refuses_a_stranger)
{
    struct trust_pair stranger;
    trust_issue(&cast.other, ROLE_WORKER, "p6", &stranger);
    expect_refused(
        &stranger, ALPN, TLS1_3_VERSION, CLOSE_CERT_AUTHORITY,
        "the client's certificate was not issued by the authority of this fleet, lab: it "
        "must join with a token of this fleet",
        48);
    trust_free(&stranger);
}

Test(tls_server, server_refuses_a_self_signed_certificate)
{
    expect_refused(&cast.other, ALPN, TLS1_3_VERSION, CLOSE_CERT_AUTHORITY,
                   "not issued by the authority", 48);
}

Test(tls_server, server_refuses_a_certificate_for_another_fleet_of_its_own_authority)
{
    /* An authority's key under two names: what the certificate says and what the authority says
     * differ. */
    struct trust_pair twin = {.key = cast.lab.key};
    struct trust_pair self;
    cr_assert_eq(pki_authority_make(cast.lab.key, "labor", TRUST_NOW, &twin.cert, NULL), 0);
    trust_issue(&twin, ROLE_WORKER, "p6", &self);
    expect_refused(&self, ALPN, TLS1_3_VERSION, CLOSE_CERT_AUTHORITY, "", 48);
    pki_cert_free(&twin.cert);
    trust_free(&self);
}

Test(tls_server, server_refuses_no_certificate)
{
    expect_refused(NULL, ALPN, TLS1_3_VERSION, CLOSE_TLS, "the client showed no certificate", 116);
}

Test(tls_server, server_refuses_tls_1_2)
{
    expect_refused(&cast.worker, ALPN, TLS1_2_VERSION, CLOSE_TLS,
                   "the other side does not speak TLS 1.3", 70);
}

Test(tls_server, server_refuses_other_protocols)
{
    expect_refused(&cast.worker, NULL, TLS1_3_VERSION, CLOSE_VERSION, "does not name the protocol",
                   120);
    expect_refused(&cast.worker, "\x02h2", TLS1_3_VERSION, CLOSE_VERSION,
                   "another protocol than makespan/1", 120);
    expect_refused(&cast.worker, "\x0amakespan/2", TLS1_3_VERSION, CLOSE_VERSION,
                   "another protocol", 120);
}

Test(tls_server, server_refuses_a_coordinator_as_client)
{
    expect_refused(&cast.coordinator, ALPN, TLS1_3_VERSION, CLOSE_CERT_ROLE,
                   "the certificate of coordinator main is not one with which to connect", 43);
}

static void expect_forgery_refused(const char *san, const char *usage, enum close_reason reason,
                                   const char *text, int alert)
{
    struct trust_pair forgery;
    trust_forge(&cast.lab, san, usage, &forgery);
    expect_refused(&forgery, ALPN, TLS1_3_VERSION, reason, text, alert);
    trust_free(&forgery);
}

Test(tls_server, server_refuses_odd_certificates_of_its_own_authority)
{
    expect_forgery_refused("URI:urn:makespan:other:worker:p6", "clientAuth", CLOSE_CERT_AUTHORITY,
                           "the certificate is for the fleet other", 48);
    expect_forgery_refused("URI:urn:makespan:lab:coordinator:p6", "clientAuth", CLOSE_CERT_ROLE,
                           "the certificate of coordinator p6 is not one with which to connect",
                           43);
    expect_forgery_refused("URI:urn:makespan:lab:worker:p6", "serverAuth", CLOSE_CERT_ROLE,
                           "the certificate of worker p6 is not one with which to connect", 43);
    expect_forgery_refused("DNS:p6", "clientAuth", CLOSE_CERT_ROLE, "names no member of a fleet",
                           40);
}

Test(tls_server, server_speaks_with_the_first_of_several_protocols_that_it_knows)
{
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    struct raw raw;
    raw_start(&raw, server, &cast.worker, "\x02h2" ALPN_JOIN ALPN, TLS1_3_VERSION);
    raw_meet(&raw);
    cr_expect_eq(raw.server.io, TLS_DONE);
    cr_expect(!tls_session_is_joining(raw.server.s));
    raw_part(&raw);
    tls_free(&server);
}

Test(tls_server, a_list_of_protocols_that_lies_about_its_lengths)
{
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    struct raw raw;
    raw_start(&raw, server, &cast.worker, "\x01x\x01y" ALPN, TLS1_3_VERSION);
    raw_meet(&raw);
    cr_expect_eq(raw.server.io, TLS_DONE);
    raw_part(&raw);
    tls_free(&server);
}

/* Whom TLS lets through, and what each side is told when it does not: real handshakes over a pair of
 * sockets, turn about, without a loop. */
#include "common/diag.h"
#include "common/err.h"
#include "common/str.h"
#include "proto/close.h"
#include "proto/pki_ossl.h"
#include "proto/tls_session.h"
#include "tests/unit/proto/trust.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct trust_pair lab, other;
static struct trust_pair coordinator, worker, viewer;
static struct trust_world server_world, client_world;

static void set_up(void)
{
    trust_authority("lab", &lab);
    trust_authority("lab", &other); /* of the same name on purpose */
    trust_issue(&lab, ROLE_COORDINATOR, "main", &coordinator);
    trust_issue(&lab, ROLE_WORKER, "p6", &worker);
    trust_issue(&lab, ROLE_VIEWER, "eve", &viewer);
    server_world = (struct trust_world){.now_s = TRUST_NOW};
    client_world = (struct trust_world){.now_s = TRUST_NOW};
}

static void tear_down(void)
{
    trust_free(&lab);
    trust_free(&other);
    trust_free(&coordinator);
    trust_free(&worker);
    trust_free(&viewer);
}

struct end {
    int fd;
    struct tls_session *s;
    enum tls_io io;
    struct pki_id peer;
    bool has_peer;
};

struct meeting {
    struct end server, client;
};

static void socket_pair(int fds[2])
{
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
}

static bool waits(enum tls_io io)
{
    return io == TLS_WANT_READ || io == TLS_WANT_WRITE;
}

/* After its handshake a client reads: only there does it learn that it was refused. */
static enum tls_io advance(struct end *end)
{
    if (end->io == TLS_DONE) {
        char byte;
        size_t got;
        enum tls_io io = tls_session_read(end->s, &byte, 1, &got);
        return io == TLS_FAILED || io == TLS_EOF ? io : TLS_DONE;
    }
    return waits(end->io) ? tls_session_handshake(end->s) : end->io;
}

static void start(struct meeting *m, struct tls *server, struct tls *client)
{
    int fds[2];
    memset(m, 0, sizeof(*m));
    socket_pair(fds);
    m->server.fd = fds[0];
    m->client.fd = fds[1];
    m->server.io = m->client.io = TLS_WANT_READ;
    cr_assert_eq(tls_session_new(server, fds[0], &m->server.s, NULL), 0);
    cr_assert_eq(tls_session_new(client, fds[1], &m->client.s, NULL), 0);
}

/* Until both are done or one failed and the other has heard of it. */
static void meet(struct meeting *m, struct tls *server, struct tls *client)
{
    start(m, server, client);
    for (int i = 0; i < 50; i++) {
        m->client.io = advance(&m->client);
        m->server.io = advance(&m->server);
    }
    if (m->server.io == TLS_DONE) {
        m->server.has_peer = tls_session_take_peer(m->server.s, &m->server.peer);
    }
    if (m->client.io == TLS_DONE) {
        m->client.has_peer = tls_session_take_peer(m->client.s, &m->client.peer);
    }
}

static void part(struct meeting *m)
{
    tls_session_free(&m->server.s);
    tls_session_free(&m->client.s);
    close(m->server.fd);
    close(m->client.fd);
}

static void expect_failed(const struct end *end, enum close_reason reason, bool by_peer,
                          const char *part_of_text)
{
    cr_assert_eq(end->io, TLS_FAILED);
    const char *text = tls_session_text(end->s);
    cr_expect_eq(tls_session_reason(end->s), reason, "%s: %s",
                 close_name((uint32_t)tls_session_reason(end->s)), text);
    cr_expect_eq(tls_session_by_peer(end->s), by_peer, "%s", text);
    cr_expect(strstr(text, part_of_text) != NULL, "\"%s\" is not in: %s", part_of_text, text);
}

TestSuite(tls, .init = set_up, .fini = tear_down);

Test(tls, both_sides_know_each_other)
{
    struct tls *server = trust_server(&lab, &coordinator, &server_world);
    struct tls *client = trust_client(&lab, &worker, &client_world, false);
    struct meeting m;
    meet(&m, server, client);
    cr_assert_eq(m.server.io, TLS_DONE, "%s", tls_session_text(m.server.s));
    cr_assert_eq(m.client.io, TLS_DONE, "%s", tls_session_text(m.client.s));
    cr_assert(m.server.has_peer && m.client.has_peer);
    cr_expect_eq(m.server.peer.role, ROLE_WORKER);
    cr_expect_str_eq(m.server.peer.name, "p6");
    cr_expect_str_eq(m.server.peer.fleet, "lab");
    cr_expect_eq(m.client.peer.role, ROLE_COORDINATOR);
    cr_expect_str_eq(m.client.peer.name, "main");
    cr_expect(!tls_session_is_joining(m.server.s));
    struct pki_id id;
    cr_assert_eq(pki_cert_id(worker.cert, &id, NULL), 0);
    cr_expect_str_eq(m.server.peer.serial, id.serial);
    cr_expect_str_eq(m.server.peer.key_hash, id.key_hash);
    cr_expect_eq(m.server.peer.end_s, id.end_s);
    struct pki_id again;
    cr_expect(!tls_session_take_peer(m.server.s, &again));
    part(&m);
    tls_free(&server);
    tls_free(&client);
}

Test(tls, every_operator_role_is_taken)
{
    struct tls *server = trust_server(&lab, &coordinator, &server_world);
    const enum role roles[] = {ROLE_WORKER, ROLE_VIEWER, ROLE_SUBMITTER, ROLE_ADMIN};
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        struct trust_pair self;
        trust_issue(&lab, roles[i], "someone", &self);
        struct tls *client = trust_client(&lab, &self, &client_world, false);
        struct meeting m;
        meet(&m, server, client);
        cr_expect_eq(m.client.io, TLS_DONE);
        cr_assert_eq(m.server.io, TLS_DONE);
        cr_expect_eq(m.server.peer.role, roles[i]);
        part(&m);
        tls_free(&client);
        trust_free(&self);
    }
    tls_free(&server);
}

Test(tls, bytes_go_both_ways_and_the_end_is_seen)
{
    struct tls *server = trust_server(&lab, &coordinator, &server_world);
    struct tls *client = trust_client(&lab, &worker, &client_world, false);
    struct meeting m;
    meet(&m, server, client);
    tls_free(&server); /* the sessions keep what they need */
    tls_free(&client);
    char bytes[64];
    size_t n;
    cr_assert_eq(tls_session_write(m.client.s, "hello", 5, &n), TLS_DONE);
    cr_assert_eq(n, 5);
    cr_assert_eq(tls_session_read(m.server.s, bytes, sizeof(bytes), &n), TLS_DONE);
    cr_assert_eq(n, 5);
    cr_assert_eq(memcmp(bytes, "hello", 5), 0);
    cr_assert_eq(tls_session_read(m.server.s, bytes, sizeof(bytes), &n), TLS_WANT_READ);
    cr_assert_eq(tls_session_write(m.server.s, "you", 3, &n), TLS_DONE);
    tls_session_shutdown(m.server.s);
    cr_assert_eq(tls_session_read(m.client.s, bytes, sizeof(bytes), &n), TLS_DONE);
    cr_assert_eq(n, 3);
    cr_assert_eq(tls_session_read(m.client.s, bytes, sizeof(bytes), &n), TLS_EOF);
    cr_expect_eq(tls_session_bytes_out(m.client.s), tls_session_bytes_in(m.server.s));
    part(&m);
}

Test(tls, an_end_without_notice_is_an_end)
{
    struct tls *server = trust_server(&lab, &coordinator, &server_world);
    struct tls *client = trust_client(&lab, &worker, &client_world, false);
    struct meeting m;
    meet(&m, server, client);
    cr_assert_eq(shutdown(m.client.fd, SHUT_RDWR), 0);
    char byte;
    size_t n;
    cr_assert_eq(tls_session_read(m.server.s, &byte, 1, &n), TLS_EOF);
    /* No SIGPIPE: this process would be gone. */
    enum tls_io io = TLS_DONE;
    for (int i = 0; i < 3 && io == TLS_DONE; i++) {
        io = tls_session_write(m.server.s, "x", 1, &n);
    }
    cr_assert_eq(io, TLS_EOF);
    cr_expect_eq(tls_session_reason(m.server.s), CLOSE_IO);
    cr_expect_str_eq(tls_session_text(m.server.s), strerror(EPIPE));
    part(&m);
    tls_free(&server);
    tls_free(&client);
}

/* A write fails first; what came before can still be read. */
Test(tls, last_words_are_heard_after_a_failed_write)
{
    struct tls *server = trust_server(&lab, &coordinator, &server_world);
    struct tls *client = trust_client(&lab, &worker, &client_world, false);
    struct meeting m;
    meet(&m, server, client);
    char bytes[8];
    size_t n;
    cr_assert_eq(tls_session_write(m.client.s, "bye", 3, &n), TLS_DONE);
    cr_assert_eq(shutdown(m.client.fd, SHUT_RDWR), 0);
    cr_assert_eq(tls_session_write(m.server.s, "x", 1, &n), TLS_EOF);
    cr_expect_str_eq(tls_session_text(m.server.s), strerror(EPIPE));
    cr_assert_eq(tls_session_read(m.server.s, bytes, sizeof(bytes), &n), TLS_DONE);
    cr_expect_eq(n, 3);
    cr_expect_eq(tls_session_read(m.server.s, bytes, sizeof(bytes), &n), TLS_EOF);
    part(&m);
    tls_free(&server);
    tls_free(&client);
}

Test(tls, client_of_another_fleet)
{
    struct trust_pair stranger;
    trust_issue(&other, ROLE_WORKER, "p6", &stranger);
    struct tls *server = trust_server(&lab, &coordinator, &server_world);
    /* It trusts the lab's authority, but shows what its own issued: so the server is the one that says no. */
    struct tls *client = trust_client(&other, &stranger, &client_world, false);
    struct meeting m;
    meet(&m, server, client);
    expect_failed(&m.client, CLOSE_CERT_AUTHORITY, false,
                  "the server's certificate was not issued by the authority of this fleet, lab");
    expect_failed(&m.server, CLOSE_CERT_AUTHORITY, true,
                  "the client says that it is of another fleet than this coordinator (lab)");
    part(&m);
    tls_free(&client);
    tls_free(&server);
    trust_free(&stranger);
}

/* A client that trusts everybody, as no program of ours does, to see what the server alone decides. */
struct raw {
    SSL_CTX *ctx;
    SSL *ssl;
    int fd;
    struct end server;
    int alert; /* that came; 0: none */
    bool done;
};

static void raw_start(struct raw *raw, struct tls *server, const struct trust_pair *self,
                      const char *alpn, int version)
{
    int fds[2];
    memset(raw, 0, sizeof(*raw));
    socket_pair(fds);
    raw->ctx = SSL_CTX_new(TLS_client_method());
    cr_assert_eq(SSL_CTX_set_max_proto_version(raw->ctx, version), 1);
    if (self != NULL) {
        cr_assert_eq(SSL_CTX_use_certificate(raw->ctx, pki_cert_x509(self->cert)), 1);
        cr_assert_eq(SSL_CTX_use_PrivateKey(raw->ctx, pki_key_pkey(self->key)), 1);
    }
    if (alpn != NULL) {
        cr_assert_eq(SSL_CTX_set_alpn_protos(raw->ctx, (const unsigned char *)alpn,
                                             (unsigned)strlen(alpn)),
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
        raw->server.io = advance(&raw->server);
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
    struct tls *server = trust_server(&lab, &coordinator, &server_world);
    struct raw raw;
    raw_start(&raw, server, self, alpn, version);
    raw_meet(&raw);
    expect_failed(&raw.server, reason, false, text);
    cr_expect_eq(raw.alert, alert, "alert %d", raw.alert);
    raw_part(&raw);
    tls_free(&server);
}

Test(tls, server_refuses_a_stranger)
{
    struct trust_pair stranger;
    trust_issue(&other, ROLE_WORKER, "p6", &stranger);
    expect_refused(&stranger, ALPN, TLS1_3_VERSION, CLOSE_CERT_AUTHORITY,
                   "the client's certificate was not issued by the authority of this fleet, lab: it "
                   "must join with a token of this fleet",
                   48);
    trust_free(&stranger);
}

Test(tls, server_refuses_a_self_signed_certificate)
{
    expect_refused(&other, ALPN, TLS1_3_VERSION, CLOSE_CERT_AUTHORITY, "not issued by the authority", 48);
}

Test(tls, server_refuses_a_certificate_for_another_fleet_of_its_own_authority)
{
    /* An authority's key under two names: what the certificate says and what the authority says differ. */
    struct trust_pair twin = {.key = lab.key};
    struct trust_pair self;
    cr_assert_eq(pki_authority_make(lab.key, "labor", TRUST_NOW, &twin.cert, NULL), 0);
    trust_issue(&twin, ROLE_WORKER, "p6", &self);
    expect_refused(&self, ALPN, TLS1_3_VERSION, CLOSE_CERT_AUTHORITY, "", 48);
    pki_cert_free(&twin.cert);
    trust_free(&self);
}

Test(tls, server_refuses_no_certificate)
{
    expect_refused(NULL, ALPN, TLS1_3_VERSION, CLOSE_TLS, "the client showed no certificate", 116);
}

Test(tls, server_refuses_tls_1_2)
{
    expect_refused(&worker, ALPN, TLS1_2_VERSION, CLOSE_TLS, "the other side does not speak TLS 1.3", 70);
}

Test(tls, server_refuses_other_protocols)
{
    expect_refused(&worker, NULL, TLS1_3_VERSION, CLOSE_VERSION, "does not name the protocol", 120);
    expect_refused(&worker, "\x02h2", TLS1_3_VERSION, CLOSE_VERSION, "another protocol than makespan/1",
                   120);
    expect_refused(&worker, "\x0amakespan/2", TLS1_3_VERSION, CLOSE_VERSION, "another protocol", 120);
}

Test(tls, server_refuses_a_coordinator_as_client)
{
    expect_refused(&coordinator, ALPN, TLS1_3_VERSION, CLOSE_CERT_ROLE,
                   "the certificate of coordinator main is not one with which to connect", 43);
}

/* A certificate that the lab's authority signed, and that it would never issue. */
static void forge(const char *san, const char *usage, struct trust_pair *out)
{
    X509 *x = X509_new();
    cr_assert_eq(pki_key_make(&out->key, NULL), 0);
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 7);
    X509_set_issuer_name(x, X509_get_subject_name(pki_cert_x509(lab.cert)));
    ASN1_TIME_set_string_X509(X509_getm_notBefore(x), "20260101000000Z");
    ASN1_TIME_set_string_X509(X509_getm_notAfter(x), "20300101000000Z");
    X509_set_pubkey(x, pki_key_pkey(out->key));
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, NULL, NID_ext_key_usage, usage);
    X509_add_ext(x, ext, -1);
    X509_EXTENSION_free(ext);
    ext = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, san);
    X509_add_ext(x, ext, -1);
    X509_EXTENSION_free(ext);
    cr_assert_gt(X509_sign(x, pki_key_pkey(lab.key), EVP_sha256()), 0);
    out->cert = pki_cert_wrap(x);
    X509_free(x);
}

static void expect_forgery_refused(const char *san, const char *usage, enum close_reason reason,
                                   const char *text, int alert)
{
    struct trust_pair forgery;
    forge(san, usage, &forgery);
    expect_refused(&forgery, ALPN, TLS1_3_VERSION, reason, text, alert);
    trust_free(&forgery);
}

Test(tls, server_refuses_odd_certificates_of_its_own_authority)
{
    expect_forgery_refused("URI:urn:makespan:other:worker:p6", "clientAuth", CLOSE_CERT_AUTHORITY,
                           "the certificate is for the fleet other", 48);
    expect_forgery_refused("URI:urn:makespan:lab:coordinator:p6", "clientAuth", CLOSE_CERT_ROLE,
                           "the certificate of coordinator p6 is not one with which to connect", 43);
    expect_forgery_refused("URI:urn:makespan:lab:worker:p6", "serverAuth", CLOSE_CERT_ROLE,
                           "the certificate of worker p6 is not one with which to connect", 43);
    expect_forgery_refused("DNS:p6", "clientAuth", CLOSE_CERT_ROLE, "names no member of a fleet", 40);
}

Test(tls, server_speaks_with_the_first_of_several_protocols_that_it_knows)
{
    struct tls *server = trust_server(&lab, &coordinator, &server_world);
    struct raw raw;
    raw_start(&raw, server, &worker, "\x02h2" ALPN_JOIN ALPN, TLS1_3_VERSION);
    raw_meet(&raw);
    cr_expect_eq(raw.server.io, TLS_DONE);
    cr_expect(!tls_session_is_joining(raw.server.s));
    raw_part(&raw);
    tls_free(&server);
}

Test(tls, a_list_of_protocols_that_lies_about_its_lengths)
{
    struct tls *server = trust_server(&lab, &coordinator, &server_world);
    struct raw raw;
    raw_start(&raw, server, &worker, "\x01x\x01y" ALPN, TLS1_3_VERSION);
    raw_meet(&raw);
    cr_expect_eq(raw.server.io, TLS_DONE);
    raw_part(&raw);
    tls_free(&server);
}

static void expect_client_told(const struct trust_pair *self, enum close_reason reason,
                               const char *server_text, const char *client_text)
{
    struct tls *server = trust_server(&lab, &coordinator, &server_world);
    struct tls *client = trust_client(&lab, self, &client_world, false);
    struct meeting m;
    meet(&m, server, client);
    expect_failed(&m.server, reason, false, server_text);
    expect_failed(&m.client, reason, true, client_text);
    part(&m);
    tls_free(&server);
    tls_free(&client);
}

Test(tls, client_past_its_end)
{
    struct trust_pair old;
    trust_issue_dated(&lab, ROLE_WORKER, "p6", TRUST_NOW - 400 * PKI_DAY_S, TRUST_NOW - 1, &old);
    expect_client_told(&old, CLOSE_CERT_EXPIRED,
                       "the certificate of worker p6 ended on 2026-11-30 11:59 UTC: an admin must make a "
                       "new token and it must join again",
                       "the coordinator says that the certificate of worker p6 is past its end, "
                       "2026-11-30 11:59 UTC: an admin must make a new token");
    trust_free(&old);
}

Test(tls, the_last_second_still_counts)
{
    struct trust_pair just;
    trust_issue_dated(&lab, ROLE_WORKER, "p6", TRUST_NOW, TRUST_NOW, &just);
    struct tls *server = trust_server(&lab, &coordinator, &server_world);
    struct tls *client = trust_client(&lab, &just, &client_world, false);
    struct meeting m;
    meet(&m, server, client);
    cr_expect_eq(m.server.io, TLS_DONE, "%s", tls_session_text(m.server.s));
    cr_expect_eq(m.client.io, TLS_DONE);
    part(&m);
    tls_free(&server);
    tls_free(&client);
    trust_free(&just);
}

Test(tls, client_that_has_not_begun)
{
    struct trust_pair early;
    trust_issue_dated(&lab, ROLE_ADMIN, "ann", TRUST_NOW + 1, TRUST_NOW + PKI_DAY_S, &early);
    expect_client_told(&early, CLOSE_CERT_NOT_YET,
                       "the certificate of admin ann begins on 2026-11-30 12:00 UTC, and by the clock of "
                       "this coordinator it is 2026-11-30 12:00 UTC: set the clock",
                       "the coordinator says that the certificate of admin ann has not begun");
    trust_free(&early);
}

Test(tls, revoked_client)
{
    struct pki_id id;
    cr_assert_eq(pki_cert_id(worker.cert, &id, NULL), 0);
    server_world.revoked = id.serial;
    expect_client_told(&worker, CLOSE_REVOKED,
                       "the certificate of worker p6 was revoked: an admin must make a new token",
                       "the certificate of worker p6 was revoked: an admin must make a new token");
    /* The others come in. */
    struct tls *server = trust_server(&lab, &coordinator, &server_world);
    struct tls *client = trust_client(&lab, &viewer, &client_world, false);
    struct meeting m;
    meet(&m, server, client);
    cr_expect_eq(m.server.io, TLS_DONE);
    part(&m);
    tls_free(&server);
    tls_free(&client);
}

Test(tls, client_by_the_clock_of_the_server)
{
    /* The client's clock does not matter for its own certificate: the server's decides. */
    client_world.now_s = 0;
    struct tls *server = trust_server(&lab, &coordinator, &server_world);
    struct tls *client = trust_client(&lab, &worker, &client_world, true);
    struct meeting m;
    meet(&m, server, client);
    cr_expect_eq(m.server.io, TLS_DONE);
    cr_expect_eq(m.client.io, TLS_DONE, "a clock at 1970 does not stop a worker");
    part(&m);
    tls_free(&server);
    tls_free(&client);
}

static void expect_server_refused(const struct trust_pair *self, enum close_reason reason,
                                  const char *client_text, const char *server_text)
{
    struct tls *server = trust_server(&lab, self, &server_world);
    struct tls *client = trust_client(&lab, &worker, &client_world, false);
    struct meeting m;
    meet(&m, server, client);
    expect_failed(&m.client, reason, false, client_text);
    expect_failed(&m.server, reason, true, server_text);
    part(&m);
    tls_free(&server);
    tls_free(&client);
}

Test(tls, client_with_a_late_clock)
{
    client_world.now_s = 0;
    expect_server_refused(&coordinator, CLOSE_CERT_NOT_YET,
                          "and by the clock of this host it is 1970-01-01 00:00 UTC: set the clock",
                          "by the client's clock this coordinator's certificate has not begun");
}

Test(tls, client_with_a_clock_ahead)
{
    client_world.now_s = TRUST_NOW + 2 * 365 * PKI_DAY_S;
    expect_server_refused(&coordinator, CLOSE_CERT_EXPIRED,
                          "the coordinator's certificate ended on 2027-11-30 12:00 UTC, and by the clock "
                          "of this host it is 2028-11-29 12:00 UTC: set the clock if it is wrong",
                          "by the client's clock this coordinator's certificate is past its end");
}

Test(tls, authority_past_its_end)
{
    client_world.now_s = TRUST_NOW + 11 * 365 * PKI_DAY_S;
    expect_server_refused(&coordinator, CLOSE_CERT_EXPIRED, "the authority of the fleet lab ended on",
                          "past its end");
}

/* A server of ours refuses to be made with a worker's certificate; so a worker's is shown by hand. */
static void imposter(const struct trust_pair *self, struct tls *client, enum close_reason reason,
                     const char *text)
{
    int fds[2];
    socket_pair(fds);
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    cr_assert_eq(SSL_CTX_use_certificate(ctx, pki_cert_x509(self->cert)), 1);
    cr_assert_eq(SSL_CTX_use_PrivateKey(ctx, pki_key_pkey(self->key)), 1);
    cr_assert_eq(SSL_CTX_add1_chain_cert(ctx, pki_cert_x509(lab.cert)), 1);
    SSL *ssl = SSL_new(ctx);
    SSL_set_fd(ssl, fds[0]);
    SSL_set_accept_state(ssl);
    struct end end = {.fd = fds[1], .io = TLS_WANT_READ};
    cr_assert_eq(tls_session_new(client, fds[1], &end.s, NULL), 0);
    for (int i = 0; i < 50; i++) {
        end.io = advance(&end);
        (void)SSL_do_handshake(ssl);
    }
    expect_failed(&end, reason, false, text);
    tls_session_free(&end.s);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    close(fds[0]);
    close(fds[1]);
    ERR_clear_error();
}

Test(tls, a_worker_is_no_coordinator)
{
    struct tls *client = trust_client(&lab, &viewer, &client_world, false);
    imposter(&worker, client, CLOSE_CERT_ROLE,
             "the server at this address has the certificate of worker p6, not that of a coordinator");
    tls_free(&client);
    struct tls *joiner = trust_joiner(&lab, &client_world, false);
    imposter(&worker, joiner, CLOSE_CERT_ROLE, "not that of a coordinator: do not trust it");
    tls_free(&joiner);
}

Test(tls, a_coordinator_by_name_alone)
{
    struct trust_pair forgery;
    struct tls *client = trust_client(&lab, &worker, &client_world, false);
    forge("URI:urn:makespan:lab:coordinator:main", "clientAuth", &forgery);
    imposter(&forgery, client, CLOSE_CERT_ROLE, "(coordinator main) is not one for servers");
    trust_free(&forgery);
    forge("URI:urn:makespan:lab:worker:main", "serverAuth", &forgery);
    imposter(&forgery, client, CLOSE_CERT_ROLE, "has the certificate of worker main, not that of a");
    trust_free(&forgery);
    tls_free(&client);
}

Test(tls, a_server_that_agrees_on_no_protocol)
{
    struct tls *client = trust_client(&lab, &worker, &client_world, false);
    imposter(&coordinator, client, CLOSE_VERSION, "the other side does not speak makespan/1");
    tls_free(&client);
}

Test(tls, joiner_comes_in_without_certificate)
{
    struct tls *server = trust_server(&lab, &coordinator, &server_world);
    struct tls *client = trust_joiner(&lab, &client_world, false);
    struct meeting m;
    meet(&m, server, client);
    cr_assert_eq(m.server.io, TLS_DONE, "%s", tls_session_text(m.server.s));
    cr_assert_eq(m.client.io, TLS_DONE, "%s", tls_session_text(m.client.s));
    cr_expect(tls_session_is_joining(m.server.s) && tls_session_is_joining(m.client.s));
    cr_expect(!m.server.has_peer);
    cr_assert(m.client.has_peer);
    cr_expect_eq(m.client.peer.role, ROLE_COORDINATOR);
    cr_expect_str_eq(m.client.peer.fleet, "lab");
    part(&m);
    tls_free(&server);
    tls_free(&client);
}

Test(tls, joiner_with_a_token_of_another_fleet)
{
    struct tls *server = trust_server(&lab, &coordinator, &server_world);
    struct tls *client = trust_joiner(&other, &client_world, false);
    struct meeting m;
    meet(&m, server, client);
    expect_failed(&m.client, CLOSE_CERT_AUTHORITY, false,
                  "the token is of another fleet than the coordinator at this address");
    expect_failed(&m.server, CLOSE_CERT_AUTHORITY, true, "of another fleet");
    part(&m);
    tls_free(&server);
    tls_free(&client);
}

/* Whoever shows the right authority beside a certificate that it did not sign is not taken. */
Test(tls, joiner_is_not_fooled_by_a_borrowed_authority)
{
    struct trust_pair fake;
    trust_issue(&other, ROLE_COORDINATOR, "main", &fake);
    struct tls *joiner = trust_joiner(&lab, &client_world, false);
    imposter(&fake, joiner, CLOSE_CERT_AUTHORITY, "another fleet");
    tls_free(&joiner);
    trust_free(&fake);
}

Test(tls, joiner_and_clocks)
{
    struct tls *server = trust_server(&lab, &coordinator, &server_world);
    struct meeting m;
    client_world.now_s = 0;
    struct tls *client = trust_joiner(&lab, &client_world, true);
    meet(&m, server, client);
    cr_expect_eq(m.client.io, TLS_DONE);
    part(&m);
    client_world.now_s = TRUST_NOW + 3 * 365 * PKI_DAY_S;
    meet(&m, server, client);
    expect_failed(&m.client, CLOSE_CERT_EXPIRED, false, "by the clock of this host it is 2029-11-29");
    part(&m);
    tls_free(&client);
    tls_free(&server);
}

Test(tls, joining_may_be_off)
{
    struct tls_server_config config = {.key = coordinator.key,
                                       .cert = coordinator.cert,
                                       .authority = lab.cert,
                                       .now_s = trust_now,
                                       .arg = &server_world};
    struct tls *server;
    cr_assert_eq(tls_new_server(&config, &server, NULL), 0);
    struct tls *client = trust_joiner(&lab, &client_world, false);
    struct meeting m;
    meet(&m, server, client);
    expect_failed(&m.server, CLOSE_VERSION, false, "another protocol");
    expect_failed(&m.client, CLOSE_VERSION, true, "does not speak makespan-join/1");
    part(&m);
    tls_free(&server);
    tls_free(&client);
}

Test(tls, nobody_is_asked_after_the_owner_left)
{
    struct tls *server = trust_server(&lab, &coordinator, &server_world);
    struct tls *client = trust_client(&lab, &worker, &client_world, false);
    struct meeting m;
    start(&m, server, client);
    tls_free(&server);
    for (int i = 0; i < 20; i++) {
        m.client.io = advance(&m.client);
        m.server.io = advance(&m.server);
    }
    expect_failed(&m.server, CLOSE_SHUTDOWN, false, "the program stops");
    cr_expect_eq(server_world.asked, 0);
    part(&m);
    tls_free(&client);
}

Test(tls, a_renewed_certificate_is_shown)
{
    struct tls *server = trust_server(&lab, &coordinator, &server_world);
    struct tls *client = trust_client(&lab, &worker, &client_world, false);
    struct trust_pair fresh, foreign;
    struct diag *diag = diag_new(4);
    trust_issue(&lab, ROLE_COORDINATOR, "second", &fresh);
    trust_issue(&other, ROLE_COORDINATOR, "third", &foreign);
    cr_expect_eq(tls_renew(server, foreign.key, foreign.cert, diag), -ERR_CONFLICT);
    cr_expect_eq(tls_renew(server, coordinator.key, fresh.cert, NULL), -ERR_CONFLICT);
    cr_expect_eq(tls_renew(client, fresh.key, fresh.cert, NULL), -ERR_STATE);
    cr_assert_eq(tls_renew(server, fresh.key, fresh.cert, NULL), 0);
    struct tls *joiner = trust_joiner(&lab, &client_world, false);
    struct meeting m;
    meet(&m, server, client);
    cr_assert(m.client.has_peer);
    cr_expect_str_eq(m.client.peer.name, "second");
    part(&m);
    meet(&m, server, joiner); /* the authority is still shown */
    cr_expect(m.client.has_peer);
    part(&m);
    tls_free(&joiner);
    tls_free(&server);
    tls_free(&client);
    trust_free(&fresh);
    trust_free(&foreign);
    diag_free(&diag);
}

Test(tls, contexts_refuse_what_does_not_fit)
{
    struct tls *tls;
    struct diag *diag = diag_new(8);
    struct tls_client_config client = {
        .key = viewer.key, .cert = worker.cert, .authority = lab.cert, .now_s = trust_now};
    cr_expect_eq(tls_new_client(&client, &tls, diag), -ERR_CONFLICT);
    cr_expect_str_eq(diag_first(diag), "the certificate of worker p6 belongs to another key");
    cr_expect_null(tls);
    client.key = worker.key;
    client.authority = other.cert;
    cr_expect_eq(tls_new_client(&client, &tls, NULL), -ERR_CONFLICT);
    client.authority = worker.cert;
    cr_expect_eq(tls_new_client(&client, &tls, NULL), -ERR_INVAL);
    client = (struct tls_client_config){
        .key = coordinator.key, .cert = coordinator.cert, .authority = lab.cert, .now_s = trust_now};
    cr_expect_eq(tls_new_client(&client, &tls, NULL), -ERR_INVAL);
    struct tls_server_config server = {
        .key = worker.key, .cert = worker.cert, .authority = lab.cert, .now_s = trust_now};
    cr_expect_eq(tls_new_server(&server, &tls, NULL), -ERR_INVAL);
    diag_free(&diag);
}

Test(tls, what_comes_is_no_tls)
{
    static const struct {
        const char *bytes;
        const char *text;
    } cases[] = {
        {"GET / HTTP/1.0\r\n\r\n", "a request of HTTP came in place of TLS"},
        {"SSH-2.0-OpenSSH_9.2\r\n", "what came is not TLS: is this the right port?"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct tls *server = trust_server(&lab, &coordinator, &server_world);
        int fds[2];
        socket_pair(fds);
        struct end end = {.fd = fds[0], .io = TLS_WANT_READ};
        cr_assert_eq(tls_session_new(server, fds[0], &end.s, NULL), 0);
        cr_assert_eq(write(fds[1], cases[i].bytes, strlen(cases[i].bytes)),
                     (ssize_t)strlen(cases[i].bytes));
        end.io = advance(&end);
        expect_failed(&end, CLOSE_TLS, false, cases[i].text);
        tls_session_free(&end.s);
        close(fds[0]);
        close(fds[1]);
        tls_free(&server);
    }
}

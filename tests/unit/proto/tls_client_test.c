/* Whom a client, and a program that joins, take for their coordinator, and by what clock. */
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

TestSuite(tls_client, .init = set_up, .fini = tear_down);

Test(tls_client, client_of_another_fleet)
{
    struct trust_pair stranger;
    trust_issue(&cast.other, ROLE_WORKER, "p6", &stranger);
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    /* It trusts the lab's authority, but shows what its own issued: so the server is the one that
     * says no. */
    struct tls *client = trust_client(&cast.other, &stranger, &cast.client, false);
    struct meeting m;
    meeting_hold(&m, server, client);
    meeting_expect_failed(
        &m.client, CLOSE_CERT_AUTHORITY, false,
        "the server's certificate was not issued by the authority of this fleet, lab");
    meeting_expect_failed(
        &m.server, CLOSE_CERT_AUTHORITY, true,
        "the client says that it is of another fleet than this coordinator (lab)");
    meeting_part(&m);
    tls_free(&client);
    tls_free(&server);
    trust_free(&stranger);
}

static void expect_server_refused(const struct trust_pair *self, enum close_reason reason,
                                  const char *client_text, const char *server_text)
{
    struct tls *server = trust_server(&cast.lab, self, &cast.server);
    struct tls *client = trust_client(&cast.lab, &cast.worker, &cast.client, false);
    struct meeting m;
    meeting_hold(&m, server, client);
    meeting_expect_failed(&m.client, reason, false, client_text);
    meeting_expect_failed(&m.server, reason, true, server_text);
    meeting_part(&m);
    tls_free(&server);
    tls_free(&client);
}

Test(tls_client, client_with_a_late_clock)
{
    cast.client.now_s = 0;
    expect_server_refused(&cast.coordinator, CLOSE_CERT_NOT_YET,
                          "and by the clock of this host it is 1970-01-01 00:00 UTC: set the clock",
                          "by the client's clock this coordinator's certificate has not begun");
}

Test(tls_client, client_with_a_clock_ahead)
{
    cast.client.now_s = TRUST_NOW + 2 * 365 * PKI_DAY_S;
    expect_server_refused(
        &cast.coordinator, CLOSE_CERT_EXPIRED,
        "the coordinator's certificate ended on 2027-11-30 12:00 UTC, and by the clock "
        "of this host it is 2028-11-29 12:00 UTC: set the clock if it is wrong",
        "by the client's clock this coordinator's certificate is past its end");
}

Test(tls_client, authority_past_its_end)
{
    cast.client.now_s = TRUST_NOW + 11 * 365 * PKI_DAY_S;
    expect_server_refused(&cast.coordinator, CLOSE_CERT_EXPIRED,
                          "the authority of the fleet lab ended on", "past its end");
}

/* A server of ours refuses to be made with a worker's certificate; so a worker's is shown by
 * hand. */
static void imposter(const struct trust_pair *self, struct tls *client, enum close_reason reason,
                     const char *text)
{
    int fds[2];
    meeting_sockets(fds);
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    cr_assert_eq(SSL_CTX_use_certificate(ctx, pki_cert_x509(self->cert)), 1);
    cr_assert_eq(SSL_CTX_use_PrivateKey(ctx, pki_key_pkey(self->key)), 1);
    cr_assert_eq(SSL_CTX_add1_chain_cert(ctx, pki_cert_x509(cast.lab.cert)), 1);
    SSL *ssl = SSL_new(ctx);
    SSL_set_fd(ssl, fds[0]);
    SSL_set_accept_state(ssl);
    struct meeting_side end = {.fd = fds[1], .io = TLS_WANT_READ};
    cr_assert_eq(tls_session_new(client, fds[1], &end.s, NULL), 0);
    for (int i = 0; i < 50; i++) {
        end.io = meeting_advance(&end);
        (void)SSL_do_handshake(ssl);
    }
    meeting_expect_failed(&end, reason, false, text);
    tls_session_free(&end.s);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    close(fds[0]);
    close(fds[1]);
    ERR_clear_error();
}

Test(tls_client, a_worker_is_no_coordinator)
{
    struct tls *client = trust_client(&cast.lab, &cast.viewer, &cast.client, false);
    imposter(
        &cast.worker, client, CLOSE_CERT_ROLE,
        "the server at this address has the certificate of worker p6, not that of a coordinator");
    tls_free(&client);
    struct tls *joiner = trust_joiner(&cast.lab, &cast.client, false);
    imposter(&cast.worker, joiner, CLOSE_CERT_ROLE, "not that of a coordinator: do not trust it");
    tls_free(&joiner);
}

Test(tls_client, a_coordinator_by_name_alone)
{
    struct trust_pair forgery;
    struct tls *client = trust_client(&cast.lab, &cast.worker, &cast.client, false);
    trust_forge(&cast.lab, "URI:urn:makespan:lab:coordinator:main", "clientAuth", &forgery);
    imposter(&forgery, client, CLOSE_CERT_ROLE, "(coordinator main) is not one for servers");
    trust_free(&forgery);
    trust_forge(&cast.lab, "URI:urn:makespan:lab:worker:main", "serverAuth", &forgery);
    imposter(&forgery, client, CLOSE_CERT_ROLE,
             "has the certificate of worker main, not that of a");
    trust_free(&forgery);
    tls_free(&client);
}

Test(tls_client, a_server_that_agrees_on_no_protocol)
{
    struct tls *client = trust_client(&cast.lab, &cast.worker, &cast.client, false);
    imposter(&cast.coordinator, client, CLOSE_VERSION, "the other side does not speak makespan/1");
    tls_free(&client);
}

Test(tls_client, joiner_comes_in_without_certificate)
{
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    struct tls *client = trust_joiner(&cast.lab, &cast.client, false);
    struct meeting m;
    meeting_hold(&m, server, client);
    cr_assert_eq(m.server.io, TLS_DONE, "%s", tls_session_text(m.server.s));
    cr_assert_eq(m.client.io, TLS_DONE, "%s", tls_session_text(m.client.s));
    cr_expect(tls_session_is_joining(m.server.s) && tls_session_is_joining(m.client.s));
    cr_expect(!m.server.has_peer);
    cr_assert(m.client.has_peer);
    cr_expect_eq(m.client.peer.role, ROLE_COORDINATOR);
    cr_expect_str_eq(m.client.peer.fleet, "lab");
    meeting_part(&m);
    tls_free(&server);
    tls_free(&client);
}

Test(tls_client, joiner_with_a_token_of_another_fleet)
{
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    struct tls *client = trust_joiner(&cast.other, &cast.client, false);
    struct meeting m;
    meeting_hold(&m, server, client);
    meeting_expect_failed(&m.client, CLOSE_CERT_AUTHORITY, false,
                          "the token is of another fleet than the coordinator at this address");
    meeting_expect_failed(&m.server, CLOSE_CERT_AUTHORITY, true, "of another fleet");
    meeting_part(&m);
    tls_free(&server);
    tls_free(&client);
}

/* Whoever shows the right authority beside a certificate that it did not sign is not taken. */
Test(tls_client, joiner_is_not_fooled_by_a_borrowed_authority)
{
    struct trust_pair fake;
    trust_issue(&cast.other, ROLE_COORDINATOR, "main", &fake);
    struct tls *joiner = trust_joiner(&cast.lab, &cast.client, false);
    imposter(&fake, joiner, CLOSE_CERT_AUTHORITY, "another fleet");
    tls_free(&joiner);
    trust_free(&fake);
}

Test(tls_client, joiner_and_clocks)
{
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    struct meeting m;
    cast.client.now_s = 0;
    struct tls *client = trust_joiner(&cast.lab, &cast.client, true);
    meeting_hold(&m, server, client);
    cr_expect_eq(m.client.io, TLS_DONE);
    meeting_part(&m);
    cast.client.now_s = TRUST_NOW + 3 * 365 * PKI_DAY_S;
    meeting_hold(&m, server, client);
    meeting_expect_failed(&m.client, CLOSE_CERT_EXPIRED, false,
                          "by the clock of this host it is 2029-11-29");
    meeting_part(&m);
    tls_free(&client);
    tls_free(&server);
}

Test(tls_client, joining_may_be_off)
{
    struct tls_server_config config = {.key = cast.coordinator.key,
                                       .cert = cast.coordinator.cert,
                                       .authority = cast.lab.cert,
                                       .now_s = trust_now,
                                       .arg = &cast.server};
    struct tls *server;
    cr_assert_eq(tls_new_server(&config, &server, NULL), 0);
    struct tls *client = trust_joiner(&cast.lab, &cast.client, false);
    struct meeting m;
    meeting_hold(&m, server, client);
    meeting_expect_failed(&m.server, CLOSE_VERSION, false, "another protocol");
    meeting_expect_failed(&m.client, CLOSE_VERSION, true, "does not speak makespan-join/1");
    meeting_part(&m);
    tls_free(&server);
    tls_free(&client);
}

/* An alert in clear text proves nothing of who sent it: whoever answers at the address can say that a certificate was revoked, and a client that believed
 * it would not dial again. */
Test(tls_client, an_alert_from_nobody_gives_no_reason)
{
    static const unsigned char alerts[] = {42, 43, 44, 45, 48};
    struct tls *client = trust_client(&cast.lab, &cast.worker, &cast.client, false);
    for (size_t i = 0; i < sizeof(alerts); i++) {
        const unsigned char record[] = {21, 3, 3, 0, 2, 2, alerts[i]};
        int fds[2];
        meeting_sockets(fds);
        struct meeting_side end = {.fd = fds[1], .io = TLS_WANT_READ};
        cr_assert_eq(tls_session_new(client, fds[1], &end.s, NULL), 0);
        end.io = meeting_advance(&end);
        cr_assert_eq(end.io, TLS_WANT_READ);
        cr_assert_eq(write(fds[0], record, sizeof(record)), (ssize_t)sizeof(record));
        end.io = meeting_advance(&end);
        meeting_expect_failed(&end, CLOSE_TLS, true, "the other side ended TLS: ");
        cr_expect(close_dial_again((uint32_t)tls_session_reason(end.s)));
        tls_session_free(&end.s);
        close(fds[0]);
        close(fds[1]);
    }
    tls_free(&client);
}

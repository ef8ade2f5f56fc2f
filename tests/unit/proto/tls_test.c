/* TLS between a coordinator and those whom it takes: what both know, the end, clocks and revoked
 * certificates, contexts. Whom a server refuses: tls_server_test.c; a client: tls_client_test.c. */
#include "common/diag.h"
#include "common/err.h"
#include "common/str.h"
#include "proto/pki_ossl.h"
#include "proto/tls_ctx.h"
#include "tests/unit/proto/meeting.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
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

TestSuite(tls, .init = set_up, .fini = tear_down);

Test(tls, both_sides_know_each_other)
{
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    struct tls *client = trust_client(&cast.lab, &cast.worker, &cast.client, false);
    struct meeting m;
    meeting_hold(&m, server, client);
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
    cr_assert_eq(pki_cert_id(cast.worker.cert, &id, NULL), 0);
    cr_expect_str_eq(m.server.peer.serial, id.serial);
    cr_expect_str_eq(m.server.peer.key_hash, id.key_hash);
    cr_expect_eq(m.server.peer.end_s, id.end_s);
    struct pki_id again;
    cr_expect(!tls_session_take_peer(m.server.s, &again));
    meeting_part(&m);
    tls_free(&server);
    tls_free(&client);
}

Test(tls, every_operator_role_is_taken)
{
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    const enum role roles[] = {ROLE_WORKER, ROLE_VIEWER, ROLE_SUBMITTER, ROLE_ADMIN};
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        struct trust_pair self;
        trust_issue(&cast.lab, roles[i], "someone", &self);
        struct tls *client = trust_client(&cast.lab, &self, &cast.client, false);
        struct meeting m;
        meeting_hold(&m, server, client);
        cr_expect_eq(m.client.io, TLS_DONE);
        cr_assert_eq(m.server.io, TLS_DONE);
        cr_expect_eq(m.server.peer.role, roles[i]);
        meeting_part(&m);
        tls_free(&client);
        trust_free(&self);
    }
    tls_free(&server);
}

Test(tls, bytes_go_both_ways_and_the_end_is_seen)
{
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    struct tls *client = trust_client(&cast.lab, &cast.worker, &cast.client, false);
    struct meeting m;
    meeting_hold(&m, server, client);
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
    meeting_part(&m);
}

Test(tls, an_end_without_notice_is_an_end)
{
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    struct tls *client = trust_client(&cast.lab, &cast.worker, &cast.client, false);
    struct meeting m;
    meeting_hold(&m, server, client);
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
    meeting_part(&m);
    tls_free(&server);
    tls_free(&client);
}

/* A write fails first; what came before can still be read. */
Test(tls, last_words_are_heard_after_a_failed_write)
{
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    struct tls *client = trust_client(&cast.lab, &cast.worker, &cast.client, false);
    struct meeting m;
    meeting_hold(&m, server, client);
    char bytes[8];
    size_t n;
    cr_assert_eq(tls_session_write(m.client.s, "bye", 3, &n), TLS_DONE);
    cr_assert_eq(shutdown(m.client.fd, SHUT_RDWR), 0);
    cr_assert_eq(tls_session_write(m.server.s, "x", 1, &n), TLS_EOF);
    cr_expect_str_eq(tls_session_text(m.server.s), strerror(EPIPE));
    cr_assert_eq(tls_session_read(m.server.s, bytes, sizeof(bytes), &n), TLS_DONE);
    cr_expect_eq(n, 3);
    cr_expect_eq(tls_session_read(m.server.s, bytes, sizeof(bytes), &n), TLS_EOF);
    meeting_part(&m);
    tls_free(&server);
    tls_free(&client);
}

static void expect_client_told(const struct trust_pair *self, enum close_reason reason,
                               const char *server_text, const char *client_text)
{
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    struct tls *client = trust_client(&cast.lab, self, &cast.client, false);
    struct meeting m;
    meeting_hold(&m, server, client);
    meeting_expect_failed(&m.server, reason, false, server_text);
    meeting_expect_failed(&m.client, reason, true, client_text);
    meeting_part(&m);
    tls_free(&server);
    tls_free(&client);
}

Test(tls, client_past_its_end)
{
    struct trust_pair old;
    trust_issue_dated(&cast.lab, ROLE_WORKER, "p6", TRUST_NOW - 400 * PKI_DAY_S, TRUST_NOW - 1,
                      &old);
    expect_client_told(
        &old, CLOSE_CERT_EXPIRED,
        "the certificate of worker p6 ended on 2026-11-30 11:59 UTC: an admin must make a "
        "new token and it must join again",
        "the coordinator says that the certificate of worker p6 is past its end, "
        "2026-11-30 11:59 UTC: an admin must make a new token");
    trust_free(&old);
}

Test(tls, the_last_second_still_counts)
{
    struct trust_pair just;
    trust_issue_dated(&cast.lab, ROLE_WORKER, "p6", TRUST_NOW, TRUST_NOW, &just);
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    struct tls *client = trust_client(&cast.lab, &just, &cast.client, false);
    struct meeting m;
    meeting_hold(&m, server, client);
    cr_expect_eq(m.server.io, TLS_DONE, "%s", tls_session_text(m.server.s));
    cr_expect_eq(m.client.io, TLS_DONE);
    meeting_part(&m);
    tls_free(&server);
    tls_free(&client);
    trust_free(&just);
}

Test(tls, client_that_has_not_begun)
{
    struct trust_pair early;
    trust_issue_dated(&cast.lab, ROLE_ADMIN, "ann", TRUST_NOW + 1, TRUST_NOW + PKI_DAY_S, &early);
    expect_client_told(
        &early, CLOSE_CERT_NOT_YET,
        "the certificate of admin ann begins on 2026-11-30 12:00 UTC, and by the clock of "
        "this coordinator it is 2026-11-30 12:00 UTC: set the clock",
        "the coordinator says that the certificate of admin ann has not begun");
    trust_free(&early);
}

Test(tls, revoked_client)
{
    struct pki_id id;
    cr_assert_eq(pki_cert_id(cast.worker.cert, &id, NULL), 0);
    cast.server.revoked = id.serial;
    expect_client_told(&cast.worker, CLOSE_REVOKED,
                       "the certificate of worker p6 was revoked: an admin must make a new token",
                       "the certificate of worker p6 was revoked: an admin must make a new token");
    /* The others come in. */
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    struct tls *client = trust_client(&cast.lab, &cast.viewer, &cast.client, false);
    struct meeting m;
    meeting_hold(&m, server, client);
    cr_expect_eq(m.server.io, TLS_DONE);
    meeting_part(&m);
    tls_free(&server);
    tls_free(&client);
}

Test(tls, client_by_the_clock_of_the_server)
{
    /* The client's clock does not matter for its own certificate: the server's decides. */
    cast.client.now_s = 0;
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    struct tls *client = trust_client(&cast.lab, &cast.worker, &cast.client, true);
    struct meeting m;
    meeting_hold(&m, server, client);
    cr_expect_eq(m.server.io, TLS_DONE);
    cr_expect_eq(m.client.io, TLS_DONE, "a clock at 1970 does not stop a worker");
    meeting_part(&m);
    tls_free(&server);
    tls_free(&client);
}

Test(tls, nobody_is_asked_after_the_owner_left)
{
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    struct tls *client = trust_client(&cast.lab, &cast.worker, &cast.client, false);
    struct meeting m;
    meeting_start(&m, server, client);
    tls_free(&server);
    for (int i = 0; i < 20; i++) {
        m.client.io = meeting_advance(&m.client);
        m.server.io = meeting_advance(&m.server);
    }
    meeting_expect_failed(&m.server, CLOSE_SHUTDOWN, false, "the program stops");
    cr_expect_eq(cast.server.asked, 0);
    meeting_part(&m);
    tls_free(&client);
}

Test(tls, a_renewed_certificate_is_shown)
{
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    struct tls *client = trust_client(&cast.lab, &cast.worker, &cast.client, false);
    struct trust_pair fresh, foreign;
    struct diag *diag = diag_new(4);
    trust_issue(&cast.lab, ROLE_COORDINATOR, "second", &fresh);
    trust_issue(&cast.other, ROLE_COORDINATOR, "third", &foreign);
    cr_expect_eq(tls_renew(server, foreign.key, foreign.cert, diag), -ERR_CONFLICT);
    cr_expect_eq(tls_renew(server, cast.coordinator.key, fresh.cert, NULL), -ERR_CONFLICT);
    cr_expect_eq(tls_renew(client, fresh.key, fresh.cert, NULL), -ERR_STATE);
    cr_assert_eq(tls_renew(server, fresh.key, fresh.cert, NULL), 0);
    struct tls *joiner = trust_joiner(&cast.lab, &cast.client, false);
    struct meeting m;
    meeting_hold(&m, server, client);
    cr_assert(m.client.has_peer);
    cr_expect_str_eq(m.client.peer.name, "second");
    meeting_part(&m);
    meeting_hold(&m, server, joiner); /* the authority is still shown */
    cr_expect(m.client.has_peer);
    meeting_part(&m);
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
    struct tls_client_config client = {.key = cast.viewer.key,
                                       .cert = cast.worker.cert,
                                       .authority = cast.lab.cert,
                                       .now_s = trust_now};
    cr_expect_eq(tls_new_client(&client, &tls, diag), -ERR_CONFLICT);
    cr_expect_str_eq(diag_first(diag), "the certificate of worker p6 belongs to another key");
    cr_expect_null(tls);
    client.key = cast.worker.key;
    client.authority = cast.other.cert;
    cr_expect_eq(tls_new_client(&client, &tls, NULL), -ERR_CONFLICT);
    client.authority = cast.worker.cert;
    cr_expect_eq(tls_new_client(&client, &tls, NULL), -ERR_INVAL);
    client = (struct tls_client_config){.key = cast.coordinator.key,
                                        .cert = cast.coordinator.cert,
                                        .authority = cast.lab.cert,
                                        .now_s = trust_now};
    cr_expect_eq(tls_new_client(&client, &tls, NULL), -ERR_INVAL);
    struct tls_server_config server = {.key = cast.worker.key,
                                       .cert = cast.worker.cert,
                                       .authority = cast.lab.cert,
                                       .now_s = trust_now};
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
        struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
        int fds[2];
        meeting_sockets(fds);
        struct meeting_side end = {.fd = fds[0], .io = TLS_WANT_READ};
        cr_assert_eq(tls_session_new(server, fds[0], &end.s, NULL), 0);
        cr_assert_eq(write(fds[1], cases[i].bytes, strlen(cases[i].bytes)),
                     (ssize_t)strlen(cases[i].bytes));
        end.io = meeting_advance(&end);
        meeting_expect_failed(&end, CLOSE_TLS, false, cases[i].text);
        tls_session_free(&end.s);
        close(fds[0]);
        close(fds[1]);
        tls_free(&server);
    }
}

/* A client, also one without a certificate, may send records without content for as long as it likes. One read must not take them all: it would keep
 * the loop as long as they come. */
Test(tls, a_read_ends_after_a_record_without_content)
{
    enum { RECORDS = 20 };
    struct tls *server = trust_server(&cast.lab, &cast.coordinator, &cast.server);
    struct tls *client = trust_joiner(&cast.lab, &cast.client, false);
    struct meeting m;
    char byte;
    size_t got;
    size_t reads = 0;
    int there = 1;
    meeting_hold(&m, server, client);
    cr_assert_eq(m.server.io, TLS_DONE);
    for (int i = 0; i < RECORDS; i++) {
        cr_assert_eq(SSL_key_update(m.client.s->ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        cr_assert_eq(SSL_do_handshake(m.client.s->ssl), 1);
    }
    while (there > 0) {
        cr_assert_eq(tls_session_read(m.server.s, &byte, 1, &got), TLS_WANT_READ);
        cr_assert_eq(ioctl(m.server.fd, FIONREAD, &there), 0);
        reads++;
    }
    cr_expect_eq(reads, RECORDS, "%zu reads", reads);
    cr_assert_eq(tls_session_write(m.client.s, "x", 1, &got), TLS_DONE);
    cr_expect_eq(tls_session_read(m.server.s, &byte, 1, &got), TLS_DONE);
    meeting_part(&m);
    tls_free(&server);
    tls_free(&client);
}

/* meeting.c: handshakes for tests. */
#include "tests/unit/proto/meeting.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void meeting_sockets(int fds[2])
{
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
}

static bool waits(enum tls_io io)
{
    return io == TLS_WANT_READ || io == TLS_WANT_WRITE;
}

enum tls_io meeting_advance(struct meeting_side *end)
{
    if (end->io == TLS_DONE) {
        char byte;
        size_t got;
        enum tls_io io = tls_session_read(end->s, &byte, 1, &got);
        return io == TLS_FAILED || io == TLS_EOF ? io : TLS_DONE;
    }
    return waits(end->io) ? tls_session_handshake(end->s) : end->io;
}

void meeting_start(struct meeting *m, struct tls *server, struct tls *client)
{
    int fds[2];
    memset(m, 0, sizeof(*m));
    meeting_sockets(fds);
    m->server.fd = fds[0];
    m->client.fd = fds[1];
    m->server.io = m->client.io = TLS_WANT_READ;
    cr_assert_eq(tls_session_new(server, fds[0], &m->server.s, NULL), 0);
    cr_assert_eq(tls_session_new(client, fds[1], &m->client.s, NULL), 0);
}

void meeting_hold(struct meeting *m, struct tls *server, struct tls *client)
{
    meeting_start(m, server, client);
    for (int i = 0; i < 50; i++) {
        m->client.io = meeting_advance(&m->client);
        m->server.io = meeting_advance(&m->server);
    }
    if (m->server.io == TLS_DONE) {
        m->server.has_peer = tls_session_take_peer(m->server.s, &m->server.peer);
    }
    if (m->client.io == TLS_DONE) {
        m->client.has_peer = tls_session_take_peer(m->client.s, &m->client.peer);
    }
}

void meeting_part(struct meeting *m)
{
    tls_session_free(&m->server.s);
    tls_session_free(&m->client.s);
    close(m->server.fd);
    close(m->client.fd);
}

void meeting_expect_failed(const struct meeting_side *end, enum close_reason reason, bool by_peer,
                           const char *part_of_text)
{
    cr_assert_eq(end->io, TLS_FAILED);
    const char *text = tls_session_text(end->s);
    cr_expect_eq(tls_session_reason(end->s), reason, "%s: %s",
                 close_name((uint32_t)tls_session_reason(end->s)), text);
    cr_expect_eq(tls_session_by_peer(end->s), by_peer, "%s", text);
    cr_expect(strstr(text, part_of_text) != NULL, "\"%s\" is not in: %s", part_of_text, text);
}

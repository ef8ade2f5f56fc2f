/* meeting.h: two sides of TLS over a pair of sockets, turn about, without a loop, for tests of
 * tls*.c. */
#ifndef MAKESPAN_TESTS_UNIT_PROTO_MEETING_H
#define MAKESPAN_TESTS_UNIT_PROTO_MEETING_H

#include "proto/close.h"
#include "proto/tls_session.h"
#include "tests/unit/proto/trust.h"

#include <stdbool.h>

struct meeting_side {
    int fd;
    struct tls_session *s;
    enum tls_io io;
    struct pki_id peer;
    bool has_peer;
};

struct meeting {
    struct meeting_side server, client;
};

void meeting_sockets(int fds[2]);
/* A side's next step in its handshake; after it, a read: only there does a client learn that it
 * was refused. */
enum tls_io meeting_advance(struct meeting_side *side);
/* Both sides before their first step. */
void meeting_start(struct meeting *m, struct tls *server, struct tls *client);
/* Until both are done, or one failed and the other has heard of it. */
void meeting_hold(struct meeting *m, struct tls *server, struct tls *client);
void meeting_part(struct meeting *m);
/* Expects that the side failed so. */
void meeting_expect_failed(const struct meeting_side *side, enum close_reason reason, bool by_peer,
                           const char *part_of_text);

#endif

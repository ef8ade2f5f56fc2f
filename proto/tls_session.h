/* tls_session.h: TLS on one connected socket, for conn*.c alone: handshake, reading, writing
 * without blocking, and the reason of every failure. The socket stays the caller's; so does
 * waiting. */
#ifndef MAKESPAN_PROTO_TLS_SESSION_H
#define MAKESPAN_PROTO_TLS_SESSION_H

#include "common/attr.h"
#include "proto/close.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct pki_id;
struct tls;
struct tls_session;

enum tls_io {
    TLS_DONE,       /* the handshake is over; bytes were read or written */
    TLS_WANT_READ,  /* again when the socket is readable */
    TLS_WANT_WRITE, /* again when it is writable */
    TLS_EOF,        /* the other side closed, with or without saying so */
    TLS_FAILED,     /* tls_session_reason() says why */
};

/* The longest plain text of one TLS record: a read into at least so much room leaves nothing
 * behind in memory that the socket would not tell of. */
enum { TLS_RECORD_MAX = 16384 };

/* fd: connected, non-blocking, open until tls_session_free(). The context is held. */
int tls_session_new(struct tls *tls, int fd, struct tls_session **out,
                    struct diag *diag) MUST_CHECK;
void tls_session_free(struct tls_session **s); /* NULL inside is fine */

enum tls_io tls_session_handshake(struct tls_session *s) MUST_CHECK;
/* TLS_DONE: *got bytes, at least one. */
enum tls_io tls_session_read(struct tls_session *s, void *dst, size_t room, size_t *got) MUST_CHECK;
/* TLS_DONE: *put bytes of the n (n > 0) were taken. After TLS_WANT_* the same bytes must be given
 * again, more may follow them, and they may lie elsewhere. TLS_EOF: the network takes nothing any
 * more; what came before may still be read, and is to be, for it may say why. */
enum tls_io tls_session_write(struct tls_session *s, const void *data, size_t n,
                              size_t *put) MUST_CHECK;
/* Says that nothing more will be sent (close_notify), if that is still possible. */
void tls_session_shutdown(struct tls_session *s);

/* After TLS_FAILED, and after TLS_EOF of a write (then CLOSE_IO): the reason, the sentence (never
 * NULL), and whether the other side said so. */
enum close_reason tls_session_reason(const struct tls_session *s);
const char *tls_session_text(const struct tls_session *s);
bool tls_session_by_peer(const struct tls_session *s);

/* Once after the handshake: who the other side is by its certificate, and lets go of what was kept
 * for that. False when it has none: a joining client. */
bool tls_session_take_peer(struct tls_session *s, struct pki_id *out);
/* Whether the joining protocol was agreed on. */
bool tls_session_is_joining(const struct tls_session *s);
/* Keeps the context beyond its creator's tls_free(), until tls_release(). */
void tls_hold(struct tls *tls);
void tls_release(struct tls *tls);

/* Bytes on the wire, TLS's own included. */
uint64_t tls_session_bytes_in(const struct tls_session *s);
uint64_t tls_session_bytes_out(const struct tls_session *s);

#endif

/* digest.h: SHA-256 and SHA-1 of bytes that come piece by piece. OpenSSL's, for those who may
 * not speak to it. */
#ifndef MAKESPAN_PROTO_DIGEST_H
#define MAKESPAN_PROTO_DIGEST_H

#include "common/attr.h"

#include <stddef.h>
#include <stdint.h>

enum digest_kind { DIGEST_SHA256, DIGEST_SHA1 };
enum { DIGEST_MAX = 32 };

struct digest;

/* Never NULL; aborts when memory is out or the library does not know the function. */
struct digest *digest_new(enum digest_kind kind) MUST_CHECK;
void digest_free(struct digest **digest); /* NULL inside is fine */
/* Begins anew, with the same function or another. */
void digest_restart(struct digest *digest, enum digest_kind kind);
void digest_add(struct digest *digest, const void *data, size_t n);
/* Writes the result (32 or 20 bytes) and returns its length. Then only digest_restart() and
 * digest_free() may follow. */
size_t digest_end(struct digest *digest, uint8_t out[DIGEST_MAX]);
/* SHA-256 of one piece. */
void digest_sha256(const void *data, size_t n, uint8_t out[DIGEST_MAX]);

#endif

/* digest.c: SHA-256 and SHA-1 by OpenSSL's EVP. */
#include "proto/digest.h"

#include "common/mem.h"

#include <openssl/evp.h>

#include <assert.h>
#include <stdlib.h>

struct digest {
    EVP_MD_CTX *ctx;
};

static const EVP_MD *function(enum digest_kind kind)
{
    return kind == DIGEST_SHA1 ? EVP_sha1() : EVP_sha256();
}

struct digest *digest_new(enum digest_kind kind)
{
    struct digest *d = mem_xzalloc(sizeof(*d));

    d->ctx = EVP_MD_CTX_new();
    if (d->ctx == NULL)
        abort();
    digest_restart(d, kind);
    return d;
}

void digest_free(struct digest **digest)
{
    if (*digest == NULL)
        return;
    EVP_MD_CTX_free((*digest)->ctx);
    free(*digest);
    *digest = NULL;
}

void digest_restart(struct digest *digest, enum digest_kind kind)
{
    if (EVP_DigestInit_ex(digest->ctx, function(kind), NULL) != 1)
        abort();
}

void digest_add(struct digest *digest, const void *data, size_t n)
{
    if (n > 0 && EVP_DigestUpdate(digest->ctx, data, n) != 1)
        abort();
}

size_t digest_end(struct digest *digest, uint8_t out[DIGEST_MAX])
{
    unsigned n = 0;
    uint8_t value[EVP_MAX_MD_SIZE];

    if (EVP_DigestFinal_ex(digest->ctx, value, &n) != 1)
        abort();
    assert(n <= DIGEST_MAX);
    for (unsigned i = 0; i < n; i++)
        out[i] = value[i];
    return n;
}

void digest_sha256(const void *data, size_t n, uint8_t out[DIGEST_MAX])
{
    struct digest *d = digest_new(DIGEST_SHA256);

    digest_add(d, data, n);
    (void)digest_end(d, out);
    digest_free(&d);
}

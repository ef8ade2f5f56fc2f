/* rand.c: common/rand.h from the seed: each start of each node has a stream of its own. OpenSSL
 * draws from it too, so that keys, serial numbers and signatures are the same for a seed. */
#define OPENSSL_SUPPRESS_DEPRECATED /* RAND_METHOD: the one way that does not need a provider */
#include "common/rand.h"

#include "tests/sim/sim.h"

#include <assert.h>
#include <openssl/rand.h>
#include <string.h>

static struct prng *stream(void)
{
    struct world *w = sim_world();
    return w->here != NULL ? &w->here->prng : &w->luck;
}

void rand_bytes(void *dst, size_t n)
{
    uint8_t *p = dst;
    struct prng *prng = stream();
    while (n > 0) {
        uint64_t word = prng_next(prng);
        size_t part = n < sizeof(word) ? n : sizeof(word);
        memcpy(p, &word, part);
        p += part;
        n -= part;
    }
}

uint64_t rand_below(uint64_t bound)
{
    return prng_below(stream(), bound);
}

static int openssl_bytes(unsigned char *dst, int n)
{
    rand_bytes(dst, n > 0 ? (size_t)n : 0);
    return 1;
}

static int openssl_status(void)
{
    return 1;
}

void sim_rand_register(void)
{
    static const RAND_METHOD method = {
        .bytes = openssl_bytes, .pseudorand = openssl_bytes, .status = openssl_status};
    int rc = RAND_set_rand_method(&method);
    assert(rc == 1);
    (void)rc;
}

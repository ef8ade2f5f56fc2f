/* rand.c: random bytes of the system. Owns no state; the seeded generator of orders is prng.c. */
#include "common/rand.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define GETENTROPY_MAX 256

/* For kernels without the call. */
static bool read_device(uint8_t *dst, size_t n)
{
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    while (n > 0) {
        ssize_t got = read(fd, dst, n);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        dst += got;
        n -= (size_t)got;
    }
    close(fd);
    return n == 0;
}

void rand_bytes(void *dst, size_t n)
{
    uint8_t *p = dst;
    while (n > 0) {
        size_t part = n < GETENTROPY_MAX ? n : GETENTROPY_MAX;
        if (getentropy(p, part) != 0 && !read_device(p, part)) {
            abort();
        }
        p += part;
        n -= part;
    }
}

uint64_t rand_below(uint64_t bound)
{
    assert(bound > 0);
    uint64_t skip = (UINT64_MAX - bound + 1) % bound; /* 2^64 mod bound: that many values would be too many */
    uint64_t v;
    do {
        rand_bytes(&v, sizeof(v));
    } while (v < skip);
    return v % bound;
}

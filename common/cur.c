/* cur.c: the reading cursor. Owns nothing; borrows the bytes it reads. */
#include "common/cur.h"

#include "common/err.h"

void cur_init(struct cur *c, const void *data, size_t n)
{
    c->p = data;
    c->left = n;
    c->err = 0;
}

const uint8_t *cur_bytes(struct cur *c, size_t n)
{
    if (c->err != 0) {
        return NULL;
    }
    if (n > c->left || c->p == NULL) {
        c->err = -ERR_END;
        return NULL;
    }
    const uint8_t *at = c->p;
    c->p += n;
    c->left -= n;
    return at;
}

static uint64_t read_be(struct cur *c, size_t n)
{
    const uint8_t *at = cur_bytes(c, n);
    uint64_t v = 0;
    for (size_t i = 0; at != NULL && i < n; i++) {
        v = v << 8 | at[i];
    }
    return v;
}

uint8_t cur_u8(struct cur *c)
{
    return (uint8_t)read_be(c, 1);
}

uint16_t cur_u16be(struct cur *c)
{
    return (uint16_t)read_be(c, 2);
}

uint32_t cur_u32be(struct cur *c)
{
    return (uint32_t)read_be(c, 4);
}

uint64_t cur_u64be(struct cur *c)
{
    return read_be(c, 8);
}

int cur_end(const struct cur *c)
{
    if (c->err != 0) {
        return c->err;
    }
    return c->left == 0 ? 0 : -ERR_PROTO;
}

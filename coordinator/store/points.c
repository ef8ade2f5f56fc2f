/* points.c: observations packed into bytes. Owns nothing. */
#include "coordinator/store/points.h"

#include "common/buf.h"
#include "common/cur.h"
#include "common/err.h"

#define FORM 1

void points_pack(const struct model_point *points, size_t count, struct buf *out)
{
    buf_add_char(out, FORM);
    for (size_t i = 0; i < count; i++) {
        buf_add_u64be(out, (uint64_t)points[i].at_ns);
        buf_add_u32be(out, points[i].what);
        buf_add_u64be(out, (uint64_t)points[i].value);
    }
}

int points_unpack(const uint8_t *bytes, size_t n, points_f *f, void *arg)
{
    struct cur c;
    cur_init(&c, bytes, n);
    if (cur_u8(&c) != FORM) {
        return -ERR_CORRUPT;
    }
    while (c.left > 0) {
        struct model_point p;
        p.at_ns = (int64_t)cur_u64be(&c);
        p.what = cur_u32be(&c);
        p.value = (int64_t)cur_u64be(&c);
        if (c.err != 0) {
            return -ERR_CORRUPT;
        }
        int rc = f(&p, arg);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

/* frame.c: cutting a stream into frames. Owns the bytes of a frame that has not come whole; the
 * bytes that a caller gives are only looked at. */
#include "proto/frame.h"

#include "common/err.h"

#include <assert.h>
#include <string.h>

#define LENGTH_BYTES ((size_t)4)

void frame_in_init(struct frame_in *in, uint32_t max)
{
    assert(max >= 1 && max <= FRAME_MAX);
    *in = (struct frame_in){.max = max};
    buf_init(&in->part, max);
}

void frame_in_fini(struct frame_in *in)
{
    buf_fini(&in->part);
    in->head_have = 0;
    in->length = 0;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void skip(const uint8_t **data, size_t *n, size_t count)
{
    *data += count;
    *n -= count;
}

/* Collects the four bytes of the length; 0 with head_have below 4 when they are not all there. */
static int take_length(struct frame_in *in, const uint8_t **data, size_t *n)
{
    while (in->head_have<LENGTH_BYTES && * n> 0) {
        in->length = in->length << 8 | **data;
        in->head_have++;
        skip(data, n, 1);
    }
    if (in->head_have == LENGTH_BYTES && (in->length == 0 || in->length > in->max)) {
        in->err = -ERR_PROTO;
    }
    return in->err;
}

/* Sets the frame from its bytes behind the length, and makes ready for the next one. */
static int give(struct frame_in *in, const uint8_t *p, struct frame *out)
{
    *out = (struct frame){.type = p[0], .body = p + 1, .n = in->length - 1};
    in->head_have = 0;
    in->length = 0;
    return 1;
}

int frame_next(struct frame_in *in, const uint8_t **data, size_t *n, struct frame *out)
{
    if (in->err != 0) {
        return in->err;
    }
    if (in->head_have == 0 && in->part.data != NULL) {
        buf_fini(&in->part); /* the frame given by the call before */
    }
    int rc = take_length(in, data, n);
    if (rc < 0) {
        buf_fini(&in->part);
        return rc;
    }
    if (in->head_have < LENGTH_BYTES) {
        return 0;
    }
    if (in->part.len == 0 && *n >= in->length) {
        const uint8_t *p = *data;
        skip(data, n, in->length);
        return give(in, p, out);
    }
    size_t count = smaller(*n, in->length - in->part.len);
    if (count == 0) {
        return 0;
    }
    buf_add(&in->part, *data, count);
    if (in->part.err != 0) {
        in->err = -ERR_NOMEM;
        buf_fini(&in->part);
        return in->err;
    }
    skip(data, n, count);
    return in->part.len == in->length ? give(in, in->part.data, out) : 0;
}

size_t frame_in_pending(const struct frame_in *in)
{
    return in->head_have == 0 ? 0 : in->head_have + in->part.len;
}

size_t frame_begin(struct buf *out, uint32_t type)
{
    assert(type >= 1 && type <= UINT8_MAX);
    size_t begin = out->len;
    buf_add_u32be(out, 0);
    buf_add_char(out, (char)(uint8_t)type);
    return begin;
}

int frame_end(struct buf *out, size_t begin)
{
    int rc = out->err;
    if (rc == 0 && out->len - begin - LENGTH_BYTES > FRAME_MAX) {
        rc = -ERR_LIMIT;
    }
    if (rc < 0) {
        frame_drop(out, begin);
        return rc;
    }
    uint32_t length = (uint32_t)(out->len - begin - LENGTH_BYTES);
    for (size_t i = 0; i < LENGTH_BYTES; i++) {
        out->data[begin + i] = (uint8_t)(length >> (24 - 8 * i));
    }
    return 0;
}

void frame_drop(struct buf *out, size_t begin)
{
    assert(begin <= out->len);
    out->len = begin;
    if (out->data != NULL) {
        out->data[begin] = '\0';
    }
}

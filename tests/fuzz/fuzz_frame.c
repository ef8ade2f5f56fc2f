/* fuzz_frame.c: a stream in pieces: frames must be the same however it is cut, and memory must follow
 * what came. Input: one byte that sets the pieces, then the stream. */
#include "common/buf.h"
#include "proto/frame.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(int holds)
{
    if (!holds) {
        abort();
    }
}

/* Adds every frame to `log`; the result of the last call. */
static int run(const uint8_t *stream, size_t size, size_t piece, uint32_t max, struct buf *log)
{
    struct frame_in in;
    frame_in_init(&in, max);
    int rc = 0;
    for (size_t at = 0; at < size && rc == 0; at += piece) {
        size_t n = size - at < piece ? size - at : piece;
        uint8_t *copy = malloc(n);
        need(copy != NULL);
        memcpy(copy, stream + at, n);
        const uint8_t *p = copy;
        struct frame f;
        while ((rc = frame_next(&in, &p, &n, &f)) == 1) {
            need(f.n < max);
            buf_add_u32be(log, f.type);
            buf_add_u32be(log, (uint32_t)f.n);
            buf_add(log, f.body, f.n);
        }
        need(rc < 0 || n == 0);
        need(in.part.room <= 2 * (at + piece) + 64);
        need(frame_in_pending(&in) != 0 || in.part.data == NULL);
        free(copy);
    }
    frame_in_fini(&in);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    size_t piece = (size_t)(data[0] & 0x7f) + 1;
    uint32_t max = (data[0] & 0x80) != 0 ? FRAME_MAX_JOIN : FRAME_MAX;
    struct buf whole = BUF_INIT;
    struct buf pieces = BUF_INIT;
    int a = run(data + 1, size - 1, size, max, &whole);
    int b = run(data + 1, size - 1, piece, max, &pieces);
    need(a == b);
    need(whole.len == pieces.len);
    need(whole.len == 0 || memcmp(whole.data, pieces.data, whole.len) == 0);
    buf_fini(&whole);
    buf_fini(&pieces);
    return 0;
}

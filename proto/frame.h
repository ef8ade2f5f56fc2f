/* frame.h: the frames of the wire: cutting a stream of bytes into frames, and putting a frame
 * around a body. Knows nothing of messages.
 *
 * A frame is: u32, big-endian, the number of bytes that follow (1 to FRAME_MAX); u8, the message's
 * number; the body. */
#ifndef MAKESPAN_PROTO_FRAME_H
#define MAKESPAN_PROTO_FRAME_H

#include "common/attr.h"
#include "common/buf.h"

#include <stddef.h>
#include <stdint.h>

enum {
    FRAME_MAX = 1024 * 1024, /* the largest length that a frame may state */
    FRAME_MAX_JOIN = 4096,   /* what a joining program may send, which has no certificate */
    FRAME_HEAD = 5,          /* bytes before the body */
};

/* A whole frame, borrowed. */
struct frame {
    uint32_t type;
    const uint8_t *body;
    size_t n;
};

/* The receiving side of one connection. It holds memory only while a frame is incomplete, and only
 * for bytes that came, whatever the length says. */
struct frame_in {
    uint32_t max;     /* the largest length that is accepted */
    uint32_t length;  /* as stated by the frame that is being received */
    size_t head_have; /* bytes of the length that came: 0 to 4 */
    int err;          /* the first failure, which stays */
    struct buf part;  /* what came of the frame behind its length */
};

/* `max`: FRAME_MAX, or FRAME_MAX_JOIN. */
void frame_in_init(struct frame_in *in, uint32_t max);
void frame_in_fini(struct frame_in *in);

/* Takes bytes from *data (both are moved on) up to the end of one frame.
 * 1: *out is a frame; its body lies in the caller's bytes when it came whole, else in memory of
 *    `in` that the next call or frame_in_fini() frees. Call again, also when *n is 0.
 * 0: all bytes were taken, no frame is complete.
 * -ERR_PROTO: a length of 0, or above max; -ERR_NOMEM. Nothing more can be read: CLOSE_FRAME. */
int frame_next(struct frame_in *in, const uint8_t **data, size_t *n, struct frame *out) MUST_CHECK;

/* Bytes that came of an incomplete frame; not 0 when the stream ends: it was cut. */
size_t frame_in_pending(const struct frame_in *in);

/* Starts a frame at the end of out; its place is returned for frame_end(). Add the body then. */
size_t frame_begin(struct buf *out, uint32_t type);
/* Writes the length of the frame that began there. 0, -ERR_LIMIT (longer than FRAME_MAX) or the
 * buffer's error; on failure the frame is taken off again. */
int frame_end(struct buf *out, size_t begin) MUST_CHECK;
/* Takes off what was added since frame_begin(); an error of the buffer stays. */
void frame_drop(struct buf *out, size_t begin);

#endif

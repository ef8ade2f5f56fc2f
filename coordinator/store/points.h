/* points.h: observations of a run packed into bytes, as the store keeps them. Not for other
 * folders.
 *
 * Form 1: a byte 1, then for each point 20 bytes, big-endian: at_ns (8), what (4), value (8). */
#ifndef MAKESPAN_COORDINATOR_STORE_POINTS_H
#define MAKESPAN_COORDINATOR_STORE_POINTS_H

#include "common/attr.h"
#include "coordinator/model.h"

#include <stddef.h>
#include <stdint.h>

struct buf;

/* Appends them; an error sticks in the buffer. */
void points_pack(const struct model_point *points, size_t count, struct buf *out);
typedef int points_f(const struct model_point *point, void *arg);
/* Calls f for each; what f returns when not 0 ends it. -ERR_CORRUPT when the bytes have no known
 * form. */
int points_unpack(const uint8_t *bytes, size_t n, points_f *f, void *arg) MUST_CHECK;

#endif

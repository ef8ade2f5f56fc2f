/* cur.h: a reading cursor over bytes with a sticky error: straight-line parsing, one check at the end. */
#ifndef MAKESPAN_COMMON_CUR_H
#define MAKESPAN_COMMON_CUR_H

#include "common/attr.h"

#include <stddef.h>
#include <stdint.h>

struct cur {
    const uint8_t *p; /* borrowed */
    size_t left;
    int err; /* 0, or -ERR_END after a read beyond the end: later reads give 0 */
};

void cur_init(struct cur *c, const void *data, size_t n);
uint8_t cur_u8(struct cur *c);
uint16_t cur_u16be(struct cur *c);
uint32_t cur_u32be(struct cur *c);
uint64_t cur_u64be(struct cur *c);
/* Borrowed pointer to the next n bytes, NULL on error. */
const uint8_t *cur_bytes(struct cur *c, size_t n);
/* 0 when no error happened and nothing is left over; else -ERR_END or -ERR_PROTO. */
int cur_end(const struct cur *c) MUST_CHECK;

#endif

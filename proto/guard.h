/* guard.h: msgpack bytes from a peer are walked here before anything trusts a count in them, and
 * the reading of single heads for whoever walks them after that. Allocates nothing. */
#ifndef MAKESPAN_PROTO_GUARD_H
#define MAKESPAN_PROTO_GUARD_H

#include "common/attr.h"

#include <stddef.h>
#include <stdint.h>

struct diag;

/* The deepest nesting of maps and arrays. */
enum { GUARD_DEPTH_MAX = 8 };

enum guard_kind {
    GUARD_NIL,
    GUARD_BOOL,
    GUARD_UINT, /* `value` holds it */
    GUARD_INT,  /* of a signed encoding, also where it is not negative */
    GUARD_STR,  /* `count` bytes follow the head */
    GUARD_BIN,
    GUARD_ARRAY, /* `count` items follow */
    GUARD_MAP,   /* `count` pairs follow */
};

struct guard_head {
    enum guard_kind kind;
    uint32_t count;
    uint64_t value;
    size_t size; /* bytes of the head, which is all of an item without `count` */
};

/* Reads one head. -ERR_PROTO with *why set to a constant text when the bytes end too early, the
 * count cannot be true with what is left (a byte an item at least), or the item is of a kind that
 * does not travel: floats, extensions, the unused byte c1. */
int guard_read_head(const uint8_t *p, size_t left, struct guard_head *out,
                    const char **why) MUST_CHECK;

/* The bytes of one whole item. It must have passed guard_check(); -ERR_PROTO if not. */
int guard_measure(const uint8_t *p, size_t left, size_t *size) MUST_CHECK;

/* 0 when the bytes are exactly one map of at most max_nodes nodes (every item, key and container
 * counts one), nested at most GUARD_DEPTH_MAX deep, whose every map has integer keys of 1 to
 * UINT32_MAX, without floats and extensions. Else -ERR_PROTO or -ERR_LIMIT, with the offset of the
 * byte in diag. Whether keys occur twice is the decoder's to see. */
int guard_check(const uint8_t *data, size_t n, size_t max_nodes, struct diag *diag) MUST_CHECK;

#endif

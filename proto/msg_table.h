/* msg_table.h: the rows of schema.def as data, for the code that treats all messages alike:
 * encoder, decoder, printing, comparing, tests. Inside proto/ only. */
#ifndef MAKESPAN_PROTO_MSG_TABLE_H
#define MAKESPAN_PROTO_MSG_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum msg_kind {
    MSG_KIND_U32,
    MSG_KIND_U64,
    MSG_KIND_I64,
    MSG_KIND_BOOL,
    MSG_KIND_STR,
    MSG_KIND_BIN,
    MSG_KIND_STRS,
    MSG_KIND_RECS,
};

struct msg_shape;

struct msg_field {
    const char *name;
    const struct msg_shape *rec; /* of RECS: an item */
    uint32_t limit;
    uint16_t key;
    uint16_t value; /* offset of the member in its struct */
    uint16_t has;   /* of has_x; a STR has none and is absent when NULL */
    uint16_t count; /* of x_count, in lists */
    uint8_t kind;   /* enum msg_kind */
    bool required;
};

/* A record, or the body of a message. */
struct msg_shape {
    const char *name;               /* as in the schema: "hello", "fact" */
    const struct msg_field *fields; /* in the order of their keys */
    size_t count;
    size_t size; /* of the struct */
};

struct msg_row {
    uint32_t number;
    const char *name; /* "HELLO" */
    const struct msg_shape *shape;
    unsigned from; /* enum msg_from, combined */
    int role;      /* least role of an operator; 0: any */
    unsigned when; /* enum msg_when, combined */
};

/* All rows in the order of the schema. */
const struct msg_row *msg_table(size_t *count);
/* The row of a number, or NULL. */
const struct msg_row *msg_table_find(uint32_t number);

/* The fewest bytes that such a record takes on the wire: its map and two bytes for each required
 * field. */
size_t msg_shape_least(const struct msg_shape *shape);
/* The most msgpack nodes that a body of the shape needs for its known fields, all lists full. */
size_t msg_shape_nodes(const struct msg_shape *shape);

/* Whether a struct holds the field: has_x, a STR that is not NULL, a list with items. */
bool msg_field_present(const struct msg_field *field, const void *base);

/* The member of a struct that a row describes, or has_x, or x_count, by its offset. */
static inline const void *msg_member(const void *base, size_t offset)
{
    return (const char *)base + offset;
}

static inline void *msg_member_out(void *base, size_t offset)
{
    return (char *)base + offset;
}

#endif

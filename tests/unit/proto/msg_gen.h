/* msg_gen.h: messages made from the rows of the schema, and their bodies taken apart and put
 * together again with chosen damage: for the tests of the wire. */
#ifndef MAKESPAN_TESTS_UNIT_PROTO_MSG_GEN_H
#define MAKESPAN_TESTS_UNIT_PROTO_MSG_GEN_H

#include "common/buf.h"
#include "proto/msg.h"
#include "proto/msg_table.h"

struct gen;

struct gen *gen_new(void);
void gen_free(struct gen **gen); /* and all messages made with it */

enum gen_mode {
    GEN_LEAST,    /* 0, "", no bytes, no items */
    GEN_ORDINARY, /* small, another value for each field: the stored wire bytes */
    GEN_LOWEST,   /* at the lower end: INT64_MIN */
    GEN_MOST,     /* at the limit; lists: all items, each of the least kind */
    GEN_WIDE,     /* lists: one item with every field at its limit; else as GEN_MOST */
};

/* A message with its required fields alone, of GEN_LEAST. */
void gen_least(struct gen *gen, const struct msg_row *row, struct msg *out);
/* A message with every field, of GEN_ORDINARY. */
void gen_all(struct gen *gen, const struct msg_row *row, struct msg *out);
/* Sets one field of a struct. */
void gen_set(struct gen *gen, const struct msg_field *f, void *base, enum gen_mode mode);

/* --- bodies in parts --- */

enum { PARTS_MAX = 80 };

struct part {
    uint32_t key;
    const uint8_t *value;
    size_t n;
};

struct parts {
    struct part part[PARTS_MAX];
    size_t count;
};

/* Takes the map apart; the parts borrow from p. Aborts when it is none. */
void parts_split(const uint8_t *p, size_t n, struct parts *out);
/* The parts of the message of gen_least(), encoded; the bytes belong to gen. */
void parts_least(struct gen *gen, const struct msg_row *row, struct parts *out);
/* The same for a record. */
void parts_least_record(struct gen *gen, const struct msg_shape *shape, struct parts *out);
void parts_remove(struct parts *parts, uint32_t key);
/* Sets the value of a key, or adds it. */
void parts_set(struct parts *parts, uint32_t key, const void *value, size_t n);
void parts_add(struct parts *parts, uint32_t key, const void *value, size_t n);
/* Appends the map. */
void parts_join(const struct parts *parts, struct buf *out);

#endif

/* decode.c: the body of a frame becomes a message. Owns the arena of a message until it is given
 * away. The guard sees the bytes first; the structure is walked along the rows of the schema, and
 * only single values are unpacked by msgpack-c, so that it never allocates for a count. */
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "proto/guard.h"
#include "proto/msg.h"
#include "proto/msg_table.h"

#include <inttypes.h>
#include <msgpack/unpack.h>
#include <stdio.h>
#include <string.h>

/* Nodes that fields unknown here may take in all, beside those that the schema needs. */
#define UNKNOWN_NODES ((size_t)65536)

/* Single values put nothing into the zone of msgpack-c; it wants one all the same. */
#define ZONE_BYTES ((size_t)64)

struct decoder {
    const char *message;
    const struct msg_field *list; /* the list whose record is being read, or NULL */
    size_t index;
    struct mem_arena *arena;
    char *text; /* where strings and bytes go one after the other: as many bytes as the body has */
    size_t body_size;
    msgpack_zone zone;
    struct diag *diag;
};

/* Bytes of one whole item. */
struct span {
    const uint8_t *p;
    size_t n;
};

static int refuse(const struct decoder *d, const struct msg_field *f, int code, const char *what)
{
    if (d->list != NULL) {
        return diag_error(d->diag, code, "%s: %s[%zu].%s %s", d->message, d->list->name, d->index,
                          f->name, what);
    }
    return diag_error(d->diag, code, "%s: %s %s", d->message, f->name, what);
}

static int refuse_size(const struct decoder *d, const struct msg_field *f, size_t n, size_t limit,
                       const char *unit)
{
    char what[96];
    snprintf(what, sizeof(what), "has %zu %s, at most %zu are allowed", n, unit, limit);
    return refuse(d, f, ERR_LIMIT, what);
}

static int out_of_memory(const struct decoder *d)
{
    return diag_error(d->diag, ERR_NOMEM, "%s: out of memory", d->message);
}

/* The bytes passed the guard, so this happens only when the guard is wrong. */
static int damaged(const struct decoder *d)
{
    return diag_error(d->diag, ERR_PROTO, "%s: the body is damaged", d->message);
}

static const char *expected(enum msg_kind kind)
{
    switch (kind) {
    case MSG_KIND_U32:
        return "should be a number of 0 to 4294967295";
    case MSG_KIND_U64:
        return "should be a number of 0 or above";
    case MSG_KIND_I64:
        return "should be a whole number of 64 bits";
    case MSG_KIND_BOOL:
        return "should be true or false";
    case MSG_KIND_STR:
        return "should be text";
    case MSG_KIND_BIN:
        return "should be bytes";
    case MSG_KIND_STRS:
        return "should be a list of texts";
    case MSG_KIND_RECS:
        return "should be a list of records";
    }
    return "should be something else";
}

static int refuse_type(const struct decoder *d, const struct msg_field *f)
{
    return refuse(d, f, ERR_PROTO, expected((enum msg_kind)f->kind));
}

/* Takes the head of an item off the span. */
static int take_head(const struct decoder *d, struct span *in, struct guard_head *head)
{
    const char *why = NULL;
    if (guard_read_head(in->p, in->n, head, &why) < 0) {
        return damaged(d);
    }
    in->p += head->size;
    in->n -= head->size;
    return 0;
}

/* Takes a whole item off the span. */
static int take_item(const struct decoder *d, struct span *in, struct span *item)
{
    size_t size = 0;
    if (guard_measure(in->p, in->n, &size) < 0) {
        return damaged(d);
    }
    *item = (struct span){in->p, size};
    in->p += size;
    in->n -= size;
    return 0;
}

/* Unpacks a single value. Containers never get here: for them msgpack-c would allocate. */
static int unpack(struct decoder *d, struct span item, msgpack_object *out)
{
    size_t used = 0;
    msgpack_unpack_return rc = msgpack_unpack((const char *)item.p, item.n, &used, &d->zone, out);
    return rc == MSGPACK_UNPACK_SUCCESS && used == item.n ? 0 : damaged(d);
}

/* Copies bytes behind those copied before, with a NUL. The body pays for each with at least a byte
 * of head, so that all fit into as many bytes as the body has. */
static int keep(struct decoder *d, const void *p, size_t n, char **out)
{
    if (d->text == NULL) {
        d->text = mem_arena_alloc(d->arena, d->body_size);
        if (d->text == NULL) {
            return out_of_memory(d);
        }
    }
    if (n > 0) {
        memcpy(d->text, p, n);
    }
    d->text[n] = '\0';
    *out = d->text;
    d->text += n + 1;
    return 0;
}

static int read_text(struct decoder *d, const struct msg_field *f, const msgpack_object *o,
                     size_t limit, const char **out)
{
    if (o->type != MSGPACK_OBJECT_STR) {
        return refuse_type(d, f);
    }
    size_t n = o->via.str.size;
    if (n > limit) {
        return refuse_size(d, f, n, limit, "bytes");
    }
    if (n > 0 && memchr(o->via.str.ptr, '\0', n) != NULL) {
        return refuse(d, f, ERR_PROTO, "has a NUL byte");
    }
    if (!str_is_utf8(o->via.str.ptr, n)) {
        return refuse(d, f, ERR_PROTO, "is not UTF-8");
    }
    char *copy = NULL;
    int rc = keep(d, o->via.str.ptr, n, &copy);
    *out = copy;
    return rc;
}

static int read_number(struct decoder *d, const struct msg_field *f, const msgpack_object *o,
                       void *value)
{
    bool negative = o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER;
    if (!negative && o->type != MSGPACK_OBJECT_POSITIVE_INTEGER) {
        return refuse_type(d, f);
    }
    if (f->kind == MSG_KIND_I64) {
        if (!negative && o->via.u64 > INT64_MAX) {
            return refuse_type(d, f);
        }
        *(int64_t *)value = negative ? o->via.i64 : (int64_t)o->via.u64;
        return 0;
    }
    if (negative || (f->kind == MSG_KIND_U32 && o->via.u64 > UINT32_MAX)) {
        return refuse_type(d, f);
    }
    if (f->kind == MSG_KIND_U32) {
        *(uint32_t *)value = (uint32_t)o->via.u64;
    } else {
        *(uint64_t *)value = o->via.u64;
    }
    return 0;
}

static int read_single(struct decoder *d, const struct msg_field *f, struct span item, void *value)
{
    msgpack_object o;
    int rc = unpack(d, item, &o);
    if (rc < 0) {
        return rc;
    }
    switch ((enum msg_kind)f->kind) {
    case MSG_KIND_U32:
    case MSG_KIND_U64:
    case MSG_KIND_I64:
        return read_number(d, f, &o, value);
    case MSG_KIND_BOOL:
        if (o.type != MSGPACK_OBJECT_BOOLEAN) {
            return refuse_type(d, f);
        }
        *(bool *)value = o.via.boolean;
        return 0;
    case MSG_KIND_STR:
        return read_text(d, f, &o, f->limit, (const char **)value);
    case MSG_KIND_BIN: {
        if (o.type != MSGPACK_OBJECT_BIN) {
            return refuse_type(d, f);
        }
        if (o.via.bin.size > f->limit) {
            return refuse_size(d, f, o.via.bin.size, f->limit, "bytes");
        }
        char *copy = NULL;
        rc = keep(d, o.via.bin.ptr, o.via.bin.size, &copy);
        *(struct msg_bytes *)value = (struct msg_bytes){(const uint8_t *)copy, o.via.bin.size};
        return rc;
    }
    case MSG_KIND_STRS:
    case MSG_KIND_RECS:
        break;
    }
    return damaged(d);
}

static int read_shape(struct decoder *d, const struct msg_shape *shape, struct span in, void *base);

static int read_text_item(struct decoder *d, const struct msg_field *f, struct span item,
                          const char **out)
{
    struct guard_head head;
    struct span in = item;
    int rc = take_head(d, &in, &head);
    if (rc < 0) {
        return rc;
    }
    if (head.kind != GUARD_STR) {
        return refuse_type(d, f);
    }
    msgpack_object o;
    rc = unpack(d, item, &o);
    return rc == 0 ? read_text(d, f, &o, MSG_STRS_ITEM_MAX, out) : rc;
}

static int read_texts(struct decoder *d, const struct msg_field *f, struct span in, uint32_t count,
                      void *base)
{
    const char **texts = mem_arena_array(d->arena, count, sizeof(*texts));
    if (texts == NULL) {
        return out_of_memory(d);
    }
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        struct span item = {NULL, 0};
        rc = take_item(d, &in, &item);
        if (rc == 0) {
            rc = read_text_item(d, f, item, &texts[i]);
        }
    }
    *(const char *const **)msg_member_out(base, f->value) = texts;
    *(size_t *)msg_member_out(base, f->count) = count;
    return rc;
}

static int read_records(struct decoder *d, const struct msg_field *f, struct span in,
                        uint32_t count, void *base)
{
    /* A record has at least its required fields: memory is taken for what the bytes can hold. */
    if (in.n / msg_shape_least(f->rec) < count) {
        return refuse(d, f, ERR_PROTO, "has records without their required fields");
    }
    char *records = mem_arena_array(d->arena, count, f->rec->size);
    if (records == NULL) {
        return out_of_memory(d);
    }
    int rc = 0;
    d->list = f;
    for (d->index = 0; d->index < count && rc == 0; d->index++) {
        struct span item = {NULL, 0};
        rc = take_item(d, &in, &item);
        if (rc == 0) {
            rc = read_shape(d, f->rec, item, records + d->index * f->rec->size);
        }
    }
    d->list = NULL;
    *(const void **)msg_member_out(base, f->value) = records;
    *(size_t *)msg_member_out(base, f->count) = count;
    return rc;
}

static int read_field(struct decoder *d, const struct msg_field *f, struct span item, void *base)
{
    bool is_list = f->kind == MSG_KIND_STRS || f->kind == MSG_KIND_RECS;
    struct span in = item;
    struct guard_head head;
    int rc = take_head(d, &in, &head);
    if (rc < 0) {
        return rc;
    }
    if (is_list != (head.kind == GUARD_ARRAY) || head.kind == GUARD_MAP) {
        return refuse_type(d, f);
    }
    if (f->kind != MSG_KIND_STR) {
        *(bool *)msg_member_out(base, f->has) = true;
    }
    if (!is_list) {
        return read_single(d, f, item, msg_member_out(base, f->value));
    }
    if (head.count > f->limit) {
        return refuse_size(d, f, head.count, f->limit, "items");
    }
    if (head.count == 0) {
        return 0;
    }
    return f->kind == MSG_KIND_STRS ? read_texts(d, f, in, head.count, base)
                                    : read_records(d, f, in, head.count, base);
}

/* The index of the field with that key, or shape->count. Keys mostly come in order: `hint` is where
 * the next one is expected. */
static size_t find_field(const struct msg_shape *shape, uint64_t key, size_t hint)
{
    for (size_t i = 0; i < shape->count; i++) {
        size_t at = (hint + i) % shape->count;
        if (shape->fields[at].key == key) {
            return at;
        }
    }
    return shape->count;
}

static int read_shape(struct decoder *d, const struct msg_shape *shape, struct span in, void *base)
{
    struct guard_head head;
    int rc = take_head(d, &in, &head);
    if (rc < 0) {
        return rc;
    }
    if (head.kind != GUARD_MAP) {
        return d->list != NULL ? diag_error(d->diag, ERR_PROTO, "%s: %s[%zu] should be a record",
                                            d->message, d->list->name, d->index)
                               : damaged(d);
    }
    uint64_t seen = 0; /* a bit a field; a test holds shapes to 64 */
    size_t hint = 0;
    for (uint32_t i = 0; i < head.count; i++) {
        struct guard_head key;
        struct span item = {NULL, 0};
        rc = take_head(d, &in, &key);
        if (rc == 0) {
            rc = take_item(d, &in, &item);
        }
        if (rc < 0) {
            return rc;
        }
        size_t at = find_field(shape, key.value, hint);
        if (at == shape->count) {
            continue; /* of a later version of the protocol */
        }
        hint = at + 1;
        const struct msg_field *f = &shape->fields[at];
        if ((seen >> at & 1) != 0) {
            return refuse(d, f, ERR_PROTO, "occurs twice");
        }
        seen |= UINT64_C(1) << at;
        rc = read_field(d, f, item, base);
        if (rc < 0) {
            return rc;
        }
    }
    for (size_t i = 0; i < shape->count; i++) {
        if (shape->fields[i].required && (seen >> i & 1) == 0) {
            return refuse(d, &shape->fields[i], ERR_PROTO, "is missing");
        }
    }
    return 0;
}

/* The guard's verdict with the message's name before it. */
static int guard(const struct msg_row *row, const uint8_t *body, size_t n, struct diag *diag)
{
    size_t max_nodes = msg_shape_nodes(row->shape) + UNKNOWN_NODES;
    int rc = guard_check(body, n, max_nodes, NULL);
    if (rc < 0 && diag != NULL) {
        struct diag *inner = diag_new(1);
        rc = guard_check(body, n, max_nodes, inner);
        rc = diag_error(diag, rc, "%s: %s", row->name, diag_first(inner));
        diag_free(&inner);
    }
    return rc;
}

int msg_decode(uint32_t type, const uint8_t *body, size_t n, struct msg **out, struct diag *diag)
{
    *out = NULL;
    const struct msg_row *row = msg_table_find(type);
    if (row == NULL) {
        return diag_error(diag, ERR_UNSUP, "no message has the number %" PRIu32, type);
    }
    int rc = guard(row, body, n, diag);
    if (rc < 0) {
        return rc;
    }
    struct decoder d = {.message = row->name, .body_size = n, .diag = diag};
    if (!msgpack_zone_init(&d.zone, ZONE_BYTES)) {
        return out_of_memory(&d);
    }
    d.arena = mem_arena_new(MSG_MEMORY_MAX(n));
    struct msg *m = mem_arena_alloc(d.arena, sizeof(*m));
    if (m == NULL) {
        rc = out_of_memory(&d);
    } else {
        m->type = (enum msg_type)type;
        m->arena = d.arena;
        rc = read_shape(&d, row->shape, (struct span){body, n}, &m->u);
    }
    msgpack_zone_destroy(&d.zone);
    if (rc < 0) {
        mem_arena_free(&d.arena);
        return rc;
    }
    *out = m;
    return 0;
}

void msg_free(struct msg **m)
{
    if (*m == NULL) {
        return;
    }
    struct mem_arena *arena = (*m)->arena; /* holds the message itself */
    *m = NULL;
    mem_arena_free(&arena);
}

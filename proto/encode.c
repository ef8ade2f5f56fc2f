/* encode.c: a message becomes a frame. Owns nothing; writes through msgpack-c into the caller's
 * buffer. Whatever breaks a rule of the schema is refused before a byte is written. */
#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/str.h"
#include "proto/frame.h"
#include "proto/msg.h"
#include "proto/msg_table.h"

#include <inttypes.h>
#include <msgpack/pack.h>
#include <string.h>

/* --- checking --- */

/* Where in the message: "SAMPLES: points[3].value". */
struct place {
    const char *message;
    const struct msg_field *list; /* NULL at the message's own level */
    size_t index;
    struct diag *diag;
};

static int refuse(const struct place *at, const struct msg_field *f, int code, const char *what)
{
    if (at->list != NULL) {
        return diag_error(at->diag, code, "%s: %s[%zu].%s %s", at->message, at->list->name,
                          at->index, f->name, what);
    }
    return diag_error(at->diag, code, "%s: %s %s", at->message, f->name, what);
}

static int check_shape(struct place *at, const struct msg_shape *shape, const void *base);

static int check_text(const struct place *at, const struct msg_field *f, const char *s,
                      size_t limit)
{
    if (s == NULL) {
        return refuse(at, f, ERR_INVAL, "is missing");
    }
    size_t n = strnlen(s, limit + 1);
    if (n > limit) {
        return refuse(at, f, ERR_LIMIT, "is too long");
    }
    return str_is_utf8(s, n) ? 0 : refuse(at, f, ERR_INVAL, "is not UTF-8");
}

static int check_list(struct place *at, const struct msg_field *f, const void *base)
{
    size_t count = *(const size_t *)msg_member(base, f->count);
    const void *items = *(const void *const *)msg_member(base, f->value);
    if (count > f->limit) {
        return refuse(at, f, ERR_LIMIT, "has too many items");
    }
    if (count > 0 && items == NULL) {
        return refuse(at, f, ERR_INVAL, "has no items");
    }
    int rc = 0;
    if (f->kind == MSG_KIND_STRS) {
        const char *const *texts = items;
        for (size_t i = 0; i < count && rc == 0; i++) {
            rc = check_text(at, f, texts[i], MSG_STRS_ITEM_MAX);
        }
        return rc;
    }
    struct place inner = {at->message, f, 0, at->diag};
    for (; inner.index < count && rc == 0; inner.index++) {
        rc = check_shape(&inner, f->rec, msg_member(items, inner.index * f->rec->size));
    }
    return rc;
}

static int check_field(struct place *at, const struct msg_field *f, const void *base)
{
    const void *value = msg_member(base, f->value);
    switch ((enum msg_kind)f->kind) {
    case MSG_KIND_U32:
    case MSG_KIND_U64:
    case MSG_KIND_I64:
    case MSG_KIND_BOOL:
        return 0;
    case MSG_KIND_STR:
        return check_text(at, f, *(const char *const *)value, f->limit);
    case MSG_KIND_BIN: {
        const struct msg_bytes *bytes = value;
        if (bytes->len > f->limit) {
            return refuse(at, f, ERR_LIMIT, "is too long");
        }
        return bytes->len > 0 && bytes->data == NULL ? refuse(at, f, ERR_INVAL, "has no bytes") : 0;
    }
    case MSG_KIND_STRS:
    case MSG_KIND_RECS:
        return check_list(at, f, base);
    }
    return -ERR_INVAL;
}

static int check_shape(struct place *at, const struct msg_shape *shape, const void *base)
{
    int rc = 0;
    for (size_t i = 0; i < shape->count && rc == 0; i++) {
        const struct msg_field *f = &shape->fields[i];
        if (f->required || msg_field_present(f, base)) {
            rc = check_field(at, f, base);
        }
    }
    return rc;
}

int msg_check(const struct msg *m, struct diag *diag)
{
    const struct msg_row *row = msg_table_find((uint32_t)m->type);
    if (row == NULL) {
        return diag_error(diag, ERR_INVAL, "no message has the number %" PRIu32, (uint32_t)m->type);
    }
    struct place at = {row->name, NULL, 0, diag};
    return check_shape(&at, row->shape, &m->u);
}

/* --- writing --- */

static int write_bytes(void *arg, const char *data, size_t n)
{
    struct buf *out = arg;
    buf_add(out, data, n);
    return out->err;
}

/* The results of the packing functions are those of write_bytes(), and the buffer keeps its first
 * error: msg_encode() looks at it once. */
static void pack_shape(msgpack_packer *pk, const struct msg_shape *shape, const void *base);

static void pack_text(msgpack_packer *pk, const char *s)
{
    size_t n = strlen(s);
    msgpack_pack_str(pk, n);
    msgpack_pack_str_body(pk, s, n);
}

static void pack_field(msgpack_packer *pk, const struct msg_field *f, const void *base)
{
    const void *value = msg_member(base, f->value);
    msgpack_pack_uint32(pk, f->key);
    switch ((enum msg_kind)f->kind) {
    case MSG_KIND_U32:
        msgpack_pack_uint32(pk, *(const uint32_t *)value);
        break;
    case MSG_KIND_U64:
        msgpack_pack_uint64(pk, *(const uint64_t *)value);
        break;
    case MSG_KIND_I64:
        msgpack_pack_int64(pk, *(const int64_t *)value);
        break;
    case MSG_KIND_BOOL:
        if (*(const bool *)value) {
            msgpack_pack_true(pk);
        } else {
            msgpack_pack_false(pk);
        }
        break;
    case MSG_KIND_STR:
        pack_text(pk, *(const char *const *)value);
        break;
    case MSG_KIND_BIN: {
        const struct msg_bytes *bytes = value;
        msgpack_pack_bin(pk, bytes->len);
        msgpack_pack_bin_body(pk, bytes->data, bytes->len);
        break;
    }
    case MSG_KIND_STRS: {
        size_t count = *(const size_t *)msg_member(base, f->count);
        const char *const *texts = *(const char *const *const *)value;
        msgpack_pack_array(pk, count);
        for (size_t i = 0; i < count; i++) {
            pack_text(pk, texts[i]);
        }
        break;
    }
    case MSG_KIND_RECS: {
        size_t count = *(const size_t *)msg_member(base, f->count);
        const void *items = *(const void *const *)value;
        msgpack_pack_array(pk, count);
        for (size_t i = 0; i < count; i++) {
            pack_shape(pk, f->rec, msg_member(items, i * f->rec->size));
        }
        break;
    }
    }
}

static void pack_shape(msgpack_packer *pk, const struct msg_shape *shape, const void *base)
{
    size_t count = 0;
    for (size_t i = 0; i < shape->count; i++) {
        const struct msg_field *f = &shape->fields[i];
        count += f->required || msg_field_present(f, base);
    }
    msgpack_pack_map(pk, count);
    for (size_t i = 0; i < shape->count; i++) {
        const struct msg_field *f = &shape->fields[i];
        if (f->required || msg_field_present(f, base)) {
            pack_field(pk, f, base);
        }
    }
}

int msg_encode(const struct msg *m, struct buf *out)
{
    int rc = msg_check(m, NULL);
    if (rc < 0) {
        return rc;
    }
    const struct msg_row *row = msg_table_find((uint32_t)m->type);
    size_t begin = frame_begin(out, row->number);
    msgpack_packer pk;
    msgpack_packer_init(&pk, out, write_bytes);
    pack_shape(&pk, row->shape, &m->u);
    return frame_end(out, begin);
}

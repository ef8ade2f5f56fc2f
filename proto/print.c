/* print.c: a message as one line for a log. Owns nothing. */
#include "common/buf.h"
#include "common/str.h"
#include "proto/msg.h"
#include "proto/msg_table.h"

#include <inttypes.h>
#include <string.h>

/* What is shown of a long text, of bytes, and of a list. */
#define TEXT_SHOWN ((size_t)72)
#define BYTES_SHOWN ((size_t)8)
#define ITEMS_SHOWN ((size_t)3)

static void print_shape(const struct msg_shape *shape, const void *base, struct buf *out);

/* Fields whose content must not get into a log. */
static bool is_secret(const struct msg_field *f)
{
    return strcmp(f->name, "secret") == 0;
}

static void print_text(const char *s, struct buf *out)
{
    if (s == NULL) {
        buf_add_str(out, "(none)");
        return;
    }
    size_t n = strlen(s);
    size_t shown = n;
    if (n > TEXT_SHOWN) {
        shown = TEXT_SHOWN;
        while (shown > 0 && ((unsigned char)s[shown] & 0xc0) == 0x80) {
            shown--; /* never within a character */
        }
    }
    buf_add_char(out, '"');
    str_escape(out, s, shown);
    buf_add_char(out, '"');
    if (shown < n) {
        buf_printf(out, "...(%zu bytes)", n);
    }
}

static void print_bytes(const struct msg_field *f, const struct msg_bytes *bytes, struct buf *out)
{
    buf_printf(out, "(%zu bytes", bytes->len);
    if (bytes->len > 0 && bytes->data != NULL && !is_secret(f)) {
        char hex[2 * BYTES_SHOWN + 1];
        size_t shown = bytes->len < BYTES_SHOWN ? bytes->len : BYTES_SHOWN;
        str_hex(hex, bytes->data, shown);
        buf_printf(out, " %s%s", hex, shown < bytes->len ? "..." : "");
    }
    buf_add_char(out, ')');
}

static void print_list(const struct msg_field *f, const void *base, struct buf *out)
{
    size_t count = *(const size_t *)msg_member(base, f->count);
    const void *items = *(const void *const *)msg_member(base, f->value);
    size_t shown = items == NULL ? 0 : count < ITEMS_SHOWN ? count : ITEMS_SHOWN;
    buf_add_char(out, '[');
    for (size_t i = 0; i < shown; i++) {
        buf_add_str(out, i > 0 ? " " : "");
        if (f->kind == MSG_KIND_STRS) {
            print_text(((const char *const *)items)[i], out);
        } else {
            buf_add_char(out, '{');
            print_shape(f->rec, msg_member(items, i * f->rec->size), out);
            buf_add_char(out, '}');
        }
    }
    if (shown < count) {
        buf_printf(out, " ...(%zu items)", count);
    }
    buf_add_char(out, ']');
}

static void print_value(const struct msg_field *f, const void *base, struct buf *out)
{
    const void *value = msg_member(base, f->value);
    switch ((enum msg_kind)f->kind) {
    case MSG_KIND_U32:
        buf_printf(out, "%" PRIu32, *(const uint32_t *)value);
        break;
    case MSG_KIND_U64:
        buf_printf(out, "%" PRIu64, *(const uint64_t *)value);
        break;
    case MSG_KIND_I64:
        buf_printf(out, "%" PRId64, *(const int64_t *)value);
        break;
    case MSG_KIND_BOOL:
        buf_add_str(out, *(const bool *)value ? "true" : "false");
        break;
    case MSG_KIND_STR:
        print_text(*(const char *const *)value, out);
        break;
    case MSG_KIND_BIN:
        print_bytes(f, value, out);
        break;
    case MSG_KIND_STRS:
    case MSG_KIND_RECS:
        print_list(f, base, out);
        break;
    }
}

static void print_shape(const struct msg_shape *shape, const void *base, struct buf *out)
{
    const char *gap = "";
    for (size_t i = 0; i < shape->count; i++) {
        const struct msg_field *f = &shape->fields[i];
        if (f->required || msg_field_present(f, base)) {
            buf_printf(out, "%s%s=", gap, f->name);
            print_value(f, base, out);
            gap = " ";
        }
    }
}

void msg_print(const struct msg *m, struct buf *out)
{
    const struct msg_row *row = msg_table_find((uint32_t)m->type);
    if (row == NULL) {
        buf_printf(out, "message %" PRIu32, (uint32_t)m->type);
        return;
    }
    buf_add_str(out, row->name);
    buf_add_char(out, ' ');
    print_shape(row->shape, &m->u, out);
}

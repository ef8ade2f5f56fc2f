/* buf.c: the growing byte buffer. Owns the bytes of each buffer; knows nothing of what they mean. */
#include "common/buf.h"

#include "common/err.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAP_DEFAULT ((size_t)256 * 1024 * 1024)
#define ROOM_FIRST ((size_t)64)

void buf_init(struct buf *b, size_t cap)
{
    *b = (struct buf)BUF_INIT;
    b->cap = cap;
}

void buf_fini(struct buf *b)
{
    free(b->data);
    buf_init(b, b->cap);
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    b->err = 0;
    if (b->data != NULL) {
        b->data[0] = '\0';
    }
}

/* Makes sure that n more bytes and a NUL fit; false with the error set when they do not. */
static bool grow(struct buf *b, size_t n)
{
    if (b->err != 0) {
        return false;
    }
    size_t cap = b->cap != 0 ? b->cap : CAP_DEFAULT;
    if (b->len > cap || n > cap - b->len || b->len + n == SIZE_MAX) {
        b->err = -ERR_LIMIT;
        return false;
    }
    size_t need = b->len + n + 1;
    if (need <= b->room) {
        return true;
    }
    size_t room = b->room < ROOM_FIRST ? ROOM_FIRST : b->room;
    while (room < need) {
        room = room > SIZE_MAX / 2 ? need : room * 2;
    }
    if (room - 1 > cap) {
        room = cap + 1;
    }
    uint8_t *data = realloc(b->data, room);
    if (data == NULL) {
        b->err = -ERR_NOMEM;
        return false;
    }
    b->data = data;
    b->room = room;
    b->data[b->len] = '\0';
    return true;
}

void buf_add(struct buf *b, const void *data, size_t n)
{
    if (!grow(b, n)) {
        return;
    }
    if (n != 0) {
        memcpy(b->data + b->len, data, n);
    }
    b->len += n;
    b->data[b->len] = '\0';
}

void buf_add_str(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_add_char(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_add_u32be(struct buf *b, uint32_t v)
{
    uint8_t bytes[4];
    for (int i = 3; i >= 0; i--) {
        bytes[i] = (uint8_t)(v & 0xff);
        v >>= 8;
    }
    buf_add(b, bytes, sizeof(bytes));
}

void buf_add_u64be(struct buf *b, uint64_t v)
{
    uint8_t bytes[8];
    for (int i = 7; i >= 0; i--) {
        bytes[i] = (uint8_t)(v & 0xff);
        v >>= 8;
    }
    buf_add(b, bytes, sizeof(bytes));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    if (b->err != 0) {
        return;
    }
    va_list again;
    va_copy(again, ap);
    size_t space = b->room - b->len;
    int n = vsnprintf(space != 0 ? (char *)b->data + b->len : NULL, space, fmt, ap);
    if (n < 0) {
        b->err = -ERR_LIMIT;
    } else if (!grow(b, (size_t)n)) {
        if (space != 0) {
            b->data[b->len] = '\0';
        }
    } else {
        if ((size_t)n >= space) {
            vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, again);
        }
        b->len += (size_t)n;
    }
    va_end(again);
}

uint8_t *buf_reserve(struct buf *b, size_t n)
{
    return grow(b, n) ? b->data + b->len : NULL;
}

void buf_grew(struct buf *b, size_t n)
{
    if (n == 0) {
        return;
    }
    assert(b->room - b->len > n);
    b->len += n;
    b->data[b->len] = '\0';
}

void buf_consume(struct buf *b, size_t n)
{
    assert(n <= b->len);
    if (n == 0) {
        return;
    }
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
    b->data[b->len] = '\0';
}

const char *buf_str(const struct buf *b)
{
    return b->data != NULL ? (const char *)b->data : "";
}

char *buf_take(struct buf *b)
{
    if (grow(b, 0)) {
        char *data = (char *)b->data;
        buf_init(b, b->cap);
        return data;
    }
    int err = b->err;
    buf_fini(b);
    b->err = err;
    return NULL;
}

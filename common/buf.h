/* buf.h: a growing byte buffer with a cap and a sticky error, for all building of bytes and text. */
#ifndef MAKESPAN_COMMON_BUF_H
#define MAKESPAN_COMMON_BUF_H

#include "common/attr.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    uint8_t *data; /* always NUL-terminated once something was added; owned */
    size_t len;
    size_t room;
    size_t cap; /* the most bytes it may hold; 0: 256 MiB */
    int err;    /* 0, or the first failure (-ERR_NOMEM, -ERR_LIMIT): later additions do nothing */
};

#define BUF_INIT {NULL, 0, 0, 0, 0}

void buf_init(struct buf *b, size_t cap);
void buf_fini(struct buf *b);  /* frees the bytes, leaves an empty usable buffer */
void buf_reset(struct buf *b); /* length 0, error cleared, memory kept */
void buf_add(struct buf *b, const void *data, size_t n);
void buf_add_str(struct buf *b, const char *s);
void buf_add_char(struct buf *b, char c);
void buf_add_u32be(struct buf *b, uint32_t v);
void buf_add_u64be(struct buf *b, uint64_t v);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
/* Makes room for n more bytes and returns where they go, or NULL on failure; buf_grew() then counts them in. */
uint8_t *buf_reserve(struct buf *b, size_t n) MUST_CHECK;
void buf_grew(struct buf *b, size_t n);
/* Drops the first n bytes. */
void buf_consume(struct buf *b, size_t n);
/* The bytes as a string, "" when empty. Never NULL. */
const char *buf_str(const struct buf *b);
/* Hands the bytes to the caller (free() them) and leaves the buffer empty; NULL when it holds an error. */
char *buf_take(struct buf *b) MUST_CHECK;

#endif

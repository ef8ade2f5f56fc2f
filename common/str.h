/* str.h: checks and small operations on text. */
#ifndef MAKESPAN_COMMON_STR_H
#define MAKESPAN_COMMON_STR_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* A name as sweep files and hosts have them: [A-Za-z0-9._+,=-]{1,64}, not "." and not "..". */
bool str_is_name(const char *s);
/* Well-formed UTF-8 (no surrogates, no overlong forms, at most U+10FFFF). */
bool str_is_utf8(const void *s, size_t n);
/* The offset of the first byte that is not well-formed UTF-8, or n. */
size_t str_utf8_bad(const void *s, size_t n);
/* A label: UTF-8 of 1 to 256 bytes without control characters (C0, DEL, C1). */
bool str_is_label(const char *s);
bool str_eq(const char *a, const char *b); /* NULL equals only NULL */
bool str_starts(const char *s, const char *prefix);
/* Copies with truncation, always NUL-terminated; returns the length of src. */
size_t str_copy(char *dst, size_t room, const char *src);
/* Of `n` candidates the one nearest to `word` (edit distance at most 2 and less than half its length, first on ties), or NULL: for "did you mean". */
const char *str_nearest(const char *word, const char *const *candidates, size_t n);
/* Appends s with control characters, quotes, backslashes and malformed UTF-8 escaped as \n, \t, \xHH: safe on a terminal and in one line. */
void str_escape(struct buf *out, const void *s, size_t n);
/* The same for a sentence: quotes and backslashes stay as they are. */
void str_show(struct buf *out, const void *s, size_t n);
/* Appends s as one word for /bin/sh: within single quotes. */
void str_shell_quote(struct buf *out, const char *s);
/* Lower-case hex of n bytes into dst (2n+1 bytes). */
void str_hex(char *dst, const uint8_t *p, size_t n);
/* Reads exactly n bytes from 2n hex digits; 0 or -ERR_INVAL. */
int str_unhex(uint8_t *dst, size_t n, const char *hex) MUST_CHECK;
/* Columns that UTF-8 text takes on a terminal (every code point counted 1, combining marks 0, wide CJK 2). */
size_t str_columns(const char *s);

#endif

/* str.c: checks and small operations on text. Pure; the widths of characters on a terminal are in str_width.c. */
#include "common/str.h"

#include "common/buf.h"
#include "common/err.h"

#include <string.h>

#define NAME_MAX_BYTES 64
#define LABEL_MAX_BYTES 256
#define NEAREST_MAX_BYTES 128
#define NEAREST_MAX_EDITS 2

bool str_is_name(const char *s)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+,=-";
    size_t n = strspn(s, allowed);
    return n >= 1 && n <= NAME_MAX_BYTES && s[n] == '\0' && strcmp(s, ".") != 0 && strcmp(s, "..") != 0;
}

/* Length of the well-formed UTF-8 sequence at p (Unicode 15, table 3-7), or 0. */
static size_t utf8_length(const uint8_t *p, size_t n)
{
    uint8_t low = 0x80;
    uint8_t high = 0xbf;
    size_t len;
    if (p[0] < 0x80) {
        return 1;
    }
    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        len = 2;
    } else if (p[0] >= 0xe0 && p[0] <= 0xef) {
        len = 3;
        low = p[0] == 0xe0 ? 0xa0 : low;   /* no overlong forms */
        high = p[0] == 0xed ? 0x9f : high; /* no surrogates */
    } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        len = 4;
        low = p[0] == 0xf0 ? 0x90 : low;
        high = p[0] == 0xf4 ? 0x8f : high; /* at most U+10FFFF */
    } else {
        return 0;
    }
    if (n < len || p[1] < low || p[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < len; i++) {
        if (p[i] < 0x80 || p[i] > 0xbf) {
            return 0;
        }
    }
    return len;
}

size_t str_utf8_bad(const void *s, size_t n)
{
    const uint8_t *p = s;
    size_t at = 0;
    while (at < n) {
        size_t len = utf8_length(p + at, n - at);
        if (len == 0) {
            return at;
        }
        at += len;
    }
    return n;
}

bool str_is_utf8(const void *s, size_t n)
{
    return str_utf8_bad(s, n) == n;
}

/* Whether the well-formed sequence of len bytes at p is a control character: C0, DEL or C1. */
static bool is_control(const uint8_t *p, size_t len)
{
    if (len == 1) {
        return p[0] < 0x20 || p[0] == 0x7f;
    }
    return len == 2 && p[0] == 0xc2 && p[1] < 0xa0;
}

bool str_is_label(const char *s)
{
    const uint8_t *p = (const uint8_t *)s;
    size_t n = strlen(s);
    if (n < 1 || n > LABEL_MAX_BYTES) {
        return false;
    }
    for (size_t at = 0; at < n;) {
        size_t len = utf8_length(p + at, n - at);
        if (len == 0 || is_control(p + at, len)) {
            return false;
        }
        at += len;
    }
    return true;
}

bool str_eq(const char *a, const char *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    return strcmp(a, b) == 0;
}

bool str_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

size_t str_copy(char *dst, size_t room, const char *src)
{
    size_t n = strlen(src);
    if (room > 0) {
        size_t take = n < room ? n : room - 1;
        memcpy(dst, src, take);
        dst[take] = '\0';
    }
    return n;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edit distance by optimal string alignment: insert, delete, replace, swap of neighbours; or some number above NEAREST_MAX_EDITS when it is that far.
 * Both at most NEAREST_MAX_BYTES long, and neither more than NEAREST_MAX_EDITS longer than the other. A cell that lies further from the diagonal stands
 * for that many inserts or deletes, and is not computed: a sweep file may ask for many words. */
static size_t edit_distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t rows[3][NEAREST_MAX_BYTES + 1];
    size_t *before = rows[0];
    size_t *last = rows[1];
    size_t *row = rows[2];
    for (size_t j = 0; j <= nb; j++) {
        last[j] = j;
    }
    for (size_t i = 1; i <= na; i++) {
        size_t first = i > NEAREST_MAX_EDITS ? i - NEAREST_MAX_EDITS : 1;
        size_t end = min_size(nb, i + NEAREST_MAX_EDITS);
        row[first - 1] = first == 1 ? i : NEAREST_MAX_EDITS + 1;
        if (end < nb) {
            row[end + 1] = NEAREST_MAX_EDITS + 1;
        }
        for (size_t j = first; j <= end; j++) {
            size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
            size_t d = min_size(min_size(last[j] + 1, row[j - 1] + 1), last[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                d = min_size(d, before[j - 2] + 1);
            }
            row[j] = d;
        }
        size_t *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[nb];
}

const char *str_nearest(const char *word, const char *const *candidates, size_t n)
{
    size_t len = strnlen(word, NEAREST_MAX_BYTES + 1);
    const char *best = NULL;
    size_t best_edits = NEAREST_MAX_EDITS + 1;
    if (len > NEAREST_MAX_BYTES) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        size_t other = strnlen(candidates[i], NEAREST_MAX_BYTES + 1);
        if (other > NEAREST_MAX_BYTES || other > len + NEAREST_MAX_EDITS || len > other + NEAREST_MAX_EDITS) {
            continue;
        }
        size_t edits = edit_distance(word, len, candidates[i], other);
        if (edits < best_edits && edits * 2 < len) {
            best = candidates[i];
            best_edits = edits;
        }
    }
    return best;
}

static void escape(struct buf *out, const void *s, size_t n, bool quoted)
{
    const uint8_t *p = s;
    for (size_t at = 0; at < n;) {
        size_t len = utf8_length(p + at, n - at);
        if (p[at] == '\n') {
            buf_add_str(out, "\\n");
        } else if (p[at] == '\t') {
            buf_add_str(out, "\\t");
        } else if (quoted && (p[at] == '"' || p[at] == '\\')) {
            buf_add_char(out, '\\');
            buf_add_char(out, (char)p[at]);
        } else if (len == 0) {
            buf_printf(out, "\\x%02x", (unsigned)p[at]);
        } else if (is_control(p + at, len)) {
            for (size_t i = 0; i < len; i++) {
                buf_printf(out, "\\x%02x", (unsigned)p[at + i]);
            }
        } else {
            buf_add(out, p + at, len);
        }
        at += len != 0 ? len : 1;
    }
}

void str_escape(struct buf *out, const void *s, size_t n)
{
    escape(out, s, n, true);
}

void str_show(struct buf *out, const void *s, size_t n)
{
    escape(out, s, n, false);
}

void str_shell_quote(struct buf *out, const char *s)
{
    buf_add_char(out, '\'');
    for (; *s != '\0'; s++) {
        if (*s == '\'') {
            buf_add_str(out, "'\\''");
        } else {
            buf_add_char(out, *s);
        }
    }
    buf_add_char(out, '\'');
}

void str_hex(char *dst, const uint8_t *p, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        dst[2 * i] = digits[p[i] >> 4];
        dst[2 * i + 1] = digits[p[i] & 0xf];
    }
    dst[2 * n] = '\0';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

int str_unhex(uint8_t *dst, size_t n, const char *hex)
{
    if (n > SIZE_MAX / 2 || strnlen(hex, 2 * n + (n < SIZE_MAX / 2)) != 2 * n) {
        return -ERR_INVAL;
    }
    for (size_t i = 0; i < 2 * n; i++) {
        if (hex_value(hex[i]) < 0) {
            return -ERR_INVAL;
        }
    }
    for (size_t i = 0; i < n; i++) {
        dst[i] = (uint8_t)(hex_value(hex[2 * i]) * 16 + hex_value(hex[2 * i + 1]));
    }
    return 0;
}

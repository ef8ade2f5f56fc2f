/* str_width.c: how many columns of a terminal a text takes. Owns the tables of characters without width and of double width. */
#include "common/str.h"

#include "common/attr.h"

#include <string.h>

struct range {
    uint32_t first;
    uint32_t last;
};

/* Marks that combine with the character before, and invisible format characters. */
static const struct range zero[] = {
    {0x0300, 0x036f},   {0x0483, 0x0489},   {0x0591, 0x05bd},   {0x05bf, 0x05bf},   {0x05c1, 0x05c2},   {0x05c4, 0x05c5},
    {0x05c7, 0x05c7},   {0x0610, 0x061a},   {0x064b, 0x065f},   {0x0670, 0x0670},   {0x06d6, 0x06dc},   {0x06df, 0x06e4},
    {0x06e7, 0x06e8},   {0x06ea, 0x06ed},   {0x0711, 0x0711},   {0x0730, 0x074a},   {0x0900, 0x0902},   {0x093a, 0x093a},
    {0x093c, 0x093c},   {0x0941, 0x0948},   {0x094d, 0x094d},   {0x0e31, 0x0e31},   {0x0e34, 0x0e3a},   {0x0e47, 0x0e4e},
    {0x1ab0, 0x1aff},   {0x1dc0, 0x1dff},   {0x200b, 0x200f},   {0x202a, 0x202e},   {0x2060, 0x2064},   {0x20d0, 0x20ff},
    {0x302a, 0x302d},   {0x3099, 0x309a},   {0xfe00, 0xfe0f},   {0xfe20, 0xfe2f},   {0xfeff, 0xfeff},   {0x1f3fb, 0x1f3ff},
    {0xe0100, 0xe01ef},
};

/* East Asian wide and full-width characters, and emoji. */
static const struct range wide[] = {
    {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xa000, 0xa4cf},
    {0xa960, 0xa97c},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
    {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x2fffd}, {0x30000, 0x3fffd},
};

static bool is_in(const struct range *ranges, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n; i++) {
        if (c >= ranges[i].first && c <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

/* The code point of one well-formed sequence. */
static uint32_t code_point(const uint8_t *p, size_t len)
{
    static const uint8_t lead_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = p[0] & lead_bits[len];
    for (size_t i = 1; i < len; i++) {
        c = c << 6 | (p[i] & 0x3fU);
    }
    return c;
}

size_t str_columns(const char *s)
{
    const uint8_t *p = (const uint8_t *)s;
    size_t n = strlen(s);
    size_t columns = 0;
    for (size_t at = 0; at < n;) {
        size_t len = p[at] < 0x80 ? 1 : p[at] < 0xe0 ? 2 : p[at] < 0xf0 ? 3 : 4;
        if (len > n - at || !str_is_utf8(p + at, len)) {
            columns++; /* a malformed byte is shown as one replacement character */
            at++;
            continue;
        }
        uint32_t c = code_point(p + at, len);
        if (is_in(wide, ARRAY_LEN(wide), c) && !is_in(zero, ARRAY_LEN(zero), c)) {
            columns += 2;
        } else if (!is_in(zero, ARRAY_LEN(zero), c)) {
            columns++;
        }
        at += len;
    }
    return columns;
}

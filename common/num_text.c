/* num_text.c: durations, sizes, shares and seconds as text, in the forms that num.c reads again. Pure and independent of the locale. */
#include "common/num.h"

#include "common/clock.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Room for every text made here. */
#define TEXT_ROOM 40

static uint64_t magnitude(int64_t v)
{
    return v < 0 ? ~(uint64_t)v + 1 : (uint64_t)v;
}

static const char *give(char *dst, size_t room, const char *text)
{
    if (room > 0) {
        size_t n = strnlen(text, room - 1);
        memcpy(dst, text, n);
        dst[n] = '\0';
    }
    return dst;
}

static size_t put(char *text, size_t at, uint64_t v, const char *unit)
{
    return at + (size_t)snprintf(text + at, TEXT_ROOM - at, "%" PRIu64 "%s", v, unit);
}

/* Appends v/scale with its fraction, no zeros at the end, and the unit. scale is a power of ten. */
static size_t put_fraction(char *text, size_t at, uint64_t v, uint64_t scale, const char *unit)
{
    uint64_t rest = v % scale;
    at = put(text, at, v / scale, "");
    if (rest != 0) {
        text[at++] = '.';
        for (uint64_t s = scale / 10; rest != 0; s /= 10) {
            text[at++] = (char)('0' + rest / s);
            rest %= s;
        }
        text[at] = '\0';
    }
    return at + (size_t)snprintf(text + at, TEXT_ROOM - at, "%s", unit);
}

const char *num_duration_text(char *dst, size_t room, int64_t ns)
{
    char text[TEXT_ROOM] = "";
    uint64_t left = magnitude(ns);
    size_t at = 0;
    if (ns < 0) {
        text[at++] = '-';
    }
    if (left == 0) {
        return give(dst, room, "0s");
    }
    if (left < (uint64_t)CLOCK_US) {
        put(text, at, left, "ns");
    } else if (left < (uint64_t)CLOCK_MS) {
        put_fraction(text, at, left, (uint64_t)CLOCK_US, "us");
    } else if (left < (uint64_t)CLOCK_SEC) {
        put_fraction(text, at, left, (uint64_t)CLOCK_MS, "ms");
    } else {
        static const struct {
            uint64_t ns;
            const char *name;
        } big[] = {{(uint64_t)CLOCK_DAY, "d"}, {(uint64_t)CLOCK_HOUR, "h"}, {(uint64_t)CLOCK_MIN, "m"}};
        for (size_t i = 0; i < ARRAY_LEN(big); i++) {
            if (left >= big[i].ns) {
                at = put(text, at, left / big[i].ns, big[i].name);
                left %= big[i].ns;
            }
        }
        if (left != 0) {
            put_fraction(text, at, left, (uint64_t)CLOCK_SEC, "s");
        }
    }
    return give(dst, room, text);
}

/* Tries to write bytes in the largest of four units, each `base` times the one before, with at most one digit behind the point. */
static bool put_size_exact(char *text, uint64_t bytes, uint64_t base, const char *const names[4])
{
    uint64_t unit = 1;
    size_t i = 0;
    while (i < 4 && bytes / unit >= base) {
        unit *= base;
        i++;
    }
    uint64_t rest = bytes % unit;
    if (i == 0 || rest * 10 % unit != 0) {
        return false;
    }
    put_fraction(text, 0, bytes / unit * 10 + rest * 10 / unit, 10, names[i - 1]);
    return true;
}

const char *num_size_text(char *dst, size_t room, uint64_t bytes)
{
    static const char *const binary[4] = {" KiB", " MiB", " GiB", " TiB"};
    static const char *const decimal[4] = {" KB", " MB", " GB", " TB"};
    char text[TEXT_ROOM] = "";
    if (bytes < 1000) {
        put(text, 0, bytes, " B");
    } else if (!put_size_exact(text, bytes, 1024, binary) && !put_size_exact(text, bytes, 1000, decimal)) {
        uint64_t unit = 1;
        size_t i = 0;
        /* the next unit from 1023.95 on: it would be shown as 1024.0 */
        while (i < 4 && (i == 0 || bytes / unit * 100 + bytes % unit * 100 / unit >= 102395)) {
            unit <<= 10;
            i++;
        }
        uint64_t tenths = bytes / unit * 10 + (bytes % unit * 10 + unit / 2) / unit;
        put_fraction(text, 0, tenths, 10, binary[i - 1]);
    }
    return give(dst, room, text);
}

const char *num_percent_text(char *dst, size_t room, int64_t ppm)
{
    char text[TEXT_ROOM] = "";
    size_t at = 0;
    if (ppm < 0) {
        text[at++] = '-';
    }
    put_fraction(text, at, magnitude(ppm), 10000, "%");
    return give(dst, room, text);
}

const char *num_seconds_text(char *dst, size_t room, int64_t ns, int decimals)
{
    char text[TEXT_ROOM] = "";
    uint64_t step = (uint64_t)CLOCK_SEC; /* nanoseconds of one unit of the last digit */
    uint64_t scale = 1;
    size_t at = 0;
    for (int i = 0; i < decimals && i < 9; i++) {
        step /= 10;
        scale *= 10;
    }
    uint64_t v = magnitude(ns);
    v = v / step + (v % step >= step - step / 2 ? 1 : 0);
    if (ns < 0 && v != 0) {
        text[at++] = '-';
    }
    at = put(text, at, v / scale, "");
    if (scale > 1) {
        text[at++] = '.';
        for (uint64_t s = scale / 10; s > 0; s /= 10) {
            text[at++] = (char)('0' + v / s % 10);
        }
        text[at] = '\0';
    }
    return give(dst, room, text);
}

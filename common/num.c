/* num.c: numbers from text, and checked arithmetic. Pure and independent of the locale. Numbers to text: num_text.c. */
#include "common/num.h"

#include "common/clock.h"
#include "common/err.h"

#include <stdbool.h>
#include <string.h>

#define DURATION_MAX (3650 * CLOCK_DAY)
#define FRACTION_DIGITS_MAX 9
#define PPM_MAX INT64_C(10000000)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int num_parse_digits(const char *s, size_t n, uint64_t *out)
{
    uint64_t v = 0;
    bool over = false;
    if (n == 0) {
        return -ERR_INVAL;
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_digit(s[i])) {
            return -ERR_INVAL;
        }
        uint64_t digit = (uint64_t)(s[i] - '0');
        over = over || v > (UINT64_MAX - digit) / 10;
        v = v * 10 + digit;
    }
    if (over) {
        return -ERR_RANGE;
    }
    *out = v;
    return 0;
}

/* Digits without a needless leading zero. */
static int parse_plain(const char *s, size_t n, uint64_t *out)
{
    if (n > 1 && s[0] == '0') {
        return -ERR_INVAL;
    }
    return num_parse_digits(s, n, out);
}

int num_parse_u64(const char *s, uint64_t *out)
{
    return parse_plain(s, strlen(s), out);
}

int num_parse_i64(const char *s, int64_t *out)
{
    bool negative = s[0] == '-';
    uint64_t v = 0;
    int rc = num_parse_u64(negative ? s + 1 : s, &v);
    if (rc != 0) {
        return rc;
    }
    if (negative && v == 0) {
        return -ERR_INVAL;
    }
    if (v > (uint64_t)INT64_MAX + (negative ? 1 : 0)) {
        return -ERR_RANGE;
    }
    *out = negative ? -(int64_t)(v - 1) - 1 : (int64_t)v;
    return 0;
}

/* A decimal number as it stands in the text: whole part and fraction/scale, scale a power of ten. */
struct decimal {
    uint64_t whole;
    uint64_t fraction;
    uint64_t scale;
};

/* Reads "12" or "12.5" at *s and moves *s behind it. At most nine digits behind the point. */
static int parse_decimal(const char **s, struct decimal *d)
{
    const char *p = *s;
    size_t n = strspn(p, "0123456789");
    *d = (struct decimal){0, 0, 1};
    int rc = parse_plain(p, n, &d->whole);
    if (rc == -ERR_INVAL) {
        return rc;
    }
    p += n;
    if (*p == '.') {
        p++;
        n = strspn(p, "0123456789");
        if (n < 1 || n > FRACTION_DIGITS_MAX) {
            return -ERR_INVAL;
        }
        for (size_t i = 0; i < n; i++) {
            d->fraction = d->fraction * 10 + (uint64_t)(p[i] - '0');
            d->scale *= 10;
        }
        p += n;
    }
    *s = p;
    return rc;
}

/* d times unit, rounded to the nearest whole number, half up; -ERR_RANGE above max. unit is at most 1e15. */
static int scale_decimal(const struct decimal *d, uint64_t unit, uint64_t max, uint64_t *out)
{
    if (d->whole > max / unit) {
        return -ERR_RANGE;
    }
    /* unit is split so that no product leaves 64 bits: both factors of the second are below 1e9 */
    uint64_t part = unit / d->scale * d->fraction + (unit % d->scale * d->fraction + d->scale / 2) / d->scale;
    uint64_t v = d->whole * unit;
    if (part > max - v) {
        return -ERR_RANGE;
    }
    *out = v + part;
    return 0;
}

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit durations[] = {
    {"w", 7 * (uint64_t)CLOCK_DAY},
    {"d", (uint64_t)CLOCK_DAY},
    {"h", (uint64_t)CLOCK_HOUR},
    {"m", (uint64_t)CLOCK_MIN},
    {"s", (uint64_t)CLOCK_SEC},
    {"ms", (uint64_t)CLOCK_MS},
    {"us", (uint64_t)CLOCK_US},
    {"ns", 1},
};

static const struct unit sizes[] = {
    {"B", 1},
    {"KB", UINT64_C(1000)},
    {"MB", UINT64_C(1000000)},
    {"GB", UINT64_C(1000000000)},
    {"TB", UINT64_C(1000000000000)},
    {"KiB", UINT64_C(1) << 10},
    {"MiB", UINT64_C(1) << 20},
    {"GiB", UINT64_C(1) << 30},
    {"TiB", UINT64_C(1) << 40},
};

/* The unit named by the n bytes at s, or NULL. */
static const struct unit *find_unit(const struct unit *units, size_t count, const char *s, size_t n)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(units[i].name) == n && memcmp(units[i].name, s, n) == 0) {
            return &units[i];
        }
    }
    return NULL;
}

int num_parse_duration(const char *s, int64_t *ns)
{
    const struct unit *before = NULL;
    uint64_t sum = 0;
    bool over = false;
    if (strcmp(s, "0") == 0) {
        *ns = 0;
        return 0;
    }
    do {
        struct decimal d;
        int rc = parse_decimal(&s, &d);
        if (rc == -ERR_INVAL) {
            return rc;
        }
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz");
        const struct unit *unit = find_unit(durations, ARRAY_LEN(durations), s, n);
        if (unit == NULL || (before != NULL && unit <= before) || (unit->factor == 1 && d.scale != 1)) {
            return -ERR_INVAL;
        }
        uint64_t part = 0;
        over = over || rc != 0 || scale_decimal(&d, unit->factor, (uint64_t)DURATION_MAX - sum, &part) != 0;
        sum += part;
        before = unit;
        s += n;
    } while (*s != '\0');
    if (over) {
        return -ERR_RANGE;
    }
    *ns = (int64_t)sum;
    return 0;
}

int num_parse_size(const char *s, uint64_t *bytes)
{
    if (strcmp(s, "0") == 0) {
        *bytes = 0;
        return 0;
    }
    struct decimal d;
    int rc = parse_decimal(&s, &d);
    if (rc == -ERR_INVAL) {
        return rc;
    }
    if (*s == ' ') {
        s++;
    }
    const struct unit *unit = find_unit(sizes, ARRAY_LEN(sizes), s, strlen(s));
    if (unit == NULL || (unit->factor == 1 && d.scale != 1)) {
        return -ERR_INVAL;
    }
    return rc != 0 ? rc : scale_decimal(&d, unit->factor, UINT64_MAX, bytes);
}

int num_parse_percent(const char *s, int64_t *ppm)
{
    struct decimal d;
    int rc = parse_decimal(&s, &d);
    if (rc == -ERR_INVAL) {
        return rc;
    }
    if (*s == ' ') {
        s++;
    }
    if (strcmp(s, "%") != 0) {
        return -ERR_INVAL;
    }
    if (rc != 0) {
        return rc;
    }
    uint64_t v = 0;
    /* finer than one part per million: refused, not rounded */
    if (d.scale > 10000 && d.fraction % (d.scale / 10000) != 0) {
        return -ERR_RANGE;
    }
    rc = scale_decimal(&d, 10000, (uint64_t)PPM_MAX, &v);
    if (rc == 0) {
        *ppm = (int64_t)v;
    }
    return rc;
}

int num_add_i64(int64_t a, int64_t b, int64_t *out)
{
    if ((b > 0 && a > INT64_MAX - b) || (b < 0 && a < INT64_MIN - b)) {
        return -ERR_RANGE;
    }
    *out = a + b;
    return 0;
}

/* The magnitude of v, also of INT64_MIN. */
static uint64_t magnitude(int64_t v)
{
    return v < 0 ? ~(uint64_t)v + 1 : (uint64_t)v;
}

int num_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    bool negative = (a < 0) != (b < 0);
    uint64_t x = magnitude(a);
    uint64_t y = magnitude(b);
    uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    if (y != 0 && x > limit / y) {
        return -ERR_RANGE;
    }
    *out = a * b;
    return 0;
}

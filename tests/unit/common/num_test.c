/* num_test.c: numbers, durations, sizes and shares from text and to text, with their edges. */
#include "common/num.h"

#include "common/clock.h"
#include "common/err.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNTOUCHED 77

Test(num, u64)
{
    static const struct {
        const char *text;
        int rc;
        uint64_t want;
    } rows[] = {
        {"0", 0, 0},
        {"1", 0, 1},
        {"18446744073709551615", 0, UINT64_MAX},
        {"18446744073709551616", -ERR_RANGE, 0},
        {"18446744073709551620", -ERR_RANGE, 0},
        {"99999999999999999999999999", -ERR_RANGE, 0},
        {"99999999999999999999999999x", -ERR_INVAL, 0},
        {"", -ERR_INVAL, 0},
        {"-1", -ERR_INVAL, 0},
        {"+1", -ERR_INVAL, 0},
        {" 1", -ERR_INVAL, 0},
        {"1 ", -ERR_INVAL, 0},
        {"00", -ERR_INVAL, 0},
        {"08", -ERR_INVAL, 0},
        {"0x10", -ERR_INVAL, 0},
        {"1e3", -ERR_INVAL, 0},
        {"1.0", -ERR_INVAL, 0},
        {"1,000", -ERR_INVAL, 0},
        {"\xd9\xa1", -ERR_INVAL, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t v = UNTOUCHED;
        cr_assert_eq(num_parse_u64(rows[i].text, &v), rows[i].rc, "'%s'", rows[i].text);
        cr_assert_eq(v, rows[i].rc == 0 ? rows[i].want : UNTOUCHED, "'%s'", rows[i].text);
    }
}

Test(num, i64)
{
    static const struct {
        const char *text;
        int rc;
        int64_t want;
    } rows[] = {
        {"0", 0, 0},
        {"-1", 0, -1},
        {"9223372036854775807", 0, INT64_MAX},
        {"9223372036854775808", -ERR_RANGE, 0},
        {"-9223372036854775808", 0, INT64_MIN},
        {"-9223372036854775809", -ERR_RANGE, 0},
        {"-99999999999999999999999", -ERR_RANGE, 0},
        {"-0", -ERR_INVAL, 0},
        {"--1", -ERR_INVAL, 0},
        {"-", -ERR_INVAL, 0},
        {"- 1", -ERR_INVAL, 0},
        {"-01", -ERR_INVAL, 0},
        {"", -ERR_INVAL, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t v = UNTOUCHED;
        cr_assert_eq(num_parse_i64(rows[i].text, &v), rows[i].rc, "'%s'", rows[i].text);
        cr_assert_eq(v, rows[i].rc == 0 ? rows[i].want : UNTOUCHED, "'%s'", rows[i].text);
    }
}

Test(num, digits)
{
    uint64_t v = UNTOUCHED;
    cr_assert_eq(num_parse_digits("0012 kB", 4, &v), 0);
    cr_assert_eq(v, 12);
    cr_assert_eq(num_parse_digits("00000000000000000000000000000005", 32, &v), 0);
    cr_assert_eq(v, 5);
    v = UNTOUCHED;
    cr_assert_eq(num_parse_digits("12 ", 3, &v), -ERR_INVAL);
    cr_assert_eq(num_parse_digits("12", 0, &v), -ERR_INVAL);
    cr_assert_eq(num_parse_digits("18446744073709551616", 20, &v), -ERR_RANGE);
    cr_assert_eq(v, UNTOUCHED);
}

Test(num, durations)
{
    static const struct {
        const char *text;
        int rc;
        int64_t want;
    } rows[] = {
        {"0", 0, 0},
        {"0s", 0, 0},
        {"1ns", 0, 1},
        {"1us", 0, 1000},
        {"20ms", 0, 20 * CLOCK_MS},
        {"90s", 0, 90 * CLOCK_SEC},
        {"1.5s", 0, 1500 * CLOCK_MS},
        {"0.5h", 0, 30 * CLOCK_MIN},
        {"1h30m", 0, 90 * CLOCK_MIN},
        {"1w2d3h4m5s6ms7us8ns", 0,
         9 * CLOCK_DAY + 3 * CLOCK_HOUR + 4 * CLOCK_MIN + 5 * CLOCK_SEC + 6 * CLOCK_MS + 7 * CLOCK_US + 8},
        {"2h0.5s", 0, 2 * CLOCK_HOUR + CLOCK_SEC / 2},
        {"0.123456789s", 0, 123456789},
        {"0.333333333w", 0, INT64_C(201599999798400)},
        {"0.0015us", 0, 2},          /* rounds half up */
        {"0.0014us", 0, 1},
        {"3650d", 0, 3650 * CLOCK_DAY},
        {"87600h", 0, 3650 * CLOCK_DAY},
        {"3650d1ns", -ERR_RANGE, 0},
        {"3651d", -ERR_RANGE, 0},
        {"99999999999999999999d", -ERR_RANGE, 0},
        {"18446744073709551616ns", -ERR_RANGE, 0},
        {"3650d1x", -ERR_INVAL, 0},
        {"9999999d5", -ERR_INVAL, 0}, /* nonsense is invalid, even where it would also be too much */
        {"", -ERR_INVAL, 0},
        {"10", -ERR_INVAL, 0},
        {"00", -ERR_INVAL, 0},
        {"s", -ERR_INVAL, 0},
        {"h1", -ERR_INVAL, 0},
        {"-1s", -ERR_INVAL, 0},
        {"+1s", -ERR_INVAL, 0},
        {" 1s", -ERR_INVAL, 0},
        {"1 s", -ERR_INVAL, 0},
        {"1s ", -ERR_INVAL, 0},
        {"1h 30m", -ERR_INVAL, 0},
        {"30m1h", -ERR_INVAL, 0},
        {"1m1m", -ERR_INVAL, 0},
        {"1h30", -ERR_INVAL, 0},
        {"1S", -ERR_INVAL, 0},
        {"1min", -ERR_INVAL, 0},
        {"1mo", -ERR_INVAL, 0},
        {"1sec", -ERR_INVAL, 0},
        {"1.s", -ERR_INVAL, 0},
        {".5s", -ERR_INVAL, 0},
        {"1.5.5s", -ERR_INVAL, 0},
        {"1,5s", -ERR_INVAL, 0},
        {"1e3s", -ERR_INVAL, 0},
        {"08s", -ERR_INVAL, 0},
        {"0.5ns", -ERR_INVAL, 0},
        {"0.1234567890s", -ERR_INVAL, 0}, /* ten digits */
        {"\xc2\xb5s", -ERR_INVAL, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t v = UNTOUCHED;
        cr_assert_eq(num_parse_duration(rows[i].text, &v), rows[i].rc, "'%s'", rows[i].text);
        cr_assert_eq(v, rows[i].rc == 0 ? rows[i].want : UNTOUCHED, "'%s' gives %" PRId64, rows[i].text, v);
    }
}

Test(num, sizes)
{
    static const struct {
        const char *text;
        int rc;
        uint64_t want;
    } rows[] = {
        {"0", 0, 0},
        {"0B", 0, 0},
        {"300B", 0, 300},
        {"40MB", 0, 40000000},
        {"1.5 GiB", 0, UINT64_C(1610612736)},
        {"1KB", 0, 1000},
        {"1KiB", 0, 1024},
        {"1GB", 0, 1000000000},
        {"2TB", 0, UINT64_C(2000000000000)},
        {"1MiB", 0, 1048576},
        {"1TiB", 0, UINT64_C(1099511627776)},
        {"0.1KiB", 0, 102},
        {"0.001KB", 0, 1},
        {"16777215TiB", 0, UINT64_C(16777215) << 40},
        {"18446744073709551615B", 0, UINT64_MAX},
        {"16777216TiB", -ERR_RANGE, 0},
        {"16777215.999999999TiB", 0, UINT64_C(18446744073709550516)},
        {"18446744073709551616B", -ERR_RANGE, 0},
        {"18446744073709552KB", -ERR_RANGE, 0},
        {"99999999999999999999999MB", -ERR_RANGE, 0},
        {"99999999999999999999999", -ERR_INVAL, 0},
        {"1000", -ERR_INVAL, 0},
        {"", -ERR_INVAL, 0},
        {"B", -ERR_INVAL, 0},
        {"1K", -ERR_INVAL, 0},
        {"1M", -ERR_INVAL, 0},
        {"1kB", -ERR_INVAL, 0},
        {"1mb", -ERR_INVAL, 0},
        {"1MB1KB", -ERR_INVAL, 0},
        {"1  MB", -ERR_INVAL, 0},
        {"1MB ", -ERR_INVAL, 0},
        {" 1MB", -ERR_INVAL, 0},
        {"-1MB", -ERR_INVAL, 0},
        {"0.5B", -ERR_INVAL, 0},
        {"01MB", -ERR_INVAL, 0},
        {"1.MB", -ERR_INVAL, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t v = UNTOUCHED;
        cr_assert_eq(num_parse_size(rows[i].text, &v), rows[i].rc, "'%s'", rows[i].text);
        cr_assert_eq(v, rows[i].rc == 0 ? rows[i].want : UNTOUCHED, "'%s' gives %" PRIu64, rows[i].text, v);
    }
}

Test(num, percents)
{
    static const struct {
        const char *text;
        int rc;
        int64_t want;
    } rows[] = {
        {"0%", 0, 0},
        {"2%", 0, 20000},
        {"0.5 %", 0, 5000},
        {"12.3456%", 0, 123456},
        {"0.0001%", 0, 1},
        {"2.500000%", 0, 25000},
        {"1000%", 0, 10000000},
        {"0.00001%", -ERR_RANGE, 0},
        {"1000.0001%", -ERR_RANGE, 0},
        {"1001%", -ERR_RANGE, 0},
        {"99999999999999999999999%", -ERR_RANGE, 0},
        {"2", -ERR_INVAL, 0},
        {"0", -ERR_INVAL, 0},
        {"0.02", -ERR_INVAL, 0},
        {"", -ERR_INVAL, 0},
        {"%", -ERR_INVAL, 0},
        {"-1%", -ERR_INVAL, 0},
        {"1%%", -ERR_INVAL, 0},
        {"1% ", -ERR_INVAL, 0},
        {"1  %", -ERR_INVAL, 0},
        {"02%", -ERR_INVAL, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t v = UNTOUCHED;
        cr_assert_eq(num_parse_percent(rows[i].text, &v), rows[i].rc, "'%s'", rows[i].text);
        cr_assert_eq(v, rows[i].rc == 0 ? rows[i].want : UNTOUCHED, "'%s'", rows[i].text);
    }
}

Test(num, duration_texts)
{
    static const struct {
        int64_t ns;
        const char *want;
    } rows[] = {
        {0, "0s"},
        {1, "1ns"},
        {999, "999ns"},
        {1500, "1.5us"},
        {20 * CLOCK_MS, "20ms"},
        {20 * CLOCK_MS + 1, "20.000001ms"},
        {1500 * CLOCK_MS, "1.5s"},
        {CLOCK_SEC + 1, "1.000000001s"},
        {60 * CLOCK_SEC, "1m"},
        {90 * CLOCK_SEC, "1m30s"},
        {125 * CLOCK_MIN, "2h5m"},
        {24 * CLOCK_HOUR, "1d"},
        {CLOCK_DAY + CLOCK_MS, "1d0.001s"},
        {3650 * CLOCK_DAY, "3650d"},
        {-1500 * CLOCK_MS, "-1.5s"},
        {INT64_MAX, "106751d23h47m16.854775807s"},
        {INT64_MIN, "-106751d23h47m16.854775808s"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[32];
        cr_assert_str_eq(num_duration_text(text, sizeof(text), rows[i].ns), rows[i].want);
    }
}

Test(num, duration_texts_read_back)
{
    uint64_t state = 1;
    for (int i = 0; i < 200000; i++) {
        char text[32];
        int64_t back = -1;
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        int64_t ns = (int64_t)(state >> 1) >> state % 63;
        if (i % 3 == 0) {
            ns -= ns % CLOCK_SEC;
        }
        ns %= 3650 * CLOCK_DAY;
        int rc = num_parse_duration(num_duration_text(text, sizeof(text), ns), &back);
        cr_assert(rc == 0 && back == ns, "%" PRId64 " as '%s' reads as %" PRId64, ns, text, back);
    }
}

Test(num, size_texts)
{
    static const struct {
        uint64_t bytes;
        const char *want;
    } rows[] = {
        {0, "0 B"},
        {300, "300 B"},
        {999, "999 B"},
        {1000, "1 KB"},
        {1001, "1 KiB"},
        {1024, "1 KiB"},
        {1025, "1 KiB"},
        {1536, "1.5 KiB"},
        {40000000, "40 MB"},
        {UINT64_C(1610612736), "1.5 GiB"},
        {1048576, "1 MiB"},
        {1048575, "1 MiB"},       /* not 1024 KiB */
        {1047500, "1022.9 KiB"},
        {123456789, "117.7 MiB"},
        {UINT64_C(1) << 40, "1 TiB"},
        {UINT64_MAX, "16777216 TiB"},
        {UINT64_C(5000000000000), "5 TB"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[32];
        cr_assert_str_eq(num_size_text(text, sizeof(text), rows[i].bytes), rows[i].want, "%" PRIu64 " gives '%s'",
                         rows[i].bytes, text);
    }
}

Test(num, percent_texts)
{
    static const struct {
        int64_t ppm;
        const char *want;
    } rows[] = {
        {0, "0%"}, {20000, "2%"}, {5000, "0.5%"}, {1, "0.0001%"}, {123456, "12.3456%"}, {10000000, "1000%"}, {-46000, "-4.6%"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[32];
        cr_assert_str_eq(num_percent_text(text, sizeof(text), rows[i].ppm), rows[i].want);
        int64_t back = -1;
        if (rows[i].ppm >= 0) {
            cr_assert_eq(num_parse_percent(text, &back), 0);
            cr_assert_eq(back, rows[i].ppm);
        }
    }
}

Test(num, seconds_texts)
{
    static const struct {
        int64_t ns;
        int decimals;
        const char *want;
    } rows[] = {
        {0, 2, "0.00"},
        {12340000000, 2, "12.34"},
        {12345000000, 2, "12.35"}, /* half away from zero */
        {12344999999, 2, "12.34"},
        {-12345000000, 2, "-12.35"},
        {-12344999999, 2, "-12.34"},
        {999999999, 2, "1.00"},
        {994999999, 2, "0.99"},
        {499999999, 0, "0"},
        {500000000, 0, "1"},
        {-500000000, 0, "-1"},
        {-1, 2, "0.00"}, /* no negative nothing */
        {1, 9, "0.000000001"},
        {123456789, 9, "0.123456789"},
        {123456785, 8, "0.12345679"},
        {1000000000, 3, "1.000"},
        {INT64_MAX, 9, "9223372036.854775807"},
        {INT64_MIN, 9, "-9223372036.854775808"},
        {INT64_MAX, 0, "9223372037"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[32];
        cr_assert_str_eq(num_seconds_text(text, sizeof(text), rows[i].ns, rows[i].decimals), rows[i].want, "row %zu '%s'", i,
                         text);
    }
}

Test(num, texts_stay_in_their_room)
{
    char text[8] = "zzzzzzz";
    cr_assert_str_eq(num_duration_text(text, 4, 125 * CLOCK_MIN), "2h5");
    cr_assert_eq(text[4], 'z');
    num_size_text(text, 0, 5);
    cr_assert_str_eq(text, "2h5");
}

Test(num, the_locale_does_not_matter)
{
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && setlocale(LC_ALL, "C.UTF-8") == NULL) {
        fprintf(stderr, "no other locale here\n");
    }
    char text[32];
    int64_t ns = 0;
    cr_assert_str_eq(num_seconds_text(text, sizeof(text), 12340000000, 2), "12.34");
    cr_assert_eq(num_parse_duration("1.5s", &ns), 0);
    cr_assert_eq(num_parse_duration("1,5s", &ns), -ERR_INVAL);
}

Test(num, checked_addition)
{
    static const struct {
        int64_t a;
        int64_t b;
        int rc;
        int64_t want;
    } rows[] = {
        {1, 2, 0, 3},
        {INT64_MAX, 0, 0, INT64_MAX},
        {INT64_MAX, 1, -ERR_RANGE, 0},
        {INT64_MIN, -1, -ERR_RANGE, 0},
        {INT64_MIN, INT64_MAX, 0, -1},
        {INT64_MIN, INT64_MIN, -ERR_RANGE, 0},
        {INT64_MIN, 0, 0, INT64_MIN},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t v = UNTOUCHED;
        cr_assert_eq(num_add_i64(rows[i].a, rows[i].b, &v), rows[i].rc, "row %zu", i);
        cr_assert_eq(v, rows[i].rc == 0 ? rows[i].want : UNTOUCHED);
    }
}

Test(num, checked_multiplication)
{
    static const struct {
        int64_t a;
        int64_t b;
        int rc;
        int64_t want;
    } rows[] = {
        {6, 7, 0, 42},
        {-6, 7, 0, -42},
        {-6, -7, 0, 42},
        {0, INT64_MIN, 0, 0},
        {INT64_MIN, 0, 0, 0},
        {INT64_MIN, 1, 0, INT64_MIN},
        {1, INT64_MIN, 0, INT64_MIN},
        {INT64_MIN, -1, -ERR_RANGE, 0},
        {-1, INT64_MIN, -ERR_RANGE, 0},
        {INT64_MAX, -1, 0, -INT64_MAX},
        {INT64_C(3037000500), INT64_C(3037000500), -ERR_RANGE, 0},
        {INT64_C(3037000499), INT64_C(3037000499), 0, INT64_C(9223372030926249001)},
        {INT64_C(4294967296), INT64_C(-2147483648), 0, INT64_MIN},
        {INT64_C(4294967296), INT64_C(2147483648), -ERR_RANGE, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t v = UNTOUCHED;
        cr_assert_eq(num_mul_i64(rows[i].a, rows[i].b, &v), rows[i].rc, "row %zu", i);
        cr_assert_eq(v, rows[i].rc == 0 ? rows[i].want : UNTOUCHED, "row %zu", i);
    }
}

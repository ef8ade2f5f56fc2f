/* jobs_test.c: job-count expressions: what is read, what is refused, and the points of a host. */
#include "common/jobs.h"

#include "common/err.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

struct accepted {
    const char *text;
    int kind;
    int32_t first, last, step;
    int64_t ppm;
};

Test(jobs, accepts_the_language)
{
    static const struct accepted table[] = {
        {"none", JOBS_ITEM_NONE, 0, 0, 0, 0},
        {"max", JOBS_ITEM_MAX, 0, 0, 0, 0},
        {"1", JOBS_ITEM_RANGE, 1, 1, 1, 0},
        {"4096", JOBS_ITEM_RANGE, 4096, 4096, 1, 0},
        {"1..20", JOBS_ITEM_RANGE, 1, 20, 1, 0},
        {"2..16/2", JOBS_ITEM_RANGE, 2, 16, 2, 0},
        {"3..3", JOBS_ITEM_RANGE, 3, 3, 1, 0},
        {"1..4096/4096", JOBS_ITEM_RANGE, 1, 4096, 4096, 0},
        {"50%", JOBS_ITEM_SHARE, 0, 0, 0, 500000},
        {"12.5%", JOBS_ITEM_SHARE, 0, 0, 0, 125000},
        {"1000%", JOBS_ITEM_SHARE, 0, 0, 0, 10000000},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct jobs_item item;
        const char *why = NULL;
        cr_assert(jobs_parse(table[i].text, &item, &why) == 0, "%s: %s", table[i].text, why);
        cr_expect((int)item.kind == table[i].kind, "%s", table[i].text);
        cr_expect(item.first == table[i].first && item.last == table[i].last &&
                      item.step == table[i].step,
                  "%s", table[i].text);
        cr_expect(item.share_ppm == table[i].ppm, "%s", table[i].text);
    }
}

Test(jobs, refuses_the_rest)
{
    static const struct {
        const char *text;
        int code;
    } table[] = {
        {"0", ERR_RANGE},
        {"-3", ERR_RANGE},
        {"1..", ERR_INVAL},
        {"..4", ERR_INVAL},
        {"..", ERR_INVAL},
        {"5..1", ERR_INVAL},
        {"1..1000000", ERR_RANGE},
        {"08", ERR_INVAL},
        {"1e3", ERR_INVAL},
        {"+2", ERR_INVAL},
        {"", ERR_INVAL},
        {" 4", ERR_INVAL},
        {"4 ", ERR_INVAL},
        {"4097", ERR_RANGE},
        {"65536", ERR_RANGE},
        {"4294967298", ERR_RANGE},
        {"18446744073709551618", ERR_RANGE},
        {"2.0", ERR_INVAL},
        {"4x", ERR_INVAL},
        {"None", ERR_INVAL},
        {"0..4", ERR_RANGE},
        {"1..0", ERR_RANGE},
        {"1..08", ERR_INVAL},
        {"2..16/", ERR_INVAL},
        {"2..16/0", ERR_RANGE},
        {"2..16/4097", ERR_RANGE},
        {"1...4", ERR_INVAL},
        {"0%", ERR_RANGE},
        {"-5%", ERR_INVAL},
        {"%", ERR_INVAL},
        {"1000.5%", ERR_RANGE},
        {"5%%", ERR_INVAL},
        {"50% ", ERR_INVAL},
        {"0x10", ERR_INVAL},
        {"ncpu", ERR_INVAL},
        {"1111111111111111111111111111111111111111111111111111111111111111111111", ERR_INVAL},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct jobs_item item;
        const char *why = "";
        int rc = jobs_parse(table[i].text, &item, &why);
        cr_expect(rc == -table[i].code, "`%s` gave %d (%s)", table[i].text, rc, why);
        cr_expect(why[0] != '\0', "`%s` is refused without a reason", table[i].text);
    }
}

/* The points of a text like "none 1..4 50%" on a host. */
static int points_of(const char *words, int64_t cpus_milli, int32_t *points, size_t room)
{
    struct jobs_item items[16];
    size_t n = 0;
    char copy[256];
    snprintf(copy, sizeof(copy), "%s", words);
    char *save = NULL;
    for (char *w = strtok_r(copy, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save)) {
        const char *why;
        cr_assert(jobs_parse(w, &items[n], &why) == 0, "%s: %s", w, why);
        n++;
    }
    return jobs_points(items, n, cpus_milli, points, room);
}

Test(jobs, makes_the_points_of_a_host)
{
    static const struct {
        const char *words;
        int64_t cpus_milli;
        const char *points;
    } table[] = {
        {"max none 4 2", 4000, "none 2 4 max"},
        {"8 1..4 2..3", 4000, "1 2 3 4 8"},
        {"none none max max", 1000, "none max"},
        {"2..16/4", 4000, "2 6 10 14"},
        {"50% 100% 150%", 4000, "2 4 6"},
        {"50% 100% 150%", 3000, "2 3 5"},
        {"50% 100%", 1000, "1"},
        {"100%", 1500, "2"},
        {"50%", 1500, "1"},
        {"100%", 1, "1"},
        {"100%", 0, "1"},
        {"1%", 48000, "1"},
        {"1000%", 48000, "480"},
        {"1000%", INT64_C(9000000000000000000), "4096"},
        {"100% 4", 4000, "4"},
        {"4095..4096", 4000, "4095 4096"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        int32_t points[64];
        int n = points_of(table[i].words, table[i].cpus_milli, points, ARRAY_LEN(points));
        char text[512] = "";
        for (int k = 0; k < n; k++) {
            char one[16];
            size_t len = strlen(text);
            snprintf(text + len, sizeof(text) - len, "%s%s", k == 0 ? "" : " ",
                     jobs_text(one, sizeof(one), points[k]));
        }
        cr_expect_str_eq(text, table[i].points, "%s on %lld: %s", table[i].words,
                         (long long)table[i].cpus_milli, text);
    }
}

Test(jobs, says_when_the_room_is_too_small)
{
    int32_t points[3];
    cr_expect(points_of("1..3", 1000, points, 3) == 3);
    cr_expect(points_of("1..4", 1000, points, 3) == -ERR_LIMIT);
    cr_expect(points_of("1..3 max", 1000, points, 3) == -ERR_LIMIT);
    int32_t all[4098];
    cr_expect(points_of("none 1..4096 max", 1000, all, ARRAY_LEN(all)) == 4098);
}

Test(jobs, texts_and_flags)
{
    static const struct {
        int32_t jobs;
        const char *text;
        const char *flag;
    } table[] = {{JOBS_NONE, "none", ""},
                 {JOBS_MAX, "max", "-j"},
                 {1, "1", "-j1"},
                 {4096, "4096", "-j4096"}};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char dst[16];
        int32_t back = 77;
        cr_expect_str_eq(jobs_text(dst, sizeof(dst), table[i].jobs), table[i].text);
        cr_expect_str_eq(jobs_flag(dst, sizeof(dst), table[i].jobs), table[i].flag);
        cr_expect(jobs_from_text(table[i].text, &back) == 0 && back == table[i].jobs);
    }
    int32_t jobs;
    cr_expect(jobs_from_text("0", &jobs) == -ERR_INVAL);
    cr_expect(jobs_from_text("-1", &jobs) == -ERR_INVAL);
    cr_expect(jobs_from_text("1..2", &jobs) == -ERR_INVAL);
    cr_expect(jobs_from_text("4097", &jobs) == -ERR_INVAL);
}

/* out_test.c: tables, bars and spans. */
#include "common/buf.h"
#include "common/clock.h"
#include "coordinator/ctl/out.h"

#include <criterion/criterion.h>
#include <string.h>

Test(out, columns_are_as_wide_as_their_widest_cell)
{
    static const char *const HEADINGS[] = {"host", ">cpus", "does"};
    struct out_table *t = out_table_new(HEADINGS, 3);
    struct buf out = BUF_INIT;

    out_cell(t, "b\xc3\xbc" "cher");
    out_cellf(t, "%d", 4);
    out_cell(t, NULL);
    out_cell(t, "p6");
    out_cell(t, "48000");
    out_cell(t, "a\x1b[31m");
    out_table_print(t, &out);
    cr_expect_str_eq(buf_str(&out), "host     cpus  does\n"
                                    "b\xc3\xbc" "cher      4  -\n"
                                    "p6      48000  a\\x1b[31m\n");
    buf_fini(&out);
    out_table_free(&t);
}

Test(out, bars)
{
    static const struct {
        int64_t done, all;
        const char *text;
    } CASES[] = {{0, 10, "[          ]"}, {5, 10, "[=====>    ]"}, {10, 10, "[==========]"}, {99, 10, "[==========]"},
                 {0, 0, "[          ]"},  {-1, 10, "[          ]"}, {1, 0, "[          ]"}};

    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct buf out = BUF_INIT;

        out_bar(&out, CASES[i].done, CASES[i].all, 10);
        if (CASES[i].all > 0 || CASES[i].done <= 0)
            cr_expect_str_eq(buf_str(&out), CASES[i].text);
        cr_expect_eq(out.len, 12);
        buf_fini(&out);
    }
}

Test(out, spans_and_times)
{
    char t[32];

    cr_expect_str_eq(out_span(t, sizeof t, -1), "-");
    cr_expect_str_eq(out_span(t, sizeof t, 12 * CLOCK_SEC), "12 s");
    cr_expect_str_eq(out_span(t, sizeof t, 200 * CLOCK_SEC), "3 m 20 s");
    cr_expect_str_eq(out_span(t, sizeof t, 2 * CLOCK_HOUR + 5 * CLOCK_MIN), "2 h 05 m");
    cr_expect_str_eq(out_span(t, sizeof t, 3 * CLOCK_DAY + CLOCK_HOUR), "3 d 01 h");
    cr_expect_str_eq(out_time(t, sizeof t, 0), "-");
    cr_expect_str_eq(out_time(t, sizeof t, INT64_C(1764524405) * CLOCK_SEC), "2025-11-30 17:40:05");
}

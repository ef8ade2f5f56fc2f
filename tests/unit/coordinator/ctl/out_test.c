/* out_test.c: tables, bars, spans, and how a sweep's progress is told. */
#include "common/buf.h"
#include "common/clock.h"
#include "common/json.h"
#include "coordinator/ctl/ctl.h"
#include "coordinator/ctl/out.h"
#include "coordinator/ctl/progress.h"

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

static json_t *status(const char *text)
{
    json_t *doc = json_parse("test", text, strlen(text), NULL);

    cr_assert_not_null(doc);
    return doc;
}

Test(progress, a_line_says_how_far_it_is_and_what_each_host_does)
{
    json_t *doc = status("{\"sweep\": \"vm/3\", \"state\": \"active\", \"wanted\": 18, \"have\": 12, \"failed\": 1, \"eta_ns\": 200000000000,"
                         "\"hosts\": [{\"host\": \"p6\", \"finished\": false, \"now\": [{\"variant\": \"pre\", \"jobs\": \"4\", \"phase\": \"run\","
                         "\"age_ns\": 12000000000}]}, {\"host\": \"q\", \"finished\": true}]}");
    struct buf out = BUF_INIT;

    progress_line(doc, &out);
    cr_expect_str_eq(buf_str(&out), "vm/3: active, 12 of 18 runs, 1 failed, about 3 m 20 s left; p6: (pre) -j4 run, 12 s; q: finished\n");
    buf_reset(&out);
    cr_expect_eq(progress_picture(doc, 60, &out), 3);
    for (const char *p = buf_str(&out); *p != '\0'; p += strcspn(p, "\n") + 1)
        cr_expect_lt(strcspn(p, "\n"), 70);
    buf_fini(&out);
    json_decref(doc);
}

static int exit_of(const char *text)
{
    json_t *doc = status(text);
    int exit = progress_exit(doc);

    json_decref(doc);
    return exit;
}

Test(progress, the_exit_status_is_the_first_that_holds)
{
    cr_expect_eq(exit_of("{\"state\": \"done\", \"hosts\": [], \"cells\": [{\"failed\": 0}]}"), CTL_DONE);
    cr_expect_eq(exit_of("{\"state\": \"done\", \"hosts\": [], \"cells\": [{\"failed\": 2}]}"), CTL_NO);
    cr_expect_eq(exit_of("{\"state\": \"done\", \"hosts\": [], \"cells\": [{\"failed\": 0, \"state\": \"setup failed\"}]}"), CTL_NO);
    cr_expect_eq(exit_of("{\"state\": \"cancelled\", \"hosts\": [], \"cells\": [{\"failed\": 0}]}"), CTL_UNDECIDED);
    cr_expect_eq(exit_of("{\"state\": \"active\", \"hosts\": [], \"cells\": []}"), CTL_UNDECIDED);
    cr_expect_eq(exit_of("{\"state\": \"done\", \"hosts\": [{\"no_data\": 1}], \"cells\": [{\"failed\": 0}]}"), CTL_INFRASTRUCTURE);
    cr_expect_eq(exit_of("{\"state\": \"done\", \"hosts\": [{\"no_data\": 1}], \"cells\": [{\"failed\": 1}]}"), CTL_NO);
}

Test(progress, statuses_join_by_rank)
{
    static const int BY_RANK[] = {CTL_USAGE, CTL_NO, CTL_INFRASTRUCTURE, CTL_UNDECIDED, CTL_DONE};

    for (size_t i = 0; i < ARRAY_LEN(BY_RANK); i++)
        for (size_t k = 0; k < ARRAY_LEN(BY_RANK); k++)
            cr_expect_eq(ctl_exit_join(BY_RANK[i], BY_RANK[k]), BY_RANK[i < k ? i : k]);
}

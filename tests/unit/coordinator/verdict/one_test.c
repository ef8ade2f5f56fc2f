/* one_test.c: one attempt as people and as programs read it. */
#include "coordinator/verdict/one.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/json.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct opt_i64 ABSENT = {.has = false};

static struct opt_i64 is(int64_t v)
{
    return (struct opt_i64){.has = true, .v = v};
}

static const struct model_attempt ATTEMPT = {.run = 17,
                                             .attempt = 2,
                                             .outcome = OUTCOME_FAILED,
                                             .phase = PHASE_MEASURE,
                                             .ending = ENDING_EXIT,
                                             .exit_status = {.has = true, .v = 2},
                                             .text = "run exited with status 2",
                                             .jobs = 4,
                                             .real_ns = {.has = true, .v = INT64_C(93774000000)},
                                             .user_ns = {.has = true, .v = INT64_C(412300000)},
                                             .observer_ns = {.has = true, .v = 38000},
                                             .max_rss_bytes = {.has = true, .v = 3 * 1024 * 1024},
                                             .minor_faults = {.has = true, .v = 1234567},
                                             .boot_id = "boot-1",
                                             .worker_version = "0.1"};
static const struct model_run RUN = {.id = 17, .block = 3, .slot = 5};
static const struct model_mark MARK = {.run = 17, .attempt = 2, .mark = MARK_CLOCK_STEP, .invalid = true, .text = "by 3600 s"};
static const struct model_attempt_fact FACT = {.run = 17, .attempt = 2, .key = "objects", .value = "6"};
static const struct model_point POINTS[] = {{.at_ns = INT64_C(1000000000), .what = 1, .value = INT64_C(2500000000)},
                                            {.at_ns = INT64_C(1000000000), .what = 7, .value = 64 * 1024 * 1024},
                                            {.at_ns = INT64_C(1000000000), .what = 3, .value = 2},
                                            {.at_ns = 500000000, .what = 31, .value = 9}};

/* The two bytes of an é lie in two pieces; a byte that is no UTF-8; a gap. */
static const struct one_output OUTPUTS[] = {
    {.phase = PHASE_MEASURE, .offset = 0, .total = 100, .bytes = (const uint8_t *)"cc \xC3", .n = 4},
    {.phase = PHASE_MEASURE, .offset = 4, .total = 100, .bytes = (const uint8_t *)"\xA9.c\n\xFF", .n = 5},
    {.phase = PHASE_MEASURE, .offset = 94, .total = 100, .bytes = (const uint8_t *)"error\n", .n = 6},
    {.phase = PHASE_CHECK, .offset = 0, .total = 3, .bytes = (const uint8_t *)"ok\n", .n = 3},
};

static struct one sample(void)
{
    return (struct one){.sweep = "vm",
                        .number = 3,
                        .workload = "kernel",
                        .host = "p6",
                        .variant = "b",
                        .attempt = {.row = &ATTEMPT, .run = &RUN, .marks = &MARK, .mark_count = 1, .facts = &FACT, .fact_count = 1},
                        .points = POINTS,
                        .point_count = ARRAY_LEN(POINTS),
                        .outputs = OUTPUTS,
                        .output_count = ARRAY_LEN(OUTPUTS)};
}

static void has(const struct buf *text, const char *part)
{
    cr_expect_not_null(strstr(buf_str(text), part), "%s is missing in:\n%s", part, buf_str(text));
}

Test(verdict_one, people_read_times_in_seconds_and_sizes_in_their_units)
{
    struct one one = sample();
    struct buf out = BUF_INIT;

    cr_assert_eq(one_render(&one, "table", &out, NULL), 0);
    cr_expect_eq(strncmp(buf_str(&out), "vm/3, run 17, attempt 2\nworkload              kernel\nhost                  p6\nvariant               b\n", 78), 0, "%s",
                 buf_str(&out));
    has(&out, "\noutcome               failed\n");
    has(&out, "\nreal                  93.774 s\n");
    has(&out, "\nuser                  412.300 ms\n");
    has(&out, "\nsys                   -\n");
    has(&out, "\nobserver CPU          0.038 ms\n");
    has(&out, "\nlargest process       3 MiB\n");
    has(&out, "\nminor faults          1234567\n");
    has(&out, "\nsample                at 1.000 s: cpu-busy 2.500 s\n");
    has(&out, "\nsample                at 1.000 s: memory-available 64 MiB\n");
    has(&out, "\nsample                at 1.000 s: runnable 2 threads\n");
    has(&out, "\nsample                at 500.000 ms: instrument 31 9\n");
    has(&out, "\ninvalid by            clock-step: by 3600 s\n");
    has(&out, "\nfact                  objects=6\n");
    cr_expect_null(strstr(buf_str(&out), " ns"), "nobody reads nanoseconds:\n%s", buf_str(&out));
    buf_fini(&out);
}

Test(verdict_one, a_time_is_a_second_from_a_second_on)
{
    static const struct {
        int64_t ns;
        const char *line;
    } rows[] = {{0, "real                  0.000 ms\n"},
                {INT64_C(999999999), "real                  1000.000 ms\n"},
                {INT64_C(1000000000), "real                  1.000 s\n"},
                {INT64_C(7265332000000), "real                  7265.332 s\n"}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct model_attempt a = ATTEMPT;
        struct one one = sample();
        struct buf out = BUF_INIT;

        a.real_ns = is(rows[i].ns);
        a.user_ns = ABSENT;
        one.attempt.row = &a;
        cr_assert_eq(one_render(&one, "table", &out, NULL), 0);
        has(&out, rows[i].line);
        has(&out, "user                  -\n");
        buf_fini(&out);
    }
}

Test(verdict_one, output_stands_as_it_came_and_says_what_was_left_out)
{
    struct one one = sample();
    struct buf out = BUF_INIT;

    cr_assert_eq(one_render(&one, "table", &out, NULL), 0);
    has(&out, "\n--- output of run, 100 bytes ---\ncc \xC3\xA9.c\n\xFF\n--- 85 bytes left out ---\nerror\n\n--- output of check, 3 bytes ---\nok\n");
    buf_fini(&out);
}

Test(verdict_one, json_keeps_nanoseconds_and_is_utf_8)
{
    struct one one = sample();
    struct buf out = BUF_INIT;
    json_t *doc, *attempt, *outputs, *samples;

    cr_assert_eq(one_render(&one, "json", &out, NULL), 0);
    cr_assert(out.len > 0 && out.data[out.len - 1] == '\n', "a document is whole lines");
    doc = json_parse("one", buf_str(&out), out.len, NULL);
    cr_assert_not_null(doc, "%s", buf_str(&out));
    cr_expect_eq(json_int(doc, "schema", 0), 1);
    cr_expect_str_eq(json_str(doc, "sweep", ""), "vm");
    cr_expect_str_eq(json_str(doc, "workload", ""), "kernel");
    cr_expect_str_eq(json_str(doc, "host", ""), "p6");
    cr_expect_str_eq(json_str(doc, "variant", ""), "b");
    cr_expect_str_eq(json_str(doc, "jobs", ""), "4");
    cr_expect_eq(json_int(doc, "number", 0), 3);
    attempt = json_object_get(doc, "attempt");
    cr_expect_eq(json_int(attempt, "real_ns", 0), INT64_C(93774000000));
    cr_expect_null(json_object_get(attempt, "sys_ns"), "absent is not 0");
    cr_expect_eq(json_int(attempt, "slot", 0), 5);
    samples = json_object_get(doc, "samples");
    cr_assert_eq(json_array_size(samples), ARRAY_LEN(POINTS));
    cr_expect_str_eq(json_str(json_array_get(samples, 0), "instrument", ""), "cpu-busy");
    cr_expect_eq(json_int(json_array_get(samples, 0), "value", 0), INT64_C(2500000000));
    cr_expect_str_eq(json_str(json_array_get(samples, 0), "unit", ""), "ns");
    outputs = json_object_get(doc, "output");
    cr_assert_eq(json_array_size(outputs), 3, "pieces that follow on each other are one");
    cr_expect_str_eq(json_str(json_array_get(outputs, 0), "text", ""), "cc \xC3\xA9.c\n\xEF\xBF\xBD");
    cr_expect_str_eq(json_str(json_array_get(outputs, 0), "phase", ""), "run");
    cr_expect_eq(json_int(json_array_get(outputs, 0), "total", 0), 100);
    cr_expect_eq(json_int(json_array_get(outputs, 1), "offset", 0), 94);
    cr_expect_str_eq(json_str(json_array_get(outputs, 2), "text", ""), "ok\n");
    json_decref(doc);
    buf_fini(&out);
}

Test(verdict_one, other_formats_are_refused)
{
    static const char *const others[] = {"csv", "mail", "markdown", "", "TABLE"};
    struct one one = sample();

    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct diag *diag = diag_new(2);
        struct buf out = BUF_INIT;

        cr_expect_eq(one_render(&one, others[i], &out, diag), -ERR_INVAL);
        cr_expect_not_null(strstr(diag_first(diag), "table or json"));
        cr_expect_eq(out.len, 0);
        buf_fini(&out);
        diag_free(&diag);
    }
}

/* report_test.c: a small sweep's rows become the numbers and the text that a person reads. Run from the tree's root: golden files are read by relative path. */
#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "coordinator/verdict/report.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)

static const char *const CLASSES[] = {"p6", "small"};

struct sample {
    struct model_host host;
    struct model_sweep_host sweep_host;
    struct model_workload workload;
    struct model_variant variants[2];
    struct model_input inputs[2];
    struct model_cell cells[8];
    struct model_run runs[40];
    struct model_attempt attempts[40];
    struct model_mark marks[8];
    struct model_attempt_fact facts[8];
    struct model_retraction retraction;
    struct model_sweep_data data;
};

/* One run with one attempt. real_ms 0: no times. */
static void add_run(struct sample *s, int64_t cell, bool warmup, enum outcome outcome, int64_t real_ms, int64_t user_ms, int64_t sys_ms,
                    const char *text)
{
    size_t i = s->data.run_count++;
    struct model_run *r = &s->runs[i];
    struct model_attempt *a = &s->attempts[i];

    r->id = 100 + (int64_t)i;
    r->sweep = 1;
    r->host = 7;
    r->cell = cell;
    r->slot = (int64_t)i;
    r->warmup = warmup;
    r->state = RUN_DONE;
    r->attempts = 1;
    r->counted = outcome == OUTCOME_OK && !warmup ? 1 : 0;
    a->run = r->id;
    a->attempt = 1;
    a->cell = cell;
    a->outcome = outcome;
    a->reported = outcome;
    a->phase = outcome == OUTCOME_OK ? PHASE_CHECK : PHASE_MEASURE;
    a->ending = ENDING_EXIT;
    a->exit_status = (struct opt_i64){.has = true, .v = outcome == OUTCOME_OK ? 0 : 2};
    a->text = text;
    a->warmup = warmup;
    if (real_ms > 0) {
        a->real_ns = (struct opt_i64){.has = true, .v = real_ms * MS};
        a->user_ns = (struct opt_i64){.has = true, .v = user_ms * MS};
        a->sys_ns = (struct opt_i64){.has = true, .v = sys_ms * MS};
    }
    a->cpu_way = CPU_WAY_CGROUP1;
    a->begin_wall_ns = INT64_C(1700000000000000000) + (int64_t)i * 1000 * MS;
    a->end_wall_ns = a->begin_wall_ns + real_ms * MS;
    a->boot_id = "boot-1";
    a->visit = 1;
    a->jobs = s->cells[cell - 1].jobs;
    a->worker_version = "0.1.0";
    a->whole = true;
    s->data.attempt_count++;
}

static struct sample *make_sample(void)
{
    struct sample *s = mem_xzalloc(sizeof *s);
    static const int32_t jobs[] = {0, 1, 2, -1};

    s->host = (struct model_host){.id = 7, .name = "oldbox", .state = HOST_ACTIVE, .classes = CLASSES, .class_count = 2};
    s->sweep_host = (struct model_sweep_host){.sweep = 1, .host = 7, .selector = "class:p6"};
    s->workload = (struct model_workload){.id = 3, .sweep = 1, .index = 0, .name = "world", .run = "make $JFLAG"};
    s->variants[0] = (struct model_variant){.id = 11, .sweep = 1, .index = 0, .name = "prepatch"};
    s->variants[1] = (struct model_variant){.id = 12, .sweep = 1, .index = 1, .name = "commit-3"};
    s->inputs[0] = (struct model_input){.workload = 3, .variant = 11, .commit = "8f3c1d2", .tree = "", .subject = "", .expr = ""};
    s->inputs[1] = (struct model_input){.workload = 3, .variant = 12, .commit = "51be0aa", .tree = "", .subject = "", .expr = ""};
    for (size_t i = 0; i < 8; i++)
        s->cells[i] = (struct model_cell){.id = (int64_t)i + 1,
                                          .sweep = 1,
                                          .host = 7,
                                          .workload = 3,
                                          .variant = i % 2 == 0 ? 11 : 12,
                                          .jobs = jobs[i / 2],
                                          .state = CELL_OPEN};
    s->data.sweep = (struct model_sweep){.id = 1, .name = "vm-locking", .number = 3, .state = SWEEP_DONE, .seed = 42, .base = "prepatch"};
    s->data.sweep_hosts = &s->sweep_host;
    s->data.sweep_host_count = 1;
    s->data.hosts = &s->host;
    s->data.host_count = 1;
    s->data.workloads = &s->workload;
    s->data.workload_count = 1;
    s->data.variants = s->variants;
    s->data.variant_count = 2;
    s->data.inputs = s->inputs;
    s->data.input_count = 2;
    s->data.cells = s->cells;
    s->data.cell_count = 8;
    s->data.runs = s->runs;
    s->data.attempts = s->attempts;
    s->data.marks = s->marks;
    s->data.facts = s->facts;
    s->data.retractions = &s->retraction;
    return s;
}

/* The sample that the golden files show: a warm-up, clean runs, a flaky cell, an invalid attempt, marks, facts, a skipped cell. */
static struct sample *make_full_sample(void)
{
    struct sample *s = make_sample();

    add_run(s, 1, true, OUTCOME_OK, 99000, 90000, 1000, NULL);
    add_run(s, 1, false, OUTCOME_OK, 10000, 9000, 900, NULL);
    add_run(s, 1, false, OUTCOME_OK, 10200, 9100, 950, NULL);
    add_run(s, 1, false, OUTCOME_OK, 10100, 9050, 925, NULL);
    add_run(s, 2, false, OUTCOME_OK, 9000, 8000, 700, NULL);
    add_run(s, 3, false, OUTCOME_OK, 11000, 9500, 1000, NULL);
    add_run(s, 5, false, OUTCOME_OK, 6000, 9500, 1000, NULL);
    add_run(s, 5, false, OUTCOME_FAILED, 3000, 1000, 100, "run exited with status 2; its last line: b: missing \"x\"");
    add_run(s, 6, false, OUTCOME_INVALID, 5500, 9000, 900, NULL);
    add_run(s, 7, false, OUTCOME_OK, 5800, 9700, 1500, NULL);
    s->marks[0] = (struct model_mark){.run = 101, .attempt = 1, .mark = MARK_SURVIVORS, .text = "1 process: sleep (4711)"};
    s->marks[1] = (struct model_mark){.run = 102, .attempt = 1, .mark = MARK_SURVIVORS, .text = "1 process: sleep (4715)"};
    s->marks[2] = (struct model_mark){.run = 108, .attempt = 1, .mark = MARK_CLOCK_STEP, .invalid = true, .text = "by 3600 s"};
    s->data.mark_count = 3;
    s->facts[0] = (struct model_attempt_fact){.run = 101, .attempt = 1, .key = "objects", .value = "6"};
    s->facts[1] = (struct model_attempt_fact){.run = 104, .attempt = 1, .key = "objects", .value = "4"};
    s->data.fact_count = 2;
    s->cells[7].state = CELL_SKIPPED;
    s->cells[7].reason = "150 jobs of 40 MB do not fit 64 MB";
    return s;
}

static void render(const struct sample *s, const char *format, struct buf *out)
{
    struct mem_arena *arena = mem_arena_new(0);
    struct report report;

    cr_assert_eq(report_build(arena, &s->data, &report), 0);
    cr_assert_eq(report_render(&report, format, out, NULL), 0);
    mem_arena_free(&arena);
}

/* Compares with tests/golden/report/NAME; with UPDATE_GOLDEN in the environment writes it instead and fails, so that nobody takes that for a passed test. */
static void check_golden(const char *format, const char *name)
{
    struct sample *s = make_full_sample();
    struct buf out = BUF_INIT;
    char path[256];
    char want[65536];
    size_t n;
    FILE *f;

    render(s, format, &out);
    snprintf(path, sizeof path, "tests/golden/report/%s", name);
    if (getenv("UPDATE_GOLDEN") != NULL) {
        f = fopen(path, "w");
        cr_assert(f != NULL && fwrite(out.data, 1, out.len, f) == out.len && fclose(f) == 0);
        cr_assert_fail("%s was written", path);
    }
    f = fopen(path, "r");
    cr_assert(f != NULL, "%s is missing", path);
    n = fread(want, 1, sizeof want - 1, f);
    want[n] = '\0';
    fclose(f);
    cr_expect_str_eq(buf_str(&out), want, "%s differs; it is now:\n%s", path, buf_str(&out));
    buf_fini(&out);
    free(s);
}

Test(report, table_is_the_golden_one)
{
    check_golden("table", "table.txt");
}

Test(report, mail_is_the_golden_one)
{
    check_golden("mail", "mail.txt");
}

Test(report, csv_is_the_golden_one)
{
    check_golden("csv", "attempts.csv");
}

Test(report, markdown_is_the_golden_one)
{
    check_golden("markdown", "table.md");
}

Test(report, json_is_the_golden_one)
{
    check_golden("json", "report.json");
}

Test(report, numbers_of_a_cell)
{
    struct sample *s = make_full_sample();
    struct mem_arena *arena = mem_arena_new(0);
    struct report r;

    cr_assert_eq(report_build(arena, &s->data, &r), 0);
    cr_assert_eq(r.cell_count, 8);
    cr_expect_eq(r.cells[0].real.n, 3, "the warm-up of 99 s is in no number");
    cr_expect_float_eq(r.cells[0].real.mean, 10.1, 1e-12);
    cr_expect_float_eq(r.cells[0].real.sd, 0.1, 1e-12);
    cr_expect_float_eq(r.cells[0].real.median, 10.1, 1e-12);
    cr_expect_float_eq(r.cells[0].cpu, 100 * (27.15 + 2.775) / 30.3, 1e-9, "the ratio of the sums");
    cr_expect_eq(r.cells[4].real.n, 1, "the failed attempt enters no mean");
    cr_expect(r.cells[4].flaky);
    cr_expect_not(r.cells[4].real.has_sd, "one value has no spread");
    cr_expect_eq(r.cells[5].real.n, 0);
    cr_expect_eq(r.cells[5].invalid, 1);
    cr_expect_not(r.cells[5].has_user, "absent is not 0");
    cr_expect_not(r.provisional, "the sweep has ended");
    cr_expect_eq(r.planned, 9);
    cr_expect_eq(r.done, 7);
    mem_arena_free(&arena);
    free(s);
}

Test(report, a_warm_up_that_did_not_succeed_is_said)
{
    struct sample *s = make_full_sample();
    struct mem_arena *arena = mem_arena_new(0);
    struct report r;

    for (size_t i = 0; i < s->data.run_count; i++) {
        if (s->runs[i].warmup)
            s->attempts[i].outcome = OUTCOME_FAILED;
    }
    cr_assert_eq(report_build(arena, &s->data, &r), 0);
    cr_assert(r.line_count > 0);
    cr_expect_str_eq(r.lines[0].kind, "warm-up");
    cr_expect_str_eq(r.lines[0].text, "1 throw-away attempt (1 not ok), in no number");
    mem_arena_free(&arena);
    free(s);
}

Test(report, counts_runs_that_are_still_to_be_drawn)
{
    struct sample *s = make_full_sample();
    struct mem_arena *arena = mem_arena_new(0);
    struct report r;

    s->sweep_host.until_runs = 5;
    s->cells[7].state = CELL_SKIPPED;
    cr_assert_eq(report_build(arena, &s->data, &r), 0);
    cr_expect_eq(r.cells[0].planned, 5);
    cr_expect_eq(r.planned, 7 * 5, "a skipped cell gets nothing");
    cr_expect_eq(r.done, 7);
    mem_arena_free(&arena);
    free(s);
}

Test(report, none_stands_before_1_and_max_behind_all_numbers)
{
    struct sample *s = make_full_sample();
    struct mem_arena *arena = mem_arena_new(0);
    struct report r;
    static const int32_t want[] = {0, 0, 1, 1, 2, 2, -1, -1};

    cr_assert_eq(report_build(arena, &s->data, &r), 0);
    for (size_t i = 0; i < 8; i++)
        cr_expect_eq(r.cells[i].cell->jobs, want[i]);
    mem_arena_free(&arena);
    free(s);
}

Test(report, replaced_and_retracted_runs_count_nothing)
{
    struct sample *s = make_full_sample();
    struct mem_arena *arena = mem_arena_new(0);
    struct report r;

    s->runs[1].state = RUN_REPLACED;
    s->retraction = (struct model_retraction){.id = 1, .sweep = 1, .cell = 1, .run = 102, .attempt = 1, .because = "wrong kernel"};
    s->data.retraction_count = 1;
    cr_assert_eq(report_build(arena, &s->data, &r), 0);
    cr_expect_eq(r.cells[0].real.n, 1);
    cr_expect_float_eq(r.cells[0].real.mean, 10.1, 1e-12);
    mem_arena_free(&arena);
    free(s);
}

Test(report, an_attempt_without_its_run_is_a_damaged_store)
{
    struct sample *s = make_full_sample();
    struct mem_arena *arena = mem_arena_new(0);
    struct report r;

    s->attempts[3].run = 9999;
    cr_expect_eq(report_build(arena, &s->data, &r), -ERR_CORRUPT);
    mem_arena_free(&arena);
    free(s);
}

Test(report, a_full_arena_is_an_error)
{
    struct sample *s = make_full_sample();

    for (size_t cap = 64; cap < 8192; cap += 64) {
        struct mem_arena *arena = mem_arena_new(cap);
        struct report r;
        int err = report_build(arena, &s->data, &r);

        cr_expect(err == 0 || err == -ERR_LIMIT, "cap %zu gave %d", cap, err);
        mem_arena_free(&arena);
    }
    free(s);
}

Test(report, an_empty_sweep_has_a_report_in_every_format)
{
    struct sample *s = make_sample();

    s->data.cell_count = 0;
    for (size_t i = 0; report_formats()[i] != NULL; i++) {
        struct buf out = BUF_INIT;

        render(s, report_formats()[i], &out);
        cr_expect_gt(out.len, 0);
        buf_fini(&out);
    }
    free(s);
}

Test(report, an_unknown_format_names_the_nearest)
{
    struct sample *s = make_sample();
    struct mem_arena *arena = mem_arena_new(0);
    struct diag *diag = diag_new(4);
    struct buf out = BUF_INIT;
    struct report r;

    cr_assert_eq(report_build(arena, &s->data, &r), 0);
    cr_expect_eq(report_render(&r, "tabel", &out, diag), -ERR_INVAL);
    cr_expect(strstr(diag_first(diag), "did you mean table?") != NULL, "%s", diag_first(diag));
    cr_expect_eq(out.len, 0);
    diag_free(&diag);
    mem_arena_free(&arena);
    free(s);
}

/* No line is longer than 72 columns or ends in a blank. */
static void expect_narrow(const char *p)
{
    char line[512];

    while (*p != '\0') {
        size_t n = strcspn(p, "\n");

        cr_assert_lt(n, sizeof line);
        memcpy(line, p, n);
        line[n] = '\0';
        cr_expect_leq(str_columns(line), 72, "%s", line);
        cr_expect(n == 0 || line[n - 1] != ' ', "a line ends in a blank: \"%s\"", line);
        p += n + (p[n] == '\n');
    }
}

Test(report, no_line_of_a_mail_is_longer_than_72_columns)
{
    struct sample *s = make_full_sample();
    struct buf out = BUF_INIT;

    s->host.name = "a-host-with-a-very-long-name-indeed-that-does-not-fit-anywhere-64";
    s->variants[0].name = "4bsd,8f3c1d2a9b7c,a-variant-of-many-axes-\xc3\xa4\xc3\xb6\xc3\xbc-and-more";
    s->attempts[7].text = "run exited with status 2; its last line: "
                          "/a/path/without/any/space/that/is/longer/than/a/line/of/a/mail/and/goes/on/and/on/and/on.c:1:1: error";
    render(s, "mail", &out);
    expect_narrow(buf_str(&out));
    buf_fini(&out);
    free(s);
}

Test(report, a_mail_is_narrow_with_many_marks_and_a_long_name)
{
    static const size_t names[] = {0, 4, 10, 11, 30};
    struct sample *s = make_full_sample();
    struct buf out = BUF_INIT;
    char name[64];

    s->data.sweep.name = "a-sweep-with-a-name-of-64-characters-that-is-as-long-as-it-may-be";
    s->data.sweep.state = SWEEP_ACTIVE;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        memset(name, 'v', sizeof name);
        name[names[i] + 1] = '\0';
        s->variants[0].name = name;
        for (size_t n = 1; n <= 8; n++) {
            const char *sentence;

            for (size_t k = 0; k < n; k++)
                s->marks[k] = (struct model_mark){.run = 101, .attempt = 1, .mark = (enum mark)(k + 1), .text = "x"};
            s->data.mark_count = n;
            buf_reset(&out);
            render(s, "mail", &out);
            expect_narrow(buf_str(&out));
            sentence = strstr(buf_str(&out), "\n[1] ");
            cr_assert_not_null(sentence);
            for (size_t k = 1; k <= n; k++) { /* each footnote is named in the table above it */
                char in_list[8];
                const char *at;

                snprintf(in_list, sizeof in_list, "%c%zu%c", k == 1 ? '[' : ',', k, k == n ? ']' : ',');
                at = strstr(buf_str(&out), in_list);
                cr_expect(at != NULL && at < sentence, "%s is not in:\n%s", in_list, buf_str(&out));
            }
        }
    }
    buf_fini(&out);
    free(s);
}

/* Names may hold commas. */
Test(report, each_row_of_the_csv_has_the_heading_s_fields)
{
    struct sample *s = make_full_sample();
    struct buf out = BUF_INIT;
    size_t fields = 0;

    s->data.sweep.name = "vm,locking";
    s->host.name = "old,box";
    s->workload.name = "world,all";
    s->variants[0].name = "4bsd,8f3c1d2";
    s->attempts[7].text = "quoted \"text\", and\r\nmore";
    render(s, "csv", &out);
    for (const char *p = buf_str(&out); *p != '\0';) {
        size_t n = 1;
        bool quoted = false;

        for (; *p != '\0' && (quoted || *p != '\n'); p++) {
            quoted = quoted != (*p == '"');
            n += !quoted && *p == ',';
        }
        cr_expect(!quoted);
        cr_expect(fields == 0 || n == fields, "%zu fields and not %zu", n, fields);
        fields = fields == 0 ? n : fields;
        p += *p == '\n';
    }
    cr_expect(strstr(buf_str(&out), "\n\"vm,locking/3\",\"world,all\",\"old,box\",") != NULL, "%s", buf_str(&out));
    cr_expect(strstr(buf_str(&out), "\"quoted \"\"text\"\", and\r\nmore\"") != NULL, "%s", buf_str(&out));
    buf_fini(&out);
    free(s);
}

Test(report, times_beyond_what_a_sum_holds_make_no_negative_mean)
{
    struct sample *s = make_full_sample();
    struct mem_arena *arena = mem_arena_new(0);
    struct report r;

    for (size_t i = 1; i <= 3; i++) {
        s->attempts[i].real_ns.v = INT64_MAX;
        s->attempts[i].user_ns.v = INT64_MAX;
        s->attempts[i].sys_ns.v = INT64_MAX;
    }
    cr_assert_eq(report_build(arena, &s->data, &r), 0);
    cr_expect_float_eq(r.cells[0].real.mean, (double)INT64_MAX / 1e9, 1);
    cr_expect_float_eq(r.cells[0].user, (double)INT64_MAX / 1e9, 1);
    cr_expect_float_eq(r.cells[0].cpu, 200, 1e-6);
    mem_arena_free(&arena);
    free(s);
}

Test(report, a_name_is_no_markup)
{
    struct sample *s = make_full_sample();
    struct buf out = BUF_INIT;

    s->data.sweep.name = "_vm_";
    s->attempts[7].text = "a &lt; b";
    render(s, "markdown", &out);
    cr_expect(strncmp(buf_str(&out), "**\\_vm\\_/3", 10) == 0, "%s", buf_str(&out));
    cr_expect(strstr(buf_str(&out), "a \\&lt; b") != NULL, "%s", buf_str(&out));
    buf_fini(&out);
    free(s);
}

Test(report, text_of_a_build_cannot_break_a_table)
{
    struct sample *s = make_full_sample();
    struct buf out = BUF_INIT;

    s->attempts[7].text = "\x1b[31mred\nnew line | pipe";
    render(s, "table", &out);
    cr_expect(strchr(buf_str(&out), '\x1b') == NULL, "an escape sequence reached the terminal");
    cr_expect(strstr(buf_str(&out), "red\\nnew line") != NULL, "%s", buf_str(&out));
    buf_reset(&out);
    render(s, "markdown", &out);
    cr_expect(strstr(buf_str(&out), "\\| pipe") != NULL, "%s", buf_str(&out));
    buf_fini(&out);
    free(s);
}

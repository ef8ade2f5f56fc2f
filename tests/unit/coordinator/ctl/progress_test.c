/* progress_test.c: a sweep's status as lines, bars and an exit status. */
#include "coordinator/ctl/progress.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/str.h"
#include "coordinator/ctl/ctl.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static json_t *parse(const char *text)
{
    json_t *doc = json_parse("test", text, strlen(text), NULL);
    cr_assert_not_null(doc, "%s", text);
    return doc;
}

static const char RUNNING[] =
    "{\"sweep\": \"vm/3\", \"state\": \"active\", \"have\": 12, \"wanted\": 18, \"failed\": 1,"
    " \"eta_ns\": 200000000000, \"hosts\": ["
    " {\"host\": \"p6\", \"have\": 5, \"wanted\": 9, \"failed\": 1,"
    "  \"warmups_have\": 2, \"warmups_wanted\": 3, \"eta_ns\": 200000000000, \"now\": ["
    "  {\"variant\": \"prepatch\", \"jobs\": \"4\", \"phase\": \"run\", \"age_ns\": 12000000000}]},"
    " {\"host\": \"quad\", \"have\": 7, \"wanted\": 9, \"wait\": {\"for\": \"its link\","
    "  \"owner\": \"quad\", \"age_ns\": 3000000000}},"
    " {\"host\": \"many\", \"finished\": true, \"have\": 9, \"wanted\": 9},"
    " {\"host\": \"old\", \"skipped\": \"too small\"}], \"cells\": []}";

Test(ctl_progress, a_line_says_how_the_sweep_stands_and_what_each_host_does)
{
    json_t *status = parse(RUNNING);
    struct buf out = BUF_INIT;
    progress_line(status, &out);
    cr_expect_str_eq(buf_str(&out),
                     "vm/3: active, 13 of 18 runs, 1 failed, 2 of 3 warm-ups, about 3 m 20 s left; "
                     "p6: (prepatch) -j4 run, 12 s; quad: waits for its link (quad) since 3 s; "
                     "many: finished; old: skipped: too small\n");
    buf_fini(&out);
    json_decref(status);
}

Test(ctl_progress, a_picture_has_a_line_a_host_within_the_width)
{
    json_t *status = parse(RUNNING);
    for (size_t width = 40; width <= 120; width += 40) {
        struct buf out = BUF_INIT;
        size_t lines = 0;
        cr_expect_eq(progress_picture(status, width, &out), 5);
        const char *p = buf_str(&out);
        for (const char *end; (end = strchr(p, '\n')) != NULL; p = end + 1, lines++) {
            cr_expect(lines == 0 || (size_t)(end - p) < width, "%zu: %s", width, p);
        }
        cr_expect_eq(lines, 5);
        buf_fini(&out);
    }
    json_decref(status);
}

/* The line of a host in the picture, without its name. */
static void host_line(const char *members, char *dst, size_t room)
{
    char text[512];
    snprintf(text, sizeof(text), "{\"sweep\": \"t/1\", \"state\": \"active\", \"hosts\": [{\"host\": \"a\", %s}]}",
             members);
    json_t *status = parse(text);
    struct buf out = BUF_INIT;
    cr_assert_eq(progress_picture(status, 200, &out), 2);
    const char *line = strchr(buf_str(&out), '\n') + 1;
    cr_assert_eq(strncmp(line, "a ", 2), 0, "%s", line);
    snprintf(dst, room, "%.*s", (int)strcspn(line + 2, "\n"), line + 2);
    buf_fini(&out);
    json_decref(status);
}

Test(ctl_progress, bar_and_numbers_count_the_same_runs_and_warm_ups_stand_beside)
{
    char line[256];
    host_line("\"have\": 0, \"wanted\": 12, \"warmups_have\": 4, \"warmups_wanted\": 4", line, sizeof(line));
    cr_expect_str_eq(line, "[                        ] 0/12, 4 of 4 warm-ups, waits");
    host_line("\"have\": 5, \"wanted\": 12, \"failed\": 1, \"warmups_have\": 0, \"warmups_wanted\": 1", line,
              sizeof(line));
    cr_expect_str_eq(line, "[============>           ] 6/12, 1 failed, 0 of 1 warm-up, waits");
    host_line("\"have\": 12, \"wanted\": 12, \"finished\": true", line, sizeof(line));
    cr_expect_str_eq(line, "[========================] 12/12, finished");
}

Test(ctl_progress, the_bars_of_all_hosts_begin_in_one_column)
{
    json_t *status = parse("{\"hosts\": [{\"host\": \"a\"}, {\"host\": \"quad-core-box\"}]}");
    struct buf out = BUF_INIT;
    cr_assert_eq(progress_picture(status, 80, &out), 3);
    const char *first = strchr(buf_str(&out), '\n') + 1;
    const char *second = strchr(first, '\n') + 1;
    cr_expect_eq(strcspn(first, "["), strlen("quad-core-box "));
    cr_expect_eq(strcspn(second, "["), strlen("quad-core-box "));
    buf_fini(&out);
    json_decref(status);
}

Test(ctl_progress, text_of_others_cannot_write_to_the_terminal)
{
    json_t *status = parse("{\"sweep\": \"t/1\", \"state\": \"active\", \"hosts\": [{\"host\":"
                           " \"p6\", \"now\": [{\"variant\": \"a\\u001b[2J\", \"jobs\": \"max\","
                           " \"phase\": \"settle\", \"age_ns\": 1, \"text\": \"\\u0007\"}]}]}");
    struct buf out = BUF_INIT;
    progress_line(status, &out);
    progress_picture(status, 80, &out);
    for (const char *p = buf_str(&out); *p != '\0'; p++) {
        cr_expect(*p == '\n' || (unsigned char)*p >= 0x20);
    }
    cr_expect_not_null(strstr(buf_str(&out), "-j settle"));
    buf_fini(&out);
    json_decref(status);
}

Test(ctl_progress, the_exit_status_tells_what_is_missing)
{
    static const struct {
        const char *status;
        int exit;
    } rows[] = {
        {"{\"state\": \"done\", \"hosts\": [{\"no_data\": 0}], \"cells\": [{\"failed\": 0}]}",
         CTL_DONE},
        {"{\"state\": \"done\", \"hosts\": [], \"cells\": [{\"failed\": 1}]}", CTL_NO},
        {"{\"state\": \"done\", \"hosts\": [], \"cells\": [{\"state\": \"setup failed\"}]}",
         CTL_NO},
        {"{\"state\": \"done\", \"hosts\": [{\"no_data\": 2}], \"cells\": []}",
         CTL_INFRASTRUCTURE},
        {"{\"state\": \"cancelled\", \"hosts\": [], \"cells\": []}", CTL_UNDECIDED},
        {"{\"state\": \"done\", \"hosts\": [{\"over_budget\": 4}], \"cells\": []}",
         CTL_UNDECIDED},
        {"{\"state\": \"active\", \"hosts\": [], \"cells\": []}", CTL_UNDECIDED},
        /* When several hold: 1 before 3 before 2. */
        {"{\"state\": \"done\", \"hosts\": [{\"no_data\": 2}], \"cells\": [{\"failed\": 1}]}",
         CTL_NO},
        {"{\"state\": \"cancelled\", \"hosts\": [{\"no_data\": 2}], \"cells\": []}",
         CTL_INFRASTRUCTURE},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        json_t *status = parse(rows[i].status);
        cr_expect_eq(progress_exit(status), rows[i].exit, "%s", rows[i].status);
        json_decref(status);
    }
}

Test(ctl_progress, statuses_join_by_rank)
{
    static const int BY_RANK[] = {CTL_USAGE, CTL_NO, CTL_INFRASTRUCTURE, CTL_UNDECIDED, CTL_DONE};

    for (size_t i = 0; i < ARRAY_LEN(BY_RANK); i++)
        for (size_t k = 0; k < ARRAY_LEN(BY_RANK); k++)
            cr_expect_eq(ctl_exit_join(BY_RANK[i], BY_RANK[k]), BY_RANK[i < k ? i : k]);
}

Test(ctl_progress, says_why_a_sweep_is_in_its_state_and_why_a_host_is_lost)
{
    json_t *status = parse("{\"sweep\": \"vm/3\", \"state\": \"paused\", \"have\": 1, \"wanted\": 2,"
                           " \"because\": \"paused by ann: the disk is changed\", \"hosts\": ["
                           " {\"host\": \"p6\", \"have\": 1, \"wanted\": 2, \"finished\": true,"
                           "  \"no_data\": 1, \"lost\": \"the host was revoked\"}], \"cells\": []}");
    struct buf out = BUF_INIT;
    progress_line(status, &out);
    cr_expect_str_eq(buf_str(&out),
                     "vm/3: paused, 1 of 2 runs, paused by ann: the disk is changed; p6: lost: the "
                     "host was revoked\n");
    buf_reset(&out);
    cr_expect_eq(progress_picture(status, 80, &out), 3);
    cr_expect_not_null(strstr(buf_str(&out), "\npaused by ann: the disk is changed\n"), "%s",
                       buf_str(&out));
    cr_expect_not_null(strstr(buf_str(&out), "lost: the host was revoked\n"), "%s", buf_str(&out));
    buf_reset(&out);
    cr_expect_eq(progress_picture(status, 19, &out), 3);
    cr_expect_not_null(strstr(buf_str(&out), "\npaused by ann: the\n"), "cut: %s", buf_str(&out));
    buf_fini(&out);
    json_decref(status);
}

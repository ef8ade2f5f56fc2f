/* progress_test.c: a sweep's status as lines, bars and an exit status. */
#include "coordinator/ctl/progress.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/str.h"
#include "coordinator/ctl/ctl.h"

#include <criterion/criterion.h>
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
    " {\"host\": \"p6\", \"have\": 5, \"wanted\": 9, \"eta_ns\": 200000000000, \"now\": ["
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
                     "vm/3: active, 12 of 18 runs, 1 failed, about 3 m 20 s left; "
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
    cr_expect_eq(ctl_exit_join(CTL_USAGE, CTL_NO), CTL_USAGE);
    cr_expect_eq(ctl_exit_join(CTL_DONE, CTL_UNDECIDED), CTL_UNDECIDED);
}

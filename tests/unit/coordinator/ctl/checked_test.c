/* checked_test.c: the line about a sweep file that is in order. */
#include "coordinator/ctl/checked.h"

#include "common/attr.h"
#include "common/buf.h"

#include <criterion/criterion.h>
#include <string.h>

Test(ctl_checked, a_line_says_what_the_file_holds)
{
    static const struct {
        const char *doc;
        const char *line;
    } rows[] = {
        {"{\"workloads\": 1, \"variants\": 2, \"cells\": 8, \"runs\": 24, \"warmups\": 8, \"hosts\": [{\"host\": \"p6\", \"skipped\": null}]}",
         "a.yaml: no mistakes: 2 variants on 1 host, 8 cells: 24 runs and 8 warm-ups\n"},
        {"{\"workloads\": 2, \"variants\": 1, \"cells\": 1, \"runs\": 1, \"warmups\": 1, \"skipped_cells\": 3,"
         " \"hosts\": [{\"skipped\": null}, {\"skipped\": \"too small\"}, {\"skipped\": null}]}",
         "a.yaml: no mistakes: 2 workloads, 1 variant on 2 hosts (1 more skipped), 1 cell (3 more skipped): 1 run and 1 warm-up\n"},
        {"{\"workloads\": 1, \"variants\": 1, \"cells\": 2, \"runs\": 6, \"warmups\": 0, \"hosts\": [{\"skipped\": null}]}",
         "a.yaml: no mistakes: 1 variant on 1 host, 2 cells: 6 runs\n"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        json_t *doc = json_parse("test", rows[i].doc, strlen(rows[i].doc), NULL);
        struct buf out = BUF_INIT;

        cr_assert_not_null(doc);
        checked_line("a.yaml", doc, &out);
        cr_expect_str_eq(buf_str(&out), rows[i].line);
        buf_fini(&out);
        json_decref(doc);
    }
}

Test(ctl_checked, the_name_of_the_file_cannot_write_to_the_terminal)
{
    json_t *doc = json_parse("test", "{}", 2, NULL);
    struct buf out = BUF_INIT;

    checked_line("a\x1b[2J", doc, &out);
    cr_expect_null(strchr(buf_str(&out), 0x1b));
    cr_expect_not_null(strstr(buf_str(&out), "0 variants on 0 hosts"));
    buf_fini(&out);
    json_decref(doc);
}

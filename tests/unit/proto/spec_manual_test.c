/* spec_manual_test.c: the manual page and the reader agree: its examples are read, and every
 * setting has its paragraph. Runs in the tree's root. */
#include "proto/spec.h"

#include "proto/spec_int.h"
#include "tests/unit/proto/spec_help.h"

#include <stdlib.h>

static void read_page(struct buf *out)
{
    char part[4096];
    FILE *f = fopen("deploy/man/makespan-sweep.5", "r");
    cr_assert_not_null(f, "run in the tree's root");
    for (size_t n = fread(part, 1, sizeof(part), f); n > 0; n = fread(part, 1, sizeof(part), f)) {
        buf_add(out, part, n);
    }
    fclose(f);
}

Test(spec_manual, its_examples_are_sweeps_without_a_warning)
{
    static const char begin[] = ".Bd -literal -offset indent\n";
    struct buf page = BUF_INIT;
    read_page(&page);
    size_t examples = 0;
    for (const char *p = strstr(buf_str(&page), begin); p != NULL; p = strstr(p, begin)) {
        struct buf text = BUF_INIT;
        p += strlen(begin);
        const char *end = strstr(p, ".Ed\n");
        cr_assert_not_null(end);
        buf_add(&text, p, (size_t)(end - p));
        if (strncmp(p, "sweep:", 6) == 0) {
            HELP_EXPECT_MESSAGES(buf_str(&text), "");
            examples++;
        }
        buf_fini(&text);
    }
    cr_expect(examples == 2, "%zu examples", examples);
    buf_fini(&page);
}

Test(spec_manual, has_a_paragraph_for_every_key)
{
    static const char *const others[] = {
        "sweep", "params",  "workloads",   "workload", "system", "variants", "axes",
        "base",  "compare", "hosts",       "per",      "source", "setup",    "reset",
        "run",   "check",   "fingerprint", "git",      "dir",    "archive",  "host_dir",
        "rev",   "dirty",   "name",        "kernel",   "env",    "storage",  "install",
        "boot",  "expect",  "build",       "build_on", "warmup", "until",    "policy",
        "looks", "budget"};
    struct buf page = BUF_INIT;
    read_page(&page);
    for (size_t i = 0; spec_setting_word(i) != NULL || i < ARRAY_LEN(others); i++) {
        const char *words[2] = {spec_setting_word(i), i < ARRAY_LEN(others) ? others[i] : NULL};
        for (size_t k = 0; k < ARRAY_LEN(words); k++) {
            char item[64];
            snprintf(item, sizeof(item), "\n.It Cm %s :", words[k] != NULL ? words[k] : "sweep");
            cr_expect_not_null(strstr(buf_str(&page), item), "no paragraph `%s`", item + 1);
        }
    }
    buf_fini(&page);
}

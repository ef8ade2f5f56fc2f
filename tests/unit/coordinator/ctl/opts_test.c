/* opts_test.c: options and arguments of a command, and what is said of wrong ones; every command of the table has a usage. */
#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "coordinator/ctl/cmds.h"
#include "coordinator/ctl/opts.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct opts_row ROWS[] = {{"set", 's', "NAME=VALUE", "x"}, {"wait", 'w', NULL, "x"}, {"format", 'f', "FORMAT", "x"}};

static int parse(int argc, const char *const *argv, struct opts *out, const char **args, struct diag *diag)
{
    return opts_parse(ROWS, ARRAY_LEN(ROWS), argc, (char **)(uintptr_t)argv, args, out, diag);
}

Test(opts, every_way_to_write_a_value)
{
    const char *argv[] = {"--set", "a=1", "file", "--set=b=2", "-s", "c=3", "-sd=4", "-w", "--", "--wait", "-"};
    const char *args[11];
    struct opts o;

    cr_assert_eq(parse(11, argv, &o, args, NULL), 0);
    cr_expect_str_eq(opts_nth(&o, "set", 0), "a=1");
    cr_expect_str_eq(opts_nth(&o, "set", 1), "b=2");
    cr_expect_str_eq(opts_nth(&o, "set", 2), "c=3");
    cr_expect_str_eq(opts_nth(&o, "set", 3), "d=4");
    cr_expect(opts_nth(&o, "set", 4) == NULL);
    cr_expect_str_eq(opts_get(&o, "set"), "d=4", "the last one holds");
    cr_expect(opts_has(&o, "wait"));
    cr_expect_not(opts_has(&o, "format"));
    cr_expect(opts_get(&o, "format") == NULL);
    cr_assert_eq(o.arg_count, 3);
    cr_expect_str_eq(o.args[0], "file");
    cr_expect_str_eq(o.args[1], "--wait", "behind -- nothing is an option");
    cr_expect_str_eq(o.args[2], "-", "a hyphen alone is an argument");
}

static void expect_error(const char *word, const char *text)
{
    const char *argv[] = {word};
    const char *args[1];
    struct diag *diag = diag_new(4);
    struct opts o;

    cr_expect_eq(parse(1, argv, &o, args, diag), -ERR_INVAL, "%s", word);
    cr_expect(strstr(diag_first(diag), text) != NULL, "%s: %s", word, diag_first(diag));
    diag_free(&diag);
}

Test(opts, what_is_wrong_is_said)
{
    expect_error("--fromat=json", "did you mean --format?");
    expect_error("--nothing-like-it", "unknown option --nothing-like-it");
    expect_error("-x", "unknown option -x");
    expect_error("--wait=yes", "--wait takes no value");
    expect_error("--set", "--set needs NAME=VALUE");
    expect_error("-s", "--set needs NAME=VALUE");
}

Test(opts, commands_are_found_and_wrong_ones_named)
{
    struct diag *diag = diag_new(8);
    int words = 0;
    char *run[] = {(char *)(uintptr_t) "sweep", (char *)(uintptr_t) "run", (char *)(uintptr_t) "f"};
    char *nosuch[] = {(char *)(uintptr_t) "sweep", (char *)(uintptr_t) "rnu"};
    char *noun[] = {(char *)(uintptr_t) "swep"};
    const struct cmd *cmd = cmds_find(3, run, &words, diag);

    cr_assert_not_null(cmd);
    cr_expect_str_eq(cmd->verb, "run");
    cr_expect_eq(words, 2);
    cr_expect_null(cmds_find(2, nosuch, &words, diag));
    cr_expect(strstr(diag_first(diag), "did you mean run?") != NULL, "%s", diag_first(diag));
    diag_clear(diag);
    cr_expect_null(cmds_find(1, noun, &words, diag));
    cr_expect(strstr(diag_first(diag), "did you mean sweep?") != NULL, "%s", diag_first(diag));
    diag_clear(diag);
    cr_expect_null(cmds_find(0, NULL, &words, diag));
    cr_expect_gt(diag_errors(diag), 0);
    diag_free(&diag);
}

Test(opts, every_command_has_its_usage_within_the_limits)
{
    size_t n;
    const struct cmd *all = cmds_all(&n);

    cr_assert_gt(n, 20);
    for (size_t i = 0; i < n; i++) {
        struct buf text = BUF_INIT;

        cmds_usage(&all[i], &text);
        cr_expect(strstr(buf_str(&text), all[i].help) != NULL);
        cr_expect_leq(all[i].row_count, OPTS_MAX_ROWS);
        cr_expect_leq(all[i].min_args, all[i].max_args);
        for (size_t k = 0; k < all[i].row_count; k++)
            cr_expect(strstr(buf_str(&text), all[i].rows[k].name) != NULL);
        buf_fini(&text);
    }
}

/* manual_test.c: the commands, their manual page and their completions say the same; the examples
 * are sweeps. Runs in the tree's root. */
#include "common/buf.h"
#include "common/diag.h"
#include "common/fileio.h"
#include "common/json.h"
#include "coordinator/ctl/cmds.h"
#include "proto/spec.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static void read_file(const char *path, struct buf *out)
{
    cr_assert_eq(file_read_all(path, 1 << 20, out), 0, "%s: run in the tree's root", path);
}

/* "sweep run" */
static const char *name_of(const struct cmd *cmd, char *dst, size_t room)
{
    snprintf(dst, room, "%s%s%s", cmd->noun, cmd->verb[0] != '\0' ? " " : "", cmd->verb);
    return dst;
}

/* The paragraph of a command in the page: from its heading to the next command's. */
static void paragraph(const struct buf *page, const struct cmd *cmd, struct buf *out)
{
    char name[64], heading[128];
    snprintf(heading, sizeof(heading), "\n.It Ic %s%s%s\n", name_of(cmd, name, sizeof(name)),
             cmd->args[0] != '\0' ? " Ar " : "", cmd->args);
    const char *at = strstr(buf_str(page), heading);
    cr_assert_not_null(at, "no paragraph%s", heading);
    at += strlen(heading);
    const char *end = strstr(at, "\n.It Ic ");
    buf_add(out, at, end != NULL ? (size_t)(end - at) : strlen(at));
}

Test(ctl_manual, every_command_and_option_has_its_paragraph)
{
    struct buf page = BUF_INIT;
    size_t n;
    const struct cmd *all = cmds_all(&n);
    read_file("deploy/man/makespan.1", &page);
    cr_expect_not_null(strstr(buf_str(&page), ".Fl -coordinator Ar host:port"));
    for (size_t i = 0; i < n; i++) {
        struct buf text = BUF_INIT;
        char name[64];
        size_t items = 0;
        size_t options = 0;
        name_of(&all[i], name, sizeof(name));
        paragraph(&page, &all[i], &text);
        for (size_t k = 0; k < all[i].row_count; k++) {
            const struct opts_row *row = &all[i].rows[k];
            char item[128];
            if (strcmp(row->name, "coordinator") == 0) {
                continue; /* said once for all */
            }
            options++;
            if (row->letter != 0) {
                snprintf(item, sizeof(item), ".It Fl %c , Fl -%s%s", row->letter, row->name,
                         row->arg != NULL ? " Ar " : "\n");
            } else {
                snprintf(item, sizeof(item), ".It Fl -%s%s", row->name,
                         row->arg != NULL ? " Ar " : "\n");
            }
            cr_expect_not_null(strstr(buf_str(&text), item), "%s: %s", name, item);
        }
        for (const char *p = buf_str(&text); (p = strstr(p, ".It Fl ")) != NULL; p++) {
            items++;
        }
        cr_expect_eq(items, options, "%s: an option that there is not", name);
        buf_fini(&text);
    }
    for (const char *p = buf_str(&page); (p = strstr(p, "\n.It Ic ")) != NULL; p++) {
        n--;
    }
    cr_expect_eq(n, 0, "a command that there is not");
    buf_fini(&page);
}

/* The options that makespan.bash has for a command: the line after the pattern that names it. */
static void bash_options(const struct buf *script, const char *name, char *dst, size_t room)
{
    char quoted[80];
    const char *at;
    snprintf(quoted, sizeof(quoted), "\"%s\"", name);
    at = strstr(buf_str(script), strchr(name, ' ') != NULL ? quoted : name);
    snprintf(quoted, sizeof(quoted), "\n    %s) echo \"", name);
    if (strchr(name, ' ') == NULL) {
        at = strstr(buf_str(script), quoted);
    }
    if (at == NULL) {
        at = strstr(buf_str(script), "\n    *) echo \"");
    }
    cr_assert_not_null(at);
    at = strstr(at, "echo \"");
    cr_assert_not_null(at);
    at += strlen("echo \"");
    snprintf(dst, room, "%.*s ", (int)strcspn(at, "\""), at);
}

Test(ctl_manual, the_completions_know_every_command_and_option)
{
    struct buf bash = BUF_INIT;
    struct buf zsh = BUF_INIT;
    size_t n;
    const struct cmd *all = cmds_all(&n);
    read_file("deploy/completions/makespan.bash", &bash);
    read_file("deploy/completions/_makespan", &zsh);
    for (size_t i = 0; i < n; i++) {
        char name[64], has[256];
        size_t words = 0;
        name_of(&all[i], name, sizeof(name));
        const char *word = all[i].verb[0] != '\0' ? all[i].verb : all[i].noun;
        cr_expect_not_null(strstr(buf_str(&zsh), word), "zsh: %s", name);
        cr_expect_not_null(strstr(buf_str(&bash), word), "bash: %s", name);
        bash_options(&bash, name, has, sizeof(has));
        for (size_t k = 0; k < all[i].row_count; k++) {
            char option[64];
            snprintf(option, sizeof(option), "--%s ", all[i].rows[k].name);
            cr_expect_not_null(strstr(has, option), "bash: %s: %s not in %s", name, option, has);
            option[strlen(option) - 1] = '\0';
            cr_expect_not_null(strstr(buf_str(&zsh), option), "zsh: %s", option);
        }
        for (const char *p = has; (p = strstr(p, "--")) != NULL; p += 2) {
            words++;
        }
        cr_expect_eq(words, all[i].row_count, "bash: %s: %s", name, has);
    }
    buf_fini(&bash);
    buf_fini(&zsh);
}

static int check_example(const char *name, void *arg)
{
    size_t *count = arg;
    char path[FILE_PATH_MAX];
    struct buf text = BUF_INIT;
    struct diag *diag = diag_new(16);
    struct spec *spec = NULL;
    snprintf(path, sizeof(path), "deploy/examples/%s", name);
    read_file(path, &text);
    if (strstr(buf_str(&text), "\nsweep:") != NULL) {
        cr_expect_eq(spec_parse(path, text.data, text.len, NULL, 0, &spec, diag), 0, "%s: %s", path,
                     diag_first(diag));
        cr_expect_eq(diag_count(diag), 0, "%s has a warning", path);
        ++*count;
    }
    spec_free(&spec);
    diag_free(&diag);
    buf_fini(&text);
    return 0;
}

Test(ctl_manual, the_examples_are_sweeps_without_a_warning)
{
    size_t count = 0;
    cr_assert_eq(file_list("deploy/examples", check_example, &count), 0);
    cr_expect_eq(count, 2);
}

Test(ctl_manual, the_sweep_in_the_readme_is_one)
{
    struct buf text = BUF_INIT;
    struct diag *diag = diag_new(16);
    struct spec *spec = NULL;
    read_file("README.md", &text);
    const char *begin = strstr(buf_str(&text), "```yaml\n");
    cr_assert_not_null(begin);
    begin += strlen("```yaml\n");
    const char *end = strstr(begin, "```");
    cr_assert_not_null(end);
    cr_expect_eq(spec_parse("README.md", begin, (size_t)(end - begin), NULL, 0, &spec, diag), 0,
                 "%s", diag_first(diag));
    cr_expect_eq(diag_count(diag), 0, "a warning");
    spec_free(&spec);
    diag_free(&diag);
    buf_fini(&text);
}

/* conf_test.c: the rows of makespand.yaml: defaults, mistakes, and that the manual page and the
 * example say the same. Runs in the tree's root. */
#include "coordinator/conf.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "tests/harness/place.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct diag *diag;
static struct coord_conf conf;
static char path[256];

static void setup(void)
{
    diag = diag_new(16);
}

static void teardown(void)
{
    coord_conf_free(&conf);
    diag_free(&diag);
    if (path[0] != '\0') {
        cr_expect_eq(file_remove(path), 0);
    }
}

TestSuite(coord_conf, .init = setup, .fini = teardown);

/* Loads a file with this text. */
static int load(const char *text)
{
    if (path[0] == '\0') {
        place_pattern(path, sizeof(path), "makespand-conf");
        int fd = mkstemp(path);
        cr_assert_geq(fd, 0);
        close(fd);
    }
    cr_assert_eq(file_write_atomic(path, text, strlen(text), 0600), 0);
    return coord_conf_load(path, &conf, diag);
}

Test(coord_conf, without_a_file_everything_has_its_default)
{
    cr_assert_eq(coord_conf_load(NULL, &conf, diag), 0);
    cr_expect_str_eq(conf.listen, ":7443");
    cr_expect_str_eq(conf.dir, "/var/lib/makespan");
    cr_expect_null(conf.log_file);
    cr_expect_eq(conf.log_level, LOG_INFO);
    cr_expect_eq(conf.beat_ns, 30 * CLOCK_SEC);
    cr_expect_eq(conf.lost_after_ns, 24 * CLOCK_HOUR);
    cr_expect_eq(conf.take_ns, CLOCK_MIN);
    cr_expect_eq(conf.handshake_ns, 10 * CLOCK_SEC);
    cr_expect_eq(conf.hello_ns, 10 * CLOCK_SEC);
    cr_expect_eq(conf.git_ns, 30 * CLOCK_MIN);
    cr_expect_eq(conf.max_connections, 20000);
    cr_expect_eq(conf.archive_max, INT64_C(16) << 30);
    cr_expect_eq(conf.disk_keep, 64 << 20);
    cr_expect(!conf.web);
}

Test(coord_conf, a_file_changes_what_it_says_and_nothing_else)
{
    cr_assert_eq(load("dir: /srv/m\nbeat: 2s\nlimits: {archive: 2GiB}\nlog: {level: debug}\n"), 0,
                 "%s", diag_first(diag));
    cr_expect_str_eq(conf.dir, "/srv/m");
    cr_expect_eq(conf.beat_ns, 2 * CLOCK_SEC);
    cr_expect_eq(conf.archive_max, INT64_C(2) << 30);
    cr_expect_eq(conf.log_level, LOG_DEBUG);
    cr_expect_str_eq(conf.listen, ":7443");
    cr_expect_eq(conf.disk_keep, 64 << 20);
}

Test(coord_conf, all_mistakes_are_told_with_their_places)
{
    struct buf said = BUF_INIT;
    cr_expect_lt(load("lissten: x\nbeat: 1ms\ndir: here\nlog: {level: loud}\n"), 0);
    diag_print(diag, &said);
    static const char *const parts[] = {":1:1: ", "did you mean `listen`?", ":2:7: ", ":3:6: ",
                                        ":4:14: "};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        cr_expect_not_null(strstr(buf_str(&said), parts[i]), "\"%s\" is not in: %s", parts[i],
                           buf_str(&said));
    }
    buf_fini(&said);
}

Test(coord_conf, what_is_not_there_yet_is_refused_not_ignored)
{
    cr_expect_eq(load("web: {enabled: yes}\n"), -ERR_NOTYET);
    cr_expect_not_null(strstr(diag_first(diag), "web.enabled: the dashboard is not yet"));
}

Test(coord_conf, a_missing_file_is_named)
{
    cr_expect_lt(coord_conf_load("/nonexistent/makespand.yaml", &conf, diag), 0);
    cr_expect_not_null(strstr(diag_first(diag), "/nonexistent/makespand.yaml"));
}

Test(coord_conf, the_manual_page_has_a_paragraph_for_every_option_and_no_other)
{
    struct buf page = BUF_INIT;
    size_t n;
    size_t items = 0;
    const struct conf_row *rows = coord_conf_rows(&n);
    cr_assert_eq(file_read_all("deploy/man/makespand.yaml.5", 1 << 20, &page), 0,
                 "run in the tree's root");
    for (size_t i = 0; i < n; i++) {
        char item[64];
        snprintf(item, sizeof(item), "\n.It Cm %s\n", rows[i].name);
        cr_expect_not_null(strstr(buf_str(&page), item), "no paragraph %s", rows[i].name);
        cr_expect_gt(strlen(rows[i].help), 10);
    }
    for (const char *p = buf_str(&page); (p = strstr(p, "\n.It Cm ")) != NULL; p++) {
        items++;
    }
    cr_expect_eq(items, n, "a paragraph of an option that there is not");
    buf_fini(&page);
}

Test(coord_conf, the_example_is_read)
{
    cr_expect_eq(coord_conf_load("deploy/examples/makespand.yaml", &conf, diag), 0, "%s",
                 diag_first(diag));
    cr_expect_eq(diag_count(diag), 0);
}

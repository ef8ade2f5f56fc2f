/* log_test.c: the form of the lines, levels, escapes, the journal, and lines that are held back. Each test is a process of its own. */
#include "common/log.h"

#include "common/clock.h"
#include "common/err.h"
#include "tests/harness/place.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The clock of this program, in place of the library's. */
static int64_t wall_ns = INT64_C(1796060443) * CLOCK_SEC;

int64_t clock_wall_ns(void)
{
    return wall_ns;
}

int64_t clock_mono_ns(void)
{
    return wall_ns;
}

int64_t clock_boot_ns(void)
{
    return wall_ns;
}

/* Standard error goes to a file without a name; read_log() gives what came since the last call. */
static int log_fd = -1;
static int64_t log_at;

static void redirect(void)
{
    char path[256];
    place_pattern(path, sizeof(path), "log_test");
    log_fd = mkstemp(path);
    cr_assert_geq(log_fd, 0);
    unlink(path);
    fflush(stderr);
    cr_assert_eq(dup2(log_fd, STDERR_FILENO), STDERR_FILENO);
}

static char *read_log(void)
{
    static char text[400000];
    ssize_t n = pread(log_fd, text, sizeof(text) - 1, (off_t)log_at);
    cr_assert_geq(n, 0);
    text[n] = '\0';
    log_at += n;
    return text;
}

static bool matches(const char *text, const char *pattern)
{
    regex_t re;
    cr_assert_eq(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
    bool found = regexec(&re, text, 0, NULL, 0) == 0;
    regfree(&re);
    return found;
}

#define STAMP "20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9][.][0-9]{3}Z "

Test(log, form_of_a_line)
{
    char pattern[200];
    redirect();
    cr_assert_eq(log_open("makespand", NULL, LOG_INFO), 0);
    log_warn("host %s is %d s away", "p6", 3);
    snprintf(pattern, sizeof(pattern), "^" STAMP "makespand\\[%ld\\] warn: host p6 is 3 s away\n$", (long)getpid());
    char *text = read_log();
    cr_assert(matches(text, pattern), "%s", text);
    log_error("e");
    cr_assert(matches(read_log(), "\\] error: e\n$"));
    log_set_node("w3");
    log_info("i");
    cr_assert(matches(read_log(), "\\] w3 info: i\n$"));
    log_set_node(NULL);
    log_close();
}

Test(log, dates_are_those_of_the_calendar)
{
    static const struct {
        int64_t ms;
        const char *want;
    } rows[] = {
        {0, "1970-01-01T00:00:00.000Z "},
        {-1, "1969-12-31T23:59:59.999Z "},
        {INT64_C(951782400000), "2000-02-29T00:00:00.000Z "},
        {INT64_C(1796060443123), "2026-11-30T17:40:43.123Z "},
        {INT64_C(4107456000000), "2100-02-28T00:00:00.000Z "},
        {INT64_C(4107542400000), "2100-03-01T00:00:00.000Z "},
    };
    redirect();
    cr_assert_eq(log_open("x", NULL, LOG_INFO), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        wall_ns = rows[i].ms * CLOCK_MS;
        log_info("x");
        char *text = read_log();
        cr_assert(strncmp(text, rows[i].want, strlen(rows[i].want)) == 0, "%s is not %s", text, rows[i].want);
    }
    for (int64_t day = -1000; day < 24000; day++) { /* 1967 to 2035, day by day */
        char want[64];
        time_t t = (time_t)(day * 86400);
        struct tm tm;
        strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%S.000Z ", gmtime_r(&t, &tm));
        wall_ns = day * CLOCK_DAY;
        log_info("x");
        char *text = read_log();
        cr_assert(strncmp(text, want, strlen(want)) == 0, "%s is not %s", text, want);
    }
}

Test(log, levels)
{
    redirect();
    cr_assert_eq(log_open("x", NULL, LOG_WARN), 0);
    cr_assert_eq(log_get_level(), LOG_WARN);
    log_info("no");
    log_debug("no");
    cr_assert_str_eq(read_log(), "");
    log_set_level(LOG_DEBUG);
    log_debug("yes");
    cr_assert(matches(read_log(), "debug: yes\n$"));
    log_set_level(LOG_ERROR);
    log_warn("no");
    cr_assert_str_eq(read_log(), "");
    log_error("yes");
    cr_assert(matches(read_log(), "error: yes\n$"));
}

Test(log, control_characters_are_escaped)
{
    redirect();
    cr_assert_eq(log_open("x", NULL, LOG_INFO), 0);
    log_info("%s", "a\nb\tc\x1b[31m\r \"q\" \\ \x7f gr\xc3\xbc\xc3\x9f \xc2\x9b \xff\xc3");
    char *text = read_log();
    const char *at = strstr(text, "info: ");
    cr_assert_str_eq(at, "info: a\\nb\\tc\\x1b[31m\\x0d \"q\" \\ \\x7f gr\xc3\xbc\xc3\x9f \\xc2\\x9b \\xff\\xc3\n");
}

Test(log, long_texts_are_cut_to_one_line)
{
    redirect();
    char big[20000];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    cr_assert_eq(log_open("x", NULL, LOG_INFO), 0);
    log_info("%s", big);
    char *text = read_log();
    cr_assert(matches(text, "^[^\n]*info: x+ \\[cut\\]\n$"));
    cr_assert_gt(strlen(text), 4000);
    memset(big, '\x01', sizeof(big) - 1);
    log_info("%s", big);
    text = read_log();
    cr_assert(matches(text, "^[^\n]*info: (\\\\x01)+[^\n]* \\[cut\\]\n$"));
    cr_assert_leq(strlen(text), 8192);
}

Test(log, under_the_journal_the_level_stands_in_front)
{
    struct stat st;
    char named[64];
    redirect();
    cr_assert_eq(fstat(STDERR_FILENO, &st), 0);
    snprintf(named, sizeof(named), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    setenv("JOURNAL_STREAM", named, 1);
    cr_assert_eq(log_open("x", NULL, LOG_DEBUG), 0);
    log_error("a");
    log_warn("b");
    log_info("c");
    log_debug("d");
    cr_assert_str_eq(read_log(), "<3>a\n<4>b\n<6>c\n<7>d\n");
    setenv("JOURNAL_STREAM", "1:2", 1);
    cr_assert_eq(log_open("x", NULL, LOG_DEBUG), 0);
    log_warn("somewhere else");
    cr_assert(matches(read_log(), "^" STAMP "x\\[[0-9]+\\] warn: somewhere else\n$"));
}

Test(log, to_a_file_that_is_appended_to)
{
    char path[256];
    place_pattern(path, sizeof(path), "log_test");
    char text[1000];
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, "before\n", 7), 7);
    cr_assert_eq(log_open("x", path, LOG_INFO), 0);
    log_info("one");
    log_close();
    cr_assert_eq(log_open("x", path, LOG_INFO), 0);
    log_info("two");
    log_close();
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    cr_assert_gt(n, 0);
    text[n] = '\0';
    cr_assert(matches(text, "^before\n[^\n]*info: one\n[^\n]*info: two\n$"), "%s", text);
    close(fd);
    unlink(path);
    cr_assert_eq(log_open("x", "/nonexistent/dir/file", LOG_INFO), -ERR_NOTFOUND);
}

Test(log, held_lines_come_at_release)
{
    redirect();
    cr_assert_eq(log_open("x", NULL, LOG_INFO), 0);
    log_info("before");
    log_hold();
    log_info("first");
    log_warn("second");
    cr_assert(matches(read_log(), "^[^\n]*before\n$"), "nothing is written while held");
    log_release();
    cr_assert(matches(read_log(), "^[^\n]*info: first\n[^\n]*warn: second\n$"));
    log_info("after");
    cr_assert(matches(read_log(), "^[^\n]*info: after\n$"));
    log_hold();
    log_hold();
    log_info("twice held");
    log_release();
    cr_assert_str_eq(read_log(), "", "another holds it still");
    log_release();
    cr_assert(matches(read_log(), "^[^\n]*info: twice held\n$"));
    log_hold();
    log_info("kept");
    log_close();
    cr_assert(matches(read_log(), "kept\n$"), "closing loses nothing");
}

Test(log, a_line_that_would_fit_does_not_overtake_one_that_did_not)
{
    char big[4000];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    redirect();
    cr_assert_eq(log_open("x", NULL, LOG_INFO), 0);
    log_hold();
    for (int i = 0; i < 20; i++) {
        log_info("%s", big);
    }
    log_info("short");
    log_release();
    char *text = read_log();
    cr_assert_null(strstr(text, "info: short"));
    cr_assert_not_null(strstr(text, "lines of the log did not fit"));
}

Test(log, the_oldest_held_lines_win_and_the_rest_is_counted)
{
    redirect();
    cr_assert_eq(log_open("x", NULL, LOG_INFO), 0);
    log_hold();
    for (int i = 0; i < 3000; i++) {
        log_info("line %d of a text that fills the room soon enough", i);
    }
    cr_assert_str_eq(read_log(), "");
    log_release();
    char *text = read_log();
    int lines = 0;
    char want[32];
    for (char *p = text; (p = strchr(p, '\n')) != NULL; p++) {
        lines++;
    }
    lines--; /* the last one is the count */
    cr_assert(lines > 400 && lines < 3000);
    cr_assert_leq(strlen(text), 65536 + 200);
    cr_assert_not_null(strstr(text, "info: line 0 of"));
    snprintf(want, sizeof(want), "info: line %d of", lines - 1);
    cr_assert_not_null(strstr(text, want), "the oldest are whole and without a gap");
    snprintf(want, sizeof(want), "info: line %d of", lines);
    cr_assert_null(strstr(text, want));
    char count[100];
    snprintf(count, sizeof(count), "warn: %d lines of the log did not fit while it was held\n$", 3000 - lines);
    cr_assert(matches(text, count), "%s", text + strlen(text) - 200);
}

Test(log, unwritten_lines_are_counted_and_told)
{
    redirect();
    cr_assert_eq(log_open("x", NULL, LOG_INFO), 0);
    int full = open("/dev/full", O_WRONLY);
    cr_assert_geq(full, 0);
    cr_assert_eq(dup2(full, STDERR_FILENO), STDERR_FILENO);
    log_info("lost");
    log_info("lost");
    cr_assert_eq(dup2(log_fd, STDERR_FILENO), STDERR_FILENO);
    log_info("back");
    cr_assert(matches(read_log(), "^[^\n]*warn: 2 lines of the log could not be written\n[^\n]*info: back\n$"));
    log_info("again");
    cr_assert(matches(read_log(), "^[^\n]*info: again\n$"));
}

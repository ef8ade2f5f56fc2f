/* Text out of any bytes, the end of an output, complaints in it, and what limits do to a mark. */
#include "worker/run/words.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/fileio.h"
#include "common/str.h"
#include "tests/unit/worker/run/records.h"
#include "worker/os/os.h"
#include "worker/run/limits.h"
#include "worker/run/marks.h"
#include "worker/run/output.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char dir[FILE_PATH_MAX];
static struct output *output;

static void set_up(void)
{
    records_dir(dir);
}

static void tear_down(void)
{
    output_free(&output);
    cr_assert_eq(file_remove_tree(dir), 0);
}

TestSuite(words, .init = set_up, .fini = tear_down);

static void print(const void *bytes, size_t n)
{
    char path[FILE_PATH_MAX];
    struct diag *diag = diag_new(2);
    struct output_opts opts = {.path = path};

    output_free(&output);
    cr_assert_eq(file_path(path, sizeof path, dir, "out"), 0);
    cr_assert_eq(output_new(&opts, &output, diag), 0);
    cr_assert_eq(write(output_fd(output), bytes, n), (ssize_t)n);
    cr_assert_eq(output_finish(output, diag), 0);
    diag_free(&diag);
}

Test(words, copies_cleanly)
{
    char out[8];

    cr_assert_str_eq(words_copy(out, sizeof out, "short"), "short");
    cr_assert_str_eq(words_copy(out, sizeof out, "0123456789"), "0123456");
    cr_assert_str_eq(words_copy(out, sizeof out, "a\nb\x7f\x01"), "a?b??");
    cr_assert_str_eq(words_copy_lines(out, sizeof out, "a\nb\t\x01"), "a\nb\t?");
    cr_assert_str_eq(words_copy(out, sizeof out,
                                "\xff"
                                "a\xc3"),
                     "?a?");
    cr_assert_str_eq(words_copy(out, sizeof out, "012345ü"), "012345", "half a character");
    cr_assert_str_eq(words_copy(out, sizeof out, "01234ü"), "01234ü");
    cr_assert_str_eq(words_copy(out, sizeof out, "0123\xf0\x9f\x98\x80"), "0123");
    cr_assert_str_eq(words_copy(out, sizeof out, ""), "");
    /* Whatever comes, the result is UTF-8 and fits. */
    for (unsigned seed = 0; seed < 20000; seed++) {
        char in[12];

        for (size_t i = 0; i < sizeof in - 1; i++)
            in[i] = (char)((seed * 2654435761u >> (i * 2)) ^ (seed >> i));
        in[11] = '\0';
        words_copy(out, sizeof out, in);
        cr_assert(str_is_utf8(out, strlen(out)));
    }
}

Test(words, shows_the_end_of_an_output)
{
    struct buf out = BUF_INIT;

    print("one\ntwo\nthree\n", 14);
    words_tail(&out, output, 100);
    cr_assert_str_eq(buf_str(&out), "one\\ntwo\\nthree");
    buf_reset(&out);
    words_tail(&out, output, 10);
    cr_assert_str_eq(buf_str(&out), "three", "whole lines where there are any");
    print("", 0);
    buf_reset(&out);
    words_tail(&out, output, 10);
    cr_assert_str_eq(buf_str(&out), "");
    print("no newline at all", 17);
    words_tail(&out, output, 6);
    cr_assert_str_eq(buf_str(&out), "at all");
    buf_fini(&out);
}

Test(words, finds_a_needle_on_any_seam)
{
    static uint8_t big[2 * OUTPUT_PIECE];
    static const char *const needles[] = {"nothing such", "Cannot fork"};

    memset(big, '.', sizeof big);
    print(big, sizeof big);
    cr_assert_null(words_find(output, needles, 2));
    for (int shift = 0; shift <= 11; shift++) {
        memset(big, '.', sizeof big);
        memcpy(big + OUTPUT_PIECE - 11 + shift, "Cannot fork", 11);
        print(big, sizeof big);
        cr_assert_eq(words_find(output, needles, 2), needles[1], "shift %d", shift);
    }
}

/* --- limits --- */

static const char *mark(int64_t processes, int64_t files, int64_t jobs, bool root, bool failed)
{
    static struct marks marks;
    struct os_limits limits = {
        .processes = processes, .files = files, .stack = -1, .core = -1, .pids = -1, .memory = -1};
    struct limits_case c = {.limits = &limits,
                            .jobs = jobs,
                            .cpus = 4,
                            .is_root = root,
                            .failed = failed ? output : NULL};

    memset(&marks, 0, sizeof marks);
    limits_mark(&c, &marks);
    cr_assert_leq(marks.count, 1u);
    cr_assert(marks.count == 0 || !marks.list[0].invalid);
    return marks.count == 0 ? "" : marks.list[0].text;
}

Test(words, limits_are_held_against_the_job_count)
{
    cr_assert_str_eq(mark(40, 1024, 4, false, false), "");
    cr_assert_str_eq(mark(40, 1024, 5, false, false), "");
    cr_assert_eq(
        strstr(mark(40, 1024, 8, false, false), "process limit 40 of the worker's service"),
        mark(40, 1024, 8, false, false));
    cr_assert_str_eq(mark(40, 1024, 8, true, false), "", "root is not bound by it");
    cr_assert_eq(strncmp(mark(OS_NO_LIMIT, 64, 64, false, false), "file limit 64 ", 14), 0);
    cr_assert_str_eq(mark(-1, -1, 4096, false, false), "");
    cr_assert_str_eq(mark(8, 8, 0, false, false), "");
    cr_assert_neq(strlen(mark(40, 1024, -1, false, false)), 0u, "a bare -j");
}

Test(words, complaints_are_found_in_a_failed_output)
{
    static const char text[] = "sh: 1: Cannot fork\n";
    static const char files[] = "cc1: fatal: Too many open files\n";

    print(text, sizeof text - 1);
    cr_assert_str_eq(mark(40, 1024, 1, false, false), "");
    cr_assert_str_eq(mark(40, 1024, 1, false, true),
                     "process limit 40 of the worker's service: the output says “Cannot fork”");
    print(files, sizeof files - 1);
    cr_assert_str_eq(
        mark(OS_NO_LIMIT, 64, 1, false, true),
        "file limit 64 of the worker's service: the output says “Too many open files”");
    print("fine\n", 5);
    cr_assert_str_eq(mark(40, 1024, 1, false, true), "");
}

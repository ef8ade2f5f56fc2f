/* output_test.c: the output of a command: kept as head and tail, cut in the middle, seen when it
 * is shortened. */
#include "worker/run/output.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "tests/unit/worker/work.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEAD 1000
#define TAIL 300

struct paper {
    struct output *output;
    char *dir;
    char *path;
};

static void open_paper(struct paper *p, uint64_t head, uint64_t tail, bool no_holes)
{
    struct output_opts opts = {.head = head, .tail = tail, .no_holes = no_holes};

    p->dir = work_dir_new();
    p->path = work_path(p->dir, "out");
    opts.path = p->path;
    cr_assert_eq(output_new(&opts, &p->output, NULL), 0);
}

static void close_paper(struct paper *p)
{
    output_free(&p->output);
    free(p->path);
    work_dir_remove(&p->dir);
}

static void put(const struct paper *p, const char *bytes, size_t n)
{
    cr_assert_eq(write(output_fd(p->output), bytes, n), (ssize_t)n);
}

/* n bytes, each told by its place in the whole. */
static void put_numbered(const struct paper *p, uint64_t from, size_t n)
{
    static char bytes[1 << 20];

    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)('a' + (from + i) % 23);
    put(p, bytes, n);
}

/* All pieces joined; checks that offsets fit together except for one gap. */
static void gather(const struct paper *p, struct buf *out, uint64_t *gap_at, uint64_t *gap)
{
    uint64_t cursor = 0, offset, next = 0;
    const uint8_t *bytes;
    size_t n;
    int r;

    *gap_at = 0;
    *gap = 0;
    while ((r = output_piece(p->output, &cursor, &offset, &bytes, &n)) == 1) {
        cr_assert(n > 0 && n <= OUTPUT_PIECE);
        if (offset != next) {
            cr_assert_eq(*gap, 0, "one gap at most");
            *gap_at = next;
            *gap = offset - next;
        }
        next = offset + n;
        buf_add(out, bytes, n);
    }
    cr_assert_eq(r, 0);
    cr_assert_eq(next, output_total(p->output), "the last piece ends the output");
}

Test(output, nothing_printed)
{
    struct buf all = BUF_INIT;
    uint64_t at, gap;
    struct paper p;
    char line[64];

    open_paper(&p, 0, 0, false);
    cr_assert_eq(output_finish(p.output, NULL), 0);
    cr_expect_eq(output_total(p.output), 0);
    cr_expect_not(output_was_cut(p.output));
    cr_expect_not(output_was_truncated(p.output));
    gather(&p, &all, &at, &gap);
    cr_expect_eq(all.len, 0);
    output_last_line(p.output, line, sizeof(line));
    cr_expect_str_eq(line, "");
    close_paper(&p);
}

Test(output, short_output_is_kept_byte_by_byte)
{
    static const char bytes[] = "first\n\0\xff\xfe no end";
    struct buf all = BUF_INIT;
    uint64_t at, gap;
    struct paper p;
    char line[64];

    open_paper(&p, 0, 0, false);
    put(&p, bytes, sizeof(bytes) - 1);
    cr_assert_eq(output_finish(p.output, NULL), 0);
    cr_expect_eq(output_total(p.output), sizeof(bytes) - 1);
    gather(&p, &all, &at, &gap);
    cr_expect_eq(gap, 0);
    cr_assert_eq(all.len, sizeof(bytes) - 1);
    cr_expect_eq(memcmp(all.data, bytes, all.len), 0);
    output_last_line(p.output, line, sizeof(line));
    cr_expect_str_eq(line, "\\x00\\xff\\xfe no end");
    buf_fini(&all);
    close_paper(&p);
}

Test(output, at_the_limits)
{
    static const size_t size[] = {HEAD - 1,        HEAD,    HEAD + 1, HEAD + TAIL - 1, HEAD + TAIL,
                                  HEAD + TAIL + 1, 3 * HEAD};

    for (size_t i = 0; i < ARRAY_LEN(size); i++) {
        struct buf all = BUF_INIT;
        uint64_t at, gap;
        struct paper p;

        open_paper(&p, HEAD, TAIL, false);
        put_numbered(&p, 0, size[i]);
        (void)output_check(p.output);
        cr_assert_eq(output_finish(p.output, NULL), 0);
        cr_expect_eq(output_total(p.output), size[i]);
        cr_expect_eq(output_was_cut(p.output), size[i] > HEAD + TAIL);
        gather(&p, &all, &at, &gap);
        if (size[i] > HEAD + TAIL) {
            cr_expect_eq(at, HEAD);
            cr_expect_eq(gap, size[i] - HEAD - TAIL);
        } else {
            cr_expect_eq(gap, 0);
        }
        for (size_t k = 0; k < all.len; k++)
            cr_assert_eq(all.data[k], 'a' + (k < at || gap == 0 ? k : k + gap) % 23,
                         "size %zu, byte %zu", size[i], k);
        buf_fini(&all);
        close_paper(&p);
    }
}

/* 64 MB, looked at now and then: the disk keeps little of it, in both ways, and head and tail
 * are right. */
Test(output, a_flood_takes_little_room)
{
    for (int no_holes = 0; no_holes < 2; no_holes++) {
        struct buf all = BUF_INIT;
        uint64_t total = 0, at, gap, most = 0;
        struct stat st;
        struct paper p;

        open_paper(&p, HEAD, TAIL, no_holes == 1);
        for (int i = 0; i < 64; i++) {
            put_numbered(&p, total, 1 << 20);
            total += 1 << 20;
            (void)output_check(p.output);
            cr_assert_eq(stat(p.path, &st), 0);
            if ((uint64_t)st.st_blocks * 512 > most)
                most = (uint64_t)st.st_blocks * 512;
        }
        put_numbered(&p, total, 77);
        total += 77;
        cr_expect(most < (4 << 20), "%llu bytes on the disk", (unsigned long long)most);
        cr_assert_eq(output_finish(p.output, NULL), 0);
        cr_expect_eq(output_total(p.output), total);
        cr_expect(output_was_cut(p.output));
        cr_expect_not(output_was_truncated(p.output), "the worker's own cut is not the command's");
        if (no_holes == 1)
            cr_expect_not(output_is_exact(p.output));
        gather(&p, &all, &at, &gap);
        cr_expect_eq(at, HEAD);
        cr_assert_eq(all.len, HEAD + TAIL);
        for (size_t k = 0; k < all.len; k++)
            cr_assert_eq(all.data[k], 'a' + (k < HEAD ? k : k + gap) % 23, "%d: byte %zu", no_holes,
                         k);
        buf_fini(&all);
        close_paper(&p);
    }
}

Test(output, a_fast_writer_is_looked_at_more_often)
{
    struct paper p;
    int64_t idle, busy;

    open_paper(&p, HEAD, TAIL, false);
    idle = output_check(p.output);
    for (int i = 0; i < 32; i++)
        put_numbered(&p, 0, 1 << 20);
    busy = output_check(p.output);
    cr_expect_eq(idle, INT64_C(1000000000));
    cr_expect(busy < idle, "%lld", (long long)busy);
    cr_expect_geq(busy, INT64_C(50000000));
    close_paper(&p);
}

/* However quickly it is done: no look lies between. */
Test(output, a_log_that_is_truncated_by_its_writer)
{
    for (int no_holes = 0; no_holes < 2; no_holes++) {
        struct buf all = BUF_INIT;
        uint64_t at, gap;
        struct paper p;

        open_paper(&p, HEAD, TAIL, no_holes == 1);
        put(&p, "this is lost\n", 13);
        cr_assert_eq(truncate(p.path, 0), 0);
        put(&p, "this is longer than what was there before\n", 42);
        cr_assert_eq(output_finish(p.output, NULL), 0);
        cr_expect(output_was_truncated(p.output));
        cr_expect_eq(output_total(p.output), 42);
        gather(&p, &all, &at, &gap);
        cr_expect_str_eq(buf_str(&all), "this is longer than what was there before\n");
        buf_fini(&all);
        close_paper(&p);
    }
}

Test(output, truncated_behind_its_start)
{
    struct paper p;

    open_paper(&p, HEAD, TAIL, false);
    put_numbered(&p, 0, 500);
    (void)output_check(p.output);
    cr_assert_eq(truncate(p.path, 20), 0);
    cr_assert_eq(output_finish(p.output, NULL), 0);
    cr_expect(output_was_truncated(p.output), "its start is still there, the rest is not");
    cr_expect_eq(output_total(p.output), 4);
    close_paper(&p);
}

Test(output, truncated_after_it_was_cut)
{
    for (int no_holes = 0; no_holes < 2; no_holes++) {
        struct buf all = BUF_INIT;
        uint64_t at, gap;
        struct paper p;

        open_paper(&p, HEAD, TAIL, no_holes == 1);
        for (int i = 0; i < 4; i++)
            put_numbered(&p, 0, 1 << 20);
        (void)output_check(p.output);
        cr_assert_eq(truncate(p.path, 0), 0);
        put(&p, "end\n", 4);
        (void)output_check(p.output);
        cr_assert_eq(output_finish(p.output, NULL), 0);
        cr_expect(output_was_truncated(p.output));
        gather(&p, &all, &at, &gap);
        cr_expect_str_eq(buf_str(&all), "end\n");
        buf_fini(&all);
        close_paper(&p);
    }
}

/* `> /dev/stdout` opens the file again with O_TRUNC and writes at its own place. */
Test(output, shell_redirection_to_its_own_output)
{
    struct paper p;
    char *text;
    pid_t pid;
    int status;

    open_paper(&p, 0, 0, false);
    pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0) {
        if (dup2(output_fd(p.output), 1) == 1)
            (void)execl("/bin/sh", "sh", "-c", "echo one; echo two >/dev/stdout; echo three",
                        (char *)NULL);
        _exit(127);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
    cr_assert_eq(output_finish(p.output, NULL), 0);
    cr_expect(output_was_truncated(p.output));
    text = work_read(p.path);
    cr_expect_str_eq(text, "two\nthree\n");
    free(text);
    close_paper(&p);
}

Test(output, the_last_line)
{
    static const struct {
        const char *text, *line;
    } row[] = {
        {"a\nb\n", "b"},
        {"a\nnew option? ", "new option?"},
        {"\n\n", ""},
        {"one", "one"},
        {"a\r\nlast\r\n\r\n", "last"},
        {"a\n\x1b[31mred\x1b[0m\n", "\\x1b[31mred\\x1b[0m"},
        {"gr\xc3\xbc\xc3\x9f\n", "gr\xc3\xbc\xc3\x9f"},
    };
    struct paper p;
    char line[600], *big;

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        open_paper(&p, 0, 0, false);
        put(&p, row[i].text, strlen(row[i].text));
        cr_assert_eq(output_finish(p.output, NULL), 0);
        output_last_line(p.output, line, sizeof(line));
        cr_expect_str_eq(line, row[i].line);
        close_paper(&p);
    }
    big = malloc(100001);
    cr_assert(big != NULL);
    memset(big, 'x', 100000);
    memcpy(big + 99990, "the end?\n\n", 10);
    open_paper(&p, 0, 0, false);
    put(&p, big, 100000);
    cr_assert_eq(output_finish(p.output, NULL), 0);
    output_last_line(p.output, line, sizeof(line));
    cr_expect(strlen(line) < sizeof(line));
    cr_expect(strstr(line, "xxthe end?") != NULL, "%s", line);
    free(big);
    close_paper(&p);
}

Test(output, an_older_file_is_replaced_and_a_link_not_followed)
{
    struct output_opts opts = {.head = 0};
    struct output *o;
    char *dir = work_dir_new(), *path = work_path(dir, "out"), *other = work_path(dir, "other"),
         *text;

    work_write(other, "keep me");
    cr_assert_eq(symlink(other, path), 0);
    opts.path = path;
    cr_assert_eq(output_new(&opts, &o, NULL), 0);
    cr_assert_eq(write(output_fd(o), "x", 1), 1);
    output_free(&o);
    text = work_read(other);
    cr_expect_str_eq(text, "keep me");
    free(text);
    opts.path = "/no/such/folder/out";
    {
        struct diag *diag = diag_new(1);

        cr_expect(output_new(&opts, &o, diag) < 0);
        cr_expect_null(o);
        cr_expect(strstr(diag_first(diag), "/no/such/folder/out") != NULL);
        diag_free(&diag);
    }
    free(path);
    free(other);
    work_dir_remove(&dir);
}

/* fileio_test.c: files, replacement that a crash cannot halve, folders and their removal. Locks: fileio_lock_test.c; what is never removed:
 * fileio_guard_test.c. */
#include "common/fileio.h"

#include "common/buf.h"
#include "common/err.h"
#include "tests/harness/place.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each test works in a folder of its own, which is the working folder. */
static char dir[256];

static void setup(void)
{
    place_new_dir(dir, sizeof(dir), "fileio_test");
    cr_assert_eq(chdir(dir), 0);
}

static void teardown(void)
{
    cr_assert_eq(chdir("/"), 0);
    cr_assert_eq(file_remove_tree(dir), 0);
}

TestSuite(fileio, .init = setup, .fini = teardown);

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f, "%s: %s", path, strerror(errno));
    fputs(text, f);
    fclose(f);
}

static void assert_content(const char *path, const char *want)
{
    struct buf b = BUF_INIT;
    cr_assert_eq(file_read_all(path, 10000, &b), 0, "%s", path);
    cr_assert_str_eq(buf_str(&b), want, "%s", path);
    buf_fini(&b);
}

static int collect(const char *name, void *arg)
{
    buf_printf(arg, "%s ", name);
    return 0;
}

static void assert_listed(const char *path, const char *want)
{
    struct buf b = BUF_INIT;
    cr_assert_eq(file_list(path, collect, &b), 0);
    cr_assert_str_eq(buf_str(&b), want);
    buf_fini(&b);
}

Test(fileio, append_read_and_write_at_positions)
{
    struct file *f = NULL;
    char got[16] = "";
    size_t n = 99;
    uint64_t size = 99;
    cr_assert_eq(file_open("log", FILE_READ | FILE_APPEND | FILE_CREATE, 0640, &f), 0);
    cr_assert_eq(file_append(f, "one", 3), 0);
    cr_assert_eq(file_append(f, "two", 3), 0);
    cr_assert_eq(file_append(f, "", 0), 0);
    cr_assert_eq(file_sync(f), 0);
    cr_assert_eq(file_size(f, &size), 0);
    cr_assert_eq(size, 6);
    cr_assert_eq(file_read_at(f, 2, got, 3, &n), 0);
    cr_assert_eq(n, 3);
    cr_assert_str_eq(got, "etw");
    cr_assert_eq(file_read_at(f, 4, got, 10, &n), 0);
    cr_assert_eq(n, 2, "less only at the end of the file");
    cr_assert_eq(file_read_at(f, 6, got, 10, &n), 0);
    cr_assert_eq(n, 0);
    cr_assert_eq(file_read_at(f, UINT64_MAX, got, 1, &n), -ERR_RANGE);
    cr_assert_gt(file_fd(f), 2);
    cr_assert(fcntl(file_fd(f), F_GETFD) & FD_CLOEXEC);
    file_close(&f);
    cr_assert_null(f);
    file_close(&f);

    cr_assert_eq(file_open("log", FILE_WRITE, 0, &f), 0);
    cr_assert_eq(file_write_at(f, 3, "TWO!", 4), 0);
    cr_assert_eq(file_write_at(f, 9, "x", 1), 0);
    cr_assert_eq(file_write_at(f, (uint64_t)INT64_MAX, "xx", 2), -ERR_RANGE);
    cr_assert_eq(file_read_at(f, 0, got, 10, &n), 0);
    cr_assert_eq(n, 10);
    cr_assert(memcmp(got, "oneTWO!\0\0x", 10) == 0);
    cr_assert_eq(file_truncate(f, 4), 0);
    cr_assert_eq(file_truncate(f, UINT64_MAX), -ERR_RANGE);
    file_close(&f);
    assert_content("log", "oneT");
}

Test(fileio, ways_to_open)
{
    struct file *f = NULL;
    struct file_stat st;
    cr_assert_eq(file_open("none", FILE_READ, 0, &f), -ERR_NOTFOUND);
    cr_assert_null(f);
    cr_assert_eq(file_open("key", FILE_WRITE | FILE_CREATE | FILE_EXCL, 0600, &f), 0);
    file_close(&f);
    cr_assert_eq(file_stat("key", &st), 0);
    cr_assert_eq(st.mode, 0600);
    cr_assert_eq(file_open("key", FILE_WRITE | FILE_CREATE | FILE_EXCL, 0600, &f), -ERR_EXISTS);
    put("full", "text");
    cr_assert_eq(file_open("full", FILE_WRITE | FILE_TRUNC, 0, &f), 0);
    file_close(&f);
    assert_content("full", "");
    cr_assert_eq(symlink("full", "link"), 0);
    cr_assert_eq(file_open("link", FILE_READ | FILE_NOFOLLOW, 0, &f), -ERR_INVAL);
    cr_assert_eq(file_open("link", FILE_READ, 0, &f), 0);
    cr_assert_eq(file_append(f, "x", 1), -ERR_INVAL, "opened for reading");
    file_close(&f);
    cr_assert_eq(file_open("full/x", FILE_READ, 0, &f), -ERR_INVAL);
}

Test(fileio, a_full_disk_says_so)
{
    struct file *f = NULL;
    cr_assert_eq(file_open("/dev/full", FILE_WRITE, 0, &f), 0);
    cr_assert_eq(file_append(f, "x", 1), -ERR_FULL);
    cr_assert_eq(file_write_at(f, 0, "x", 1), -ERR_FULL);
    file_close(&f);
}

Test(fileio, a_sync_that_fails_is_an_error)
{
    struct file *f = NULL;
    cr_assert_eq(file_open("/dev/null", FILE_WRITE, 0, &f), 0);
    cr_assert_eq(file_sync(f), -ERR_INVAL);
    file_close(&f);
    cr_assert_eq(file_sync_dir("none"), -ERR_NOTFOUND);
    put("file", "");
    cr_assert_eq(file_sync_dir("file"), -ERR_INVAL);
    cr_assert_eq(file_sync_dir("."), 0);
}

Test(fileio, read_all_within_its_limit)
{
    struct buf b = BUF_INIT;
    put("ten", "0123456789");
    buf_add_str(&b, "before:");
    cr_assert_eq(file_read_all("ten", 10, &b), 0);
    cr_assert_str_eq(buf_str(&b), "before:0123456789");
    cr_assert_eq(file_read_all("ten", 9, &b), -ERR_LIMIT);
    cr_assert_str_eq(buf_str(&b), "before:0123456789", "nothing is appended on an error");
    cr_assert_eq(file_read_all("none", 10, &b), -ERR_NOTFOUND);
    cr_assert_eq(file_read_all("/dev/zero", 1000000, &b), -ERR_LIMIT, "a file without an end");
    cr_assert_eq(b.len, 17);
    cr_assert_eq(file_read_all(".", 10, &b), -ERR_INVAL);
    cr_assert_eq(b.err, 0);
    buf_fini(&b);

    buf_init(&b, 10);
    cr_assert_eq(file_read_all("ten", 10000, &b), 0, "the buffer's own cap is what counts, not the file's limit");
    cr_assert_eq(file_read_all("ten", 10000, &b), -ERR_LIMIT);
    cr_assert_eq(file_read_all("ten", 10000, &b), -ERR_LIMIT, "an error in the buffer stays");
    buf_fini(&b);
}

Test(fileio, read_all_of_a_file_without_a_size)
{
    struct buf b = BUF_INIT;
    struct file_stat st;
    cr_assert_eq(file_stat("/proc/self/status", &st), 0);
    cr_assert_eq(st.size, 0);
    cr_assert_eq(file_read_all("/proc/self/status", 100000, &b), 0);
    cr_assert_gt(b.len, 100);
    buf_fini(&b);
}

Test(fileio, read_all_of_a_big_file)
{
    struct buf want = BUF_INIT;
    struct buf got = BUF_INIT;
    for (int i = 0; i < 60000; i++) {
        buf_printf(&want, "%d ", i);
    }
    cr_assert_eq(file_write_atomic("big", want.data, want.len, 0644), 0);
    cr_assert_eq(file_read_all("big", want.len, &got), 0);
    cr_assert_eq(got.len, want.len);
    cr_assert(memcmp(got.data, want.data, want.len) == 0);
    buf_fini(&want);
    buf_fini(&got);
}

Test(fileio, atomic_write_replaces_and_leaves_nothing_else)
{
    struct file_stat st;
    umask(077);
    cr_assert_eq(file_write_atomic("state", "first", 5, 0644), 0);
    assert_content("state", "first");
    cr_assert_eq(file_stat("state", &st), 0);
    cr_assert_eq(st.mode, 0644, "the umask does not cut it");
    cr_assert_eq(file_write_atomic("state", "2nd", 3, 0600), 0);
    assert_content("state", "2nd");
    cr_assert_eq(file_stat("state", &st), 0);
    cr_assert_eq(st.mode, 0600);
    cr_assert_eq(file_write_atomic("state", NULL, 0, 0600), 0);
    assert_content("state", "");
    assert_listed(".", "state ");
}

Test(fileio, atomic_write_replaces_a_link_not_its_target)
{
    struct file_stat st;
    put("target", "safe");
    cr_assert_eq(symlink("target", "state"), 0);
    cr_assert_eq(file_write_atomic("state", "new", 3, 0644), 0);
    assert_content("target", "safe");
    cr_assert_eq(file_stat("state", &st), 0);
    cr_assert_eq(st.type, FILE_T_FILE);
}

Test(fileio, atomic_write_that_fails_keeps_the_old)
{
    char big[4096] = "";
    char name[1100];
    struct rlimit limit = {1000, 1000};
    put("state", "old");
    cr_assert_eq(mkdir("folder", 0700), 0);
    put("folder/inside", "");
    cr_assert_eq(file_write_atomic("folder", "x", 1, 0644), -ERR_INVAL, "a folder is no file");
    cr_assert_eq(file_write_atomic("none/state", "x", 1, 0644), -ERR_NOTFOUND);
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    cr_assert_eq(file_write_atomic(name, "x", 1, 0644), -ERR_LIMIT);
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert_eq(file_write_atomic("state", big, sizeof(big), 0644), -ERR_LIMIT);
    assert_content("state", "old");
    assert_listed(".", "folder state ");
}

/* A process that replaces the file again and again, and says so each time, is killed at some instant: the file is always one of the two, whole. */
Test(fileio, atomic_write_under_kill)
{
    static char a[30000];
    static char b[30000];
    memset(a, 'a', sizeof(a));
    memset(b, 'b', sizeof(b));
    cr_assert_eq(file_write_atomic("state", a, sizeof(a), 0644), 0);
    for (int i = 0; i < 20; i++) {
        int p[2];
        char said[20];
        cr_assert_eq(pipe(p), 0);
        pid_t pid = fork();
        cr_assert_geq(pid, 0);
        if (pid == 0) {
            for (const char *next = b;; next = next == b ? a : b) {
                if (file_write_atomic("state", next, sizeof(a), 0644) != 0 || write(p[1], "x", 1) != 1) {
                    _exit(1);
                }
            }
        }
        for (int k = 0; k <= i % 4; k++) {
            cr_assert_gt(read(p[0], said, 1), 0);
        }
        cr_assert_eq(kill(pid, SIGKILL), 0);
        cr_assert_eq(waitpid(pid, NULL, 0), pid);
        close(p[0]);
        close(p[1]);
        struct buf got = BUF_INIT;
        cr_assert_eq(file_read_all("state", 100000, &got), 0);
        cr_assert_eq(got.len, sizeof(a));
        cr_assert(memcmp(got.data, a, sizeof(a)) == 0 || memcmp(got.data, b, sizeof(b)) == 0);
        buf_fini(&got);
    }
}

Test(fileio, mkdirs)
{
    struct file_stat st;
    char name[1100];
    cr_assert_eq(file_mkdirs("a/b//c/", 0700), 0);
    cr_assert_eq(file_mkdirs("a/b/c", 0700), 0);
    cr_assert_eq(file_stat("a/b/c", &st), 0);
    cr_assert_eq(st.type, FILE_T_DIR);
    cr_assert_eq(st.mode, 0700);
    char whole[128];
    cr_assert_eq(file_path(whole, sizeof(whole), dir, "x/y"), 0);
    cr_assert_eq(file_mkdirs(whole, 0755), 0, "an absolute path");
    cr_assert(file_exists("x/y"));
    cr_assert_eq(file_mkdirs("/", 0755), 0);
    put("file", "");
    cr_assert_eq(file_mkdirs("file", 0755), -ERR_EXISTS);
    cr_assert_eq(file_mkdirs("file/x", 0755), -ERR_EXISTS);
    cr_assert_eq(symlink("a", "link"), 0);
    cr_assert_eq(file_mkdirs("link/d", 0755), 0);
    cr_assert(file_exists("a/d"));
    cr_assert_eq(file_mkdirs("", 0755), -ERR_INVAL);
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    cr_assert_eq(file_mkdirs(name, 0755), -ERR_LIMIT);
}

Test(fileio, remove_and_rename)
{
    put("a", "a");
    cr_assert_eq(mkdir("d", 0700), 0);
    cr_assert_eq(mkdir("full", 0700), 0);
    put("full/x", "");
    cr_assert_eq(file_rename("a", "d/b"), 0);
    assert_content("d/b", "a");
    cr_assert_eq(file_rename("none", "x"), -ERR_NOTFOUND);
    cr_assert_eq(file_remove("d/b"), 0);
    cr_assert_eq(file_remove("d"), 0);
    cr_assert_eq(file_remove("d"), -ERR_NOTFOUND);
    cr_assert_eq(file_remove("full"), -ERR_EXISTS, "not empty");
    cr_assert_eq(symlink("full", "link"), 0);
    cr_assert_eq(file_remove("link"), 0);
    assert_listed(".", "full ");
}

Test(fileio, stat_follows_no_last_link)
{
    struct file_stat st;
    struct timespec times[2] = {{1000, 5}, {1700000000, 123456789}};
    put("file", "12345");
    cr_assert_eq(chmod("file", 04751), 0);
    cr_assert_eq(utimensat(AT_FDCWD, "file", times, 0), 0);
    cr_assert_eq(symlink("file", "link"), 0);
    cr_assert_eq(mkfifo("fifo", 0600), 0);
    cr_assert_eq(file_stat("file", &st), 0);
    cr_assert_eq(st.type, FILE_T_FILE);
    cr_assert_eq(st.size, 5);
    cr_assert_eq(st.mode, 04751);
    cr_assert_eq(st.uid, geteuid());
    cr_assert_eq(st.mtime_ns, INT64_C(1700000000123456789));
    cr_assert_eq(file_stat("link", &st), 0);
    cr_assert_eq(st.type, FILE_T_LINK);
    cr_assert_eq(file_stat("fifo", &st), 0);
    cr_assert_eq(st.type, FILE_T_OTHER);
    cr_assert_eq(file_stat("none", &st), -ERR_NOTFOUND);
    cr_assert_eq(unlink("file"), 0);
    cr_assert(file_exists("link"), "a link without a target is there");
    cr_assert_not(file_exists("none"));
}

static int stop_at_b(const char *name, void *arg)
{
    buf_printf(arg, "%s ", name);
    return strcmp(name, "b") == 0 ? 42 : 0;
}

Test(fileio, list_is_in_the_order_of_names)
{
    struct buf b = BUF_INIT;
    static const char *const names[] = {"zz", "b", "a", "B", ".hidden", "a10", "a2", "\xc3\xa4"};
    assert_listed(".", "");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        put(names[i], "");
    }
    assert_listed(".", ".hidden B a a10 a2 b zz \xc3\xa4 ");
    cr_assert_eq(file_list(".", stop_at_b, &b), 42, "the callback's value ends it");
    cr_assert_str_eq(buf_str(&b), ".hidden B a a10 a2 b ");
    cr_assert_eq(file_list("none", collect, &b), -ERR_NOTFOUND);
    cr_assert_eq(file_list("a", collect, &b), -ERR_INVAL);
    buf_fini(&b);
}

Test(fileio, remove_tree_does_not_follow_links)
{
    char path[300];
    cr_assert_eq(file_mkdirs("keep/deep", 0755), 0);
    put("keep/deep/file", "kept");
    cr_assert_eq(file_mkdirs("tree/a/b/c", 0755), 0);
    put("tree/a/b/c/file", "");
    put("tree/.hidden", "");
    for (int i = 0; i < 500; i++) {
        snprintf(path, sizeof(path), "tree/a/file%d", i);
        put(path, "");
    }
    snprintf(path, sizeof(path), "%s/keep", dir);
    cr_assert_eq(symlink(path, "tree/link"), 0);
    cr_assert_eq(symlink("../../keep/deep", "tree/a/link"), 0);
    cr_assert_eq(symlink("none", "tree/dangling"), 0);
    cr_assert_eq(mkfifo("tree/fifo", 0600), 0);
    cr_assert_eq(file_remove_tree("tree"), 0);
    cr_assert_not(file_exists("tree"));
    assert_content("keep/deep/file", "kept");
    cr_assert_eq(file_remove_tree("tree"), 0, "missing is fine");

    cr_assert_eq(symlink("keep", "link"), 0);
    cr_assert_eq(file_remove_tree("link/"), 0, "the link itself, even with a slash");
    cr_assert_not(file_exists("link"));
    assert_content("keep/deep/file", "kept");
    put("file", "");
    cr_assert_eq(file_remove_tree("file"), 0);
    assert_listed(".", "keep ");
}

Test(fileio, remove_tree_has_a_depth)
{
    struct buf b = BUF_INIT;
    buf_add_str(&b, "deep");
    for (int i = 0; i < 80; i++) {
        buf_add_str(&b, "/d");
    }
    cr_assert_eq(file_mkdirs(buf_str(&b), 0700), 0);
    cr_assert_eq(file_remove_tree("deep"), -ERR_LIMIT);
    cr_assert_eq(file_rename("deep/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d", "half"), 0);
    cr_assert_eq(file_remove_tree("half"), 0);
    cr_assert_eq(file_remove_tree("deep"), 0);
    buf_fini(&b);
}

Test(fileio, disk_free)
{
    uint64_t bytes = 0;
    cr_assert_eq(file_disk_free(".", &bytes), 0);
    cr_assert_gt(bytes, 1000000);
    cr_assert_eq(file_disk_free("none", &bytes), -ERR_NOTFOUND);
}

Test(fileio, paths)
{
    char path[8] = "zzzzzzz";
    cr_assert_eq(file_path(path, sizeof(path), "abc", "def"), 0);
    cr_assert_str_eq(path, "abc/def");
    cr_assert_eq(file_path(path, sizeof(path), "abcd", "def"), -ERR_LIMIT);
    cr_assert_str_eq(path, "");
    cr_assert_eq(file_path(path, sizeof(path), "/", "etc"), 0);
    cr_assert_str_eq(path, "/etc");
}

Test(fileio, an_absolute_path_begins_at_the_root_and_ends_without_a_slash)
{
    char here[FILE_PATH_MAX], want[FILE_PATH_MAX], path[FILE_PATH_MAX];
    char small[8];
    cr_assert_not_null(getcwd(here, sizeof(here)));
    cr_assert_eq(file_absolute(path, sizeof(path), "/a/b//"), 0);
    cr_expect_str_eq(path, "/a/b");
    cr_assert_eq(file_absolute(path, sizeof(path), "/"), 0);
    cr_expect_str_eq(path, "/");
    cr_assert_eq(file_absolute(path, sizeof(path), "x/y/"), 0);
    cr_assert_eq(file_path(want, sizeof(want), here, "x/y"), 0);
    cr_expect_str_eq(path, want);
    cr_assert_eq(file_absolute(small, sizeof(small), "/234567"), 0);
    cr_expect_str_eq(small, "/234567");
    cr_expect_eq(file_absolute(small, sizeof(small), "/2345678"), -ERR_LIMIT);
    cr_expect_eq(file_absolute(small, sizeof(small), "relative"), -ERR_LIMIT);
}

/* fileio_late_test.c: files of a time that a narrow time_t, or nanoseconds in 64 bits, cannot hold are files as any other. What is tested here
 * could only fail where time_t has 32 bits, but for the last test. */
#include "common/fileio.h"

#include "common/err.h"
#include "tests/harness/place.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define YEAR_2100 INT64_C(4102444800)
#define YEAR_2400 INT64_C(13569465600)

static char dir[200];

static void setup(void)
{
    place_new_dir(dir, sizeof(dir), "late");
    cr_assert_eq(chdir(dir), 0);
}

static void teardown(void)
{
    cr_assert_eq(chdir("/"), 0);
    cr_assert_eq(file_remove_tree(dir), 0);
}

TestSuite(fileio_late, .init = setup, .fini = teardown);

/* Sets the time of the path; skips the test where the file system has no such times. */
static void set_time(const char *path, int64_t s)
{
    struct statx st;
#ifdef SYS_utimensat_time64
    int64_t times[2][2] = {{s, 0}, {s, 0}};
    cr_assert_eq(syscall(SYS_utimensat_time64, AT_FDCWD, path, times, 0), 0, "%s", strerror(errno));
#else
    struct timespec times[2] = {{s, 0}, {s, 0}};
    cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0, "%s", strerror(errno));
#endif
    cr_assert_eq(statx(AT_FDCWD, path, 0, STATX_MTIME, &st), 0);
    if (st.stx_mtime.tv_sec != s) {
        cr_skip_test("the file system has no times as late");
    }
}

static void make_late(const char *path)
{
    cr_assert_eq(file_write_atomic(path, "text", 4, 0644), 0);
    set_time(path, YEAR_2100);
}

Test(fileio_late, a_file_is_seen)
{
    struct file_stat st;
    struct file *file = NULL;
    uint64_t size = 0;
    make_late("f");
    cr_assert(file_exists("f"));
    cr_assert_eq(file_stat("f", &st), 0);
    cr_expect_eq(st.type, FILE_T_FILE);
    cr_expect_eq(st.size, 4);
    cr_expect_eq(st.mode, 0644);
    cr_expect_eq(st.uid, geteuid());
    cr_expect_eq(st.mtime_ns, YEAR_2100 * 1000000000);
    cr_assert_eq(file_open("f", FILE_READ, 0, &file), 0);
    cr_expect_eq(file_size(file, &size), 0);
    cr_expect_eq(size, 4);
    file_close(&file);
}

Test(fileio_late, a_folder_is_there_already)
{
    cr_assert_eq(mkdir("d", 0755), 0);
    set_time("d", YEAR_2100);
    cr_assert_eq(file_mkdirs("d/e", 0755), 0);
    set_time("d", YEAR_2100);
    cr_assert_eq(file_mkdirs("d", 0755), 0);
    make_late("f");
    cr_expect_eq(file_mkdirs("f", 0755), -ERR_EXISTS);
}

Test(fileio_late, a_tree_is_removed)
{
    cr_assert_eq(file_mkdirs("d/e", 0755), 0);
    make_late("d/e/f");
    set_time("d/e", YEAR_2100);
    set_time("d", YEAR_2100);
    cr_assert_eq(file_remove_tree("d"), 0);
    cr_assert_not(file_exists("d"));
}

Test(fileio_late, a_lock_is_taken)
{
    struct file_lock *lock = NULL;
    char holder[256];
    make_late("lock");
    cr_assert_eq(file_lock_take("lock", "me", &lock, holder), 0);
    cr_assert_not_null(lock);
    file_lock_free(&lock);
}

Test(fileio_late, a_time_beyond_nanoseconds)
{
    struct file_stat st;
    cr_assert_eq(file_write_atomic("f", "text", 4, 0644), 0);
    set_time("f", YEAR_2400);
    cr_assert_eq(file_stat("f", &st), 0);
    cr_expect_eq(st.mtime_ns, INT64_MAX);
}

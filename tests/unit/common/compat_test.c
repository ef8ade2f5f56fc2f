/* compat_test.c: closing descriptors by each of the ways that old and new kernels need, and the rest of compat.h on this system. */
#include "common/compat/linux.c"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

/* The exit status of a forked child that runs f. */
static int in_child(int (*f)(void))
{
    int status = -1;
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        _exit(f());
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status), "status %x", (unsigned)status);
    return WEXITSTATUS(status);
}

static void open_many(void)
{
    for (int i = 0; i < 300; i++) {
        if (dup(0) < 0) {
            _exit(90);
        }
    }
    if (dup2(0, 900) != 900) {
        _exit(91);
    }
}

/* 0 when 0 to 4 are open and nothing else is. */
static int judge(void)
{
    for (int fd = 0; fd < 1000; fd++) {
        if ((fcntl(fd, F_GETFD) != -1) != (fd < 5)) {
            return 1;
        }
    }
    return 0;
}

static int by_the_best_way(void)
{
    open_many();
    compat_close_from(5);
    return judge();
}

static int by_the_list(void)
{
    open_many();
    if (!close_listed(5)) {
        return 2;
    }
    return judge();
}

Test(compat, every_descriptor_from_one_on_is_closed)
{
    while (dup(0) < 5) { /* make sure that 0 to 4 are open */
    }
    cr_assert_eq(in_child(by_the_best_way), 0);
    cr_assert_eq(in_child(by_the_list), 0);
}

Test(compat, names_in_the_list_of_descriptors)
{
    cr_assert_eq(fd_of_name("0"), 0);
    cr_assert_eq(fd_of_name("123"), 123);
    cr_assert_eq(fd_of_name(""), -1);
    cr_assert_eq(fd_of_name("."), -1);
    cr_assert_eq(fd_of_name("12x"), -1);
    cr_assert_eq(fd_of_name("99999999999999"), -1);
}

Test(compat, a_process_descriptor_is_readable_when_it_ends)
{
    int hold[2];
    cr_assert_eq(pipe(hold), 0);
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        char c;
        close(hold[1]);
        _exit(read(hold[0], &c, 1) == 0 ? 0 : 1);
    }
    int fd = compat_pidfd_open(pid);
    if (fd == -ERR_UNSUP) {
        fprintf(stderr, "this kernel has no pidfd_open\n");
        close(hold[1]);
        return;
    }
    cr_assert_geq(fd, 0);
    cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    cr_assert_eq(poll(&p, 1, 0), 0);
    close(hold[1]);
    cr_assert_eq(poll(&p, 1, 60000), 1);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    close(fd);
    cr_assert_eq(compat_pidfd_open(pid), -ERR_NOTFOUND);
}

static int drop_privileges(void)
{
    if (compat_become_user(65534, 65533) != 0) {
        return 1;
    }
    if (getuid() != 65534 || geteuid() != 65534 || getgid() != 65533 || getegid() != 65533 || getgroups(0, NULL) != 0) {
        return 2;
    }
    return setuid(0) == -1 && setgid(0) == -1 ? 0 : 3;
}

Test(compat, another_user_for_good)
{
    if (geteuid() != 0) {
        cr_assert_eq(compat_become_user(65534, 65533), EPERM);
        return;
    }
    cr_assert_eq(in_child(drop_privileges), 0);
}

Test(compat, time_with_suspension)
{
    int64_t mono = clock_mono_ns();
    int64_t boot = compat_boot_ns();
    cr_assert_geq(boot, mono);
    cr_assert_geq(compat_boot_ns(), boot);
}

static void expect_same(const struct stat *a, const struct stat *b)
{
    cr_expect_eq(a->st_dev, b->st_dev);
    cr_expect_eq(a->st_ino, b->st_ino);
    cr_expect_eq(a->st_mode, b->st_mode);
    cr_expect_eq(a->st_nlink, b->st_nlink);
    cr_expect_eq(a->st_uid, b->st_uid);
    cr_expect_eq(a->st_gid, b->st_gid);
    cr_expect_eq(a->st_rdev, b->st_rdev);
    cr_expect_eq(a->st_size, b->st_size);
}

Test(compat, both_ways_to_ask_for_a_file_agree)
{
    static const char *const paths[] = {"/", "/dev/null", "/proc/self/exe", "Makefile", "tests"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        for (int flags = 0; flags <= AT_SYMLINK_NOFOLLOW; flags += AT_SYMLINK_NOFOLLOW) {
            struct stat narrow, wide;
            int64_t narrow_ns, wide_ns;
            cr_assert_eq(compat_stat(AT_FDCWD, paths[i], flags, &narrow, &narrow_ns), 0);
            cr_assert_eq(stat_wide(AT_FDCWD, paths[i], flags, &wide, &wide_ns), 0);
            expect_same(&narrow, &wide);
            cr_expect_eq(narrow_ns, wide_ns);
        }
    }
    int fd = open("Makefile", O_RDONLY | O_CLOEXEC);
    struct stat narrow, wide;
    int64_t wide_ns;
    cr_assert_geq(fd, 0);
    cr_assert_eq(compat_stat(fd, NULL, 0, &narrow, NULL), 0);
    cr_assert_eq(stat_wide(fd, NULL, 0, &wide, &wide_ns), 0);
    expect_same(&narrow, &wide);
    cr_expect_eq(wide_ns, (int64_t)narrow.st_mtim.tv_sec * CLOCK_SEC + narrow.st_mtim.tv_nsec);
    close(fd);
    cr_expect_eq(stat_wide(AT_FDCWD, "no such file", 0, &wide, &wide_ns), -ERR_NOTFOUND);
    cr_expect_eq(compat_stat(AT_FDCWD, "no such file", 0, &wide, &wide_ns), -ERR_NOTFOUND);
}

Test(compat, nanoseconds_end_where_their_range_does)
{
    cr_expect_eq(to_ns(INT64_C(4102444800), 5), INT64_C(4102444800000000005));
    cr_expect_eq(to_ns(-1, 5), -CLOCK_SEC + 5);
    cr_expect_eq(to_ns(INT64_C(13569465600), 0), INT64_MAX);
    cr_expect_eq(to_ns(INT64_MIN, 0), INT64_MIN);
}

/* fileio_guard_test.c: what file_remove_tree() refuses. The paths are only given to the function that judges them, never to the one that removes: a
 * guard that is broken must fail here and do no harm. What must meet the real root does so in a root of its own. */
#include "common/fileio_dir.c"
#include "tests/harness/place.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/wait.h>

Test(fileio_guard, paths_that_cannot_be_meant)
{
    static const char *const paths[] = {"", "/", "//", "///", ".", "..", "./", "../", "a/..", "a/.", "/..", "/.", "/a/../", "a//.."};
    char clean[FILE_PATH_MAX];
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        cr_assert_eq(clean_tree_path(clean, paths[i]), -ERR_INVAL, "'%s'", paths[i]);
    }
}

Test(fileio_guard, paths_that_are_meant)
{
    static const struct {
        const char *path;
        const char *want;
    } rows[] = {
        {"a", "a"}, {"/a", "/a"}, {"a/", "a"}, {"/a/b//", "/a/b"}, {"../a", "../a"}, {"./a", "./a"}, {"...", "..."}, {".a", ".a"}, {"a..", "a.."},
    };
    char clean[FILE_PATH_MAX];
    char name[FILE_PATH_MAX + 1];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cr_assert_eq(clean_tree_path(clean, rows[i].path), 0, "'%s'", rows[i].path);
        cr_assert_str_eq(clean, rows[i].want);
    }
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    cr_assert_eq(clean_tree_path(clean, name), -ERR_LIMIT);
}

/* In a root of its own: 0 when the root was refused and nothing in it is gone. 77: no such root to be had. */
static int meet_the_root(const char *own_root)
{
    int fd;
    if (chroot(own_root) != 0) {
        return 77;
    }
    if (chdir("/") != 0 || (fd = open("only-here", O_RDONLY)) < 0) {
        return 77; /* not where we think we are: touch nothing */
    }
    close(fd);
    if (remove_at(AT_FDCWD, "/", (struct level){0, 0}) != -ERR_INVAL) {
        return 1;
    }
    if (remove_at(AT_FDCWD, "sub/..", (struct level){0, 0}) != -ERR_INVAL) {
        return 2;
    }
    return access("only-here", F_OK) == 0 && access("sub", F_OK) == 0 ? 0 : 3;
}

Test(fileio_guard, the_root_is_refused_under_any_name)
{
    char dir[256];
    char path[300];
    int status = -1;
    place_new_dir(dir, sizeof(dir), "fileio_test");
    snprintf(path, sizeof(path), "%s/sub", dir);
    cr_assert_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/only-here", dir);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    cr_assert_geq(fd, 0);
    close(fd);
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        _exit(meet_the_root(dir));
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        fprintf(stderr, "no root of its own to be had: not tried\n");
    } else {
        cr_assert_eq(WEXITSTATUS(status), 0);
    }
    cr_assert_eq(file_remove_tree(dir), 0);
}

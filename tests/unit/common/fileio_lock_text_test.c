/* fileio_lock_text_test.c: what a lock says of its holder is another user's text, and steers no terminal. */
#include "common/fileio.h"

#include "common/err.h"
#include "tests/harness/place.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

Test(fileio_lock_text, control_characters_of_the_holder_are_not_shown)
{
    static const char said[] = "a\x1b[2J\xc2\x9b" "2J\xc2\x85 \xc3\xa9\n";
    char folder[200];
    char path[256];
    char other[256];
    struct file_lock *lock = NULL;
    place_new_dir(folder, sizeof(folder), "makespan-lock");
    snprintf(path, sizeof(path), "%s/lock", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    cr_assert(fd >= 0);
    cr_assert_eq(write(fd, said, strlen(said)), (ssize_t)strlen(said));
    cr_assert_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
    cr_expect_eq(file_lock_take(path, "me", &lock, other), -ERR_BUSY);
    cr_expect_str_eq(other, "a?[2J??2J?? \xc3\xa9");
    close(fd);
    cr_expect_eq(file_remove_tree(folder), 0);
}

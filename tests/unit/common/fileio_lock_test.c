/* fileio_lock_test.c: the lock excludes other processes, names its holder, and trusts nothing that lies in the folder. */
#include "common/fileio.h"

#include "common/err.h"
#include "tests/harness/place.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

TestSuite(fileio_lock, .init = setup, .fini = teardown);

/* Another process that takes the lock and keeps it until it is killed. */
static pid_t hold_elsewhere(const char *path, const char *holder)
{
    int ready[2];
    char c = 0;
    cr_assert_eq(pipe(ready), 0);
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        struct file_lock *lock = NULL;
        char other[256];
        c = file_lock_take(path, holder, &lock, other) == 0 ? 'y' : 'n';
        if (write(ready[1], &c, 1) != 1) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    cr_assert_eq(read(ready[0], &c, 1), 1);
    cr_assert_eq(c, 'y');
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void end(pid_t pid)
{
    cr_assert_eq(kill(pid, SIGKILL), 0);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

Test(fileio_lock, another_process_is_named_and_its_end_frees_the_lock)
{
    struct file_lock *lock = NULL;
    char other[256] = "rubbish";
    pid_t pid = hold_elsewhere("lock", "makespan-worker 42 of fleet f, sweep 7");
    cr_assert_eq(file_lock_take("lock", "me", &lock, other), -ERR_BUSY);
    cr_assert_str_eq(other, "makespan-worker 42 of fleet f, sweep 7");
    cr_assert_null(lock);
    end(pid);
    cr_assert_eq(file_lock_take("lock", "me", &lock, other), 0);
    cr_assert_str_eq(other, "");
    file_lock_free(&lock);
    cr_assert_null(lock);
    file_lock_free(&lock);
}

Test(fileio_lock, excludes_within_a_process_too)
{
    struct file_lock *a = NULL;
    struct file_lock *b = NULL;
    char other[256];
    cr_assert_eq(file_lock_take("lock", "first", &a, other), 0);
    cr_assert_eq(file_lock_take("lock", "second", &b, other), -ERR_BUSY);
    cr_assert_str_eq(other, "first");
    file_lock_free(&a);
    cr_assert_eq(file_lock_take("lock", "second", &b, other), 0);
    cr_assert_eq(file_lock_take("lock", "third", &a, other), -ERR_BUSY);
    cr_assert_str_eq(other, "second", "a longer name of an earlier holder leaves nothing behind");
    file_lock_free(&b);
}

Test(fileio_lock, the_file_is_open_to_all_users_whatever_the_umask)
{
    struct file_lock *lock = NULL;
    struct file_stat st;
    char other[256];
    umask(077);
    cr_assert_eq(file_lock_take("lock", "me", &lock, other), 0);
    cr_assert_eq(umask(077), 077);
    cr_assert_eq(file_stat("lock", &st), 0);
    cr_assert_eq(st.mode, 0666);
    file_lock_free(&lock);
    cr_assert(file_exists("lock"), "the file stays: others may wait on it");
    cr_assert_eq(file_stat("lock", &st), 0);
    cr_assert_eq(st.size, 0, "and names nobody");
}

Test(fileio_lock, other_users_share_it)
{
    struct file_lock *lock = NULL;
    char other[256];
    if (geteuid() != 0) {
        fprintf(stderr, "only root can try another user\n");
        return;
    }
    cr_assert_eq(chmod(dir, 01777), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0) {
            _exit(2);
        }
        _exit(file_lock_take("lock", "nobody's", &lock, other) == 0 ? 0 : 1);
    }
    int status = -1;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
    /* fs.protected_regular forbids O_CREAT on another's file in a sticky folder, even to root */
    cr_assert_eq(file_lock_take("lock", "root's", &lock, other), 0);
    pid = fork();
    if (pid == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0) {
            _exit(2);
        }
        int rc = file_lock_take("lock", "nobody's", &lock, other);
        _exit(rc == -ERR_BUSY && strcmp(other, "root's") == 0 ? 0 : 1);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
    file_lock_free(&lock);
}

Test(fileio_lock, links_and_other_kinds_of_file_are_refused)
{
    struct file_lock *lock = NULL;
    char other[256];
    struct stat st;
    FILE *f = fopen("victim", "w");
    fputs("precious", f);
    fclose(f);
    cr_assert_eq(symlink("victim", "symlink"), 0);
    cr_assert_eq(symlink("nothing", "dangling"), 0);
    cr_assert_eq(file_lock_take("symlink", "me", &lock, other), -ERR_INVAL);
    cr_assert_eq(file_lock_take("dangling", "me", &lock, other), -ERR_INVAL);
    cr_assert_not(file_exists("nothing"));
    cr_assert_eq(link("victim", "hardlink"), 0);
    cr_assert_eq(mkfifo("fifo", 0666), 0);
    cr_assert_eq(mkdir("folder", 0777), 0);
    cr_assert_eq(file_lock_take("hardlink", "me", &lock, other), -ERR_INVAL);
    cr_assert_eq(file_lock_take("fifo", "me", &lock, other), -ERR_INVAL);
    cr_assert_eq(file_lock_take("folder", "me", &lock, other), -ERR_INVAL);
    cr_assert_eq(file_lock_take("none/lock", "me", &lock, other), -ERR_NOTFOUND);
    cr_assert_eq(stat("victim", &st), 0);
    cr_assert_eq(st.st_size, 8);
    cr_assert_null(lock);
}

Test(fileio_lock, a_holder_whose_name_cannot_be_written_holds_it)
{
    struct file_lock *lock = NULL;
    struct file_lock *second = NULL;
    char other[256] = "x";
    if (geteuid() != 0) {
        cr_skip_test("only root can mount a small disk");
    }
    cr_assert_eq(unshare(CLONE_NEWNS), 0);
    cr_assert_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    cr_assert_eq(mount("none", "/mnt", "tmpfs", 0, "size=64k"), 0);
    int fd = open("/mnt/filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    cr_assert_geq(fd, 0);
    while (write(fd, other, 1) == 1) {
    }
    close(fd);
    cr_assert_eq(file_lock_take("/mnt/lock", "me", &lock, other), 0);
    cr_assert_eq(file_lock_take("/mnt/lock", "you", &second, other), -ERR_BUSY);
    cr_assert_str_empty(other);
    file_lock_free(&lock);
    cr_assert_eq(umount("/mnt"), 0);
}

Test(fileio_lock, what_the_file_says_is_cleaned)
{
    struct file_lock *lock = NULL;
    char other[256];
    char name[300];
    pid_t pid = hold_elsewhere("lock", "a\x1b[2J\x7f b\xc3");
    cr_assert_eq(file_lock_take("lock", "me", &lock, other), -ERR_BUSY);
    cr_assert_str_eq(other, "a?[2J? b");
    end(pid);
    pid = hold_elsewhere("lock", "one\ntwo");
    cr_assert_eq(file_lock_take("lock", "me", &lock, other), -ERR_BUSY);
    cr_assert_str_eq(other, "one");
    end(pid);
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    pid = hold_elsewhere("lock", name);
    cr_assert_eq(file_lock_take("lock", "me", &lock, other), -ERR_BUSY);
    cr_assert_eq(strlen(other), 255);
    end(pid);
}

Test(fileio_lock, a_removed_file_is_no_lock)
{
    struct file_lock *a = NULL;
    struct file_lock *b = NULL;
    struct file_lock *c = NULL;
    char other[256];
    cr_assert_eq(file_lock_take("lock", "first", &a, other), 0);
    cr_assert_eq(unlink("lock"), 0);
    cr_assert_eq(file_lock_take("lock", "second", &b, other), 0, "the name stands for a new file");
    cr_assert_eq(file_lock_take("lock", "third", &c, other), -ERR_BUSY);
    cr_assert_str_eq(other, "second");
    file_lock_free(&a);
    cr_assert_eq(file_lock_take("lock", "third", &c, other), -ERR_BUSY);
    file_lock_free(&b);
}

/* Many processes, one lock, made from nothing: at no time do two hold it. */
Test(fileio_lock, a_crowd)
{
    enum { CROWD = 6, ROUNDS = 200 };
    pid_t pids[CROWD];
    int status;
    for (int i = 0; i < CROWD; i++) {
        pids[i] = fork();
        cr_assert_geq(pids[i], 0);
        if (pids[i] == 0) {
            int got = 0;
            while (got < ROUNDS) {
                struct file_lock *lock = NULL;
                char other[256];
                int rc = file_lock_take("lock", "crowd", &lock, other);
                if (rc == 0) {
                    if (mkdir("inside", 0700) != 0) {
                        _exit(2); /* somebody else is inside */
                    }
                    if (rmdir("inside") != 0) {
                        _exit(3);
                    }
                    got++;
                    if (got % 20 == 0) {
                        unlink("lock");
                    }
                    file_lock_free(&lock);
                } else if (rc != -ERR_BUSY && rc != -ERR_AGAIN) {
                    _exit(4);
                }
            }
            _exit(0);
        }
    }
    for (int i = 0; i < CROWD; i++) {
        cr_assert_eq(waitpid(pids[i], &status, 0), pids[i]);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
    }
}

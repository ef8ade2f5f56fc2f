/* work.c: what the tests of the worker share. */
#include "tests/unit/worker/work.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "common/mem.h"
#include "tests/harness/look.h"
#include "worker/os/os.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE (120 * CLOCK_SEC)

char *work_dir_new(void)
{
    const char *base = getenv("TMPDIR");
    char *dir = mem_xasprintf("%s/work.XXXXXX", base != NULL ? base : "/tmp");

    cr_assert(mkdtemp(dir) != NULL, "%s", dir);
    cr_assert_eq(chmod(dir, 0755), 0);
    return dir;
}

void work_dir_remove(char **dir)
{
    cr_assert_eq(file_remove_tree(*dir), 0);
    free(*dir);
    *dir = NULL;
}

char *work_path(const char *dir, const char *name)
{
    return mem_xasprintf("%s/%s", dir, name);
}

void work_write(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    cr_assert(f != NULL, "%s", path);
    cr_assert(fputs(text, f) >= 0);
    cr_assert_eq(fclose(f), 0);
}

char *work_read(const char *path)
{
    struct buf text = BUF_INIT;
    char *s;

    cr_assert_eq(file_read_all(path, 64 * 1024 * 1024, &text), 0, "%s", path);
    s = mem_xstrdup(buf_str(&text));
    buf_fini(&text);
    return s;
}

bool work_there(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

void work_until(struct loop *loop, const bool *flag)
{
    int64_t end = clock_mono_ns() + PATIENCE;

    while (!*flag) {
        cr_assert(clock_mono_ns() < end, "waited in vain");
        loop_turn(loop, 20 * CLOCK_MS);
    }
}

void work_until_file(struct loop *loop, const char *path)
{
    int64_t end = clock_mono_ns() + PATIENCE;

    while (!work_there(path)) {
        cr_assert(clock_mono_ns() < end, "%s never came", path);
        loop_turn(loop, 5 * CLOCK_MS);
    }
}

void work_turn(struct loop *loop, int64_t ns)
{
    int64_t end = clock_mono_ns() + ns;

    while (clock_mono_ns() < end)
        loop_turn(loop, 5 * CLOCK_MS);
}

int work_sh(const char *fmt, ...)
{
    char command[8192];
    const char *const argv[] = {"sh", "-c", command, NULL};
    va_list ap;
    pid_t pid;
    int status;

    va_start(ap, fmt);
    (void)vsnprintf(command, sizeof(command), fmt, ap);
    va_end(ap);
    pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0) {
        (void)execv("/bin/sh", (char *const *)argv);
        _exit(127);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool work_alive(int64_t pid)
{
    struct os_proc proc;

    return os_proc_get(pid, &proc) == 0 && !proc.zombie;
}

void work_until_gone(int64_t pid)
{
    int64_t end = clock_mono_ns() + PATIENCE;

    while (work_alive(pid)) {
        cr_assert(clock_mono_ns() < end, "process %ld does not end", (long)pid);
        look_again();
    }
}

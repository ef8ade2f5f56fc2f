/* Folders of control groups whose worker is gone are removed by another's start; those that have an
 * owner, another name or a process in them stay. What only looks at names and locks is tried in an
 * ordinary folder, where rmdir() leaves what is not empty, too. */
#include "common/clock.h"
#include "common/diag.h"
#include "common/loop.h"
#include "tests/harness/look.h"
#include "tests/unit/worker/work.h"
#include "worker/os/confine.h"
#include "worker/os/confine_int.h"
#include "worker/os/os.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEX "0123456789abcdef"

static char *dir;

static void set_up(void)
{
    dir = work_dir_new();
}

static void tear_down(void)
{
    work_dir_remove(&dir);
}

TestSuite(confine_abandoned, .init = set_up, .fini = tear_down, .timeout = 60);

static const char *in(const char *name)
{
    static char path[4][CG_PATH];
    static unsigned next;
    char *p = path[next++ % 4];

    (void)snprintf(p, CG_PATH, "%s/%s", dir, name);
    return p;
}

Test(confine_abandoned, what_nobody_owns_goes_with_all_below)
{
    int fd = cg_own(in("makespan-" HEX));

    cr_assert_geq(fd, 0);
    cr_assert_eq(work_sh("cd %s && mkdir -p makespan-1111111111111111/17.1.run/own/deeper "
                         "makespan-2222222222222222",
                         dir),
                 0);
    cr_assert_eq(cg_remove_abandoned(in("makespan-" HEX)), 2u);
    cr_assert_not(work_there(in("makespan-1111111111111111")));
    cr_assert_not(work_there(in("makespan-2222222222222222")));
    cr_assert(work_there(in("makespan-" HEX)), "the own one stays");
    (void)close(fd);
}

Test(confine_abandoned, other_names_stay)
{
    int fd = cg_own(in("makespan-" HEX));

    cr_assert_geq(fd, 0);
    cr_assert_eq(work_sh("cd %s && mkdir makespan-self makespan-111111111111111 "
                         "makespan-11111111111111111 makespan-111111111111111G "
                         "makespan-111111111111111A other-1111111111111111 1111111111111111",
                         dir),
                 0);
    cr_assert_eq(cg_remove_abandoned(in("makespan-" HEX)), 0u);
    cr_assert_eq(work_sh("cd %s && [ $(ls | wc -l) -eq 8 ]", dir), 0);
    (void)close(fd);
}

Test(confine_abandoned, what_is_not_empty_stays)
{
    cr_assert_eq(work_sh("cd %s && mkdir -p makespan-1111111111111111/a "
                         "makespan-1111111111111111/b && touch makespan-1111111111111111/a/file && "
                         "ln -s / makespan-1111111111111111/b/link && "
                         "ln -s / makespan-2222222222222222",
                         dir),
                 0);
    cr_assert_eq(cg_remove_abandoned(in("makespan-" HEX)), 0u);
    cr_assert(work_there(in("makespan-1111111111111111/a/file")));
    cr_assert(work_there(in("makespan-1111111111111111/b/link")));
    cr_assert_eq(work_sh("rm %s %s %s", in("makespan-1111111111111111/a/file"),
                         in("makespan-1111111111111111/b/link"), in("makespan-2222222222222222")),
                 0);
}

/* Another process that owns a folder until it is killed. */
static pid_t owner_of(const char *path)
{
    int ready[2];
    char c = 'n';
    pid_t pid;

    cr_assert_eq(pipe(ready), 0);
    pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        c = cg_own(path) >= 0 ? 'y' : 'n';
        if (write(ready[1], &c, 1) != 1)
            _exit(1);
        (void)alarm(60); /* should the test end before */
        for (;;)
            (void)pause();
    }
    cr_assert_eq(read(ready[0], &c, 1), 1);
    cr_assert_eq(c, 'y');
    (void)close(ready[0]);
    (void)close(ready[1]);
    return pid;
}

static void end(pid_t pid)
{
    cr_assert_eq(kill(pid, SIGKILL), 0);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

Test(confine_abandoned, what_has_an_owner_stays_until_that_is_gone)
{
    pid_t one = owner_of(in("makespan-1111111111111111"));
    pid_t two = owner_of(in("makespan-1111111111111111"));

    cr_assert_eq(cg_remove_abandoned(in("makespan-" HEX)), 0u);
    end(one);
    cr_assert_eq(cg_remove_abandoned(in("makespan-" HEX)), 0u, "it has another owner");
    end(two);
    cr_assert_eq(cg_remove_abandoned(in("makespan-" HEX)), 1u);
    cr_assert_not(work_there(in("makespan-1111111111111111")));
}

/* Starts that make, and starts that remove, at the same time: who owns a folder has it. */
Test(confine_abandoned, nobody_loses_a_folder_that_was_just_made)
{
    enum { ROUNDS = 2000 };
    pid_t self = getpid(), remover = fork();

    cr_assert_geq(remover, 0);
    if (remover == 0) {
        while (getppid() == self)
            (void)cg_remove_abandoned(in("makespan-" HEX));
        _exit(1);
    }
    for (int i = 0; i < ROUNDS; i++) {
        int fd = cg_own(in("makespan-1111111111111111"));

        cr_assert_geq(fd, 0, "round %d", i);
        cr_assert(work_there(in("makespan-1111111111111111")), "round %d", i);
        (void)close(fd);
    }
    end(remover);
}

/* --- real control groups --- */

static struct confine *start_as(struct loop *loop, const char *tag)
{
    struct confine_opts opts = {.tag = tag};
    struct confine *confine;
    struct diag *diag = diag_new(8);

    cr_assert_eq(confine_new(loop, &opts, &confine, diag), 0, "%s", diag_first(diag));
    diag_free(&diag);
    return confine;
}

/* A worker that is killed with a group open, never to start again. */
static void die_as(const char *tag)
{
    pid_t pid = fork();

    cr_assert_geq(pid, 0);
    if (pid == 0) {
        struct confine *confine = start_as(loop_new(), tag);
        struct confine_group *group;
        struct diag *diag = diag_new(2);

        if (confine_begin(confine, "1.1.run", &group, diag) == 0)
            (void)kill(getpid(), SIGKILL);
        _exit(1);
    }
    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFSIGNALED(status));
}

Test(confine_abandoned, the_next_start_of_any_worker_removes_what_a_killed_one_left)
{
    char dead[17], alive[17], path[1200];
    struct os_cgroups at;
    struct confine *confine;
    struct loop *loop = loop_new();

    if (!os_is_root() || os_cgroups(&at) != 0 || at.v2[0] == '\0')
        cr_skip_test("no control groups of version 2 here");
    (void)snprintf(dead, sizeof dead, "dead%012lx", (unsigned long)getpid());
    (void)snprintf(alive, sizeof alive, "a11e%012lx", (unsigned long)getpid());
    die_as(dead);
    (void)snprintf(path, sizeof path, "%s/makespan-%s/1.1.run", at.v2, dead);
    if (!work_there(path))
        cr_skip_test("no control groups can be made here");
    /* With a process in it, it stays. */
    cr_assert_eq(work_sh("sleep 600 >/dev/null 2>&1 & echo $! >%s/pid; echo $! >%s/cgroup.procs", dir,
                         path),
                 0);
    confine = start_as(loop, alive);
    cr_assert(work_there(path));
    confine_free(&confine);
    cr_assert_eq(work_sh("kill -9 $(cat %s/pid)", dir), 0);
    /* A process that was killed leaves its group a moment later. */
    for (int64_t until = clock_mono_ns() + 30 * CLOCK_SEC; work_there(path); look_again()) {
        cr_assert_lt(clock_mono_ns(), until);
        confine = start_as(loop, alive);
        confine_free(&confine);
    }
    *strrchr(path, '/') = '\0';
    cr_assert_not(work_there(path));
    loop_free(&loop);
}

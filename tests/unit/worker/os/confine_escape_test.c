/* confine_escape_test.c: a build that leaves its control groups, as root can, and an ordinary user
 * within what was delegated to it, is ended all the same; and a crowd is counted as what it is. */
#include "worker/os/confine.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/loop.h"
#include "common/proc.h"
#include "common/str.h"
#include "tests/harness/look.h"
#include "tests/unit/worker/work.h"
#include "worker/os/confine_int.h"
#include "worker/os/os.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct cell {
    struct loop *loop;
    struct confine *confine;
    struct diag *diag;
    struct confine_group *group;
    struct proc *leader;
    bool ended;
    bool done;
    size_t killed;
    char *dir;
    struct buf leave; /* shell: moves this shell out of the groups */
};

static void open_cell(struct cell *c, unsigned use)
{
    char tag[33];
    struct confine_opts opts = {.tag = tag, .use = use};
    struct os_cgroups at;

    *c = (struct cell){.loop = loop_new(), .diag = diag_new(8), .dir = work_dir_new()};
    (void)snprintf(tag, sizeof(tag), "out.%ld", (long)getpid());
    cr_assert_eq(confine_new(c->loop, &opts, &c->confine, c->diag), 0);
    cr_assert_eq(os_cgroups(&at), 0);
    buf_add_str(&c->leave, "true");
    {
        const char *const folder[] = {at.v2, at.cpuacct, at.memory, at.freezer};

        for (size_t i = 0; i < ARRAY_LEN(folder); i++)
            if (folder[i][0] != '\0')
                buf_printf(&c->leave, "; echo $$ >%s/cgroup.procs", folder[i]);
    }
}

static void close_cell(struct cell *c)
{
    proc_free(&c->leader);
    confine_end(&c->group);
    confine_free(&c->confine);
    loop_free(&c->loop);
    diag_free(&c->diag);
    buf_fini(&c->leave);
    work_dir_remove(&c->dir);
}

static void on_end(struct proc *proc, const struct proc_end *end, void *arg)
{
    struct cell *c = arg;

    (void)proc;
    (void)end;
    c->ended = true;
}

static void on_left(const struct confine_left *left, void *arg)
{
    struct cell *c = arg;

    c->killed = left->killed;
    cr_expect_eq(left->stuck, 0);
    c->done = true;
}

static void start(struct cell *c, const char *command)
{
    const char *argv[] = {"/bin/sh", "-c", command, NULL};
    const char *env[] = {"PATH=/usr/bin:/bin", confine_env(c->confine), NULL};
    struct proc_spec spec = PROC_SPEC_INIT;

    spec.argv = argv;
    spec.env = env;
    spec.cwd = c->dir;
    spec.new_session = true;
    cr_assert_eq(confine_begin(c->confine, "1.1.run", &c->group, c->diag), 0);
    confine_join(c->group, &spec);
    cr_assert_eq(proc_spawn(c->loop, &spec, on_end, c, &c->leader, c->diag), 0);
    confine_led_by(c->group, proc_pid(c->leader));
}

static int64_t pid_in(const struct cell *c)
{
    char *path = work_path(c->dir, "pid"), *text;
    int64_t pid;

    work_until_file(c->loop, path);
    text = work_read(path);
    pid = look_number(text);
    free(text);
    free(path);
    cr_assert(pid > 1);
    return pid;
}

static const unsigned use[] = {CONFINE_ALL, CONFINE_V2, CONFINE_V1};

Test(confine_escape, a_daemon_outside_is_found_and_killed)
{
    for (size_t i = 0; i < ARRAY_LEN(use) && os_is_root(); i++) {
        struct cell c;
        struct buf command = BUF_INIT;
        int64_t pid;
        bool lives;

        open_cell(&c, use[i]);
        buf_printf(&command,
                   "setsid sh -c '%s; exec >/dev/null 2>&1; sleep 300 & echo $! >pid.tmp; mv "
                   "pid.tmp pid' & wait",
                   buf_str(&c.leave));
        start(&c, buf_str(&command));
        pid = pid_in(&c);
        work_until(c.loop, &c.ended);
        cr_expect(work_alive(pid));
        confine_kill(c.group, 0, 0, on_left, &c);
        work_until(c.loop, &c.done);
        lives = work_alive(pid);
        if (lives)
            (void)kill((pid_t)pid, SIGKILL);
        cr_expect_not(lives, "way %zu (%s)", i, confine_way_text(c.confine));
        cr_expect_eq(c.killed, 1, "way %zu: %zu", i, c.killed);
        buf_fini(&command);
        close_cell(&c);
    }
}

Test(confine_escape, a_leader_outside_is_killed)
{
    for (size_t i = 0; i < ARRAY_LEN(use) && os_is_root(); i++) {
        struct cell c;
        struct buf command = BUF_INIT;
        int64_t pid;
        bool lives;

        open_cell(&c, use[i]);
        buf_printf(&command, "%s; sleep 300 & echo $! >pid.tmp; mv pid.tmp pid; wait",
                   buf_str(&c.leave));
        start(&c, buf_str(&command));
        pid = pid_in(&c);
        confine_kill(c.group, 0, 0, on_left, &c);
        work_until(c.loop, &c.done);
        lives = work_alive(pid) || work_alive(proc_pid(c.leader));
        if (lives) {
            (void)kill((pid_t)pid, SIGKILL);
            (void)proc_signal(c.leader, SIGKILL, true);
        }
        cr_expect_not(lives, "way %zu (%s)", i, confine_way_text(c.confine));
        work_until(c.loop, &c.ended);
        buf_fini(&command);
        close_cell(&c);
    }
}

/* More than are told apart by their numbers: each counts once, however often it is seen. */
Test(confine_escape, a_crowd_is_counted_once)
{
    static const unsigned ways[] = {CONFINE_ALL, CONFINE_FOLLOW};

    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        struct cell c;

        open_cell(&c, ways[i]);
        start(&c, "i=0; while [ $i -lt 200 ]; do sleep 300 & i=$((i+1)); done");
        work_until(c.loop, &c.ended);
        confine_kill(c.group, 0, 0, on_left, &c);
        work_until(c.loop, &c.done);
        cr_expect_eq(c.killed, 200, "way %zu: %zu", i, c.killed);
        close_cell(&c);
    }
}

Test(confine_escape, names_of_workers)
{
    cr_expect(follow_is_worker_name("makespan-worker"));
    cr_expect_not(follow_is_worker_name("makespan"));
    cr_expect_not(follow_is_worker_name("sh"));
}

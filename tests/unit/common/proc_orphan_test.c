/* proc_orphan_test.c: this process as the reaper of orphaned descendants: all are reaped, and no status is stolen. */
#include "common/proc.h"

#include "common/clock.h"
#include "common/err.h"
#include "common/loop.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct seen {
    struct loop *loop;
    int ends;
    int bad_ends;
    int orphans;
    int64_t orphan_pid;
    struct proc_end orphan;
    struct proc_end end;
};

static void on_end(struct proc *proc, const struct proc_end *end, void *arg)
{
    struct seen *seen = arg;
    seen->ends++;
    seen->end = *end;
    if (end->signaled || end->exit_status != 9 || end->errno_value != 0) {
        seen->bad_ends++;
    }
    proc_free(&proc);
}

static void on_orphan(int64_t pid, const struct proc_end *end, void *arg)
{
    struct seen *seen = arg;
    seen->orphans++;
    seen->orphan_pid = pid;
    seen->orphan = *end;
}

static void spawn(struct seen *seen, const char *command, int out_fd)
{
    const char *argv[] = {"/bin/sh", "-c", command, NULL};
    struct proc_spec spec = PROC_SPEC_INIT;
    struct proc *proc = NULL;
    spec.argv = argv;
    spec.out_fd = out_fd;
    cr_assert_eq(proc_spawn(seen->loop, &spec, on_end, seen, &proc, NULL), 0);
}

static bool have_children(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void reap_here(struct seen *seen)
{
    int rc = proc_reap_orphans(seen->loop, on_orphan, seen);
    cr_assert_eq(rc, 0);
}

Test(proc_orphan, a_daemonised_descendant_is_reaped_with_its_status)
{
    struct seen seen = {.loop = loop_new()};
    int p[2];
    char text[32] = "";
    cr_assert_eq(pipe(p), 0);
    reap_here(&seen);
    /* the inner shell outlives its parent by as long as it takes this process to see that */
    spawn(&seen, "setsid sh -c 'echo $$; while [ $(cut -d\" \" -f4 /proc/$$/stat) != '$PPID' ]; do :; done; exit 5' & exit 9", p[1]);
    while (seen.ends < 1 || seen.orphans < 1) {
        loop_turn(seen.loop, CLOCK_SEC);
    }
    cr_assert_eq(seen.bad_ends, 0);
    cr_assert_gt(read(p[0], text, sizeof(text) - 1), 0);
    cr_assert_eq(seen.orphan_pid, strtol(text, NULL, 10));
    cr_assert_not(seen.orphan.signaled);
    cr_assert_eq(seen.orphan.exit_status, 5);
    cr_assert_eq(seen.orphan.start_ns, 0);
    cr_assert_gt(seen.orphan.end_ns, 0);
    cr_assert_gt(seen.orphan.usage.user_ns + seen.orphan.usage.sys_ns, 0);
    cr_assert_not(have_children());
    loop_free(&seen.loop);
}

Test(proc_orphan, a_killed_orphan)
{
    struct seen seen = {.loop = loop_new()};
    int p[2];
    char text[32] = "";
    reap_here(&seen);
    cr_assert_eq(pipe(p), 0);
    spawn(&seen, "setsid sleep 1000 >/dev/null & echo $!; exit 9", p[1]);
    while (seen.ends < 1) {
        loop_turn(seen.loop, CLOCK_SEC);
    }
    cr_assert_gt(read(p[0], text, sizeof(text) - 1), 0);
    pid_t pid = (pid_t)strtol(text, NULL, 10);
    cr_assert_eq(kill(pid, SIGTERM), 0);
    while (seen.orphans < 1) {
        loop_turn(seen.loop, CLOCK_SEC);
    }
    cr_assert_eq(seen.orphan_pid, pid);
    cr_assert(seen.orphan.signaled);
    cr_assert_eq(seen.orphan.signal, SIGTERM);
    loop_free(&seen.loop);
}

Test(proc_orphan, no_status_is_stolen_in_a_crowd)
{
    struct seen seen = {.loop = loop_new()};
    enum { CHILDREN = 30 };
    reap_here(&seen);
    for (int i = 0; i < CHILDREN; i++) {
        spawn(&seen, "(:) & (:) & exit 9", -1);
    }
    while (seen.ends < CHILDREN || have_children()) {
        loop_turn(seen.loop, 10 * CLOCK_MS);
    }
    cr_assert_eq(seen.ends, CHILDREN);
    cr_assert_eq(seen.bad_ends, 0);
    loop_free(&seen.loop);
}

/* The reaper's loop sees the end of another loop's child first, and leaves the telling to that loop. */
static void see_first(struct seen *reaper, struct seen *other)
{
    siginfo_t info;
    reap_here(reaper);
    spawn(other, "exit 9", -1);
    cr_assert_eq(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
    loop_turn(reaper->loop, CLOCK_SEC);
    cr_assert_not(have_children(), "the reaper took it");
    cr_assert_eq(reaper->orphans, 0);
    cr_assert_eq(other->ends, 0);
    while (other->ends < 1) {
        loop_turn(other->loop, CLOCK_SEC);
    }
    cr_assert_eq(other->bad_ends, 0);
    loop_free(&reaper->loop);
    loop_free(&other->loop);
}

Test(proc_orphan, children_of_an_older_loop_keep_their_status)
{
    struct seen other = {.loop = loop_new()};
    struct seen reaper = {.loop = loop_new()};
    see_first(&reaper, &other);
}

Test(proc_orphan, children_of_a_younger_loop_keep_their_status)
{
    struct seen reaper = {.loop = loop_new()};
    struct seen other = {.loop = loop_new()};
    see_first(&reaper, &other);
}

Test(proc_orphan, a_forgotten_child_is_no_orphan)
{
    struct seen seen = {.loop = loop_new()};
    const char *argv[] = {"/bin/sh", "-c", "exit 1", NULL};
    struct proc_spec spec = PROC_SPEC_INIT;
    struct proc *proc = NULL;
    reap_here(&seen);
    spec.argv = argv;
    cr_assert_eq(proc_spawn(seen.loop, &spec, on_end, &seen, &proc, NULL), 0);
    proc_free(&proc);
    while (have_children()) {
        loop_turn(seen.loop, 10 * CLOCK_MS);
    }
    cr_assert_eq(seen.orphans, 0);
    cr_assert_eq(seen.ends, 0);
    loop_free(&seen.loop);
}

Test(proc_orphan, orphans_that_ended_before_are_reaped_too)
{
    struct seen seen = {.loop = loop_new()};
    siginfo_t info;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(3);
    }
    cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    reap_here(&seen);
    loop_turn(seen.loop, CLOCK_SEC);
    cr_assert_eq(seen.orphans, 1);
    cr_assert_eq(seen.orphan_pid, pid);
    cr_assert_eq(seen.orphan.exit_status, 3);
    loop_free(&seen.loop);
}

Test(proc_orphan, no_new_privileges)
{
    struct seen seen = {.loop = loop_new()};
    const char *argv[] = {"/bin/sh", "-c", "grep -q 'NoNewPrivs:.1' /proc/self/status && exit 9", NULL};
    struct proc_spec spec = PROC_SPEC_INIT;
    struct proc *proc = NULL;
    spec.argv = argv;
    spec.no_new_privs = true;
    cr_assert_eq(proc_spawn(seen.loop, &spec, on_end, &seen, &proc, NULL), 0);
    while (seen.ends < 1) {
        loop_turn(seen.loop, CLOCK_SEC);
    }
    cr_assert_eq(seen.bad_ends, 0);
    loop_free(&seen.loop);
}

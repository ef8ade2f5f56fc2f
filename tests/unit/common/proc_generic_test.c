/* proc_generic_test.c: the tests of proc_test.c and proc_collect_test.c with what every system has (compat/generic.c): SIGCHLD instead of a descriptor of the process. */
#include "common/compat/generic.c"

#include "tests/unit/common/proc_collect_test.c"
#include "tests/unit/common/proc_test.c"

Test(proc_generic, nothing_of_linux_is_used)
{
    cr_assert_eq(compat_pidfd_open(getpid()), -ERR_UNSUP);
    struct loop *loop = loop_new();
    cr_assert_eq(proc_reap_orphans(loop, NULL, NULL), -ERR_UNSUP);
    loop_free(&loop);
}

Test(proc_generic, an_end_before_the_first_look_is_seen)
{
    const char *argv[] = {"/bin/true", NULL};
    struct seen seen = {.loop = loop_new()};
    struct proc *proc = NULL;
    struct proc_spec spec = plain;
    siginfo_t info;
    spec.argv = argv;
    cr_assert_eq(proc_spawn(seen.loop, &spec, on_end, &seen, &proc, NULL), 0);
    cr_assert_eq(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
    loop_run(seen.loop);
    cr_assert_eq(seen.end.exit_status, 0);
    proc_free(&proc);
    loop_free(&seen.loop);
}

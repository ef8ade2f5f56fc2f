/* proc_test.c: what a child is given, and what is learnt of its end. Collected output: proc_collect_test.c; orphans: proc_orphan_test.c. The same
 * tests without a descriptor of the process: proc_generic_test.c. */
#include "common/proc.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "tests/harness/place.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct seen {
    struct loop *loop;
    int calls;
    struct proc_end end;
};

static void on_end(struct proc *proc, const struct proc_end *end, void *arg)
{
    struct seen *seen = arg;
    cr_assert_not_null(proc);
    seen->calls++;
    seen->end = *end;
    loop_stop(seen->loop);
}

/* Runs a shell command to its end with the given other properties. */
static struct proc_end run(struct proc_spec spec, const char *command)
{
    const char *argv[] = {"/bin/sh", "-c", command, NULL};
    struct seen seen = {.loop = loop_new()};
    struct proc *proc = NULL;
    struct diag *diag = diag_new(4);
    spec.argv = argv;
    int rc = proc_spawn(seen.loop, &spec, on_end, &seen, &proc, diag);
    cr_assert_eq(rc, 0, "%s", diag_first(diag));
    loop_run(seen.loop);
    cr_assert_eq(seen.calls, 1);
    proc_free(&proc);
    cr_assert_null(proc);
    loop_free(&seen.loop);
    diag_free(&diag);
    return seen.end;
}

/* The standard output of a shell command. */
static const char *output_of(struct proc_spec spec, const char *command)
{
    static char text[10000];
    int p[2];
    cr_assert_eq(pipe(p), 0);
    spec.out_fd = p[1];
    struct proc_end end = run(spec, command);
    cr_assert(!end.signaled && end.exit_status == 0, "status %d of %s", end.exit_status, command);
    close(p[1]);
    size_t len = 0;
    ssize_t n;
    while ((n = read(p[0], text + len, sizeof(text) - 1 - len)) > 0) {
        len += (size_t)n;
    }
    text[len] = '\0';
    close(p[0]);
    return text;
}

static const struct proc_spec plain = PROC_SPEC_INIT;

Test(proc, exit_status)
{
    static const int statuses[] = {0, 1, 77, 127, 255};
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        char command[32];
        snprintf(command, sizeof(command), "exit %d", statuses[i]);
        struct proc_end end = run(plain, command);
        cr_assert_not(end.signaled);
        cr_assert_not(end.exec_failed);
        cr_assert_eq(end.exit_status, statuses[i]);
        cr_assert_eq(end.errno_value, 0);
    }
}

Test(proc, death_by_signal)
{
    static const int signals[] = {SIGTERM, SIGKILL, SIGSEGV};
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        char command[32];
        snprintf(command, sizeof(command), "kill -%d $$", signals[i]);
        struct proc_spec spec = plain;
        spec.no_core = true;
        struct proc_end end = run(spec, command);
        cr_assert(end.signaled);
        cr_assert_eq(end.signal, signals[i]);
    }
}

Test(proc, times_enclose_the_child)
{
    int64_t before = clock_mono_ns();
    struct proc_end end = run(plain, "sleep 0.05");
    int64_t after = clock_mono_ns();
    cr_assert_geq(end.start_ns, before);
    cr_assert_leq(end.end_ns, after);
    cr_assert_geq(end.end_ns - end.start_ns, 50 * CLOCK_MS);
}

Test(proc, usage_is_of_the_child_and_those_it_waited_for)
{
    struct proc_end idle = run(plain, "exit 0");
    struct proc_end busy = run(plain, "sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'; exit 0");
    cr_assert_gt(busy.usage.user_ns, 2 * idle.usage.user_ns + CLOCK_MS);
    cr_assert_leq(busy.usage.user_ns + busy.usage.sys_ns, (busy.end_ns - busy.start_ns) + 20 * CLOCK_MS,
                  "one at a time cannot use more than the time that passed");
    cr_assert_gt(busy.usage.max_rss_bytes, 100000);
    cr_assert_gt(busy.usage.minor_faults, idle.usage.minor_faults);
    struct proc_end sleepy = run(plain, "sleep 0.01; sleep 0.01");
    cr_assert_geq(sleepy.usage.voluntary_switches, 2);
}

static void assert_refused(struct proc_spec spec, const char *program, int code, const char *text)
{
    const char *argv[] = {program, "arg", NULL};
    struct seen seen = {.loop = loop_new()};
    struct proc *proc = NULL;
    struct diag *diag = diag_new(4);
    if (spec.argv == NULL) {
        spec.argv = argv;
    }
    cr_assert_eq(proc_spawn(seen.loop, &spec, on_end, &seen, &proc, diag), code, "%s", diag_first(diag));
    cr_assert_null(proc);
    cr_assert_str_eq(diag_first(diag), text);
    cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "no child is left");
    loop_turn(seen.loop, 0);
    cr_assert_eq(seen.calls, 0);
    loop_free(&seen.loop);
    diag_free(&diag);
}

Test(proc, a_program_that_cannot_be_executed)
{
    char path[200];
    char text[256];
    place_pattern(path, sizeof(path), "proc_test");
    assert_refused(plain, "/nonexistent/prog", -ERR_NOTFOUND, "cannot execute /nonexistent/prog: No such file or directory");
    assert_refused(plain, "no-such-program-here", -ERR_NOTFOUND, "cannot execute no-such-program-here: No such file or directory");
    assert_refused(plain, "", -ERR_NOTFOUND, "cannot execute : No such file or directory");
    assert_refused(plain, "/tmp", -ERR_PERM, "cannot execute /tmp: Permission denied");
    int fd = mkstemp(path);
    snprintf(text, sizeof(text), "cannot execute %s: Permission denied", path);
    assert_refused(plain, path, -ERR_PERM, text);
    cr_assert_eq(write(fd, "\177ELF rubbish", 12), 12);
    cr_assert_eq(fchmod(fd, 0755), 0);
    close(fd);
    snprintf(text, sizeof(text), "cannot execute %s: Exec format error", path);
    assert_refused(plain, path, -ERR_CHILD, text);
    unlink(path);
}

Test(proc, other_steps_that_fail)
{
    struct proc_spec spec = plain;
    spec.cwd = "/nonexistent";
    assert_refused(spec, "/bin/true", -ERR_NOTFOUND, "cannot enter /nonexistent to execute /bin/true: No such file or directory");
    spec = plain;
    spec.out_fd = 9999;
    assert_refused(spec, "/bin/true", -ERR_INVAL, "cannot set up the standard descriptors of /bin/true: Bad file descriptor");
    spec = plain;
    int ro = open("/dev/null", O_RDONLY);
    spec.join_fds[spec.join_count++] = ro;
    assert_refused(spec, "/bin/true", -ERR_INVAL, "cannot put into its control group /bin/true: Bad file descriptor");
    close(ro);
}

Test(proc, the_environment_is_what_was_given)
{
    static const char *const env[] = {"PATH=/usr/bin:/bin", "JOBS=4", "X=a b", NULL};
    struct proc_spec spec = plain;
    setenv("LEAK", "yes", 1);
    spec.env = env;
    cr_assert_str_eq(output_of(spec, "env | grep -v -e ^PWD= -e ^SHLVL= -e ^_= -e ^OLDPWD= | sort"),
                     "JOBS=4\nPATH=/usr/bin:/bin\nX=a b\n");
    cr_assert_str_eq(output_of(plain, "env | grep -v -e ^PWD= -e ^SHLVL= -e ^_= -e ^OLDPWD= | sort"),
                     "LC_ALL=C\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nTZ=UTC\n");
}

static void write_script(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    cr_assert_eq(fchmod(fd, mode), 0);
    close(fd);
}

Test(proc, programs_are_looked_up_in_the_path_of_the_environment)
{
    char dir[200];
    char path[256];
    char env_path[600];
    place_new_dir(dir, sizeof(dir), "proc_test");
    cr_assert_eq(chdir(dir), 0);
    cr_assert_eq(mkdir("first", 0755), 0);
    cr_assert_eq(mkdir("second", 0755), 0);
    write_script("here", "#!/bin/sh\nexit 1\n", 0755);
    write_script("first/tool", "#!/bin/sh\nexit 2\n", 0644); /* may not be executed: passed over */
    write_script("second/tool", "#!/bin/sh\nexit 3\n", 0755);
    snprintf(env_path, sizeof(env_path), "PATH=:/nonexistent:%s/first:.::/dev/null:%s/second", dir, dir);
    const char *const env[] = {"A=b", env_path, NULL};
    const char *argv[] = {"tool", NULL};
    struct proc_spec spec = plain;
    struct seen seen = {.loop = loop_new()};
    struct proc *proc = NULL;
    spec.argv = argv;
    spec.env = env;
    cr_assert_eq(proc_spawn(seen.loop, &spec, on_end, &seen, &proc, NULL), 0);
    loop_run(seen.loop);
    cr_assert_eq(seen.end.exit_status, 3);
    proc_free(&proc);
    argv[0] = "here";
    cr_assert_eq(proc_spawn(seen.loop, &spec, on_end, &seen, &proc, NULL), -ERR_NOTFOUND, "the working folder is not searched");
    argv[0] = "tool";
    snprintf(env_path, sizeof(env_path), "PATH=%s/first", dir);
    cr_assert_eq(proc_spawn(seen.loop, &spec, on_end, &seen, &proc, NULL), -ERR_PERM);
    loop_free(&seen.loop);
    cr_assert_eq(chdir("/"), 0);
    snprintf(path, sizeof(path), "rm -r %s", dir);
    cr_assert_eq(run(plain, path).exit_status, 0);
}

Test(proc, the_working_folder)
{
    struct proc_spec spec = plain;
    spec.cwd = "/usr/bin";
    cr_assert_str_eq(output_of(spec, "pwd"), "/usr/bin\n");
    cr_assert_eq(chdir("/tmp"), 0);
    cr_assert_str_eq(output_of(plain, "pwd"), "/tmp\n");
}

Test(proc, only_the_standard_descriptors_are_open)
{
    int p[2];
    cr_assert_eq(pipe(p), 0); /* without close-on-exec */
    cr_assert_eq(dup2(p[0], 200), 200);
    struct proc_spec spec = plain;
    cr_assert_str_eq(output_of(spec, "ls /proc/$$/fd; :"), "0\n1\n2\n");
    cr_assert_str_eq(output_of(spec, "readlink /proc/$$/fd/0 /proc/$$/fd/2"), "/dev/null\n/dev/null\n");
    cr_assert_eq(fcntl(200, F_GETFD), 0, "they stay open here");
}

Test(proc, standard_descriptors_may_be_permuted)
{
    /* 0, 1, 2 of this process become three files, and the child gets them in another order. */
    char text[64] = "";
    FILE *files[3];
    int keep[3];
    struct proc_spec spec = plain;
    for (int i = 0; i < 3; i++) {
        files[i] = tmpfile();
        cr_assert_not_null(files[i]);
        keep[i] = dup(i);
    }
    fputs("input\n", files[1]);
    fflush(files[1]);
    rewind(files[1]);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(dup2(fileno(files[i]), i), i);
    }
    lseek(1, 0, SEEK_SET);
    spec.in_fd = 1;
    spec.out_fd = 2;
    spec.err_fd = 0;
    struct proc_end end = run(spec, "read x; echo got $x; echo error >&2");
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(dup2(keep[i], i), i);
    }
    cr_assert_eq(end.exit_status, 0);
    cr_assert_gt(pread(fileno(files[2]), text, sizeof(text) - 1, 0), 0);
    cr_assert_str_eq(text, "got input\n");
    memset(text, 0, sizeof(text));
    cr_assert_gt(pread(fileno(files[0]), text, sizeof(text) - 1, 0), 0);
    cr_assert_str_eq(text, "error\n");
}

Test(proc, a_process_without_standard_descriptors_can_start_children)
{
    int p[2];
    char text[16] = "";
    int keep = dup(2);
    cr_assert_eq(pipe(p), 0);
    close(0);
    close(1);
    close(2);
    struct proc_spec spec = plain;
    spec.out_fd = p[1];
    struct proc_end end = run(spec, "read x; echo out; echo err >&2; exit 5");
    cr_assert_eq(dup2(keep, 2), 2);
    cr_assert_eq(end.exit_status, 5);
    cr_assert_eq(read(p[0], text, sizeof(text) - 1), 4);
    cr_assert_str_eq(text, "out\n");
    cr_assert_eq(fcntl(0, F_GETFD), -1, "nothing was left open");
    cr_assert_eq(fcntl(1, F_GETFD), -1);
}

static void handler(int number)
{
    (void)number;
}

Test(proc, signals_are_at_their_defaults)
{
    sigset_t set;
    sigset_t now;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR1, handler);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    const char *text = output_of(plain, "cat /proc/self/status");
    static const char *const kinds[] = {"SigBlk:\t", "SigIgn:\t", "SigCgt:\t"};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const char *at = strstr(text, kinds[i]);
        cr_assert_not_null(at);
        unsigned long long mask = strtoull(at + strlen(kinds[i]), NULL, 16);
        cr_assert_eq(mask & ~0x180000000ULL, 0, "%s%llx", kinds[i], mask); /* 32 and 33 are the library's own */
    }
    sigprocmask(SIG_BLOCK, NULL, &now);
    cr_assert(sigismember(&now, SIGTERM) && sigismember(&now, SIGUSR2) && !sigismember(&now, SIGINT), "here nothing changed");
    struct sigaction action;
    cr_assert_eq(sigaction(SIGPIPE, NULL, &action), 0);
    cr_assert(action.sa_handler == SIG_IGN);
}

Test(proc, an_ignored_sigchld_is_mended)
{
    signal(SIGCHLD, SIG_IGN);
    cr_assert_eq(run(plain, "exit 7").exit_status, 7);
}

Test(proc, a_status_that_another_took_is_said)
{
    const char *argv[] = {"/bin/true", NULL};
    struct seen seen = {.loop = loop_new()};
    struct proc *proc = NULL;
    struct proc_spec spec = plain;
    spec.argv = argv;
    cr_assert_eq(proc_spawn(seen.loop, &spec, on_end, &seen, &proc, NULL), 0);
    cr_assert_eq(waitpid((pid_t)proc_pid(proc), NULL, 0), (pid_t)proc_pid(proc));
    loop_run(seen.loop);
    cr_assert_eq(seen.calls, 1);
    cr_assert_eq(seen.end.exit_status, 255);
    cr_assert_eq(seen.end.errno_value, ECHILD);
    cr_assert_eq(proc_signal(proc, SIGTERM, false), -ERR_NOTFOUND);
    proc_free(&proc);
    loop_free(&seen.loop);
}

Test(proc, session_and_group)
{
    struct proc_spec spec = plain;
    char want[64];
    snprintf(want, sizeof(want), "%ld %ld\n", (long)getpgrp(), (long)getsid(0));
    /* fields 5 and 6 of stat are group and session, and sh has no space in its name */
    cr_assert_str_eq(output_of(plain, "cut -d' ' -f5,6 /proc/$$/stat"), want);
    spec.new_session = true;
    cr_assert_str_eq(output_of(spec, "set -- $(cut -d' ' -f5,6 /proc/$$/stat); [ $1 = $$ ] && [ $2 = $$ ] && echo leader"), "leader\n");
}

Test(proc, niceness_and_limits)
{
    struct proc_spec spec = plain;
    char want[32];
    spec.nice = 3;
    snprintf(want, sizeof(want), "%d\n", getpriority(PRIO_PROCESS, 0) + 3);
    cr_assert_str_eq(output_of(spec, "cut -d' ' -f19 /proc/$$/stat"), want);
    spec = plain;
    spec.file_size_limit = 1024000;
    cr_assert_str_eq(output_of(spec, "grep 'Max file size' /proc/$$/limits | tr -s ' '"), "Max file size 1024000 1024000 bytes \n");
    spec = plain;
    spec.no_core = true;
    cr_assert_str_eq(output_of(spec, "grep 'Max core' /proc/$$/limits | tr -s ' '"), "Max core file size 0 0 bytes \n");
}

Test(proc, joins_before_it_runs)
{
    int p[2][2];
    struct proc_spec spec = plain;
    char text[16] = "";
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(pipe(p[i]), 0);
        spec.join_fds[spec.join_count++] = p[i][1];
    }
    cr_assert_eq(run(spec, "exit 0").exit_status, 0);
    for (int i = 0; i < 2; i++) {
        memset(text, 0, sizeof(text));
        cr_assert_eq(read(p[i][0], text, sizeof(text)), 2);
        cr_assert_str_eq(text, "0\n");
    }
}

Test(proc, another_user)
{
    struct proc_spec spec = plain;
    spec.set_user = true;
    spec.uid = 65534;
    spec.gid = 65534;
    if (geteuid() != 0) {
        assert_refused(spec, "/bin/true", -ERR_PERM, "cannot change the user of /bin/true: Operation not permitted");
        return;
    }
    cr_assert_str_eq(output_of(spec, "grep -e ^Uid -e ^Gid -e ^Groups /proc/self/status | tr -s ' \\t' ' '"),
                     "Uid: 65534 65534 65534 65534\nGid: 65534 65534 65534 65534\nGroups: \n");
    cr_assert_neq(run(spec, "cat /etc/shadow").exit_status, 0);
    cr_assert_eq(geteuid(), 0, "this process stays what it is");
    char dir[200];
    char text[300];
    place_new_dir(dir, sizeof(dir), "proc_test"); /* root's alone */
    spec.cwd = dir;
    snprintf(text, sizeof(text), "cannot enter %s to execute /bin/true: Permission denied", dir);
    assert_refused(spec, "/bin/true", -ERR_PERM, text);
    rmdir(dir);
}

Test(proc, signals_to_child_and_group)
{
    const char *argv[] = {"/bin/sh", "-c", "sleep 1000 & echo $!; wait", NULL};
    struct seen seen = {.loop = loop_new()};
    struct proc *proc = NULL;
    struct proc_spec spec = plain;
    char text[32] = "";
    int p[2];
    cr_assert_eq(pipe(p), 0);
    spec.argv = argv;
    spec.new_session = true;
    spec.out_fd = p[1];
    cr_assert_eq(proc_spawn(seen.loop, &spec, on_end, &seen, &proc, NULL), 0);
    close(p[1]);
    cr_assert_gt(read(p[0], text, sizeof(text) - 1), 0);
    cr_assert_eq(proc_signal(proc, 0, false), 0);
    cr_assert_eq(proc_signal(proc, SIGTERM, true), 0);
    loop_run(seen.loop);
    cr_assert(seen.end.signaled);
    cr_assert_eq(seen.end.signal, SIGTERM);
    cr_assert_eq(read(p[0], text, sizeof(text)), 0, "the sleeper of the group died as well: nobody holds the pipe");
    cr_assert_eq(proc_signal(proc, SIGTERM, true), -ERR_NOTFOUND, "a child that has ended is left alone");
    proc_free(&proc);
    loop_free(&seen.loop);
    close(p[0]);
}

Test(proc, a_forgotten_child_is_reaped_without_a_word)
{
    const char *argv[] = {"/bin/sh", "-c", "read x; exit 3", NULL};
    struct seen seen = {.loop = loop_new()};
    struct proc *proc = NULL;
    struct proc_spec spec = plain;
    int p[2];
    cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
    spec.argv = argv;
    spec.in_fd = p[0];
    cr_assert_eq(proc_spawn(seen.loop, &spec, on_end, &seen, &proc, NULL), 0);
    pid_t pid = (pid_t)proc_pid(proc);
    proc_free(&proc);
    cr_assert_null(proc);
    proc_free(&proc);
    cr_assert_eq(kill(pid, 0), 0, "it was not killed");
    close(p[1]);
    while (kill(pid, 0) == 0) { /* until it is reaped; the runner's time limit ends a failure */
        loop_turn(seen.loop, 10 * CLOCK_MS);
    }
    cr_assert_eq(seen.calls, 0);
    loop_free(&seen.loop);
}

Test(proc, a_loop_may_end_before_a_forgotten_child)
{
    const char *argv[] = {"/bin/sh", "-c", "read x", NULL};
    struct seen seen = {.loop = loop_new()};
    struct proc *proc = NULL;
    struct proc_spec spec = plain;
    int p[2];
    cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
    spec.argv = argv;
    spec.in_fd = p[0];
    cr_assert_eq(proc_spawn(seen.loop, &spec, on_end, &seen, &proc, NULL), 0);
    pid_t pid = (pid_t)proc_pid(proc);
    proc_free(&proc);
    loop_free(&seen.loop);
    close(p[1]);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    cr_assert_eq(seen.calls, 0);
}

static void on_end_free(struct proc *proc, const struct proc_end *end, void *arg)
{
    struct seen *seen = arg;
    seen->end = *end;
    if (++seen->calls == 20) {
        loop_stop(seen->loop);
    }
    proc_free(&proc);
}

Test(proc, many_at_once_each_told_once)
{
    struct seen seen = {.loop = loop_new()};
    struct proc_spec spec = plain;
    for (int i = 0; i < 20; i++) {
        const char *argv[] = {"/bin/true", NULL};
        struct proc *proc = NULL;
        spec.argv = argv;
        cr_assert_eq(proc_spawn(seen.loop, &spec, on_end_free, &seen, &proc, NULL), 0);
    }
    loop_run(seen.loop);
    cr_assert_eq(seen.calls, 20);
    cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1);
    loop_free(&seen.loop);
}

Test(proc, children_of_two_loops)
{
    struct seen a = {.loop = loop_new()};
    struct seen b = {.loop = loop_new()};
    const char *argv_a[] = {"/bin/sh", "-c", "exit 1", NULL};
    const char *argv_b[] = {"/bin/sh", "-c", "exit 2", NULL};
    struct proc *pa = NULL;
    struct proc *pb = NULL;
    struct proc_spec spec = plain;
    spec.argv = argv_a;
    cr_assert_eq(proc_spawn(a.loop, &spec, on_end, &a, &pa, NULL), 0);
    spec.argv = argv_b;
    cr_assert_eq(proc_spawn(b.loop, &spec, on_end, &b, &pb, NULL), 0);
    loop_run(b.loop);
    loop_run(a.loop);
    cr_assert_eq(a.end.exit_status, 1);
    cr_assert_eq(b.end.exit_status, 2);
    proc_free(&pa);
    proc_free(&pb);
    loop_free(&a.loop);
    loop_free(&b.loop);
}

/* confine_test.c: a build's tree of processes is held, counted and ended, in every way that this
 * machine has. */
#include "worker/os/confine.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/proc.h"
#include "tests/harness/look.h"
#include "tests/unit/worker/work.h"
#include "worker/os/os.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A user of its own for each test: they run side by side, and each kills all that its user runs. */
#define UID_BASE 1000000u

static uint32_t build_uid(void)
{
    return UID_BASE + (uint32_t)getpid();
}

struct box {
    uint32_t uid;
    struct loop *loop;
    struct confine *confine;
    struct diag *diag;
    struct confine_group *group;
    struct proc *leader;
    struct proc_end end;
    bool ended;
    bool done;
    struct confine_left left;
    char names[300];
    char *dir;
};

/* Each way of this test; those that the machine does not have become following. */
static const struct {
    unsigned use;
    bool user; /* as another user that owns nothing else */
} way[] = {{CONFINE_ALL, false},    {CONFINE_V2, false}, {CONFINE_V1, false},
           {CONFINE_FOLLOW, false}, {CONFINE_ALL, true}, {CONFINE_FOLLOW, true}};

/* `owner` makes the tag this test's own: others may run this program at the same time. */
static void open_box_as(struct box *b, unsigned use, bool user, const char *name, uint32_t owner)
{
    char tag[33];
    uint32_t uid = UID_BASE + owner;
    struct confine_opts opts = {
        .tag = tag, .use = use, .set_user = user, .uid = uid, .uid_is_ours = user};

    (void)snprintf(tag, sizeof(tag), "%s.%u", name, owner);

    memset(b, 0, sizeof(*b));
    b->uid = uid;
    b->loop = loop_new();
    b->diag = diag_new(8);
    b->dir = work_dir_new();
    if (user)
        cr_assert_eq(chown(b->dir, uid, uid), 0);
    cr_assert_eq(confine_new(b->loop, &opts, &b->confine, b->diag), 0);
}

static void open_box(struct box *b, unsigned use, bool user, const char *tag)
{
    open_box_as(b, use, user, tag, (uint32_t)getpid());
}

static void close_box(struct box *b)
{
    confine_free(&b->confine);
    loop_free(&b->loop);
    diag_free(&b->diag);
    work_dir_remove(&b->dir);
}

static void on_end(struct proc *proc, const struct proc_end *end, void *arg)
{
    struct box *b = arg;

    (void)proc;
    b->end = *end;
    b->ended = true;
}

static void start(struct box *b, const char *command, bool user)
{
    const char *argv[] = {"/bin/sh", "-c", command, NULL};
    const char *env[] = {"PATH=/usr/bin:/bin", confine_env(b->confine), NULL};
    struct proc_spec spec = PROC_SPEC_INIT;

    b->ended = false;
    spec.argv = argv;
    spec.env = env;
    spec.cwd = b->dir;
    spec.new_session = true;
    spec.set_user = user;
    spec.uid = b->uid;
    spec.gid = b->uid;
    cr_assert_eq(confine_begin(b->confine, "1.1.run", &b->group, b->diag), 0, "%s",
                 diag_first(b->diag));
    confine_join(b->group, &spec);
    cr_assert_eq(proc_spawn(b->loop, &spec, on_end, b, &b->leader, b->diag), 0, "%s",
                 diag_first(b->diag));
    confine_led_by(b->group, proc_pid(b->leader));
}

static void on_left(const struct confine_left *left, void *arg)
{
    struct box *b = arg;

    b->left = *left;
    (void)snprintf(b->names, sizeof(b->names), "%s", left->names);
    b->done = true;
}

static void kill_and_end(struct box *b)
{
    b->done = false;
    confine_kill(b->group, 0, 0, on_left, b);
    cr_assert_not(b->done, "never from within the call");
    work_until(b->loop, &b->done);
    work_until(b->loop, &b->ended);
    proc_free(&b->leader);
    confine_end(&b->group);
}

static int64_t pid_in(const struct box *b, const char *name)
{
    char *path = work_path(b->dir, name), *text;
    int64_t pid;

    work_until_file(b->loop, path);
    do {
        text = work_read(path);
        pid = look_number(text);
        free(text);
        if (pid == 0)
            loop_turn(b->loop, CLOCK_MS);
    } while (pid == 0);
    free(path);
    return pid;
}

Test(confine, an_empty_tree_leaves_nothing)
{
    for (size_t i = 0; i < ARRAY_LEN(way); i++) {
        struct box b;

        if (way[i].user && !os_is_root())
            continue;
        open_box(&b, way[i].use, way[i].user, "t1");
        start(&b, "true", way[i].user);
        work_until(b.loop, &b.ended);
        cr_expect_eq(b.end.exit_status, 0);
        kill_and_end(&b);
        cr_expect_eq(b.left.killed, 0);
        cr_expect_eq(b.left.stuck, 0);
        cr_expect_str_eq(b.names, "");
        close_box(&b);
    }
}

/* A daemon that does all that daemons do: two forks, a session of its own, no descriptors,
 * another folder. */
#define DAEMON                                                                                     \
    "setsid sh -c 'cd /; exec >/dev/null 2>&1 </dev/null; sleep 1000 & echo $! >%s/pid.tmp; mv "   \
    "%s/pid.tmp %s/pid' & wait"

Test(confine, a_daemon_is_found_named_and_killed)
{
    for (size_t i = 0; i < ARRAY_LEN(way); i++) {
        struct box b;
        char command[4096];
        int64_t pid;

        if (way[i].user && !os_is_root())
            continue;
        open_box(&b, way[i].use, way[i].user, "t2");
        (void)snprintf(command, sizeof(command), DAEMON, b.dir, b.dir, b.dir);
        start(&b, command, way[i].user);
        pid = pid_in(&b, "pid");
        work_until(b.loop, &b.ended);
        cr_expect(work_alive(pid));
        kill_and_end(&b);
        cr_expect_not(work_alive(pid), "way %zu (%s)", i, confine_way_text(b.confine));
        cr_expect_eq(b.left.killed, 1, "way %zu: %zu", i, b.left.killed);
        cr_expect_eq(b.left.stuck, 0);
        cr_expect(strncmp(b.names, "sleep (", 7) == 0, "%s", b.names);
        close_box(&b);
    }
}

Test(confine, what_ends_by_itself_is_no_survivor)
{
    struct box b;

    open_box(&b, CONFINE_ALL, false, "t3");
    /* The child goes as soon as it sees that its parent went. */
    start(&b, "(read a; exit 0) <fifo & exec 9>fifo; exit 0", false);
    work_until(b.loop, &b.ended);
    kill_and_end(&b);
    cr_expect_eq(b.left.killed, 0);
    close_box(&b);
}

Test(confine, many_generations_and_a_forking_crowd)
{
    for (size_t i = 0; i < ARRAY_LEN(way); i++) {
        struct box b;
        int64_t pid;

        if (way[i].user && !os_is_root())
            continue;
        open_box(&b, way[i].use, way[i].user, "t4");
        /* A chain that forks on as fast as it can, each link leaving its parent: only its newest
         * process lives. */
        start(&b,
              "cat >chain <<'E'\n"
              "n=$1; [ $n -gt 4000 ] && exec sleep 1000\n"
              "[ $n = 30 ] && echo $$ >deep.tmp && mv deep.tmp deep\n"
              "sh chain $((n+1)) &\n"
              "E\n"
              "setsid sh chain 1 & for k in 1 2 3 4 5 6 7 8; do sleep 1000 & done; exit 3",
              way[i].user);
        pid = pid_in(&b, "deep");
        cr_expect(pid > 1);
        work_until(b.loop, &b.ended);
        cr_expect_eq(b.end.exit_status, 3);
        kill_and_end(&b);
        cr_expect_geq(b.left.killed, 8, "way %zu: %zu", i, b.left.killed);
        cr_expect_eq(b.left.stuck, 0);
        /* Nothing is left that runs in the folder. */
        cr_expect_neq(
            work_sh(
                "for p in /proc/[0-9]*; do [ \"$(readlink $p/cwd)\" = %s ] && exit 0; done; exit 1",
                b.dir),
            0, "way %zu", i);
        close_box(&b);
    }
}

Test(confine, a_leader_that_ignores_sigterm_is_killed_too)
{
    for (size_t i = 0; i < ARRAY_LEN(way); i++) {
        struct box b;
        int64_t pid;

        if (way[i].user && !os_is_root())
            continue;
        open_box(&b, way[i].use, way[i].user, "t5");
        start(
            &b,
            "trap '' TERM HUP INT; echo $$ >pid.tmp; mv pid.tmp pid; while :; do sleep 1000; done",
            way[i].user);
        pid = pid_in(&b, "pid");
        confine_signal(b.group, SIGTERM);
        work_turn(b.loop, 50 * CLOCK_MS);
        cr_expect_not(b.ended);
        kill_and_end(&b);
        cr_expect(b.end.signaled);
        cr_expect_eq(b.end.signal, SIGKILL);
        cr_expect_not(work_alive(pid));
        close_box(&b);
    }
}

Test(confine, a_polite_signal_reaches_every_process)
{
    for (size_t i = 0; i < ARRAY_LEN(way); i++) {
        struct box b;
        char *said;

        if (way[i].user && !os_is_root())
            continue;
        open_box(&b, way[i].use, way[i].user, "t6");
        said = work_path(b.dir, "said");
        start(&b,
              "setsid sh -c 'trap \"echo heard >said; exit\" TERM; echo $$ >pid.tmp; mv pid.tmp "
              "pid; while :; do sleep 0.01; done' & "
              "exec sleep 1000",
              way[i].user);
        cr_expect(pid_in(&b, "pid") > 1);
        confine_signal(b.group, SIGTERM);
        work_until(b.loop, &b.ended);
        cr_expect_eq(b.end.signal, SIGTERM);
        work_until_file(b.loop, said);
        kill_and_end(&b);
        free(said);
        close_box(&b);
    }
}

Test(confine, stopped_processes_die)
{
    for (size_t i = 0; i < ARRAY_LEN(way); i++) {
        struct box b;
        int64_t pid;

        if (way[i].user && !os_is_root())
            continue;
        open_box(&b, way[i].use, way[i].user, "t7");
        start(&b, "sleep 1000 & echo $! >pid.tmp; mv pid.tmp pid; kill -STOP $!; kill -STOP $$",
              way[i].user);
        pid = pid_in(&b, "pid");
        kill_and_end(&b);
        cr_expect(b.end.signaled);
        cr_expect_not(work_alive(pid));
        close_box(&b);
    }
}

/* CPU time of a daemon and of children that nobody waits for counts too. */
Test(confine, time_of_the_whole_tree)
{
    static const char work[] = "spin() { i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; }; ";
    int64_t alone, tree;

    for (size_t i = 0; i < ARRAY_LEN(way); i++) {
        struct confine_usage usage, now;
        struct box b;
        char command[1024];

        if (way[i].user && !os_is_root())
            continue;
        open_box(&b, way[i].use, way[i].user, "t8");
        (void)snprintf(command, sizeof(command), "%s spin", work);
        start(&b, command, way[i].user);
        work_until(b.loop, &b.ended);
        kill_and_end(&b);
        alone = b.end.usage.user_ns + b.end.usage.sys_ns;
        cr_assert(alone > 0);
        (void)snprintf(command, sizeof(command),
                       "%s mkfifo far near; (setsid sh -c '%s spin; spin; echo >far' &); "
                       "(sh -c '%s spin; spin; echo >near' &); read x <far; read x <near",
                       work, work, work);
        start(&b, command, way[i].user);
        work_until(b.loop, &b.ended);
        confine_usage(b.group, NULL, &now);
        confine_usage(b.group, &b.end.usage, &usage);
        if (usage.way == CPU_WAY_CGROUP2 || usage.way == CPU_WAY_CGROUP1)
            cr_expect_eq(now.way, usage.way);
        b.done = false;
        confine_kill(b.group, 0, 0, on_left, &b);
        work_until(b.loop, &b.done);
        if (usage.way == CPU_WAY_REAPER)
            confine_usage(b.group, &b.end.usage, &usage);
        tree = usage.user_ns + usage.sys_ns;
        /* Four spins, of which the leader waited for none. A machine's speed varies, fourfold it
         * does not. */
        cr_expect(tree > alone, "way %zu (%s): %lld of %lld", i, vocab_cpu_way((int)usage.way),
                  (long long)tree, (long long)alone);
        cr_expect(b.end.usage.user_ns + b.end.usage.sys_ns < alone, "way %zu", i);
        proc_free(&b.leader);
        confine_end(&b.group);
        close_box(&b);
    }
}

Test(confine, memory_of_all_together)
{
    struct confine_usage usage;
    struct box b;

    open_box(&b, CONFINE_ALL, false, "t9");
    start(&b, "head -c 30000000 /dev/zero | tail -c 30000000 >/dev/null", false);
    work_until(b.loop, &b.ended);
    confine_usage(b.group, &b.end.usage, &usage);
    cr_expect(usage.peak_bytes == -1 || usage.peak_bytes > 20000000, "%lld",
              (long long)usage.peak_bytes);
    kill_and_end(&b);
    close_box(&b);
}

Test(confine, one_group_at_a_time)
{
    struct confine_group *other;
    struct box b;

    open_box(&b, CONFINE_ALL, false, "t10");
    start(&b, "exec sleep 1000", false);
    cr_expect_eq(confine_begin(b.confine, "other", &other, b.diag), -ERR_STATE);
    cr_expect_null(other);
    cr_expect_eq(confine_sweep(b.confine, on_left, &b, b.diag), -ERR_STATE);
    kill_and_end(&b);
    close_box(&b);
}

/* A worker that died: what it left is found by the next one with its tag, and not by one with
 * another. */
Test(confine, leftovers_of_a_dead_worker)
{
    for (size_t i = 0; i < ARRAY_LEN(way); i++) {
        uint32_t uid = build_uid();
        struct box b, next;
        pid_t worker;
        int64_t pid;
        int go[2];
        char byte;
        char *path;

        if (way[i].user && !os_is_root())
            continue;
        cr_assert_eq(pipe(go), 0);
        b.dir = work_dir_new();
        path = work_path(b.dir, "pid");
        worker = fork();
        cr_assert(worker >= 0);
        if (worker == 0) {
            char *dir = b.dir, command[4096];

            open_box_as(&b, way[i].use, false, "dead", uid - UID_BASE);
            work_dir_remove(&b.dir);
            b.dir = dir;
            if (way[i].user && chown(dir, uid, uid) != 0)
                _exit(1);
            (void)snprintf(command, sizeof(command), DAEMON "; sleep 1000", dir, dir, dir);
            start(&b, command, way[i].user);
            (void)pid_in(&b, "pid");
            (void)!write(go[1], "x", 1);
            for (;;)
                (void)pause();
        }
        (void)close(go[1]); /* a worker that failed is the end of the pipe */
        cr_assert_eq(read(go[0], &byte, 1), 1);
        cr_assert_eq(kill(worker, SIGKILL), 0);
        cr_assert_eq(waitpid(worker, NULL, 0), worker);
        {
            char *text = work_read(path);

            pid = look_number(text);
            free(text);
        }
        cr_assert(work_alive(pid));
        open_box(&next, way[i].use, false, "other");
        cr_assert_eq(confine_sweep(next.confine, on_left, &next, next.diag), 0);
        work_until(next.loop, &next.done);
        cr_expect_eq(next.left.killed, 0, "way %zu: another worker's is not touched: %s", i,
                     next.names);
        cr_expect(work_alive(pid));
        close_box(&next);
        open_box(&next, way[i].use, way[i].user, "dead");
        cr_assert_eq(confine_sweep(next.confine, on_left, &next, next.diag), 0);
        work_until(next.loop, &next.done);
        cr_expect_geq(next.left.killed, 2, "way %zu: %s", i, next.names);
        cr_expect_not(work_alive(pid), "way %zu", i);
        next.done = false;
        cr_assert_eq(confine_sweep(next.confine, on_left, &next, next.diag), 0);
        work_until(next.loop, &next.done);
        cr_expect_eq(next.left.killed, 0, "nothing is left the second time");
        close_box(&next);
        (void)close(go[0]);
        free(path);
        work_dir_remove(&b.dir);
    }
}

/* Waits until a process has become that program. */
static void until_program(pid_t pid, const char *name)
{
    int64_t end = clock_mono_ns() + 60 * CLOCK_SEC;
    struct os_proc proc;

    while (os_proc_get(pid, &proc) != 0 || strcmp(proc.name, name) != 0) {
        cr_assert(clock_mono_ns() < end, "%ld does not become %s", (long)pid, name);
        look_again();
    }
}

/* The user of the builds owns nothing else: what it has others do for it (cron, at) is found,
 * another worker's builds are not touched. */
Test(confine, every_process_of_the_builds_own_user)
{
    static const unsigned use[] = {CONFINE_ALL, CONFINE_FOLLOW};

    if (!os_is_root())
        return;
    for (size_t i = 0; i < ARRAY_LEN(use); i++) {
        struct box b;
        uint32_t uid = build_uid();
        pid_t stray, other;
        int64_t child;
        char *path, command[512];

        open_box(&b, use[i], true, "t11");
        /* Children of this test that began before the group: no descendants of the build. */
        stray = fork();
        if (stray == 0) {
            if (setgid(uid) != 0 || setuid(uid) != 0)
                _exit(1);
            (void)execlp("sleep", "sleep", "1000", (char *)NULL);
            _exit(127);
        }
        /* A program with the name of a worker, which has a build of the same user below it. */
        path = work_path(b.dir, "makespan-worker");
        cr_assert_eq(work_sh("cp /bin/sh %s", path), 0);
        (void)snprintf(command, sizeof(command),
                       "setpriv --reuid %u --regid %u --clear-groups sh -c 'echo $$ >pid.tmp; mv "
                       "pid.tmp pid; exec sleep 1000' & wait",
                       build_uid(), build_uid());
        other = fork();
        if (other == 0) {
            (void)chdir(b.dir);
            (void)execl(path, "makespan-worker", "-c", command, (char *)NULL);
            _exit(127);
        }
        child = pid_in(&b, "pid");
        until_program(stray, "sleep");
        /* The system tells starts by ticks of 10 ms: who began in the leader's tick may be its own. */
        for (int64_t end = clock_mono_ns() + 30 * CLOCK_MS; clock_mono_ns() < end;)
            look_again();
        start(&b, "true", true);
        work_until(b.loop, &b.ended);
        kill_and_end(&b);
        cr_expect_eq(b.left.killed, 1, "%s", b.names);
        cr_expect_not(work_alive(stray), "the loop has reaped it too");
        cr_expect(work_alive(child), "of another worker");
        cr_assert_eq(kill((pid_t)child, SIGKILL), 0);
        cr_assert_eq(waitpid(other, NULL, 0), other);
        free(path);
        close_box(&b);
    }
}

/* Folders of groups whose worker died, and of what was killed a moment ago: none stays. */
Test(confine, no_folder_is_left_behind)
{
    struct os_cgroups at;
    struct box b;
    char parent[1100];

    if (!os_is_root() || os_cgroups(&at) != 0 || at.v2[0] == '\0')
        return;
    open_box(&b, CONFINE_ALL, false, "t12");
    if (strncmp(confine_way_text(b.confine), "cgroup2", 7) == 0) {
        (void)snprintf(parent, sizeof(parent), "%s/makespan-t12.%ld", at.v2, (long)getpid());
        cr_assert_eq(work_sh("cd %s && mkdir a b c d", parent), 0);
        start(&b, "for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; wait", false);
        cr_expect_eq(work_sh("cd %s && ls -d [a-d] >/dev/null 2>&1", parent), 2,
                     "all four are gone");
        confine_signal(b.group, SIGKILL);
        confine_abandon(&b.group);
        proc_free(&b.leader);
        close_box(&b);
        cr_expect_not(work_there(parent));
        return;
    }
    close_box(&b);
}

/* As an ordinary user without control groups all but the exclusive user works the same. */
Test(confine, as_an_ordinary_user)
{
    uint32_t uid = build_uid();
    char *place;
    pid_t pid;
    int status;

    if (!os_is_root())
        return;
    place = work_dir_new();
    cr_assert_eq(chown(place, uid, uid), 0);
    pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0) {
        char command[4096];
        struct box b;
        int64_t child;

        if (setgid(uid) != 0 || setuid(uid) != 0)
            _exit(1);
        (void)setenv("TMPDIR", place, 1);
        open_box(&b, 0, false, "plain");
        if (strcmp(confine_way_text(b.confine), "follow") != 0 || confine_is_confined(b.confine))
            _exit(2);
        (void)snprintf(command, sizeof(command), DAEMON, b.dir, b.dir, b.dir);
        start(&b, command, false);
        child = pid_in(&b, "pid");
        work_until(b.loop, &b.ended);
        kill_and_end(&b);
        if (b.left.killed != 1 || work_alive(child))
            _exit(3);
        close_box(&b);
        _exit(0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
    work_dir_remove(&place);
}

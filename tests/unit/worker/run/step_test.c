/* step_test.c: one command from spawn to the death of its tree, with the builds that make it hard: each in every way of confinement. */
#include "worker/run/step.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "tests/unit/worker/work.h"
#include "worker/os/os.h"
#include "worker/run/env.h"
#include "worker/run/measure.h"
#include "worker/run/meter.h"
#include "worker/run/output.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct bench {
    struct loop *loop;
    struct confine *confine;
    struct diag *diag;
    char *dir;
    char *out_dir;
    char *out;
    struct output *output;
    struct step_spec spec;
    struct env *env;
    struct step *step;
    struct step_result result;
    char printed[4096];
    bool done;
    bool user;
};

static uint32_t build_uid(void)
{
    return 2000000u + (uint32_t)getpid();
}

enum { ROOT_GROUPS, ROOT_FOLLOW, USER_GROUPS, USER_FOLLOW, WAYS };

static void open_bench(struct bench *b, int way)
{
    struct confine_opts opts = {.tag = "steps"};
    struct output_opts out = {.head = 4096, .tail = 1024};
    struct env_spec env = {.path = "/usr/local/bin:/usr/bin:/bin", .jobs = 2, .ncpu = 2, .variant = "v"};
    char tag[33];

    memset(b, 0, sizeof(*b));
    b->user = os_is_root() && (way == USER_GROUPS || way == USER_FOLLOW);
    (void)snprintf(tag, sizeof(tag), "steps%ld", (long)getpid());
    opts.tag = tag;
    opts.use = way == ROOT_FOLLOW || way == USER_FOLLOW ? CONFINE_FOLLOW : 0;
    opts.set_user = b->user;
    opts.uid = build_uid();
    opts.uid_is_ours = b->user;
    b->loop = loop_new();
    b->diag = diag_new(8);
    b->dir = work_dir_new();
    if (b->user)
        cr_assert_eq(chown(b->dir, build_uid(), build_uid()), 0);
    b->out_dir = work_dir_new();
    b->out = work_path(b->out_dir, "out");
    out.path = b->out;
    out.set_user = b->user;
    out.uid = build_uid();
    out.gid = build_uid();
    cr_assert_eq(output_new(&out, &b->output, b->diag), 0, "%s", diag_first(b->diag));
    cr_assert_eq(confine_new(b->loop, &opts, &b->confine, b->diag), 0);
    env.home = b->dir;
    env.tmpdir = b->dir;
    env.src = b->dir;
    env.obj = b->dir;
    env.mark = confine_env(b->confine);
    cr_assert_eq(env_new(&env, &b->env, b->diag), 0);
    b->spec = (struct step_spec){.name = "1.1.run",
                                 .env = env_list(b->env),
                                 .cwd = b->dir,
                                 .output = b->output,
                                 .set_user = b->user,
                                 .uid = build_uid(),
                                 .gid = build_uid(),
                                 .kill_grace_ns = 300 * CLOCK_MS,
                                 .confine = b->confine};
}

static void close_bench(struct bench *b)
{
    step_free(&b->step);
    output_free(&b->output);
    env_free(&b->env);
    confine_free(&b->confine);
    loop_free(&b->loop);
    diag_free(&b->diag);
    free(b->out);
    work_dir_remove(&b->out_dir);
    work_dir_remove(&b->dir);
}

static void on_end(const struct step_result *result, void *arg)
{
    struct bench *b = arg;

    cr_assert_not(b->done, "told once");
    b->result = *result;
    b->done = true;
}

static void begin(struct bench *b, const char *command)
{
    b->spec.command = command;
    cr_assert_eq(step_start(b->loop, &b->spec, on_end, b, &b->step, b->diag), 0, "%s", diag_first(b->diag));
}

/* What was printed, up to 4 KiB, once it is over. */
static const char *printed(struct bench *b)
{
    uint64_t cursor = 0, offset;
    const uint8_t *bytes;
    size_t n;

    b->printed[0] = '\0';
    if (output_piece(b->output, &cursor, &offset, &bytes, &n) == 1) {
        n = n < sizeof(b->printed) - 1 ? n : sizeof(b->printed) - 1;
        memcpy(b->printed, bytes, n);
        b->printed[n] = '\0';
    }
    return b->printed;
}

static void run(struct bench *b, const char *command)
{
    begin(b, command);
    work_until(b->loop, &b->done);
}

static bool has(const struct bench *b, enum mark mark)
{
    return marks_find(&b->result.marks, mark) != NULL;
}

static int64_t pid_in(struct bench *b, const char *name)
{
    char *path = work_path(b->dir, name), *text;
    int64_t pid;

    work_until_file(b->loop, path);
    text = work_read(path);
    pid = atoll(text);
    free(text);
    free(path);
    cr_assert(pid > 1);
    return pid;
}

#define IN_EVERY_WAY(way) for (int way = 0; way < WAYS; way++)

Test(step, a_command_that_goes_well)
{
    IN_EVERY_WAY(way)
    {
        struct bench b;

        open_bench(&b, way);
        run(&b, "echo \"$JOBS $JFLAG $LC_ALL $TZ\"; pwd; id -u; echo err >&2");
        cr_expect_eq(b.result.ending, ENDING_EXIT);
        cr_expect_eq(b.result.exit_status, 0);
        cr_expect(b.result.ok);
        cr_expect_str_eq(b.result.text, "");
        cr_expect_eq(b.result.survivors, 0);
        cr_expect(b.result.real_ns > 0);
        cr_expect(b.result.wait.max_rss_bytes > 0);
        cr_expect(b.result.usage.user_ns >= 0 && b.result.usage.sys_ns >= 0 && b.result.usage.way != CPU_WAY_NONE);
        cr_expect_eq(has(&b, MARK_UNCONFINED), !confine_is_confined(b.confine));
        {
            char want[512];

            (void)snprintf(want, sizeof(want), "2 -j2 C UTC\n%s\n%u\nerr\n", b.dir, b.user ? build_uid() : (unsigned)getuid());
            cr_expect_str_eq(printed(&b), want);
        }
        close_bench(&b);
    }
}

Test(step, nothing_else_of_the_worker_gets_in)
{
    struct bench b;

    cr_assert_eq(setenv("MAKEFLAGS", "-n", 1), 0);
    cr_assert_eq(setenv("CCACHE_DIR", "/c", 1), 0);
    open_bench(&b, ROOT_GROUPS);
    /* Variables, descriptors, terminal, input, ignored and blocked signals. */
    (void)signal(SIGPIPE, SIG_IGN);
    run(&b, "env | grep -c 'MAKEFLAGS\\|CCACHE'; ls /proc/self/fd | wc -l; test -t 0 || echo no tty; cat | wc -c; "
            "ps -o sid= -o pid= -p $$ | tr -s ' ' '\\n' | sort -u | grep -c .; sed -n 's/^SigBlk:.//p' /proc/self/status; "
            /* 32 and 33 are the C library's own: whoever started the test may have ignored them. */
            "echo $((0x$(sed -n 's/^SigIgn:.//p' /proc/self/status) & ~0x180000000)); ulimit -c");
    cr_expect_str_eq(printed(&b), "0\n4\nno tty\n0\n1\n0000000000000000\n0\n0\n");
    close_bench(&b);
}

Test(step, endings_are_told_apart)
{
    static const struct {
        const char *command;
        enum ending ending;
        int exit_status, signal;
        const char *text;
    } row[] = {
        {"exit 7", ENDING_EXIT, 7, 0, "exited with status 7"},
        {"echo 'cc: no such file' >&2; exit 2", ENDING_EXIT, 2, 0, "exited with status 2; the last line of its output: cc: no such file"},
        {"no-such-command-here", ENDING_EXIT, 127, 0, "exited with status 127"},
        {"kill -SEGV $$", ENDING_SIGNAL, -1, SIGSEGV, "was ended by SIGSEGV"},
        {"kill -KILL $$", ENDING_SIGNAL, -1, SIGKILL, "was ended by SIGKILL"},
        {"sh -c 'kill -9 $$'; exit $?", ENDING_EXIT, 137, 0, "exited with status 137, which a shell gives for SIGKILL"},
    };

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct bench b;

        open_bench(&b, ROOT_GROUPS);
        run(&b, row[i].command);
        cr_expect_eq(b.result.ending, row[i].ending, "%s: %d", row[i].command, (int)b.result.ending);
        cr_expect_eq(b.result.exit_status, row[i].exit_status, "%s: %d", row[i].command, b.result.exit_status);
        cr_expect_eq(b.result.signal, row[i].signal, "%s", row[i].command);
        cr_expect_not(b.result.ok);
        cr_expect(strncmp(b.result.text, row[i].text, strlen(row[i].text)) == 0, "%s: %s", row[i].command, b.result.text);
        close_bench(&b);
    }
}

Test(step, setup_stops_at_its_first_failure)
{
    struct bench b;

    open_bench(&b, ROOT_GROUPS);
    b.spec.stop_on_error = true;
    run(&b, "echo one\nfalse\necho two");
    cr_expect_eq(b.result.exit_status, 1);
    cr_expect_str_eq(printed(&b), "one\n");
    close_bench(&b);
    open_bench(&b, ROOT_GROUPS);
    run(&b, "echo one\nfalse\necho two");
    cr_expect(b.result.ok, "the others are as the shell has them");
    cr_expect_str_eq(printed(&b), "one\ntwo\n");
    close_bench(&b);
}

Test(step, a_shell_that_cannot_start)
{
    struct bench b;

    open_bench(&b, ROOT_GROUPS);
    b.spec.cwd = "/no/such/folder";
    run(&b, "true");
    cr_expect_eq(b.result.ending, ENDING_NOEXEC);
    cr_expect_not(b.result.ok);
    cr_expect(strstr(b.result.text, "could not be started") != NULL, "%s", b.result.text);
    step_free(&b.step);
    /* And the next one runs. */
    b.done = false;
    b.spec.cwd = b.dir;
    run(&b, "true");
    cr_expect(b.result.ok);
    close_bench(&b);
}

Test(step, a_time_limit_ends_all_of_it)
{
    IN_EVERY_WAY(way)
    {
        struct bench b;
        int64_t pid;

        open_bench(&b, way);
        b.spec.timeout_ns = 400 * CLOCK_MS;
        begin(&b, "printf 'new option? '; sleep 1000 & echo $! >pid.tmp; mv pid.tmp pid; wait");
        pid = pid_in(&b, "pid");
        work_until(b.loop, &b.done);
        cr_expect_eq(b.result.ending, ENDING_TIMEOUT);
        cr_expect_eq(b.result.signal, SIGTERM);
        cr_expect_eq(b.result.exit_status, -1);
        cr_expect_str_eq(b.result.text, "ran into its limit of 400ms; the last line of its output: new option?");
        cr_expect_geq(b.result.real_ns, 400 * CLOCK_MS);
        cr_expect_not(work_alive(pid));
        cr_expect_not(has(&b, MARK_SURVIVORS), "what was ended by force is no finding");
        close_bench(&b);
    }
}

/* `make -j65536` fills the pipe of its job server and blocks every signal but SIGKILL for ever. */
Test(step, a_leader_deaf_to_sigterm)
{
    IN_EVERY_WAY(way)
    {
        struct bench b;
        int64_t pid;

        open_bench(&b, way);
        b.spec.timeout_ns = 300 * CLOCK_MS;
        begin(&b, "trap '' TERM HUP INT QUIT; (trap '' TERM; while :; do sleep 1000; done) & echo $! >pid.tmp; mv pid.tmp pid; while :; do sleep 1000; done");
        pid = pid_in(&b, "pid");
        work_until(b.loop, &b.done);
        cr_expect_eq(b.result.ending, ENDING_TIMEOUT);
        cr_expect_eq(b.result.signal, SIGKILL);
        cr_expect_geq(b.result.real_ns, 600 * CLOCK_MS, "the grace was given");
        cr_expect_not(work_alive(pid));
        close_bench(&b);
    }
}

Test(step, make_with_too_many_jobs)
{
    struct bench b;
    char *mk;

    open_bench(&b, ROOT_GROUPS);
    mk = work_path(b.dir, "Makefile");
    work_write(mk, "all:\n\techo built\n");
    b.spec.timeout_ns = 500 * CLOCK_MS;
    run(&b, "make -j65536");
    /* Where make is no GNU make, or a later one, it may end by itself. */
    cr_expect(b.result.ending == ENDING_TIMEOUT || b.result.ending == ENDING_EXIT);
    cr_expect_eq(b.result.stuck, 0);
    free(mk);
    close_bench(&b);
}

Test(step, a_cancel)
{
    IN_EVERY_WAY(way)
    {
        struct bench b;
        int64_t pid;

        open_bench(&b, way);
        begin(&b, "setsid sleep 1000 & echo $! >pid.tmp; mv pid.tmp pid; wait");
        pid = pid_in(&b, "pid");
        cr_expect(step_pid(b.step) > 0);
        step_cancel(b.step);
        step_cancel(b.step);
        cr_expect_not(b.done);
        work_until(b.loop, &b.done);
        cr_expect_eq(b.result.ending, ENDING_CANCEL);
        cr_expect_str_eq(b.result.text, "was cancelled");
        cr_expect_not(work_alive(pid));
        cr_expect_eq(step_pid(b.step), 0);
        step_cancel(b.step);
        close_bench(&b);
    }
}

Test(step, a_daemon_that_is_left_behind)
{
    IN_EVERY_WAY(way)
    {
        struct bench b;
        int64_t pid;

        open_bench(&b, way);
        begin(&b, "(setsid sh -c 'cd /; exec 0<&- 1>&- 2>&-; exec sleep 1000' & echo $! >pid.tmp; mv pid.tmp pid); while [ ! -f pid ]; do sleep 0.01; done");
        pid = pid_in(&b, "pid");
        work_until(b.loop, &b.done);
        cr_expect(b.result.ok, "it did what it should: %s", b.result.text);
        cr_expect_eq(b.result.survivors, 1);
        cr_assert(has(&b, MARK_SURVIVORS));
        cr_expect(strncmp(marks_find(&b.result.marks, MARK_SURVIVORS)->text, "1 process was left at the end and killed: s", 43) == 0, "%s",
                  marks_find(&b.result.marks, MARK_SURVIVORS)->text);
        cr_expect_not(work_alive(pid));
        close_bench(&b);
    }
}

Test(step, a_build_that_stops_itself)
{
    IN_EVERY_WAY(way)
    {
        struct bench b;

        open_bench(&b, way);
        b.spec.timeout_ns = 300 * CLOCK_MS;
        run(&b, "sleep 1000 & kill -STOP $! $$");
        cr_expect_eq(b.result.ending, ENDING_TIMEOUT);
        cr_expect_eq(b.result.stuck, 0);
        close_bench(&b);
    }
}

Test(step, a_held_output_holds_nobody_up)
{
    struct bench b;

    open_bench(&b, ROOT_GROUPS);
    run(&b, "setsid sleep 1000 & exit 0");
    cr_expect(b.result.ok);
    cr_expect_eq(b.result.survivors, 1);
    /* The leader's end is what counts, not the last holder of its output. */
    cr_expect(b.result.real_ns < 100 * CLOCK_SEC);
    close_bench(&b);
}

Test(step, closed_output_and_bytes_of_all_kinds)
{
    struct bench b;

    open_bench(&b, ROOT_GROUPS);
    run(&b, "exec 1>&- 2>&-; i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done");
    cr_expect(b.result.ok);
    cr_expect_str_eq(printed(&b), "");
    close_bench(&b);
    open_bench(&b, ROOT_GROUPS);
    run(&b, "printf '\\377\\376\\000x'; exit 1");
    cr_expect_eq(output_total(b.output), 4);
    cr_expect_str_eq(b.result.text, "exited with status 1; the last line of its output: \\xff\\xfe\\x00x");
    close_bench(&b);
}

Test(step, it_truncates_its_log)
{
    IN_EVERY_WAY(way)
    {
        struct bench b;

        open_bench(&b, way);
        run(&b, "echo before; echo after >/dev/stdout; echo more");
        cr_expect(b.result.ok, "way %d: %s %s", way, b.result.text, printed(&b));
        cr_expect(has(&b, MARK_OUTPUT_TRUNCATED));
        cr_expect_str_eq(printed(&b), "after\nmore\n");
        close_bench(&b);
    }
}

/* 200 MB without a newline: neither the disk nor this process grows with them. */
Test(step, a_flood_of_output)
{
    struct bench b;
    struct stat st;
    struct rusage before, after;

    open_bench(&b, ROOT_GROUPS);
    cr_assert_eq(getrusage(RUSAGE_SELF, &before), 0);
    run(&b, "head -c 200000000 /dev/zero | tr '\\0' x");
    cr_expect(b.result.ok);
    cr_expect_eq(output_total(b.output), 200000000);
    cr_assert(has(&b, MARK_OUTPUT_CUT));
    cr_expect(strstr(marks_find(&b.result.marks, MARK_OUTPUT_CUT)->text, "200 MB") != NULL, "%s",
              marks_find(&b.result.marks, MARK_OUTPUT_CUT)->text);
    cr_assert_eq(stat(b.out, &st), 0);
    cr_expect(st.st_blocks * 512 < 150000000, "%ld", (long)st.st_blocks);
    cr_assert_eq(getrusage(RUSAGE_SELF, &after), 0);
    cr_expect(after.ru_maxrss - before.ru_maxrss < 20000, "%ld KB more", after.ru_maxrss - before.ru_maxrss);
    close_bench(&b);
}

Test(step, what_is_used)
{
    IN_EVERY_WAY(way)
    {
        struct bench b;

        open_bench(&b, way);
        run(&b, "head -c 20000000 /dev/zero | tail -c 20000000 >/dev/null; (i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done) & wait; "
                "dd if=/dev/zero of=big bs=1M count=3 conv=fsync 2>/dev/null");
        cr_expect(b.result.ok, "%s", b.result.text);
        cr_expect(b.result.usage.user_ns > 10 * CLOCK_MS, "%lld", (long long)b.result.usage.user_ns);
        cr_expect(b.result.wait.user_ns > 10 * CLOCK_MS);
        cr_expect(b.result.wait.max_rss_bytes > 15000000, "%lld", (long long)b.result.wait.max_rss_bytes);
        cr_expect(b.result.wait.minor_faults > 100);
        cr_expect(b.result.wait.voluntary_switches > 0);
        cr_expect(b.result.wait.block_out >= 3 * 2048, "way %d: %lld", way, (long long)b.result.wait.block_out);
        cr_expect_not(has(&b, MARK_CPU_DISAGREE));
        close_bench(&b);
    }
}

Test(step, two_at_once_are_refused)
{
    struct bench b;
    struct step *second = NULL;

    open_bench(&b, ROOT_GROUPS);
    begin(&b, "exec sleep 1000");
    cr_expect_eq(step_start(b.loop, &b.spec, on_end, &b, &second, b.diag), -ERR_STATE);
    cr_expect_null(second);
    step_cancel(b.step);
    work_until(b.loop, &b.done);
    close_bench(&b);
}

Test(step, given_up_with_its_worker)
{
    IN_EVERY_WAY(way)
    {
        struct bench b;
        int64_t pid;

        open_bench(&b, way);
        begin(&b, "sleep 1000 & echo $! >pid.tmp; mv pid.tmp pid; wait");
        pid = pid_in(&b, "pid");
        step_free(&b.step);
        work_until_gone(pid);
        cr_expect_not(b.done);
        close_bench(&b);
    }
}

/* --- the timed window --- */

struct timed {
    struct bench b;
    struct measure *measure;
    struct meter *meter;
    struct measure_result result;
};

static void on_measured(const struct measure_result *result, void *arg)
{
    struct timed *t = arg;

    t->result = *result;
    t->b.result = result->step;
    t->b.done = true;
}

static void time_it(struct timed *t, int way, const char *command, int64_t interval_ns)
{
    open_bench(&t->b, way);
    t->meter = meter_new();
    t->b.spec.command = command;
    cr_assert_eq(measure_start(t->b.loop, &t->b.spec, t->meter, interval_ns, on_measured, t, &t->measure, t->b.diag), 0);
}

static void put_away(struct timed *t)
{
    measure_free(&t->measure);
    meter_free(&t->meter);
    close_bench(&t->b);
}

Test(measure, a_run_with_its_samples)
{
    IN_EVERY_WAY(way)
    {
        struct timed t;
        size_t n, of_tree = 0;
        int64_t last = -1, tree = -1;

        memset(&t, 0, sizeof(t));
        time_it(&t, way, "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; echo done", 20 * CLOCK_MS);
        cr_expect(measure_in_window(t.measure));
        work_until(t.b.loop, &t.b.done);
        cr_expect_not(measure_in_window(t.measure));
        cr_expect(t.b.result.ok);
        n = meter_count(t.meter);
        cr_expect(n > 20, "%zu", n);
        for (size_t i = 0; i < n; i++) {
            struct meter_point p;

            meter_get(t.meter, i, &p);
            cr_assert(p.at_ns >= last && p.at_ns <= t.b.result.real_ns + 50 * CLOCK_MS);
            last = p.at_ns;
            cr_expect_not_null(vocab_instrument((int)p.what));
            if (p.what == INSTRUMENT_TREE) {
                cr_expect(p.value >= tree, "it only rises");
                tree = p.value;
                of_tree++;
            }
            if (p.what == INSTRUMENT_BUSY)
                cr_expect(p.value >= 0 && p.value < 1000 * CLOCK_SEC, "counted from the start: %lld", (long long)p.value);
        }
        if (confine_is_confined(t.b.confine)) {
            cr_expect(of_tree > 0);
            cr_expect(tree > 0 && tree <= t.b.result.usage.user_ns + t.b.result.usage.sys_ns + 20 * CLOCK_MS);
        } else {
            cr_expect_eq(of_tree, 0, "without groups nobody knows it while it runs");
        }
        cr_expect(t.result.observer_ns >= 0 && t.result.observer_ns < t.b.result.real_ns / 4, "%lld of %lld", (long long)t.result.observer_ns,
                  (long long)t.b.result.real_ns);
        cr_expect(t.result.foreign_ns >= 0);
        cr_expect_eq(t.b.result.marks.count, confine_is_confined(t.b.confine) ? 0 : 1);
        put_away(&t);
    }
}

/* The other program's time does not count as the build's, and the build's not as foreign. */
Test(measure, who_used_the_processor)
{
    struct timed t;
    int64_t tree;
    pid_t other;

    memset(&t, 0, sizeof(t));
    other = fork();
    if (other == 0) {
        for (volatile unsigned i = 0;; i = i + 1)
            ;
    }
    time_it(&t, ROOT_GROUPS, "i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done", 0);
    work_until(t.b.loop, &t.b.done);
    cr_assert_eq(kill(other, SIGKILL), 0);
    tree = t.b.result.usage.user_ns + t.b.result.usage.sys_ns;
    cr_expect(tree > 100 * CLOCK_MS);
    cr_expect(t.result.foreign_ns > t.b.result.real_ns / 10, "%lld of %lld", (long long)t.result.foreign_ns, (long long)t.b.result.real_ns);
    cr_expect(tree <= t.b.result.real_ns * 11 / 10 + 50 * CLOCK_MS, "one process on one processor at a time");
    put_away(&t);
}

/* In the window the worker's heap does not grow and nothing is written. */
Test(measure, nothing_grows_in_the_window)
{
    struct timed t;
    struct mallinfo2 first, last;
    int samples = 0;

    memset(&t, 0, sizeof(t));
    time_it(&t, ROOT_GROUPS, "exec sleep 1000", 5 * CLOCK_MS);
    work_turn(t.b.loop, 200 * CLOCK_MS);
    first = mallinfo2();
    for (samples = 0; samples < 40; samples++)
        work_turn(t.b.loop, 10 * CLOCK_MS);
    last = mallinfo2();
    cr_expect_eq(last.uordblks, first.uordblks, "%zu, then %zu bytes", first.uordblks, last.uordblks);
    cr_expect_eq(last.arena, first.arena);
    cr_expect(meter_count(t.meter) > 0);
    measure_cancel(t.measure);
    work_until(t.b.loop, &t.b.done);
    cr_expect_eq(t.b.result.ending, ENDING_CANCEL);
    put_away(&t);
}

Test(measure, a_shell_that_cannot_start)
{
    struct timed t;

    memset(&t, 0, sizeof(t));
    open_bench(&t.b, ROOT_GROUPS);
    t.meter = meter_new();
    t.b.spec.command = "true";
    t.b.spec.cwd = "/no/such/folder";
    cr_assert_eq(measure_start(t.b.loop, &t.b.spec, t.meter, 0, on_measured, &t, &t.measure, t.b.diag), 0);
    work_until(t.b.loop, &t.b.done);
    cr_expect_eq(t.b.result.ending, ENDING_NOEXEC);
    cr_expect_eq(t.result.foreign_ns, -1);
    cr_expect_not(measure_in_window(t.measure));
    put_away(&t);
}

Test(meter, rows_are_thinned_out_when_the_room_is_full)
{
    struct meter *m = meter_new();
    struct meter_point a, b, c;
    size_t per_row, n;
    int64_t until = 0;

    meter_start(m, 1, NULL, NULL);
    (void)meter_tick(m);
    per_row = meter_count(m);
    cr_assert(per_row > 0);
    for (int i = 0; i < 3 * METER_ROWS; i++)
        (void)meter_tick(m);
    n = meter_count(m);
    cr_expect(n <= METER_POINTS_MAX && n <= per_row * METER_ROWS && n >= per_row * METER_ROWS / 4, "%zu", n);
    meter_get(m, 0, &a);
    meter_get(m, n / 2, &b);
    meter_get(m, n - 1, &c);
    cr_expect(a.at_ns < b.at_ns && b.at_ns < c.at_ns, "from the start to the end");
    meter_stop(m);
    until = meter_tick(m);
    cr_expect(until > 0);
    cr_expect_eq(meter_count(m), n, "no sample after the stop");
    meter_start(m, 0, NULL, NULL);
    cr_expect_eq(meter_count(m), 0);
    cr_expect_geq(meter_tick(m), 0);
    meter_free(&m);
}

Test(meter, a_late_sample_shows_a_pause)
{
    struct meter *m = meter_new();

    meter_start(m, CLOCK_MS, NULL, NULL);
    meter_zero(m, clock_mono_ns() - 9 * CLOCK_SEC);
    (void)meter_tick(m);
    cr_expect(meter_longest_gap(m) > 8 * CLOCK_SEC);
    cr_expect_eq(meter_count(m) > 0, true);
    meter_stop(m);
    meter_free(&m);
}

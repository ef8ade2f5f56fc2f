/* step_test.c: one command from spawn to the death of its tree, with the builds that make it
 * hard: each in every way of confinement. */
#include "worker/run/step.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "tests/harness/look.h"
#include "tests/unit/worker/run/stand.h"
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

Test(step, a_command_that_goes_well)
{
    IN_EVERY_WAY(way)
    {
        struct stand b;

        stand_open(&b, way);
        stand_run(&b, "echo \"$JOBS $JFLAG $LC_ALL $TZ\"; pwd; id -u; echo err >&2");
        cr_expect_eq(b.result.ending, ENDING_EXIT);
        cr_expect_eq(b.result.exit_status, 0);
        cr_expect(b.result.ok);
        cr_expect_str_eq(b.result.text, "");
        cr_expect_eq(b.result.survivors, 0);
        cr_expect(b.result.real_ns > 0);
        /* Under a sanitizer it may be unknown. */
        cr_expect(b.result.wait.max_rss_bytes == -1 ||
                      (b.result.wait.max_rss_bytes > 0 && b.result.wait.max_rss_bytes < 10000000),
                  "%lld", (long long)b.result.wait.max_rss_bytes);
        cr_expect(b.result.usage.user_ns >= 0 && b.result.usage.sys_ns >= 0 &&
                  b.result.usage.way != CPU_WAY_NONE);
        cr_expect_eq(stand_has(&b, MARK_UNCONFINED), !confine_is_confined(b.confine));
        {
            char want[512];

            (void)snprintf(want, sizeof(want), "2 -j2 C UTC\n%s\n%u\nerr\n", b.dir,
                           b.user ? stand_uid() : (unsigned)getuid());
            cr_expect_str_eq(stand_printed(&b), want);
        }
        stand_close(&b);
    }
}

Test(step, nothing_else_of_the_worker_gets_in)
{
    struct stand b;

    cr_assert_eq(setenv("MAKEFLAGS", "-n", 1), 0);
    cr_assert_eq(setenv("CCACHE_DIR", "/c", 1), 0);
    stand_open(&b, ROOT_GROUPS);
    /* Variables, descriptors, terminal, input, ignored and blocked signals. */
    (void)signal(SIGPIPE, SIG_IGN);
    stand_run(
        &b, "env | grep -c 'MAKEFLAGS\\|CCACHE'; ls /proc/self/fd | wc -l; test -t 0 || echo no "
            "tty; cat | wc -c; "
            "ps -o sid= -o pid= -p $$ | tr -s ' ' '\\n' | sort -u | grep -c .; sed -n "
            "'s/^SigBlk:.//p' /proc/self/status; "
            /* 32 and 33 are the C library's own: whoever started the test may have ignored them. */
            "echo $((0x$(sed -n 's/^SigIgn:.//p' /proc/self/status) & ~0x180000000)); ulimit -c");
    cr_expect_str_eq(stand_printed(&b), "0\n4\nno tty\n0\n1\n0000000000000000\n0\n0\n");
    stand_close(&b);
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
        {"echo 'cc: no such file' >&2; exit 2", ENDING_EXIT, 2, 0,
         "exited with status 2; the last line of its output: cc: no such file"},
        {"no-such-command-here", ENDING_EXIT, 127, 0, "exited with status 127"},
        {"kill -SEGV $$", ENDING_SIGNAL, -1, SIGSEGV, "was ended by SIGSEGV"},
        {"kill -KILL $$", ENDING_SIGNAL, -1, SIGKILL, "was ended by SIGKILL"},
        {"sh -c 'kill -9 $$'; exit $?", ENDING_EXIT, 137, 0,
         "exited with status 137, which a shell gives for SIGKILL"},
    };

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct stand b;

        stand_open(&b, ROOT_GROUPS);
        stand_run(&b, row[i].command);
        cr_expect_eq(b.result.ending, row[i].ending, "%s: %d", row[i].command,
                     (int)b.result.ending);
        cr_expect_eq(b.result.exit_status, row[i].exit_status, "%s: %d", row[i].command,
                     b.result.exit_status);
        cr_expect_eq(b.result.signal, row[i].signal, "%s", row[i].command);
        cr_expect_not(b.result.ok);
        cr_expect(strncmp(b.result.text, row[i].text, strlen(row[i].text)) == 0, "%s: %s",
                  row[i].command, b.result.text);
        stand_close(&b);
    }
}

Test(step, setup_stops_at_its_first_failure)
{
    struct stand b;

    stand_open(&b, ROOT_GROUPS);
    b.spec.stop_on_error = true;
    stand_run(&b, "echo one\nfalse\necho two");
    cr_expect_eq(b.result.exit_status, 1);
    cr_expect_str_eq(stand_printed(&b), "one\n");
    stand_close(&b);
    stand_open(&b, ROOT_GROUPS);
    stand_run(&b, "echo one\nfalse\necho two");
    cr_expect(b.result.ok, "the others are as the shell has them");
    cr_expect_str_eq(stand_printed(&b), "one\ntwo\n");
    stand_close(&b);
}

Test(step, a_shell_that_cannot_start)
{
    struct stand b;

    stand_open(&b, ROOT_GROUPS);
    b.spec.cwd = "/no/such/folder";
    stand_run(&b, "true");
    cr_expect_eq(b.result.ending, ENDING_NOEXEC);
    cr_expect_not(b.result.ok);
    cr_expect(strstr(b.result.text, "could not be started") != NULL, "%s", b.result.text);
    step_free(&b.step);
    /* And the next one runs. */
    b.done = false;
    b.spec.cwd = b.dir;
    stand_run(&b, "true");
    cr_expect(b.result.ok);
    stand_close(&b);
}

Test(step, a_time_limit_ends_all_of_it)
{
    IN_EVERY_WAY(way)
    {
        struct stand b;
        int64_t pid;

        stand_open(&b, way);
        b.spec.timeout_ns = 2 * CLOCK_SEC; /* time to start, on a busy machine too */
        stand_begin(&b,
                    "printf 'new option? '; sleep 1000 & echo $! >pid.tmp; mv pid.tmp pid; wait");
        pid = stand_pid_in(&b, "pid");
        work_until(b.loop, &b.done);
        cr_expect_eq(b.result.ending, ENDING_TIMEOUT);
        cr_expect_eq(b.result.signal, SIGTERM);
        cr_expect_eq(b.result.exit_status, -1);
        cr_expect_str_eq(b.result.text,
                         "ran into its limit of 2s; the last line of its output: new option?");
        cr_expect_geq(b.result.real_ns, 2 * CLOCK_SEC);
        cr_expect_not(work_alive(pid));
        cr_expect_not(stand_has(&b, MARK_SURVIVORS), "what was ended by force is no finding");
        stand_close(&b);
    }
}

/* `make -j65536` fills the pipe of its job server and blocks every signal but SIGKILL for ever. */
Test(step, a_leader_deaf_to_sigterm)
{
    IN_EVERY_WAY(way)
    {
        struct stand b;
        int64_t pid;

        stand_open(&b, way);
        b.spec.timeout_ns = 2 * CLOCK_SEC; /* as above */
        stand_begin(&b, "trap '' TERM HUP INT QUIT; (trap '' TERM; while :; do sleep 1000; done) & "
                        "echo $! >pid.tmp; mv pid.tmp pid; while :; do sleep 1000; done");
        pid = stand_pid_in(&b, "pid");
        work_until(b.loop, &b.done);
        cr_expect_eq(b.result.ending, ENDING_TIMEOUT);
        cr_expect_eq(b.result.signal, SIGKILL);
        cr_expect_geq(b.result.real_ns, 2300 * CLOCK_MS, "the grace was given");
        cr_expect_not(stand_has(&b, MARK_SURVIVORS), "what was ended by force is no finding");
        cr_expect_not(work_alive(pid));
        stand_close(&b);
    }
}

Test(step, make_with_too_many_jobs)
{
    struct stand b;
    char *mk;

    stand_open(&b, ROOT_GROUPS);
    mk = work_path(b.dir, "Makefile");
    work_write(mk, "all:\n\techo built\n");
    b.spec.timeout_ns = 500 * CLOCK_MS;
    stand_run(&b, "make -j65536");
    /* Where make is no GNU make, or a later one, it may end by itself. */
    cr_expect(b.result.ending == ENDING_TIMEOUT || b.result.ending == ENDING_EXIT);
    cr_expect_eq(b.result.stuck, 0);
    free(mk);
    stand_close(&b);
}

Test(step, a_cancel)
{
    IN_EVERY_WAY(way)
    {
        struct stand b;
        int64_t pid;

        stand_open(&b, way);
        stand_begin(&b, "setsid sleep 1000 & echo $! >pid.tmp; mv pid.tmp pid; wait");
        pid = stand_pid_in(&b, "pid");
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
        stand_close(&b);
    }
}

Test(step, a_daemon_that_is_left_behind)
{
    IN_EVERY_WAY(way)
    {
        struct stand b;
        int64_t pid;

        stand_open(&b, way);
        stand_begin(&b, "(setsid sh -c 'cd /; exec 0<&- 1>&- 2>&-; exec sleep 1000' & echo $! "
                        ">pid.tmp; mv pid.tmp pid); while [ ! -f pid ]; do sleep 0.01; done");
        pid = stand_pid_in(&b, "pid");
        work_until(b.loop, &b.done);
        cr_expect(b.result.ok, "it did what it should: %s", b.result.text);
        cr_expect_eq(b.result.survivors, 1);
        cr_assert(stand_has(&b, MARK_SURVIVORS));
        cr_expect(strncmp(marks_find(&b.result.marks, MARK_SURVIVORS)->text,
                          "1 process was left at the end and killed: s", 43) == 0,
                  "%s", marks_find(&b.result.marks, MARK_SURVIVORS)->text);
        cr_expect_not(work_alive(pid));
        stand_close(&b);
    }
}

Test(step, a_build_that_stops_itself)
{
    IN_EVERY_WAY(way)
    {
        struct stand b;

        stand_open(&b, way);
        b.spec.timeout_ns = 300 * CLOCK_MS;
        stand_run(&b, "sleep 1000 & kill -STOP $! $$");
        cr_expect_eq(b.result.ending, ENDING_TIMEOUT);
        cr_expect_eq(b.result.signal, SIGTERM, "woken, to hear it");
        cr_expect_eq(b.result.stuck, 0);
        stand_close(&b);
    }
}

Test(step, a_held_output_holds_nobody_up)
{
    struct stand b;

    stand_open(&b, ROOT_GROUPS);
    stand_run(&b, "setsid sleep 1000 & exit 0");
    cr_expect(b.result.ok);
    cr_expect_eq(b.result.survivors, 1);
    /* The leader's end is what counts, not the last holder of its output. */
    cr_expect(b.result.real_ns < 100 * CLOCK_SEC);
    stand_close(&b);
}

Test(step, closed_output_and_bytes_of_all_kinds)
{
    struct stand b;

    stand_open(&b, ROOT_GROUPS);
    stand_run(&b, "exec 1>&- 2>&-; i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done");
    cr_expect(b.result.ok);
    cr_expect_str_eq(stand_printed(&b), "");
    stand_close(&b);
    stand_open(&b, ROOT_GROUPS);
    stand_run(&b, "printf '\\377\\376\\000x'; exit 1");
    cr_expect_eq(output_total(b.output), 4);
    cr_expect_str_eq(b.result.text,
                     "exited with status 1; the last line of its output: \\xff\\xfe\\x00x");
    stand_close(&b);
}

Test(step, it_truncates_its_log)
{
    IN_EVERY_WAY(way)
    {
        struct stand b;

        stand_open(&b, way);
        stand_run(&b, "echo before; echo after >/dev/stdout; echo more");
        cr_expect(b.result.ok, "way %d: %s %s", way, b.result.text, stand_printed(&b));
        cr_expect(stand_has(&b, MARK_OUTPUT_TRUNCATED));
        cr_expect_str_eq(stand_printed(&b), "after\nmore\n");
        stand_close(&b);
    }
}

/* 200 MB without a newline: neither the disk nor this process grows with them. */
Test(step, a_flood_of_output)
{
    struct stand b;
    struct stat st;
    struct rusage before, after;

    stand_open(&b, ROOT_GROUPS);
    cr_assert_eq(getrusage(RUSAGE_SELF, &before), 0);
    stand_run(&b, "head -c 200000000 /dev/zero | tr '\\0' x");
    cr_expect(b.result.ok);
    cr_expect_eq(output_total(b.output), 200000000);
    cr_assert(stand_has(&b, MARK_OUTPUT_CUT));
    cr_expect(strstr(marks_find(&b.result.marks, MARK_OUTPUT_CUT)->text, "200 MB") != NULL, "%s",
              marks_find(&b.result.marks, MARK_OUTPUT_CUT)->text);
    cr_assert_eq(stat(b.out, &st), 0);
    cr_expect(st.st_blocks * 512 < 150000000, "%ld", (long)st.st_blocks);
    cr_assert_eq(getrusage(RUSAGE_SELF, &after), 0);
    cr_expect(after.ru_maxrss - before.ru_maxrss < 20000, "%ld KB more",
              after.ru_maxrss - before.ru_maxrss);
    stand_close(&b);
}

Test(step, what_is_used)
{
    IN_EVERY_WAY(way)
    {
        struct stand b;

        stand_open(&b, way);
        stand_run(&b, "head -c 20000000 /dev/zero | tail -c 20000000 >/dev/null; (i=0; while [ $i "
                      "-lt 200000 ]; do i=$((i+1)); done) & wait; "
                      "dd if=/dev/zero of=big bs=1M count=3 conv=fsync 2>/dev/null");
        cr_expect(b.result.ok, "%s", b.result.text);
        cr_expect(b.result.usage.user_ns > 10 * CLOCK_MS, "%lld",
                  (long long)b.result.usage.user_ns);
        cr_expect(b.result.wait.user_ns > 10 * CLOCK_MS);
        cr_expect(b.result.wait.max_rss_bytes > 15000000, "%lld",
                  (long long)b.result.wait.max_rss_bytes);
        cr_expect(b.result.wait.minor_faults > 100);
        cr_expect(b.result.wait.voluntary_switches > 0);
        cr_expect(b.result.wait.block_out >= 3 * 2048, "way %d: %lld", way,
                  (long long)b.result.wait.block_out);
        cr_expect_not(stand_has(&b, MARK_CPU_DISAGREE));
        stand_close(&b);
    }
}

/* Without groups the time of a child that its parent left comes from the reaper, in both
 * figures. */
Test(step, time_of_an_orphan)
{
    struct stand b;

    stand_open(&b, ROOT_FOLLOW);
    stand_run(&b, "mkfifo pipe; (setsid sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; "
                  "echo >pipe' &); read x <pipe");
    cr_expect(b.result.ok, "%s", b.result.text);
    cr_expect_eq(b.result.usage.way, CPU_WAY_REAPER);
    cr_expect(b.result.wait.user_ns > 20 * CLOCK_MS, "%lld", (long long)b.result.wait.user_ns);
    cr_expect_eq(b.result.wait.user_ns, b.result.usage.user_ns);
    cr_expect_eq(b.result.wait.sys_ns, b.result.usage.sys_ns);
    stand_close(&b);
}

Test(step, two_at_once_are_refused)
{
    struct stand b;
    struct step *second = NULL;

    stand_open(&b, ROOT_GROUPS);
    stand_begin(&b, "exec sleep 1000");
    cr_expect_eq(step_start(b.loop, &b.spec, stand_on_end, &b, &second, b.diag), -ERR_STATE);
    cr_expect_null(second);
    step_cancel(b.step);
    work_until(b.loop, &b.done);
    stand_close(&b);
}

Test(step, given_up_with_its_worker)
{
    IN_EVERY_WAY(way)
    {
        struct stand b;
        int64_t pid;

        stand_open(&b, way);
        stand_begin(&b, "sleep 1000 & echo $! >pid.tmp; mv pid.tmp pid; wait");
        pid = stand_pid_in(&b, "pid");
        step_free(&b.step);
        work_until_gone(pid);
        cr_expect_not(b.done);
        stand_close(&b);
    }
}

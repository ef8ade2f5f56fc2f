/* probe_test.c: instruments read what there is, and the differences of a window are right. */
#include "worker/probe/probe.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/loop.h"
#include "tests/unit/worker/work.h"
#include "worker/probe/compiler.h"
#include "worker/probe/window.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

Test(probe, a_row_of_this_machine)
{
    struct probe_row a, b;

    probe_take(&a);
    probe_take(&b);
    cr_expect(probe_has(&a, INSTRUMENT_BUSY) && probe_has(&a, INSTRUMENT_OBSERVER) &&
              probe_has(&a, INSTRUMENT_LOAD) && probe_has(&a, INSTRUMENT_AVAILABLE));
    cr_expect_not(probe_has(&a, INSTRUMENT_TREE), "not asked here");
    cr_expect(a.value[INSTRUMENT_BUSY] > 0);
    cr_expect(b.value[INSTRUMENT_BUSY] >= a.value[INSTRUMENT_BUSY]);
    cr_expect(b.value[INSTRUMENT_OBSERVER] > a.value[INSTRUMENT_OBSERVER],
              "the first row took time");
    cr_expect(b.at_ns > a.at_ns);
}

#define SEC INT64_C(1000000000)

static struct window_cpu at(int64_t user, int64_t system, int64_t irq, int64_t steal,
                            int64_t kernel, int64_t self)
{
    struct window_cpu w = {.has_ticks = true, .kernel_ns = kernel, .self_ns = self};

    w.ticks.user = user;
    w.ticks.system = system;
    w.ticks.irq = irq;
    w.ticks.steal = steal;
    return w;
}

Test(window, foreign_time_is_what_is_left)
{
    struct window_cpu from = at(100 * SEC, 50 * SEC, 5 * SEC, SEC, 7 * SEC, 2 * SEC);
    struct window_cpu to = at(108 * SEC, 53 * SEC, 6 * SEC, 3 * SEC, 8 * SEC, 2 * SEC + 1000);
    struct window_cpu_used used;

    window_cpu_diff(&from, &to, 6 * SEC, &used);
    cr_expect_eq(used.foreign_ns, 11 * SEC - 6 * SEC - SEC - 1000, "%lld",
                 (long long)used.foreign_ns);
    cr_expect_eq(used.observer_ns, 1000);
    cr_expect_eq(used.kernel_ns, 2 * SEC, "threads and interrupts");
    cr_expect_eq(used.steal_ns, 2 * SEC);
    window_cpu_diff(&from, &to, 20 * SEC, &used);
    cr_expect_eq(used.foreign_ns, 0, "the tick may count less than the tree used");
    window_cpu_diff(&from, &to, -1, &used);
    cr_expect_eq(used.foreign_ns, -1, "unknown is not nought");
    cr_expect_eq(used.steal_ns, 2 * SEC);
}

Test(window, what_cannot_be_read_is_unknown)
{
    struct window_cpu from = at(0, 0, 0, -1, -1, -1), to = at(4 * SEC, 0, 0, -1, -1, -1);
    struct window_cpu_used used;

    window_cpu_diff(&from, &to, SEC, &used);
    cr_expect_eq(used.steal_ns, -1);
    cr_expect_eq(used.observer_ns, -1);
    cr_expect_eq(used.foreign_ns, 3 * SEC, "a container hides the kernel's threads");
    to.has_ticks = false;
    window_cpu_diff(&from, &to, SEC, &used);
    cr_expect_eq(used.foreign_ns, -1);
    cr_expect_eq(used.kernel_ns, -1);
}

/* One spinning child, taken for the tree's and for a foreign one. */
Test(window, a_busy_neighbour_is_seen_on_this_machine)
{
    struct window_cpu from, to;
    struct window_cpu_used used;

    window_cpu_before(&from);
    cr_assert_eq(work_sh("i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done"), 0);
    window_cpu_after(&to);
    window_cpu_diff(&from, &to, 0, &used);
    cr_expect(used.foreign_ns > 50 * CLOCK_MS, "%lld", (long long)used.foreign_ns);
    cr_expect(used.observer_ns >= 0 && used.observer_ns < used.foreign_ns);
}

Test(window, clocks)
{
    struct window_clocks from = {SEC, 1000 * SEC, 2 * SEC}, to = from;
    struct window_clocks_moved moved;

    to.mono_ns += 10 * SEC;
    to.wall_ns += 10 * SEC + 5 * CLOCK_MS;
    to.boot_ns += 10 * SEC;
    window_clocks_diff(&from, &to, &moved);
    cr_expect_eq(moved.step_ns, 0, "within the blur");
    cr_expect_eq(moved.suspend_ns, 0);
    to.wall_ns += 3600 * SEC;
    window_clocks_diff(&from, &to, &moved);
    cr_expect_eq(moved.step_ns, 3600 * SEC + 5 * CLOCK_MS);
    to.wall_ns -= 7200 * SEC;
    window_clocks_diff(&from, &to, &moved);
    cr_expect(moved.step_ns < -3599 * SEC);
    to = from;
    to.mono_ns += 10 * SEC;
    to.wall_ns += 70 * SEC;
    to.boot_ns += 70 * SEC;
    window_clocks_diff(&from, &to, &moved);
    cr_expect_eq(moved.suspend_ns, 60 * SEC);
    cr_expect_eq(moved.step_ns, 0, "the wall clock went on while it slept: no step");
}

Test(window, clocks_of_this_machine_run_straight)
{
    struct window_clocks from, to;
    struct window_clocks_moved moved;

    window_clocks_take(&from);
    window_clocks_take(&to);
    window_clocks_diff(&from, &to, &moved);
    cr_expect_eq(moved.step_ns, 0);
    cr_expect_eq(moved.suspend_ns, 0);
}

struct answer {
    bool come;
    char line[256];
};

static void on_line(const char *line, void *arg)
{
    struct answer *a = arg;

    (void)snprintf(a->line, sizeof(a->line), "%s", line);
    a->come = true;
}

static void ask(const char *body, struct answer *a)
{
    struct loop *loop = loop_new();
    struct probe_compiler *question;
    char *dir = work_dir_new(), *cc = work_path(dir, "cc"), path[512];

    memset(a, 0, sizeof(*a));
    work_write(cc, body);
    cr_assert_eq(chmod(cc, 0755), 0);
    (void)snprintf(path, sizeof(path), "%s:/usr/bin:/bin", dir);
    cr_assert_eq(probe_compiler_ask(loop, path, on_line, a, &question, NULL), 0);
    work_until(loop, &a->come);
    loop_free(&loop);
    free(cc);
    work_dir_remove(&dir);
}

Test(compiler, first_line_of_its_answer)
{
    struct answer a;

    ask("#!/bin/sh\necho '  acc (Acme) 1.2 '\necho more\n", &a);
    cr_expect_str_eq(a.line, "acc (Acme) 1.2");
    ask("#!/bin/sh\necho broken; exit 1\n", &a);
    cr_expect_str_eq(a.line, "", "a compiler that fails says nothing");
    ask("#!/bin/sh\ncat /dev/zero\n", &a);
    cr_expect_str_eq(a.line, "", "one that does not end is ended");
}

Test(compiler, none_at_all)
{
    struct loop *loop = loop_new();
    struct probe_compiler *question = NULL;
    struct answer a = {.come = false};
    char *dir = work_dir_new();

    if (probe_compiler_ask(loop, dir, on_line, &a, &question, NULL) == 0) {
        work_until(loop, &a.come);
        cr_expect_str_eq(a.line, "");
    } else {
        cr_expect_null(question);
    }
    loop_free(&loop);
    work_dir_remove(&dir);
}

Test(compiler, a_question_can_be_taken_back)
{
    struct loop *loop = loop_new();
    struct probe_compiler *question;
    struct answer a = {.come = false};

    cr_assert_eq(probe_compiler_ask(loop, "/usr/bin:/bin", on_line, &a, &question, NULL), 0);
    probe_compiler_cancel(&question);
    cr_expect_null(question);
    probe_compiler_cancel(&question);
    work_turn(loop, 300 * CLOCK_MS);
    cr_expect_not(a.come);
    loop_free(&loop);
}

/* measure_test.c: the timed window: what is taken in it, and that nothing else happens there. */
#include "worker/run/measure.h"

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
#include "worker/run/meter.h"
#include "worker/run/output.h"
#include "worker/run/step.h"

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

struct timed {
    struct stand b;
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
    stand_open(&t->b, way);
    t->meter = meter_new();
    t->b.spec.command = command;
    cr_assert_eq(measure_start(t->b.loop, &t->b.spec, t->meter, interval_ns, on_measured, t, &t->measure, t->b.diag), 0);
}

static void put_away(struct timed *t)
{
    measure_free(&t->measure);
    meter_free(&t->meter);
    stand_close(&t->b);
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
        (void)alarm(120); /* it must not outlive a test that crashed */
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

/* Turns the loop until that many points were taken. */
static void until_points(struct timed *t, size_t n)
{
    int64_t end = clock_mono_ns() + 60 * CLOCK_SEC;

    while (meter_count(t->meter) < n) {
        cr_assert(clock_mono_ns() < end, "no more than %zu samples", meter_count(t->meter));
        loop_turn(t->b.loop, 10 * CLOCK_MS);
    }
}

/* In the window the worker's heap does not grow and nothing is written. */
Test(measure, nothing_grows_in_the_window)
{
    struct timed t;
    struct mallinfo2 first, last;

    memset(&t, 0, sizeof(t));
    time_it(&t, ROOT_GROUPS, "exec sleep 1000", 5 * CLOCK_MS);
    until_points(&t, 1);
    work_turn(t.b.loop, 200 * CLOCK_MS);
    first = mallinfo2();
    until_points(&t, meter_count(t.meter) + 200);
    last = mallinfo2();
    cr_expect_eq(last.uordblks, first.uordblks, "%zu, then %zu bytes", first.uordblks, last.uordblks);
    cr_expect_eq(last.arena, first.arena);
    measure_cancel(t.measure);
    work_until(t.b.loop, &t.b.done);
    cr_expect_eq(t.b.result.ending, ENDING_CANCEL);
    put_away(&t);
}

Test(measure, a_shell_that_cannot_start)
{
    struct timed t;

    memset(&t, 0, sizeof(t));
    stand_open(&t.b, ROOT_GROUPS);
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

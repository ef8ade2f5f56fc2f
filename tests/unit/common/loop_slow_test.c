/* loop_slow_test.c: turns that work too long are counted and named, and timers go by their own deadline. The clock is this program's own. */
#include "common/loop.h"

#include "common/clock.h"
#include "tests/harness/place.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int64_t now = CLOCK_SEC;
static int64_t next_step; /* added once, when the clock is next read */

int64_t clock_mono_ns(void)
{
    int64_t t = now;
    now += next_step;
    next_step = 0;
    return t;
}

int64_t clock_wall_ns(void)
{
    return now;
}

int64_t clock_boot_ns(void)
{
    return now;
}

struct job {
    struct loop *loop;
    const char *what;
    int64_t takes;
};

static void do_job(void *arg)
{
    const struct job *job = arg;
    if (job->what != NULL) {
        loop_doing(job->loop, job->what);
    }
    now += job->takes;
}

/* One turn with these jobs; what it wrote to standard error. */
static const char *turn(struct loop *loop, struct job *jobs, size_t n)
{
    static char text[1000];
    char path[256];
    place_pattern(path, sizeof(path), "loop_slow_test");
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    unlink(path);
    fflush(stderr);
    int before = dup(STDERR_FILENO);
    cr_assert_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    for (size_t i = 0; i < n; i++) {
        jobs[i].loop = loop;
        loop_defer(loop, do_job, &jobs[i]);
    }
    loop_turn(loop, n > 0 ? -1 : 0);
    cr_assert_eq(dup2(before, STDERR_FILENO), STDERR_FILENO);
    ssize_t got = pread(fd, text, sizeof(text) - 1, 0);
    cr_assert_geq(got, 0);
    text[got] = '\0';
    close(fd);
    close(before);
    return text;
}

Test(loop_slow, a_turn_of_100_ms_is_not_slow)
{
    struct loop *loop = loop_new();
    struct job jobs[] = {{NULL, "one", 60 * CLOCK_MS}, {NULL, "two", 40 * CLOCK_MS}};
    cr_assert_str_eq(turn(loop, jobs, 2), "");
    cr_assert_eq(loop_slow_turns(loop), 0);
    loop_free(&loop);
}

Test(loop_slow, the_longest_part_is_named)
{
    struct loop *loop = loop_new();
    struct job jobs[] = {{NULL, "one", 20 * CLOCK_MS}, {NULL, "commit", 70 * CLOCK_MS}, {NULL, "three", 30 * CLOCK_MS}};
    const char *text = turn(loop, jobs, 3);
    cr_assert_not_null(strstr(text, "warn: a turn of the event loop took 120 ms, 70 of them: commit\n"), "%s", text);
    cr_assert_eq(loop_slow_turns(loop), 1);
    cr_assert_str_eq(turn(loop, NULL, 0), "", "the next turn begins anew");
    cr_assert_eq(loop_slow_turns(loop), 1);
    loop_free(&loop);
}

Test(loop_slow, a_name_is_not_for_the_next_callback)
{
    struct loop *loop = loop_new();
    struct job jobs[] = {{NULL, "one", CLOCK_MS}, {NULL, NULL, 150 * CLOCK_MS}};
    const char *text = turn(loop, jobs, 2);
    cr_assert_not_null(strstr(text, "150 of them: something without a name\n"), "%s", text);
    loop_free(&loop);
}

Test(loop_slow, waiting_is_no_work)
{
    struct loop *loop = loop_new();
    next_step = CLOCK_HOUR; /* passes after the turn has set its limit and before its first callback */
    loop_turn(loop, CLOCK_MS);
    cr_assert_eq(next_step, 0);
    cr_assert_eq(loop_slow_turns(loop), 0);
    loop_free(&loop);
}

static void count(void *arg)
{
    ++*(int *)arg;
}

/* What libevent wakes for early, as it does for a delay beyond what it is asked for at once, is waited for again. */
Test(loop_slow, a_timer_goes_by_its_own_deadline)
{
    struct loop *loop = loop_new();
    int fired = 0;
    struct loop_timer *timer = loop_timer_new(loop, count, &fired);
    loop_timer_set(timer, CLOCK_MS);
    for (int i = 0; i < 5; i++) {
        loop_turn(loop, -1); /* libevent's own clock runs, ours stands */
        cr_assert_eq(fired, 0);
        cr_assert(loop_timer_pending(timer));
    }
    now += CLOCK_MS - 1;
    loop_turn(loop, -1);
    cr_assert_eq(fired, 0);
    now += 1;
    loop_turn(loop, -1);
    cr_assert_eq(fired, 1);
    cr_assert_not(loop_timer_pending(timer));
    loop_timer_free(&timer);
    loop_free(&loop);
}

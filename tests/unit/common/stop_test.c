/* stop_test.c: what ends a daemon reaches it, with its reason. */
#include "common/stop.h"

#include "common/attr.h"
#include "common/clock.h"
#include "common/loop.h"
#include "common/str.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

struct heard {
    unsigned count;
    bool guard;
    char why[64];
};

static void on_stop(void *arg, bool guard, const char *why)
{
    struct heard *h = arg;

    h->count++;
    h->guard = guard;
    str_copy(h->why, sizeof h->why, why);
}

static void turn_until(struct loop *loop, const struct heard *h, unsigned count)
{
    int64_t end = clock_mono_ns() + 20 * CLOCK_SEC;

    while (h->count < count && clock_mono_ns() < end)
        loop_turn(loop, 100 * CLOCK_MS);
    cr_assert_eq(h->count, count);
}

Test(stop, each_signal_is_told_by_its_number)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGTERM};
    static const char *const whys[] = {"signal 15", "signal 2", "signal 1", "signal 15"};
    struct heard h = {0};
    struct loop *loop = loop_new();
    struct stop *stop = stop_new(loop, false, on_stop, &h);

    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        cr_assert_eq(raise(signals[i]), 0);
        turn_until(loop, &h, (unsigned)i + 1);
        cr_expect_str_eq(h.why, whys[i]);
        cr_expect_not(h.guard);
    }
    stop_free(&stop);
    stop_free(&stop);
    loop_free(&loop);
}

/* Standard input becomes a pipe; the end that is written to is returned. */
static int take_input(void)
{
    int fds[2];

    cr_assert_eq(pipe(fds), 0);
    cr_assert_eq(dup2(fds[0], STDIN_FILENO), STDIN_FILENO);
    close(fds[0]);
    return fds[1];
}

Test(stop, with_a_guard_the_end_of_standard_input_is_told_and_what_is_written_is_not)
{
    struct heard h = {0};
    int fd = take_input();
    struct loop *loop = loop_new();
    struct stop *stop = stop_new(loop, true, on_stop, &h);

    cr_assert_eq(write(fd, "words", 5), 5);
    loop_turn(loop, 10 * CLOCK_SEC);
    cr_expect_eq(h.count, 0);
    close(fd);
    turn_until(loop, &h, 1);
    cr_expect(h.guard);
    cr_expect_str_eq(h.why, "standard input has ended");
    stop_free(&stop);
    loop_free(&loop);
}

Test(stop, without_a_guard_standard_input_is_left_alone)
{
    struct heard h = {0};
    struct loop *loop = loop_new();
    struct stop *stop;

    close(take_input());
    stop = stop_new(loop, false, on_stop, &h);
    loop_turn(loop, 50 * CLOCK_MS);
    cr_expect_eq(h.count, 0);
    stop_free(&stop);
    loop_free(&loop);
}

/* What cannot be watched, as /dev/null with epoll, would never end. */
Test(stop, with_a_guard_an_input_that_cannot_be_watched_ends_it)
{
    struct heard h = {0};
    int fd = open("/dev/null", O_RDONLY);
    struct loop *loop = loop_new();

    cr_assert_eq(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    close(fd);
    struct stop *stop = stop_new(loop, true, on_stop, &h);
    cr_expect_eq(h.count, 0, "told before a turn");
    turn_until(loop, &h, 1);
    cr_expect(h.guard);
    stop_free(&stop);
    loop_free(&loop);
}

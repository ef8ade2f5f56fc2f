/* loop_test.c: the order within a turn, timers, descriptors, signals to several loops. Slow turns: loop_slow_test.c. */
#include "common/loop.h"

#include "common/clock.h"

#include <criterion/criterion.h>
#include <event2/event.h>
#include <signal.h>
#include <unistd.h>

/* What happened, one letter an event. */
struct trace {
    struct loop *loop;
    char text[64];
    size_t len;
    struct loop_timer *timer;
    int64_t at;
};

static void note(struct trace *t, char c)
{
    cr_assert_lt(t->len, sizeof(t->text) - 1);
    t->text[t->len++] = c;
    t->text[t->len] = '\0';
}

static void on_a(void *arg)
{
    note(arg, 'a');
}

static void on_b(void *arg)
{
    note(arg, 'b');
}

static void on_stop(void *arg)
{
    struct trace *t = arg;
    note(t, 's');
    loop_stop(t->loop);
}

static struct trace start(void)
{
    struct trace t = {.loop = loop_new()};
    cr_assert_not_null(t.loop);
    return t;
}

static void spin(int64_t ns)
{
    int64_t end = clock_mono_ns() + ns;
    while (clock_mono_ns() < end) {
    }
}

Test(loop, timers_fire_in_the_order_of_their_deadlines)
{
    struct trace t = start();
    struct loop_timer *last = loop_timer_new(t.loop, on_stop, &t);
    struct loop_timer *first = loop_timer_new(t.loop, on_a, &t);
    struct loop_timer *second = loop_timer_new(t.loop, on_b, &t);
    loop_timer_set(last, 30 * CLOCK_MS);
    loop_timer_set(second, 20 * CLOCK_MS);
    loop_timer_set(first, 10 * CLOCK_MS);
    loop_run(t.loop);
    cr_assert_str_eq(t.text, "abs");
    loop_timer_free(&first);
    loop_timer_free(&second);
    loop_timer_free(&last);
    cr_assert_null(last);
    loop_timer_free(&last);
    loop_free(&t.loop);
    cr_assert_null(t.loop);
    loop_free(&t.loop);
}

static void on_time(void *arg)
{
    struct trace *t = arg;
    t->at = clock_mono_ns();
    note(t, 't');
}

Test(loop, timers_never_fire_early)
{
    struct trace t = start();
    struct loop_timer *timer = loop_timer_new(t.loop, on_time, &t);
    for (int i = 0; i < 60; i++) {
        int64_t delay = i * 37 * CLOCK_US + i * 13;
        int64_t set = clock_mono_ns();
        t.len = 0;
        loop_timer_set(timer, delay);
        while (t.len == 0) {
            loop_turn(t.loop, -1);
        }
        cr_assert_geq(t.at - set, delay);
    }
    loop_timer_free(&timer);
    loop_free(&t.loop);
}

static void on_slow_then_set(void *arg)
{
    struct trace *t = arg;
    spin(30 * CLOCK_MS);
    t->at = clock_mono_ns();
    loop_timer_set(t->timer, 10 * CLOCK_MS);
}

Test(loop, a_delay_counts_from_its_setting_not_from_the_turn)
{
    struct trace t = start();
    struct loop_timer *slow = loop_timer_new(t.loop, on_slow_then_set, &t);
    t.timer = loop_timer_new(t.loop, on_stop, &t);
    loop_timer_set(slow, 0);
    loop_run(t.loop);
    cr_assert_geq(clock_mono_ns() - t.at, 10 * CLOCK_MS);
    loop_timer_free(&slow);
    loop_timer_free(&t.timer);
    loop_free(&t.loop);
}

Test(loop, timer_set_again_and_cleared)
{
    struct trace t = start();
    struct loop_timer *a = loop_timer_new(t.loop, on_a, &t);
    struct loop_timer *b = loop_timer_new(t.loop, on_b, &t);
    struct loop_timer *end = loop_timer_new(t.loop, on_stop, &t);
    cr_assert_not(loop_timer_pending(a));
    loop_timer_set(a, 5 * CLOCK_MS);
    cr_assert(loop_timer_pending(a));
    loop_timer_clear(a);
    cr_assert_not(loop_timer_pending(a));
    loop_timer_set(b, CLOCK_HOUR);
    loop_timer_set(b, -5); /* replaces; below zero is now */
    loop_timer_set(end, 20 * CLOCK_MS);
    loop_run(t.loop);
    cr_assert_str_eq(t.text, "bs");
    cr_assert_not(loop_timer_pending(b), "a timer fires once");
    loop_timer_free(&a);
    loop_timer_free(&b);
    loop_timer_free(&end);
    loop_free(&t.loop);
}

Test(loop, very_long_delays_wait)
{
    static const int64_t delays[] = {21 * CLOCK_DAY, 30 * CLOCK_DAY, 3650 * CLOCK_DAY, INT64_MAX};
    struct trace t = start();
    struct loop_timer *timers[4];
    struct loop_timer *end = loop_timer_new(t.loop, on_stop, &t);
    for (size_t i = 0; i < 4; i++) {
        timers[i] = loop_timer_new(t.loop, on_a, &t);
        loop_timer_set(timers[i], delays[i]);
    }
    loop_timer_set(end, 20 * CLOCK_MS);
    loop_run(t.loop);
    cr_assert_str_eq(t.text, "s");
    for (size_t i = 0; i < 4; i++) {
        cr_assert(loop_timer_pending(timers[i]));
        loop_timer_free(&timers[i]);
    }
    loop_timer_free(&end);
    loop_free(&t.loop);
}

static void on_again(void *arg)
{
    struct trace *t = arg;
    note(t, 't');
    if (t->len < 5) {
        loop_timer_set(t->timer, 0);
    }
}

Test(loop, a_timer_set_by_its_callback_fires_in_the_next_turn)
{
    struct trace t = start();
    t.timer = loop_timer_new(t.loop, on_again, &t);
    loop_timer_set(t.timer, 0);
    for (size_t turns = 1; turns <= 5; turns++) {
        loop_turn(t.loop, CLOCK_SEC);
        cr_assert_eq(t.len, turns);
    }
    loop_timer_free(&t.timer);
    loop_free(&t.loop);
}

static void on_free_itself(void *arg)
{
    struct trace *t = arg;
    loop_timer_free(&t->timer);
    loop_stop(t->loop);
}

Test(loop, a_timer_may_free_itself)
{
    struct trace t = start();
    t.timer = loop_timer_new(t.loop, on_free_itself, &t);
    loop_timer_set(t.timer, 0);
    loop_run(t.loop);
    cr_assert_null(t.timer);
    loop_free(&t.loop);
}

Test(loop, a_turn_waits_no_longer_than_asked)
{
    struct trace t = start();
    int64_t before = clock_mono_ns();
    loop_turn(t.loop, 0);
    loop_turn(t.loop, 20 * CLOCK_MS);
    cr_assert_geq(clock_mono_ns() - before, 20 * CLOCK_MS);
    struct loop_timer *a = loop_timer_new(t.loop, on_a, &t);
    loop_timer_set(a, CLOCK_MS);
    loop_turn(t.loop, CLOCK_HOUR); /* would not come back if the limit were the only end */
    cr_assert_str_eq(t.text, "a");
    loop_timer_free(&a);
    loop_free(&t.loop);
}

static void hook_h(void *arg)
{
    note(arg, 'h');
}

static void hook_i(void *arg)
{
    note(arg, 'i');
}

static void defer_e(void *arg)
{
    note(arg, 'e');
}

static void defer_d_then_e(void *arg)
{
    struct trace *t = arg;
    note(t, 'd');
    loop_defer(t->loop, defer_e, t);
}

static void timer_that_defers(void *arg)
{
    struct trace *t = arg;
    note(t, 't');
    loop_defer(t->loop, defer_d_then_e, t);
}

Test(loop, callbacks_then_hooks_then_deferred)
{
    struct trace t = start();
    struct loop_timer *timer = loop_timer_new(t.loop, timer_that_defers, &t);
    loop_hook_add(t.loop, hook_h, &t);
    loop_hook_add(t.loop, hook_i, &t);
    loop_timer_set(timer, 0);
    loop_turn(t.loop, CLOCK_SEC);
    cr_assert_str_eq(t.text, "thide", "what is deferred may defer more, in the same turn");
    loop_turn(t.loop, 0);
    cr_assert_str_eq(t.text, "thidehi", "hooks run every turn, deferred calls once");
    loop_hook_remove(t.loop, hook_h, &t);
    loop_hook_remove(t.loop, on_a, &t); /* none of its */
    loop_turn(t.loop, 0);
    cr_assert_str_eq(t.text, "thidehii");
    loop_timer_free(&timer);
    loop_free(&t.loop);
}

static void hook_that_swaps(void *arg)
{
    struct trace *t = arg;
    note(t, 'x');
    loop_hook_remove(t->loop, hook_that_swaps, t);
    loop_hook_remove(t->loop, hook_i, t);
    loop_hook_add(t->loop, hook_h, t);
}

Test(loop, hooks_may_remove_and_add_hooks)
{
    struct trace t = start();
    loop_hook_add(t.loop, hook_that_swaps, &t);
    loop_hook_add(t.loop, hook_i, &t);
    loop_turn(t.loop, 0);
    cr_assert_str_eq(t.text, "x", "a removed hook does not run, an added one waits for the next turn");
    loop_turn(t.loop, 0);
    cr_assert_str_eq(t.text, "xh");
    loop_free(&t.loop);
}

Test(loop, what_was_deferred_between_turns_does_not_wait)
{
    struct trace t = start();
    loop_defer(t.loop, defer_e, &t);
    loop_turn(t.loop, -1); /* nothing else would ever end it */
    cr_assert_str_eq(t.text, "e");
    loop_defer(t.loop, on_stop, &t);
    loop_run(t.loop);
    cr_assert_str_eq(t.text, "es");
    loop_defer(t.loop, defer_d_then_e, &t);
    loop_free(&t.loop);
    cr_assert_str_eq(t.text, "esde", "loop_free() runs what is left");
}

Test(loop, a_stop_before_the_run_is_kept)
{
    struct trace t = start();
    loop_stop(t.loop);
    loop_run(t.loop);
    loop_defer(t.loop, on_stop, &t);
    loop_run(t.loop); /* the stop was used up: this one runs */
    cr_assert_str_eq(t.text, "s");
    loop_free(&t.loop);
}

struct reader {
    struct trace *t;
    struct loop_fd *fd;
    int what;
};

static void on_read(int fd, int what, void *arg)
{
    struct reader *r = arg;
    char c;
    r->what |= what;
    if ((what & LOOP_READ) != 0 && read(fd, &c, 1) == 1) {
        note(r->t, c);
    }
}

Test(loop, descriptors_are_level_triggered_and_can_pause)
{
    struct trace t = start();
    struct reader r = {&t, NULL, 0};
    int p[2];
    cr_assert_eq(pipe(p), 0);
    r.fd = loop_fd_new(t.loop, p[0], LOOP_READ, on_read, &r);
    cr_assert_not_null(r.fd);
    cr_assert_eq(write(p[1], "xyz", 3), 3);
    loop_turn(t.loop, CLOCK_SEC);
    loop_turn(t.loop, CLOCK_SEC);
    cr_assert_str_eq(t.text, "xy");
    loop_fd_enable(r.fd, false);
    loop_fd_enable(r.fd, false);
    loop_turn(t.loop, 0);
    cr_assert_str_eq(t.text, "xy");
    loop_fd_enable(r.fd, true);
    loop_turn(t.loop, CLOCK_SEC);
    cr_assert_str_eq(t.text, "xyz");
    cr_assert_eq(r.what, LOOP_READ);
    close(p[1]);
    r.what = 0;
    loop_turn(t.loop, CLOCK_SEC);
    cr_assert_eq(r.what, LOOP_READ, "the end of the stream is seen as readable");
    loop_fd_free(&r.fd);
    cr_assert_null(r.fd);
    loop_fd_free(&r.fd);
    close(p[0]);
    loop_free(&t.loop);
}

Test(loop, writable_descriptors)
{
    struct trace t = start();
    struct reader r = {&t, NULL, 0};
    int p[2];
    cr_assert_eq(pipe(p), 0);
    r.fd = loop_fd_new(t.loop, p[1], LOOP_WRITE, on_read, &r);
    loop_turn(t.loop, CLOCK_SEC);
    cr_assert_eq(r.what, LOOP_WRITE);
    loop_fd_free(&r.fd);
    close(p[0]);
    close(p[1]);
    loop_free(&t.loop);
}

Test(loop, a_descriptor_that_cannot_be_watched)
{
    struct trace t = start();
    cr_assert_null(loop_fd_new(t.loop, 9999, LOOP_READ, on_read, NULL));
    loop_free(&t.loop);
}

static void on_free_both(int fd, int what, void *arg)
{
    struct loop_fd **both = arg;
    (void)fd;
    (void)what;
    loop_fd_free(&both[0]);
    loop_fd_free(&both[1]);
}

Test(loop, a_callback_may_free_itself_and_another_that_is_due)
{
    struct trace t = start();
    struct loop_fd *both[2];
    int p[2][2];
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(pipe(p[i]), 0);
        cr_assert_eq(write(p[i][1], "x", 1), 1);
        both[i] = loop_fd_new(t.loop, p[i][0], LOOP_READ, on_free_both, both);
    }
    loop_turn(t.loop, CLOCK_SEC);
    cr_assert_null(both[0]);
    loop_turn(t.loop, 0);
    loop_free(&t.loop);
}

static void on_letter(int fd, int what, void *arg)
{
    struct reader *r = arg;
    on_read(fd, what, r);
}

Test(loop, urgent_descriptors_come_first)
{
    struct trace t = start();
    struct reader r[4];
    int p[4][2];
    for (int i = 0; i < 4; i++) {
        char c = (char)('0' + i);
        cr_assert_eq(pipe(p[i]), 0);
        cr_assert_eq(write(p[i][1], &c, 1), 1);
        r[i] = (struct reader){&t, NULL, 0};
        r[i].fd = loop_fd_new(t.loop, p[i][0], LOOP_READ | (i == 3 ? LOOP_URGENT : 0), on_letter, &r[i]);
    }
    while (t.len < 4) {
        loop_turn(t.loop, CLOCK_SEC);
    }
    cr_assert_eq(t.text[0], '3', "%s", t.text);
    for (int i = 0; i < 4; i++) {
        loop_fd_free(&r[i].fd);
    }
    loop_free(&t.loop);
}

static void on_usr(int number, void *arg)
{
    note(arg, number == SIGUSR1 ? '1' : '2');
}

Test(loop, signals_reach_every_loop_that_asked)
{
    struct trace a = start();
    struct trace b = start();
    struct loop_signal *a1 = loop_signal_new(a.loop, SIGUSR1, on_usr, &a);
    struct loop_signal *b1 = loop_signal_new(b.loop, SIGUSR1, on_usr, &b);
    struct loop_signal *b2 = loop_signal_new(b.loop, SIGUSR2, on_usr, &b);
    cr_assert(a1 != NULL && b1 != NULL && b2 != NULL);
    raise(SIGUSR1);
    raise(SIGUSR1);
    loop_turn(a.loop, CLOCK_SEC);
    cr_assert_str_eq(a.text, "1", "several of one kind are one");
    loop_turn(b.loop, CLOCK_SEC);
    cr_assert_str_eq(b.text, "1");
    raise(SIGUSR2);
    loop_turn(b.loop, CLOCK_SEC);
    loop_turn(a.loop, 0);
    cr_assert_str_eq(a.text, "1");
    cr_assert_str_eq(b.text, "12");
    loop_signal_free(&b1);
    raise(SIGUSR1); /* a still listens: the process lives */
    loop_turn(a.loop, CLOCK_SEC);
    loop_turn(b.loop, 0);
    cr_assert_str_eq(a.text, "11");
    cr_assert_str_eq(b.text, "12");
    loop_signal_free(&a1);
    loop_signal_free(&b2);
    cr_assert_null(b2);
    loop_signal_free(&b2);
    loop_free(&a.loop);
    loop_free(&b.loop);
}

Test(loop, the_last_listener_restores_the_handler)
{
    struct trace t = start();
    struct sigaction now;
    signal(SIGUSR1, SIG_IGN);
    struct loop_signal *s = loop_signal_new(t.loop, SIGUSR1, on_usr, &t);
    cr_assert_eq(sigaction(SIGUSR1, NULL, &now), 0);
    cr_assert(now.sa_handler != SIG_IGN && now.sa_handler != SIG_DFL);
    loop_signal_free(&s);
    cr_assert_eq(sigaction(SIGUSR1, NULL, &now), 0);
    cr_assert(now.sa_handler == SIG_IGN);
    loop_free(&t.loop);
}

Test(loop, impossible_signals_are_refused)
{
    struct trace t = start();
    cr_assert_null(loop_signal_new(t.loop, SIGKILL, on_usr, &t));
    cr_assert_null(loop_signal_new(t.loop, 0, on_usr, &t));
    cr_assert_null(loop_signal_new(t.loop, 1000, on_usr, &t));
    loop_free(&t.loop);
}

struct two_signals {
    struct trace *t;
    struct loop_signal *s[3];
};

static void on_first(int number, void *arg)
{
    struct two_signals *two = arg;
    (void)number;
    note(two->t, 'f');
    loop_signal_free(&two->s[0]);
    loop_signal_free(&two->s[1]);
}

static void on_other(int number, void *arg)
{
    struct two_signals *two = arg;
    (void)number;
    note(two->t, 'o');
}

Test(loop, a_signal_callback_may_free_itself_and_the_next)
{
    struct trace t = start();
    struct two_signals two = {&t, {NULL, NULL, NULL}};
    two.s[0] = loop_signal_new(t.loop, SIGUSR1, on_first, &two);
    two.s[1] = loop_signal_new(t.loop, SIGUSR1, on_other, &two);
    two.s[2] = loop_signal_new(t.loop, SIGUSR1, on_other, &two);
    raise(SIGUSR1);
    loop_turn(t.loop, CLOCK_SEC);
    cr_assert_str_eq(t.text, "fo", "the freed one is not called, the one after it is");
    loop_signal_free(&two.s[2]);
    loop_free(&t.loop);
}

static void on_detach(void *arg)
{
    note(arg, 'z');
}

Test(loop, attachments_and_the_list_of_loops)
{
    struct trace a = start();
    struct trace b = start();
    size_t count = 0;
    cr_assert_null(loop_attached(a.loop, on_detach));
    loop_attach(a.loop, on_detach, &a);
    cr_assert_eq(loop_attached(a.loop, on_detach), &a);
    cr_assert_null(loop_attached(b.loop, on_detach));
    for (struct loop *l = loop_next(NULL); l != NULL; l = loop_next(l)) {
        cr_assert(l == a.loop || l == b.loop);
        count++;
    }
    cr_assert_eq(count, 2);
    loop_defer(a.loop, defer_e, &a);
    loop_free(&a.loop);
    cr_assert_str_eq(a.text, "ez", "after what was deferred");
    cr_assert_eq(loop_next(NULL), b.loop);
    loop_free(&b.loop);
    cr_assert_null(loop_next(NULL));
}

Test(loop, a_forgotten_timer_is_our_bug, .signal = SIGABRT)
{
    struct trace t = start();
    struct loop_timer *timer = loop_timer_new(t.loop, on_a, &t);
    (void)timer;
    loop_free(&t.loop);
}

Test(loop, the_base_is_that_of_libevent)
{
    struct trace t = start();
    cr_assert_eq(event_base_get_npriorities(loop_base(t.loop)), 2);
    loop_free(&t.loop);
}

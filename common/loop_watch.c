/* loop_watch.c: timers and watched descriptors of the event loop, on libevent's events. Owns each timer's deadline.
 *
 * libevent's timers count in microseconds and, on 32-bit systems, in a narrow time_t: each timer here keeps its own deadline in nanoseconds, asks
 * libevent for at most TIMER_MAX, and goes on waiting when its deadline has not come. */
#include "common/loop_internal.h"

#include "common/mem.h"

#include <event2/event_struct.h>
#include <stdlib.h>

#define TIMER_MAGIC 0x54494d52U
#define FD_MAGIC 0x4c464458U

#define TIMER_MAX (20 * CLOCK_DAY)

struct loop_timer {
    unsigned magic;
    struct loop *loop;
    struct event event;
    int64_t deadline;
    loop_f *f;
    void *arg;
};

struct loop_fd {
    unsigned magic;
    struct loop *loop;
    struct event event;
    bool enabled;
    loop_fd_f *f;
    void *arg;
};

/* Rounds up, and one more: libevent cuts the time of day to microseconds, and no timer may fire early. */
static struct timeval timeval_of(int64_t ns)
{
    int64_t us = (ns + CLOCK_US - 1) / CLOCK_US + 1;
    return (struct timeval){.tv_sec = (time_t)(us / 1000000), .tv_usec = (suseconds_t)(us % 1000000)};
}

/* Asks libevent to wake the timer at its deadline, or earlier when that is far away. */
static void arm_timer(struct loop_timer *timer, int64_t now)
{
    int64_t left = timer->deadline > now ? timer->deadline - now : 0;
    struct timeval tv = {0, 0};
    if (left > 0) {
        tv = timeval_of(left < TIMER_MAX ? left : TIMER_MAX);
    }
    if (evtimer_add(&timer->event, &tv) != 0) {
        loop_give_up("set a timer");
    }
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct loop_timer *timer;
    (void)fd;
    (void)what;
    CAST_OBJ(timer, arg, TIMER_MAGIC);
    loop_begin_span(timer->loop, NULL);
    if (timer->loop->mark < timer->deadline) {
        arm_timer(timer, timer->loop->mark);
        return;
    }
    timer->f(timer->arg);
}

struct loop_timer *loop_timer_new(struct loop *loop, loop_f *f, void *arg)
{
    struct loop_timer *timer = mem_xzalloc(sizeof(*timer));
    timer->magic = TIMER_MAGIC;
    timer->loop = loop;
    timer->f = f;
    timer->arg = arg;
    if (evtimer_assign(&timer->event, loop->base, on_timer, timer) != 0) {
        free(timer);
        return NULL;
    }
    loop->handles++;
    return timer;
}

void loop_timer_free(struct loop_timer **timer)
{
    if (*timer == NULL) {
        return;
    }
    evtimer_del(&(*timer)->event);
    (*timer)->loop->handles--;
    (*timer)->magic = 0;
    free(*timer);
    *timer = NULL;
}

void loop_timer_set(struct loop_timer *timer, int64_t delay_ns)
{
    int64_t now = clock_mono_ns();
    if (delay_ns < 0) {
        delay_ns = 0;
    }
    timer->deadline = delay_ns < INT64_MAX - now ? now + delay_ns : INT64_MAX;
    arm_timer(timer, now);
}

void loop_timer_clear(struct loop_timer *timer)
{
    evtimer_del(&timer->event);
}

bool loop_timer_pending(const struct loop_timer *timer)
{
    return evtimer_pending(&timer->event, NULL) != 0;
}

static void on_fd(evutil_socket_t number, short what, void *arg)
{
    struct loop_fd *fd;
    CAST_OBJ(fd, arg, FD_MAGIC);
    loop_begin_span(fd->loop, NULL);
    fd->f((int)number, ((what & EV_READ) != 0 ? LOOP_READ : 0) | ((what & EV_WRITE) != 0 ? LOOP_WRITE : 0), fd->arg);
}

struct loop_fd *loop_fd_new(struct loop *loop, int number, int what, loop_fd_f *f, void *arg)
{
    struct loop_fd *fd = mem_xzalloc(sizeof(*fd));
    int events = EV_PERSIST | ((what & LOOP_READ) != 0 ? EV_READ : 0) | ((what & LOOP_WRITE) != 0 ? EV_WRITE : 0);
    int priority = (what & LOOP_URGENT) != 0 ? LOOP_PRIORITY_URGENT : LOOP_PRIORITY_USUAL;
    fd->magic = FD_MAGIC;
    fd->loop = loop;
    fd->f = f;
    fd->arg = arg;
    if (event_assign(&fd->event, loop->base, number, (short)events, on_fd, fd) != 0 ||
        event_priority_set(&fd->event, priority) != 0 || event_add(&fd->event, NULL) != 0) {
        free(fd);
        return NULL;
    }
    fd->enabled = true;
    loop->handles++;
    return fd;
}

void loop_fd_free(struct loop_fd **fd)
{
    if (*fd == NULL) {
        return;
    }
    event_del(&(*fd)->event);
    (*fd)->loop->handles--;
    (*fd)->magic = 0;
    free(*fd);
    *fd = NULL;
}

void loop_fd_enable(struct loop_fd *fd, bool on)
{
    if (fd->enabled == on) {
        return;
    }
    fd->enabled = on;
    if ((on ? event_add(&fd->event, NULL) : event_del(&fd->event)) != 0) {
        loop_give_up(on ? "watch a descriptor" : "let go of a descriptor");
    }
}


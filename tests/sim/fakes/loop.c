/* loop.c: common/loop.h under virtual time. Each loop is one node's; what is due comes from the
 * world's queue. Descriptors and signals never happen here. */
#include "common/loop.h"

#include "common/mem.h"
#include "tests/sim/sim.h"

#include <assert.h>
#include <stdlib.h>

struct call {
    loop_f *f;
    void *arg;
};

struct calls {
    struct call *items;
    size_t count, room;
};

struct loop {
    struct node *node;
    struct calls hooks, deferred, attached;
    struct sim_event limit; /* of loop_turn() */
    uint64_t handles;       /* timers, descriptors, signals that are not freed */
    bool stop, in_turn, in_hooks, limited;
};

struct loop_timer {
    struct loop *loop;
    struct sim_event event;
};

struct loop_fd {
    struct loop *loop;
};

struct loop_signal {
    struct loop *loop;
};

static void add_call(struct calls *calls, loop_f *f, void *arg)
{
    if (calls->count == calls->room) {
        calls->room = calls->room > 0 ? calls->room * 2 : 8;
        calls->items = mem_xrealloc(calls->items, calls->room, sizeof(struct call));
    }
    calls->items[calls->count++] = (struct call){f, arg};
}

static void on_limit(void *arg)
{
    struct loop *loop = arg;
    loop->limited = true;
}

struct loop *loop_new(void)
{
    struct node *node = sim_here();
    assert(node != NULL);
    struct loop *loop = mem_xzalloc(sizeof(*loop));
    loop->node = node;
    sim_event_init(&loop->limit, node, on_limit, loop);
    if (node->loop == NULL) {
        node->loop = loop;
    }
    return loop;
}

static void run_deferred(struct loop *loop)
{
    for (size_t i = 0; i < loop->deferred.count; i++) {
        struct call call = loop->deferred.items[i];
        call.f(call.arg);
    }
    loop->deferred.count = 0;
}

void loop_free(struct loop **loop)
{
    struct loop *l = *loop;
    if (l == NULL) {
        return;
    }
    assert(!l->in_turn);
    run_deferred(l);
    for (size_t i = l->attached.count; i > 0; i--) {
        l->attached.items[i - 1].f(l->attached.items[i - 1].arg);
    }
    run_deferred(l);
    assert(l->handles == 0);
    sim_event_clear(&l->limit);
    free(l->hooks.items);
    free(l->deferred.items);
    free(l->attached.items);
    if (l->node->loop == l) {
        l->node->loop = NULL;
    }
    free(l);
    *loop = NULL;
}

static void run_hooks(struct loop *loop)
{
    size_t count = loop->hooks.count;
    size_t kept = 0;
    loop->in_hooks = true;
    for (size_t i = 0; i < count; i++) {
        struct call call = loop->hooks.items[i];
        if (call.f != NULL) {
            call.f(call.arg);
        }
    }
    loop->in_hooks = false;
    for (size_t i = 0; i < loop->hooks.count; i++) {
        if (loop->hooks.items[i].f != NULL) {
            loop->hooks.items[kept++] = loop->hooks.items[i];
        }
    }
    loop->hooks.count = kept;
}

void sim_loop_turn(struct loop *loop)
{
    struct node *node = loop->node;
    struct node *before = sim_enter(node);
    uint64_t seq = sim_world()->seq; /* what is asked for from here on is of later turns */
    struct sim_event *e;
    assert(!loop->in_turn);
    loop->in_turn = node->in_turn = true;
    while ((e = sim_take_due(node, seq)) != NULL) {
        e->f(e->arg);
    }
    run_hooks(loop);
    run_deferred(loop);
    loop->in_turn = node->in_turn = false;
    sim_enter(before);
    sim_turn_over(node);
}

/* For code that turns a loop itself: the world goes on until this loop had a turn. */
void loop_turn(struct loop *loop, int64_t max_wait_ns)
{
    struct world *w = sim_world();
    struct node *node = loop->node;
    struct node *before = sim_enter(NULL);
    bool now = max_wait_ns == 0 || loop->deferred.count > 0;
    if (now || max_wait_ns > 0) {
        sim_event_set(&loop->limit, w->now_ns + (now ? 0 : max_wait_ns));
    }
    bool turned = false;
    while (!turned && w->heap_count > 0) {
        turned = w->heap[1]->node == node;
        if (!world_step(w)) {
            break;
        }
    }
    sim_event_clear(&loop->limit);
    sim_enter(before);
}

void loop_run(struct loop *loop)
{
    while (!loop->stop) {
        loop_turn(loop, -1);
    }
    loop->stop = false;
}

void loop_stop(struct loop *loop)
{
    loop->stop = true;
}

void loop_doing(struct loop *loop, const char *what)
{
    (void)loop;
    (void)what;
}

uint64_t loop_slow_turns(const struct loop *loop)
{
    (void)loop;
    return 0;
}

void loop_hook_add(struct loop *loop, loop_f *f, void *arg)
{
    add_call(&loop->hooks, f, arg);
}

void loop_hook_remove(struct loop *loop, loop_f *f, void *arg)
{
    for (size_t i = 0; i < loop->hooks.count; i++) {
        struct call *call = &loop->hooks.items[i];
        if (call->f != f || call->arg != arg) {
            continue;
        }
        if (loop->in_hooks) {
            call->f = NULL;
            return;
        }
        for (size_t k = i + 1; k < loop->hooks.count; k++) {
            loop->hooks.items[k - 1] = loop->hooks.items[k];
        }
        loop->hooks.count--;
        return;
    }
}

void loop_defer(struct loop *loop, loop_f *f, void *arg)
{
    add_call(&loop->deferred, f, arg);
}

void loop_attach(struct loop *loop, loop_f *f, void *arg)
{
    assert(loop_attached(loop, f) == NULL);
    add_call(&loop->attached, f, arg);
}

void *loop_attached(const struct loop *loop, loop_f *f)
{
    for (size_t i = 0; i < loop->attached.count; i++) {
        if (loop->attached.items[i].f == f) {
            return loop->attached.items[i].arg;
        }
    }
    return NULL;
}

/* Only the real proc.c asks: children here are the world's. */
struct loop *loop_next(const struct loop *loop)
{
    (void)loop;
    return NULL;
}

void *loop_base(struct loop *loop)
{
    (void)loop;
    return NULL;
}

/* --- timers --- */

struct loop_timer *loop_timer_new(struct loop *loop, loop_f *f, void *arg)
{
    struct loop_timer *timer = mem_xzalloc(sizeof(*timer));
    timer->loop = loop;
    sim_event_init(&timer->event, loop->node, f, arg);
    loop->handles++;
    return timer;
}

void loop_timer_free(struct loop_timer **timer)
{
    if (*timer == NULL) {
        return;
    }
    sim_event_clear(&(*timer)->event);
    (*timer)->loop->handles--;
    free(*timer);
    *timer = NULL;
}

void loop_timer_set(struct loop_timer *timer, int64_t delay_ns)
{
    int64_t now = sim_world()->now_ns;
    delay_ns = delay_ns > 0 ? delay_ns : 0;
    sim_event_set(&timer->event, delay_ns < INT64_MAX - now ? now + delay_ns : INT64_MAX);
}

void loop_timer_clear(struct loop_timer *timer)
{
    sim_event_clear(&timer->event);
}

bool loop_timer_pending(const struct loop_timer *timer)
{
    return sim_event_pending(&timer->event);
}

/* --- what never happens here --- */

struct loop_fd *loop_fd_new(struct loop *loop, int fd, int what, loop_fd_f *f, void *arg)
{
    struct loop_fd *watch = mem_xzalloc(sizeof(*watch));
    (void)fd;
    (void)what;
    (void)f;
    (void)arg;
    watch->loop = loop;
    loop->handles++;
    return watch;
}

void loop_fd_free(struct loop_fd **fd)
{
    if (*fd == NULL) {
        return;
    }
    (*fd)->loop->handles--;
    free(*fd);
    *fd = NULL;
}

void loop_fd_enable(struct loop_fd *fd, bool on)
{
    (void)fd;
    (void)on;
}

struct loop_signal *loop_signal_new(struct loop *loop, int number, loop_signal_f *f, void *arg)
{
    struct loop_signal *s = mem_xzalloc(sizeof(*s));
    (void)number;
    (void)f;
    (void)arg;
    s->loop = loop;
    loop->handles++;
    return s;
}

void loop_signal_free(struct loop_signal **signal)
{
    if (*signal == NULL) {
        return;
    }
    (*signal)->loop->handles--;
    free(*signal);
    *signal = NULL;
}

/* loop.c: the event loop on libevent: the turns with their hooks and deferred calls, and the delivery of signals. libevent serves signals to one
 * loop of a process only; here any loop may ask for any signal, so the list of loops and the handlers are static state. Timers and descriptors:
 * loop_watch.c. */
#include "common/loop_internal.h"

#include "common/log.h"
#include "common/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define SLOW_TURN (100 * CLOCK_MS)

struct loop_signal {
    struct loop *loop;
    struct loop_signal *next;
    int signal;
    loop_signal_f *f;
    void *arg;
};

static struct {
    struct loop *loops;
    struct {
        unsigned users;
        struct sigaction before;
    } handlers[LOOP_SIGNALS];
} process;

static void add_call(struct loop_calls *calls, loop_f *f, void *arg)
{
    if (calls->count == calls->room) {
        calls->room = calls->room != 0 ? calls->room * 2 : 8;
        calls->items = mem_xrealloc(calls->items, calls->room, sizeof(calls->items[0]));
    }
    calls->items[calls->count++] = (struct loop_call){f, arg};
}

void loop_give_up(const char *what)
{
    log_error("the event loop cannot %s", what);
    abort();
}

void loop_begin_span(struct loop *loop, const char *what)
{
    int64_t now = clock_mono_ns();
    if (loop->work_start == 0) {
        loop->work_start = now;
    } else if (now - loop->mark > loop->longest) {
        loop->longest = now - loop->mark;
        loop->longest_doing = loop->doing;
    }
    loop->mark = now;
    loop->doing = what;
}

/* Blocks all signals while what on_signal() reads is changed. */
static void block_signals(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, before);
}

static void on_limit(void *arg)
{
    (void)arg; /* that it ran is enough: the turn ends */
}

static void on_libevent_text(int severity, const char *text)
{
    if (severity == EVENT_LOG_ERR) {
        log_error("libevent: %s", text);
    } else if (severity == EVENT_LOG_WARN) {
        log_warn("libevent: %s", text);
    } else {
        log_debug("libevent: %s", text);
    }
}

struct loop *loop_new(void)
{
    event_set_log_callback(on_libevent_text);
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;
    if (config != NULL && event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) == 0 &&
        event_config_set_flag(config, EVENT_BASE_FLAG_NO_CACHE_TIME) == 0 &&
        event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV) == 0 &&
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK) == 0) {
        base = event_base_new_with_config(config);
    }
    if (config != NULL) {
        event_config_free(config);
    }
    if (base == NULL) {
        return NULL;
    }
    struct loop *loop = mem_xzalloc(sizeof(*loop));
    loop->magic = LOOP_MAGIC;
    loop->base = base;
    loop->signal_pipe[0] = loop->signal_pipe[1] = -1;
    if (event_base_priority_init(base, LOOP_PRIORITIES) != 0 ||
        (loop->limit = loop_timer_new(loop, on_limit, NULL)) == NULL) {
        event_base_free(base);
        free(loop);
        return NULL;
    }
    sigset_t before;
    block_signals(&before);
    loop->next = process.loops;
    process.loops = loop;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return loop;
}

static void run_deferred(struct loop *loop)
{
    for (size_t i = 0; i < loop->deferred.count; i++) { /* the list may grow and move meanwhile */
        struct loop_call call = loop->deferred.items[i];
        loop_begin_span(loop, NULL);
        call.f(call.arg);
    }
    loop->deferred.count = 0;
}

static void leave_list(struct loop *loop)
{
    sigset_t before;
    block_signals(&before);
    for (struct loop **p = &process.loops; *p != NULL; p = &(*p)->next) {
        if (*p == loop) {
            *p = loop->next;
            break;
        }
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
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
    leave_list(l);
    loop_timer_free(&l->limit);
    loop_fd_free(&l->signal_fd);
    assert(l->handles == 0);
    for (int i = 0; i < 2; i++) {
        if (l->signal_pipe[i] >= 0) {
            close(l->signal_pipe[i]);
        }
    }
    event_base_free(l->base);
    free(l->hooks.items);
    free(l->deferred.items);
    free(l->attached.items);
    l->magic = 0;
    free(l);
    *loop = NULL;
}

static void run_hooks(struct loop *loop)
{
    size_t count = loop->hooks.count; /* one added by a hook waits for the next turn */
    loop->in_hooks = true;
    for (size_t i = 0; i < count; i++) {
        struct loop_call call = loop->hooks.items[i];
        if (call.f != NULL) {
            loop_begin_span(loop, NULL);
            call.f(call.arg);
        }
    }
    loop->in_hooks = false;
    size_t kept = 0;
    for (size_t i = 0; i < loop->hooks.count; i++) {
        if (loop->hooks.items[i].f != NULL) {
            loop->hooks.items[kept++] = loop->hooks.items[i];
        }
    }
    loop->hooks.count = kept;
}

static void judge_turn(struct loop *loop)
{
    loop_begin_span(loop, NULL);
    int64_t took = loop->mark - loop->work_start;
    if (took > SLOW_TURN) {
        loop->slow_turns++;
        log_warn("a turn of the event loop took %" PRId64 " ms, %" PRId64 " of them: %s", took / CLOCK_MS,
                 loop->longest / CLOCK_MS, loop->longest_doing != NULL ? loop->longest_doing : "something without a name");
    }
}

void loop_turn(struct loop *loop, int64_t max_wait_ns)
{
    int flags = EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY;
    assert(!loop->in_turn);
    loop->in_turn = true;
    loop->work_start = 0;
    loop->longest = 0;
    loop->longest_doing = NULL;
    if (max_wait_ns == 0 || loop->deferred.count > 0) {
        flags = EVLOOP_ONCE | EVLOOP_NONBLOCK;
    } else if (max_wait_ns > 0) {
        loop_timer_set(loop->limit, max_wait_ns);
    }
    if (event_base_loop(loop->base, flags) < 0) {
        loop_give_up("wait for events");
    }
    loop_timer_clear(loop->limit);
    run_hooks(loop);
    run_deferred(loop);
    judge_turn(loop);
    loop->in_turn = false;
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
    loop_begin_span(loop, what);
}

uint64_t loop_slow_turns(const struct loop *loop)
{
    return loop->slow_turns;
}

void loop_hook_add(struct loop *loop, loop_f *f, void *arg)
{
    add_call(&loop->hooks, f, arg);
}

void loop_hook_remove(struct loop *loop, loop_f *f, void *arg)
{
    for (size_t i = 0; i < loop->hooks.count; i++) {
        struct loop_call *call = &loop->hooks.items[i];
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

struct loop *loop_next(const struct loop *loop)
{
    return loop == NULL ? process.loops : loop->next;
}

void *loop_base(struct loop *loop)
{
    return loop->base;
}

/* Runs at any time: notes the signal with every loop that asked for it, and wakes it. A full pipe wakes it just as well. */
static void on_signal(int number)
{
    int saved = errno;
    for (struct loop *loop = process.loops; loop != NULL; loop = loop->next) {
        if (loop->signal_pipe[1] >= 0) {
            loop->pending[number] = 1;
            ssize_t n = write(loop->signal_pipe[1], "", 1);
            (void)n;
        }
    }
    errno = saved;
}

static void deliver_signals(int number, int what, void *arg)
{
    struct loop *loop;
    char bytes[64];
    (void)what;
    CAST_OBJ(loop, arg, LOOP_MAGIC);
    while (read(number, bytes, sizeof(bytes)) > 0) {
    }
    for (int s = 1; s < LOOP_SIGNALS; s++) {
        if (loop->pending[s] == 0) {
            continue;
        }
        loop->pending[s] = 0;
        for (struct loop_signal *p = loop->signals; p != NULL; p = loop->signal_cursor) {
            loop->signal_cursor = p->next;
            if (p->signal == s) {
                loop_begin_span(loop, NULL);
                p->f(s, p->arg);
            }
        }
    }
}

static bool open_signal_pipe(struct loop *loop)
{
    if (loop->signal_pipe[0] >= 0) {
        return true;
    }
    int fds[2];
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        return false;
    }
    loop->signal_fd = loop_fd_new(loop, fds[0], LOOP_READ | LOOP_URGENT, deliver_signals, loop);
    if (loop->signal_fd == NULL) {
        close(fds[0]);
        close(fds[1]);
        return false;
    }
    loop->signal_pipe[0] = fds[0];
    loop->signal_pipe[1] = fds[1];
    return true;
}

struct loop_signal *loop_signal_new(struct loop *loop, int number, loop_signal_f *f, void *arg)
{
    if (number < 1 || number >= LOOP_SIGNALS || !open_signal_pipe(loop)) {
        return NULL;
    }
    if (process.handlers[number].users == 0) {
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        sigfillset(&action.sa_mask);
        if (sigaction(number, &action, &process.handlers[number].before) != 0) {
            return NULL;
        }
    }
    process.handlers[number].users++;
    struct loop_signal *s = mem_xzalloc(sizeof(*s));
    s->loop = loop;
    s->signal = number;
    s->f = f;
    s->arg = arg;
    struct loop_signal **end = &loop->signals;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = s;
    loop->handles++;
    return s;
}

void loop_signal_free(struct loop_signal **signal)
{
    struct loop_signal *s = *signal;
    if (s == NULL) {
        return;
    }
    struct loop *loop = s->loop;
    for (struct loop_signal **p = &loop->signals; *p != NULL; p = &(*p)->next) {
        if (*p == s) {
            *p = s->next;
            break;
        }
    }
    if (loop->signal_cursor == s) {
        loop->signal_cursor = s->next;
    }
    if (--process.handlers[s->signal].users == 0) {
        sigaction(s->signal, &process.handlers[s->signal].before, NULL);
    }
    loop->handles--;
    free(s);
    *signal = NULL;
}

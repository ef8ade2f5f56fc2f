/* stop.c: signals and standard input of a daemon. Ends nothing itself. */
#include "common/stop.h"

#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const int SIGNALS[] = {SIGTERM, SIGINT, SIGHUP};

struct stop {
    struct loop_signal *signals[ARRAY_LEN(SIGNALS)];
    struct loop_fd *guard;
    struct loop_timer *blind; /* tells that the guard cannot be watched */
    stop_f *f;
    void *arg;
};

static void on_signal(int number, void *arg)
{
    struct stop *e = arg;
    char why[32];

    snprintf(why, sizeof why, "signal %d", number);
    e->f(e->arg, false, why);
}

static void on_input(int fd, int what, void *arg)
{
    struct stop *e = arg;
    char bytes[256];
    ssize_t n = read(fd, bytes, sizeof bytes);

    (void)what;
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
        e->f(e->arg, true, "standard input has ended");
}

static void on_blind(void *arg)
{
    struct stop *e = arg;

    e->f(e->arg, true, "standard input cannot be watched");
}

struct stop *stop_new(struct loop *loop, bool guard, stop_f *f, void *arg)
{
    struct stop *e = mem_xzalloc(sizeof *e);

    e->f = f;
    e->arg = arg;
    for (size_t i = 0; i < ARRAY_LEN(SIGNALS); i++) {
        e->signals[i] = loop_signal_new(loop, SIGNALS[i], on_signal, e);
        if (e->signals[i] == NULL) {
            log_error("signal %d cannot be watched", SIGNALS[i]);
            abort();
        }
    }
    if (guard)
        e->guard = loop_fd_new(loop, STDIN_FILENO, LOOP_READ, on_input, e);
    if (guard && e->guard == NULL) { /* a file, or /dev/null */
        e->blind = loop_timer_new(loop, on_blind, e);
        loop_timer_set(e->blind, 0);
    }
    return e;
}

void stop_free(struct stop **stop)
{
    struct stop *e = *stop;

    if (e == NULL)
        return;
    loop_timer_free(&e->blind);
    loop_fd_free(&e->guard);
    for (size_t i = ARRAY_LEN(SIGNALS); i-- > 0;)
        loop_signal_free(&e->signals[i]);
    free(e);
    *stop = NULL;
}

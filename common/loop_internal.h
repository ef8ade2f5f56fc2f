/* loop_internal.h: what loop.c and loop_watch.c share. Included by no one else. */
#ifndef MAKESPAN_COMMON_LOOP_INTERNAL_H
#define MAKESPAN_COMMON_LOOP_INTERNAL_H

#include "common/clock.h"
#include "common/loop.h"

#include <event2/event.h>
#include <signal.h>
#include <stddef.h>

#define LOOP_MAGIC 0x4c4f4f50U
#define LOOP_SIGNALS 65

/* libevent's priorities: the lower number first. */
enum { LOOP_PRIORITY_URGENT, LOOP_PRIORITY_USUAL, LOOP_PRIORITIES };

struct loop_call {
    loop_f *f;
    void *arg;
};

struct loop_calls {
    struct loop_call *items;
    size_t count;
    size_t room;
};

struct loop {
    unsigned magic;
    struct event_base *base;
    struct loop_timer *limit; /* ends a turn that has a limit */
    bool in_turn;
    bool in_hooks;
    bool stop;
    size_t handles; /* timers, descriptors and signals that are not freed */
    struct loop_calls hooks; /* one removed by a hook keeps its place, with f NULL, until all have run */
    struct loop_calls deferred;
    struct loop_calls attached;

    int64_t work_start; /* of this turn; 0: no callback ran yet */
    int64_t mark;       /* since when `doing` is done */
    const char *doing;
    int64_t longest;
    const char *longest_doing;
    uint64_t slow_turns;

    struct loop_signal *signals;
    struct loop_signal *signal_cursor; /* the next one to call while delivering */
    int signal_pipe[2];
    struct loop_fd *signal_fd;
    volatile sig_atomic_t pending[LOOP_SIGNALS];
    struct loop *next; /* all loops of the process */
};

/* Ends the span of what was done until now and begins one of `what`. Each callback begins with it. */
void loop_begin_span(struct loop *loop, const char *what);
/* What cannot be arranged would wait for ever: logs and aborts. */
NORETURN void loop_give_up(const char *what);

#endif

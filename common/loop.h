/* loop.h: the event loop (libevent beneath), timers, descriptors, signals, and what happens at the end of a turn.
 *
 * A seam: the simulation replaces this module by virtual time. Several loops may exist (one a simulated node); nothing here is global. */
#ifndef MAKESPAN_COMMON_LOOP_H
#define MAKESPAN_COMMON_LOOP_H

#include "common/attr.h"

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_timer;
struct loop_fd;
struct loop_signal;

typedef void loop_f(void *arg);

/* After any daemonising fork, never before. NULL when the system gives none. */
struct loop *loop_new(void) MUST_CHECK;
/* Timers, watched descriptors and signals are freed before by their owners, or by what is deferred. */
void loop_free(struct loop **loop);
/* Turns until loop_stop(), which may also have come before: then there is no turn. A turn: wait, run callbacks, then the hooks in the order they were added, then what was deferred.
 * A turn that works more than 100 ms is logged with the text of loop_doing(). */
void loop_run(struct loop *loop);
/* One turn; waits at most max_wait_ns (negative: as long as it takes). */
void loop_turn(struct loop *loop, int64_t max_wait_ns);
void loop_stop(struct loop *loop);
/* Names what is done from here on in the present callback, for the log of slow turns: the longest of a turn is named. `what` is borrowed
 * until the turn's end. A callback that libevent itself calls (proto/conn.c) begins with this, or its time is not seen. */
void loop_doing(struct loop *loop, const char *what);
/* Number of turns that took more than 100 ms. */
uint64_t loop_slow_turns(const struct loop *loop);

/* A hook runs at the end of every turn: group commit, flush. */
void loop_hook_add(struct loop *loop, loop_f *f, void *arg);
void loop_hook_remove(struct loop *loop, loop_f *f, void *arg);
/* Calls f(arg) once at the end of this turn, after the hooks: frees of objects whose callbacks may be running. What f defers runs in
 * the same turn. At loop_free() what is still deferred runs. */
void loop_defer(struct loop *loop, loop_f *f, void *arg);

/* Timers fire once; the callback may set them again. */
struct loop_timer *loop_timer_new(struct loop *loop, loop_f *f, void *arg) MUST_CHECK;
void loop_timer_free(struct loop_timer **timer); /* NULL inside is fine */
void loop_timer_set(struct loop_timer *timer, int64_t delay_ns); /* replaces an earlier setting; below 0 counts as 0 */
void loop_timer_clear(struct loop_timer *timer);
bool loop_timer_pending(const struct loop_timer *timer);

enum {
    LOOP_READ = 1,
    LOOP_WRITE = 2,
    LOOP_URGENT = 4, /* to loop_fd_new(): its callback runs before those of other descriptors and timers that are due in the same turn */
};
typedef void loop_fd_f(int fd, int what, void *arg);
/* Watches a descriptor that stays the caller's, level-triggered, until freed. */
struct loop_fd *loop_fd_new(struct loop *loop, int fd, int what, loop_fd_f *f, void *arg) MUST_CHECK;
void loop_fd_free(struct loop_fd **fd);
void loop_fd_enable(struct loop_fd *fd, bool on); /* pause and go on */

typedef void loop_signal_f(int signal, void *arg);
struct loop_signal *loop_signal_new(struct loop *loop, int signal, loop_signal_f *f, void *arg) MUST_CHECK;
void loop_signal_free(struct loop_signal **signal);

/* What another module of this floor keeps with a loop (common/proc.c: its children): at most one `arg` for each f. loop_free() calls f(arg)
 * after what was deferred. */
void loop_attach(struct loop *loop, loop_f *f, void *arg);
void *loop_attached(const struct loop *loop, loop_f *f); /* NULL: none */
/* Every loop of the process, one after the other: NULL gives the first, the last gives NULL. */
struct loop *loop_next(const struct loop *loop);

/* The struct event_base beneath, for proto/conn.c alone. NULL in the simulation. */
void *loop_base(struct loop *loop);

#endif

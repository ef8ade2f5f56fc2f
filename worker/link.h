/* link.h: the one connection to the coordinator: dialling, HELLO and WELCOME, signs of life,
 * silence.
 *
 * Owns: when to dial and to greet, beats both ways, what may be said at which time. Does not own:
 * what messages mean (on_coord.c). Nothing here touches a build: when the link is gone the work
 * goes on. */
#ifndef MAKESPAN_WORKER_LINK_H
#define MAKESPAN_WORKER_LINK_H

#include "common/attr.h"
#include "proto/close.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct link;
struct loop;
struct msg;
struct msg_beat;
struct msg_hello;
struct msg_welcome;
struct tls;

struct link_ops {
    /* Fills in what HELLO says of this worker, beyond protocol, program and time; what it points to
     * must live until hello_sent(). */
    void (*hello)(struct msg_hello *hello, void *arg);
    void (*hello_sent)(void *arg);
    void (*up)(const struct msg_welcome *welcome, void *arg);
    /* After WELCOME; only what a coordinator may send, and no beat. */
    void (*message)(const struct msg *msg, void *arg);
    void (*drained)(void *arg);
    /* It was up and is not any more. */
    void (*down)(void *arg);
    /* Fills in run, phase and elapsed time; NULL: nothing is said of them. */
    void (*beat)(struct msg_beat *beat, void *arg);
};

struct link_conf {
    struct loop *loop;
    struct tls *tls;     /* borrowed; NULL in the simulation */
    const char *address; /* copied */
    const char *fleet;   /* copied: WELCOME must name it */
    int64_t beat_ns;     /* longest interval of own beats */
};

/* Dials from a later turn on, for ever: hourly after a refusal that no dialling cures. -ERR_INVAL
 * for a malformed address. */
int link_new(const struct link_conf *conf, const struct link_ops *ops, void *arg, struct link **out,
             struct diag *diag) MUST_CHECK;
/* Says goodbye, and calls nothing any more. NULL inside is fine. */
void link_free(struct link **link);

/* WELCOME came and the connection stands. */
bool link_is_up(const struct link *link);
/* 0, or negative: it is not up, or is closing. */
int link_send(struct link *link, const struct msg *msg);
/* Bytes not yet given to the kernel; 0 when it is not up. */
size_t link_queued(const struct link *link);
/* While held it is not dialled (in the timed window), but for one attempt every 10 minutes when it
 * lasts so long; a connection that stands is kept. */
void link_hold(struct link *link, bool hold);
/* The coordinator broke the rules, or the worker cannot go on with this connection. */
void link_close(struct link *link, enum close_reason reason, const char *text);

#endif

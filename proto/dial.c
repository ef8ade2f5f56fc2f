/* dial.c: when to dial: one connection at a time, growing pauses between attempts, no attempt
 * while held. Owns the present connection; what is said over it is the owner's. */
#include "proto/dial.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/rand.h"
#include "proto/conn_addr.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define DIAL_MAGIC 0x6469616cu
#define PAUSE_FIRST CLOCK_SEC
#define PAUSE_MAX (60 * CLOCK_SEC)
#define PAUSE_GAVE_UP CLOCK_HOUR
#define WELCOME_NS (30 * CLOCK_SEC)

enum dial_state {
    DIAL_S_WAIT,  /* the timer says when to dial */
    DIAL_S_DUE,   /* it is time, but held */
    DIAL_S_TRY,   /* the attempt is under way */
    DIAL_S_OPEN,  /* the timer says until when WELCOME must come */
    DIAL_S_STAND, /* welcomed */
    DIAL_S_OVER,  /* no further attempt */
};

struct dial {
    unsigned magic;
    enum dial_state state;
    bool held;
    bool hourly;
    bool once;
    bool freed;
    unsigned failures;
    int64_t welcome_ns;
    struct loop *loop;
    struct tls *tls;
    char *address;
    struct conn_limits limits;
    struct loop_timer *timer;
    struct conn *conn; /* in TRY, OPEN and STAND */
    dial_f *f;
    void *arg;
};

static void emit(struct dial *dial, const struct dial_event *event)
{
    if (!dial->freed) {
        dial->f(dial, event, dial->arg);
    }
}

/* Evenly from the upper half of the doubled pause: many who were cut off at once do not come back
 * at once. */
static int64_t next_pause(const struct dial *dial)
{
    int64_t pause = PAUSE_FIRST;
    for (unsigned i = 1; i < dial->failures && pause < PAUSE_MAX; i++) {
        pause *= 2;
    }
    pause = pause < PAUSE_MAX ? pause : PAUSE_MAX;
    return pause / 2 + (int64_t)rand_below((uint64_t)(pause / 2) + 1);
}

static int64_t pause_after(const struct dial *dial, bool gave_up)
{
    if (dial->once || (gave_up && !dial->hourly)) {
        return -1;
    }
    if (gave_up) {
        return PAUSE_GAVE_UP - (int64_t)rand_below(PAUSE_GAVE_UP / 10 + 1);
    }
    return next_pause(dial);
}

/* An attempt or a connection is over. */
static void over(struct dial *dial, enum close_reason reason, const char *text, bool by_peer)
{
    bool welcomed = dial->state == DIAL_S_STAND;
    bool gave_up = !close_dial_again((uint32_t)reason);
    dial->conn = NULL;
    dial->failures = welcomed ? 0 : dial->failures + 1;
    int64_t again_ns = pause_after(dial, gave_up);
    if (again_ns >= 0) {
        dial->state = DIAL_S_WAIT;
        loop_timer_set(dial->timer, again_ns);
    } else {
        dial->state = DIAL_S_OVER;
        loop_timer_clear(dial->timer);
    }
    struct dial_event event = {.kind = gave_up ? DIAL_GAVE_UP : DIAL_CLOSED,
                               .reason = reason,
                               .text = text,
                               .by_peer = by_peer,
                               .welcomed = welcomed,
                               .again_ns = again_ns};
    emit(dial, &event);
}

static void on_conn(struct conn *conn, const struct conn_event *event, void *arg)
{
    struct dial *dial;
    CAST_OBJ(dial, arg, DIAL_MAGIC);
    assert(conn == dial->conn);
    struct dial_event out = {.conn = conn, .msg = event->msg};
    switch (event->kind) {
    case CONN_OPEN:
        dial->state = DIAL_S_OPEN;
        loop_timer_set(dial->timer, dial->welcome_ns);
        out.kind = DIAL_OPEN;
        emit(dial, &out);
        break;
    case CONN_MESSAGE:
        out.kind = DIAL_MESSAGE;
        emit(dial, &out);
        break;
    case CONN_DRAINED:
        out.kind = DIAL_DRAINED;
        emit(dial, &out);
        break;
    case CONN_CLOSED:
        over(dial, event->reason, event->text, event->by_peer);
        break;
    }
}

static void attempt(struct dial *dial)
{
    struct diag *diag = diag_new(1);
    dial->state = DIAL_S_TRY;
    int err = conn_dial(dial->loop, dial->tls, dial->address, &dial->limits, on_conn, dial,
                        &dial->conn, diag);
    if (err < 0) {
        over(dial, CLOSE_DIAL, diag_first(diag), false);
    }
    diag_free(&diag);
}

static void on_timer(void *arg)
{
    struct dial *dial;
    CAST_OBJ(dial, arg, DIAL_MAGIC);
    char text[64], limit[32];
    switch (dial->state) {
    case DIAL_S_WAIT:
        if (dial->held) {
            dial->state = DIAL_S_DUE;
        } else {
            attempt(dial);
        }
        break;
    case DIAL_S_OPEN:
        snprintf(text, sizeof(text), "no WELCOME came in %s",
                 num_duration_text(limit, sizeof(limit), dial->welcome_ns));
        conn_close(dial->conn, CLOSE_HELLO_TIMEOUT, text, false);
        break;
    case DIAL_S_DUE:
    case DIAL_S_TRY:
    case DIAL_S_STAND:
    case DIAL_S_OVER:
        break;
    }
}

int dial_new(const struct dial_config *config, dial_f *f, void *arg, struct dial **out,
             struct diag *diag)
{
    *out = NULL;
    char host[CONN_HOST_MAX];
    uint16_t port;
    int err = conn_addr_split(config->address, false, host, &port, diag);
    if (err < 0) {
        return err;
    }
    struct dial *dial = mem_xzalloc(sizeof(*dial));
    dial->magic = DIAL_MAGIC;
    dial->state = DIAL_S_WAIT;
    dial->hourly = config->hourly;
    dial->once = config->once;
    dial->welcome_ns = config->welcome_ns > 0 ? config->welcome_ns : WELCOME_NS;
    dial->loop = config->loop;
    dial->tls = config->tls;
    dial->address = mem_xstrdup(config->address);
    if (config->limits != NULL) {
        dial->limits = *config->limits;
    }
    dial->f = f;
    dial->arg = arg;
    dial->timer = loop_timer_new(dial->loop, on_timer, dial);
    loop_timer_set(dial->timer, 0);
    *out = dial;
    return 0;
}

static void free_later(void *arg)
{
    struct dial *dial;
    CAST_OBJ(dial, arg, DIAL_MAGIC);
    loop_timer_free(&dial->timer);
    free(dial->address);
    dial->magic = 0;
    free(dial);
}

void dial_free(struct dial **dial)
{
    struct dial *d = *dial;
    if (d == NULL) {
        return;
    }
    *dial = NULL;
    if (d->freed) {
        return;
    }
    d->freed = true;
    loop_timer_clear(d->timer);
    if (d->conn != NULL) {
        conn_close(d->conn, CLOSE_SHUTDOWN, NULL, true);
        d->conn = NULL;
    }
    loop_defer(d->loop, free_later, d);
}

void dial_welcomed(struct dial *dial)
{
    assert(dial->magic == DIAL_MAGIC);
    if (dial->state == DIAL_S_OPEN) {
        dial->state = DIAL_S_STAND;
        dial->failures = 0;
        loop_timer_clear(dial->timer);
    }
}

void dial_hold(struct dial *dial, bool hold)
{
    assert(dial->magic == DIAL_MAGIC);
    dial->held = hold;
    if (!hold && dial->state == DIAL_S_DUE) {
        dial->state = DIAL_S_WAIT;
        loop_timer_set(dial->timer, 0);
    }
}

void dial_now(struct dial *dial)
{
    assert(dial->magic == DIAL_MAGIC);
    if (dial->state == DIAL_S_WAIT || dial->state == DIAL_S_OVER) {
        dial->state = DIAL_S_WAIT;
        loop_timer_set(dial->timer, 0);
    }
}

struct conn *dial_conn(const struct dial *dial)
{
    return dial->state == DIAL_S_OPEN || dial->state == DIAL_S_STAND ? dial->conn : NULL;
}

bool dial_is_welcomed(const struct dial *dial)
{
    return dial->state == DIAL_S_STAND;
}

unsigned dial_failures(const struct dial *dial)
{
    return dial->failures;
}

const char *dial_address(const struct dial *dial)
{
    return dial->address;
}

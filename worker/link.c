/* link.c: keeps up the connection to the coordinator. */
#include "worker/link.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "common/version.h"
#include "proto/conn.h"
#include "proto/dial.h"
#include "proto/hello.h"
#include "proto/msg.h"

#include <stdlib.h>
#include <string.h>

#define MISSES 3
/* A build that takes so long is worth a handshake of some milliseconds, once in such a time. */
#define HELD_DIAL (10 * CLOCK_MIN)

struct link {
    unsigned magic;
    struct loop *loop;
    struct link_ops ops;
    void *arg;
    struct dial *dial;
    char *fleet;
    bool up;
    int64_t beat_max_ns;
    int64_t beat_ns;       /* of the present connection, own beats */
    int64_t their_beat_ns; /* the interval at which the other side is heard */
    int64_t heard_ns;
    int64_t sent_ns; /* the last beat */
    int64_t tick_ns; /* the last look at the clock */
    uint64_t beats;
    struct loop_timer *timer;
    bool held;
    struct loop_timer *held_dial; /* while held: to the next attempt */
    char failure[256]; /* the last one that was logged */
};
#define LINK_MAGIC 0x6c696e6bu

/* --- up and down --- */

static int64_t tick_of(const struct link *link)
{
    int64_t tick = (link->beat_ns < link->their_beat_ns ? link->beat_ns : link->their_beat_ns) / 4;

    return tick < 20 * CLOCK_MS ? 20 * CLOCK_MS : tick;
}

static void go_down(struct link *link)
{
    if (!link->up)
        return;
    link->up = false;
    loop_timer_clear(link->timer);
    link->ops.down(link->arg);
}

static void send_hello(struct link *link, struct conn *conn)
{
    struct msg m = {.type = MSG_HELLO};
    struct hello_caps caps;
    int err;

    hello_write_caps(CAPS_OURS, &caps);
    hello_fill(&m.u.hello, &caps, "makespan-worker", version_text(), clock_wall_ns());
    link->ops.hello(&m.u.hello, link->arg);
    err = conn_send(conn, &m);
    link->ops.hello_sent(link->arg);
    if (err == -ERR_LIMIT) {
        log_error("what this worker says of itself does not fit into a message");
        conn_close(conn, CLOSE_SHUTDOWN, NULL, false);
    }
}

static void on_welcome(struct link *link, struct conn *conn, const struct msg_welcome *w)
{
    struct diag *diag = diag_new(2);
    struct hello_deal deal;
    char span[32];

    if (hello_confirm(w, &deal, diag) != 0) {
        conn_close(conn, CLOSE_VERSION, diag_first(diag), false);
    } else if (!str_eq(w->fleet, link->fleet)) {
        conn_close(conn, CLOSE_CERT_AUTHORITY, NULL, false);
    } else {
        link->their_beat_ns = w->beat_ns < 50 * CLOCK_MS ? 50 * CLOCK_MS : w->beat_ns;
        link->beat_ns =
            link->beat_max_ns < link->their_beat_ns ? link->beat_max_ns : link->their_beat_ns;
        link->heard_ns = link->sent_ns = link->tick_ns = clock_mono_ns();
        link->up = true;
        link->failure[0] = '\0';
        dial_welcomed(link->dial);
        loop_timer_set(link->timer, tick_of(link));
        log_info("connected to %s, makespand %s of fleet %s, a beat each %s",
                 dial_address(link->dial), w->version, w->fleet,
                 num_duration_text(span, sizeof span, link->beat_ns));
        for (size_t i = 0; i < w->warnings_count; i++)
            log_warn("the coordinator says: %s", w->warnings[i]);
        link->ops.up(w, link->arg);
    }
    diag_free(&diag);
}

static void on_message(struct link *link, struct conn *conn, const struct msg *msg)
{
    enum close_reason refusal = msg_refusal(msg->type, MSG_FROM_COORDINATOR, (enum role)0,
                                            link->up ? MSG_WHEN_OPEN : MSG_WHEN_START);
    char text[160];

    link->heard_ns = clock_mono_ns();
    if (refusal != CLOSE_NONE) {
        str_copy(text, sizeof text, msg_name(msg->type) == NULL ? "message" : msg_name(msg->type));
        str_copy(text + strlen(text), sizeof text - strlen(text), ": ");
        str_copy(text + strlen(text), sizeof text - strlen(text), close_text(refusal));
        log_error("the coordinator broke the rules: %s", text);
        conn_close(conn, refusal, text, false);
    } else if (msg->type == MSG_WELCOME) {
        on_welcome(link, conn, &msg->u.welcome);
    } else if (msg->type != MSG_BEAT && link->up) {
        link->ops.message(msg, link->arg);
    }
}

/* Says why there is no connection; the same again only as debug. */
static void say_closed(struct link *link, const struct dial_event *e)
{
    char span[32];
    const char *text = e->text;

    num_duration_text(span, sizeof span, e->again_ns / CLOCK_MS * CLOCK_MS);
    if (str_eq(text, link->failure)) {
        log_debug("%s: %s; next in %s", dial_address(link->dial), text, span);
        return;
    }
    str_copy(link->failure, sizeof link->failure, text);
    if (e->kind == DIAL_GAVE_UP)
        log_error("%s: %s%s; tried again in %s", dial_address(link->dial), text,
                  e->by_peer ? " (said by the coordinator)" : "", span);
    else
        log_warn("%s: %s%s; tried again in %s", dial_address(link->dial), text,
                 e->by_peer ? " (said by the coordinator)" : "", span);
}

/* Held for long: one attempt is let through; its end, or its beginning, holds the next. */
static void on_held_dial(void *arg)
{
    struct link *link;

    CAST_OBJ(link, arg, LINK_MAGIC);
    if (!link->held)
        return;
    loop_timer_set(link->held_dial, HELD_DIAL);
    if (dial_conn(link->dial) == NULL)
        dial_hold(link->dial, false);
}

static void on_dial(struct dial *dial, const struct dial_event *e, void *arg)
{
    struct link *link;

    CAST_OBJ(link, arg, LINK_MAGIC);
    if (link->held)
        dial_hold(dial, true);
    switch (e->kind) {
    case DIAL_OPEN:
        send_hello(link, e->conn);
        break;
    case DIAL_MESSAGE:
        loop_doing(link->loop, msg_name(e->msg->type));
        on_message(link, e->conn, e->msg);
        break;
    case DIAL_DRAINED:
        if (link->up)
            link->ops.drained(link->arg);
        break;
    case DIAL_CLOSED:
    case DIAL_GAVE_UP:
        say_closed(link, e);
        go_down(link);
        break;
    }
}

/* --- signs of life --- */

static void send_beat(struct link *link, int64_t now)
{
    struct msg m = {.type = MSG_BEAT};

    m.u.beat.n = ++link->beats;
    if (link->ops.beat != NULL)
        link->ops.beat(&m.u.beat, link->arg);
    link->sent_ns = now;
    (void)link_send(link, &m);
}

static void on_tick(void *arg)
{
    struct link *link;
    int64_t now = clock_mono_ns();
    bool late;

    CAST_OBJ(link, arg, LINK_MAGIC);
    if (!link->up)
        return;
    /* This process itself did not run: what came meanwhile has not been read yet. */
    late = now - link->tick_ns > 2 * link->their_beat_ns;
    link->tick_ns = now;
    if (!late && now - link->heard_ns > MISSES * link->their_beat_ns) {
        link_close(link, CLOSE_SILENT, NULL);
        return;
    }
    if (now - link->sent_ns >= link->beat_ns - tick_of(link) / 2)
        send_beat(link, now);
    loop_timer_set(link->timer, tick_of(link));
}

/* --- public --- */

int link_new(const struct link_conf *conf, const struct link_ops *ops, void *arg, struct link **out,
             struct diag *diag)
{
    struct link *link = mem_xzalloc(sizeof *link);
    struct dial_config dial = {
        .loop = conf->loop, .tls = conf->tls, .address = conf->address, .hourly = true};
    int err;

    *out = NULL;
    link->magic = LINK_MAGIC;
    link->loop = conf->loop;
    link->ops = *ops;
    link->arg = arg;
    link->fleet = mem_xstrdup(conf->fleet);
    link->beat_max_ns = conf->beat_ns;
    link->timer = loop_timer_new(conf->loop, on_tick, link);
    link->held_dial = loop_timer_new(conf->loop, on_held_dial, link);
    err = dial_new(&dial, on_dial, link, &link->dial, diag);
    if (err == 0)
        *out = link;
    else
        link_free(&link);
    return err;
}

void link_free(struct link **link)
{
    struct link *l = *link;

    if (l == NULL)
        return;
    dial_free(&l->dial);
    loop_timer_free(&l->timer);
    loop_timer_free(&l->held_dial);
    free(l->fleet);
    l->magic = 0;
    free(l);
    *link = NULL;
}

bool link_is_up(const struct link *link)
{
    return link->up && dial_conn(link->dial) != NULL;
}

int link_send(struct link *link, const struct msg *msg)
{
    int err;

    if (!link_is_up(link))
        return -ERR_CLOSED;
    err = conn_send(dial_conn(link->dial), msg);
    if (err == -ERR_LIMIT)
        log_error("a %s message breaks its schema and was not sent", msg_name(msg->type));
    return err;
}

size_t link_queued(const struct link *link)
{
    return link_is_up(link) ? conn_queued(dial_conn(link->dial)) : 0;
}

void link_hold(struct link *link, bool hold)
{
    if (hold && !link->held)
        loop_timer_set(link->held_dial, HELD_DIAL);
    else if (!hold)
        loop_timer_clear(link->held_dial);
    link->held = hold;
    dial_hold(link->dial, hold);
}

void link_close(struct link *link, enum close_reason reason, const char *text)
{
    struct conn *conn = dial_conn(link->dial);

    if (conn != NULL)
        conn_close(conn, reason, text, false);
}

/* on_watch.c: an operator follows a sweep: events as they are committed, and a line of status when something changed, at most two a second.
 *
 * Each piece is one line of JSON: {"type": "event", "wall_ns", "kind", "run", "who", "text"} or {"type": "status", "status": {…}} with the document of coordinator/plan/status.h.
 * A reader that is too slow misses lines; how many stands in the next one as "dropped". */
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/json.h"
#include "coordinator/net/net_priv.h"
#include "coordinator/news/news.h"
#include "coordinator/plan/status.h"
#include "proto/msg.h"

#include <stdio.h>
#include <string.h>

#define STATUS_PAUSE (500 * CLOCK_MS)
/* Phases and signs of life change without an event. */
#define STATUS_REFRESH (2 * CLOCK_SEC)

static void send_line(struct call *call, json_t *line)
{
    struct buf text = BUF_INIT;

    if (call->dropped > 0)
        json_set(line, "dropped", json_integer((json_int_t)call->dropped));
    if (json_print(line, 0, &text) == 0) {
        buf_add_char(&text, '\n');
        if (reply_event(call->peer, call->number, buf_str(&text)))
            call->dropped = 0;
        else
            call->dropped++;
    }
    buf_fini(&text);
    json_decref(line);
}

static void on_news(const struct model_event *event, void *arg)
{
    struct call *call = arg;
    json_t *line = json_object();

    json_set(line, "type", json_string("event"));
    json_set(line, "wall_ns", json_integer((json_int_t)event->wall_ns));
    json_set(line, "kind", json_string(model_event_word((int)event->kind)));
    json_set(line, "run", json_integer((json_int_t)event->run));
    if (event->who != NULL)
        json_set(line, "who", json_string(event->who));
    json_set(line, "text", json_string(event->text));
    send_line(call, line);
    call->due = true;
}

/* Sends the status; true when the sweep has ended. */
static bool send_status(struct call *call)
{
    struct net *net = call->peer->net;
    struct diag *diag = diag_new(1);
    struct buf body = BUF_INIT;
    json_t *status = NULL;
    json_t *line;
    bool ended = false;
    int err = plan_status_sweep(net->rooms.plan, net_now(), call->name, &body, diag);

    call->again = err > 0;
    if (call->again)
        later_wake(net);
    if (err == 0)
        status = json_parse("status", buf_str(&body), body.len, diag);
    if (status != NULL) {
        const char *word = json_str(status, "state", "");

        ended = strcmp(word, model_sweep_word(SWEEP_DONE)) == 0 || strcmp(word, model_sweep_word(SWEEP_CANCELLED)) == 0;
        line = json_object();
        json_set(line, "type", json_string("status"));
        json_set(line, "status", status);
        send_line(call, line);
    }
    call->due = call->again;
    call->shown_ns = clock_mono_ns();
    buf_fini(&body);
    diag_free(&diag);
    return ended;
}

static void end_watch(struct call *call)
{
    reply_now(call->peer, call->number, 0, 0, "event", "", 0, NULL);
    call_free(call);
}

void watch_again(struct call *call)
{
    if (send_status(call))
        end_watch(call);
}

void watch_tick(struct net *net, bool committed)
{
    int64_t now = clock_mono_ns();

    for (struct peer *p = net->peers, *next_peer; p != NULL; p = next_peer) {
        next_peer = p->next;
        for (struct call *c = p->calls, *next; c != NULL; c = next) {
            next = c->next;
            if (c->kind != CALL_WATCH || (committed && !c->due))
                continue;
            if ((c->due && now - c->shown_ns >= STATUS_PAUSE) || (!committed && now - c->shown_ns >= STATUS_REFRESH))
                if (send_status(c))
                    end_watch(c);
        }
    }
}

static void begin_watch(struct peer *peer, const struct msg *msg)
{
    const struct msg_watch *w = &msg->u.watch;
    struct diag *diag = diag_new(2);
    struct buf body = BUF_INIT;
    struct call *call = NULL;
    json_t *status = NULL;
    int err = plan_status_sweep(peer->net->rooms.plan, net_now(), w->sweep, &body, diag);

    if (err == 0 && (status = json_parse("status", buf_str(&body), body.len, diag)) == NULL)
        err = -ERR_CORRUPT;
    if (err == 0 && (call = call_new(peer, CALL_WATCH, w->call, diag)) == NULL)
        err = -ERR_LIMIT;
    if (err > 0) {
        later_again(peer, w->call, msg);
    } else if (err < 0) {
        reply_failed(peer, w->call, err, diag);
    } else {
        call->sweep = json_int(status, "id", 0);
        /* NAME alone would come to mean a newer sweep. */
        snprintf(call->name, sizeof call->name, "%s", json_str(status, "sweep", w->sweep));
        call->sub = news_subscribe(peer->net->rooms.news, call->sweep, on_news, call);
        if (send_status(call))
            end_watch(call);
    }
    json_decref(status);
    buf_fini(&body);
    diag_free(&diag);
}

void on_watch(struct peer *peer, const struct msg *msg)
{
    struct call *call;

    if (msg->type == MSG_WATCH) {
        begin_watch(peer, msg);
        return;
    }
    call = call_find(peer, CALL_WATCH, msg->u.watch_end.call);
    if (call != NULL)
        end_watch(call);
}

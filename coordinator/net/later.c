/* later.c: requests that read more than one turn may: a report of a large sweep, the first status of one. One step of one of them is made a turn, in turns, so that everybody else is served between.
 * Owns the timer. */
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "coordinator/net/net_priv.h"
#include "coordinator/result/answer.h"
#include "proto/frame.h"
#include "proto/msg.h"

static bool waits(const struct call *call)
{
    return call->kind == CALL_REPORT || call->kind == CALL_READ || (call->kind == CALL_WATCH && call->again);
}

/* The one that was not served for longest. */
static struct call *next_call(const struct net *net)
{
    struct call *best = NULL;

    for (const struct peer *p = net->peers; p != NULL; p = p->next)
        for (struct call *c = p->calls; c != NULL; c = c->next)
            if (waits(c) && (best == NULL || c->served < best->served))
                best = c;
    return best;
}

static void step_report(struct call *call)
{
    struct diag *diag = diag_new(4);
    struct buf body = BUF_INIT;
    int err = answer_report_step(call->answer, &body, diag);

    if (err < 0)
        reply_failed(call->peer, call->number, err, diag);
    else if (err == 0)
        reply_now(call->peer, call->number, 0, 0, "text", body.data, body.len, NULL);
    if (err <= 0)
        call_free(call);
    buf_fini(&body);
    diag_free(&diag);
}

/* Asks again what could not be answered yet; it may be kept again. */
static void step_read(struct call *call)
{
    struct peer *peer = call->peer;
    struct buf frame = call->frame;
    struct msg *m = NULL;

    call->frame = (struct buf)BUF_INIT;
    call_free(call);
    /* The frame is this program's own making: its form is not in doubt. */
    if (msg_decode(frame.data[4], frame.data + 5, frame.len - 5, &m, NULL) == 0)
        on_operator_message(peer, m);
    msg_free(&m);
    buf_fini(&frame);
}

static void on_later(void *arg)
{
    struct net *net = arg;
    struct call *call = next_call(net);

    if (call == NULL)
        return;
    call->served = ++net->served;
    if (call->kind == CALL_REPORT) {
        loop_doing(net->rooms.loop, "a report");
        step_report(call);
    } else {
        loop_doing(net->rooms.loop, "a status");
        if (call->kind == CALL_READ)
            step_read(call);
        else
            watch_again(call);
    }
    if (next_call(net) != NULL)
        later_wake(net);
}

void later_init(struct net *net)
{
    net->later = loop_timer_new(net->rooms.loop, on_later, net);
}

void later_wake(struct net *net)
{
    if (!loop_timer_pending(net->later))
        loop_timer_set(net->later, 0);
}

void later_report(struct peer *peer, uint32_t number, struct answer_job **answer)
{
    struct diag *diag = diag_new(1);
    struct call *call = call_new(peer, CALL_REPORT, number, diag);

    if (call == NULL) {
        reply_failed(peer, number, -ERR_LIMIT, diag);
        answer_job_free(answer);
    } else {
        call->answer = *answer;
        call->served = ++peer->net->served;
        *answer = NULL;
        later_wake(peer->net);
    }
    diag_free(&diag);
}

void later_again(struct peer *peer, uint32_t number, const struct msg *msg)
{
    struct diag *diag = diag_new(1);
    struct call *call = call_new(peer, CALL_READ, number, diag);

    if (call == NULL) {
        reply_failed(peer, number, -ERR_LIMIT, diag);
    } else if (msg_encode(msg, &call->frame) != 0) {
        reply_failed(peer, number, -ERR_NOMEM, NULL);
        call_free(call);
    } else {
        call->served = ++peer->net->served;
        later_wake(peer->net);
    }
    diag_free(&diag);
}

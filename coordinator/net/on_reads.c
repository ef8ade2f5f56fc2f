/* on_reads.c: lists and reports: answered at once, nothing is written. */
#include "common/diag.h"
#include "common/err.h"
#include "coordinator/net/net_priv.h"
#include "coordinator/plan/status.h"
#include "coordinator/result/answer.h"
#include "proto/msg.h"

static void answer(struct peer *peer, uint32_t call, int err, const char *kind, const struct buf *body, const struct diag *diag)
{
    if (err != 0)
        reply_failed(peer, call, err, diag);
    else
        reply_now(peer, call, 0, 0, kind, body->data, body->len, NULL);
}

void on_reads(struct peer *peer, const struct msg *msg)
{
    struct net_rooms *rooms = &peer->net->rooms;
    struct diag *diag = diag_new(4);
    struct buf body = BUF_INIT;
    int err;

    switch (msg->type) {
    case MSG_HOST_LIST:
        err = plan_status_hosts(rooms->plan, net_now(), msg->u.host_list.name, &body, diag);
        answer(peer, msg->u.host_list.call, err, "json", &body, diag);
        break;
    case MSG_SWEEP_LIST:
        if (msg->u.sweep_list.sweep == NULL)
            err = plan_status_sweeps(rooms->plan, net_now(), &body);
        else
            err = plan_status_sweep(rooms->plan, net_now(), msg->u.sweep_list.sweep, &body, diag);
        answer(peer, msg->u.sweep_list.call, err, "json", &body, diag);
        break;
    default:
        if (msg->u.report.has_run && msg->u.report.run <= INT64_MAX)
            err = answer_attempt(rooms->store, msg->u.report.sweep, (int64_t)msg->u.report.run,
                                 msg->u.report.has_attempt ? msg->u.report.attempt : 1, msg->u.report.format, &body, diag);
        else
            err = answer_report(rooms->store, msg->u.report.sweep, msg->u.report.format, &body, diag);
        answer(peer, msg->u.report.call, err, "text", &body, diag);
        break;
    }
    buf_fini(&body);
    diag_free(&diag);
}

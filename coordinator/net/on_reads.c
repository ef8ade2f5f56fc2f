/* on_reads.c: lists and reports; nothing is written. What takes more than a turn is handed to later.c. */
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
    struct answer_job *report = NULL;
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
        if (err > 0)
            later_again(peer, msg->u.sweep_list.call, msg);
        else
            answer(peer, msg->u.sweep_list.call, err, "json", &body, diag);
        break;
    default:
        if (msg->u.report.has_run) /* no run has the highest number */
            err = answer_attempt(rooms->store, msg->u.report.sweep, msg->u.report.run < INT64_MAX ? (int64_t)msg->u.report.run : INT64_MAX,
                                 msg->u.report.has_attempt ? msg->u.report.attempt : 1, msg->u.report.format, &body, diag);
        else if ((err = answer_report_new(rooms->store, msg->u.report.sweep, msg->u.report.format, &report, diag)) == 0)
            later_report(peer, msg->u.report.call, &report);
        if (msg->u.report.has_run || err != 0)
            answer(peer, msg->u.report.call, err, "text", &body, diag);
        break;
    }
    buf_fini(&body);
    diag_free(&diag);
}

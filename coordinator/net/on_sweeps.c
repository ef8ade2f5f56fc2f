/* on_sweeps.c: an operator checks, plans or submits a sweep, or changes one. */
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "coordinator/net/net_priv.h"
#include "coordinator/plan/sweep.h"
#include "proto/msg.h"

#include <stdlib.h>
#include <string.h>

static void on_answer(void *arg, const struct plan_answer *answer)
{
    struct call *call = arg;

    call->ticket = 0;
    reply_now(call->peer, call->number, (uint32_t)answer->exit, answer->code, "text", answer->body, strlen(answer->body),
              answer->talk[0] == '\0' ? NULL : answer->talk);
    call_free(call);
}

static int read_revisions(const struct msg_sweep_put *r, struct plan_revision *out, struct diag *diag)
{
    for (size_t i = 0; i < r->revisions_count; i++) {
        const struct rec_revision *from = &r->revisions[i];
        struct plan_revision *to = &out[i];

        if (from->blob.len != MODEL_HASH)
            return diag_error(diag, ERR_INVAL, "a revision's archive hash has %zu bytes, not %d", from->blob.len, MODEL_HASH);
        to->workload = from->workload;
        to->expr = from->expr;
        to->ordinal = from->ordinal;
        to->commit = from->commit;
        to->tree = from->tree;
        to->subject = from->subject;
        memcpy(to->blob, from->blob.data, MODEL_HASH);
        to->size = from->size;
        to->dirty = from->dirty;
    }
    return 0;
}

static int submit(struct peer *peer, const struct msg_sweep_put *r, const struct msg_bytes *text, struct diag *diag)
{
    struct plan_request request = {.file = r->file,
                                   .text = text->data,
                                   .size = text->len,
                                   .set_count = r->sets_count,
                                   .revision_count = r->revisions_count,
                                   .yes = r->yes,
                                   .json = strcmp(r->format, "json") == 0,
                                   .key = r->key,
                                   .host = r->host,
                                   .who = conn_peer(peer->conn)->name};
    struct plan_setting *sets = mem_xarray(r->sets_count + 1, sizeof *sets);
    struct plan_revision *revisions = mem_xarray(r->revisions_count + 1, sizeof *revisions);
    struct call *call = NULL;
    int err = 0;

    if (plan_action_of(r->action, &request.action) != 0)
        err = diag_error(diag, ERR_INVAL, "unknown action %s: it is one of check, plan, run", r->action);
    if (err == 0)
        err = read_revisions(r, revisions, diag);
    if (err == 0 && (call = call_new(peer, CALL_SUBMIT, r->call, diag)) == NULL)
        err = -ERR_LIMIT;
    if (err == 0) {
        for (size_t i = 0; i < r->sets_count; i++)
            sets[i] = (struct plan_setting){.name = r->sets[i].name, .value = r->sets[i].value};
        request.sets = sets;
        request.revisions = revisions;
        call->ticket = plan_submit(peer->net->rooms.plan, net_now(), &request, on_answer, call);
    }
    free(sets);
    free(revisions);
    return err;
}

static void on_put_sweep(struct peer *peer, const struct msg *msg)
{
    const struct msg_sweep_put *r = &msg->u.sweep_put;
    struct msg_bytes text = r->text;
    struct diag *diag = diag_new(4);
    struct buf joined;
    /* The planner, which reads sweep files, stands still meanwhile: a check would wait without an answer. */
    const char *refusing = peer->net->ops->refusing(peer->net->arg);
    int err = pieces_join(peer, msg, &joined, diag);

    if (err > 0) {
        text = (struct msg_bytes){.data = joined.data, .len = joined.len};
        err = 0;
    }
    if (err == 0)
        err = refusing == NULL ? submit(peer, r, &text, diag) : diag_error(diag, ERR_FULL, "%s", refusing);
    if (err != 0)
        reply_failed(peer, r->call, err, diag);
    buf_fini(&joined);
    diag_free(&diag);
}

static const char *done_word(enum plan_sweep_action action)
{
    switch (action) {
    case PLAN_SWEEP_PAUSE:
        return "paused";
    case PLAN_SWEEP_RESUME:
        return "resumed";
    case PLAN_SWEEP_CANCEL:
        return "cancelled";
    case PLAN_SWEEP_RETRY:
        return "retried";
    }
    return "changed";
}

static void on_set_sweep(struct peer *peer, const struct msg_sweep_set *r)
{
    struct diag *diag = diag_new(4);
    struct buf talk = BUF_INIT;
    enum plan_sweep_action action;
    int err = 0;

    if (plan_sweep_action_of(r->action, &action) != 0)
        err = diag_error(diag, ERR_INVAL, "unknown action %s: it is one of pause, resume, cancel, retry", r->action);
    if (err == 0)
        err = plan_sweep_set(peer->net->rooms.plan, net_now(), r->sweep, action, r->text, conn_peer(peer->conn)->name, NULL, diag);
    if (err != 0) {
        reply_failed(peer, r->call, err, diag);
    } else {
        diag_print(diag, &talk);
        buf_printf(&talk, "%s: %s\n", r->sweep, done_word(action));
        reply_held(peer, r->call, 0, "text", "", buf_str(&talk));
    }
    buf_fini(&talk);
    diag_free(&diag);
}

void on_sweeps(struct peer *peer, const struct msg *msg)
{
    if (msg->type == MSG_SWEEP_PUT)
        on_put_sweep(peer, msg);
    else if (msg->type == MSG_SWEEP_PART)
        pieces_take(peer, msg);
    else
        on_set_sweep(peer, &msg->u.sweep_set);
}

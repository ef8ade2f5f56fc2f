/* calls.c: requests of operators that take more than a turn. Owns the list of each peer. */
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "coordinator/blob/blob.h"
#include "coordinator/net/net_priv.h"
#include "coordinator/news/news.h"
#include "coordinator/plan/sweep.h"
#include "coordinator/result/answer.h"

#include <stdlib.h>

/* Each costs memory and, when it watches, a status every other second: no peer has more at a time. */
#define CALLS_MAX 16

static size_t count_calls(const struct peer *peer)
{
    size_t n = 0;

    for (const struct call *c = peer->calls; c != NULL; c = c->next)
        n++;
    return n;
}

struct call *call_new(struct peer *peer, enum call_kind kind, uint32_t number, struct diag *diag)
{
    struct call *c;

    if (count_calls(peer) >= CALLS_MAX) {
        diag_error(diag, ERR_LIMIT, "this connection has %d requests under way: end one of them first", CALLS_MAX);
        return NULL;
    }
    c = mem_xzalloc(sizeof *c);
    c->kind = kind;
    c->number = number;
    c->peer = peer;
    c->next = peer->calls;
    peer->calls = c;
    return c;
}

struct call *call_find(struct peer *peer, enum call_kind kind, uint32_t number)
{
    for (struct call *c = peer->calls; c != NULL; c = c->next)
        if (c->kind == kind && c->number == number)
            return c;
    return NULL;
}

void call_free(struct call *call)
{
    struct call **at = &call->peer->calls;

    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    if (call->kind == CALL_SUBMIT && call->ticket != 0)
        plan_submit_cancel(call->peer->net->rooms.plan, call->ticket);
    blob_put_free(&call->put);
    news_unsubscribe(&call->sub);
    answer_job_free(&call->answer);
    buf_fini(&call->frame);
    free(call);
}

void calls_free(struct peer *peer)
{
    while (peer->calls != NULL)
        call_free(peer->calls);
}

/* feed.c: the way out of the spool. */
#include "worker/run/feed.h"

#include "common/err.h"
#include "common/log.h"
#include "common/mem.h"
#include "proto/msg.h"
#include "worker/run/spool.h"

#include <inttypes.h>
#include <stdlib.h>

struct feed {
    struct spool *spool;
    struct feed_ops ops;
    void *arg;
    bool up;
    bool held;
    bool whole_waits; /* an attempt was acknowledged as whole while held */
    size_t at;        /* the entry that is being sent; all before it are sent */
    size_t flight;    /* bytes sent on this connection and not acknowledged, as far as is known */
    size_t hint;      /* where the last acknowledged entry was */
};

struct feed *feed_new(struct spool *spool, const struct feed_ops *ops, void *arg)
{
    struct feed *feed = mem_xzalloc(sizeof *feed);

    feed->spool = spool;
    feed->ops = *ops;
    feed->arg = arg;
    return feed;
}

void feed_free(struct feed **feed)
{
    free(*feed);
    *feed = NULL;
}

bool feed_is_empty(const struct feed *feed)
{
    return spool_count(feed->spool) == 0;
}

/* Bytes of an entry that are under way: its share by records. */
static size_t flight_of(const struct spool_entry *e)
{
    uint32_t open = e->sent > e->acked ? e->sent - e->acked : 0;

    return (size_t)(e->size / e->count * open);
}

static void count_flight(struct feed *feed)
{
    feed->flight = 0;
    for (size_t i = 0; i <= feed->at && i < spool_count(feed->spool); i++)
        feed->flight += flight_of(spool_at(feed->spool, i));
}

/* `why`: the coordinator will never take it; NULL: it has it. */
static void forget(struct feed *feed, size_t index, const char *why)
{
    const struct spool_entry *e = spool_at(feed->spool, index);

    if (why != NULL) {
        spool_reject(feed->spool, index, why);
    } else {
        log_debug("attempt %" PRIu32 " of run %" PRIu64 " is delivered", e->attempt, e->run);
        spool_forget(feed->spool, index);
    }
    if (feed->at > index)
        feed->at--;
}

/* Takes one acknowledgement. */
static void take(struct feed *feed, const struct rec_acked *a)
{
    size_t index = spool_find(feed->spool, a->run, a->attempt, feed->hint);
    struct spool_entry *e;

    if (index == spool_count(feed->spool))
        return; /* of an attempt that was delivered before */
    feed->hint = index;
    e = spool_at(feed->spool, index);
    if (a->whole)
        e->acked = e->count;
    else if (a->seq > e->acked && a->seq < e->count)
        e->acked = a->seq;
    if (e->acked > e->sent)
        e->sent = e->acked;
    if (!a->whole)
        return;
    e->refused = a->refused != NULL;
    if (feed->held)
        feed->whole_waits = true;
    else
        forget(feed, index, a->refused);
}

/* Attempts that were acknowledged while held. */
static void forget_whole(struct feed *feed)
{
    for (size_t i = spool_count(feed->spool); i-- > 0;) {
        const struct spool_entry *e = spool_at(feed->spool, i);

        if (e->acked >= e->count)
            forget(feed, i, e->refused ? "its log says why" : NULL);
    }
    feed->whole_waits = false;
}

void feed_up(struct feed *feed, const struct rec_acked *acked, size_t n)
{
    for (size_t i = 0; i < spool_count(feed->spool); i++)
        spool_at(feed->spool, i)->sent = spool_at(feed->spool, i)->acked = 0;
    feed->at = 0;
    feed->up = true;
    feed_acked(feed, acked, n);
}

void feed_down(struct feed *feed)
{
    feed->up = false;
    feed->flight = 0;
}

void feed_acked(struct feed *feed, const struct rec_acked *acked, size_t n)
{
    for (size_t i = 0; i < n; i++)
        take(feed, &acked[i]);
    count_flight(feed);
    feed_pump(feed);
}

void feed_hold(struct feed *feed, bool hold)
{
    feed->held = hold;
    if (hold)
        return;
    if (feed->whole_waits)
        forget_whole(feed);
    count_flight(feed);
    feed_pump(feed);
}

/* Sends the next record of the entry. False: nothing more goes now. */
static bool send_one(struct feed *feed)
{
    struct spool_entry *e = spool_at(feed->spool, feed->at);
    struct msg *m = NULL;
    int err;

    if (e->sent >= e->count) {
        feed->at++;
        return true;
    }
    err = spool_read(feed->spool, feed->at, e->sent, &m);
    if (err == -ERR_CORRUPT)
        return true; /* the entry is gone, and the next one is at its place */
    if (err != 0) {
        log_error("attempt %" PRIu32 " of run %" PRIu64 " cannot be read and waits: %s", e->attempt,
                  e->run, err_text(err));
        return false;
    }
    err = feed->ops.send(m, feed->arg);
    msg_free(&m);
    if (err != 0)
        return false;
    e->sent++;
    feed->flight += (size_t)(e->size / e->count);
    return true;
}

void feed_pump(struct feed *feed)
{
    while (feed->up && !feed->held && feed->at < spool_count(feed->spool) &&
           feed->flight < FEED_FLIGHT_MAX && feed->ops.queued(feed->arg) < FEED_QUEUE_MAX)
        if (!send_one(feed))
            return;
}

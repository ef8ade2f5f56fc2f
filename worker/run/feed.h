/* feed.h: sends what is spooled, in order, as far as the coordinator has not committed it.
 *
 * Owns: which record goes next and how much may be under way. Does not own: the files (spool), the
 * connection (it is given a function). Nothing is sent before feed_up() and after feed_down(), nor
 * while it is held. */
#ifndef MAKESPAN_WORKER_RUN_FEED_H
#define MAKESPAN_WORKER_RUN_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct feed;
struct msg;
struct rec_acked;
struct spool;

#define FEED_QUEUE_MAX (256 * 1024)   /* bytes that wait in the connection */
#define FEED_FLIGHT_MAX (1024 * 1024) /* bytes that are sent and not acknowledged */

struct feed_ops {
    /* Queues a message on the connection. 0, or negative: the connection is closing. */
    int (*send)(const struct msg *msg, void *arg);
    /* Bytes that the connection has not yet given to the kernel. */
    size_t (*queued)(void *arg);
};

/* `spool` is borrowed, ops is copied. */
struct feed *feed_new(struct spool *spool, const struct feed_ops *ops, void *arg);
void feed_free(struct feed **feed); /* NULL inside is fine */

/* WELCOME came: what it says is committed is not sent again; of all else every record is. */
void feed_up(struct feed *feed, const struct rec_acked *acked, size_t n);
void feed_down(struct feed *feed);
/* ACK came: frees what is whole, forgets what is below, sets aside what is refused. */
void feed_acked(struct feed *feed, const struct rec_acked *acked, size_t n);
/* While held nothing is sent, and nothing is removed from the disk: in the timed window. */
void feed_hold(struct feed *feed, bool hold);
/* Sends what may be sent: after a commit of the spool, when the connection has drained. */
void feed_pump(struct feed *feed);
/* Whether nothing is spooled that the coordinator does not have. */
bool feed_is_empty(const struct feed *feed);

#endif

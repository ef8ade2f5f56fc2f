/* ingest.h: the one door by which results enter: records of attempts, idempotent by (run, attempt,
 * seq).
 *
 * Owns: the rows of attempts, marks, facts, samples and output; which attempt of a run counts; what
 * is to be acknowledged, and when. Does not own: runs (coordinator/plan, told by ops->whole),
 * messages (coordinator/net).
 *
 * A record whose number is below the next one is a repetition: nothing is stored, and it is
 * acknowledged again. The attempt is whole with END and all before it. Then its outcome is settled,
 * the first line that fits:
 *   reported OK, not made as it was asked for (another job count or archive)   INVALID
 *   reported OK, with a mark that makes it invalid                             INVALID
 *   reported OK, no warm-up, and the run was cancelled                         CANCELLED
 *   reported OK, no warm-up, and another counts or the run was replaced        SUPERSEDED
 *   reported OK, no warm-up                                                    OK, and it counts
 *   everything else                                                            as reported
 * It is late when the run did not wait for it.
 *
 * Results of the functions for records: 0 (stored, or a repetition); -ERR_PROTO: the peer is wrong
 * (a gap, a record after the end), nothing is stored and the link is to be closed: it sends again
 * from where WELCOME says; -ERR_NOTFOUND: no such run, or an attempt that was never handed out;
 * -ERR_DENIED: a run of another host, or a record that fits nothing (a second RESULT, an END that
 * does not fit, ingest_reject()). The last two store nothing but an event; an acknowledgement that
 * says `whole` and why it was refused follows, so that the worker sets aside what can never be
 * filed, and does not send it again. Everything else is a failure of the store: the turn is to be
 * rolled back. */
#ifndef MAKESPAN_COORDINATOR_RESULT_INGEST_H
#define MAKESPAN_COORDINATOR_RESULT_INGEST_H

#include "common/attr.h"
#include "coordinator/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ingest;
struct store;

struct ingest_ops {
    /* Was it handed out after a later place of the host's order? */
    bool (*out_of_order)(void *arg, int64_t run, uint32_t attempt);
    /* The attempt is whole, its outcome is settled and its row is written. 0 or a negative code (of
     * the store). */
    int (*whole)(void *arg, int64_t host, const struct model_attempt *attempt);
    /* Records of an attempt that was handed out to this host were refused: it will never be whole.
     * 0 or a negative code (of the store). */
    int (*rejected)(void *arg, int64_t host, int64_t run, uint32_t attempt, const char *why);
    /* Writes an event in this turn; id is 0. 0 or a negative code. */
    int (*event)(void *arg, const struct model_event *event);
};

/* `store` and `ops` are kept. */
struct ingest *ingest_new(struct store *store, const struct ingest_ops *ops, void *arg) MUST_CHECK;
void ingest_free(struct ingest **ingest);

/* RESULT. Of `a` the fields that the worker sent are used: run, attempt, reported and all
 * measurements. Facts are what check printed. */
int ingest_result(struct ingest *ingest, int64_t now_wall_ns, int64_t host, uint32_t seq,
                  const struct model_attempt *a, const struct model_fact *facts,
                  size_t fact_count) MUST_CHECK;
int ingest_mark(struct ingest *ingest, int64_t now_wall_ns, int64_t host, uint32_t seq,
                const struct model_mark *mark) MUST_CHECK;
int ingest_samples(struct ingest *ingest, int64_t now_wall_ns, int64_t host, int64_t run,
                   uint32_t attempt, uint32_t seq, const struct model_point *points,
                   size_t n) MUST_CHECK;
int ingest_output(struct ingest *ingest, int64_t now_wall_ns, int64_t host, int64_t run,
                  uint32_t attempt, uint32_t seq, enum phase phase, uint64_t offset,
                  const void *bytes, size_t n, uint64_t total) MUST_CHECK;
int ingest_end(struct ingest *ingest, int64_t now_wall_ns, int64_t host, int64_t run,
               uint32_t attempt, uint32_t seq, uint32_t count) MUST_CHECK;

/* A record that can be of no attempt, whatever comes later: a number out of its range, an unknown
 * word. `why` must last as long as ingest. */
int ingest_reject(struct ingest *ingest, int64_t now_wall_ns, int64_t host, int64_t run,
                  uint32_t attempt, uint32_t seq, const char *why) MUST_CHECK;

/* How far an attempt's records are committed. */
struct ingest_ack {
    int64_t run;
    uint32_t attempt;
    uint32_t seq;        /* every record below it */
    bool whole;          /* forget it: stored to the end, or never to be filed */
    const char *refused; /* why it is never to be filed; NULL. Lasts as long as ingest. */
};
/* For WELCOME: what is known of an attempt that a worker says it has spooled. Not within a turn
 * that wrote records of it. 0 or a failure of the store. */
int ingest_known(struct ingest *ingest, int64_t host, int64_t run, uint32_t attempt,
                 struct ingest_ack *out) MUST_CHECK;

/* Whether records of this attempt, of a run of this host, were refused lately. */
bool ingest_is_rejected(const struct ingest *ingest, int64_t host, int64_t run, uint32_t attempt);

/* The turn's rows are committed: what was stored may be acknowledged. */
void ingest_committed(struct ingest *ingest);
/* They are gone, and so are the acknowledgements of this turn. */
void ingest_rolled_back(struct ingest *ingest);
/* Hands out the acknowledgements that are due to a host, each attempt once with its last number,
 * and forgets them. Returns how many. */
typedef void ingest_ack_f(void *arg, const struct ingest_ack *ack);
size_t ingest_take_acks(struct ingest *ingest, int64_t host, ingest_ack_f *f, void *arg);
/* The hosts that have acknowledgements due, at most `room` of them. Returns how many were written.
 */
size_t ingest_hosts_due(const struct ingest *ingest, int64_t *hosts, size_t room);
/* The link is gone: what was due is forgotten (the next WELCOME says it). */
void ingest_host_down(struct ingest *ingest, int64_t host);

#endif

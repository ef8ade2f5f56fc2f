/* net_priv.h: peers, and what the files of this folder share. */
#ifndef MAKESPAN_COORDINATOR_NET_NET_PRIV_H
#define MAKESPAN_COORDINATOR_NET_NET_PRIV_H

#include "common/attr.h"
#include "common/buf.h"
#include "coordinator/net/net.h"
#include "coordinator/plan/plan.h"
#include "proto/close.h"
#include "proto/conn.h"

#include <stdbool.h>
#include <stdint.h>

struct answer_job;
struct blob_put;
struct ca_grant;
struct diag;
struct msg;
struct news_sub;

enum peer_kind { PEER_WORKER, PEER_OPERATOR, PEER_JOINER };
enum peer_state { PEER_START, PEER_OPEN, PEER_CLOSING };

/* A request of an operator that takes more than this turn: a sweep being accepted, an archive being put, a sweep being watched. */
enum call_kind { CALL_SUBMIT, CALL_PUT, CALL_WATCH, CALL_REPORT, CALL_READ };
struct call {
    enum call_kind kind;
    uint32_t number;
    struct peer *peer;
    struct call *next;
    uint64_t ticket;      /* CALL_SUBMIT */
    struct blob_put *put; /* CALL_PUT */
    uint8_t hash[MODEL_HASH];
    uint64_t total;
    struct news_sub *sub; /* CALL_WATCH */
    int64_t sweep;
    char name[96];
    bool due;         /* CALL_WATCH: a status line is to be sent */
    int64_t shown_ns; /* when the last one was sent */
    bool again;       /* it could not be made yet: in the next turn */
    struct answer_job *answer; /* CALL_REPORT: as far as it is made */
    struct buf frame;      /* CALL_READ: the request */
    uint64_t served;       /* CALL_REPORT, CALL_READ, CALL_WATCH: rises with each step of any */
    uint64_t dropped; /* lines that were not sent since the reader is slow */
};

/* What is still to be sent of an answer that is longer than a connection queues. */
struct rest {
    struct rest *next;
    uint32_t call, exit;
    int code;
    char *kind_word;
    char *talk;
    struct buf body;
    size_t sent; /* bytes of it */
};

struct peer {
    unsigned magic;
    struct net *net;
    struct conn *conn;
    struct peer *next, *prev;
    enum peer_kind kind;
    enum peer_state state;
    int64_t opened_ns; /* monotonic, as the others */
    int64_t heard_ns;
    int64_t sent_beat_ns;
    uint64_t beats;
    int64_t host; /* of a worker */
    bool wrote;   /* records of this peer are in this turn */
    bool told;    /* the log says already why it is closed */
    struct pieces *pieces; /* of an operator's sweep file that comes in pieces; NULL */
    struct call *calls;
    struct rest *rests; /* the first one is being sent */
};
#define PEER_MAGIC 0x70656572u

/* Something that leaves after the commit. */
struct held {
    struct held *next;
    struct peer *peer; /* NULL: it has gone */
    enum { HELD_REPLY, HELD_JOINED, HELD_NEXT, HELD_CLOSE } kind;
    uint32_t call;
    uint32_t exit;
    int code;
    char *kind_word;
    char *body;
    char *talk;
    struct ca_grant *grant;
    uint8_t hash[MODEL_HASH];
    uint64_t have;
    enum close_reason reason;
};

struct net {
    struct net_rooms rooms;
    struct net_conf conf;
    char *listen;
    const struct net_ops *ops;
    void *arg;
    struct conn_listener *listener;
    struct loop_timer *timer;
    struct loop_timer *later; /* requests that take more than a turn */
    uint64_t served;          /* steps of those */
    int64_t tick_ns; /* the last look at the clock */
    struct peer *peers;
    size_t peer_count;
    struct held *held_first, **held_last;
};

/* --- net.c --- */
struct plan_now net_now(void);
struct peer *net_find_worker(struct net *net, int64_t host);
/* Closes with GOODBYE; the peer is freed when CLOSED comes. */
void peer_close(struct peer *peer, enum close_reason reason, const char *text);
/* A message from a peer that breaks the rules: logged, closed. */
void peer_violation(struct peer *peer, const struct diag *diag, enum close_reason reason);
/* Sends; a failure closes the connection by itself. */
void peer_send(struct peer *peer, const struct msg *msg);

/* --- reply.c --- */
/* An answer in as many pieces as it takes; `kind` is text, json or event; the last piece says so. A long one leaves as the reader reads; who asks for more of them than REST_MAX before it has read
 * is cut off. */
void reply_now(struct peer *peer, uint32_t call, uint32_t exit, int code, const char *kind, const void *body, size_t n, const char *talk);
/* The same once the turn is committed; copied. */
void reply_held(struct peer *peer, uint32_t call, uint32_t exit, const char *kind, const char *body, const char *talk);
/* A failed request: the texts of diag; the exit status that fits the code. */
void reply_failed(struct peer *peer, uint32_t call, int code, const struct diag *diag);
uint32_t reply_exit_of(int code);
/* The connection has sent what it had: long answers go on. */
void reply_go_on(struct peer *peer);
void rests_free(struct peer *peer);
/* One piece that is not the last: a line of WATCH. False when the reader is too slow: nothing was sent. */
bool reply_event(struct peer *peer, uint32_t call, const char *line);
struct held *held_add(struct net *net, struct peer *peer, int kind);
void held_send_all(struct net *net);
void held_fail_all(struct net *net, const char *text);
void held_forget(struct net *net, const struct peer *peer);
void held_drop_all(struct net *net);

/* --- calls.c --- */
/* NULL with text when the peer has as many under way as one may have. */
struct call *call_new(struct peer *peer, enum call_kind kind, uint32_t number, struct diag *diag);
struct call *call_find(struct peer *peer, enum call_kind kind, uint32_t number);
/* Ends what it waits for, and frees it. */
void call_free(struct call *call);
void calls_free(struct peer *peer);

/* --- later.c: requests that read more than a turn may --- */
void later_init(struct net *net);
/* A step is due in the next turn. */
void later_wake(struct net *net);
/* Makes the report step by step and answers with it; takes *answer. */
void later_report(struct peer *peer, uint32_t number, struct answer_job **answer);
/* The request is asked again in the next turn. */
void later_again(struct peer *peer, uint32_t number, const struct msg *msg);

/* --- pieces.c: a sweep file in pieces --- */
void pieces_take(struct peer *peer, const struct msg *msg);
/* What came under the number of this SWEEP_PUT, with its own text behind: *text is to be freed by buf_fini(). 1; 0: nothing came before it; or -ERR_LIMIT, -ERR_PROTO
 * with text in diag. What came under another number is forgotten. */
int pieces_join(struct peer *peer, const struct msg *put, struct buf *text, struct diag *diag) MUST_CHECK;
void pieces_free(struct peer *peer);

/* --- on_*.c: one message, checked to be allowed --- */
void on_worker_message(struct peer *peer, const struct msg *msg);
void on_worker_closed(struct peer *peer, const char *why);
void on_worker_acks(struct net *net);
void on_operator_message(struct peer *peer, const struct msg *msg);
void on_join_message(struct peer *peer, const struct msg *msg);
void on_hosts(struct peer *peer, const struct msg *msg);
void on_sweeps(struct peer *peer, const struct msg *msg);
void on_reads(struct peer *peer, const struct msg *msg);
void on_put(struct peer *peer, const struct msg *msg);
void on_watch(struct peer *peer, const struct msg *msg);
/* A status that could not be made yet. */
void watch_again(struct call *call);
/* Sends the status lines that are due. */
void watch_tick(struct net *net, bool committed);

#endif

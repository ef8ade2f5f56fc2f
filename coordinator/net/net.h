/* net.h: the coordinator's connections: who is there, what they may say, and the translation between messages and the rooms.
 *
 * Owns: the listener, the peers, their timers, what is held back until the commit. Does not own: rows, plans, results. No message struct leaves this folder. */
#ifndef MAKESPAN_COORDINATOR_NET_NET_H
#define MAKESPAN_COORDINATOR_NET_NET_H

#include "common/attr.h"
#include "coordinator/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blob;
struct ca;
struct diag;
struct ingest;
struct loop;
struct net;
struct news;
struct plan;
struct plan_ops;
struct store;
struct tls;

/* What net asks of its owner. */
struct net_ops {
    /* The host that the certificate of a worker names. 0, -ERR_NOTFOUND (no such host, or another key is its own), or a failure of the store. */
    int (*host_of)(void *arg, const char *name, const char *key_hash, int64_t *id, enum host_state *state);
    /* Why nothing new is accepted now (the database cannot be written), or NULL. */
    const char *(*refusing)(void *arg);
};

struct net_conf {
    const char *listen;
    int64_t beat_ns;
    int64_t handshake_ns;
    int64_t hello_ns;
    size_t max_connections;
};

/* The neighbours; all borrowed for the life of net. The store is only handed on to coordinator/result/answer.c. */
struct net_rooms {
    struct loop *loop;
    struct store *store;
    struct plan *plan;
    struct ingest *ingest;
    struct news *news;
    struct blob *blob;
    struct ca *ca;
};

struct net *net_new(const struct net_rooms *rooms, const struct net_conf *conf, const struct net_ops *ops, void *arg) MUST_CHECK;
/* Says goodbye to everybody; their CLOSED events are not waited for. NULL inside is fine. */
void net_free(struct net **net);
/* Starts to listen. `tls` is borrowed. 0 or a negative code with text. */
int net_listen(struct net *net, struct tls *tls, struct diag *diag) MUST_CHECK;
uint16_t net_port(const struct net *net);
size_t net_peers(const struct net *net);

/* The turn's rows are committed: answers that promised durability and acknowledgements leave. */
void net_committed(struct net *net);
/* They are gone: requests of this turn are answered with `text`, workers whose records were among them are cut off so that they deliver again. */
void net_rolled_back(struct net *net, const char *text);

/* The messages of plan_ops, called from plan_committed(). */
struct plan_assignment;
void net_send_assign(struct net *net, const struct plan_assignment *assignment);
void net_send_withdraw(struct net *net, int64_t host, int64_t run, uint32_t attempt);
void net_send_cancel(struct net *net, int64_t host, int64_t run, uint32_t attempt, const char *text);
void net_send_away_ok(struct net *net, int64_t host, int64_t run, uint32_t attempt);

#endif

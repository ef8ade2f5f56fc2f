/* acks.h: what is to be acknowledged: collected in a turn, due after its commit. Private to
 * coordinator/result. */
#ifndef MAKESPAN_COORDINATOR_RESULT_ACKS_H
#define MAKESPAN_COORDINATOR_RESULT_ACKS_H

#include "coordinator/result/ingest.h"

struct acks_item {
    int64_t host;
    struct ingest_ack ack;
};

struct acks_list {
    struct acks_item *items;
    size_t count;
    size_t room;
};

struct acks {
    struct acks_list turn; /* of this turn */
    struct acks_list due;
};

void acks_fini(struct acks *acks);
/* The attempt's records below `seq` are stored in this turn, or were before. */
void acks_add(struct acks *acks, int64_t host, const struct ingest_ack *ack);
void acks_commit(struct acks *acks);
void acks_drop(struct acks *acks); /* those of this turn */
size_t acks_take(struct acks *acks, int64_t host, ingest_ack_f *f, void *arg);
size_t acks_hosts(const struct acks *acks, int64_t *hosts, size_t room);
void acks_forget(struct acks *acks, int64_t host);

#endif

/* acks.c: two lists of acknowledgements, each attempt once in each. */
#include "coordinator/result/acks.h"

#include "common/mem.h"

#include <stdlib.h>

static void put(struct acks_list *list, int64_t host, const struct ingest_ack *ack)
{
    for (size_t i = list->count; i > 0; i--) {
        struct acks_item *item = &list->items[i - 1];
        if (item->host == host && item->ack.run == ack->run && item->ack.attempt == ack->attempt) {
            item->ack.seq = ack->seq > item->ack.seq ? ack->seq : item->ack.seq;
            item->ack.whole = item->ack.whole || ack->whole;
            item->ack.refused = ack->refused != NULL ? ack->refused : item->ack.refused;
            return;
        }
    }
    if (list->count == list->room) {
        list->room = list->room == 0 ? 32 : list->room * 2;
        list->items = mem_xrealloc(list->items, list->room, sizeof(*list->items));
    }
    list->items[list->count++] = (struct acks_item){host, *ack};
}

void acks_fini(struct acks *acks)
{
    free(acks->turn.items);
    free(acks->due.items);
    *acks = (struct acks){.turn = {.items = NULL}};
}

void acks_add(struct acks *acks, int64_t host, const struct ingest_ack *ack)
{
    put(&acks->turn, host, ack);
}

void acks_commit(struct acks *acks)
{
    for (size_t i = 0; i < acks->turn.count; i++) {
        put(&acks->due, acks->turn.items[i].host, &acks->turn.items[i].ack);
    }
    acks->turn.count = 0;
}

void acks_drop(struct acks *acks)
{
    acks->turn.count = 0;
}

/* Takes the host's items out, in order; f may be NULL. */
static size_t take(struct acks_list *list, int64_t host, ingest_ack_f *f, void *arg)
{
    size_t kept = 0;
    size_t taken = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct acks_item item = list->items[i];
        if (item.host != host) {
            list->items[kept++] = item;
            continue;
        }
        taken++;
        if (f != NULL) {
            f(arg, &item.ack);
        }
    }
    list->count = kept;
    return taken;
}

size_t acks_take(struct acks *acks, int64_t host, ingest_ack_f *f, void *arg)
{
    return take(&acks->due, host, f, arg);
}

size_t acks_hosts(const struct acks *acks, int64_t *hosts, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < acks->due.count && n < room; i++) {
        size_t k = 0;
        while (k < n && hosts[k] != acks->due.items[i].host) {
            k++;
        }
        if (k == n) {
            hosts[n++] = acks->due.items[i].host;
        }
    }
    return n;
}

void acks_forget(struct acks *acks, int64_t host)
{
    take(&acks->turn, host, NULL, NULL);
    take(&acks->due, host, NULL, NULL);
}

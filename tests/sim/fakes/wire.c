/* wire.c: packets on their way between two nodes: delays, cuts, isolation, what a crash leaves of
 * them. What they mean to an end: conn.c. */
#include "tests/sim/fakes/wire.h"

#include "common/clock.h"
#include "common/mem.h"
#include "tests/sim/fakes/conn.h"

#include <stdlib.h>
#include <string.h>

#define RETRY_LATEST (2 * CLOCK_SEC) /* what was held up is sent again within */
#define BREAK_LATEST (3 * CLOCK_SEC) /* an end learns of a cut within */

static void arrive(void *arg);
static void broken(void *arg);

struct wire *sim_wire_new(struct node *client, struct node *server, struct conn_listener *listener)
{
    struct wire *w = mem_xzalloc(sizeof(*w));
    w->node[WIRE_CLIENT] = client;
    w->node[WIRE_SERVER] = server;
    w->listener = listener;
    for (unsigned i = 0; i < 2; i++) {
        w->pipe[i].wire = w;
        w->pipe[i].to = i;
        w->pipe[i].last = &w->pipe[i].first;
        sim_event_init(&w->pipe[i].event, w->node[i], arrive, &w->pipe[i]);
        sim_event_init(&w->break_at[i], w->node[i], broken, w);
    }
    w->next = sim_world()->wires;
    sim_world()->wires = w;
    return w;
}

static void free_packet(struct packet *p)
{
    free(p->data);
    free(p);
}

static struct packet *take_first(struct pipe *pipe)
{
    struct packet *p = pipe->first;
    pipe->first = p->next;
    if (pipe->first == NULL) {
        pipe->last = &pipe->first;
    }
    pipe->bytes -= p->n;
    return p;
}

static void empty(struct pipe *pipe)
{
    while (pipe->first != NULL) {
        free_packet(take_first(pipe));
    }
    sim_event_clear(&pipe->event);
}

static void plan(struct pipe *pipe)
{
    if (pipe->first == NULL || pipe->held) {
        sim_event_clear(&pipe->event);
    } else {
        sim_event_set(&pipe->event, pipe->first->at_ns);
    }
}

/* Frees the wire when both ends are gone. */
static void check_over(struct wire *w)
{
    if (!w->over[0] || !w->over[1]) {
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        empty(&w->pipe[i]);
        sim_event_clear(&w->break_at[i]);
    }
    struct wire **at = &sim_world()->wires;
    while (*at != w) {
        at = &(*at)->next;
    }
    *at = w->next;
    free(w);
}

static void push(struct pipe *pipe, const struct packet *packet, const uint8_t *data, size_t n)
{
    struct world *world = sim_world();
    struct packet *p = mem_xzalloc(sizeof(*p));
    *p = *packet;
    p->next = NULL;
    p->n = n;
    p->data = NULL;
    if (n > 0) {
        p->data = mem_xarray(n, 1);
        memcpy(p->data, data, n);
    }
    p->at_ns = world->now_ns + sim_between(world->delay_low_ns, world->delay_high_ns);
    if (p->at_ns < pipe->last_at_ns) {
        p->at_ns = pipe->last_at_ns;
    }
    pipe->last_at_ns = p->at_ns;
    pipe->bytes += n;
    *pipe->last = p;
    pipe->last = &p->next;
    plan(pipe);
}

/* The other end does not exist any more: whoever still sends to it is told, if there is anybody. */
static void bounce(struct wire *w, unsigned from)
{
    const struct packet rst = {.kind = PACKET_RST};
    if (node_is_up(w->node[1 - from]) && !w->over[from]) {
        push(&w->pipe[from], &rst, NULL, 0);
    }
}

void sim_wire_send(struct wire *w, unsigned from, const struct packet *packet)
{
    struct pipe *pipe = &w->pipe[1 - from];
    if (w->cut) {
        return;
    }
    if (w->over[1 - from]) {
        bounce(w, from);
        return;
    }
    /* Bytes come in pieces of the network's choice. */
    size_t n = packet->n;
    size_t first = n > 1 && sim_between(0, 3) == 0 ? (size_t)sim_between(1, (int64_t)n - 1) : n;
    if (packet->kind != PACKET_DATA || first == n) {
        push(pipe, packet, packet->data, n);
        return;
    }
    push(pipe, packet, packet->data, first);
    push(pipe, packet, packet->data + first, n - first);
}

static void arrive(void *arg)
{
    struct pipe *pipe = arg;
    struct wire *w = pipe->wire;
    if (w->node[0]->isolated || w->node[1]->isolated) {
        return; /* node_isolate() goes on with it */
    }
    struct packet *p = take_first(pipe);
    plan(pipe);
    sim_conn_take(w, pipe->to, p); /* may free the wire */
    free_packet(p);
}

void sim_wire_hold(struct wire *w, unsigned side, bool hold)
{
    w->pipe[side].held = hold;
    plan(&w->pipe[side]);
}

void sim_wire_leave(struct wire *w, unsigned side)
{
    w->end[side] = NULL;
    w->over[side] = true;
    empty(&w->pipe[side]);
    sim_event_clear(&w->break_at[side]);
    if (w->listener != NULL && side == WIRE_CLIENT) {
        /* Nobody is there yet whom its packets could reach, unless they are on their way. */
        w->over[WIRE_SERVER] = w->pipe[WIRE_SERVER].first == NULL;
    }
    check_over(w);
}

/* --- what goes wrong --- */

static void broken(void *arg)
{
    struct wire *w = arg;
    unsigned side = sim_here() == w->node[WIRE_CLIENT] ? WIRE_CLIENT : WIRE_SERVER;
    const struct packet rst = {.kind = PACKET_RST};
    sim_conn_take(w, side, &rst);
}

/* Keeps a first part of what is on its way, the last packet of it perhaps in part. */
static void lose_some(struct pipe *pipe)
{
    int64_t keep = 0;
    for (struct packet *p = pipe->first; p != NULL; p = p->next) {
        keep++;
    }
    keep = sim_between(0, keep);
    struct packet **at = &pipe->first;
    while (keep-- > 0) {
        at = &(*at)->next;
    }
    if (*at != NULL && (*at)->kind == PACKET_DATA && sim_between(0, 1) == 0) {
        size_t n = (size_t)sim_between(1, (int64_t)(*at)->n);
        pipe->bytes -= (*at)->n - n;
        (*at)->n = n;
        at = &(*at)->next;
    }
    while (*at != NULL) {
        struct packet *p = *at;
        *at = p->next;
        pipe->bytes -= p->n;
        free_packet(p);
    }
    pipe->last = at;
    plan(pipe);
}

static void cut(struct wire *w)
{
    int64_t now = sim_world()->now_ns;
    if (w->cut) {
        return;
    }
    w->cut = true;
    for (unsigned i = 0; i < 2; i++) {
        lose_some(&w->pipe[i]);
        if (!w->over[i] && w->end[i] != NULL) {
            sim_event_set(&w->break_at[i], now + sim_between(0, BREAK_LATEST));
        }
    }
}

void node_cut(struct node *node)
{
    world_note(node->world, "links of %s are cut", node->name);
    for (struct wire *w = node->world->wires; w != NULL; w = w->next) {
        if (w->node[0] == node || w->node[1] == node) {
            cut(w);
        }
    }
}

void node_isolate(struct node *node, bool on)
{
    world_note(node->world, "%s is %s", node->name, on ? "isolated" : "reached again");
    node->isolated = on;
    for (struct wire *w = node->world->wires; w != NULL && !on; w = w->next) {
        for (unsigned i = 0; i < 2 && (w->node[0] == node || w->node[1] == node); i++) {
            struct pipe *pipe = &w->pipe[i];
            if (pipe->first != NULL && !pipe->held && !sim_event_pending(&pipe->event)) {
                sim_event_set(&pipe->event, node->world->now_ns + sim_between(0, RETRY_LATEST));
            }
        }
    }
}

/* What was queued may have left, all or a first part of it. After a kill the system says that the
 * end is gone; without power nobody does. */
void sim_conns_crash(struct node *node)
{
    struct wire *next;
    for (struct wire *w = node->world->wires; w != NULL; w = next) {
        next = w->next;
        for (unsigned i = 0; i < 2; i++) {
            if (w->node[i] != node || w->over[i]) {
                continue;
            }
            const struct packet end = {.kind = PACKET_END};
            if (w->end[i] != NULL) {
                sim_conn_lose(w->end[i]);
            }
            if (node->killed) {
                sim_wire_send(w, i, &end);
            }
            w->listener = NULL;
            bool last = w->over[1 - i];
            sim_wire_leave(w, i);
            if (last) {
                break;
            }
        }
    }
}

/* world.c: time, the queue of events, and the trace. Nodes and machines: world_node.c. */
#include "tests/sim/world.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "tests/sim/disk.h"
#include "tests/sim/sim.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct world *present;

struct sim_later {
    struct sim_event event;
    struct sim_later *next, **prev;
    world_f *f;
    void *arg;
};

struct world *sim_world(void)
{
    assert(present != NULL);
    return present;
}

struct world *world_new(uint64_t seed, const struct world_ops *ops, void *arg)
{
    assert(present == NULL);
    struct world *w = mem_xzalloc(sizeof(*w));
    w->ops = ops;
    w->arg = arg;
    w->seed = seed;
    w->hash = UINT64_C(0xcbf29ce484222325);
    w->delay_low_ns = 100 * CLOCK_US;
    w->delay_high_ns = 2 * CLOCK_MS;
    const uint64_t words[] = {1};
    prng_init(&w->prng, seed);
    prng_init_words(&w->luck, seed, words, ARRAY_LEN(words));
    present = w;
    sim_rand_register();
    sim_vfs_register();
    for (unsigned i = 0; i < WORLD_MACHINES; i++) {
        sim_machine_boot(w, i);
    }
    return w;
}

void world_free(struct world **world)
{
    struct world *w = *world;
    if (w == NULL) {
        return;
    }
    for (struct node *n = w->nodes; n != NULL; n = n->next) {
        node_crash(n, SIM_POWER);
    }
    while (w->nodes != NULL) {
        struct node *n = w->nodes;
        w->nodes = n->next;
        disk_free(&n->disk);
        free(n);
    }
    while (w->laters != NULL) {
        struct sim_later *l = w->laters;
        w->laters = l->next;
        sim_event_clear(&l->event);
        free(l);
    }
    free(w->heap);
    free(w);
    present = NULL;
    *world = NULL;
}

struct prng *world_prng(struct world *world)
{
    return &world->prng;
}

static int64_t between(struct prng *prng, int64_t low, int64_t high)
{
    assert(low <= high);
    return low + (int64_t)prng_below(prng, (uint64_t)(high - low) + 1);
}

int64_t world_between(struct world *world, int64_t low, int64_t high)
{
    return between(&world->prng, low, high);
}

bool world_chance(struct world *world, unsigned percent)
{
    return prng_below(&world->prng, 100) < percent;
}

int64_t sim_between(int64_t low, int64_t high)
{
    return between(&sim_world()->luck, low, high);
}

uint64_t world_seed(const struct world *world)
{
    return world->seed;
}

int64_t world_now(const struct world *world)
{
    return world->now_ns;
}

uint64_t world_turns(const struct world *world)
{
    return world->turns;
}

/* --- the queue: a heap by time, then by the order of asking --- */

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->seq < b->seq;
}

static void put(struct world *w, size_t place, struct sim_event *event)
{
    w->heap[place] = event;
    event->place = place;
}

static void rise(struct world *w, size_t place, struct sim_event *event)
{
    while (place > 1 && before(event, w->heap[place / 2])) {
        put(w, place, w->heap[place / 2]);
        place /= 2;
    }
    put(w, place, event);
}

static void sink(struct world *w, size_t place, struct sim_event *event)
{
    for (;;) {
        size_t child = place * 2;
        if (child < w->heap_count && before(w->heap[child + 1], w->heap[child])) {
            child++;
        }
        if (child > w->heap_count || before(event, w->heap[child])) {
            break;
        }
        put(w, place, w->heap[child]);
        place = child;
    }
    put(w, place, event);
}

void sim_event_init(struct sim_event *event, struct node *node, loop_f *f, void *arg)
{
    *event = (struct sim_event){.node = node, .f = f, .arg = arg};
}

void sim_event_clear(struct sim_event *event)
{
    struct world *w = sim_world();
    size_t place = event->place;
    if (place == 0) {
        return;
    }
    event->place = 0;
    struct sim_event *last = w->heap[w->heap_count--];
    if (last == event) {
        return;
    }
    if (place > 1 && before(last, w->heap[place / 2])) {
        rise(w, place, last);
    } else {
        sink(w, place, last);
    }
}

void sim_event_set(struct sim_event *event, int64_t at_ns)
{
    struct world *w = sim_world();
    sim_event_clear(event);
    event->at_ns = at_ns > w->now_ns ? at_ns : w->now_ns;
    event->seq = ++w->seq;
    if (w->heap_count + 1 >= w->heap_room) {
        w->heap_room = w->heap_room > 0 ? w->heap_room * 2 : 256;
        w->heap = mem_xrealloc(w->heap, w->heap_room, sizeof(struct sim_event *));
    }
    rise(w, ++w->heap_count, event);
}

bool sim_event_pending(const struct sim_event *event)
{
    return event->place != 0;
}

/* The first event when it is the node's, due now and asked for before `seq`: taken out. */
struct sim_event *sim_take_due(struct node *node, uint64_t seq)
{
    struct world *w = sim_world();
    struct sim_event *e = w->heap_count > 0 ? w->heap[1] : NULL;
    if (e == NULL || e->node != node || e->at_ns > w->now_ns || e->seq > seq) {
        return NULL;
    }
    sim_event_clear(e);
    return e;
}

static void run_later(void *arg)
{
    struct sim_later *l = arg;
    world_f *f = l->f;
    void *f_arg = l->arg;
    *l->prev = l->next;
    if (l->next != NULL) {
        l->next->prev = l->prev;
    }
    free(l);
    f(f_arg);
}

void world_after(struct world *world, int64_t delay_ns, world_f *f, void *arg)
{
    struct sim_later *l = mem_xzalloc(sizeof(*l));
    l->f = f;
    l->arg = arg;
    l->next = world->laters;
    l->prev = &world->laters;
    if (l->next != NULL) {
        l->next->prev = &l->next;
    }
    world->laters = l;
    sim_event_init(&l->event, NULL, run_later, l);
    sim_event_set(&l->event, world->now_ns + delay_ns);
}

bool world_step(struct world *world)
{
    struct sim_event *e = world->heap_count > 0 ? world->heap[1] : NULL;
    if (e == NULL || e->at_ns == INT64_MAX) {
        return false;
    }
    world->now_ns = e->at_ns;
    world->turns++;
    if (e->node == NULL) {
        sim_event_clear(e);
        e->f(e->arg);
    } else {
        sim_loop_turn(e->node->loop);
    }
    if (world->ops->turned != NULL) {
        world->ops->turned(world, world->arg);
    }
    return true;
}

/* --- the trace --- */

void world_note(struct world *world, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    int n = snprintf(line, sizeof(line), "%" PRId64 ".%06" PRId64 " %s ",
                     world->now_ns / CLOCK_SEC, world->now_ns % CLOCK_SEC / CLOCK_US,
                     world->here != NULL ? world->here->name : "-");
    va_start(ap, fmt);
    vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
    va_end(ap);
    /* FNV-1a over the line and the exact time. */
    for (const char *p = line; *p != '\0'; p++) {
        world->hash = (world->hash ^ (uint8_t)*p) * UINT64_C(0x100000001b3);
    }
    world->hash = (world->hash ^ (uint64_t)world->now_ns) * UINT64_C(0x100000001b3);
    if (world->show) {
        fprintf(stderr, "%s\n", line);
    }
}

uint64_t world_hash(const struct world *world)
{
    return world->hash;
}

void world_show_trace(struct world *world, bool show)
{
    world->show = show;
    log_set_level(show ? LOG_DEBUG : LOG_ERROR);
}

/* world_node.c: nodes and machines: how they start, crash, stop; whose code runs. */
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/sim/disk.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- whose code runs --- */

struct node *sim_here(void)
{
    return sim_world()->here;
}

struct node *sim_enter(struct node *node)
{
    struct world *w = sim_world();
    struct node *before = w->here;
    w->here = node;
    log_set_node(node != NULL ? node->name : NULL);
    return before;
}

void node_enter(struct node *node)
{
    assert(node->world->here == NULL);
    sim_enter(node);
}

void node_leave(void)
{
    sim_enter(NULL);
}

int sim_effect(enum sim_effect effect, const char *what, uint64_t n)
{
    struct world *w = sim_world();
    struct node *node = w->here;
    if (node == NULL || !node->up || node->gone || w->ops->effect == NULL) {
        return 0;
    }
    int rc = w->ops->effect(node, effect, what, n, w->arg);
    if (rc == SIM_KILL || rc == SIM_POWER) {
        node_crash(node, (enum sim_crash)rc);
        return 0;
    }
    return rc;
}

/* --- machines --- */

struct sim_machine *sim_machine_of(const struct node *node)
{
    return &node->world->machine[node->machine];
}

/* The identity comes from the machine and the count of its boots: unlike any other. */
void sim_machine_boot(struct world *w, unsigned machine)
{
    struct sim_machine *m = &w->machine[machine];
    m->boots++;
    snprintf(m->boot_id, sizeof(m->boot_id), "%08x-0000-4000-8000-%012x", machine, m->boots);
    m->boot_ns = w->now_ns;
    m->mono_at_boot = (5 + machine) * CLOCK_SEC;
    m->last_pid = 100;
}

const char *machine_boot_id(const struct world *world, unsigned machine)
{
    return world->machine[machine].boot_id;
}

unsigned world_measuring(const struct world *world, unsigned machine)
{
    return sim_children_timed(world, machine);
}

void world_set_delay(struct world *world, int64_t low_ns, int64_t high_ns)
{
    world->delay_low_ns = low_ns;
    world->delay_high_ns = high_ns;
}

/* --- nodes --- */

struct node *world_add(struct world *world, const char *name, unsigned machine)
{
    assert(machine < WORLD_MACHINES);
    struct node *n = mem_xzalloc(sizeof(*n));
    n->world = world;
    n->index = world->node_count++;
    n->machine = machine;
    str_copy(n->name, sizeof(n->name), name);
    n->disk = disk_new();
    struct node **end = &world->nodes;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = n;
    const uint64_t words[] = {2, n->index, 0};
    prng_init_words(&n->prng, world->seed, words, ARRAY_LEN(words));
    return n;
}

const char *node_name(const struct node *node)
{
    return node->name;
}

unsigned node_machine(const struct node *node)
{
    return node->machine;
}

bool node_is_up(const struct node *node)
{
    return node->up && !node->gone;
}

unsigned node_starts(const struct node *node)
{
    return node->starts;
}

void node_set_arg(struct node *node, void *arg)
{
    node->arg = arg;
}

void *node_arg(const struct node *node)
{
    return node->arg;
}

struct disk *node_disk(struct node *node)
{
    return node->disk;
}

void node_step_wall(struct node *node, int64_t by_ns)
{
    sim_machine_of(node)->wall_off_ns += by_ns;
    world_note(node->world, "wall clock of %s set by %" PRId64 " ns", node->name, by_ns);
}

/* Frees the objects of a node that is `gone` or stops. */
static void bury(struct node *n)
{
    struct world *w = n->world;
    struct node *before = sim_enter(n);
    if (w->ops->stop != NULL) {
        w->ops->stop(n, w->arg);
    }
    loop_free(&n->loop);
    sim_enter(before);
    assert(n->conns == NULL && n->listeners == NULL && n->opens == NULL);
    sim_files_drop(n);
    if (n->gone) {
        disk_free(&n->disk);
        n->disk = n->next_disk;
        n->next_disk = NULL;
    }
    n->up = n->gone = false;
}

bool node_start(struct node *node)
{
    struct world *w = node->world;
    assert(!node->up && w->here == NULL);
    node->starts++;
    node->up = true;
    const uint64_t words[] = {2, node->index, node->starts};
    prng_init_words(&node->prng, w->seed, words, ARRAY_LEN(words));
    world_note(w, "start %s", node->name);
    sim_enter(node);
    node->loop = loop_new();
    bool ok = w->ops->start == NULL || w->ops->start(node, node->loop, w->arg);
    sim_enter(NULL);
    if (!ok || node->gone) {
        bury(node);
        return false;
    }
    return true;
}

static void crash_one(struct node *n, enum sim_crash how)
{
    if (!n->up || n->gone) {
        return;
    }
    world_note(n->world, "%s of %s", how == SIM_KILL ? "kill" : "power failure", n->name);
    n->next_disk = how == SIM_KILL ? disk_copy(n->disk) : disk_survive(n->disk, &n->world->luck);
    n->gone = true;
    n->killed = how == SIM_KILL;
    sim_conns_crash(n);
    sim_children_forget(n);
    sim_files_drop(n);
    if (!n->in_turn && n->loop != NULL && n->world->here != n) {
        bury(n);
    }
}

void node_crash(struct node *node, enum sim_crash how)
{
    struct world *w = node->world;
    crash_one(node, how);
    if (how == SIM_KILL) {
        return;
    }
    for (struct node *n = w->nodes; n != NULL; n = n->next) {
        if (n->machine == node->machine) {
            crash_one(n, how);
        }
    }
    sim_children_power_off(node->machine);
    sim_machine_boot(w, node->machine);
}

/* The end of a turn of a node that crashed, or is to stop, in it. */
void sim_turn_over(struct node *node)
{
    if (node->gone) {
        bury(node);
    }
}

void node_stop(struct node *node)
{
    assert(!node->in_turn);
    if (!node->up) {
        return;
    }
    world_note(node->world, "stop %s", node->name);
    bury(node);
    sim_children_forget(node);
}

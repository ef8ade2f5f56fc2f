/* world.h: a fleet in one process under virtual time: nodes, machines, the queue of events, what
 * fails when. One seed decides everything; the same seed gives the same events.
 *
 * Time stands still within a turn and jumps to the next event between turns. A turn runs what is
 * due at one node at one instant (in order of time, then of asking), its hooks, and what it
 * deferred, as loop.h says. One world at a time in a process.
 *
 * A crash: at that instant the node's disk is copied as it will be found again, and from then on
 * nothing that the node does reaches anyone: its files are thrown away, what it sends is dropped.
 * Then, at the end of its turn, its objects are freed by their own functions. So a crash may come
 * at any write, sync, rename, send or spawn, and nothing leaks. */
#ifndef MAKESPAN_TESTS_SIM_WORLD_H
#define MAKESPAN_TESTS_SIM_WORLD_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct disk;
struct loop;
struct msg;
struct node;
struct proc_spec;
struct prng;
struct world;

enum { WORLD_MACHINES = 64 };

/* What a node does that others, or it itself after a restart, can see. */
enum sim_effect {
    SIM_WRITE,  /* bytes to a file; what: its path */
    SIM_SYNC,   /* of a file or folder */
    SIM_NAME,   /* a name made, changed or removed */
    SIM_SEND,   /* a message; what: its name */
    SIM_SPAWN,  /* a child; what: its command */
};

enum sim_crash {
    SIM_KILL = 1, /* the process is killed: what it wrote is there, its children go on */
    SIM_POWER,    /* the machine goes off: what was synced is sure, the rest as the seed says */
};

/* A scripted child. */
struct sim_command {
    int64_t real_ns;   /* it takes so long */
    int64_t user_ns;
    int64_t sys_ns;
    int exit_status;
    int signal;        /* not 0: it ends by this signal */
    const char *output; /* what it prints at its end; NULL: nothing; lives as long as the world */
    bool timed;        /* counts as a measurement: world_measuring() */
    bool stubborn;     /* SIGTERM does not end it */
    /* At its end, in the world's context, unless it was killed: what it did to the files of the
     * node that started it. NULL: nothing. */
    void (*done)(struct node *node, void *arg);
    void *done_arg;
};

/* What the scenario decides. Members may be NULL. */
struct world_ops {
    /* Makes the node's objects on its new loop, in its context. False: it does not start, and is
     * down. */
    bool (*start)(struct node *node, struct loop *loop, void *arg);
    /* Frees them: at a crash, at a stop, at the end. */
    void (*stop)(struct node *node, void *arg);
    /* Before an effect. 0: it happens. Negative: it fails with this code. An enum sim_crash: the
     * node crashes before it. */
    int (*effect)(struct node *node, enum sim_effect effect, const char *what, uint64_t n,
                  void *arg);
    /* How a child will do; called when it is started. */
    void (*command)(struct node *node, const struct proc_spec *spec, struct sim_command *out,
                    void *arg);
    /* A node has got a message, which it is about to handle. */
    void (*heard)(struct node *node, const struct msg *msg, void *arg);
    /* After each turn of any node and each event of the world: the invariants. */
    void (*turned)(struct world *world, void *arg);
};

struct world *world_new(uint64_t seed, const struct world_ops *ops, void *arg) MUST_CHECK;
/* Stops what runs, frees all. NULL inside is fine. */
void world_free(struct world **world);
/* Numbers of the scenario's own choices. */
struct prng *world_prng(struct world *world);
/* Uniform from low to high, both included. */
int64_t world_between(struct world *world, int64_t low, int64_t high);
bool world_chance(struct world *world, unsigned percent);
uint64_t world_seed(const struct world *world);

/* Nanoseconds since the world began; not any node's clock. */
int64_t world_now(const struct world *world);
/* Calls f(arg) outside of all nodes after delay_ns. */
typedef void world_f(void *arg);
void world_after(struct world *world, int64_t delay_ns, world_f *f, void *arg);
/* The next turn of a node, or event of the world. False when there is nothing more to happen. */
bool world_step(struct world *world) MUST_CHECK;
uint64_t world_turns(const struct world *world);

/* --- the trace --- */

/* Adds a line: enters the hash; printed when tracing. */
void world_note(struct world *world, const char *fmt, ...) PRINTF_LIKE(2, 3);
uint64_t world_hash(const struct world *world);
void world_show_trace(struct world *world, bool show);

/* --- nodes --- */

/* `name`: its host name, copied; machine: below WORLD_MACHINES. It is down, its disk empty. */
struct node *world_add(struct world *world, const char *name, unsigned machine);
const char *node_name(const struct node *node);
unsigned node_machine(const struct node *node);
bool node_is_up(const struct node *node);
/* Starts since the world began. */
unsigned node_starts(const struct node *node);
/* What the scenario keeps with it. */
void node_set_arg(struct node *node, void *arg);
void *node_arg(const struct node *node);

/* Starts a node that is down, in its own context. Whether it is up. */
bool node_start(struct node *node);
/* Also from within its own turn: it is freed at the end of the turn. Nothing when it is down.
 * SIM_POWER takes its machine along: all nodes there, all children, the clock, the boot id. */
void node_crash(struct node *node, enum sim_crash how);
/* An orderly end: its objects are freed while the world still sees it. */
void node_stop(struct node *node);
/* Code in the node's context, outside of a turn: for making its files before it starts. */
void node_enter(struct node *node);
void node_leave(void);
struct disk *node_disk(struct node *node);
/* The wall clock of its machine is set forward, or back. */
void node_step_wall(struct node *node, int64_t by_ns);

/* --- machines --- */

/* The identity of the present boot. */
const char *machine_boot_id(const struct world *world, unsigned machine);
/* Children there that count as measurements and are not dead. */
unsigned world_measuring(const struct world *world, unsigned machine);

/* --- the network --- */

/* Connections between the two nodes: how long bytes take from one to the other, each time drawn
 * between these. The default: 0.1 to 2 ms. */
void world_set_delay(struct world *world, int64_t low_ns, int64_t high_ns);
/* Ends every connection of the node: of what is on its way a part still comes, each side sees the
 * end at a moment of its own. */
void node_cut(struct node *node);
/* Packets to and from the node vanish: nobody is told. Connections stand half-open, dialling runs
 * into its limit. On again: what was not yet given up goes on. */
void node_isolate(struct node *node, bool on);

#endif

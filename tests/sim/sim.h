/* sim.h: what the parts of the simulation share behind world.h: for world*.c, disk.c, vfs.c and the
 * fakes alone. */
#ifndef MAKESPAN_TESTS_SIM_SIM_H
#define MAKESPAN_TESTS_SIM_SIM_H

#include "common/loop.h"
#include "common/prng.h"
#include "tests/sim/world.h"

struct sim_lock;
struct sim_child;
struct sim_open;

/* Something that will happen. Part of a larger object, which outlives it. */
struct sim_event {
    struct node *node; /* in whose context; NULL: the world's */
    loop_f *f;
    void *arg;
    int64_t at_ns;
    uint64_t seq;
    size_t place; /* in the heap, from 1; 0: not queued */
};

struct sim_machine {
    unsigned boots;
    char boot_id[40];
    int64_t boot_ns;     /* world's time of the boot */
    int64_t mono_at_boot; /* its clock then */
    int64_t wall_off_ns; /* its wall clock less the world's */
    int64_t last_pid;
    struct sim_child *children; /* fakes/proc.c */
    struct sim_lock *locks;     /* fakes/fileio.c */
};

struct node {
    struct world *world;
    struct node *next;
    unsigned index;
    char name[65];
    unsigned machine;
    void *arg;
    bool up;     /* has objects */
    bool gone;   /* crashed: nothing leaves it any more; objects are freed soon */
    bool in_turn;
    bool isolated;
    bool killed; /* `gone` by SIM_KILL */
    unsigned starts;
    struct loop *loop;
    struct disk *disk;
    struct disk *next_disk; /* of the next start; while `gone` */
    struct prng prng;       /* of this start */
    struct sim_open *opens; /* fakes/fileio.c: handles with a number */
    int last_fd;
    struct conn *conns;     /* fakes/conn.c: all of the present start */
    struct conn_listener *listeners;
};

struct world {
    const struct world_ops *ops;
    void *arg;
    uint64_t seed;
    struct prng prng;  /* the scenario's */
    struct prng luck;  /* the machinery's: delays, what survives */
    struct prng salts; /* SQLite's */
    int64_t now_ns;
    uint64_t seq;
    uint64_t turns;
    uint64_t hash;
    bool show;
    struct sim_event **heap; /* from 1 */
    size_t heap_count, heap_room;
    struct node *nodes, *here;
    unsigned node_count;
    struct sim_machine machine[WORLD_MACHINES];
    struct sim_later *laters;
    struct wire *wires;     /* fakes/wire.c */
    unsigned calls;         /* connections so far */
    int64_t delay_low_ns, delay_high_ns;
};

/* The world there is; never NULL. */
struct world *sim_world(void);
/* The node whose code runs; NULL outside of all. */
struct node *sim_here(void);
struct node *sim_enter(struct node *node); /* gives the one before */
struct sim_machine *sim_machine_of(const struct node *node);
/* From the machinery's numbers, both bounds included. */
int64_t sim_between(int64_t low, int64_t high);
/* Asks before an effect of the node that runs. 0: it happens; negative: it fails. A crash is
 * carried out, and 0 given: the node goes on without being seen. Without a node: 0. */
int sim_effect(enum sim_effect effect, const char *what, uint64_t n) MUST_CHECK;

void sim_event_init(struct sim_event *event, struct node *node, loop_f *f, void *arg);
void sim_event_set(struct sim_event *event, int64_t at_ns); /* world's time; replaces */
void sim_event_clear(struct sim_event *event);
bool sim_event_pending(const struct sim_event *event);

/* The first event of all, taken out when it is the node's, due, and not asked for after `seq`. */
struct sim_event *sim_take_due(struct node *node, uint64_t seq);
void sim_machine_boot(struct world *w, unsigned machine);
/* The end of a node's turn: a node that crashed in it is freed. */
void sim_turn_over(struct node *node);

/* fakes/loop.c: one turn of the loop, beginning with what is due. */
void sim_loop_turn(struct loop *loop);
/* fakes/conn.c: the far sides learn of it; what is left of the node's connections. */
void sim_conns_crash(struct node *node);
/* fakes/proc.c */
void sim_children_forget(struct node *node);       /* they run on, nobody waits */
void sim_children_power_off(unsigned machine);     /* all are gone */
unsigned sim_children_timed(const struct world *world, unsigned machine);
/* fakes/fileio.c */
void sim_files_drop(struct node *node); /* locks */
/* vfs.c: makes "sim" SQLite's default VFS. */
void sim_vfs_register(void);
/* SQLite's own generator begins anew, with this world's numbers: it is one for the process. */
void sim_vfs_reseed(void);
/* fakes/rand.c: OpenSSL draws from here too. */
void sim_rand_register(void);

#endif

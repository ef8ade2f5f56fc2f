/* state.h: what the planner has in memory: the fleet as it is, and what is not ended of the store.
 * Private to coordinator/plan.
 *
 * Owns: struct plan and the lists in it. A node is what an open sweep does on one host; a flight is
 * an attempt that a host holds, or that it was sent. Of runs nothing is kept but counts: their rows
 * are read when they are needed. */
#ifndef MAKESPAN_COORDINATOR_PLAN_STATE_H
#define MAKESPAN_COORDINATOR_PLAN_STATE_H

#include "coordinator/plan/plan.h"
#include "coordinator/plan/sched.h"

struct mem_arena;
struct order;
struct plan_request_state;
struct tally_kept;

#define PLAN_MAGIC 0x706c616eu
#define PLAN_NEVER INT64_MAX

enum plan_flight_state {
    FLIGHT_SENT,    /* sent, or to be sent at the end of this turn */
    FLIGHT_HELD,    /* in the worker's queue */
    FLIGHT_RUNNING, /* being made */
    FLIGHT_AWAY,    /* the host is rebooting for it */
    FLIGHT_SPOOLED, /* over; its records are on their way */
};

enum { PLAN_FLIGHT_TEXT = 256 };

/* An attempt at a host. Their sequence in the host's list is that in which the worker makes them. */
struct plan_flight {
    int64_t run;
    uint32_t attempt;
    int64_t sweep; /* 0: a run that the store does not have */
    int64_t cell;
    enum plan_flight_state state;
    bool wanted;       /* its run waits for it */
    bool unsent;       /* its message is of this turn */
    bool leaving;      /* it was withdrawn or cancelled */
    bool out_of_order; /* handed out after a later place of the host's order */
    bool overdue;
    enum phase phase;
    char text[PLAN_FLIGHT_TEXT]; /* what its phase waits for; "" */
    int64_t since_mono_ns;       /* in this state or phase */
    int64_t due_mono_ns;         /* SENT: must be taken; at the head of the list: should be over */
    int64_t settle_ns;           /* limits, as struct model_cell has them */
    int64_t setup_ns, reset_ns, run_ns, check_ns;
};

struct plan_sweep {
    int64_t id;
    char *ref; /* NAME/N */
    enum sweep_state state;
    int priority;
    size_t open_nodes;
    int64_t since_mono_ns; /* in this state, as far as this process knows */
};

struct plan_cell {
    int64_t id;
    bool open;
};

/* An open sweep on one host. */
struct plan_node {
    struct plan_sweep *sweep;
    struct plan_host *host;
    struct model_sweep_host row; /* texts but `skipped` are NULL; skipped is NULL here */
    struct order *order;         /* NULL until the first block is drawn */
    struct plan_cell *cells;     /* by id */
    size_t cell_count;
    size_t open_cells;
    int64_t broken;        /* blocks that were broken */
    bool redraw;           /* the last block was broken: the next is drawn in its place */
    int64_t last_whole;    /* number of the last block that is not broken; -1: none */
    int64_t open_runs;     /* not at their end */
    int64_t queued;        /* QUEUED ones of these */
    int64_t from_block;    /* no QUEUED run is in one before it */
    int64_t top_slot;      /* last slot that was handed out; -1: none */
    int64_t block_slot;    /* first slot of the last block */
    int64_t since_mono_ns; /* since when nothing of it was handed out */
};

struct plan_host {
    int64_t id;
    char *name;
    enum host_state state;
    char *boot_id;    /* NULL: unknown */
    char *machine_id; /* NULL: unknown */
    uint64_t machine; /* number of its boot id among the fleet's; 0: unknown */
    bool up;
    int64_t link_mono_ns;  /* since when it is up or down, as far as this process knows */
    int64_t heard_mono_ns; /* last sign of life */
    int64_t stuck_mono_ns; /* since when nothing can be handed to it; PLAN_NEVER: it can */
    uint32_t room;
    char no_room[PLAN_FLIGHT_TEXT]; /* why the worker takes no work, by its own word; "" */
    int64_t no_room_mono_ns;        /* since when */
    struct plan_flight *flights;
    size_t flight_count, flight_room;
    uint64_t served;
    int64_t serving;
    struct plan_node **nodes;
    size_t node_count, node_room;
};

enum plan_message_kind { MESSAGE_ASSIGN, MESSAGE_WITHDRAW, MESSAGE_CANCEL, MESSAGE_AWAY_OK };
struct plan_message {
    enum plan_message_kind kind;
    int64_t host;
    int64_t run;
    uint32_t attempt;
    char *text; /* CANCEL; else NULL */
};

struct plan {
    uint32_t magic;
    struct store *store;
    const struct plan_ops *ops;
    void *arg;
    struct plan_conf conf;
    int failed;               /* first failure of the store in this turn */
    bool unloaded;            /* the store could not be read after a rollback */
    struct plan_host **hosts; /* by id */
    size_t host_count, host_room;
    struct plan_sweep **sweeps; /* open ones, by id */
    size_t sweep_count, sweep_room;
    struct plan_message *messages;
    size_t message_count, message_room;
    struct plan_request_state *requests; /* the oldest first */
    struct tally_kept *tallies;          /* counts that are kept: tally.h */
    uint64_t last_ticket;
    uint64_t last_machine;
    uint64_t served;
    struct mem_arena *scratch;
};

/* Remembers a failure of the store; returns the code. */
int plan_fail(struct plan *plan, int code);
/* Memory for rows that are needed no longer than the turn; NULL never. */
struct mem_arena *plan_scratch(struct plan *plan);
void plan_scratch_drop(struct plan *plan);

struct plan_host *plan_find_host(const struct plan *plan, int64_t id);
struct plan_host *plan_find_host_by_name(const struct plan *plan, const char *name);
/* Adds a host of the store, or brings its name, state and identity up to date. */
struct plan_host *plan_keep_host(struct plan *plan, const struct model_host *row,
                                 struct plan_now now);
/* Numbers the host's boot id: equal numbers are one machine. NULL: unknown. */
void plan_set_machine(struct plan *plan, struct plan_host *host, const char *boot_id);
void plan_drop_hosts(struct plan *plan);

struct plan_sweep *plan_find_sweep(const struct plan *plan, int64_t id);
struct plan_sweep *plan_add_sweep(struct plan *plan, const struct model_sweep *row,
                                  struct plan_now now);
void plan_drop_sweep(struct plan *plan, struct plan_sweep *sweep); /* it has no nodes */

struct plan_node *plan_find_node(const struct plan *plan, int64_t sweep, int64_t host);
/* Adds a node and reads its cells, blocks and counts. 0 or a failure of the store. */
int plan_add_node(struct plan *plan, struct plan_sweep *sweep, struct plan_host *host,
                  const struct model_sweep_host *row, struct plan_now now,
                  struct plan_node **out) MUST_CHECK;
void plan_drop_node(struct plan *plan, struct plan_node *node);
struct plan_cell *plan_find_cell(const struct plan_node *node, int64_t id);
void plan_set_cell_open(struct plan_node *node, int64_t id, bool open);
/* The host has spent what the sweep may spend there: the block is finished, and no other is drawn. */
bool plan_over_budget(const struct model_sweep_host *row);
/* Nothing more will be drawn for the node. */
bool plan_node_exhausted(const struct plan_node *node);
/* Its last block was begun and waits for more. */
bool plan_node_in_block(const struct plan_node *node);
/* Place of the node's next block among those that are not broken: 0 the warm-ups. */
int64_t plan_node_index(const struct plan_node *node);

struct plan_flight *plan_find_flight(const struct plan_host *host, int64_t run, uint32_t attempt);
/* The flight is at the end of the host's list; the pointer holds until the next addition. */
struct plan_flight *plan_add_flight(struct plan_host *host, int64_t run, uint32_t attempt,
                                    struct plan_now now);
void plan_remove_flight(struct plan_host *host, struct plan_flight *flight);
/* The first of the host's list that is not over, or NULL. */
struct plan_flight *plan_head_flight(const struct plan_host *host);
/* Those that are not over. */
size_t plan_count_flights(const struct plan_host *host);

void plan_add_message(struct plan *plan, enum plan_message_kind kind, int64_t host, int64_t run,
                      uint32_t attempt, const char *text);
void plan_drop_messages(struct plan *plan);

/* Reads the open sweeps with their nodes and the held runs. 0 or a failure of the store. */
int plan_load(struct plan *plan, struct plan_now now) MUST_CHECK;
void plan_unload(struct plan *plan); /* sweeps and nodes; hosts and flights stay */

/* Writes an event of a sweep, host and run (0: none). 0 or a failure of the store. */
int plan_event(struct plan *plan, struct plan_now now, enum event_kind kind, int64_t sweep,
               int64_t host, int64_t run, const char *who, const char *fmt, ...)
    PRINTF_LIKE(8, 9) MUST_CHECK;

#endif

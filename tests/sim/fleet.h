/* fleet.h: a real coordinator, real workers and an operator in one world: how they are made,
 * started and looked at. What goes wrong when is the scenario's. */
#ifndef MAKESPAN_TESTS_SIM_FLEET_H
#define MAKESPAN_TESTS_SIM_FLEET_H

#include "common/attr.h"
#include "common/vocab.h"
#include "tests/sim/world.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent;
struct coord;
struct fleet;

enum { FLEET_WORKERS = 49 };

/* One timed command that was started: what it was meant for, by the worker's own word. */
struct fleet_run {
    uint64_t run;
    uint32_t attempt;
    unsigned worker;
    int64_t wall_ns; /* of its machine, when it was started: unlike any other on the machine */
    char variant[65];
    char jobs[8];
    char boot_id[65];
    int exit_status; /* scripted */
};

struct fleet_ops {
    /* As in struct world_ops, before the fleet's own. May be NULL. */
    int (*effect)(struct fleet *fleet, struct node *node, enum sim_effect effect, const char *what,
                  void *arg);
    /* A worker has begun its timed command. May be NULL. */
    void (*measuring)(struct fleet *fleet, unsigned worker, void *arg);
    void (*turned)(struct fleet *fleet, void *arg);
};

struct fleet_conf {
    uint64_t seed;
    unsigned workers;
    const char *sweep; /* the text of the sweep file; its one source is the archive "src.tar" */
    unsigned fail_percent;   /* timed commands that exit with 2 */
    int64_t build_low_ns, build_high_ns; /* how long timed commands take */
    int64_t lost_after_ns; /* of the coordinator; 0: its default */
    unsigned retries;      /* `sweep retry` by the operator, after it was accepted */
    int64_t retry_pause_ns;
    const struct fleet_ops *ops;
    void *arg;
};

/* Makes authority and identities; nothing is up yet. */
struct fleet *fleet_new(const struct fleet_conf *conf) MUST_CHECK;
void fleet_free(struct fleet **fleet); /* NULL inside is fine */
/* All nodes start; the operator submits the sweep until it is accepted. */
void fleet_start(struct fleet *fleet);

struct world *fleet_world(struct fleet *fleet);
struct node *fleet_coordinator(struct fleet *fleet);
struct node *fleet_worker(struct fleet *fleet, unsigned index);
unsigned fleet_workers(const struct fleet *fleet);
/* The place of a worker; fleet_workers() for another node. */
unsigned fleet_index(const struct fleet *fleet, const struct node *node);
/* NULL while it is down. */
struct coord *fleet_coord(struct fleet *fleet);
struct agent *fleet_agent(struct fleet *fleet, unsigned index);
/* A node that is down starts again after that time, and once more each second if it cannot. */
void fleet_restart(struct fleet *fleet, struct node *node, int64_t delay_ns);
/* Whether the operator has been told that the sweep is accepted. */
bool fleet_is_accepted(const struct fleet *fleet);
/* Whether it wants nothing more. */
bool fleet_is_content(const struct fleet *fleet);
size_t fleet_run_count(const struct fleet *fleet);
const struct fleet_run *fleet_run_at(const struct fleet *fleet, size_t index);
/* NULL: no timed command was started there at that time. */
const struct fleet_run *fleet_run_find(const struct fleet *fleet, unsigned worker,
                                       int64_t wall_ns);

/* The first thing that was found wrong, "" while there is none. */
const char *fleet_failure(const struct fleet *fleet);
void fleet_fail(struct fleet *fleet, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* --- fleet_check.c: what holds after every turn --- */

struct fleet_check;

struct fleet_check *fleet_check_new(struct fleet *fleet) MUST_CHECK;
void fleet_check_free(struct fleet_check **check);
/* What was promised is noted. */
void fleet_check_heard(struct fleet_check *check, struct node *node, const struct msg *msg);
/* After every turn. */
void fleet_check_turn(struct fleet_check *check);
/* The rows of the coordinator, all of them; it must be up. */
void fleet_check_rows(struct fleet_check *check);
/* Looks at them after every commit, not now and then: to see in a replay when they went wrong. */
void fleet_check_often(struct fleet_check *check);
/* When nothing more is to be done: everybody's last word. */
void fleet_check_end(struct fleet_check *check);
/* Whether the sweep is at its end, by the coordinator's rows, which it may look at. False while the
 * coordinator is down. */
bool fleet_check_is_over(struct fleet_check *check);

#endif

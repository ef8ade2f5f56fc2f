/* sched.h: who is served next. Pure: the fleet as it is and the work that is ready give the
 * assignments to be made now.
 *
 * A host serves the sweep with the highest priority; among equals it stays with the one that it
 * serves while there is something to do, else the oldest comes. A machine (hosts with one boot id)
 * runs one attempt at a time: while more than one of its hosts has something to do, nothing is
 * handed out in advance, and the host that was served longest ago comes next. */
#ifndef MAKESPAN_COORDINATOR_PLAN_SCHED_H
#define MAKESPAN_COORDINATOR_PLAN_SCHED_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sched_host {
    int64_t id;
    bool ready;          /* link up, active, not about to leave */
    uint32_t room;       /* assignments that the worker takes besides those it holds */
    uint32_t held;       /* assignments that it holds, the one being made included */
    bool keeps_machine;  /* it holds its machine: held > 0, or it is away and may still be measuring
                          */
    const char *machine; /* boot id; NULL: a machine of its own */
    uint64_t served;     /* rises with each assignment of the fleet; 0: never */
    int64_t serving;     /* sweep that it served last; 0: none */
};

/* A sweep that has a run ready for a host. Not paused. */
struct sched_work {
    int64_t host;
    int64_t sweep;
    int priority; /* lower goes first */
    int64_t age;  /* lower is older */
};

struct sched_pick {
    size_t host; /* index */
    size_t work; /* index */
};

/* Picks at most one assignment a host: *out has room for host_count. `ahead`: assignments in
 * advance. Work must be grouped by host in the order of `hosts`. Returns how many. Call again with
 * the picks counted in until it returns 0. */
size_t sched_decide(const struct sched_host *hosts, size_t host_count,
                    const struct sched_work *work, size_t work_count, uint32_t ahead,
                    struct sched_pick *out);

#endif

/* sched.h: who is served next. Pure: the fleet as it is and the work that is ready give the
 * assignments to be made now.
 *
 * A host serves the sweep with the highest priority, the oldest of them first; among equals it
 * stays with the one that it serves until the block is over. A machine (hosts with one
 * boot id) runs one attempt at a time: a host gets nothing while another of its machine holds
 * something; while more than one of them could be served nothing is handed out in advance, and the
 * one that was served longest ago comes next. */
#ifndef MAKESPAN_COORDINATOR_PLAN_SCHED_H
#define MAKESPAN_COORDINATOR_PLAN_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A sweep that has a run ready for a host. */
struct sched_work {
    int64_t sweep;
    int priority;  /* lower goes first */
    int64_t age;   /* lower is older */
    bool in_block; /* its block is begun and waits for more */
};

struct sched_host {
    bool ready;       /* link up, not drained */
    uint32_t room;    /* assignments that the worker takes besides those it holds */
    uint32_t held;    /* assignments that it holds, the one being made included */
    bool keeps;       /* it has its machine: it holds something, or is away and may be measuring */
    uint64_t machine; /* equal for hosts of one machine; 0: a machine of its own */
    uint64_t served;  /* rises with each assignment of the fleet; 0: never */
    int64_t serving;  /* sweep that it served last; 0: none */
    const struct sched_work *work; /* borrowed */
    size_t work_count;
};

struct sched_pick {
    size_t host; /* index into hosts */
    size_t work; /* index into its work */
};

/* Picks at most one assignment a host, in the order of hosts, into out, which has room for
 * host_count. Hosts of one machine stand next to each other. `ahead`: assignments that a host may
 * hold besides the one being made. Returns how many; call again with the picks counted in until
 * there are none. */
size_t sched_decide(const struct sched_host *hosts, size_t host_count, uint32_t ahead,
                    struct sched_pick *out);

#endif

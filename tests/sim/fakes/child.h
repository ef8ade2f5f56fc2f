/* child.h: a scripted child process of a machine: for the fakes alone. */
#ifndef MAKESPAN_TESTS_SIM_FAKES_CHILD_H
#define MAKESPAN_TESTS_SIM_FAKES_CHILD_H

#include "tests/sim/sim.h"

struct disk;
struct proc;

struct sim_child {
    struct sim_child *next;
    unsigned machine;
    int64_t pid;
    struct node *node;    /* that started it */
    struct disk *disk;    /* of the start that started it; another one: it has lost its files */
    int out_fd;
    struct proc *proc;    /* NULL: nobody waits for it */
    struct sim_command command;
    char tag[33];         /* of the confine that holds it; "" for helpers */
    int64_t start_ns;     /* world's time */
    int killed_by;        /* a signal is on its way to end it; 0: none */
    struct sim_event end;
};

/* The living one, or NULL. */
struct sim_child *sim_child_find(unsigned machine, int64_t pid);
/* What a signal does: SIGKILL ends it soon, others unless it is stubborn. 0 is only asked. */
void sim_child_signal(struct sim_child *child, int number);

#endif

/* proc_start.h: from a description of a child to a running one. For proc.c alone. */
#ifndef MAKESPAN_COMMON_PROC_START_H
#define MAKESPAN_COMMON_PROC_START_H

#include "common/attr.h"

#include <stdint.h>
#include <sys/types.h>

struct diag;
struct proc_spec;

struct proc_started {
    pid_t pid;
    int64_t start_ns;  /* clock_mono_ns() just before it was made; of a child with own_memory when its memory is its own */
    int64_t rss_floor; /* own_memory was asked for and cannot be had: peaks of memory up to this one may be this process's; else -1 */
};

/* Starts the child that spec describes. 0 with what is known of it, or a negative code with text in diag: then no child is left. */
int proc_start_child(const struct proc_spec *spec, struct proc_started *out, struct diag *diag) MUST_CHECK;

#endif

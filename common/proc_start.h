/* proc_start.h: from a description of a child to a running one. For proc.c alone. */
#ifndef MAKESPAN_COMMON_PROC_START_H
#define MAKESPAN_COMMON_PROC_START_H

#include "common/attr.h"

#include <stdint.h>
#include <sys/types.h>

struct diag;
struct proc_spec;

/* Starts the child that spec describes. 0 with its id and clock_mono_ns() just before it was made, or a negative code with text in diag: then no
 * child is left. */
int proc_start_child(const struct proc_spec *spec, pid_t *pid, int64_t *start_ns, struct diag *diag) MUST_CHECK;

#endif

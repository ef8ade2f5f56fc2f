/* follow.h: follows a sweep until it ends: WATCH, and again after a lost connection. */
#ifndef MAKESPAN_COORDINATOR_CTL_FOLLOW_H
#define MAKESPAN_COORDINATOR_CTL_FOLLOW_H

#include "common/attr.h"

#include <stdbool.h>
#include <stdio.h>

struct call;
struct ctl;

/* How the sweep stands is shown on `to`: bars that are drawn anew when that is a terminal, else a line for each thing that happened. `sweep` is NAME, NAME/N or an id. Takes the place of *call when it had to
 * connect again. Returns 0 every cell has its runs, 1 some failed, 2 ended early, 3 hosts missing (or the coordinator could not be reached again); 2 as well when the operator's Ctrl-C ended the view (`mortal`: the sweep ends with this
 * program; else a line says that it goes on). */
int follow_sweep(struct ctl *ctl, struct call **call, const char *sweep, FILE *to, bool mortal) MUST_CHECK;

#endif

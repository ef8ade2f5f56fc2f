/* checked.h: what a sweep file that was found to be in order holds, as one line. Pure. */
#ifndef MAKESPAN_COORDINATOR_CTL_CHECKED_H
#define MAKESPAN_COORDINATOR_CTL_CHECKED_H

#include "common/json.h"

struct buf;

/* Appends "sweep.yaml: no mistakes: 2 variants on 1 host, 8 cells: 24 runs and 8 warm-ups". `doc` is the document of `sweep check`; workloads are counted when there are several, skipped cells and
 * hosts when there are some. */
void checked_line(const char *file, const json_t *doc, struct buf *out);

#endif

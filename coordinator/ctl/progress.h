/* progress.h: a sweep's status document as text: lines of progress, a picture of bars, the exit status. Pure. */
#ifndef MAKESPAN_COORDINATOR_CTL_PROGRESS_H
#define MAKESPAN_COORDINATOR_CTL_PROGRESS_H

#include "common/attr.h"

#include "common/json.h"
#include <stddef.h>

struct buf;

/* A bar a host with its numbers, ETA, and what it does; every line ends in a newline. Bar and numbers count the measured runs that are at their end, well or not; failed ones among them and
 * warm-ups are said beside. `width` is the terminal's. Returns the number of lines. */
size_t progress_picture(const json_t *status, size_t width, struct buf *out);
/* What of it changes when a run or a warm-up comes to its end, or the sweep's state changes: "vm-locking/3: active, 12 of 18 runs, 1 failed, 2 of 2 warm-ups". */
void progress_numbers(const json_t *status, struct buf *out);
/* One line: "vm-locking/3: 12 of 18 runs, 1 failed, 2 of 2 warm-ups, about 3 m 20 s left; p6: buildkernel (prepatch) -j 4, run, 12 s". */
void progress_line(const json_t *status, struct buf *out);
/* Of an ended sweep: 0 every cell has its runs, 1 some failed, 2 cancelled or ended early, 3 hosts are missing. Of one that has not: 2. */
int progress_exit(const json_t *status);

#endif

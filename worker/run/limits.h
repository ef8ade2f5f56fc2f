/* limits.h: whether the limits of the worker's service were too low for a build: at the build's
 * end, as a mark. */
#ifndef MAKESPAN_WORKER_RUN_LIMITS_H
#define MAKESPAN_WORKER_RUN_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

struct marks;
struct os_limits;
struct output;

/* A build with that job count wants LIMITS_EACH processes and files a job. */
enum { LIMITS_EACH = 8 };

struct limits_case {
    const struct os_limits *limits;
    int64_t jobs; /* 1 to 4096, 0 none, -1 max (counted as twice the CPUs) */
    int32_t cpus;
    bool is_root; /* the build runs as root, whom the limit of processes does not bind */
    struct output
        *failed; /* output of the command when it failed: searched for complaints; else NULL */
};

/* Adds MARK_PROCESS_LIMIT when the output complains of too few processes or files, or a limit is
 * below what the job count wants: a shell's silent retry is a slow success. */
void limits_mark(const struct limits_case *c, struct marks *marks);

#endif

/* join.h: makes this host a worker of a fleet: its key, its certificate, its
 * first configuration. */
#ifndef MAKESPAN_WORKER_JOIN_H
#define MAKESPAN_WORKER_JOIN_H

#include "common/attr.h"

struct buf;
struct diag;

struct worker_join {
    const char *address; /* HOST:PORT of the coordinator */
    const char *token;   /* as it was printed */
    const char *name;    /* NULL: the host's own, up to its first dot */
    const char *dir;     /* the worker's folder, absolute */
    const char *config;  /* worker.yaml to be written when there is none */
};

/* Makes the key in the folder when there is none (0600; it never leaves it), asks for a
 * certificate, writes what came, and appends to `said` what was done and what comes next. Nothing
 * is sent before the coordinator has shown that its authority is the token's. Joining again is
 * fine: the same token and key give the same certificate. Runs a loop of its own until the answer,
 * at most half a minute.
 *
 * 0, or a negative code with a sentence that says why and what to do: -ERR_SYNTAX, -ERR_CHECKSUM,
 * -ERR_VERSION, -ERR_INVAL: what was typed is wrong, nothing was done. */
int worker_join(const struct worker_join *join, struct buf *said, struct diag *diag) MUST_CHECK;

#endif

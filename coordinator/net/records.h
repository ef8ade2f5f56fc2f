/* records.h: the durable records of an attempt, from messages to the rows of the model. Pure but for the call of ingest. */
#ifndef MAKESPAN_COORDINATOR_NET_RECORDS_H
#define MAKESPAN_COORDINATOR_NET_RECORDS_H

#include "common/attr.h"

#include <stdint.h>

struct ingest;
struct msg;

/* Gives RESULT, SAMPLES, OUTPUT, MARK or END to ingest. Its codes; -ERR_PROTO too for numbers that no vocabulary has or that cannot be. */
int records_take(struct ingest *ingest, int64_t now_wall_ns, int64_t host, const struct msg *msg) MUST_CHECK;

#endif

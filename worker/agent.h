/* agent.h: one worker, whole: everything that it has hangs here, so that many may live in one
 * process.
 *
 * Owns: the order of starting and ending, the queue of assignments against the slot, what is read
 * in the timed window and handled after it, the room that is told to the coordinator. */
#ifndef MAKESPAN_WORKER_AGENT_H
#define MAKESPAN_WORKER_AGENT_H

#include "common/attr.h"
#include "common/vocab.h"

#include <stdbool.h>
#include <stddef.h>

struct agent;
struct diag;
struct identity;
struct loop;
struct worker_conf;

/* Assignments that a worker holds besides the one that is being made. */
enum { AGENT_AHEAD = 1 };

struct agent_setup {
    struct loop *loop;
    const struct worker_conf *conf; /* borrowed, as are the others */
    struct identity *identity;
    const char *lock_path; /* of the machine's lock; NULL: os_lock_path() */
    const char *boot_id;   /* NULL: the system's */
};

/* Takes the worker's folder (another worker that has it: -ERR_BUSY), reads the journal and the
 * spool, kills what an earlier start left, and connects; all but the first two from later turns. 0,
 * or a negative code with text. */
int agent_new(const struct agent_setup *setup, struct agent **out, struct diag *diag) MUST_CHECK;
/* Ends at once: what is being made is killed, and reported by the next start. NULL is fine. */
void agent_free(struct agent **agent);

/* Ends politely: no work is begun, the attempt in progress is killed and spooled as interrupted,
 * and what can be delivered in two seconds is. Then `f` is called, once, from the loop. */
typedef void agent_stopped_f(void *arg);
void agent_stop(struct agent *agent, agent_stopped_f *f, void *arg);

/* What it does; for tests and the simulation. */
enum phase agent_phase(const struct agent *agent);
bool agent_is_up(const struct agent *agent);
bool agent_in_window(const struct agent *agent);
size_t agent_queued(const struct agent *agent);  /* assignments that wait */
size_t agent_spooled(const struct agent *agent); /* attempts that are not delivered */

#endif

/* journal.h: what the worker must still know after a crash: the number of its starts, the queue of
 * assignments, the one that is being made and how far it is, when it last heard from its
 * coordinator.
 *
 * Two files, `a` and `b`, are written in turns, each with a rising number and a CRC: whatever
 * happens while one is written, the other is whole. The newer whole one is read. What is synced is
 * never overwritten before something newer is synced. Both files keep their length, so that there
 * is room for the next state on a full disk. */
#ifndef MAKESPAN_WORKER_RUN_JOURNAL_H
#define MAKESPAN_WORKER_RUN_JOURNAL_H

#include "common/attr.h"
#include "common/vocab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct journal;
struct msg;
struct msg_assign;

enum { JOURNAL_QUEUE_MAX = 1000 };

/* The attempt that is being made. */
struct journal_running {
    const struct msg_assign *assign;
    enum phase phase; /* the last that was written down */
    bool fresh_tree;  /* setup was made in this attempt */
    int64_t begin_wall_ns;
    const char *boot_id;
    uint64_t visit;
};

/* Reads the files in `dir` (made when missing) and counts a new start, which is synced. When
 * neither file is whole, both are set aside ("damaged-…"), the queue is empty and starts are
 * counted from the time now_wall_ns, which is above any number that was used. 0 or a negative code
 * with text. */
int journal_open(const char *dir, int64_t now_wall_ns, struct journal **out,
                 struct diag *diag) MUST_CHECK;
void journal_close(struct journal **journal); /* NULL inside is fine */

/* Number of this start since the worker was joined, from 1. */
uint64_t journal_visit(const struct journal *journal);

/* --- the queue --- */

size_t journal_queued(const struct journal *journal);
/* Valid until it is removed or begun and done. */
const struct msg_assign *journal_at(const struct journal *journal, size_t index);
/* Appends a copy of an ASSIGN and syncs. -ERR_LIMIT: the queue is full; on failure
 * nothing changed. */
int journal_add(struct journal *journal, const struct msg *assign) MUST_CHECK;
/* Takes it out of the queue and syncs; the assignment is freed. -ERR_NOTFOUND. When it cannot be
 * written it is out all the same: a crash may bring it back, and the coordinator then withdraws it
 * again. */
int journal_remove(struct journal *journal, uint64_t run, uint32_t attempt);

/* --- the one that is being made --- */

/* NULL: none. */
const struct journal_running *journal_running(const struct journal *journal);
/* Makes the first of the queue the one, and syncs. On failure nothing changed. */
int journal_begin(struct journal *journal, const char *boot_id, int64_t now_wall_ns) MUST_CHECK;
/* Writes down how far it is; not synced. */
void journal_phase(struct journal *journal, enum phase phase, bool fresh_tree);
/* Nothing is being made any more; the assignment is freed. Not synced: if a crash brings it back,
 * the spool has it, or the coordinator, which takes nothing twice. */
void journal_done(struct journal *journal);

/* --- the coordinator --- */

/* Seconds since 1970 by the coordinator's clock when it was last heard; 0: never. */
int64_t journal_heard_s(const struct journal *journal);
/* A later time; written down now and then, not synced. Not to be called in the timed window. */
void journal_heard(struct journal *journal, int64_t wall_s);

#endif

/* spool.h: the records of finished attempts, on disk until the coordinator has committed them.
 *
 * Owns: the folder, one file an attempt, the reserve of space. Does not own: what goes into a
 * record (slot), what was sent (feed only keeps its marks here).
 *
 * An attempt is written as a whole: spool_begin(), spool_add() for each record, spool_commit(),
 * which syncs. Only then it counts; a crash before that leaves nothing of it. A record is the frame
 * of its message behind a CRC-32C. A file that is damaged is set aside ("damaged-NAME") with a line
 * in the log; nothing of it is used. So is one that the coordinator refuses for good
 * ("rejected-NAME"); it is not sent again.
 *
 * RESULT, MARK and END always fit: a reserve file of SPOOL_RESERVE bytes is given up for them when
 * the disk is full. spool_has_reserve() is false then, and no work may be begun until
 * spool_refill() has made it again. */
#ifndef MAKESPAN_WORKER_RUN_SPOOL_H
#define MAKESPAN_WORKER_RUN_SPOOL_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct msg;
struct spool;

#define SPOOL_RESERVE (1024 * 1024)

/* A whole attempt. */
struct spool_entry {
    uint64_t serial; /* rises in the order of commits */
    uint64_t run;
    uint32_t attempt;
    uint32_t count; /* records, END included */
    uint64_t size;  /* of its file */
    /* Of feed.c: the next record to be sent, and the first one that is not committed. */
    uint32_t sent;
    uint32_t acked;
    bool refused; /* it is to be set aside */
};

/* Makes the folder when missing and reads through what is there. Damage is never fatal. A disk so
 * full that there is no room for the reserve is not either. 0 or a negative code with text. */
int spool_open(const char *dir, struct spool **out, struct diag *diag) MUST_CHECK;
void spool_close(struct spool **spool); /* NULL inside is fine */

/* --- writing, one attempt at a time --- */

/* Begins an attempt; what was begun and not committed is forgotten. */
int spool_begin(struct spool *spool, uint64_t run, uint32_t attempt) MUST_CHECK;
/* The number that the next record has to have. */
uint32_t spool_next_seq(const struct spool *spool);
/* Appends a durable message of that attempt with that number. -ERR_FULL: no room (never for RESULT,
 * MARK and END while there is a reserve); then what was added before is still whole, and another
 * record may follow. -ERR_INVAL: not such a message, or it breaks its schema. */
int spool_add(struct spool *spool, const struct msg *msg) MUST_CHECK;
/* After END: syncs; from now on the attempt counts. On failure nothing counts, and the attempt is
 * to be written again from spool_begin(). */
int spool_commit(struct spool *spool) MUST_CHECK;

/* Its folder; borrowed. */
const char *spool_dir(const struct spool *spool);
bool spool_has_reserve(const struct spool *spool);
/* Makes the reserve again. 0, -ERR_FULL or another negative code. */
int spool_refill(struct spool *spool);

/* --- reading: entries in the order of their commits --- */

size_t spool_count(const struct spool *spool);
uint64_t spool_bytes(const struct spool *spool);
/* Valid until an attempt is committed, forgotten or set aside. */
struct spool_entry *spool_at(const struct spool *spool, size_t index);
/* The index of an attempt, or spool_count(). `hint`: where to look first. */
size_t spool_find(const struct spool *spool, uint64_t run, uint32_t attempt, size_t hint);
/* Reads record `seq` (below the entry's count); msg_free() it. Records are read fastest in their
 * order. -ERR_CORRUPT: the file was found damaged and set aside, the entry is gone; another
 * negative code: not readable now. */
int spool_read(struct spool *spool, size_t index, uint32_t seq, struct msg **out) MUST_CHECK;
/* The coordinator will never take it, for the reason that it gave: sets the file aside
 * ("rejected-NAME") with a line in the log. */
void spool_reject(struct spool *spool, size_t index, const char *why);
/* The coordinator has it: removes the file. A file that cannot be removed is tried again when the
 * spool is opened the next time. */
void spool_forget(struct spool *spool, size_t index);

#endif

/* journal_file.h: the bytes of the journal. For journal.c alone.
 *
 *     "MKJOURN1"  u64 number  u32 length of the rest  u32 CRC-32C of all but itself
 *     items:      u8 tag  u32 length  bytes
 *
 * All numbers are big-endian. An unknown tag is an error: a later version wrote it, and what it
 * says must not be dropped. */
#ifndef MAKESPAN_WORKER_RUN_JOURNAL_FILE_H
#define MAKESPAN_WORKER_RUN_JOURNAL_FILE_H

#include "common/attr.h"
#include "worker/run/journal.h"

struct buf;

#define JOURNAL_BOOT_MAX 64

/* All that the journal says. */
struct journal_state {
    uint64_t visit;
    int64_t heard_s;
    struct msg *running_msg; /* NULL: nothing is being made; owned, an ASSIGN */
    struct journal_running running;
    char boot_id[JOURNAL_BOOT_MAX + 1]; /* of the running one */
    struct msg **queue;                 /* owned, each an ASSIGN */
    size_t count;
    size_t room;
};

void journal_state_fini(struct journal_state *state); /* leaves an empty state */

/* Appends the file's bytes to an empty buffer. 0 or the buffer's error. */
int journal_state_make(const struct journal_state *state, uint64_t number,
                       struct buf *out) MUST_CHECK;
/* Writes length and checksum into the head of such bytes; journal_state_make() has done it. For
 * tests. */
void journal_state_seal(struct buf *bytes);
/* Reads them; bytes behind the stated length are not looked at. -ERR_CORRUPT, -ERR_VERSION (whole,
 * but of a later version), -ERR_NOMEM; then *state is empty. */
int journal_state_read(const void *data, size_t n, uint64_t *number,
                       struct journal_state *state) MUST_CHECK;

#endif

/* store.h: the coordinator's database: opening, the turn's transaction, savepoints, small named
 * values.
 *
 * Group commit: the first write of a loop turn opens a transaction, store_commit() at the end of
 * the turn makes all of it durable, or none of it. Reads on the same store see what was written
 * in the turn. The rows are in hosts.h, trust.h, blobs.h, sweeps.h, cells.h, runs.h, attempts.h,
 * verdicts.h, events.h and load.h.
 *
 * Common to all of them:
 * - A result is 0 or negative: -ERR_NOTFOUND (no such row), -ERR_EXISTS (the key is taken),
 *   -ERR_CONFLICT (a row that it refers to is missing, or the value breaks a rule of the
 *   schema), -ERR_STATE (a write to a store that was opened to be read), -ERR_BUSY (another
 *   process writes; nothing is lost), -ERR_FULL, -ERR_IO, -ERR_CORRUPT, -ERR_NOMEM.
 *   store_error() says more.
 * - After -ERR_FULL, -ERR_IO, -ERR_CORRUPT or -ERR_NOMEM the whole turn is lost: store_failed()
 *   is set, every write is refused with the same code, and store_commit() fails with it.
 * - A "get" copies texts into the arena that the caller gives. An "each" lends its row for the
 *   time of the callback; a callback returns 0 to go on, anything else stops and is returned. A
 *   callback may use the store, also the same function; rows that it adds may or may not be seen
 *   by the running "each".
 * - Times are nanoseconds of the wall clock, given by the caller: the store reads no clock. */
#ifndef MAKESPAN_COORDINATOR_STORE_STORE_H
#define MAKESPAN_COORDINATOR_STORE_STORE_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct mem_arena;
struct store;

enum {
    STORE_READ_ONLY = 1, /* for the web process: the file must exist with this program's schema */
    STORE_ALONE = 2,     /* no other process opens the file meanwhile: no shared memory is used */
};

/* Opens or makes the database at `path`. `vfs`: name of the SQLite file layer to use, NULL: the
 * system's. An older schema is migrated, each step in one transaction, after a copy was left
 * beside the file (PATH.before-N); a newer one, a foreign file and a damaged one are refused
 * with a sentence. 0 and *out, or negative and *out NULL. */
int store_open(const char *path, const char *vfs, unsigned flags, struct store **out,
               struct diag *diag) MUST_CHECK;
/* What was not committed is rolled back. NULL inside is fine. */
void store_close(struct store **store);
/* Version of the schema that this program writes. */
int store_schema_version(void);

/* --- the turn --- */

/* Whether something was written since the last commit or rollback. */
bool store_dirty(const struct store *store);
/* 0, or the negative code of the failure that lost this turn's writes. */
int store_failed(const struct store *store);
/* Makes the turn's writes durable; 0 at once when there are none. On failure everything since
 * the last commit is rolled back and the store is usable again: -ERR_FULL, -ERR_IO, … with text
 * in diag. */
int store_commit(struct store *store, struct diag *diag) MUST_CHECK;
/* Forgets the turn's writes, and a failure. */
void store_rollback(struct store *store);
/* Text of the last failure of any function, "" when there was none. Valid until the next call. */
const char *store_error(const struct store *store);
/* Counts up with every commit that wrote something. */
uint64_t store_commits(const struct store *store);
/* Lets the database grow to at most `pages` pages of 4096 bytes; beyond: -ERR_FULL. 0: no limit. */
int store_limit_pages(struct store *store, uint32_t pages) MUST_CHECK;

/* Savepoints: what one request wrote can be taken back without harming the others of the turn.
 * They nest; a handle is from 1. Costs nothing until something is written. At most 16 deep. */
int store_savepoint(struct store *store) MUST_CHECK; /* the handle (positive), or negative */
/* Keeps what was written since; inner savepoints that are still open are kept too. */
int store_release(struct store *store, int handle) MUST_CHECK;
/* Takes back what was written since, inner savepoints included. After a lost turn it only closes
 * them. */
void store_revert(struct store *store, int handle);

/* --- named values: the fleet's name, … --- */

/* -ERR_NOTFOUND when it was never set. */
int store_meta_get(struct store *store, const char *key, struct mem_arena *arena,
                   const char **value) MUST_CHECK;
int store_meta_set(struct store *store, const char *key, const char *value) MUST_CHECK;

#endif

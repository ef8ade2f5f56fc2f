/* blob.h: source archives by their SHA-256 in DIR/blobs, and the coordinator's reading of git
 * repositories.
 *
 * An archive is a file DIR/blobs/ab/cdef…, written under another name, checked, synced and
 * renamed, then a row of the store: it counts from the commit of that row on. Repositories that
 * are not on this machine are mirrored in DIR/mirrors/SHA-256-OF-URL. Repositories of every
 * owner are read, since who may submit a sweep may name them: nothing that their configuration
 * names is started (proto/source.h). */
#ifndef MAKESPAN_COORDINATOR_BLOB_BLOB_H
#define MAKESPAN_COORDINATOR_BLOB_BLOB_H

#include "common/attr.h"
#include "coordinator/model.h"
#include "proto/source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blob;
struct blob_job;
struct blob_put;
struct diag;
struct loop;
struct store;

enum { BLOB_PIECE_MAX = 262144 };

struct blob_limits {
    uint64_t size_max;  /* bytes of one archive; 0: 16 GiB */
    uint64_t disk_keep; /* bytes that stay free on the file system; 0: 64 MiB */
    int64_t git_ns;     /* longest time of one git command; 0: 30 min */
};

/* `dir` is the coordinator's folder; what is missing in it is made, what an earlier process left
 * half-made of git's archives is removed (pieces of puts are kept). limits NULL: defaults. Loop
 * and store are borrowed for the life of the object. */
int blob_open(struct loop *loop, struct store *store, const char *dir,
              const struct blob_limits *limits, struct blob **out, struct diag *diag) MUST_CHECK;
/* Ends its jobs without a callback; every put must have been freed. NULL inside is fine. */
void blob_close(struct blob **blob);

/* --- reading --- */

/* -ERR_NOTFOUND when there is no such archive. */
int blob_size(struct blob *blob, const uint8_t hash[MODEL_HASH], uint64_t *size) MUST_CHECK;
/* Up to n bytes from the offset; *got is less only at the end. -ERR_NOTFOUND, -ERR_RANGE (beyond
 * the end), -ERR_IO, -ERR_CORRUPT (the file is not as long as its row says). */
int blob_read(struct blob *blob, const uint8_t hash[MODEL_HASH], uint64_t offset, void *dst,
              size_t n, size_t *got) MUST_CHECK;

/* --- putting, by an operator's command --- */

/* How a put ended: code 0 and the row is written, to be answered after the commit of this turn;
 * or negative with a sentence: -ERR_CHECKSUM (the bytes are not those of the hash; they are
 * gone), -ERR_FULL, -ERR_IO. Called once, from the loop. The put is still to be freed. */
typedef void blob_put_f(struct blob_put *put, int code, const char *text, void *arg);
/* Begins to put an archive of `total` bytes, or goes on with what is here of it. *out NULL with
 * 0: it is here already, all of it. Several may put the same archive at once: they share the
 * file. -ERR_LIMIT (too long), -ERR_FULL, -ERR_CONFLICT (here with another size), with text. */
int blob_put_begin(struct blob *blob, const uint8_t hash[MODEL_HASH], uint64_t total, blob_put_f *f,
                   void *arg, struct blob_put **out, struct diag *diag) MUST_CHECK;
/* Bytes that are here: the next piece begins there. */
uint64_t blob_put_have(const struct blob_put *put);
/* A piece. What is here already is skipped; one that begins beyond what is here is -ERR_RANGE.
 * After the last byte the hash is checked, a bit in each turn, and f called. */
int blob_put_data(struct blob_put *put, uint64_t offset, const void *bytes, size_t n,
                  struct diag *diag) MUST_CHECK;
/* Lets go; what is here stays for a later put. NULL inside is fine. */
void blob_put_free(struct blob_put **put);

/* --- git, read by the coordinator --- */

struct blob_rev {
    char commit[65];
    char tree[65];
    char subject[257];
    bool has_blob;
    uint8_t blob[MODEL_HASH];
    uint64_t size;
    bool exact; /* all of the commit's tree; else `tree` is that without submodules */
};
/* code 0: revs from the oldest to the newest, their archives are rows of the store (to be
 * committed with this turn). Else negative with one sentence that names the repository and the
 * revision. `warning` is a sentence or NULL. All borrowed for the call. */
typedef void blob_git_f(int code, const char *text, const struct blob_rev *revs, size_t count,
                        const char *warning, void *arg);
/* Looks up an expression in a repository (a path on this machine, or a URL, whose mirror is
 * brought up to date) and, if `archive`, makes an archive of each commit that has none. At most
 * rev_max commits. `f` is called once, from a later turn. Jobs run one after another. 0 or
 * negative with text. */
int blob_git_resolve(struct blob *blob, const char *url, const struct source_expr *expr,
                     size_t rev_max, bool archive, blob_git_f *f, void *arg, struct blob_job **out,
                     struct diag *diag) MUST_CHECK;
/* Ends the job without a callback. NULL inside is fine. After its callback the pointer is dead. */
void blob_git_cancel(struct blob_job **job);

#endif

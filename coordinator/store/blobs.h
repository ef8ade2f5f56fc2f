/* blobs.h: rows of source archives by hash, and which archive was made of which commit. See
 * store.h for what holds for all functions. The archives themselves are files of blob/. */
#ifndef MAKESPAN_COORDINATOR_STORE_BLOBS_H
#define MAKESPAN_COORDINATOR_STORE_BLOBS_H

#include "common/attr.h"
#include "coordinator/model.h"

#include <stdbool.h>
#include <stdint.h>

struct store;

struct store_blob {
    uint8_t hash[MODEL_HASH]; /* SHA-256 */
    uint64_t size;
    int64_t made_wall_ns;
    int64_t used_wall_ns;
};

/* Being there already with the same size is fine; another size is -ERR_CONFLICT. */
int store_blob_insert(struct store *store, const struct store_blob *blob) MUST_CHECK;
int store_blob_get(struct store *store, const uint8_t hash[MODEL_HASH],
                   struct store_blob *out) MUST_CHECK;
typedef int store_blob_f(const struct store_blob *blob, void *arg);
/* The longest unused first. */
int store_blobs_each(struct store *store, store_blob_f *f, void *arg) MUST_CHECK;
int store_blob_touch(struct store *store, const uint8_t hash[MODEL_HASH],
                     int64_t wall_ns) MUST_CHECK;
/* -ERR_CONFLICT while an input of a sweep names it. */
int store_blob_remove(struct store *store, const uint8_t hash[MODEL_HASH]) MUST_CHECK;

/* The archive that was made of a commit (its full hash names its content, whatever repository it
 * is in). */
struct store_archive {
    uint8_t hash[MODEL_HASH];
    uint64_t size;
    bool exact; /* the unpacked archive has the commit's tree hash: no submodules were left out */
};
/* Replaces what was known of the commit. The archive's row must be there. */
int store_archive_put(struct store *store, const char *commit,
                      const struct store_archive *archive) MUST_CHECK;
int store_archive_get(struct store *store, const char *commit,
                      struct store_archive *out) MUST_CHECK;

#endif

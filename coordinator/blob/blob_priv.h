/* blob_priv.h: what the files of blob/ share. */
#ifndef MAKESPAN_COORDINATOR_BLOB_PRIV_H
#define MAKESPAN_COORDINATOR_BLOB_PRIV_H

#include "common/fileio.h"
#include "coordinator/blob/blob.h"

#include <stdint.h>

#define BLOB_MAGIC 0x626c6f62U

struct blob_part;

struct blob {
    unsigned magic;
    struct loop *loop;
    struct store *store;
    struct blob_limits limits;
    char blobs[FILE_PATH_MAX];
    char parts[FILE_PATH_MAX]; /* pieces of what is being put */
    char work[FILE_PATH_MAX];  /* what git's archives are made in */
    char mirrors[FILE_PATH_MAX];
    struct blob_part *open_parts;
    struct blob_job *jobs; /* the first one runs */
};

/* Where the archive of this hash stands. */
int blob_place(const struct blob *blob, const uint8_t hash[MODEL_HASH],
               char path[FILE_PATH_MAX]) MUST_CHECK;
/* Moves a checked and synced file to its place, and writes its row. */
int blob_take(struct blob *blob, const char *path, const uint8_t hash[MODEL_HASH], uint64_t size,
              struct diag *diag) MUST_CHECK;
/* Whether `more` bytes can be written and the file system keeps what must stay free. */
int blob_check_room(const struct blob *blob, uint64_t more, struct diag *diag) MUST_CHECK;
/* Ends every job without a callback. */
void blob_end_jobs(struct blob *blob);

#endif

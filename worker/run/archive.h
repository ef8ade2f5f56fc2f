/* archive.h: an archive becomes a tree: hashed, read through by tarcheck.h, unpacked by the
 * host's own tar as the build's user.
 *
 * Plain tar, or packed by gzip, bzip2, xz or zstd (told by its first bytes; the host's program
 * unpacks). The loop never waits: files are read in slices, programs are children. */
#ifndef MAKESPAN_WORKER_RUN_ARCHIVE_H
#define MAKESPAN_WORKER_RUN_ARCHIVE_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct archive;
struct diag;
struct loop;

struct archive_spec {
    const char *file;     /* absolute */
    const uint8_t *hash;  /* SHA-256 that it must have, 32 bytes */
    const char *dest;     /* an empty folder that the user may write */
    const char *path;     /* PATH of the programs */
    uint64_t entries_max; /* 0: no limit */
    uint64_t bytes_max;   /* of the files together; 0: no limit */
    bool set_user;
    uint32_t uid;
    uint32_t gid;
};

struct archive_result {
    int code; /* 0, or CHECKSUM, DENIED, CORRUPT, LIMIT, FULL, CHILD, TIMEOUT, IO, … (negative) */
    const char *text;    /* the sentence of a failure; "" */
    const uint8_t *hash; /* SHA-256 as it was read; NULL when it was not read to its end */
    uint64_t entries;
    uint64_t bytes; /* of the files together */
};
typedef void archive_f(const struct archive_result *result, void *arg);

/* Strings and hash are copied. `f` is called once, from the loop; then the object is gone. */
int archive_unpack(struct loop *loop, const struct archive_spec *spec, archive_f *f, void *arg,
                   struct archive **out, struct diag *diag) MUST_CHECK;
/* Kills the children; `f` is not called. NULL inside is fine; not after f. */
void archive_cancel(struct archive **archive);

#endif

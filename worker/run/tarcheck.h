/* tarcheck.h: reads a tar archive as it comes and says whether it may be unpacked: our own eyes,
 * before the host's tar gets it.
 *
 * Refused: names that are absolute or hold "..", links that leave the tree, names below a link,
 * devices, fifos, sockets, set-id bits on files, sparse files, kinds of entries that are not
 * understood, two sources for one name, and whatever different programs could read differently
 * (bytes behind the end, sizes that disagree, data in entries that have none). Understood:
 * ustar, pax and GNU's long names. */
#ifndef MAKESPAN_WORKER_RUN_TARCHECK_H
#define MAKESPAN_WORKER_RUN_TARCHECK_H

#include "common/attr.h"

#include <stddef.h>
#include <stdint.h>

struct diag;
struct tarcheck;

struct tarcheck_limits {
    uint64_t entries; /* 0: no limit */
    uint64_t bytes;   /* of all files together; 0: no limit */
};

struct tarcheck *tarcheck_new(const struct tarcheck_limits *limits) MUST_CHECK;
void tarcheck_free(struct tarcheck **check);
/* The next bytes of the archive, unpacked by its compressor. 0; or negative, with one sentence
 * in diag that names the entry, and then always the same code: -ERR_DENIED it may not be
 * unpacked, -ERR_CORRUPT it is damaged, -ERR_LIMIT it is too large. */
int tarcheck_feed(struct tarcheck *check, const void *bytes, size_t n,
                  struct diag *diag) MUST_CHECK;
/* No more bytes: 0 when the archive is whole. */
int tarcheck_end(struct tarcheck *check, struct diag *diag) MUST_CHECK;
uint64_t tarcheck_entries(const struct tarcheck *check);
uint64_t tarcheck_bytes(const struct tarcheck *check);

#endif

/* fetch_store.h: the folder of archives that fetch.c fills: what is in it and what goes first.
 * For fetch.c alone. */
#ifndef MAKESPAN_WORKER_RUN_FETCH_STORE_H
#define MAKESPAN_WORKER_RUN_FETCH_STORE_H

#include "common/attr.h"
#include "common/fileio.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FETCH_STORE_HEX 64

struct fetch_blob {
    char hex[FETCH_STORE_HEX + 1];
    uint64_t size; /* on the disk */
    uint64_t used; /* counts up with each use of any */
    bool part;     /* not whole yet */
};

struct fetch_store {
    char dir[FILE_PATH_MAX];
    uint64_t budget; /* bytes; 0: no limit */
    struct fetch_blob *blob;
    size_t count;
    size_t room;
    uint64_t use_count;
};

/* Makes the folder and reads it. */
int fetch_store_open(struct fetch_store *store, const char *dir, uint64_t budget) MUST_CHECK;
void fetch_store_close(struct fetch_store *store);
int fetch_store_path(const struct fetch_store *store, const char *hex, bool part,
                     char dst[FILE_PATH_MAX]) MUST_CHECK;
/* Valid until the next add or drop; NULL when it is not there. */
struct fetch_blob *fetch_store_find(struct fetch_store *store, const char *hex);
struct fetch_blob *fetch_store_add(struct fetch_store *store, const char *hex);
/* It was used just now. */
void fetch_store_used(struct fetch_store *store, struct fetch_blob *blob);
int fetch_store_drop(struct fetch_store *store, struct fetch_blob *blob) MUST_CHECK;
/* Throws away the least recently used but these two (NULL: none); false when there is none. */
bool fetch_store_drop_oldest(struct fetch_store *store, const char *keep, const char *wish);
/* As many as it takes until `coming` more bytes are within the budget. */
void fetch_store_keep_budget(struct fetch_store *store, uint64_t coming, const char *keep,
                             const char *wish);

#endif

/* treestamp.h: the small file in a prepared tree that says which one it is and whether it may be
 * used. */
#ifndef MAKESPAN_WORKER_RUN_TREESTAMP_H
#define MAKESPAN_WORKER_RUN_TREESTAMP_H

#include "common/attr.h"

#include <stdbool.h>
#include <stdint.h>

struct treestamp {
    char key[65]; /* hex */
    bool ready;   /* setup went well */
    /* all of it was on the disk once it was ready: it may be used after a crash of the system
     * too */
    bool synced;
    char boot[65];  /* boot in which it was made ready; "" unknown */
    uint64_t used;  /* counts up with each use of any tree */
    uint64_t bytes; /* on the disk, as last counted */
    char blob[65];  /* SHA-256 of its archive, hex, or "" */
    /* git's tree hash of what was unpacked, or what the host's own folder said, or "" */
    char tree[65];
};

/* Reads FOLDER/stamp. False when there is none, or when it is damaged. */
bool treestamp_read(const char *folder, struct treestamp *out);
/* Replaces it; after a crash the old or the new one is there. */
int treestamp_write(const char *folder, const struct treestamp *stamp) MUST_CHECK;
/* Whether the tree may be built in now, in this boot. */
bool treestamp_usable(const struct treestamp *stamp, const char *boot);

#endif

/* fetch.h: the archives that this worker has: WORK/blobs/HASH, each checked against its SHA-256.
 *
 * Owns: the folder, its budget (the least recently used go first), what is being fetched
 * (HASH.part, taken up again after a restart). Asks for pieces through a function that the link
 * gives, and is told of what came; it knows no message. */
#ifndef MAKESPAN_WORKER_RUN_FETCH_H
#define MAKESPAN_WORKER_RUN_FETCH_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct fetch;
struct loop;

#define FETCH_HASH 32
#define FETCH_PIECE (256 * 1024)
/* Without a byte for so long on a link that is up: asked again, five times. */
#define FETCH_SILENCE_NS (INT64_C(60000000000))

/* Asks the coordinator for a piece. The answer comes by fetch_data() or fetch_none(). */
typedef void fetch_ask_f(const uint8_t hash[FETCH_HASH], uint64_t offset, uint32_t length,
                         void *arg);

struct fetch_conf {
    const char *dir; /* copied; made when missing */
    /* bytes of all archives; 0: no limit. One that is in use stays even beyond it. */
    uint64_t budget;
    fetch_ask_f *ask;
    void *ask_arg;
};

int fetch_new(struct loop *loop, const struct fetch_conf *conf, struct fetch **out,
              struct diag *diag) MUST_CHECK;
void fetch_free(struct fetch **fetch); /* NULL inside is fine */

struct fetch_result {
    /* 0, or negative: NOTFOUND the coordinator has none, CHECKSUM, FULL the disk, TIMEOUT, IO */
    int code;
    const char *path; /* of the whole and checked archive; NULL on failure */
    const char *text; /* the sentence of a failure; "" */
};
typedef void fetch_f(const struct fetch_result *result, void *arg);

/* Makes the archive be there. `f` is called once, from the loop, also when it is there already
 * (its bytes are checked again then). One at a time: -ERR_BUSY. */
int fetch_get(struct fetch *fetch, const uint8_t hash[FETCH_HASH], uint64_t size, fetch_f *f,
              void *arg, struct diag *diag) MUST_CHECK;
/* The folder of the archives; borrowed for the life of fetch. */
const char *fetch_dir(const struct fetch *fetch);
/* Forgets the wish, keeps what came. `f` is not called. */
void fetch_cancel(struct fetch *fetch);
/* The archive that is in use and must stay; NULL: none. */
void fetch_keep(struct fetch *fetch, const uint8_t *hash);
/* Bytes of the present wish that are here, of how many. False without a wish. */
bool fetch_progress(const struct fetch *fetch, uint64_t *have, uint64_t *size);

/* From the link. What was not asked for is ignored. */
void fetch_data(struct fetch *fetch, const uint8_t hash[FETCH_HASH], uint64_t offset,
                uint64_t total, const uint8_t *bytes, size_t n);
void fetch_none(struct fetch *fetch, const uint8_t hash[FETCH_HASH], const char *text);
/* up: asks (again) for what is missing; down: waits without limit. */
void fetch_link(struct fetch *fetch, bool up);

#endif

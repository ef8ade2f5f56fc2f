/* put.c: archives that come in pieces from operators' commands: one file a hash, shared by all
 * who put it, checked at its end.
 *
 * What came is on the disk under the hash's name until it is whole, also when the operator goes
 * away or this program ends. */
#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "coordinator/blob/blob_priv.h"
#include "coordinator/store/blobs.h"
#include "coordinator/store/store.h"
#include "proto/digest.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART_MAGIC 0x70617274U
#define PUT_MAGIC 0x70757421U
#define HASH_PIECE ((size_t)1024 * 1024)
#define HASH_TURN 8                     /* pieces a turn */
#define SYNC_EVERY ((uint64_t)16 << 20) /* so that the last sync is short */

struct blob_part {
    unsigned magic;
    struct blob *blob;
    struct blob_part *next;
    struct blob_put *puts;
    uint8_t hash[MODEL_HASH];
    uint64_t total;
    uint64_t have;   /* bytes in the file */
    uint64_t hashed; /* of these, how many the digest has seen */
    uint64_t synced;
    struct file *file;
    struct digest *digest;
    struct loop_timer *timer; /* hashes what came before this program started, and ends it */
    bool ending;
    char path[FILE_PATH_MAX];
};

struct blob_put {
    unsigned magic;
    struct blob_part *part; /* NULL: its end was told */
    struct blob_put *next;
    uint64_t have; /* when the part is gone */
    blob_put_f *f;
    void *arg;
};

/* --- parts --- */

static void free_part(struct blob_part *part)
{
    struct blob_part **at = &part->blob->open_parts;
    while (*at != part) {
        at = &(*at)->next;
    }
    *at = part->next;
    loop_timer_free(&part->timer);
    file_close(&part->file);
    digest_free(&part->digest);
    part->magic = 0;
    free(part);
}

/* Tells everyone how it ended, and forgets it. */
static void end_part(struct blob_part *part, int code, const char *text)
{
    part->ending = true;
    while (part->puts != NULL) {
        struct blob_put *put = part->puts;
        part->puts = put->next;
        put->part = NULL;
        put->have = code == 0 ? part->total : 0;
        put->f(put, code, text, put->arg);
    }
    free_part(part);
}

static void fail_part(struct blob_part *part, int code, const char *what)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, "%s: %s", what, err_text(code));
    end_part(part, code, buf_str(&text));
    buf_fini(&text);
}

/* All bytes are here and hashed. */
static void finish_part(struct blob_part *part)
{
    uint8_t hash[DIGEST_MAX];
    digest_end(part->digest, hash);
    if (memcmp(hash, part->hash, MODEL_HASH) != 0) {
        file_close(&part->file);
        int rc = file_remove(part->path);
        if (rc < 0) {
            fail_part(part, rc, "the archive is damaged, and cannot be removed");
            return;
        }
        end_part(part, -ERR_CHECKSUM,
                 "the archive that came is not the one that was announced: its hash is another");
        return;
    }
    int rc = file_sync(part->file);
    file_close(&part->file);
    if (rc < 0) {
        fail_part(part, rc, "the archive cannot be written");
        return;
    }
    struct diag *diag = diag_new(1);
    rc = blob_take(part->blob, part->path, part->hash, part->total, diag);
    end_part(part, rc, diag_first(diag));
    diag_free(&diag);
}

static void on_timer(void *arg)
{
    struct blob_part *part;
    CAST_OBJ(part, arg, PART_MAGIC);
    uint8_t *piece = mem_xzalloc(HASH_PIECE);
    int rc = 0;
    loop_doing(part->blob->loop, "hashing an archive");
    for (int i = 0; i < HASH_TURN && rc == 0 && part->hashed < part->have; i++) {
        uint64_t left = part->have - part->hashed;
        size_t want = left < HASH_PIECE ? (size_t)left : HASH_PIECE;
        size_t got = 0;
        rc = file_read_at(part->file, part->hashed, piece, want, &got);
        if (rc == 0 && got < want) {
            rc = -ERR_CORRUPT;
        }
        if (rc == 0) {
            digest_add(part->digest, piece, got);
            part->hashed += got;
        }
    }
    free(piece);
    if (rc < 0) {
        fail_part(part, rc, "what is here of the archive cannot be read");
    } else if (part->hashed < part->have) {
        loop_timer_set(part->timer, 0);
    } else if (part->hashed == part->total) {
        finish_part(part);
    }
}

static int open_file(struct blob_part *part, struct diag *diag)
{
    int rc = file_open(part->path, FILE_READ | FILE_WRITE | FILE_CREATE, 0600, &part->file);
    if (rc == 0) {
        rc = file_size(part->file, &part->have);
    }
    if (rc == 0 && part->have > part->total) {
        part->have = 0;
        rc = file_truncate(part->file, 0);
    }
    return rc < 0 ? diag_error(diag, rc, "%s cannot be written: %s", part->path, err_text(rc)) : 0;
}

static int make_part(struct blob *blob, const uint8_t hash[MODEL_HASH], uint64_t total,
                     struct blob_part **out, struct diag *diag)
{
    char name[2 * MODEL_HASH + 1];
    struct blob_part *part = mem_xzalloc(sizeof(*part));
    part->magic = PART_MAGIC;
    part->blob = blob;
    memcpy(part->hash, hash, MODEL_HASH);
    part->total = total;
    part->next = blob->open_parts;
    blob->open_parts = part;
    str_hex(name, hash, MODEL_HASH);
    int rc = file_path(part->path, sizeof(part->path), blob->parts, name);
    if (rc == 0) {
        rc = open_file(part, diag);
    }
    if (rc == 0) {
        rc = blob_check_room(blob, total - part->have, diag);
    }
    if (rc < 0) {
        free_part(part);
        return rc;
    }
    part->synced = part->have;
    part->digest = digest_new(DIGEST_SHA256);
    part->timer = loop_timer_new(blob->loop, on_timer, part);
    if (part->have > 0) {
        loop_timer_set(part->timer, 0);
    }
    *out = part;
    return 0;
}

/* --- puts --- */

/* 1: the archive is here, all of it; 0: it is not. A file that was checked but whose row was not
 * committed gets it now. */
static int is_here(struct blob *blob, const uint8_t hash[MODEL_HASH], uint64_t total,
                   struct diag *diag)
{
    char path[FILE_PATH_MAX];
    struct file_stat st;
    uint64_t size = 0;
    int rc = blob_size(blob, hash, &size);
    if (rc == 0 && size != total) {
        return diag_error(diag, ERR_CONFLICT, "the archive is here, and it has another size");
    }
    if (rc < 0 && rc != -ERR_NOTFOUND) {
        return diag_error(diag, rc, "the database cannot be read: %s", store_error(blob->store));
    }
    bool has_row = rc == 0;
    rc = blob_place(blob, hash, path);
    if (rc < 0) {
        return diag_error(diag, rc, "%s: the folder's name is too long", blob->blobs);
    }
    if (file_stat(path, &st) < 0 || st.type != FILE_T_FILE || st.size != total) {
        return 0;
    }
    rc = has_row ? 0 : blob_take(blob, path, hash, total, diag);
    return rc < 0 ? rc : 1;
}

int blob_put_begin(struct blob *blob, const uint8_t hash[MODEL_HASH], uint64_t total, blob_put_f *f,
                   void *arg, struct blob_put **out, struct diag *diag)
{
    char most[32];
    *out = NULL;
    assert(blob->magic == BLOB_MAGIC);
    if (total == 0 || total > blob->limits.size_max) {
        return diag_error(diag, ERR_LIMIT, "an archive has from 1 byte to %s",
                          num_size_text(most, sizeof(most), blob->limits.size_max));
    }
    int rc = is_here(blob, hash, total, diag);
    if (rc != 0) {
        return rc < 0 ? rc : 0;
    }
    struct blob_part *part = blob->open_parts;
    while (part != NULL && (part->ending || memcmp(part->hash, hash, MODEL_HASH) != 0)) {
        part = part->next;
    }
    if (part != NULL && part->total != total) {
        return diag_error(diag, ERR_CONFLICT,
                          "the archive is being put by another, with another size");
    }
    if (part == NULL) {
        rc = make_part(blob, hash, total, &part, diag);
        if (rc < 0) {
            return rc;
        }
    }
    struct blob_put *put = mem_xzalloc(sizeof(*put));
    put->magic = PUT_MAGIC;
    put->part = part;
    put->f = f;
    put->arg = arg;
    put->next = part->puts;
    part->puts = put;
    *out = put;
    return 0;
}

uint64_t blob_put_have(const struct blob_put *put)
{
    assert(put->magic == PUT_MAGIC);
    return put->part != NULL ? put->part->have : put->have;
}

static int append(struct blob_part *part, const uint8_t *bytes, size_t n, struct diag *diag)
{
    int rc = file_write_at(part->file, part->have, bytes, n);
    if (rc == 0 && part->have + n - part->synced >= SYNC_EVERY) {
        rc = file_sync(part->file);
        part->synced = part->have + n;
    }
    if (rc < 0) {
        return diag_error(diag, rc, "the archive cannot be written to %s: %s", part->blob->parts,
                          err_text(rc));
    }
    if (part->hashed == part->have) {
        digest_add(part->digest, bytes, n);
        part->hashed += n;
    }
    part->have += n;
    if (part->have == part->total) {
        loop_timer_set(part->timer, 0);
    }
    return 0;
}

int blob_put_data(struct blob_put *put, uint64_t offset, const void *bytes, size_t n,
                  struct diag *diag)
{
    struct blob_part *part = put->part;
    assert(put->magic == PUT_MAGIC);
    if (part == NULL) {
        return diag_error(diag, ERR_STATE, "the archive has its end already");
    }
    if (n > BLOB_PIECE_MAX) {
        return diag_error(diag, ERR_LIMIT, "a piece of an archive has at most %d bytes",
                          BLOB_PIECE_MAX);
    }
    if (offset > part->have || n > part->total || offset > part->total - n) {
        return diag_error(diag, ERR_RANGE, "a piece of an archive does not belong where it says");
    }
    uint64_t known = part->have - offset;
    return known >= n ? 0 : append(part, (const uint8_t *)bytes + known, n - (size_t)known, diag);
}

void blob_put_free(struct blob_put **put)
{
    if (*put == NULL) {
        return;
    }
    assert((*put)->magic == PUT_MAGIC);
    struct blob_part *part = (*put)->part;
    if (part != NULL) {
        struct blob_put **at = &part->puts;
        while (*at != *put) {
            at = &(*at)->next;
        }
        *at = (*put)->next;
        if (part->puts == NULL && !part->ending) {
            free_part(part);
        }
    }
    (*put)->magic = 0;
    free(*put);
    *put = NULL;
}

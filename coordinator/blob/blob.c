/* blob.c: the folder of archives: where each stands, reading, and how a file becomes an archive.
 * Putting is in put.c, git in git.c. */
#include "coordinator/blob/blob.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "coordinator/blob/blob_priv.h"
#include "coordinator/store/blobs.h"
#include "coordinator/store/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MAX_DEFAULT (UINT64_C(16) << 30)
#define DISK_KEEP_DEFAULT (UINT64_C(64) << 20)

static int make_folder(const char *parent, const char *name, char path[FILE_PATH_MAX],
                       struct diag *diag)
{
    int rc = file_path(path, FILE_PATH_MAX, parent, name);
    if (rc == 0) {
        rc = file_mkdirs(path, 0700);
    }
    return rc < 0 ? diag_error(diag, rc, "the folder %s in %s cannot be made: %s", name, parent,
                               err_text(rc))
                  : 0;
}

static int remove_left(const char *name, void *arg)
{
    char path[FILE_PATH_MAX];
    const struct blob *blob = arg;
    int rc = file_path(path, sizeof(path), blob->work, name);
    return rc < 0 ? rc : file_remove_tree(path);
}

int blob_open(struct loop *loop, struct store *store, const char *dir,
              const struct blob_limits *limits, struct blob **out, struct diag *diag)
{
    *out = NULL;
    struct blob *blob = mem_xzalloc(sizeof(*blob));
    blob->magic = BLOB_MAGIC;
    blob->loop = loop;
    blob->store = store;
    if (limits != NULL) {
        blob->limits = *limits;
    }
    if (blob->limits.size_max == 0) {
        blob->limits.size_max = SIZE_MAX_DEFAULT;
    }
    if (blob->limits.disk_keep == 0) {
        blob->limits.disk_keep = DISK_KEEP_DEFAULT;
    }
    int rc = make_folder(dir, "blobs", blob->blobs, diag);
    if (rc == 0) {
        rc = make_folder(blob->blobs, "part", blob->parts, diag);
    }
    if (rc == 0) {
        rc = make_folder(blob->blobs, "work", blob->work, diag);
    }
    if (rc == 0) {
        rc = make_folder(dir, "mirrors", blob->mirrors, diag);
    }
    if (rc == 0) {
        rc = file_list(blob->work, remove_left, blob);
        rc =
            rc < 0 ? diag_error(diag, rc, "%s cannot be emptied: %s", blob->work, err_text(rc)) : 0;
    }
    if (rc < 0) {
        free(blob);
        return rc;
    }
    *out = blob;
    return 0;
}

void blob_close(struct blob **blob)
{
    if (*blob == NULL) {
        return;
    }
    assert((*blob)->magic == BLOB_MAGIC && (*blob)->open_parts == NULL);
    blob_end_jobs(*blob);
    (*blob)->magic = 0;
    free(*blob);
    *blob = NULL;
}

/* --- places --- */

int blob_place(const struct blob *blob, const uint8_t hash[MODEL_HASH], char path[FILE_PATH_MAX])
{
    char name[2 * MODEL_HASH + 2];
    str_hex(name + 1, hash, MODEL_HASH);
    name[0] = name[1];
    name[1] = name[2];
    name[2] = '/';
    return file_path(path, FILE_PATH_MAX, blob->blobs, name);
}

int blob_take(struct blob *blob, const char *path, const uint8_t hash[MODEL_HASH], uint64_t size,
              struct diag *diag)
{
    char place[FILE_PATH_MAX];
    int64_t now = clock_wall_ns();
    struct store_blob row = {.size = size, .made_wall_ns = now, .used_wall_ns = now};
    memcpy(row.hash, hash, MODEL_HASH);
    int rc = blob_place(blob, hash, place);
    if (rc == 0) {
        char *slash = strrchr(place, '/');
        *slash = '\0';
        rc = file_mkdirs(place, 0700);
        *slash = '/';
    }
    if (rc == 0) {
        rc = file_rename(path, place);
    }
    if (rc < 0) {
        return diag_error(diag, rc, "the archive cannot be kept in %s: %s", blob->blobs,
                          err_text(rc));
    }
    rc = store_blob_insert(blob->store, &row);
    return rc < 0
               ? diag_error(diag, rc, "the archive cannot be noted: %s", store_error(blob->store))
               : 0;
}

int blob_check_room(const struct blob *blob, uint64_t more, struct diag *diag)
{
    char need[32];
    char left[32];
    char keep[32];
    uint64_t bytes = 0;
    int rc = file_disk_free(blob->blobs, &bytes);
    if (rc < 0) {
        return diag_error(diag, rc, "%s: the free space cannot be seen: %s", blob->blobs,
                          err_text(rc));
    }
    if (bytes < blob->limits.disk_keep || bytes - blob->limits.disk_keep < more) {
        return diag_error(diag, ERR_FULL,
                          "%s: no room for an archive of %s: %s are free, and %s stay so",
                          blob->blobs, num_size_text(need, sizeof(need), more),
                          num_size_text(left, sizeof(left), bytes),
                          num_size_text(keep, sizeof(keep), blob->limits.disk_keep));
    }
    return 0;
}

/* --- reading --- */

int blob_size(struct blob *blob, const uint8_t hash[MODEL_HASH], uint64_t *size)
{
    struct store_blob row;
    int rc = store_blob_get(blob->store, hash, &row);
    *size = rc == 0 ? row.size : 0;
    return rc;
}

int blob_read(struct blob *blob, const uint8_t hash[MODEL_HASH], uint64_t offset, void *dst,
              size_t n, size_t *got)
{
    char path[FILE_PATH_MAX];
    struct file *file = NULL;
    uint64_t size = 0;
    *got = 0;
    int rc = blob_size(blob, hash, &size);
    if (rc == 0 && offset > size) {
        rc = -ERR_RANGE;
    }
    if (rc == 0) {
        rc = blob_place(blob, hash, path);
    }
    if (rc < 0) {
        return rc;
    }
    size_t want = size - offset < n ? (size_t)(size - offset) : n;
    rc = file_open(path, FILE_READ, 0, &file);
    if (rc == 0) {
        rc = file_read_at(file, offset, dst, want, got);
    } else if (rc == -ERR_NOTFOUND) {
        rc = -ERR_CORRUPT; /* its row says that it is here */
    }
    if (rc == 0 && *got < want) {
        rc = -ERR_CORRUPT;
    }
    file_close(&file);
    return rc;
}

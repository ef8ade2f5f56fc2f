/* blobs.c: rows of source archives, and which was made of which commit. */
#include "coordinator/store/blobs.h"

#include "common/err.h"
#include "coordinator/store/db.h"
#include "coordinator/store/store.h"

static void read_blob(struct stmt *q, void *out)
{
    struct store_blob *b = out;
    stmt_fixed_bytes(q, b->hash, sizeof(b->hash));
    b->size = (uint64_t)stmt_i64(q);
    b->made_wall_ns = stmt_i64(q);
    b->used_wall_ns = stmt_i64(q);
}

int store_blob_insert(struct store *store, const struct store_blob *blob)
{
    struct store_blob there;
    int64_t changes = 0;
    struct stmt *q = stmt_open(store, ST_BLOB_INSERT);
    stmt_put_bytes(q, blob->hash, sizeof(blob->hash));
    stmt_put_i64(q, (int64_t)blob->size);
    stmt_put_i64(q, blob->made_wall_ns);
    stmt_put_i64(q, blob->used_wall_ns);
    int rc = stmt_run(q, &changes);
    if (rc < 0 || changes != 0) {
        return rc;
    }
    rc = store_blob_get(store, blob->hash, &there);
    if (rc == 0 && there.size != blob->size) {
        rc = db_fail(store, -ERR_CONFLICT, "the archive is there with another size");
    }
    return rc;
}

int store_blob_get(struct store *store, const uint8_t hash[MODEL_HASH], struct store_blob *out)
{
    struct stmt *q = stmt_open(store, ST_BLOB_GET);
    stmt_put_bytes(q, hash, MODEL_HASH);
    return stmt_get(q, NULL, read_blob, out);
}

struct visit {
    struct store_blob blob;
    store_blob_f *f;
    void *arg;
};

static int visit(void *arg)
{
    struct visit *v = arg;
    return v->f(&v->blob, v->arg);
}

int store_blobs_each(struct store *store, store_blob_f *f, void *arg)
{
    struct visit v = {.f = f, .arg = arg};
    return stmt_each(stmt_open(store, ST_BLOBS_EACH), read_blob, &v.blob, visit, &v);
}

int store_blob_touch(struct store *store, const uint8_t hash[MODEL_HASH], int64_t wall_ns)
{
    struct stmt *q = stmt_open(store, ST_BLOB_TOUCH);
    stmt_put_i64(q, wall_ns);
    stmt_put_bytes(q, hash, MODEL_HASH);
    return stmt_run_one(q);
}

int store_blob_remove(struct store *store, const uint8_t hash[MODEL_HASH])
{
    struct stmt *q = stmt_open(store, ST_BLOB_REMOVE);
    stmt_put_bytes(q, hash, MODEL_HASH);
    return stmt_run_one(q);
}

int store_archive_put(struct store *store, const char *commit, const struct store_archive *archive)
{
    struct stmt *q = stmt_open(store, ST_ARCHIVE_PUT);
    stmt_put_text(q, commit);
    stmt_put_bytes(q, archive->hash, sizeof(archive->hash));
    stmt_put_i64(q, archive->exact);
    return stmt_run(q, NULL);
}

static void read_archive(struct stmt *q, void *out)
{
    struct store_archive *a = out;
    stmt_fixed_bytes(q, a->hash, sizeof(a->hash));
    a->size = (uint64_t)stmt_i64(q);
    a->exact = stmt_i64(q) != 0;
}

int store_archive_get(struct store *store, const char *commit, struct store_archive *out)
{
    struct stmt *q = stmt_open(store, ST_ARCHIVE_GET);
    stmt_put_text(q, commit);
    return stmt_get(q, NULL, read_archive, out);
}

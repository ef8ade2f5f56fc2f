/* put_test.c: archives that come in pieces, and are read. */
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "coordinator/blob/blob.h"
#include "coordinator/store/store.h"
#include "proto/digest.h"
#include "tests/unit/coordinator/store/store_help.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rig {
    struct box box;
    struct loop *loop;
    struct blob *blob;
};

static void open_blob(struct rig *r, const struct blob_limits *limits)
{
    cr_assert_eq(blob_open(r->loop, r->box.store, r->box.dir, limits, &r->blob, r->box.diag), 0,
                 "%s", diag_first(r->box.diag));
}

static void rig_open(struct rig *r)
{
    box_open(&r->box);
    r->loop = loop_new();
    cr_assert(r->loop != NULL);
    open_blob(r, NULL);
}

static void rig_close(struct rig *r)
{
    blob_close(&r->blob);
    loop_free(&r->loop);
    box_close(&r->box);
}

/* Bytes that are told apart by their place, and their hash. */
struct bytes {
    uint8_t *data;
    size_t n;
    uint8_t hash[DIGEST_MAX];
};

static struct bytes bytes_new(size_t n, unsigned seed)
{
    struct bytes b = {.data = malloc(n), .n = n};
    cr_assert(b.data != NULL);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1103515245 + 12345;
        b.data[i] = (uint8_t)(seed >> 16);
    }
    digest_sha256(b.data, n, b.hash);
    return b;
}

struct told {
    int count;
    int code;
    char text[256];
    struct blob_put **other; /* freed by the callback */
};

static void on_put(struct blob_put *put, int code, const char *text, void *arg)
{
    struct told *t = arg;
    (void)put;
    t->count++;
    t->code = code;
    snprintf(t->text, sizeof(t->text), "%s", text);
    if (t->other != NULL) {
        blob_put_free(t->other);
    }
}

static struct blob_put *begin(struct rig *r, const struct bytes *b, struct told *t)
{
    struct blob_put *put = NULL;
    memset(t, 0, sizeof(*t));
    diag_clear(r->box.diag);
    cr_assert_eq(blob_put_begin(r->blob, b->hash, b->n, on_put, t, &put, r->box.diag), 0, "%s",
                 diag_first(r->box.diag));
    return put;
}

/* Puts pieces of `piece` bytes from what is here up to `end`. */
static void put_to(struct rig *r, struct blob_put *put, const struct bytes *b, size_t end,
                   size_t piece)
{
    while (blob_put_have(put) < end) {
        size_t at = (size_t)blob_put_have(put);
        size_t n = end - at < piece ? end - at : piece;
        cr_assert_eq(blob_put_data(put, at, b->data + at, n, r->box.diag), 0, "%s",
                     diag_first(r->box.diag));
    }
}

static void wait_for(struct rig *r, const struct told *t)
{
    while (t->count == 0) {
        loop_turn(r->loop, -1);
    }
}

static void expect_whole(struct rig *r, const struct bytes *b)
{
    uint64_t size = 0;
    uint8_t *read = malloc(b->n);
    size_t got = 0;
    cr_assert_eq(blob_size(r->blob, b->hash, &size), 0);
    cr_expect_eq(size, b->n);
    cr_assert_eq(blob_read(r->blob, b->hash, 0, read, b->n, &got), 0);
    cr_expect_eq(got, b->n);
    cr_expect(memcmp(read, b->data, b->n) == 0);
    free(read);
}

static int count_files(const char *name, void *arg)
{
    int *n = arg;
    (void)name;
    ++*n;
    return 0;
}

static int files_in(struct rig *r, const char *name)
{
    char path[256];
    int n = 0;
    snprintf(path, sizeof(path), "%s/%s", r->box.dir, name);
    cr_assert_eq(file_list(path, count_files, &n), 0);
    return n;
}

Test(put, an_archive_in_pieces)
{
    struct rig r;
    struct told t;
    uint64_t size = 1;
    rig_open(&r);
    struct bytes b = bytes_new(1000000, 1);
    cr_expect_eq(blob_size(r.blob, b.hash, &size), -ERR_NOTFOUND);
    cr_expect_eq(size, 0);
    struct blob_put *put = begin(&r, &b, &t);
    cr_assert(put != NULL);
    cr_expect_eq(blob_put_have(put), 0);
    put_to(&r, put, &b, b.n, BLOB_PIECE_MAX);
    cr_expect_eq(t.count, 0, "told from a later turn");
    wait_for(&r, &t);
    cr_expect_eq(t.count, 1);
    cr_expect_eq(t.code, 0, "%s", t.text);
    cr_expect(store_dirty(r.box.store), "its row is to be committed");
    cr_expect_eq(blob_put_have(put), b.n);
    cr_expect_eq(blob_put_data(put, 0, b.data, 1, r.box.diag), -ERR_STATE);
    blob_put_free(&put);
    cr_expect_null(put);
    box_commit(&r.box);
    expect_whole(&r, &b);
    cr_expect_eq(files_in(&r, "blobs/part"), 0);
    /* Once here it is not wanted again. */
    cr_expect_null(begin(&r, &b, &t));
    free(b.data);
    rig_close(&r);
}

Test(put, goes_on_where_it_was_left)
{
    struct rig r;
    struct told t;
    rig_open(&r);
    struct bytes b = bytes_new(20000000, 2);
    struct blob_put *put = begin(&r, &b, &t);
    put_to(&r, put, &b, 18000001, 100000);
    blob_put_free(&put);
    /* The operator's command comes back. */
    put = begin(&r, &b, &t);
    cr_expect_eq(blob_put_have(put), 18000001);
    blob_put_free(&put);
    /* So does the coordinator, after its end. */
    blob_close(&r.blob);
    open_blob(&r, NULL);
    put = begin(&r, &b, &t);
    cr_expect_eq(blob_put_have(put), 18000001);
    put_to(&r, put, &b, b.n, BLOB_PIECE_MAX);
    wait_for(&r, &t);
    cr_expect_eq(t.code, 0, "%s", t.text);
    blob_put_free(&put);
    expect_whole(&r, &b);
    free(b.data);
    rig_close(&r);
}

Test(put, what_is_complete_is_checked_when_somebody_asks)
{
    struct rig r;
    struct told t;
    rig_open(&r);
    struct bytes b = bytes_new(300000, 3);
    struct blob_put *put = begin(&r, &b, &t);
    put_to(&r, put, &b, b.n, BLOB_PIECE_MAX);
    blob_put_free(&put); /* before the check */
    for (int i = 0; i < 5; i++) {
        loop_turn(r.loop, 1000000);
    }
    cr_expect_eq(t.count, 0);
    put = begin(&r, &b, &t);
    cr_expect_eq(blob_put_have(put), b.n);
    wait_for(&r, &t);
    cr_expect_eq(t.code, 0, "%s", t.text);
    blob_put_free(&put);
    free(b.data);
    rig_close(&r);
}

Test(put, other_bytes_than_announced_are_refused)
{
    struct rig r;
    struct told t;
    uint64_t size = 0;
    rig_open(&r);
    struct bytes b = bytes_new(300000, 4);
    b.data[299999] ^= 1;
    struct blob_put *put = begin(&r, &b, &t);
    put_to(&r, put, &b, b.n, BLOB_PIECE_MAX);
    wait_for(&r, &t);
    cr_expect_eq(t.code, -ERR_CHECKSUM);
    cr_expect(strstr(t.text, "its hash is another") != NULL, "%s", t.text);
    cr_expect(!store_dirty(r.box.store));
    cr_expect_eq(blob_size(r.blob, b.hash, &size), -ERR_NOTFOUND);
    cr_expect_eq(files_in(&r, "blobs/part"), 0, "the wrong bytes are gone");
    blob_put_free(&put);
    /* The right ones are welcome. */
    b.data[299999] ^= 1;
    put = begin(&r, &b, &t);
    cr_expect_eq(blob_put_have(put), 0);
    put_to(&r, put, &b, b.n, BLOB_PIECE_MAX);
    wait_for(&r, &t);
    cr_expect_eq(t.code, 0);
    blob_put_free(&put);
    free(b.data);
    rig_close(&r);
}

Test(put, two_who_put_the_same_share_it)
{
    struct rig r;
    struct told t[2];
    rig_open(&r);
    struct bytes b = bytes_new(600000, 5);
    struct blob_put *one = begin(&r, &b, &t[0]);
    put_to(&r, one, &b, 200000, 100000);
    struct blob_put *two = begin(&r, &b, &t[1]);
    cr_expect_eq(blob_put_have(two), 200000);
    put_to(&r, two, &b, 400000, 100000);
    cr_expect_eq(blob_put_have(one), 400000);
    /* A piece that is here, in part or as a whole, is skipped. */
    cr_expect_eq(blob_put_data(one, 200000, b.data + 200000, 100000, r.box.diag), 0);
    cr_expect_eq(blob_put_data(one, 350000, b.data + 350000, 100000, r.box.diag), 0);
    cr_expect_eq(blob_put_have(two), 450000);
    put_to(&r, two, &b, b.n, BLOB_PIECE_MAX);
    wait_for(&r, &t[0]);
    cr_expect_eq(t[0].count, 1);
    cr_expect_eq(t[1].count, 1);
    cr_expect(t[0].code == 0 && t[1].code == 0);
    blob_put_free(&one);
    blob_put_free(&two);
    expect_whole(&r, &b);
    free(b.data);
    rig_close(&r);
}

Test(put, one_may_free_another_when_it_is_told)
{
    struct rig r;
    struct told t[3];
    rig_open(&r);
    struct bytes b = bytes_new(1000, 6);
    struct blob_put *put[3];
    for (int i = 0; i < 3; i++) {
        put[i] = begin(&r, &b, &t[i]);
    }
    for (int i = 0; i < 3; i++) {
        t[i].other = &put[(i + 1) % 3];
    }
    cr_assert_eq(blob_put_data(put[0], 0, b.data, b.n, r.box.diag), 0);
    do {
        loop_turn(r.loop, -1);
    } while (t[0].count + t[1].count + t[2].count == 0);
    int told = t[0].count + t[1].count + t[2].count;
    cr_expect(told >= 1 && told <= 3);
    for (int i = 0; i < 3; i++) {
        blob_put_free(&put[i]);
    }
    free(b.data);
    rig_close(&r);
}

Test(put, pieces_that_cannot_be)
{
    struct rig r;
    struct told t;
    rig_open(&r);
    struct bytes b = bytes_new(1000, 7);
    struct blob_put *put = begin(&r, &b, &t);
    uint8_t *big = calloc(1, BLOB_PIECE_MAX + 1);
    cr_expect_eq(blob_put_data(put, 1, b.data, 10, r.box.diag), -ERR_RANGE, "a gap");
    cr_expect_eq(blob_put_data(put, 0, big, 1001, r.box.diag), -ERR_RANGE, "beyond the end");
    cr_expect_eq(blob_put_data(put, UINT64_MAX, b.data, 10, r.box.diag), -ERR_RANGE);
    cr_expect_eq(blob_put_data(put, 0, big, BLOB_PIECE_MAX + 1, r.box.diag), -ERR_LIMIT);
    cr_expect_eq(blob_put_data(put, 0, b.data, 0, r.box.diag), 0);
    cr_expect_eq(blob_put_have(put), 0);
    cr_assert_eq(blob_put_data(put, 0, b.data, 500, r.box.diag), 0);
    cr_expect_eq(blob_put_data(put, 400, b.data, 601, r.box.diag), -ERR_RANGE);
    cr_expect_eq(blob_put_have(put), 500);
    blob_put_free(&put);
    free(big);
    free(b.data);
    rig_close(&r);
}

static void expect_not_begun(struct rig *r, const struct bytes *b, uint64_t total, int code,
                             const char *part)
{
    struct blob_put *put = NULL;
    struct told t = {0};
    diag_clear(r->box.diag);
    cr_expect_eq(blob_put_begin(r->blob, b->hash, total, on_put, &t, &put, r->box.diag), -code);
    cr_expect_null(put);
    cr_expect(strstr(diag_first(r->box.diag), part) != NULL, "said: %s", diag_first(r->box.diag));
}

Test(put, archives_that_cannot_be)
{
    struct rig r;
    struct told t;
    rig_open(&r);
    struct bytes b = bytes_new(1000, 8);
    expect_not_begun(&r, &b, 0, ERR_LIMIT, "an archive has from 1 byte");
    blob_close(&r.blob);
    open_blob(&r, &(struct blob_limits){.size_max = 2000});
    expect_not_begun(&r, &b, 2001, ERR_LIMIT, "to 2 KB");
    struct blob_put *put = begin(&r, &b, &t);
    expect_not_begun(&r, &b, 999, ERR_CONFLICT, "with another size");
    put_to(&r, put, &b, b.n, 100);
    wait_for(&r, &t);
    blob_put_free(&put);
    expect_not_begun(&r, &b, 999, ERR_CONFLICT, "it has another size");
    blob_close(&r.blob);
    open_blob(&r, &(struct blob_limits){.disk_keep = UINT64_MAX / 2});
    struct bytes c = bytes_new(1000, 9);
    expect_not_begun(&r, &c, c.n, ERR_FULL, "no room for an archive of 1 KB");
    cr_expect_null(begin(&r, &b, &t), "what is here needs no room");
    free(b.data);
    free(c.data);
    rig_close(&r);
}

Test(put, a_row_that_was_not_committed_is_written_again)
{
    struct rig r;
    struct told t;
    uint64_t size = 0;
    rig_open(&r);
    struct bytes b = bytes_new(1000, 10);
    struct blob_put *put = begin(&r, &b, &t);
    put_to(&r, put, &b, b.n, 1000);
    wait_for(&r, &t);
    blob_put_free(&put);
    store_rollback(r.box.store);
    cr_expect_eq(blob_size(r.blob, b.hash, &size), -ERR_NOTFOUND);
    cr_expect_null(begin(&r, &b, &t), "the file is here");
    box_commit(&r.box);
    expect_whole(&r, &b);
    free(b.data);
    rig_close(&r);
}

Test(put, a_database_that_cannot_be_written_is_told)
{
    struct rig r;
    struct told t;
    struct store *other = NULL;
    rig_open(&r);
    struct bytes b = bytes_new(1000, 11);
    struct blob_put *put = begin(&r, &b, &t);
    put_to(&r, put, &b, b.n, 1000);
    cr_assert_eq(store_open(r.box.path, NULL, 0, &other, r.box.diag), 0);
    cr_assert_eq(store_meta_set(other, "a", "b"), 0);
    wait_for(&r, &t);
    cr_expect_eq(t.code, -ERR_BUSY);
    cr_expect(strstr(t.text, "cannot be noted") != NULL, "%s", t.text);
    store_close(&other);
    blob_put_free(&put);
    free(b.data);
    rig_close(&r);
}

Test(read, pieces_and_their_ends)
{
    struct rig r;
    struct told t;
    uint8_t dst[100];
    size_t got = 1;
    rig_open(&r);
    struct bytes b = bytes_new(1000, 12);
    struct blob_put *put = begin(&r, &b, &t);
    put_to(&r, put, &b, b.n, 1000);
    wait_for(&r, &t);
    blob_put_free(&put);
    cr_expect_eq(blob_read(r.blob, b.hash, 950, dst, 100, &got), 0);
    cr_expect_eq(got, 50);
    cr_expect(memcmp(dst, b.data + 950, 50) == 0);
    cr_expect_eq(blob_read(r.blob, b.hash, 1000, dst, 100, &got), 0);
    cr_expect_eq(got, 0);
    cr_expect_eq(blob_read(r.blob, b.hash, 1001, dst, 100, &got), -ERR_RANGE);
    cr_expect_eq(blob_read(r.blob, b.hash, UINT64_MAX, dst, 100, &got), -ERR_RANGE);
    struct bytes none = bytes_new(10, 13);
    cr_expect_eq(blob_read(r.blob, none.hash, 0, dst, 100, &got), -ERR_NOTFOUND);
    /* A file that was cut or is gone is no end of the archive. */
    char path[256];
    char hex[65];
    for (int i = 0; i < 32; i++) {
        snprintf(hex + 2 * i, 3, "%02x", b.hash[i]);
    }
    snprintf(path, sizeof(path), "%s/blobs/%.2s/%s", r.box.dir, hex, hex + 2);
    cr_assert(file_exists(path), "%s", path);
    cr_assert_eq(file_write_atomic(path, b.data, 500, 0600), 0);
    cr_expect_eq(blob_read(r.blob, b.hash, 450, dst, 100, &got), -ERR_CORRUPT);
    cr_expect_eq(blob_read(r.blob, b.hash, 0, dst, 100, &got), 0);
    cr_assert_eq(file_remove(path), 0);
    cr_expect_eq(blob_read(r.blob, b.hash, 0, dst, 100, &got), -ERR_CORRUPT);
    /* It can be put again. */
    put = begin(&r, &b, &t);
    cr_assert(put != NULL);
    put_to(&r, put, &b, b.n, 1000);
    wait_for(&r, &t);
    cr_expect_eq(t.code, 0, "%s", t.text);
    blob_put_free(&put);
    expect_whole(&r, &b);
    free(b.data);
    free(none.data);
    rig_close(&r);
}

Test(open, removes_what_was_half_made)
{
    struct rig r;
    char path[256];
    rig_open(&r);
    blob_close(&r.blob);
    snprintf(path, sizeof(path), "%s/blobs/work/source-1/objects", r.box.dir);
    cr_assert_eq(file_mkdirs(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/blobs/work/x.tar", r.box.dir);
    cr_assert_eq(file_write_atomic(path, "x", 1, 0600), 0);
    open_blob(&r, NULL);
    cr_expect_eq(files_in(&r, "blobs/work"), 0);
    rig_close(&r);
}

/* blob_test.c: archives over the wire: put by an operator, pulled by a worker. */
#include "coordinator/blob/blob.h"
#include "coordinator/coord.h"
#include "proto/close.h"
#include "proto/digest.h"
#include "tests/unit/whole/house.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE = 700000, PIECE = 262144 };

struct cast {
    struct house h;
    struct ident p6, ann;
    struct guest *worker, *admin;
    uint8_t *bytes;
    uint8_t hash[32];
};

static void begin(struct cast *c)
{
    house_init(&c->h);
    house_start(&c->h);
    house_admit(&c->h, ROLE_WORKER, "p6", &c->p6);
    house_admit(&c->h, ROLE_SUBMITTER, "ann", &c->ann);
    c->worker = house_welcome(&c->h, &c->p6);
    c->admin = house_welcome(&c->h, &c->ann);
    c->bytes = malloc(SIZE);
    cr_assert_not_null(c->bytes);
    for (size_t i = 0; i < SIZE; i++) {
        c->bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    }
    digest_sha256(c->bytes, SIZE, c->hash);
}

static void finish(struct cast *c)
{
    house_fini(&c->h);
    ident_free(&c->p6);
    ident_free(&c->ann);
    free(c->bytes);
}

static uint32_t want(struct cast *c, size_t hash_len, uint64_t total)
{
    struct msg m = {.type = MSG_BLOB_WANT};
    m.u.blob_want.call = guest_call(c->admin);
    m.u.blob_want.hash = (struct msg_bytes){.data = c->hash, .len = hash_len};
    m.u.blob_want.total = total;
    cr_assert_eq(guest_send(c->admin, &m), 0);
    return m.u.blob_want.call;
}

static void piece(struct cast *c, uint64_t offset, size_t n)
{
    struct msg m = {.type = MSG_BLOB_DATA};
    m.u.blob_data.hash = (struct msg_bytes){.data = c->hash, .len = 32};
    m.u.blob_data.offset = offset;
    m.u.blob_data.total = SIZE;
    m.u.blob_data.bytes = (struct msg_bytes){.data = c->bytes + offset, .len = n};
    cr_assert_eq(guest_send(c->admin, &m), 0);
}

/* The n-th BLOB_NEXT; waits for it. */
static const struct msg_blob_next *next(struct cast *c, size_t n)
{
    HOUSE_WAIT(&c->h, guest_count(c->admin, MSG_BLOB_NEXT) > n ||
                          guest_count(c->admin, MSG_REPLY) > 0 || c->admin->closed);
    cr_assert(guest_count(c->admin, MSG_BLOB_NEXT) > n);
    return &guest_got(c->admin, MSG_BLOB_NEXT, n)->u.blob_next;
}

/* The whole, from where the coordinator says. */
static void put(struct cast *c)
{
    size_t n = 0;
    uint32_t call = want(c, 32, SIZE);
    while (!next(c, n)->done) {
        uint64_t have = next(c, n)->have;
        cr_assert_eq(next(c, n)->call, call);
        cr_assert_leq(have, SIZE);
        if (have < SIZE) {
            piece(c, have, SIZE - have < PIECE ? (size_t)(SIZE - have) : PIECE);
        }
        n++;
    }
    cr_expect_eq(next(c, n)->have, SIZE);
}

static const struct msg *get(struct cast *c, const uint8_t *hash, uint64_t offset, uint32_t length)
{
    struct msg m = {.type = MSG_BLOB_GET};
    m.u.blob_get.hash = (struct msg_bytes){.data = hash, .len = 32};
    m.u.blob_get.offset = offset;
    m.u.blob_get.length = length;
    guest_forget(c->worker);
    cr_assert_eq(guest_send(c->worker, &m), 0);
    HOUSE_WAIT(&c->h, c->worker->count > 0 || c->worker->closed);
    cr_assert(!c->worker->closed, "%s", c->worker->text);
    return c->worker->got[0];
}

Test(net_blob, is_put_in_pieces_and_pulled_in_pieces)
{
    struct cast c;
    begin(&c);
    put(&c);
    guest_forget(c.admin);
    want(&c, 32, SIZE);
    cr_expect(next(&c, 0)->done, "it is here: nothing is sent again");
    uint64_t have = 0;
    while (have < SIZE) {
        const struct msg *m = get(&c, c.hash, have, UINT32_MAX);
        cr_assert_eq(m->type, MSG_BLOB_DATA);
        cr_assert_eq(m->u.blob_data.offset, have);
        cr_expect_eq(m->u.blob_data.total, SIZE);
        cr_assert_gt(m->u.blob_data.bytes.len, 0);
        cr_assert_leq(m->u.blob_data.bytes.len, PIECE, "however much is asked for");
        cr_assert_eq(memcmp(m->u.blob_data.bytes.data, c.bytes + have, m->u.blob_data.bytes.len),
                     0);
        have += m->u.blob_data.bytes.len;
    }
    finish(&c);
}

Test(net_blob, an_unknown_archive_and_a_place_beyond_its_end_are_none)
{
    static const uint8_t unknown[32] = {7};
    struct cast c;
    begin(&c);
    const struct msg *m = get(&c, unknown, 0, 100);
    cr_expect_eq(m->type, MSG_BLOB_NONE);
    cr_expect_str_eq(m->u.blob_none.text, "not found");
    put(&c);
    m = get(&c, c.hash, SIZE + 1, 100);
    cr_expect_eq(m->type, MSG_BLOB_NONE);
    finish(&c);
}

Test(net_blob, a_put_goes_on_where_the_last_one_ended)
{
    struct cast c;
    begin(&c);
    want(&c, 32, SIZE);
    cr_expect_eq(next(&c, 0)->have, 0);
    piece(&c, 0, PIECE);
    cr_expect_eq(next(&c, 1)->have, PIECE);
    guest_leave(c.admin);
    house_stop(&c.h);
    house_start(&c.h);
    c.admin = house_welcome(&c.h, &c.ann);
    want(&c, 32, SIZE);
    cr_expect_eq(next(&c, 0)->have, PIECE);
    cr_expect(!next(&c, 0)->done);
    finish(&c);
}

Test(net_blob, bytes_of_another_hash_are_refused)
{
    struct cast c;
    struct answer a;
    begin(&c);
    c.hash[0] ^= 1;
    uint32_t call = want(&c, 32, SIZE);
    cr_expect_eq(next(&c, 0)->have, 0);
    for (size_t at = 0; at < SIZE; at += PIECE) {
        piece(&c, at, SIZE - at < PIECE ? SIZE - at : PIECE);
    }
    HOUSE_WAIT(&c.h, guest_count(c.admin, MSG_REPLY) > 0);
    cr_assert(guest_answered(c.admin, call, &a));
    cr_expect_eq(a.exit, 3);
    cr_expect_gt(a.talk.len, 0);
    answer_free(&a);
    cr_expect_eq(get(&c, c.hash, 0, 100)->type, MSG_BLOB_NONE);
    finish(&c);
}

Test(net_blob, a_hash_that_is_none_and_a_size_beyond_the_limit_are_refused)
{
    struct cast c;
    struct answer a;
    begin(&c);
    uint32_t call = want(&c, 31, SIZE);
    HOUSE_WAIT(&c.h, guest_count(c.admin, MSG_REPLY) > 0);
    cr_assert(guest_answered(c.admin, call, &a));
    cr_expect_eq(a.exit, 64);
    EXPECT_HAS(buf_str(&a.talk), "the hash of an archive has 32 bytes");
    answer_free(&a);
    guest_forget(c.admin);
    call = want(&c, 32, (uint64_t)c.h.conf.archive_max + 1);
    HOUSE_WAIT(&c.h, guest_count(c.admin, MSG_REPLY) > 0);
    cr_assert(guest_answered(c.admin, call, &a));
    cr_expect_eq(a.exit, 64, "%s", buf_str(&a.talk));
    answer_free(&a);
    finish(&c);
}

Test(net_blob, what_is_put_on_a_full_disk_is_not_done)
{
    struct cast c;
    struct answer a;
    begin(&c);
    uint32_t call = want(&c, 32, SIZE);
    cr_expect_eq(next(&c, 0)->have, 0);
    house_fill_disk(true);
    for (size_t at = 0; at < SIZE; at += PIECE) {
        piece(&c, at, SIZE - at < PIECE ? SIZE - at : PIECE);
    }
    HOUSE_WAIT(&c.h, guest_count(c.admin, MSG_REPLY) > 0);
    cr_assert(guest_answered(c.admin, call, &a));
    cr_expect_eq(a.exit, 3);
    EXPECT_HAS(buf_str(&a.talk), "make room there");
    answer_free(&a);
    for (size_t n = 0; n < guest_count(c.admin, MSG_BLOB_NEXT); n++) {
        cr_expect(!next(&c, n)->done);
    }
    house_fill_disk(false);
    finish(&c);
}

/* The file is there, and its row is written when it is asked for: that must be committed, too. */
Test(net_blob, what_is_here_without_a_row_is_done_when_its_row_is_committed)
{
    struct cast c;
    struct answer a;
    begin(&c);
    want(&c, 32, SIZE);
    cr_expect_eq(next(&c, 0)->have, 0);
    house_fill_disk(true);
    for (size_t at = 0; at < SIZE; at += PIECE) {
        piece(&c, at, SIZE - at < PIECE ? SIZE - at : PIECE);
    }
    HOUSE_WAIT(&c.h, guest_count(c.admin, MSG_REPLY) > 0);
    house_fill_disk(false);
    HOUSE_WAIT(&c.h, !coord_is_stuck(c.h.coord));
    house_fill_disk(true);
    guest_forget(c.admin);
    uint32_t call = want(&c, 32, SIZE);
    HOUSE_WAIT(&c.h,
               guest_count(c.admin, MSG_REPLY) > 0 || guest_count(c.admin, MSG_BLOB_NEXT) > 0);
    house_idle(&c.h);
    cr_expect_eq(guest_count(c.admin, MSG_BLOB_NEXT), 0, "nothing is done that is not committed");
    cr_assert(guest_answered(c.admin, call, &a));
    cr_expect_eq(a.exit, 3);
    answer_free(&a);
    house_fill_disk(false);
    HOUSE_WAIT(&c.h, !coord_is_stuck(c.h.coord));
    guest_forget(c.admin);
    want(&c, 32, SIZE);
    cr_expect(next(&c, 0)->done);
    finish(&c);
}

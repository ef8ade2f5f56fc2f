/* trust_test.c: rows of certificates, tokens and archives. */
#include "coordinator/store/trust.h"

#include "common/err.h"
#include "coordinator/store/blobs.h"
#include "coordinator/store/store.h"
#include "coordinator/store/sweeps.h"
#include "tests/unit/coordinator/store/store_help.h"

#include <criterion/criterion.h>

#include <string.h>

static void put_cert(struct box *box, const char *serial, enum role role, const char *name)
{
    struct model_cert cert = {.serial = serial,
                              .role = role,
                              .name = name,
                              .key_hash = "kk",
                              .end_s = 99,
                              .issued_wall_ns = 7};
    cr_assert_eq(store_cert_insert(box->store, &cert), 0, "%s", store_error(box->store));
}

static void expect_revoked(struct box *box, const char *serial, bool want)
{
    bool revoked = !want;
    cr_assert_eq(store_cert_is_revoked(box->store, serial, &revoked), 0);
    cr_expect_eq(revoked, want, "%s", serial);
}

static int count_certs(const struct model_cert *cert, void *arg)
{
    char *all = arg;
    say(all, "%s", cert->serial);
    return 0;
}

Test(certs, come_back)
{
    struct box box;
    struct model_cert out;
    box_open(&box);
    put_cert(&box, "0a", ROLE_WORKER, "quad");
    cr_assert_eq(store_cert_get(box.store, "0a", box.arena, &out), 0);
    cr_expect_str_eq(out.serial, "0a");
    cr_expect_eq(out.role, ROLE_WORKER);
    cr_expect_str_eq(out.name, "quad");
    cr_expect_str_eq(out.key_hash, "kk");
    cr_expect_eq(out.end_s, 99);
    cr_expect_eq(out.issued_wall_ns, 7);
    cr_expect_eq(out.revoked_wall_ns, 0);
    struct model_cert twin = out;
    cr_expect_eq(store_cert_insert(box.store, &twin), -ERR_EXISTS);
    cr_expect_eq(store_cert_get(box.store, "0b", box.arena, &out), -ERR_NOTFOUND);
    box_close(&box);
}

Test(certs, are_revoked_one_by_one_or_by_name)
{
    struct box box;
    struct model_cert out;
    bool revoked = false;
    size_t n = 0;
    box_open(&box);
    put_cert(&box, "1", ROLE_WORKER, "quad");
    put_cert(&box, "2", ROLE_WORKER, "quad");
    put_cert(&box, "3", ROLE_ADMIN, "quad");
    put_cert(&box, "4", ROLE_WORKER, "p6");
    expect_revoked(&box, "1", false);
    cr_expect_eq(store_cert_revoke(box.store, "1", 50), 0);
    expect_revoked(&box, "1", true);
    expect_revoked(&box, "2", false);
    cr_expect_eq(store_certs_revoke(box.store, ROLE_WORKER, "quad", 60, &n), 0);
    cr_expect_eq(n, 1, "only the one that was valid");
    expect_revoked(&box, "2", true);
    expect_revoked(&box, "3", false);
    expect_revoked(&box, "4", false);
    /* The first time stays. */
    cr_expect_eq(store_cert_revoke(box.store, "1", 70), 0);
    cr_assert_eq(store_cert_get(box.store, "1", box.arena, &out), 0);
    cr_expect_eq(out.revoked_wall_ns, 50);
    /* One that nobody issued is as good as revoked. */
    cr_expect_eq(store_cert_is_revoked(box.store, "5", &revoked), -ERR_NOTFOUND);
    cr_expect(revoked);
    cr_expect_eq(store_cert_revoke(box.store, "5", 70), -ERR_NOTFOUND);
    box_close(&box);
}

Test(certs, each_filters)
{
    struct box box;
    box_open(&box);
    put_cert(&box, "9", ROLE_WORKER, "quad");
    put_cert(&box, "8", ROLE_ADMIN, "quad");
    put_cert(&box, "7", ROLE_WORKER, "p6");
    const struct {
        int role;
        const char *name;
        const char *want;
    } cases[] = {{0, NULL, "987"},
                 {ROLE_WORKER, NULL, "97"},
                 {0, "quad", "98"},
                 {ROLE_ADMIN, "quad", "8"},
                 {0, "x", ""}};
    for (size_t i = 0; i < 5; i++) {
        char all[SAY_ROOM] = "";
        cr_expect_eq(store_certs_each(box.store, cases[i].role, cases[i].name, count_certs, all),
                     0);
        cr_expect_str_eq(all, cases[i].want);
    }
    box_close(&box);
}

static struct model_token a_token(uint8_t first)
{
    static const char *const classes[] = {"p6", "old"};
    struct model_token t = {.id = {first, 2, 3, 4, 5, 6, 7, 0xff},
                            .role = ROLE_WORKER,
                            .classes = classes,
                            .class_count = 2,
                            .end_wall_ns = 1000,
                            .made_wall_ns = 10,
                            .made_by = "alice"};
    memset(t.secret_hash, 0xab, sizeof(t.secret_hash));
    return t;
}

Test(tokens, are_used_once)
{
    struct box box;
    struct model_token out;
    const uint8_t cert[] = {0x30, 0, 1, 2};
    box_open(&box);
    struct model_token in = a_token(1);
    cr_assert_eq(store_token_insert(box.store, &in), 0, "%s", store_error(box.store));
    cr_expect_eq(store_token_insert(box.store, &in), -ERR_EXISTS);
    box_commit(&box);
    box_reopen(&box);
    cr_assert_eq(store_token_get(box.store, in.id, box.arena, &out), 0);
    cr_expect_arr_eq(out.id, in.id, 8);
    cr_expect_arr_eq(out.secret_hash, in.secret_hash, 32);
    cr_expect_eq(out.role, ROLE_WORKER);
    cr_assert_eq(out.class_count, 2);
    cr_expect_str_eq(out.classes[0], "p6");
    cr_expect_str_eq(out.classes[1], "old");
    cr_expect_null(out.name);
    cr_expect_eq(out.end_wall_ns, 1000);
    cr_expect_str_eq(out.made_by, "alice");
    cr_expect_null(out.used_key_hash);
    cr_expect_null(out.cert);

    cr_expect_eq(store_token_use(box.store, in.id, "key", "quad", cert, sizeof(cert)), 0);
    cr_expect_eq(store_token_use(box.store, in.id, "other", "x", cert, 1), -ERR_USED);
    cr_assert_eq(store_token_get(box.store, in.id, box.arena, &out), 0);
    cr_expect_str_eq(out.used_key_hash, "key");
    cr_expect_str_eq(out.used_name, "quad");
    cr_assert_eq(out.cert_len, sizeof(cert));
    cr_expect_arr_eq(out.cert, cert, sizeof(cert));

    struct model_token none = a_token(9);
    cr_expect_eq(store_token_get(box.store, none.id, box.arena, &out), -ERR_NOTFOUND);
    cr_expect_eq(store_token_use(box.store, none.id, "key", "q", cert, 1), -ERR_NOTFOUND);
    box_close(&box);
}

static int count_tokens(const struct model_token *token, void *arg)
{
    int *sum = arg;
    *sum = *sum * 10 + token->id[0];
    cr_expect_eq(token->class_count, 2);
    return 0;
}

Test(tokens, each_in_the_order_of_making)
{
    struct box box;
    int sum = 0;
    box_open(&box);
    for (uint8_t i = 3; i > 0; i--) {
        struct model_token t = a_token(i);
        cr_assert_eq(store_token_insert(box.store, &t), 0);
    }
    cr_expect_eq(store_tokens_each(box.store, count_tokens, &sum), 0);
    cr_expect_eq(sum, 321);
    box_close(&box);
}

/* --- archives --- */

static int first_of(const struct store_blob *blob, void *arg)
{
    int *all = arg;
    *all = *all * 10 + blob->hash[0];
    return 0;
}

Test(blobs, are_known_by_hash_and_size)
{
    struct box box;
    struct store_blob out;
    int all = 0;
    box_open(&box);
    struct store_blob a = {.hash = {1}, .size = 10, .made_wall_ns = 5, .used_wall_ns = 50};
    struct store_blob b = {.hash = {2}, .size = 20, .made_wall_ns = 6, .used_wall_ns = 6};
    cr_expect_eq(store_blob_insert(box.store, &a), 0);
    cr_expect_eq(store_blob_insert(box.store, &b), 0);
    cr_expect_eq(store_blob_insert(box.store, &a), 0);
    struct store_blob wrong = a;
    wrong.size = 11;
    cr_expect_eq(store_blob_insert(box.store, &wrong), -ERR_CONFLICT);
    cr_assert_eq(store_blob_get(box.store, a.hash, &out), 0);
    cr_expect_eq(out.size, 10);
    cr_expect_eq(out.made_wall_ns, 5);
    cr_expect_eq(store_blobs_each(box.store, first_of, &all), 0);
    cr_expect_eq(all, 21, "the longest unused first");
    cr_expect_eq(store_blob_touch(box.store, b.hash, 60), 0);
    all = 0;
    cr_expect_eq(store_blobs_each(box.store, first_of, &all), 0);
    cr_expect_eq(all, 12);
    cr_expect_eq(store_blob_remove(box.store, a.hash), 0);
    cr_expect_eq(store_blob_get(box.store, a.hash, &out), -ERR_NOTFOUND);
    cr_expect_eq(store_blob_touch(box.store, a.hash, 60), -ERR_NOTFOUND);
    cr_expect_eq(store_blob_remove(box.store, a.hash), -ERR_NOTFOUND);
    box_close(&box);
}

Test(blobs, stay_while_an_input_names_them)
{
    struct box box;
    struct store_archive out;
    box_open(&box);
    struct box_ids ids = box_small(&box);
    struct store_blob a = {.hash = {1, [31] = 9}, .size = 10};
    struct model_input input = {.workload = ids.workload,
                                .variant = ids.variant,
                                .expr = "v1",
                                .commit = "c",
                                .tree = "t",
                                .subject = "s",
                                .has_blob = true,
                                .blob = {1, [31] = 9},
                                .size = 10};
    struct store_archive archive = {.hash = {1, [31] = 9}, .exact = true};
    cr_expect_eq(store_input_insert(box.store, &input), -ERR_CONFLICT, "no such archive yet");
    cr_expect_eq(store_archive_put(box.store, "c0ffee", &archive), -ERR_CONFLICT);
    cr_assert_eq(store_blob_insert(box.store, &a), 0);
    cr_expect_eq(store_input_insert(box.store, &input), 0);
    cr_expect_eq(store_archive_put(box.store, "c0ffee", &archive), 0);
    cr_assert_eq(store_archive_get(box.store, "c0ffee", &out), 0);
    cr_expect_arr_eq(out.hash, a.hash, 32);
    cr_expect_eq(out.size, 10);
    cr_expect(out.exact);
    cr_expect_eq(store_blob_remove(box.store, a.hash), -ERR_CONFLICT);
    /* Without an input it goes, and what was known of the commit with it. */
    struct store_blob b = {.hash = {7}, .size = 3};
    struct store_archive other = {.hash = {7}, .exact = false};
    cr_assert_eq(store_blob_insert(box.store, &b), 0);
    cr_assert_eq(store_archive_put(box.store, "c0ffee", &other), 0);
    cr_assert_eq(store_archive_get(box.store, "c0ffee", &out), 0);
    cr_expect_eq(out.hash[0], 7);
    cr_expect(!out.exact);
    cr_expect_eq(store_blob_remove(box.store, b.hash), 0);
    cr_expect_eq(store_archive_get(box.store, "c0ffee", &out), -ERR_NOTFOUND);
    box_close(&box);
}

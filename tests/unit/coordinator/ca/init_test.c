/* init_test.c: the beginning of a fleet, and opening what was made. */
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "coordinator/store/store.h"
#include "coordinator/store/trust.h"
#include "proto/pki.h"
#include "tests/unit/coordinator/ca/ca_help.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

static const char *in(const char *dir, const char *name)
{
    static char path[FILE_PATH_MAX];
    cr_assert_eq(file_path(path, sizeof(path), dir, name), 0);
    return path;
}

static struct pki_id id_of(const char *dir, const char *name)
{
    struct pki_cert *cert = NULL;
    struct pki_id id;
    cr_assert_eq(pki_cert_read(in(dir, name), &cert, NULL), 0);
    cr_assert_eq(pki_cert_id(cert, &id, NULL), 0);
    pki_cert_free(&cert);
    return id;
}

static void expect_mode(const char *path, uint32_t mode)
{
    struct file_stat st;
    cr_assert_eq(file_stat(path, &st), 0, "%s", path);
    cr_expect_eq(st.mode & 0777, mode, "%s has mode %o", path, st.mode & 0777);
}

static int again(struct fleet *f, const char *fleet, const char *operator_dir, const char *name)
{
    struct ca_init init = {.dir = f->box.dir,
                           .fleet = fleet,
                           .operator_dir = operator_dir,
                           .operator_name = name,
                           .store = f->box.store,
                           .wall_ns = NOW_NS};
    diag_clear(f->box.diag);
    return ca_init(&init, f->box.diag);
}

static void expect_said(struct fleet *f, const char *part)
{
    cr_expect(strstr(said(f), part) != NULL, "said: %s", said(f));
}

Test(init, makes_an_authority_and_an_admin)
{
    struct fleet f;
    struct model_cert row;
    size_t n = 0;
    fleet_open(&f);
    expect_mode(f.operator_dir, 0700);
    expect_mode(in(f.box.dir, CA_KEY), 0600);
    expect_mode(in(f.box.dir, CA_SERVER_KEY), 0600);
    expect_mode(in(f.operator_dir, CA_OPERATOR_KEY), 0600);
    cr_expect_str_eq(ca_fleet(f.ca), "lab");
    struct pki_id admin = id_of(f.operator_dir, CA_OPERATOR_CERT);
    cr_expect_str_eq(admin.fleet, "lab");
    cr_expect_eq(admin.role, ROLE_ADMIN);
    cr_expect_str_eq(admin.name, "alice");
    cr_expect_eq(admin.end_s, NOW_NS / 1000000000 + PKI_OPERATOR_LIFE_S);
    cr_assert_eq(store_cert_get(f.box.store, admin.serial, f.box.arena, &row), 0);
    cr_expect_eq(row.role, ROLE_ADMIN);
    cr_expect_str_eq(row.name, "alice");
    cr_expect_str_eq(row.key_hash, admin.key_hash);
    cr_expect_eq(row.end_s, admin.end_s);
    struct pki_id server = id_of(f.box.dir, CA_SERVER_CERT);
    cr_expect_eq(server.role, ROLE_COORDINATOR);
    cr_expect_str_eq(server.fleet, "lab");
    cr_expect_eq(server.end_s, ca_server_end_s(f.ca));

    /* What the operator checks the coordinator by is the authority. */
    struct pki_cert *authority = NULL;
    struct pki_cert *cert = NULL;
    cr_assert_eq(pki_cert_read(in(f.operator_dir, CA_OPERATOR_AUTHORITY), &authority, NULL), 0);
    cr_assert_eq(pki_cert_read(in(f.box.dir, CA_SERVER_CERT), &cert, NULL), 0);
    cr_expect(pki_cert_is_issued_by(cert, authority));
    struct buf der = BUF_INIT;
    cr_assert_eq(pki_cert_to_der(authority, &der), 0);
    const uint8_t *own = ca_authority_der(f.ca, &n);
    cr_assert_eq(n, der.len);
    cr_expect_arr_eq(own, der.data, n);
    uint8_t hash[32];
    cr_assert_eq(pki_cert_key_hash(authority, hash), 0);
    cr_expect_arr_eq(hash, ca_authority_hash(f.ca), 32);
    buf_fini(&der);
    pki_cert_free(&authority);
    pki_cert_free(&cert);
    cr_expect(!ca_is_revoked(admin.serial, f.ca));
    cr_expect(ca_is_revoked("00ff", f.ca), "one that was never issued here");
    box_reopen(&f.box); /* all of it was committed; the authority's store is another now */
    cr_expect_eq(store_cert_get(f.box.store, admin.serial, f.box.arena, &row), 0);
    fleet_close(&f);
}

Test(init, overwrites_nothing)
{
    struct fleet f;
    char other[160];
    fleet_open(&f);
    struct pki_id before = id_of(f.operator_dir, CA_OPERATOR_CERT);
    cr_expect_eq(again(&f, "lab", f.operator_dir, "alice"), -ERR_EXISTS);
    expect_said(&f, "fleet lab was made here already");
    cr_expect_eq(again(&f, "new", f.operator_dir, "bob"), -ERR_EXISTS);
    cr_expect_str_eq(id_of(f.operator_dir, CA_OPERATOR_CERT).serial, before.serial);

    /* The identity of one fleet is safe from the init of another. */
    snprintf(other, sizeof(other), "%s/two", f.box.dir);
    struct store *store = NULL;
    char path[192];
    cr_assert_eq(file_mkdirs(other, 0700), 0);
    snprintf(path, sizeof(path), "%s/makespan.db", other);
    cr_assert_eq(store_open(path, NULL, 0, &store, f.box.diag), 0);
    struct ca_init init = {.dir = other,
                           .fleet = "two",
                           .operator_dir = f.operator_dir,
                           .operator_name = "bob",
                           .store = store,
                           .wall_ns = NOW_NS};
    diag_clear(f.box.diag);
    cr_expect_eq(ca_init(&init, f.box.diag), -ERR_EXISTS);
    expect_said(&f, "there is an identity of another fleet");
    cr_expect(!store_dirty(store));
    cr_expect_str_eq(id_of(f.operator_dir, CA_OPERATOR_CERT).serial, before.serial);
    /* It is completed with another folder. */
    char theirs[192];
    snprintf(theirs, sizeof(theirs), "%s/operator", other);
    init.operator_dir = theirs;
    diag_clear(f.box.diag);
    cr_expect_eq(ca_init(&init, f.box.diag), 0, "%s", said(&f));
    cr_expect_str_eq(id_of(theirs, CA_OPERATOR_CERT).fleet, "two");
    store_close(&store);
    fleet_close(&f);
}

Test(init, one_that_was_interrupted_is_completed)
{
    struct fleet f = {0};
    box_open(&f.box);
    snprintf(f.operator_dir, sizeof(f.operator_dir), "%s/op", f.box.dir);
    /* Up to the authority, as if the machine had stopped there. */
    struct pki_key *key = NULL;
    struct pki_cert *cert = NULL;
    cr_assert_eq(pki_key_make(&key, NULL), 0);
    cr_assert_eq(pki_key_write(key, in(f.box.dir, CA_KEY), NULL), 0);
    cr_assert_eq(pki_authority_make(key, "lab", NOW_NS / 1000000000, &cert, NULL), 0);
    cr_assert_eq(pki_cert_write(cert, in(f.box.dir, CA_CERT), NULL), 0);
    cr_expect_eq(ca_open(f.box.dir, f.box.store, NOW_NS, &f.ca, f.box.diag), -ERR_NOTFOUND);
    expect_said(&f, "was not made to the end");
    cr_expect_eq(again(&f, "other", f.operator_dir, "alice"), -ERR_CONFLICT);
    expect_said(&f, "an init of fleet lab was begun here");
    cr_expect_eq(again(&f, "lab", f.operator_dir, "alice"), 0, "%s", said(&f));
    cr_expect_eq(ca_open(f.box.dir, f.box.store, NOW_NS, &f.ca, f.box.diag), 0, "%s", said(&f));
    uint8_t hash[32];
    cr_assert_eq(pki_cert_key_hash(cert, hash), 0);
    cr_expect_arr_eq(ca_authority_hash(f.ca), hash, 32, "the authority that was there");
    pki_key_free(&key);
    pki_cert_free(&cert);
    fleet_close(&f);
}

Test(init, refuses_names_that_are_none)
{
    struct fleet f = {0};
    box_open(&f.box);
    cr_expect_eq(again(&f, "two words", f.box.dir, "alice"), -ERR_INVAL);
    expect_said(&f, "`two words` is no name for a fleet");
    cr_expect_eq(again(&f, "lab", f.box.dir, "a/b"), -ERR_INVAL);
    expect_said(&f, "`a/b` is no name for an operator");
    cr_expect(!file_exists(in(f.box.dir, CA_KEY)));
    box_close(&f.box);
}

Test(open, says_what_is_missing)
{
    struct fleet f;
    struct ca *ca = NULL;
    fleet_open(&f);
    struct box none;
    box_open(&none);
    diag_clear(f.box.diag);
    cr_expect_eq(ca_open(none.dir, none.store, NOW_NS, &ca, f.box.diag), -ERR_NOTFOUND);
    expect_said(&f, "`makespan init` makes one");
    cr_expect_null(ca);
    /* The database of another fleet. */
    cr_assert_eq(store_meta_set(none.store, "fleet", "other"), 0);
    diag_clear(f.box.diag);
    cr_expect_eq(ca_open(f.box.dir, none.store, NOW_NS, &ca, f.box.diag), -ERR_FLEET);
    expect_said(&f, "the database is of fleet other and the authority of fleet lab");
    box_close(&none);
    /* The key of another authority. */
    struct pki_key *key = NULL;
    cr_assert_eq(pki_key_make(&key, NULL), 0);
    cr_assert_eq(file_remove(in(f.box.dir, CA_KEY)), 0);
    cr_assert_eq(pki_key_write(key, in(f.box.dir, CA_KEY), NULL), 0);
    diag_clear(f.box.diag);
    cr_expect_eq(ca_open(f.box.dir, f.box.store, NOW_NS, &ca, f.box.diag), -ERR_CONFLICT);
    expect_said(&f, "is not the certificate of");
    pki_key_free(&key);
    fleet_close(&f);
}

Test(open, an_authority_past_its_end)
{
    struct fleet f;
    struct ca *ca = NULL;
    fleet_open(&f);
    diag_clear(f.box.diag);
    cr_expect_eq(ca_open(f.box.dir, f.box.store, NOW_NS + 3700 * DAY_NS, &ca, f.box.diag),
                 -ERR_EXPIRED);
    expect_said(&f, "the authority of fleet lab ended at 2036-");
    fleet_close(&f);
}

/* --- the coordinator's own certificate --- */

static char *serial_after(struct fleet *f, int64_t wall_ns, bool want)
{
    static char serial[41];
    bool renewed = !want;
    cr_assert_eq(ca_renew_server(f->ca, wall_ns, &renewed, f->box.diag), 0, "%s", said(f));
    cr_expect_eq(renewed, want);
    struct pki_id id = id_of(f->box.dir, CA_SERVER_CERT);
    cr_expect_eq(id.end_s, ca_server_end_s(f->ca));
    snprintf(serial, sizeof(serial), "%s", id.serial);
    return serial;
}

Test(server, is_renewed_when_less_than_30_days_are_left)
{
    struct fleet f;
    char first[41];
    fleet_open(&f);
    snprintf(first, sizeof(first), "%s", id_of(f.box.dir, CA_SERVER_CERT).serial);
    cr_expect_str_eq(serial_after(&f, NOW_NS + 334 * DAY_NS, false), first);
    cr_expect_str_neq(serial_after(&f, NOW_NS + 336 * DAY_NS, true), first);
    cr_expect_gt(ca_server_end_s(f.ca), (NOW_NS + 700 * DAY_NS) / 1000000000);
    serial_after(&f, NOW_NS + 337 * DAY_NS, false);
    /* At start, too. */
    ca_close(&f.ca);
    snprintf(first, sizeof(first), "%s", id_of(f.box.dir, CA_SERVER_CERT).serial);
    cr_assert_eq(ca_open(f.box.dir, f.box.store, NOW_NS + 690 * DAY_NS, &f.ca, f.box.diag), 0);
    cr_expect_str_neq(id_of(f.box.dir, CA_SERVER_CERT).serial, first);
    fleet_close(&f);
}

Test(server, near_the_end_of_the_authority_it_is_made_once)
{
    struct fleet f;
    fleet_open(&f);
    serial_after(&f, NOW_NS + 3640 * DAY_NS, true);
    serial_after(&f, NOW_NS + 3641 * DAY_NS, false);
    fleet_close(&f);
}

Test(server, is_made_anew_when_it_is_missing_or_another_fleets)
{
    struct fleet f;
    struct fleet other;
    struct buf text = BUF_INIT;
    fleet_open(&f);
    fleet_open(&other);
    cr_assert_eq(file_remove(in(f.box.dir, CA_SERVER_CERT)), 0);
    serial_after(&f, NOW_NS, true);
    cr_assert_eq(file_remove(in(f.box.dir, CA_SERVER_KEY)), 0);
    serial_after(&f, NOW_NS, true);
    cr_assert_eq(file_read_all(in(other.box.dir, CA_SERVER_CERT), 10000, &text), 0);
    cr_assert_eq(file_write_atomic(in(f.box.dir, CA_SERVER_CERT), text.data, text.len, 0644), 0);
    serial_after(&f, NOW_NS, true);
    cr_assert_eq(file_write_atomic(in(f.box.dir, CA_SERVER_CERT), "junk", 4, 0644), 0);
    serial_after(&f, NOW_NS, true);
    buf_fini(&text);
    fleet_close(&other);
    fleet_close(&f);
}

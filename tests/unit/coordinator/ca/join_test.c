/* join_test.c: who gets a certificate for a token, and what the others are told. */
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/store.h"
#include "coordinator/store/trust.h"
#include "proto/pki.h"
#include "tests/unit/coordinator/ca/ca_help.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

static void expect_refused(struct fleet *f, struct joiner *j, int64_t wall_ns,
                           enum close_reason reason, const char *part)
{
    box_commit(&f->box);
    cr_expect_lt(joiner_join_at(f, j, wall_ns), 0);
    cr_expect_eq(j->reason, reason, "reason %d: %s", (int)j->reason, said(f));
    cr_expect(strstr(said(f), part) != NULL, "said: %s", said(f));
    cr_expect_eq(diag_errors(f->box.diag), 1);
    cr_expect_eq(j->grant.cert_len, 0, "no certificate");
    cr_expect(!store_dirty(f->box.store), "no row");
}

static void expect_joined(struct fleet *f, struct joiner *j)
{
    cr_assert_eq(joiner_join(f, j), 0, "%s", said(f));
    box_commit(&f->box);
}

static struct pki_id granted(const struct joiner *j)
{
    struct pki_cert *cert = NULL;
    struct pki_id id;
    cr_assert_eq(pki_cert_from_der(j->grant.cert, j->grant.cert_len, &cert, NULL), 0);
    cr_assert_eq(pki_cert_id(cert, &id, NULL), 0);
    cr_expect(pki_cert_is_of_key(cert, j->key));
    pki_cert_free(&cert);
    return id;
}

static struct model_host host(struct fleet *f, const char *name)
{
    struct model_host out = {0};
    cr_assert_eq(store_host_by_name(f->box.store, name, f->box.arena, &out), 0);
    return out;
}

Test(join, a_worker_becomes_a_host)
{
    struct fleet f;
    struct joiner j;
    const char *classes[] = {"p6", "old"};
    char text[CA_TOKEN_TEXT];
    fleet_open(&f);
    joiner_init(&j, ROLE_WORKER, "quad");
    struct ca_token_request request = {.role = ROLE_WORKER,
                                       .classes = classes,
                                       .class_count = 2,
                                       .ttl_ns = DAY_NS,
                                       .made_by = "alice"};
    cr_assert_eq(ca_token_make(f.ca, &request, NOW_NS, text, f.box.diag), 0);
    cr_assert_eq(token_parse(text, &j.token, NULL), 0);
    cr_expect_arr_eq(j.token.authority, ca_authority_hash(f.ca), 16);
    j.request.machine_id = "m1";
    expect_joined(&f, &j);
    cr_expect_eq(j.reason, CLOSE_NONE);
    cr_expect_str_eq(j.grant.name, "quad");
    cr_expect_eq(j.grant.role, ROLE_WORKER);
    cr_expect(!j.grant.again && !j.grant.rekeyed);
    cr_expect_eq(j.grant.warning_count, 0);
    struct pki_id id = granted(&j);
    cr_expect_str_eq(id.fleet, "lab");
    cr_expect_eq(id.role, ROLE_WORKER);
    cr_expect_str_eq(id.name, "quad");
    cr_expect_eq(id.end_s, NOW_NS / 1000000000 + PKI_WORKER_LIFE_S);
    cr_expect(!ca_is_revoked(id.serial, f.ca));
    struct model_host h = host(&f, "quad");
    cr_expect_eq(h.id, j.grant.host);
    cr_expect_eq(h.state, HOST_ACTIVE);
    cr_expect_str_eq(h.key_hash, id.key_hash);
    cr_expect_str_eq(h.machine_id, "m1");
    cr_expect_eq(h.joined_wall_ns, NOW_NS);
    cr_assert_eq(h.class_count, 2);
    cr_expect_str_eq(h.classes[1], "p6");
    joiner_fini(&j);
    fleet_close(&f);
}

Test(join, an_operator_takes_the_role_of_the_token)
{
    struct fleet f;
    struct joiner j;
    fleet_open(&f);
    joiner_init(&j, ROLE_VIEWER, "bob");
    joiner_token(&f, &j, ROLE_SUBMITTER, NULL);
    expect_joined(&f, &j);
    cr_expect_eq(granted(&j).role, ROLE_SUBMITTER);
    cr_expect_eq(j.grant.role, ROLE_SUBMITTER);
    cr_expect_eq(granted(&j).end_s, NOW_NS / 1000000000 + PKI_OPERATOR_LIFE_S);
    cr_expect_eq(j.grant.host, 0);
    joiner_fini(&j);
    fleet_close(&f);
}

Test(join, the_same_token_and_key_give_the_same_certificate)
{
    struct fleet f;
    struct joiner j;
    uint8_t first[CA_CERT_MAX];
    fleet_open(&f);
    joiner_init(&j, ROLE_WORKER, "quad");
    joiner_token(&f, &j, ROLE_WORKER, NULL);
    expect_joined(&f, &j);
    size_t n = j.grant.cert_len;
    int64_t id = j.grant.host;
    memcpy(first, j.grant.cert, n);
    j.request.name = "another"; /* what is wanted now does not matter */
    cr_assert_eq(joiner_join_at(&f, &j, NOW_NS + DAY_NS / 2), 0, "%s", said(&f));
    cr_expect(j.grant.again);
    cr_expect_str_eq(j.grant.name, "quad");
    cr_expect_eq(j.grant.host, id);
    cr_assert_eq(j.grant.cert_len, n);
    cr_expect_arr_eq(j.grant.cert, first, n);
    cr_expect(!store_dirty(f.box.store));
    /* Not beyond the token's life. */
    expect_refused(&f, &j, NOW_NS + DAY_NS, CLOSE_TOKEN_EXPIRED, "the token ended at 2026-12-");
    joiner_fini(&j);
    fleet_close(&f);
}

Test(join, a_grant_that_was_not_committed_may_be_asked_for_again)
{
    struct fleet f;
    struct joiner j;
    fleet_open(&f);
    joiner_init(&j, ROLE_WORKER, "quad");
    joiner_token(&f, &j, ROLE_WORKER, NULL);
    box_commit(&f.box);
    cr_assert_eq(joiner_join(&f, &j), 0);
    store_rollback(f.box.store);
    expect_joined(&f, &j);
    cr_expect(!j.grant.again);
    cr_expect_str_eq(host(&f, "quad").key_hash, granted(&j).key_hash);
    joiner_fini(&j);
    fleet_close(&f);
}

Test(join, a_token_is_for_one_key)
{
    struct fleet f;
    struct joiner a;
    struct joiner b;
    fleet_open(&f);
    joiner_init(&a, ROLE_WORKER, "quad");
    joiner_init(&b, ROLE_WORKER, "thief");
    joiner_token(&f, &a, ROLE_WORKER, NULL);
    b.token = a.token;
    expect_joined(&f, &a);
    expect_refused(&f, &b, NOW_NS, CLOSE_TOKEN_USED, "used already by quad with another key");
    joiner_fini(&a);
    joiner_fini(&b);
    fleet_close(&f);
}

Test(join, an_unknown_token_and_a_wrong_secret_are_told_the_same)
{
    struct fleet f;
    struct joiner j;
    char first[256];
    fleet_open(&f);
    joiner_init(&j, ROLE_WORKER, "quad");
    joiner_token(&f, &j, ROLE_WORKER, NULL);
    j.token.secret[15] ^= 1;
    expect_refused(&f, &j, NOW_NS, CLOSE_TOKEN_UNKNOWN, "the token is not known to fleet lab");
    snprintf(first, sizeof(first), "%s", said(&f));
    j.token.secret[15] ^= 1;
    j.token.id[0] ^= 1;
    expect_refused(&f, &j, NOW_NS, CLOSE_TOKEN_UNKNOWN, "makespan token create");
    cr_expect_str_eq(said(&f), first);
    joiner_fini(&j);
    fleet_close(&f);
}

Test(join, only_with_the_tokens_role)
{
    struct fleet f;
    struct joiner j;
    fleet_open(&f);
    joiner_init(&j, ROLE_WORKER, "quad");
    joiner_token(&f, &j, ROLE_ADMIN, NULL);
    expect_refused(&f, &j, NOW_NS, CLOSE_TOKEN_ROLE, "role is admin and not worker");
    joiner_token(&f, &j, ROLE_WORKER, NULL);
    j.request.role = ROLE_VIEWER;
    expect_refused(&f, &j, NOW_NS, CLOSE_TOKEN_ROLE, "`makespan-worker join` takes it");
    joiner_token(&f, &j, ROLE_VIEWER, NULL);
    j.request.role = ROLE_ADMIN;
    expect_refused(&f, &j, NOW_NS, CLOSE_TOKEN_ROLE, "role is viewer and not admin");
    joiner_token(&f, &j, ROLE_WORKER, NULL);
    j.request.role = ROLE_COORDINATOR;
    expect_refused(&f, &j, NOW_NS, CLOSE_TOKEN_ROLE, "not coordinator");
    joiner_fini(&j);
    fleet_close(&f);
}

Test(join, only_with_a_request_that_is_signed_by_its_key)
{
    struct fleet f;
    struct joiner j;
    fleet_open(&f);
    joiner_init(&j, ROLE_WORKER, "quad");
    joiner_token(&f, &j, ROLE_WORKER, NULL);
    j.csr.data[j.csr.len - 1] ^= 1;
    expect_refused(&f, &j, NOW_NS, CLOSE_DECODE, "");
    j.request.csr_len = 0;
    expect_refused(&f, &j, NOW_NS, CLOSE_DECODE, "");
    joiner_fini(&j);
    fleet_close(&f);
}

Test(join, only_with_a_name)
{
    struct fleet f;
    struct joiner j;
    fleet_open(&f);
    joiner_init(&j, ROLE_WORKER, "a b\n");
    joiner_token(&f, &j, ROLE_WORKER, NULL);
    expect_refused(&f, &j, NOW_NS, CLOSE_NAME_TAKEN, "`a b\\n` is no name");
    /* A token that has one gives it, whatever is wanted. */
    joiner_token(&f, &j, ROLE_WORKER, "quad");
    expect_joined(&f, &j);
    cr_expect_str_eq(j.grant.name, "quad");
    joiner_fini(&j);
    fleet_close(&f);
}

Test(join, a_hosts_name_is_its_own)
{
    struct fleet f;
    struct joiner a;
    struct joiner b;
    fleet_open(&f);
    joiner_init(&a, ROLE_WORKER, "quad");
    joiner_init(&b, ROLE_WORKER, "quad");
    joiner_token(&f, &a, ROLE_WORKER, NULL);
    expect_joined(&f, &a);
    struct pki_id first = granted(&a);
    joiner_token(&f, &b, ROLE_WORKER, NULL);
    expect_refused(&f, &b, NOW_NS, CLOSE_NAME_TAKEN,
                   "there is a host quad already with another key: a token made with --name quad");
    cr_assert_eq(store_host_set_state(f.box.store, a.grant.host, HOST_DRAINED), 0);
    /* An admin who made the token for this name meant it: the machine was installed anew. */
    joiner_token(&f, &b, ROLE_WORKER, "quad");
    expect_joined(&f, &b);
    cr_expect(b.grant.rekeyed);
    cr_expect_eq(b.grant.host, a.grant.host);
    cr_expect(ca_is_revoked(first.serial, f.ca), "the earlier certificate");
    cr_expect(!ca_is_revoked(granted(&b).serial, f.ca));
    struct model_host h = host(&f, "quad");
    cr_expect_str_eq(h.key_hash, granted(&b).key_hash);
    cr_expect_eq(h.state, HOST_DRAINED, "it stays drained");
    joiner_fini(&a);
    joiner_fini(&b);
    fleet_close(&f);
}

Test(join, a_host_renews_with_its_own_key)
{
    struct fleet f;
    struct joiner j;
    fleet_open(&f);
    joiner_init(&j, ROLE_WORKER, "quad");
    joiner_token(&f, &j, ROLE_WORKER, NULL);
    expect_joined(&f, &j);
    struct pki_id first = granted(&j);
    joiner_token(&f, &j, ROLE_WORKER, NULL);
    expect_joined(&f, &j);
    cr_expect(!j.grant.rekeyed && !j.grant.again);
    cr_expect_str_neq(granted(&j).serial, first.serial);
    cr_expect(!ca_is_revoked(first.serial, f.ca), "until it is delivered the earlier one holds");
    /* Under another name its key is refused. */
    joiner_token(&f, &j, ROLE_WORKER, NULL);
    j.request.name = "second";
    expect_refused(&f, &j, NOW_NS, CLOSE_NAME_TAKEN, "the key belongs to host quad");
    joiner_fini(&j);
    fleet_close(&f);
}

Test(join, a_revoked_host_needs_a_token_for_its_name)
{
    struct fleet f;
    struct joiner j;
    fleet_open(&f);
    joiner_init(&j, ROLE_WORKER, "quad");
    joiner_token(&f, &j, ROLE_WORKER, NULL);
    expect_joined(&f, &j);
    struct pki_id first = granted(&j);
    diag_clear(f.box.diag);
    cr_expect_eq(ca_revoke_host(f.ca, "none", NOW_NS, f.box.diag), -ERR_NOTFOUND);
    cr_expect_str_eq(said(&f), "there is no host none");
    cr_assert_eq(ca_revoke_host(f.ca, "quad", NOW_NS, f.box.diag), 0);
    cr_expect_eq(host(&f, "quad").state, HOST_REVOKED);
    cr_expect(ca_is_revoked(first.serial, f.ca));
    expect_refused(&f, &j, NOW_NS, CLOSE_REVOKED,
                   "the certificate that the token gave to quad was revoked");
    joiner_token(&f, &j, ROLE_WORKER, NULL);
    expect_refused(&f, &j, NOW_NS, CLOSE_NAME_TAKEN,
                   "which was revoked: a token made with --name quad");
    joiner_token(&f, &j, ROLE_WORKER, "quad");
    expect_joined(&f, &j);
    cr_expect_eq(host(&f, "quad").state, HOST_ACTIVE);
    cr_expect(ca_is_revoked(first.serial, f.ca), "the old one stays revoked");
    cr_expect(!ca_is_revoked(granted(&j).serial, f.ca));
    joiner_fini(&j);
    fleet_close(&f);
}

Test(join, an_operators_name_is_its_own)
{
    struct fleet f;
    struct joiner j;
    struct joiner worker;
    fleet_open(&f); /* its admin is alice */
    joiner_init(&j, ROLE_VIEWER, "alice");
    joiner_token(&f, &j, ROLE_VIEWER, NULL);
    expect_refused(&f, &j, NOW_NS, CLOSE_NAME_TAKEN,
                   "there is an operator alice already with another key");
    joiner_token(&f, &j, ROLE_VIEWER, "alice");
    expect_joined(&f, &j);
    /* A host may have the name: roles are told apart. */
    joiner_init(&worker, ROLE_WORKER, "alice");
    joiner_token(&f, &worker, ROLE_WORKER, NULL);
    expect_joined(&f, &worker);
    joiner_fini(&worker);
    joiner_fini(&j);
    fleet_close(&f);
}

Test(join, a_clock_that_stopped_is_a_warning)
{
    struct fleet f;
    struct joiner j;
    fleet_open(&f);
    joiner_init(&j, ROLE_WORKER, "p6");
    joiner_token(&f, &j, ROLE_WORKER, NULL);
    j.request.wall_ns = INT64_C(30) * 1000000000; /* 1970 */
    expect_joined(&f, &j);
    cr_assert_eq(j.grant.warning_count, 1);
    cr_expect(strstr(j.grant.warnings[0], "1970-01-01") != NULL, "%s", j.grant.warnings[0]);
    cr_expect(strstr(j.grant.warnings[0], "it works") != NULL, "%s", j.grant.warnings[0]);
    /* A little off: another sentence; a minute: none. */
    j.request.wall_ns = NOW_NS + INT64_C(3600) * 1000000000;
    expect_joined(&f, &j);
    cr_assert_eq(j.grant.warning_count, 1);
    cr_expect(strstr(j.grant.warnings[0], "set one of them") != NULL, "%s", j.grant.warnings[0]);
    j.request.wall_ns = NOW_NS - INT64_C(60) * 1000000000;
    expect_joined(&f, &j);
    cr_expect_eq(j.grant.warning_count, 0);
    joiner_fini(&j);
    fleet_close(&f);
}

Test(join, a_clock_beyond_the_certificates_end_is_refused)
{
    struct fleet f;
    struct joiner j;
    fleet_open(&f);
    joiner_init(&j, ROLE_WORKER, "future");
    joiner_token(&f, &j, ROLE_WORKER, NULL);
    j.request.wall_ns = NOW_NS + 365 * DAY_NS;
    expect_refused(&f, &j, NOW_NS, CLOSE_CLOCK, "the clock of this host says 2027-11-30");
    cr_expect(strstr(said(&f), "the coordinator's clock says 2026-11-30") != NULL, "%s", said(&f));
    /* The token is not used up by that. */
    j.request.wall_ns = NOW_NS;
    expect_joined(&f, &j);
    joiner_fini(&j);
    fleet_close(&f);
}

Test(join, a_machine_id_that_is_known_is_a_warning)
{
    struct fleet f;
    struct joiner a;
    struct joiner b;
    fleet_open(&f);
    joiner_init(&a, ROLE_WORKER, "one");
    joiner_init(&b, ROLE_WORKER, "two");
    a.request.machine_id = "same";
    b.request.machine_id = "same";
    joiner_token(&f, &a, ROLE_WORKER, NULL);
    expect_joined(&f, &a);
    cr_expect_eq(a.grant.warning_count, 0);
    joiner_token(&f, &b, ROLE_WORKER, NULL);
    expect_joined(&f, &b);
    cr_assert_eq(b.grant.warning_count, 1);
    cr_expect(strstr(b.grant.warnings[0], "host one has the same machine id") != NULL, "%s",
              b.grant.warnings[0]);
    joiner_fini(&a);
    joiner_fini(&b);
    fleet_close(&f);
}

Test(join, a_database_that_cannot_be_written)
{
    struct fleet f;
    struct joiner j;
    struct store *other = NULL;
    fleet_open(&f);
    joiner_init(&j, ROLE_WORKER, "quad");
    joiner_token(&f, &j, ROLE_WORKER, NULL);
    box_commit(&f.box);
    cr_assert_eq(store_open(f.box.path, NULL, 0, &other, f.box.diag), 0);
    cr_assert_eq(store_meta_set(other, "a", "b"), 0);
    expect_refused(&f, &j, NOW_NS, CLOSE_STORE, "the database cannot be used");
    store_close(&other);
    joiner_fini(&j);
    fleet_close(&f);
}

Test(token, is_refused_when_it_asks_for_what_cannot_be)
{
    struct fleet f;
    char text[CA_TOKEN_TEXT];
    const char *classes[] = {"p6"};
    const char *bad_classes[] = {"p 6"};
    fleet_open(&f);
    const struct {
        struct ca_token_request request;
        const char *part;
    } cases[] = {
        {{.role = ROLE_COORDINATOR, .ttl_ns = DAY_NS}, "a token is for"},
        {{.role = (enum role)77, .ttl_ns = DAY_NS}, "a token is for"},
        {{.role = ROLE_WORKER, .ttl_ns = 59 * (DAY_NS / 86400)}, "from a minute"},
        {{.role = ROLE_WORKER, .ttl_ns = 31 * DAY_NS}, "30 days"},
        {{.role = ROLE_WORKER, .ttl_ns = DAY_NS, .name = ".."}, "`..` is no name"},
        {{.role = ROLE_VIEWER, .ttl_ns = DAY_NS, .classes = classes, .class_count = 1},
         "only a worker"},
        {{.role = ROLE_WORKER, .ttl_ns = DAY_NS, .classes = bad_classes, .class_count = 1},
         "`p 6` is no name for a class"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ca_token_request request = cases[i].request;
        request.made_by = "alice";
        diag_clear(f.box.diag);
        cr_expect_lt(ca_token_make(f.ca, &request, NOW_NS, text, f.box.diag), 0);
        cr_expect(strstr(said(&f), cases[i].part) != NULL, "said: %s", said(&f));
        cr_expect_str_eq(text, "");
    }
    cr_expect(!store_dirty(f.box.store));
    fleet_close(&f);
}

Test(token, is_kept_as_a_hash)
{
    struct fleet f;
    struct joiner j;
    struct model_token row;
    struct buf file = BUF_INIT;
    fleet_open(&f);
    joiner_init(&j, ROLE_WORKER, "quad");
    joiner_token(&f, &j, ROLE_WORKER, "quad");
    box_commit(&f.box);
    cr_assert_eq(store_token_get(f.box.store, j.token.id, f.box.arena, &row), 0);
    cr_expect_eq(row.end_wall_ns, NOW_NS + DAY_NS);
    cr_expect_str_eq(row.made_by, "alice");
    cr_expect_str_eq(row.name, "quad");
    uint8_t hash[TOKEN_HASH_SIZE];
    token_hash(j.token.secret, hash);
    cr_expect_arr_eq(row.secret_hash, hash, sizeof(hash));
    store_close(&f.box.store);
    cr_assert_eq(file_read_all(f.box.path, 10000000, &file), 0);
    bool found = false;
    for (size_t i = 0; i + 16 <= file.len && !found; i++) {
        found = memcmp(file.data + i, j.token.secret, 16) == 0;
    }
    cr_expect(!found, "the secret stands in the database");
    buf_fini(&file);
    joiner_fini(&j);
    fleet_close(&f);
}

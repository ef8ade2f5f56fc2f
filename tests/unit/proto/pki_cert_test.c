/* The authority, what it issues, certificates as bytes and files, and what is read from them. */
#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/str.h"
#include "proto/pki.h"
#include "proto/pki_ossl.h"
#include "tests/harness/place.h"
#include "tests/unit/proto/trust.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[200];
static char path[256];
static struct diag *diag;
static struct trust_pair lab;

static void set_up(void)
{
    place_new_dir(folder, sizeof(folder), "makespan-pki");
    snprintf(path, sizeof(path), "%s/cert.pem", folder);
    diag = diag_new(8);
    trust_authority("lab", &lab);
}

static void tear_down(void)
{
    trust_free(&lab);
    diag_free(&diag);
    cr_expect_eq(file_remove_tree(folder), 0);
}

TestSuite(pki_cert, .init = set_up, .fini = tear_down);

/* --- the authority and what it issues --- */

Test(pki_cert, the_authority)
{
    char fleet[65];
    int64_t begin_s, end_s;
    uint8_t a[PKI_HASH_SIZE], b[PKI_HASH_SIZE];
    X509 *x = pki_cert_x509(lab.cert);
    cr_assert_eq(pki_cert_fleet(lab.cert, fleet, diag), 0);
    cr_expect_str_eq(fleet, "lab");
    cr_assert_eq(pki_cert_dates(lab.cert, &begin_s, &end_s), 0);
    cr_expect_eq(begin_s, TRUST_NOW - PKI_DAY_S);
    cr_expect_eq(end_s, TRUST_NOW + 3652 * PKI_DAY_S);
    cr_expect(pki_cert_is_of_key(lab.cert, lab.key));
    cr_expect(pki_cert_is_issued_by(lab.cert, lab.cert));
    cr_expect_eq(X509_check_ca(x), 1);
    cr_expect_eq(X509_get_pathlen(x), 0);
    cr_expect_eq(X509_get_key_usage(x), (uint32_t)(KU_KEY_CERT_SIGN | KU_CRL_SIGN));
    cr_assert_eq(pki_key_hash(lab.key, a), 0);
    cr_assert_eq(pki_cert_key_hash(lab.cert, b), 0);
    cr_expect_eq(memcmp(a, b, sizeof(a)), 0);
    struct pki_cert *cert;
    cr_expect_eq(pki_authority_make(lab.key, "a fleet", TRUST_NOW, &cert, diag), -ERR_INVAL);
    cr_expect_eq(pki_authority_make(lab.key, "", TRUST_NOW, &cert, NULL), -ERR_INVAL);
    cr_expect_null(cert);
}

Test(pki_cert, a_certificate_for_each_role)
{
    static const struct {
        enum role role;
        int64_t days;
        uint32_t usage;
    } cases[] = {
        {ROLE_COORDINATOR, 365, XKU_SSL_SERVER}, {ROLE_WORKER, 365, XKU_SSL_CLIENT},
        {ROLE_VIEWER, 90, XKU_SSL_CLIENT},       {ROLE_SUBMITTER, 90, XKU_SSL_CLIENT},
        {ROLE_ADMIN, 90, XKU_SSL_CLIENT},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf der = BUF_INIT;
        struct pki_key *key;
        struct pki_cert *cert;
        struct pki_id id;
        char hex[PKI_HASH_TEXT];
        uint8_t hash[PKI_HASH_SIZE];
        trust_request(&der, &key);
        cr_assert_eq(pki_issue(lab.key, lab.cert, der.data, der.len, cases[i].role, "box-1",
                               TRUST_NOW, &cert, NULL),
                     0);
        cr_assert_eq(pki_cert_id(cert, &id, diag), 0, "%s", diag_first(diag));
        cr_expect_str_eq(id.fleet, "lab");
        cr_expect_eq(id.role, cases[i].role);
        cr_expect_str_eq(id.name, "box-1");
        cr_expect_eq(id.begin_s, TRUST_NOW - PKI_DAY_S);
        cr_expect_eq(id.end_s, TRUST_NOW + cases[i].days * PKI_DAY_S);
        cr_expect_eq(strlen(id.serial), 32);
        cr_assert_eq(pki_key_hash(key, hash), 0);
        str_hex(hex, hash, sizeof(hash));
        cr_expect_str_eq(id.key_hash, hex);
        X509 *x = pki_cert_x509(cert);
        cr_expect_eq(X509_get_extended_key_usage(x), cases[i].usage);
        cr_expect_eq(X509_get_key_usage(x), (uint32_t)KU_DIGITAL_SIGNATURE);
        cr_expect_eq(X509_check_ca(x), 0);
        cr_expect_eq(X509_get_extension_flags(x) & (EXFLAG_CA | EXFLAG_BCONS), EXFLAG_BCONS);
        cr_expect_eq(X509_check_issued(pki_cert_x509(lab.cert), x), X509_V_OK);
        cr_expect(pki_cert_is_issued_by(cert, lab.cert));
        cr_expect(pki_cert_is_of_key(cert, key));
        cr_expect(!pki_cert_is_of_key(cert, lab.key));
        pki_cert_free(&cert);
        pki_key_free(&key);
        buf_fini(&der);
    }
}

Test(pki_cert, serial_numbers_differ)
{
    struct trust_pair a, b;
    struct pki_id ia, ib;
    trust_issue(&lab, ROLE_WORKER, "p6", &a);
    trust_issue(&lab, ROLE_WORKER, "p6", &b);
    cr_assert_eq(pki_cert_id(a.cert, &ia, NULL), 0);
    cr_assert_eq(pki_cert_id(b.cert, &ib, NULL), 0);
    cr_expect_str_neq(ia.serial, ib.serial);
    trust_free(&a);
    trust_free(&b);
}

Test(pki_cert, names_with_every_character)
{
    struct trust_pair fleet, pair;
    struct pki_id id;
    char longest[65];
    memset(longest, 'x', 64);
    longest[64] = '\0';
    static const char odd[] = "a,b=c+d.e_f-G9,DNS=x";
    trust_authority("f=1,CA+x", &fleet);
    trust_issue(&fleet, ROLE_WORKER, odd, &pair);
    cr_assert_eq(pki_cert_id(pair.cert, &id, NULL), 0);
    cr_expect_str_eq(id.name, odd);
    cr_expect_str_eq(id.fleet, "f=1,CA+x");
    trust_free(&pair);
    trust_free(&fleet);
    trust_authority(longest, &fleet);
    trust_issue(&fleet, ROLE_COORDINATOR, longest, &pair);
    cr_assert_eq(pki_cert_id(pair.cert, &id, NULL), 0);
    cr_expect_str_eq(id.name, longest);
    cr_expect_str_eq(id.fleet, longest);
    struct buf der = BUF_INIT;
    cr_assert_eq(pki_cert_to_der(pair.cert, &der), 0);
    cr_expect_leq(der.len, PKI_CERT_MAX);
    buf_fini(&der);
    trust_free(&pair);
    trust_free(&fleet);
}

Test(pki_cert, what_is_not_issued)
{
    struct buf der = BUF_INIT;
    struct pki_key *key;
    struct pki_cert *cert;
    struct trust_pair worker;
    trust_request(&der, &key);
    trust_issue(&lab, ROLE_WORKER, "p6", &worker);
    cr_expect_eq(
        pki_issue(lab.key, lab.cert, der.data, der.len, ROLE_WORKER, "a:b", TRUST_NOW, &cert, diag),
        -ERR_INVAL);
    cr_expect_eq(
        pki_issue(lab.key, lab.cert, der.data, der.len, ROLE_WORKER, "..", TRUST_NOW, &cert, NULL),
        -ERR_INVAL);
    cr_expect_eq(
        pki_issue(lab.key, lab.cert, der.data, der.len, (enum role)9, "x", TRUST_NOW, &cert, NULL),
        -ERR_INVAL);
    cr_expect_eq(
        pki_issue(key, lab.cert, der.data, der.len, ROLE_WORKER, "x", TRUST_NOW, &cert, NULL),
        -ERR_CONFLICT);
    cr_expect_eq(pki_issue(worker.key, worker.cert, der.data, der.len, ROLE_WORKER, "x", TRUST_NOW,
                           &cert, NULL),
                 -ERR_INVAL);
    cr_expect_eq(pki_issue(lab.key, lab.cert, der.data, der.len - 1, ROLE_WORKER, "x", TRUST_NOW,
                           &cert, NULL),
                 -ERR_INVAL);
    diag_clear(diag);
    cr_expect_eq(pki_issue(lab.key, lab.cert, der.data, der.len, ROLE_WORKER, "x",
                           TRUST_NOW + 3653 * PKI_DAY_S, &cert, diag),
                 -ERR_EXPIRED);
    cr_expect_str_eq(diag_first(diag),
                     "the fleet's authority ended on 2036-11-29 12:00 UTC: a new one must "
                     "be made (makespan init)");
    cr_expect_null(cert);
    trust_free(&worker);
    pki_key_free(&key);
    buf_fini(&der);
}

Test(pki_cert, nothing_outlives_its_authority)
{
    struct buf der = BUF_INIT;
    struct pki_key *key;
    struct pki_cert *cert;
    struct pki_id id;
    trust_request(&der, &key);
    cr_assert_eq(pki_issue(lab.key, lab.cert, der.data, der.len, ROLE_WORKER, "x",
                           TRUST_NOW + 3600 * PKI_DAY_S, &cert, NULL),
                 0);
    cr_assert_eq(pki_cert_id(cert, &id, NULL), 0);
    cr_expect_eq(id.end_s, TRUST_NOW + PKI_AUTHORITY_LIFE_S);
    pki_cert_free(&cert);
    pki_key_free(&key);
    buf_fini(&der);
}

Test(pki_cert, dates_of_all_times)
{
    static const int64_t times[] = {
        0,
        1,
        1796040059,
        2147483647 /* end of a narrow time_t */,
        2147483648,
        2524607999,
        2524608000 /* 2050: from here on written in another way */,
        4102444800,
        253402300799 /* 9999-12-31 23:59:59 */,
    };
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        struct trust_pair pair;
        int64_t begin_s, end_s;
        trust_issue_dated(&lab, ROLE_WORKER, "x", times[i] / 2, times[i], &pair);
        cr_assert_eq(pki_cert_dates(pair.cert, &begin_s, &end_s), 0);
        cr_expect_eq(begin_s, times[i] / 2);
        cr_expect_eq(end_s, times[i], "%" PRId64 " is not %" PRId64, end_s, times[i]);
        trust_free(&pair);
    }
}

/* --- certificates as bytes and files --- */

Test(pki_cert, a_certificate_goes_to_a_file_and_comes_back)
{
    struct buf a = BUF_INIT, b = BUF_INIT;
    struct pki_cert *back;
    cr_assert_eq(pki_cert_write(lab.cert, path, diag), 0, "%s", diag_first(diag));
    cr_assert_eq(pki_cert_write(lab.cert, path, diag), 0, "is replaced");
    cr_assert_eq(pki_cert_read(path, &back, diag), 0, "%s", diag_first(diag));
    cr_assert_eq(pki_cert_to_der(lab.cert, &a), 0);
    cr_assert_eq(pki_cert_to_der(back, &b), 0);
    cr_expect(a.len == b.len && memcmp(a.data, b.data, a.len) == 0);
    pki_cert_free(&back);
    cr_assert_eq(file_write_atomic(path, "nothing", 7, 0600), 0);
    cr_expect_eq(pki_cert_read(path, &back, NULL), -ERR_CORRUPT);
    cr_expect_null(back);
    buf_fini(&a);
    buf_fini(&b);
}

Test(pki_cert, damaged_certificates)
{
    struct buf der = BUF_INIT;
    struct pki_cert *cert;
    cr_assert_eq(pki_cert_to_der(lab.cert, &der), 0);
    for (size_t i = 0; i < der.len; i++) {
        cr_expect_eq(pki_cert_from_der(der.data, i, &cert, NULL), -ERR_CORRUPT, "%zu bytes", i);
        cr_expect_null(cert);
        for (int bit = 0; bit < 8; bit++) {
            /* What can still be read says something else, and is not signed. */
            der.data[i] ^= (uint8_t)(1 << bit);
            if (pki_cert_from_der(der.data, der.len, &cert, NULL) == 0) {
                struct pki_id id;
                (void)!pki_cert_id(cert, &id, NULL);
                cr_expect(!pki_cert_is_issued_by(cert, lab.cert), "bit %d of byte %zu", bit, i);
                pki_cert_free(&cert);
            }
            der.data[i] ^= (uint8_t)(1 << bit);
        }
    }
    buf_add_char(&der, 'x');
    cr_expect_eq(pki_cert_from_der(der.data, der.len, &cert, NULL), -ERR_CORRUPT);
    buf_fini(&der);
    uint8_t *big = calloc(1, PKI_CERT_MAX + 1);
    cr_expect_eq(pki_cert_from_der(big, PKI_CERT_MAX + 1, &cert, NULL), -ERR_CORRUPT);
    free(big);
    cr_expect_eq(ERR_peek_error(), 0);
}

/* A certificate with another subjectAltName and serial number than ours have. */
static struct pki_cert *odd_cert(const char *san, const char *serial)
{
    X509 *x = X509_new();
    BIGNUM *bn = NULL;
    cr_assert_gt(BN_hex2bn(&bn, serial), 0);
    BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(x));
    BN_free(bn);
    X509_set_version(x, X509_VERSION_3);
    X509_set_pubkey(x, pki_key_pkey(lab.key));
    ASN1_TIME_set_string_X509(X509_getm_notBefore(x), "20260101000000Z");
    ASN1_TIME_set_string_X509(X509_getm_notAfter(x), "20270101000000Z");
    if (san != NULL) {
        X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, san);
        cr_assert_not_null(ext);
        X509_add_ext(x, ext, -1);
        X509_EXTENSION_free(ext);
    }
    cr_assert_gt(X509_sign(x, pki_key_pkey(lab.key), EVP_sha256()), 0);
    struct pki_cert *cert = pki_cert_wrap(x);
    X509_free(x);
    return cert;
}

Test(pki_cert, who_a_certificate_is_of)
{
    static const struct {
        const char *san, *serial;
        int result;
    } cases[] = {
        {"URI:urn:makespan:lab:worker:p6", "01", 0},
        {"URI:urn:makespan:lab:worker:p6", "00ff00", 0},
        {"URI:urn:makespan:lab:worker:p6", "ffffffffffffffffffffffffffffffffffffffff", 0},
        {"URI:urn:makespan:lab:worker:p6", "01ffffffffffffffffffffffffffffffffffffffff",
         -ERR_INVAL},
        {"URI:urn:makespan:lab:worker:p6", "-01", -ERR_INVAL},
        {NULL, "01", -ERR_INVAL},
        {"DNS:lab", "01", -ERR_INVAL},
        {"URI:urn:makespan:lab:worker:p6,DNS:p6", "01", -ERR_INVAL},
        {"URI:urn:makespan:lab:worker:p6,URI:urn:makespan:lab:admin:p6", "01", -ERR_INVAL},
        {"email:urn:makespan:lab:worker:p6", "01", -ERR_INVAL},
        {"URI:urn:makespan:lab:worker", "01", -ERR_INVAL},
        {"URI:urn:makespan:lab:worker:", "01", -ERR_INVAL},
        {"URI:urn:makespan::worker:p6", "01", -ERR_INVAL},
        {"URI:urn:makespan:lab:root:p6", "01", -ERR_INVAL},
        {"URI:urn:makespan:lab:Worker:p6", "01", -ERR_INVAL},
        {"URI:urn:makespan:lab:worker:p6:x", "01", -ERR_INVAL},
        {"URI:urn:makespan:lab:worker:..", "01", -ERR_INVAL},
        {"URI:urn:makespan:lab:a-role-with-a-name-longer-than-any-role:p6", "01", -ERR_INVAL},
        {"URI:URN:makespan:lab:worker:p6", "01", -ERR_INVAL},
        {"URI:urn:other:lab:worker:p6", "01", -ERR_INVAL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pki_cert *cert = odd_cert(cases[i].san, cases[i].serial);
        struct pki_id id;
        cr_expect_eq(pki_cert_id(cert, &id, NULL), cases[i].result, "%s %s", cases[i].san,
                     cases[i].serial);
        if (cases[i].result == 0) {
            cr_expect_str_eq(id.name, "p6");
            cr_expect(strlen(id.serial) == strlen(cases[i].serial) || str_eq(id.serial, "ff00"),
                      "%s", id.serial);
        } else {
            cr_expect_str_eq(id.name, "");
        }
        pki_cert_free(&cert);
    }
}

Test(pki_cert, a_name_with_a_nul_inside)
{
    GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_IA5STRING *uri = ASN1_IA5STRING_new();
    static const char text[] = "urn:makespan:lab:admin:a\0.example";
    ASN1_STRING_set(uri, text, sizeof(text) - 1);
    GENERAL_NAME_set0_value(name, GEN_URI, uri);
    sk_GENERAL_NAME_push(names, name);
    struct pki_cert *cert = odd_cert(NULL, "01");
    cr_assert_eq(
        X509_add1_ext_i2d(pki_cert_x509(cert), NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT),
        1);
    struct pki_id id;
    cr_expect_eq(pki_cert_id(cert, &id, NULL), -ERR_INVAL);
    sk_GENERAL_NAME_pop_free(names, GENERAL_NAME_free);
    pki_cert_free(&cert);
}

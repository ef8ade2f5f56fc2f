/* Keys and their files, requests, hashes, times as text. The authority and its certificates:
 * pki_cert_test.c. */
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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char folder[200];
static char path[256];
static struct diag *diag;
static struct trust_pair lab;

static void set_up(void)
{
    place_new_dir(folder, sizeof(folder), "makespan-pki");
    snprintf(path, sizeof(path), "%s/key.pem", folder);
    diag = diag_new(8);
    trust_authority("lab", &lab);
}

static void tear_down(void)
{
    trust_free(&lab);
    diag_free(&diag);
    cr_expect_eq(file_remove_tree(folder), 0);
}

TestSuite(pki, .init = set_up, .fini = tear_down);

/* --- keys --- */

Test(pki, a_key_goes_to_a_file_and_comes_back)
{
    struct pki_key *key, *back;
    uint8_t a[PKI_HASH_SIZE], b[PKI_HASH_SIZE];
    struct stat st;
    cr_assert_eq(pki_key_make(&key, NULL), 0);
    umask(0);
    cr_assert_eq(pki_key_write(key, path, diag), 0, "%s", diag_first(diag));
    cr_assert_eq(stat(path, &st), 0);
    cr_expect_eq(st.st_mode & 07777, 0600);
    cr_assert_eq(pki_key_read(path, &back, diag), 0, "%s", diag_first(diag));
    cr_assert_eq(pki_key_hash(key, a), 0);
    cr_assert_eq(pki_key_hash(back, b), 0);
    cr_expect_eq(memcmp(a, b, sizeof(a)), 0);
    pki_key_free(&key);
    pki_key_free(&back);
    pki_key_free(&back);
}

Test(pki, a_key_is_never_overwritten)
{
    struct pki_key *key, *other, *back;
    uint8_t a[PKI_HASH_SIZE], b[PKI_HASH_SIZE];
    cr_assert_eq(pki_key_make(&key, NULL), 0);
    cr_assert_eq(pki_key_make(&other, NULL), 0);
    cr_assert_eq(pki_key_write(key, path, NULL), 0);
    cr_expect_eq(pki_key_write(other, path, diag), -ERR_EXISTS);
    cr_expect(strstr(diag_first(diag), "a key is never overwritten") != NULL);
    cr_assert_eq(pki_key_read(path, &back, NULL), 0);
    cr_assert_eq(pki_key_hash(key, a), 0);
    cr_assert_eq(pki_key_hash(back, b), 0);
    cr_expect_eq(memcmp(a, b, sizeof(a)), 0);
    pki_key_free(&key);
    pki_key_free(&other);
    pki_key_free(&back);
    cr_expect_eq(pki_key_read("/nonexistent/key.pem", &back, diag), -ERR_NOTFOUND);
    cr_expect_null(back);
}

Test(pki, a_key_that_others_can_read_is_refused)
{
    struct pki_key *key, *back;
    cr_assert_eq(pki_key_make(&key, NULL), 0);
    cr_assert_eq(pki_key_write(key, path, NULL), 0);
    char link_path[256];
    snprintf(link_path, sizeof(link_path), "%s/link.pem", folder);
    cr_assert_eq(symlink("key.pem", link_path), 0);
    static const struct {
        mode_t mode;
        int result;
    } cases[] = {{0600, 0},           {0400, 0},           {0640, 0},          {0604, -ERR_DENIED},
                 {0644, -ERR_DENIED}, {0660, -ERR_DENIED}, {0602, -ERR_DENIED}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cr_assert_eq(chmod(path, cases[i].mode), 0);
        cr_expect_eq(pki_key_read(path, &back, diag), cases[i].result, "%o",
                     (unsigned)cases[i].mode);
        pki_key_free(&back);
        cr_expect_eq(pki_key_read(link_path, &back, diag), cases[i].result, "%o by a link",
                     (unsigned)cases[i].mode);
        pki_key_free(&back);
    }
    cr_expect(strstr(diag_first(diag), "it must have mode 0600 or 0640") != NULL);
    pki_key_free(&key);
}

static void write_pem(EVP_PKEY *pkey, const char *passphrase)
{
    BIO *bio = BIO_new_file(path, "w");
    cr_assert_not_null(bio);
    cr_assert_eq(PEM_write_bio_PKCS8PrivateKey(
                     bio, pkey, passphrase != NULL ? EVP_aes_128_cbc() : NULL, passphrase,
                     passphrase != NULL ? (int)strlen(passphrase) : 0, NULL, NULL),
                 1);
    BIO_free(bio);
    cr_assert_eq(chmod(path, 0600), 0);
}

static void expect_no_key(const char *text)
{
    struct pki_key *key;
    diag_clear(diag);
    cr_expect_eq(pki_key_read(path, &key, diag), -ERR_CORRUPT);
    cr_expect_null(key);
    cr_expect(strstr(diag_first(diag), text) != NULL, "%s", diag_first(diag));
}

Test(pki, other_keys_are_refused)
{
    EVP_PKEY *pkey = EVP_EC_gen("P-384");
    write_pem(pkey, NULL);
    expect_no_key("is not a key on the curve P-256");
    EVP_PKEY_free(pkey);
    pkey = EVP_RSA_gen(2048);
    write_pem(pkey, NULL);
    expect_no_key("is not a key on the curve P-256");
    EVP_PKEY_free(pkey);
    pkey = EVP_EC_gen("P-256");
    write_pem(pkey, "secret"); /* and nobody is asked for it */
    expect_no_key("holds no private key without passphrase");
    EVP_PKEY_free(pkey);
    cr_assert_eq(file_write_atomic(path, "nothing", 7, 0600), 0);
    expect_no_key("holds no private key");
    cr_assert_eq(file_write_atomic(path, "", 0, 0600), 0);
    expect_no_key("holds no private key");
}

/* --- requests --- */

Test(pki, a_request_proves_its_key)
{
    struct buf der = BUF_INIT;
    struct pki_key *key;
    uint8_t mine[PKI_HASH_SIZE], asked[PKI_HASH_SIZE];
    trust_request(&der, &key);
    cr_expect_leq(der.len, PKI_REQUEST_MAX);
    cr_assert_eq(pki_request_check(der.data, der.len, asked, diag), 0, "%s", diag_first(diag));
    cr_assert_eq(pki_key_hash(key, mine), 0);
    cr_expect_eq(memcmp(mine, asked, sizeof(mine)), 0);
    pki_key_free(&key);
    buf_fini(&der);
}

Test(pki, a_damaged_request_is_refused)
{
    struct buf der = BUF_INIT;
    struct pki_key *key;
    uint8_t hash[PKI_HASH_SIZE];
    trust_request(&der, &key);
    for (size_t i = 0; i < der.len; i++) {
        cr_expect_eq(pki_request_check(der.data, i, hash, NULL), -ERR_INVAL, "%zu bytes", i);
        for (int bit = 0; bit < 8; bit++) {
            der.data[i] ^= (uint8_t)(1 << bit);
            cr_expect_eq(pki_request_check(der.data, der.len, hash, NULL), -ERR_INVAL,
                         "bit %d of byte %zu", bit, i);
            der.data[i] ^= (uint8_t)(1 << bit);
        }
    }
    buf_add_char(&der, '\0');
    cr_expect_eq(pki_request_check(der.data, der.len, hash, diag), -ERR_INVAL);
    cr_expect(str_starts(diag_first(diag), "the certificate request is damaged"));
    buf_reset(&der);
    for (int i = 0; i < PKI_REQUEST_MAX + 1; i++) {
        buf_add_char(&der, '0');
    }
    cr_expect_eq(pki_request_check(der.data, der.len, hash, NULL), -ERR_INVAL);
    cr_expect_eq(ERR_peek_error(), 0, "OpenSSL's errors are not left to the next who asks");
    pki_key_free(&key);
    buf_fini(&der);
}

/* A request as no program of ours makes it. */
static size_t odd_request(EVP_PKEY *pkey, EVP_PKEY *signer, uint8_t **der)
{
    X509_REQ *req = X509_REQ_new();
    X509_NAME *name = X509_REQ_get_subject_name(req);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"admin", -1, -1, 0);
    X509_EXTENSION *ext =
        X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "URI:urn:makespan:lab:admin:mallory");
    X509_EXTENSION *ca = X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:TRUE");
    STACK_OF(X509_EXTENSION) *list = sk_X509_EXTENSION_new_null();
    sk_X509_EXTENSION_push(list, ext);
    sk_X509_EXTENSION_push(list, ca);
    cr_assert_eq(X509_REQ_add_extensions(req, list), 1);
    sk_X509_EXTENSION_pop_free(list, X509_EXTENSION_free);
    cr_assert_eq(X509_REQ_set_pubkey(req, pkey), 1);
    cr_assert_gt(X509_REQ_sign(req, signer, EVP_sha256()), 0);
    *der = NULL;
    int n = i2d_X509_REQ(req, der);
    cr_assert_gt(n, 0);
    X509_REQ_free(req);
    return (size_t)n;
}

Test(pki, requests_with_another_kind_of_key_or_signer)
{
    uint8_t *der;
    uint8_t hash[PKI_HASH_SIZE];
    EVP_PKEY *p256 = EVP_EC_gen("P-256");
    EVP_PKEY *another = EVP_EC_gen("P-256");
    EVP_PKEY *p384 = EVP_EC_gen("P-384");
    EVP_PKEY *rsa = EVP_RSA_gen(2048);
    size_t n = odd_request(p384, p384, &der);
    cr_expect_eq(pki_request_check(der, n, hash, diag), -ERR_INVAL);
    cr_expect(str_starts(diag_first(diag),
                         "the key of a certificate request must be on the curve P-256"));
    OPENSSL_free(der);
    n = odd_request(rsa, rsa, &der);
    cr_expect_eq(pki_request_check(der, n, hash, NULL), -ERR_INVAL);
    OPENSSL_free(der);
    diag_clear(diag);
    n = odd_request(p256, another, &der);
    cr_expect_eq(pki_request_check(der, n, hash, diag), -ERR_INVAL);
    cr_expect(str_starts(diag_first(diag), "the certificate request is not signed by its key"),
              "%s", diag_first(diag));
    OPENSSL_free(der);
    EVP_PKEY_free(p256);
    EVP_PKEY_free(another);
    EVP_PKEY_free(p384);
    EVP_PKEY_free(rsa);
}

Test(pki, what_a_request_says_of_its_holder_is_not_believed)
{
    uint8_t *der;
    struct pki_cert *cert;
    struct pki_id id;
    EVP_PKEY *pkey = EVP_EC_gen("P-256");
    size_t n = odd_request(pkey, pkey, &der);
    cr_assert_eq(pki_issue(lab.key, lab.cert, der, n, ROLE_WORKER, "p6", TRUST_NOW, &cert, NULL),
                 0);
    cr_assert_eq(pki_cert_id(cert, &id, NULL), 0);
    cr_expect_eq(id.role, ROLE_WORKER);
    cr_expect_str_eq(id.name, "p6");
    cr_expect_eq(X509_check_ca(pki_cert_x509(cert)), 0);
    cr_expect_eq(X509_get_ext_count(pki_cert_x509(cert)), 6);
    char *subject = X509_NAME_oneline(X509_get_subject_name(pki_cert_x509(cert)), NULL, 0);
    cr_expect_str_eq(subject, "/O=lab/OU=worker/CN=p6");
    OPENSSL_free(subject);
    OPENSSL_free(der);
    EVP_PKEY_free(pkey);
    pki_cert_free(&cert);
}

/* --- small things --- */

Test(pki, time_as_text)
{
    char text[PKI_TIME_TEXT], expected[PKI_TIME_TEXT];
    cr_expect_str_eq(pki_time_text(text, TRUST_NOW), "2026-11-30 12:00 UTC");
    cr_expect_str_eq(pki_time_text(text, -1), "1969-12-31 23:59 UTC");
    cr_expect_str_eq(pki_time_text(text, INT64_MIN), "0000-01-01 00:00 UTC");
    cr_expect_str_eq(pki_time_text(text, INT64_MAX), "9999-12-31 23:59 UTC");
    for (int64_t s = -INT64_C(60000000000); s < INT64_C(250000000000); s += 86400 * 17 + 12345) {
        time_t t = (time_t)s;
        struct tm tm;
        if ((int64_t)t != s || gmtime_r(&t, &tm) == NULL) {
            continue; /* a narrow time_t */
        }
        snprintf(expected, sizeof(expected), "%04d-%02d-%02d %02d:%02d UTC", tm.tm_year + 1900,
                 tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min);
        cr_assert_str_eq(pki_time_text(text, s), expected, "%" PRId64, s);
    }
}

Test(pki, hash_and_comparison)
{
    uint8_t hash[PKI_HASH_SIZE];
    char hex[PKI_HASH_TEXT];
    pki_sha256("abc", 3, hash);
    str_hex(hex, hash, sizeof(hash));
    cr_expect_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    cr_expect(pki_equal("abcd", "abce", 3));
    cr_expect(!pki_equal("abcd", "abce", 4));
}

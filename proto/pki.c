/* pki.c: private keys with their files, hashes, the text of a time, and how OpenSSL's errors are
 * told. Certificates are read in pki_cert.c and made in pki_issue.c. */
#include "proto/pki.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/mem.h"
#include "common/str.h"
#include "proto/pki_ossl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_FILE_MAX 16384
#define P256_SPKI_SIZE 91 /* DER of a named P-256 key with an uncompressed point */

struct pki_key {
    EVP_PKEY *pkey;
};

int pki_fail(struct diag *diag, int code, const char *fmt, ...)
{
    struct buf text = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    unsigned long e = ERR_get_error();
    const char *reason = e != 0 ? ERR_reason_error_string(e) : NULL;
    if (reason != NULL) {
        buf_printf(&text, ": %s", reason);
    } else if (e != 0) {
        buf_printf(&text, ": error %lx of OpenSSL", e);
    }
    ERR_clear_error();
    int result = diag_error(diag, code, "%s", buf_str(&text));
    buf_fini(&text);
    return result;
}

/* Files with a passphrase are refused: a daemon has nobody to ask, and OpenSSL would ask a
 * terminal. */
static int no_passphrase(char *dst, int room, int writing, void *arg)
{
    (void)dst;
    (void)room;
    (void)writing;
    (void)arg;
    return 0;
}

static int spki_hash(EVP_PKEY *pkey, uint8_t hash[PKI_HASH_SIZE], int *length)
{
    uint8_t *der = NULL;
    int n = i2d_PUBKEY(pkey, &der);
    if (n <= 0) {
        ERR_clear_error();
        return -ERR_TLS;
    }
    pki_sha256(der, (size_t)n, hash);
    OPENSSL_free(der);
    *length = n;
    return 0;
}

/* An elliptic key on the named curve P-256: the encoding of any other has another length. */
static bool is_p256(EVP_PKEY *pkey)
{
    char group[32];
    size_t n = 0;
    uint8_t hash[PKI_HASH_SIZE];
    int length = 0;
    bool yes = EVP_PKEY_is_a(pkey, "EC") == 1 &&
               EVP_PKEY_get_group_name(pkey, group, sizeof(group), &n) == 1 &&
               strcmp(group, SN_X9_62_prime256v1) == 0 && spki_hash(pkey, hash, &length) == 0 &&
               length == P256_SPKI_SIZE;
    ERR_clear_error();
    return yes;
}

static struct pki_key *key_wrap(EVP_PKEY *pkey)
{
    struct pki_key *key = mem_xzalloc(sizeof(*key));
    key->pkey = pkey;
    return key;
}

int pki_key_make(struct pki_key **out, struct diag *diag)
{
    *out = NULL;
    EVP_PKEY *pkey = EVP_EC_gen("P-256");
    if (pkey == NULL) {
        return pki_fail(diag, ERR_TLS, "no key could be made");
    }
    *out = key_wrap(pkey);
    return 0;
}

void pki_key_free(struct pki_key **key)
{
    if (*key == NULL) {
        return;
    }
    EVP_PKEY_free((*key)->pkey);
    free(*key);
    *key = NULL;
}

EVP_PKEY *pki_key_pkey(const struct pki_key *key)
{
    return key->pkey;
}

int pki_key_hash(const struct pki_key *key, uint8_t hash[PKI_HASH_SIZE])
{
    int length;
    return spki_hash(key->pkey, hash, &length);
}

/* The folder of a path, so that a new file's name can be synced too. */
static int sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return file_sync_dir(".");
    }
    char *dir = mem_xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
    int err = file_sync_dir(dir);
    free(dir);
    return err;
}

static int write_new(const char *path, const void *data, size_t n, struct diag *diag)
{
    struct file *file;
    int err = file_open(path, FILE_WRITE | FILE_CREATE | FILE_EXCL | FILE_NOFOLLOW, 0600, &file);
    if (err == -ERR_EXISTS) {
        return diag_error(diag, err, "%s: is there already, and a key is never overwritten", path);
    }
    if (err < 0) {
        return diag_error(diag, err, "%s: %s", path, err_text(err));
    }
    err = file_write_at(file, 0, data, n);
    if (err == 0) {
        err = file_sync(file);
    }
    file_close(&file);
    if (err == 0) {
        err = sync_folder(path);
    }
    if (err < 0) {
        diag_error(diag, err, "%s: %s", path, err_text(err));
        int removed = file_remove(path);
        if (removed < 0) {
            diag_error(diag, removed, "%s: an incomplete key is left there", path);
        }
    }
    return err;
}

int pki_key_write(const struct pki_key *key, const char *path, struct diag *diag)
{
    BIO *bio = BIO_new(BIO_s_secmem());
    if (bio == NULL ||
        PEM_write_bio_PKCS8PrivateKey(bio, key->pkey, NULL, NULL, 0, NULL, NULL) != 1) {
        BIO_free(bio);
        return pki_fail(diag, ERR_TLS, "%s: the key cannot be written as text", path);
    }
    char *pem;
    long n = BIO_get_mem_data(bio, &pem);
    int err = write_new(path, pem, n > 0 ? (size_t)n : 0, diag);
    BIO_free(bio);
    return err;
}

/* Of the file itself, also where the path is a link. */
static int check_mode(const char *path, struct diag *diag)
{
    struct file_stat st;
    int err = file_stat(path, &st);
    if (err == 0 && st.type == FILE_T_LINK) {
        char *target = realpath(path, NULL);
        err = target != NULL ? file_stat(target, &st) : err_from_errno(errno);
        free(target);
    }
    if (err < 0) {
        return diag_error(diag, err, "%s: %s", path, err_text(err));
    }
    if (st.type == FILE_T_FILE && (st.mode & 0037) != 0) {
        return diag_error(diag, ERR_DENIED,
                          "%s: others can read or change this key: it must have mode 0600 or 0640",
                          path);
    }
    return 0;
}

int pki_key_read(const char *path, struct pki_key **out, struct diag *diag)
{
    *out = NULL;
    int err = check_mode(path, diag);
    if (err < 0) {
        return err;
    }
    struct buf pem = BUF_INIT;
    err = file_read_all(path, KEY_FILE_MAX, &pem);
    if (err < 0) {
        buf_fini(&pem);
        return diag_error(diag, err, "%s: %s", path, err_text(err));
    }
    BIO *bio = BIO_new_mem_buf(buf_str(&pem), (int)pem.len);
    EVP_PKEY *pkey = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
    BIO_free(bio);
    if (pem.len > 0) {
        OPENSSL_cleanse(pem.data, pem.len);
    }
    buf_fini(&pem);
    if (pkey == NULL) {
        return pki_fail(diag, ERR_CORRUPT, "%s: holds no private key without passphrase", path);
    }
    if (!is_p256(pkey)) {
        EVP_PKEY_free(pkey);
        return diag_error(diag, ERR_CORRUPT, "%s: is not a key on the curve P-256", path);
    }
    *out = key_wrap(pkey);
    return 0;
}

/* --- requests: checked here, beside what a key must be --- */

int pki_request_check(const uint8_t *der, size_t n, uint8_t key_hash[PKI_HASH_SIZE],
                      struct diag *diag)
{
    if (n == 0 || n > PKI_REQUEST_MAX) {
        return diag_error(diag, ERR_INVAL, "a certificate request has 1 to %d bytes, not %zu",
                          PKI_REQUEST_MAX, n);
    }
    const uint8_t *p = der;
    X509_REQ *req = d2i_X509_REQ(NULL, &p, (long)n);
    if (req == NULL || p != der + n) {
        X509_REQ_free(req);
        return pki_fail(diag, ERR_INVAL, "the certificate request is damaged");
    }
    int err = 0;
    int length;
    EVP_PKEY *pkey = X509_REQ_get0_pubkey(req);
    if (pkey == NULL || !is_p256(pkey)) {
        err = pki_fail(diag, ERR_INVAL,
                       "the key of a certificate request must be on the curve P-256");
    } else if (X509_REQ_verify(req, pkey) != 1) {
        err = pki_fail(diag, ERR_INVAL, "the certificate request is not signed by its key");
    } else if (spki_hash(pkey, key_hash, &length) < 0) {
        err = pki_fail(diag, ERR_INVAL, "the key of the certificate request cannot be read");
    }
    X509_REQ_free(req);
    return err;
}

int pki_request_make(const struct pki_key *key, struct buf *der, struct diag *diag)
{
    X509_REQ *req = X509_REQ_new();
    uint8_t *bytes = NULL;
    int n = -1;
    if (req != NULL && X509_REQ_set_version(req, X509_REQ_VERSION_1) == 1 &&
        X509_REQ_set_pubkey(req, key->pkey) == 1 &&
        X509_REQ_sign(req, key->pkey, EVP_sha256()) > 0) {
        n = i2d_X509_REQ(req, &bytes);
    }
    X509_REQ_free(req);
    if (n <= 0) {
        return pki_fail(diag, ERR_TLS, "no certificate request could be made");
    }
    buf_add(der, bytes, (size_t)n);
    OPENSSL_free(bytes);
    return der->err < 0 ? diag_error(diag, der->err, "%s", err_text(der->err)) : 0;
}

/* --- small things --- */

void pki_sha256(const void *data, size_t n, uint8_t hash[PKI_HASH_SIZE])
{
    SHA256(data, n, hash);
}

bool pki_equal(const void *a, const void *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}

/* Days since 1970-01-01 to year, month and day of the Gregorian calendar. Years are counted from
 * March, so that the leap day is the last; 719468 days lie between 0000-03-01 and 1970-01-01, and
 * an era is 400 years of 146097 days. */
static void civil(int64_t days, int64_t *year, int *month, int *day)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t in_era = z - era * 146097;
    int64_t y = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * y + y / 4 - y / 100);
    int64_t m = (5 * in_year + 2) / 153;
    *day = (int)(in_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = y + era * 400 + (*month <= 2 ? 1 : 0);
}

const char *pki_time_text(char dst[PKI_TIME_TEXT], int64_t s)
{
    const int64_t first = INT64_C(-62167219200); /* 0000-01-01 */
    const int64_t last = INT64_C(253402300799);  /* 9999-12-31 23:59:59 */
    s = s < first ? first : s > last ? last : s;
    int64_t days = (s - (s < 0 ? PKI_DAY_S - 1 : 0)) / PKI_DAY_S;
    int rest = (int)(s - days * PKI_DAY_S);
    int64_t year;
    int month, day;
    civil(days, &year, &month, &day);
    snprintf(dst, PKI_TIME_TEXT, "%04d-%02d-%02d %02d:%02d UTC", (int)year, month, day, rest / 3600,
             rest / 60 % 60);
    return dst;
}

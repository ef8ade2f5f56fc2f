/* pki_cert.c: certificates as they are read: from bytes and files, whom they name, when they hold,
 * and whose key they carry. Trust is not decided here (tls.c), making is pki_issue.c. */
#include "proto/pki.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/mem.h"
#include "common/str.h"
#include "proto/pki_ossl.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CERT_FILE_MAX 65536
#define URN "urn:makespan:"

struct pki_cert {
    X509 *x509;
};

struct pki_cert *pki_cert_wrap(X509 *x509)
{
    struct pki_cert *cert = mem_xzalloc(sizeof(*cert));
    X509_up_ref(x509);
    cert->x509 = x509;
    return cert;
}

void pki_cert_free(struct pki_cert **cert)
{
    if (*cert == NULL) {
        return;
    }
    X509_free((*cert)->x509);
    free(*cert);
    *cert = NULL;
}

X509 *pki_cert_x509(const struct pki_cert *cert)
{
    return cert->x509;
}

int pki_cert_from_der(const uint8_t *der, size_t n, struct pki_cert **out, struct diag *diag)
{
    *out = NULL;
    if (n == 0 || n > PKI_CERT_MAX) {
        return diag_error(diag, ERR_CORRUPT, "a certificate has 1 to %d bytes, not %zu",
                          PKI_CERT_MAX, n);
    }
    const uint8_t *p = der;
    X509 *x509 = d2i_X509(NULL, &p, (long)n);
    if (x509 == NULL || p != der + n) {
        X509_free(x509);
        return pki_fail(diag, ERR_CORRUPT, "the certificate is damaged");
    }
    *out = pki_cert_wrap(x509);
    X509_free(x509);
    return 0;
}

int pki_cert_to_der(const struct pki_cert *cert, struct buf *der)
{
    uint8_t *bytes = NULL;
    int n = i2d_X509(cert->x509, &bytes);
    if (n <= 0) {
        ERR_clear_error();
        return -ERR_TLS;
    }
    buf_add(der, bytes, (size_t)n);
    OPENSSL_free(bytes);
    return der->err;
}

int pki_cert_write(const struct pki_cert *cert, const char *path, struct diag *diag)
{
    BIO *bio = BIO_new(BIO_s_mem());
    if (bio == NULL || PEM_write_bio_X509(bio, cert->x509) != 1) {
        BIO_free(bio);
        return pki_fail(diag, ERR_TLS, "%s: the certificate cannot be written as text", path);
    }
    char *pem;
    long n = BIO_get_mem_data(bio, &pem);
    int err = file_write_atomic(path, pem, n > 0 ? (size_t)n : 0, 0644);
    BIO_free(bio);
    return err < 0 ? diag_error(diag, err, "%s: %s", path, err_text(err)) : 0;
}

int pki_cert_read(const char *path, struct pki_cert **out, struct diag *diag)
{
    *out = NULL;
    struct buf pem = BUF_INIT;
    int err = file_read_all(path, CERT_FILE_MAX, &pem);
    if (err < 0) {
        buf_fini(&pem);
        return diag_error(diag, err, "%s: %s", path, err_text(err));
    }
    BIO *bio = BIO_new_mem_buf(buf_str(&pem), (int)pem.len);
    X509 *x509 = bio != NULL ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    BIO_free(bio);
    buf_fini(&pem);
    if (x509 == NULL) {
        return pki_fail(diag, ERR_CORRUPT, "%s: holds no certificate", path);
    }
    *out = pki_cert_wrap(x509);
    X509_free(x509);
    return 0;
}

/* --- dates --- */

/* Days since 1970-01-01 of a date of the Gregorian calendar: the inverse of civil() in pki.c. */
static int64_t days_of(int64_t year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t in_era = y - era * 400;
    int64_t in_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

/* By the parts of the date: time_t ends in 2038 on some of the systems that read certificates. */
static int time_of(const ASN1_TIME *from, int64_t *s)
{
    struct tm tm;
    if (from == NULL || ASN1_TIME_to_tm(from, &tm) != 1) {
        ERR_clear_error();
        return -ERR_INVAL;
    }
    *s = days_of((int64_t)tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday) * PKI_DAY_S +
         (int64_t)tm.tm_hour * 3600 + tm.tm_min * 60 + tm.tm_sec;
    return 0;
}

int pki_cert_dates(const struct pki_cert *cert, int64_t *begin_s, int64_t *end_s)
{
    int err = time_of(X509_get0_notBefore(cert->x509), begin_s);
    return err < 0 ? err : time_of(X509_get0_notAfter(cert->x509), end_s);
}

/* --- identity --- */

/* "FLEET:ROLE:NAME" into id. */
static bool split_urn(const char *s, struct pki_id *id)
{
    const char *first = strchr(s, ':');
    const char *second = first != NULL ? strchr(first + 1, ':') : NULL;
    if (second == NULL || (size_t)(first - s) >= sizeof(id->fleet)) {
        return false;
    }
    memcpy(id->fleet, s, (size_t)(first - s));
    id->fleet[first - s] = '\0';
    char role[32];
    size_t n = (size_t)(second - first - 1);
    if (n >= sizeof(role)) {
        return false;
    }
    memcpy(role, first + 1, n);
    role[n] = '\0';
    id->role = (enum role)vocab_role_of(role);
    return str_copy(id->name, sizeof(id->name), second + 1) < sizeof(id->name) && id->role != 0 &&
           str_is_name(id->fleet) && str_is_name(id->name);
}

/* The one SAN entry, which must be a URI of ours. */
static bool read_urn(X509 *x509, struct pki_id *id)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(x509, NID_subject_alt_name, NULL, NULL);
    bool ok = false;
    if (names != NULL && sk_GENERAL_NAME_num(names) == 1) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, 0);
        if (name->type == GEN_URI) {
            const ASN1_IA5STRING *uri = name->d.uniformResourceIdentifier;
            const char *s = (const char *)ASN1_STRING_get0_data(uri);
            int n = ASN1_STRING_length(uri);
            ok = n > 0 && strlen(s) == (size_t)n && str_starts(s, URN) &&
                 split_urn(s + strlen(URN), id);
        }
    }
    GENERAL_NAMES_free(names);
    return ok;
}

static bool read_serial(const X509 *x509, char hex[41])
{
    BIGNUM *bn = ASN1_INTEGER_to_BN(X509_get0_serialNumber(x509), NULL);
    uint8_t bytes[20];
    bool ok = bn != NULL && !BN_is_negative(bn) && BN_num_bytes(bn) <= (int)sizeof(bytes);
    if (ok) {
        int n = BN_num_bytes(bn) > 0 ? BN_num_bytes(bn) : 1;
        ok = BN_bn2binpad(bn, bytes, n) == n;
        str_hex(hex, bytes, (size_t)n);
    }
    BN_free(bn);
    return ok;
}

int pki_cert_id(const struct pki_cert *cert, struct pki_id *out, struct diag *diag)
{
    uint8_t hash[PKI_HASH_SIZE];
    memset(out, 0, sizeof(*out));
    int err = 0;
    if (!read_urn(cert->x509, out)) {
        err = pki_fail(diag, ERR_INVAL, "the certificate names nobody of a fleet");
    } else if (!read_serial(cert->x509, out->serial)) {
        err = pki_fail(diag, ERR_INVAL, "the certificate's serial number cannot be used");
    } else if (pki_cert_key_hash(cert, hash) < 0) {
        err = pki_fail(diag, ERR_INVAL, "the certificate's key cannot be read");
    } else if (pki_cert_dates(cert, &out->begin_s, &out->end_s) < 0) {
        err = diag_error(diag, ERR_INVAL, "the certificate's dates cannot be read");
    }
    if (err < 0) {
        memset(out, 0, sizeof(*out));
        return err;
    }
    str_hex(out->key_hash, hash, sizeof(hash));
    return 0;
}

int pki_cert_fleet(const struct pki_cert *authority, char fleet[65], struct diag *diag)
{
    fleet[0] = '\0';
    const X509_NAME *subject = X509_get_subject_name(authority->x509);
    char text[66];
    int n = X509_NAME_get_text_by_NID(subject, NID_organizationName, text, sizeof(text));
    if (X509_check_ca(authority->x509) != 1 || n <= 0 || n > 64 || strlen(text) != (size_t)n ||
        !str_is_name(text)) {
        return pki_fail(diag, ERR_INVAL, "the certificate is not that of a fleet's authority");
    }
    str_copy(fleet, 65, text);
    return 0;
}

int pki_cert_key_hash(const struct pki_cert *cert, uint8_t hash[PKI_HASH_SIZE])
{
    uint8_t *der = NULL;
    int n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert->x509), &der);
    if (n <= 0) {
        ERR_clear_error();
        return -ERR_INVAL;
    }
    pki_sha256(der, (size_t)n, hash);
    OPENSSL_free(der);
    return 0;
}

bool pki_cert_is_of_key(const struct pki_cert *cert, const struct pki_key *key)
{
    bool yes = X509_check_private_key(cert->x509, pki_key_pkey(key)) == 1;
    ERR_clear_error();
    return yes;
}

bool pki_cert_is_issued_by(const struct pki_cert *cert, const struct pki_cert *authority)
{
    EVP_PKEY *pkey = X509_get0_pubkey(authority->x509);
    bool yes = pkey != NULL && X509_verify(cert->x509, pkey) == 1;
    ERR_clear_error();
    return yes;
}

/* pki_issue.c: the authority and what it signs. Every field of a new certificate comes from the
 * caller; of the holder's request only the key is used. */
#include "proto/pki.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/rand.h"
#include "common/str.h"
#include "proto/pki_ossl.h"

#include <stdio.h>
#include <string.h>

#define SERIAL_SIZE 16
#define URN_MAX 192

int64_t pki_life_s(enum role role)
{
    switch (role) {
    case ROLE_COORDINATOR:
        return PKI_COORDINATOR_LIFE_S;
    case ROLE_WORKER:
        return PKI_WORKER_LIFE_S;
    case ROLE_VIEWER:
    case ROLE_SUBMITTER:
    case ROLE_ADMIN:
        break;
    }
    return PKI_OPERATOR_LIFE_S;
}

/* Random, positive, and always of the same length. */
static bool set_serial(X509 *x509)
{
    uint8_t bytes[SERIAL_SIZE];
    rand_bytes(bytes, sizeof(bytes));
    bytes[0] = (uint8_t)((bytes[0] & 0x3f) | 0x40);
    BIGNUM *bn = BN_bin2bn(bytes, sizeof(bytes), NULL);
    bool ok = bn != NULL && BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(x509)) != NULL;
    BN_free(bn);
    return ok;
}

/* By text, because time_t ends in 2038 on some systems. */
static bool set_time(ASN1_TIME *to, int64_t s)
{
    char text[PKI_TIME_TEXT];
    pki_time_text(text, s); /* "YYYY-MM-DD HH:MM UTC" */
    int64_t rest = s % 60;
    char der[24];
    snprintf(der, sizeof(der), "%.4s%.2s%.2s%.2s%.2s%02dZ", text, text + 5, text + 8, text + 11,
             text + 14, (int)(rest < 0 ? rest + 60 : rest));
    return ASN1_TIME_set_string_X509(to, der) == 1;
}

static bool set_dates(X509 *x509, int64_t begin_s, int64_t end_s)
{
    return set_time(X509_getm_notBefore(x509), begin_s) &&
           set_time(X509_getm_notAfter(x509), end_s);
}

static bool add_text(X509_NAME *name, int nid, const char *text)
{
    return X509_NAME_add_entry_by_NID(name, nid, MBSTRING_UTF8, (const unsigned char *)text, -1, -1,
                                      0) == 1;
}

static bool add_ext(X509 *x509, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, x509, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = ext != NULL && X509_add_ext(x509, ext, -1) == 1;
    X509_EXTENSION_free(ext);
    return ok;
}

/* Not by text: names may hold the commas at which OpenSSL splits it. */
static bool add_urn(X509 *x509, const char *urn)
{
    GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_IA5STRING *uri = ASN1_IA5STRING_new();
    bool ok = names != NULL && name != NULL && uri != NULL && ASN1_STRING_set(uri, urn, -1) == 1;
    if (ok) {
        GENERAL_NAME_set0_value(name, GEN_URI, uri);
        uri = NULL;
        ok = sk_GENERAL_NAME_push(names, name) > 0;
        name = ok ? NULL : name;
        ok = ok && X509_add1_ext_i2d(x509, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) == 1;
    }
    ASN1_IA5STRING_free(uri);
    GENERAL_NAME_free(name);
    sk_GENERAL_NAME_pop_free(names, GENERAL_NAME_free);
    return ok;
}

static int hand_over(X509 *x509, bool ok, const char *what, struct pki_cert **out,
                     struct diag *diag)
{
    int err = 0;
    if (ok) {
        *out = pki_cert_wrap(x509);
    } else {
        err = pki_fail(diag, ERR_TLS, "%s could not be made", what);
    }
    X509_free(x509);
    return err;
}

int pki_authority_make(const struct pki_key *key, const char *fleet, int64_t now_s,
                       struct pki_cert **out, struct diag *diag)
{
    *out = NULL;
    if (!str_is_name(fleet)) {
        return diag_error(diag, ERR_INVAL,
                          "\"%s\" is not a name for a fleet: 1 to 64 of A-Z a-z 0-9 . _ + , = -",
                          fleet);
    }
    EVP_PKEY *pkey = pki_key_pkey(key);
    X509 *x = X509_new();
    X509_NAME *subject = x != NULL ? X509_get_subject_name(x) : NULL;
    bool ok = x != NULL && X509_set_version(x, X509_VERSION_3) == 1 && set_serial(x) &&
              add_text(subject, NID_organizationName, fleet) &&
              add_text(subject, NID_commonName, "Makespan authority") &&
              X509_set_issuer_name(x, subject) == 1 &&
              set_dates(x, now_s - PKI_BACKDATE_S, now_s + PKI_AUTHORITY_LIFE_S) &&
              X509_set_pubkey(x, pkey) == 1 &&
              add_ext(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
              add_ext(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") &&
              add_ext(x, x, NID_subject_key_identifier, "hash") &&
              X509_sign(x, pkey, EVP_sha256()) > 0;
    return hand_over(x, ok, "the authority's certificate", out, diag);
}

int pki_issue_dated(const struct pki_key *authority_key, const struct pki_cert *authority,
                    const uint8_t *request, size_t n, enum role role, const char *name,
                    int64_t begin_s, int64_t end_s, struct pki_cert **out, struct diag *diag)
{
    *out = NULL;
    uint8_t key_hash[PKI_HASH_SIZE];
    int err = pki_request_check(request, n, key_hash, diag);
    if (err < 0) {
        return err;
    }
    char fleet[65];
    err = pki_cert_fleet(authority, fleet, diag);
    if (err < 0) {
        return err;
    }
    const char *role_word = vocab_role((int)role);
    if (role_word == NULL || !str_is_name(name)) {
        return diag_error(diag, ERR_INVAL,
                          "\"%s\" is not a name: 1 to 64 of A-Z a-z 0-9 . _ + , = -", name);
    }
    if (!pki_cert_is_of_key(authority, authority_key)) {
        return diag_error(diag, ERR_CONFLICT, "the authority's key is not that of its certificate");
    }
    char urn[URN_MAX + 32];
    snprintf(urn, sizeof(urn), "urn:makespan:%s:%s:%s", fleet, role_word, name);

    const uint8_t *p = request;
    X509_REQ *req = d2i_X509_REQ(NULL, &p, (long)n);
    X509 *ca = pki_cert_x509(authority);
    X509 *x = X509_new();
    X509_NAME *subject = x != NULL ? X509_get_subject_name(x) : NULL;
    bool ok =
        req != NULL && x != NULL && X509_set_version(x, X509_VERSION_3) == 1 && set_serial(x) &&
        X509_set_issuer_name(x, X509_get_subject_name(ca)) == 1 &&
        add_text(subject, NID_organizationName, fleet) &&
        add_text(subject, NID_organizationalUnitName, role_word) &&
        add_text(subject, NID_commonName, name) && set_dates(x, begin_s, end_s) &&
        X509_set_pubkey(x, X509_REQ_get0_pubkey(req)) == 1 &&
        add_ext(x, ca, NID_basic_constraints, "critical,CA:FALSE") &&
        add_ext(x, ca, NID_key_usage, "critical,digitalSignature") &&
        add_ext(x, ca, NID_ext_key_usage, role == ROLE_COORDINATOR ? "serverAuth" : "clientAuth") &&
        add_ext(x, ca, NID_subject_key_identifier, "hash") &&
        add_ext(x, ca, NID_authority_key_identifier, "keyid:always") && add_urn(x, urn) &&
        X509_sign(x, pki_key_pkey(authority_key), EVP_sha256()) > 0;
    X509_REQ_free(req);
    return hand_over(x, ok, "the certificate", out, diag);
}

int pki_issue(const struct pki_key *authority_key, const struct pki_cert *authority,
              const uint8_t *request, size_t n, enum role role, const char *name, int64_t now_s,
              struct pki_cert **out, struct diag *diag)
{
    *out = NULL;
    int64_t begin_s, last_s;
    if (pki_cert_dates(authority, &begin_s, &last_s) < 0) {
        return diag_error(diag, ERR_INVAL,
                          "the dates of the authority's certificate cannot be read");
    }
    if (now_s > last_s) {
        char text[PKI_TIME_TEXT];
        return diag_error(
            diag, ERR_EXPIRED,
            "the fleet's authority ended on %s: a new one must be made (makespan init)",
            pki_time_text(text, last_s));
    }
    int64_t end_s = now_s + pki_life_s(role);
    return pki_issue_dated(authority_key, authority, request, n, role, name, now_s - PKI_BACKDATE_S,
                           end_s < last_s ? end_s : last_s, out, diag);
}

/* pki.h: keys, certificate requests, the fleet's authority and the certificates that it issues.
 *
 * Keys are ECDSA P-256. A certificate of the fleet names its holder by exactly one SAN URI,
 * "urn:makespan:FLEET:ROLE:NAME"; its subject is for people and is never read back. The authority
 * names its fleet by the organisation of its subject. Times come in and go out as seconds since
 * 1970 UTC in int64_t; no clock is read here. Who is allowed what is decided elsewhere: dates,
 * role and chain of a peer by tls.c, names and roles of new certificates by the coordinator. */
#ifndef MAKESPAN_PROTO_PKI_H
#define MAKESPAN_PROTO_PKI_H

#include "common/attr.h"
#include "common/vocab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct diag;
struct evp_pkey_st;
struct x509_st;

struct pki_key;  /* a private key */
struct pki_cert; /* a certificate */

/* Who a certificate is of. */
struct pki_id {
    char fleet[65];
    enum role role;
    char name[65];
    char serial[41];   /* hex, lower case */
    char key_hash[65]; /* SHA-256 of the SubjectPublicKeyInfo, hex */
    int64_t begin_s;   /* first second of validity */
    int64_t end_s;     /* last second of validity */
};

enum {
    PKI_HASH_SIZE = 32,
    PKI_HASH_TEXT = 65,     /* its hex with NUL */
    PKI_TIME_TEXT = 48,     /* room for pki_time_text() */
    PKI_CERT_MAX = 4096,    /* longest certificate taken, DER */
    PKI_REQUEST_MAX = 2048, /* longest request taken, DER */
};

#define PKI_DAY_S INT64_C(86400)
#define PKI_BACKDATE_S PKI_DAY_S /* a new certificate begins that much before now */
#define PKI_AUTHORITY_LIFE_S (3652 * PKI_DAY_S)
#define PKI_WORKER_LIFE_S (365 * PKI_DAY_S)
#define PKI_OPERATOR_LIFE_S (90 * PKI_DAY_S)
#define PKI_COORDINATOR_LIFE_S (365 * PKI_DAY_S)

/* --- keys --- */

int pki_key_make(struct pki_key **out, struct diag *diag) MUST_CHECK;
void pki_key_free(struct pki_key **key); /* NULL inside is fine */
/* Writes the key as PEM to a new file of mode 0600 and syncs it and its folder; -ERR_EXISTS when
 * the file is there: a key is never overwritten. */
int pki_key_write(const struct pki_key *key, const char *path, struct diag *diag) MUST_CHECK;
/* -ERR_DENIED when others than owner and group may read the file, or others than the owner may
 * write it; -ERR_CORRUPT when it holds no P-256 key. */
int pki_key_read(const char *path, struct pki_key **out, struct diag *diag) MUST_CHECK;
/* SHA-256 of the SubjectPublicKeyInfo. */
int pki_key_hash(const struct pki_key *key, uint8_t hash[PKI_HASH_SIZE]) MUST_CHECK;

/* --- requests --- */

/* Appends a signed request for this key, DER. It names nobody: the coordinator gives the name. */
int pki_request_make(const struct pki_key *key, struct buf *der, struct diag *diag) MUST_CHECK;
/* Checks a request that a peer sent: well-formed, nothing behind it, a P-256 key, signed by that
 * key. Nothing else of it is ever used. Gives the key's hash. -ERR_INVAL with text. */
int pki_request_check(const uint8_t *der, size_t n, uint8_t key_hash[PKI_HASH_SIZE],
                      struct diag *diag) MUST_CHECK;

/* --- issuing --- */

/* A self-signed authority for ten years. `fleet` is a name (str_is_name). */
int pki_authority_make(const struct pki_key *key, const char *fleet, int64_t now_s,
                       struct pki_cert **out, struct diag *diag) MUST_CHECK;
/* A certificate for the key of the request, in the authority's fleet, with a random serial number,
 * from a day before now_s, for pki_life_s(role) but not beyond the authority's end. The request is
 * checked as by pki_request_check(). -ERR_INVAL, -ERR_EXPIRED (the authority has ended). */
int pki_issue(const struct pki_key *authority_key, const struct pki_cert *authority,
              const uint8_t *request, size_t n, enum role role, const char *name, int64_t now_s,
              struct pki_cert **out, struct diag *diag) MUST_CHECK;
/* The same with the first and last second of validity, since 1970, of the caller's choice: neither
 * the authority's dates nor a clock is looked at. */
int pki_issue_dated(const struct pki_key *authority_key, const struct pki_cert *authority,
                    const uint8_t *request, size_t n, enum role role, const char *name,
                    int64_t begin_s, int64_t end_s, struct pki_cert **out,
                    struct diag *diag) MUST_CHECK;
/* Seconds that a certificate of this role lives. */
int64_t pki_life_s(enum role role);

/* --- certificates --- */

void pki_cert_free(struct pki_cert **cert); /* NULL inside is fine */
/* Exactly n bytes of DER, at most PKI_CERT_MAX. -ERR_CORRUPT. */
int pki_cert_from_der(const uint8_t *der, size_t n, struct pki_cert **out,
                      struct diag *diag) MUST_CHECK;
int pki_cert_to_der(const struct pki_cert *cert, struct buf *der) MUST_CHECK;
/* PEM; a file that is there is replaced as a whole; mode 0644. */
int pki_cert_write(const struct pki_cert *cert, const char *path, struct diag *diag) MUST_CHECK;
int pki_cert_read(const char *path, struct pki_cert **out, struct diag *diag) MUST_CHECK;
/* Reads who it is of. -ERR_INVAL when it has not exactly one SAN entry, a URI of the form above
 * with a known role, or a serial number of more than 20 bytes. The signature is not checked. */
int pki_cert_id(const struct pki_cert *cert, struct pki_id *out, struct diag *diag) MUST_CHECK;
/* The fleet of an authority's certificate; -ERR_INVAL when it is none. */
int pki_cert_fleet(const struct pki_cert *authority, char fleet[65], struct diag *diag) MUST_CHECK;
/* First and last second of validity, of any certificate. -ERR_INVAL. */
int pki_cert_dates(const struct pki_cert *cert, int64_t *begin_s, int64_t *end_s) MUST_CHECK;
/* SHA-256 of its SubjectPublicKeyInfo. */
int pki_cert_key_hash(const struct pki_cert *cert, uint8_t hash[PKI_HASH_SIZE]) MUST_CHECK;
/* Whether the key is the certificate's. */
bool pki_cert_is_of_key(const struct pki_cert *cert, const struct pki_key *key);
/* Whether the authority signed it. Dates are not looked at. */
bool pki_cert_is_issued_by(const struct pki_cert *cert, const struct pki_cert *authority);

/* --- small things --- */

void pki_sha256(const void *data, size_t n, uint8_t hash[PKI_HASH_SIZE]);
/* Compares in a time that does not depend on the bytes. */
bool pki_equal(const void *a, const void *b, size_t n);
/* "2026-11-30 12:00 UTC"; years before 0 and after 9999 are cut off there. Returns dst. */
const char *pki_time_text(char dst[PKI_TIME_TEXT], int64_t s);

/* --- for tls*.c alone --- */

/* Borrowed. */
struct evp_pkey_st *pki_key_pkey(const struct pki_key *key);
struct x509_st *pki_cert_x509(const struct pki_cert *cert);
/* Wraps a certificate of OpenSSL's; takes a reference of its own. Never NULL. */
struct pki_cert *pki_cert_wrap(struct x509_st *x509) MUST_CHECK;
/* Adds "text: what OpenSSL says" to diag, empties OpenSSL's queue of errors, returns -code. */
int pki_fail(struct diag *diag, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

#endif

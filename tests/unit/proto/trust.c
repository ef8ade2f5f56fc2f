/* trust.c: fleets and certificates for tests. */
#include "tests/unit/proto/trust.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/str.h"
#include "proto/pki_ossl.h"

#include <criterion/criterion.h>

void trust_authority(const char *fleet, struct trust_pair *out)
{
    cr_assert_eq(pki_key_make(&out->key, NULL), 0);
    cr_assert_eq(pki_authority_make(out->key, fleet, TRUST_NOW, &out->cert, NULL), 0);
}

void trust_issue_dated(const struct trust_pair *authority, enum role role, const char *name,
                       int64_t begin_s, int64_t end_s, struct trust_pair *out)
{
    struct buf request = BUF_INIT;
    struct diag *diag = diag_new(4);
    cr_assert_eq(pki_key_make(&out->key, diag), 0);
    cr_assert_eq(pki_request_make(out->key, &request, diag), 0);
    int err = pki_issue_dated(authority->key, authority->cert, request.data, request.len, role,
                              name, begin_s, end_s, &out->cert, diag);
    cr_assert_eq(err, 0, "%s", diag_first(diag));
    buf_fini(&request);
    diag_free(&diag);
}

void trust_issue(const struct trust_pair *authority, enum role role, const char *name,
                 struct trust_pair *out)
{
    trust_issue_dated(authority, role, name, TRUST_NOW - PKI_BACKDATE_S,
                      TRUST_NOW + pki_life_s(role), out);
}

void trust_request(struct buf *der, struct pki_key **key)
{
    cr_assert_eq(pki_key_make(key, NULL), 0);
    cr_assert_eq(pki_request_make(*key, der, NULL), 0);
}

void trust_free(struct trust_pair *pair)
{
    pki_key_free(&pair->key);
    pki_cert_free(&pair->cert);
}

int64_t trust_now(void *arg)
{
    struct trust_world *world = arg;
    world->asked++;
    return world->now_s;
}

bool trust_is_revoked(const char *serial, void *arg)
{
    const struct trust_world *world = arg;
    return str_eq(serial, world->revoked);
}

struct tls *trust_server(const struct trust_pair *authority, const struct trust_pair *self,
                         struct trust_world *world)
{
    struct tls_server_config config = {.key = self->key,
                                       .cert = self->cert,
                                       .authority = authority->cert,
                                       .joining = true,
                                       .now_s = trust_now,
                                       .is_revoked = trust_is_revoked,
                                       .arg = world};
    struct diag *diag = diag_new(4);
    struct tls *tls;
    cr_assert_eq(tls_new_server(&config, &tls, diag), 0, "%s", diag_first(diag));
    diag_free(&diag);
    return tls;
}

struct tls *trust_client(const struct trust_pair *authority, const struct trust_pair *self,
                         struct trust_world *world, bool late_clock_ok)
{
    struct tls_client_config config = {.key = self->key,
                                       .cert = self->cert,
                                       .authority = authority->cert,
                                       .now_s = trust_now,
                                       .arg = world,
                                       .late_clock_ok = late_clock_ok};
    struct diag *diag = diag_new(4);
    struct tls *tls;
    cr_assert_eq(tls_new_client(&config, &tls, diag), 0, "%s", diag_first(diag));
    diag_free(&diag);
    return tls;
}

struct tls *trust_joiner(const struct trust_pair *authority, struct trust_world *world,
                         bool late_clock_ok)
{
    uint8_t hash[PKI_HASH_SIZE];
    cr_assert_eq(pki_cert_key_hash(authority->cert, hash), 0);
    struct tls_joiner_config config = {
        .authority = hash, .now_s = trust_now, .arg = world, .late_clock_ok = late_clock_ok};
    struct tls *tls;
    cr_assert_eq(tls_new_joiner(&config, &tls, NULL), 0);
    return tls;
}

void trust_forge(const struct trust_pair *authority, const char *san, const char *usage,
                 struct trust_pair *out)
{
    X509 *x = X509_new();
    cr_assert_eq(pki_key_make(&out->key, NULL), 0);
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 7);
    X509_set_issuer_name(x, X509_get_subject_name(pki_cert_x509(authority->cert)));
    ASN1_TIME_set_string_X509(X509_getm_notBefore(x), "20260101000000Z");
    ASN1_TIME_set_string_X509(X509_getm_notAfter(x), "20300101000000Z");
    X509_set_pubkey(x, pki_key_pkey(out->key));
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, NULL, NID_ext_key_usage, usage);
    X509_add_ext(x, ext, -1);
    X509_EXTENSION_free(ext);
    ext = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, san);
    X509_add_ext(x, ext, -1);
    X509_EXTENSION_free(ext);
    cr_assert_gt(X509_sign(x, pki_key_pkey(authority->key), EVP_sha256()), 0);
    out->cert = pki_cert_wrap(x);
    X509_free(x);
}
void trust_cast_init(struct trust_cast *cast)
{
    trust_authority("lab", &cast->lab);
    trust_authority("lab", &cast->other);
    trust_issue(&cast->lab, ROLE_COORDINATOR, "main", &cast->coordinator);
    trust_issue(&cast->lab, ROLE_WORKER, "p6", &cast->worker);
    trust_issue(&cast->lab, ROLE_VIEWER, "eve", &cast->viewer);
    cast->server = (struct trust_world){.now_s = TRUST_NOW};
    cast->client = (struct trust_world){.now_s = TRUST_NOW};
}

void trust_cast_fini(struct trust_cast *cast)
{
    trust_free(&cast->lab);
    trust_free(&cast->other);
    trust_free(&cast->coordinator);
    trust_free(&cast->worker);
    trust_free(&cast->viewer);
}

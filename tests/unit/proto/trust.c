/* trust.c: fleets and certificates for tests. */
#include "tests/unit/proto/trust.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/str.h"

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
    int err = pki_issue_dated(authority->key, authority->cert, request.data, request.len, role, name,
                              begin_s, end_s, &out->cert, diag);
    cr_assert_eq(err, 0, "%s", diag_first(diag));
    buf_fini(&request);
    diag_free(&diag);
}

void trust_issue(const struct trust_pair *authority, enum role role, const char *name,
                 struct trust_pair *out)
{
    trust_issue_dated(authority, role, name, TRUST_NOW - PKI_BACKDATE_S, TRUST_NOW + pki_life_s(role),
                      out);
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

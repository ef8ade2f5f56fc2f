/* trust.h: fleets, certificates and contexts for tests of proto/: everything is made in memory. */
#ifndef MAKESPAN_TESTS_UNIT_PROTO_TRUST_H
#define MAKESPAN_TESTS_UNIT_PROTO_TRUST_H

#include "common/vocab.h"
#include "proto/pki.h"
#include "proto/tls.h"

#include <stdbool.h>
#include <stdint.h>

struct buf;

#define TRUST_NOW INT64_C(1796040000) /* 2026-11-30 12:00 UTC */

/* A key with its certificate. */
struct trust_pair {
    struct pki_key *key;
    struct pki_cert *cert;
};

/* The clock and the list of revoked certificates of one side. */
struct trust_world {
    int64_t now_s;
    const char *revoked; /* serial number, or NULL */
    unsigned asked;      /* calls of the clock */
};

/* Each asserts that it works. */
void trust_authority(const char *fleet, struct trust_pair *out);
void trust_issue(const struct trust_pair *authority, enum role role, const char *name,
                 struct trust_pair *out);
/* The same with dates. */
void trust_issue_dated(const struct trust_pair *authority, enum role role, const char *name,
                       int64_t begin_s, int64_t end_s, struct trust_pair *out);
/* A new key, and a request of it appended to der. */
void trust_request(struct buf *der, struct pki_key **key);
void trust_free(struct trust_pair *pair);

struct tls *trust_server(const struct trust_pair *authority, const struct trust_pair *self,
                         struct trust_world *world);
struct tls *trust_client(const struct trust_pair *authority, const struct trust_pair *self,
                         struct trust_world *world, bool late_clock_ok);
struct tls *trust_joiner(const struct trust_pair *authority, struct trust_world *world,
                         bool late_clock_ok);

/* A certificate that the authority signed and that it would never issue: with this subjectAltName
 * and extendedKeyUsage, in the notation of OpenSSL's configuration. */
void trust_forge(const struct trust_pair *authority, const char *san, const char *usage,
                 struct trust_pair *out);

/* Two fleets of the same name, and members of the first. */
struct trust_cast {
    struct trust_pair lab, other;
    struct trust_pair coordinator, worker, viewer;
    struct trust_world server, client; /* both at TRUST_NOW */
};
void trust_cast_init(struct trust_cast *cast);
void trust_cast_fini(struct trust_cast *cast);

int64_t trust_now(void *world);
bool trust_is_revoked(const char *serial, void *world);

#endif

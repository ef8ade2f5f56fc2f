/* trust.h: rows of certificates and tokens. See store.h for what holds for all functions. */
#ifndef MAKESPAN_COORDINATOR_STORE_TRUST_H
#define MAKESPAN_COORDINATOR_STORE_TRUST_H

#include "common/attr.h"
#include "coordinator/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mem_arena;
struct store;

/* -ERR_EXISTS when the serial number is there. */
int store_cert_insert(struct store *store, const struct model_cert *cert) MUST_CHECK;
int store_cert_get(struct store *store, const char *serial, struct mem_arena *arena,
                   struct model_cert *out) MUST_CHECK;
typedef int store_cert_f(const struct model_cert *cert, void *arg);
/* In the order of issue. role 0: every role; name NULL: every name. */
int store_certs_each(struct store *store, int role, const char *name, store_cert_f *f,
                     void *arg) MUST_CHECK;
/* -ERR_NOTFOUND for a serial number that was never issued; *revoked is true then as well. */
int store_cert_is_revoked(struct store *store, const char *serial, bool *revoked) MUST_CHECK;
/* A certificate that is revoked already keeps its time. */
int store_cert_revoke(struct store *store, const char *serial, int64_t wall_ns) MUST_CHECK;
/* All of a role and name that are not yet revoked; *count says how many. */
int store_certs_revoke(struct store *store, enum role role, const char *name, int64_t wall_ns,
                       size_t *count) MUST_CHECK;

int store_token_insert(struct store *store, const struct model_token *token) MUST_CHECK;
int store_token_get(struct store *store, const uint8_t id[8], struct mem_arena *arena,
                    struct model_token *out) MUST_CHECK;
typedef int store_token_f(const struct model_token *token, void *arg);
/* In the order in which they were made. */
int store_tokens_each(struct store *store, store_token_f *f, void *arg) MUST_CHECK;
/* Marks it used, once: -ERR_USED when it is already, -ERR_NOTFOUND. */
int store_token_use(struct store *store, const uint8_t id[8], const char *key_hash,
                    const char *name, const uint8_t *cert, size_t cert_len) MUST_CHECK;

#endif

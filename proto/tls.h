/* tls.h: contexts of TLS 1.3 for the three ways to talk: the coordinator as server, a worker or
 * operator as client, and a program that joins with a token and has no certificate yet.
 *
 * Here it is decided whom to trust. A server takes clients of its authority and of any role but
 * coordinator; a client takes a server of its authority whose role is coordinator, at whatever
 * address; a joiner takes a coordinator whose authority's key has the hash that stands in the
 * token, before it sends anything. Dates are checked by the clock that the caller gives. Sockets
 * and what goes over them are conn.c's; one connection's TLS is tls_session.c's. */
#ifndef MAKESPAN_PROTO_TLS_H
#define MAKESPAN_PROTO_TLS_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct pki_cert;
struct pki_key;
struct tls;

/* The protocol's names in ALPN. */
#define TLS_ALPN "makespan/1"
#define TLS_ALPN_JOIN "makespan-join/1"

/* The present time in seconds since 1970 UTC, by which certificates are checked. A worker gives
 * the latest of its clock, the last time that it heard from its coordinator, and the build date. */
typedef int64_t tls_now_f(void *arg);
/* Whether the certificate with this serial number (hex, lower case) was revoked. */
typedef bool tls_is_revoked_f(const char *serial, void *arg);

struct tls_server_config {
    const struct pki_key *key;   /* borrowed for the call, as are the certificates */
    const struct pki_cert *cert; /* role coordinator */
    const struct pki_cert *authority;
    bool joining; /* TLS_ALPN_JOIN is served too */
    tls_now_f *now_s;
    tls_is_revoked_f *is_revoked; /* NULL: none is */
    void *arg;                    /* of both */
};

struct tls_client_config {
    const struct pki_key *key;
    const struct pki_cert *cert;
    const struct pki_cert *authority;
    tls_now_f *now_s;
    void *arg;
    /* A coordinator's certificate that has not begun yet is taken: the authority vouches for it,
     * so it is this host's clock that is late, and a dead CMOS battery must not stop a worker. */
    bool late_clock_ok;
};

struct tls_joiner_config {
    const uint8_t *authority; /* 16 bytes of the token */
    tls_now_f *now_s;
    void *arg;
    bool late_clock_ok;
};

/* Each: 0, or a negative code with text: -ERR_CONFLICT the key is not the certificate's, or the
 * certificate is not of this authority; -ERR_INVAL; -ERR_TLS. */
int tls_new_server(const struct tls_server_config *config, struct tls **out,
                   struct diag *diag) MUST_CHECK;
int tls_new_client(const struct tls_client_config *config, struct tls **out,
                   struct diag *diag) MUST_CHECK;
int tls_new_joiner(const struct tls_joiner_config *config, struct tls **out,
                   struct diag *diag) MUST_CHECK;
/* A server's new certificate of the same authority, for handshakes from now on. */
int tls_renew(struct tls *tls, const struct pki_key *key, const struct pki_cert *cert,
              struct diag *diag) MUST_CHECK;
/* Gives the caller's hold up; connections that use it keep it for as long as they need it. After
 * that no callback is called any more: handshakes that are not over fail. */
void tls_free(struct tls **tls); /* NULL inside is fine */

#endif

/* ca.h: the fleet's authority at work: its files, the coordinator's own certificate, tokens, who
 * gets a certificate, revocation.
 *
 * Files in the coordinator's folder: ca.key (0600), ca.crt, server.key (0600), server.crt. Rows
 * (hosts, certificates, tokens) are written through the store in the caller's turn: what is
 * granted may be sent after the commit only. Knows no messages and no connections. */
#ifndef MAKESPAN_COORDINATOR_CA_CA_H
#define MAKESPAN_COORDINATOR_CA_CA_H

#include "common/attr.h"
#include "common/vocab.h"
#include "proto/close.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ca;
struct diag;
struct store;

/* --- the beginning of a fleet --- */

struct ca_init {
    const char *dir;          /* the coordinator's folder; made with mode 0700 when missing */
    const char *fleet;        /* its name (str_is_name) */
    const char *operator_dir; /* where the admin's identity goes; made with mode 0700 */
    const char *operator_name;
    struct store *store; /* open, empty of meta "fleet" */
    int64_t wall_ns;     /* now */
};

/* Makes the authority, the coordinator's certificate and an admin's identity, and writes the
 * rows, which it commits. A folder that has an authority already is -ERR_EXISTS: nothing is
 * overwritten. An interrupted init is completed by the next. */
int ca_init(const struct ca_init *init, struct diag *diag) MUST_CHECK;

/* Files that an operator's folder holds, for whoever reads them. */
#define CA_OPERATOR_KEY "operator.key"
#define CA_OPERATOR_CERT "operator.crt"
#define CA_OPERATOR_AUTHORITY "ca.crt"
/* Where the coordinator is: HOST:PORT in one line. */
#define CA_OPERATOR_ADDRESS "address"

/* Files of the coordinator's folder. */
#define CA_KEY "ca.key"
#define CA_CERT "ca.crt"
#define CA_SERVER_KEY "server.key"
#define CA_SERVER_CERT "server.crt"

/* --- at work --- */

/* Reads the files; makes the coordinator's own certificate anew when it is missing, not this
 * authority's, or has less than 30 days left. A missing authority is -ERR_NOTFOUND with what to
 * do. The store is borrowed for the life of the object. */
int ca_open(const char *dir, struct store *store, int64_t wall_ns, struct ca **out,
            struct diag *diag) MUST_CHECK;
void ca_close(struct ca **ca); /* NULL inside is fine */

const char *ca_fleet(const struct ca *ca);
/* The authority's certificate, DER; borrowed. */
const uint8_t *ca_authority_der(const struct ca *ca, size_t *n);
/* SHA-256 of its public key, as in tokens (their first 16 bytes). */
const uint8_t *ca_authority_hash(const struct ca *ca);
/* Paths of what TLS needs; borrowed. */
const char *ca_authority_path(const struct ca *ca);
const char *ca_server_key_path(const struct ca *ca);
const char *ca_server_cert_path(const struct ca *ca);
int64_t ca_server_end_s(const struct ca *ca);
/* Makes the coordinator's certificate anew when it has less than 30 days left; *renewed says so:
 * TLS must read it again. */
int ca_renew_server(struct ca *ca, int64_t wall_ns, bool *renewed, struct diag *diag) MUST_CHECK;

/* --- tokens --- */

struct ca_token_request {
    enum role role;             /* WORKER, VIEWER, SUBMITTER, ADMIN */
    const char *const *classes; /* of the host that joins; names */
    size_t class_count;
    const char *name; /* NULL: the holder chooses */
    int64_t ttl_ns;   /* a minute to 30 days */
    const char *made_by;
};
enum { CA_TOKEN_TEXT = 96 };
/* Writes its row and the text that is shown once. */
int ca_token_make(struct ca *ca, const struct ca_token_request *request, int64_t wall_ns,
                  char text[CA_TOKEN_TEXT], struct diag *diag) MUST_CHECK;

/* --- joining --- */

struct ca_request {
    const uint8_t *token_id; /* 8 bytes */
    const uint8_t *secret;   /* 16 bytes */
    const uint8_t *csr;      /* DER */
    size_t csr_len;
    const char *name;       /* wanted */
    const char *machine_id; /* NULL: none */
    enum role role;         /* wanted */
    int64_t wall_ns;        /* the sender's clock */
};

enum { CA_WARNINGS = 4, CA_CERT_MAX = 4096 };

struct ca_grant {
    uint8_t cert[CA_CERT_MAX]; /* DER */
    size_t cert_len;
    char name[65];
    enum role role; /* of the certificate */
    bool again;   /* the token was used before with this key: the same certificate */
    bool rekeyed; /* a host that was there got this key: its old link is to be closed */
    int64_t host; /* of a worker: its row; else 0 */
    char warnings[CA_WARNINGS][256];
    size_t warning_count;
};

/* Answers a request to join at wall_ns of this clock. 0: the rows are written, the grant may be
 * sent after the commit. Else negative and nothing is written, *reason is the reason to close
 * with, and diag has the sentence that says why and what to do. The rules, in this order:
 * - an unknown token, or a wrong secret: TOKEN_UNKNOWN, the same for both;
 * - past its end: TOKEN_EXPIRED;
 * - a role that is not the token's: TOKEN_ROLE. A sender that wants VIEWER takes whatever role
 *   of an operator the token has;
 * - a request that is none, or not signed by its key: DECODE;
 * - used with another key: TOKEN_USED; with the same: the certificate that it gave then, while
 *   it is not revoked: else REVOKED;
 * - the name is the token's where it has one, else the wanted one, which must be a name:
 *   NAME_TAKEN;
 * - a worker whose name a host has already: with the host's own key it gets a new certificate;
 *   with another key NAME_TAKEN, unless the token was made for this name: then the host gets
 *   this key and its earlier certificates are revoked. A revoked host needs a token for its name
 *   in any case, and is active again then. A key that another host has: NAME_TAKEN;
 * - an operator whose name has a certificate in force with another key: NAME_TAKEN, unless the
 *   token was made for this name;
 * - a sender's clock at or beyond the end of the certificate: CLOCK, naming both clocks. A clock
 *   before the certificate's beginning (an empty battery) or more than a minute off is a
 *   warning. A machine id that another host has is a warning (clones). */
int ca_join(struct ca *ca, const struct ca_request *request, int64_t wall_ns,
            struct ca_grant *out, enum close_reason *reason, struct diag *diag) MUST_CHECK;

/* --- revocation --- */

/* Whether a certificate is not to be let in: revoked, never issued here, or the store cannot be
 * read. Fits the callback of proto/tls.h; `ca` is a struct ca. */
bool ca_is_revoked(const char *serial, void *ca);
/* Revokes a host: its state, and all its certificates. -ERR_NOTFOUND with text. The caller
 * closes its link. */
int ca_revoke_host(struct ca *ca, const char *name, int64_t wall_ns,
                   struct diag *diag) MUST_CHECK;

#endif

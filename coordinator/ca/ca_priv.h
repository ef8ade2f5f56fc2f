/* ca_priv.h: the authority's own state, for the files of ca/ alone. */
#ifndef MAKESPAN_COORDINATOR_CA_PRIV_H
#define MAKESPAN_COORDINATOR_CA_PRIV_H

#include "common/fileio.h"
#include "coordinator/ca/ca.h"
#include "proto/pki.h"

#include <stdbool.h>
#include <stdint.h>

#define CA_MAGIC 0x61757468U
#define CA_NS INT64_C(1000000000)

struct ca {
    unsigned magic;
    struct store *store;
    char fleet[65];
    struct pki_key *key;
    struct pki_cert *cert;
    uint8_t *der; /* of cert; owned */
    size_t der_len;
    uint8_t hash[PKI_HASH_SIZE]; /* of its public key */
    int64_t server_end_s;
    char key_path[FILE_PATH_MAX];
    char cert_path[FILE_PATH_MAX];
    char server_key_path[FILE_PATH_MAX];
    char server_cert_path[FILE_PATH_MAX];
};

/* Issues a certificate for a key that is here, and reads back who it is of. */
int ca_issue_own(const struct pki_key *authority_key, const struct pki_cert *authority,
                 const struct pki_key *key, enum role role, const char *name, int64_t now_s,
                 struct pki_cert **out, struct pki_id *id, struct diag *diag) MUST_CHECK;
/* Reads the key in the file, or makes one and writes it there. */
int ca_key_at(const char *path, struct pki_key **out, struct diag *diag) MUST_CHECK;
/* Whether a certificate of this role is an operator's. */
bool ca_is_operator(enum role role);
/* Says what the store says; gives code. */
int ca_store_fails(struct store *store, int code, struct diag *diag);
/* Notes an issued certificate. */
int ca_note_cert(struct store *store, const struct pki_id *id, int64_t wall_ns,
                 struct diag *diag) MUST_CHECK;

#endif

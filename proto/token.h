/* token.h: the token with which a host or an operator joins a fleet once.
 *
 * As text it is "mks1-" and 72 characters of lower-case base32 (digits and letters without i, l, o
 * and u): 8 bytes of public id, 16 bytes of secret, the first 16 bytes of the SHA-256 of the
 * authority's public key, 5 bytes of checksum. When it is read, case does not matter, hyphens
 * between the characters are skipped, o counts as 0, i and l as 1: it may have been typed. Its
 * life, role and use are rows of the coordinator's store, which keeps the secret's hash only. */
#ifndef MAKESPAN_PROTO_TOKEN_H
#define MAKESPAN_PROTO_TOKEN_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;

enum {
    TOKEN_ID_SIZE = 8,
    TOKEN_SECRET_SIZE = 16,
    TOKEN_AUTHORITY_SIZE = 16,
    TOKEN_HASH_SIZE = 32,
    TOKEN_TEXT_SIZE = 78, /* with NUL */
};

struct token {
    uint8_t id[TOKEN_ID_SIZE];
    uint8_t secret[TOKEN_SECRET_SIZE];
    uint8_t authority[TOKEN_AUTHORITY_SIZE];
};

/* A new token with random id and secret for the authority whose public key has this SHA-256 (its
 * first 16 bytes are used). */
void token_make(const uint8_t authority_hash[32], struct token *out);
void token_format(const struct token *token, char text[TOKEN_TEXT_SIZE]);
/* Reads text. Each failure has its sentence in diag: -ERR_SYNTAX it is no token, or one cut short
 * or with characters that no token has; -ERR_VERSION a token of a later form; -ERR_CHECKSUM a
 * typing error. On failure *out is zeroed. */
int token_parse(const char *text, struct token *out, struct diag *diag) MUST_CHECK;
/* What the store keeps: SHA-256 of the secret. */
void token_hash(const uint8_t secret[TOKEN_SECRET_SIZE], uint8_t hash[TOKEN_HASH_SIZE]);
/* Whether the secret has this hash, in a time that does not depend on the bytes. */
bool token_matches(const uint8_t secret[TOKEN_SECRET_SIZE], const uint8_t hash[TOKEN_HASH_SIZE]);
/* Overwrites the token. */
void token_wipe(struct token *token);

#endif

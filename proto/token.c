/* token.c: tokens as text and as bytes. Owns the alphabet and the checksum; keeps nothing. */
#include "proto/token.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/rand.h"
#include "common/str.h"
#include "proto/pki.h"

#include <string.h>

#define PREFIX "mks1-"
#define FAMILY "mks" /* then the number of the form */

enum {
    PAYLOAD_SIZE = TOKEN_ID_SIZE + TOKEN_SECRET_SIZE + TOKEN_AUTHORITY_SIZE,
    CHECK_SIZE = 5,
    BYTES = PAYLOAD_SIZE + CHECK_SIZE,
    CHARS = BYTES * 8 / 5,
};

_Static_assert(BYTES % 5 == 0, "base32 without padding");
_Static_assert(TOKEN_TEXT_SIZE == sizeof(PREFIX) + CHARS, "room for the text");

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

/* The value of a character, -1 when no token has it. */
static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z') {
        c = (char)(c - 'A' + 'a');
    }
    switch (c) {
    case '\0':
        return -1;
    case 'o':
        c = '0';
        break;
    case 'i':
    case 'l':
        c = '1';
        break;
    default:
        break;
    }
    const char *at = strchr(alphabet, c);
    return at != NULL ? (int)(at - alphabet) : -1;
}

static void checksum(const uint8_t payload[PAYLOAD_SIZE], uint8_t check[CHECK_SIZE])
{
    uint8_t text[sizeof(PREFIX) - 1 + PAYLOAD_SIZE];
    uint8_t hash[PKI_HASH_SIZE];
    memcpy(text, PREFIX, sizeof(PREFIX) - 1);
    memcpy(text + sizeof(PREFIX) - 1, payload, PAYLOAD_SIZE);
    pki_sha256(text, sizeof(text), hash);
    memcpy(check, hash, CHECK_SIZE);
}

void token_make(const uint8_t authority_hash[32], struct token *out)
{
    rand_bytes(out->id, sizeof(out->id));
    rand_bytes(out->secret, sizeof(out->secret));
    memcpy(out->authority, authority_hash, sizeof(out->authority));
}

void token_format(const struct token *token, char text[TOKEN_TEXT_SIZE])
{
    uint8_t bytes[BYTES];
    memcpy(bytes, token->id, TOKEN_ID_SIZE);
    memcpy(bytes + TOKEN_ID_SIZE, token->secret, TOKEN_SECRET_SIZE);
    memcpy(bytes + TOKEN_ID_SIZE + TOKEN_SECRET_SIZE, token->authority, TOKEN_AUTHORITY_SIZE);
    checksum(bytes, bytes + PAYLOAD_SIZE);
    char *p = text + str_copy(text, TOKEN_TEXT_SIZE, PREFIX);
    for (size_t i = 0; i < BYTES; i += 5) {
        uint64_t v = 0;
        for (size_t k = 0; k < 5; k++) {
            v = v << 8 | bytes[i + k];
        }
        for (int shift = 35; shift >= 0; shift -= 5) {
            *p++ = alphabet[v >> shift & 31];
        }
    }
    *p = '\0';
}

static bool starts_without_case(const char *s, const char *prefix)
{
    for (; *prefix != '\0'; s++, prefix++) {
        char c = *s >= 'A' && *s <= 'Z' ? (char)(*s - 'A' + 'a') : *s;
        if (c != *prefix) {
            return false;
        }
    }
    return true;
}

/* "mks" digits "-", or not a token of any form. */
static int check_prefix(const char *text, struct diag *diag)
{
    if (starts_without_case(text, PREFIX)) {
        return 0;
    }
    size_t n = strlen(FAMILY);
    if (starts_without_case(text, FAMILY)) {
        size_t digits = strspn(text + n, "0123456789");
        if (digits > 0 && text[n + digits] == '-') {
            return diag_error(diag, ERR_VERSION,
                              "this token is of another form than " PREFIX
                              "…: it needs another version of this program");
        }
    }
    return diag_error(diag, ERR_SYNTAX, "this is not a token: a token begins with " PREFIX);
}

/* The characters as 5-bit values; their number, or a negative code. */
static int read_chars(const char *text, uint8_t values[CHARS], struct diag *diag)
{
    int n = 0;
    for (const char *p = text + strlen(PREFIX); *p != '\0'; p++) {
        if (*p == '-') {
            continue;
        }
        int v = value_of(*p);
        if (v < 0) {
            return diag_error(diag, ERR_SYNTAX,
                              "the token has a character at place %zu that no token has",
                              (size_t)(p - text) + 1);
        }
        if (n < CHARS) {
            values[n] = (uint8_t)v;
        }
        n += n <= CHARS;
    }
    return n;
}

int token_parse(const char *text, struct token *out, struct diag *diag)
{
    memset(out, 0, sizeof(*out));
    int err = check_prefix(text, diag);
    if (err < 0) {
        return err;
    }
    uint8_t values[CHARS];
    int n = read_chars(text, values, diag);
    if (n < 0) {
        return n;
    }
    if (n != CHARS) {
        return diag_error(diag, ERR_SYNTAX,
                          "the token is too %s: behind " PREFIX " there are %d characters, hyphens "
                          "not counted",
                          n < CHARS ? "short" : "long", CHARS);
    }
    uint8_t bytes[BYTES];
    for (size_t i = 0, c = 0; i < BYTES; i += 5) {
        uint64_t v = 0;
        for (size_t k = 0; k < 8; k++) {
            v = v << 5 | values[c++];
        }
        for (size_t k = 0; k < 5; k++) {
            bytes[i + k] = (uint8_t)(v >> (32 - 8 * k));
        }
    }
    uint8_t check[CHECK_SIZE];
    checksum(bytes, check);
    if (memcmp(check, bytes + PAYLOAD_SIZE, CHECK_SIZE) != 0) {
        return diag_error(diag, ERR_CHECKSUM,
                          "the token has a typing error: its checksum does not match");
    }
    memcpy(out->id, bytes, TOKEN_ID_SIZE);
    memcpy(out->secret, bytes + TOKEN_ID_SIZE, TOKEN_SECRET_SIZE);
    memcpy(out->authority, bytes + TOKEN_ID_SIZE + TOKEN_SECRET_SIZE, TOKEN_AUTHORITY_SIZE);
    return 0;
}

void token_hash(const uint8_t secret[TOKEN_SECRET_SIZE], uint8_t hash[TOKEN_HASH_SIZE])
{
    pki_sha256(secret, TOKEN_SECRET_SIZE, hash);
}

bool token_matches(const uint8_t secret[TOKEN_SECRET_SIZE], const uint8_t hash[TOKEN_HASH_SIZE])
{
    uint8_t mine[TOKEN_HASH_SIZE];
    token_hash(secret, mine);
    return pki_equal(mine, hash, TOKEN_HASH_SIZE);
}

void token_wipe(struct token *token)
{
    volatile uint8_t *p = (volatile uint8_t *)token;
    for (size_t i = 0; i < sizeof(*token); i++) {
        p[i] = 0;
    }
}

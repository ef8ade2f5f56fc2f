/* Tokens: as text and back, typing errors, what is tolerated, the hash that the store keeps. */
#include "common/diag.h"
#include "common/err.h"
#include "common/str.h"
#include "proto/token.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <string.h>

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

/* Bytes 0 to 23, then 255 to 240; made by other means from the description in token.h. */
#define KNOWN "mks1-000g40r40m30e209185gr38e1w8124gk2gahc5zzzvyzsyztz7wffxqnyksz5wfgybg8hcn8"

static struct token sample(void)
{
    struct token token;
    uint8_t hash[32];
    for (size_t i = 0; i < sizeof(hash); i++) {
        hash[i] = (uint8_t)(i * 37 + 1);
    }
    token_make(hash, &token);
    return token;
}

Test(token, there_and_back)
{
    for (int i = 0; i < 200; i++) {
        struct token token = sample(), back;
        char text[TOKEN_TEXT_SIZE];
        token_format(&token, text);
        cr_assert_eq(strlen(text), TOKEN_TEXT_SIZE - 1);
        cr_assert(str_starts(text, "mks1-"));
        cr_assert_eq(strspn(text + 5, alphabet), TOKEN_TEXT_SIZE - 6);
        cr_assert_eq(token_parse(text, &back, NULL), 0);
        cr_assert_eq(memcmp(&token, &back, sizeof(token)), 0);
    }
}

Test(token, tokens_differ)
{
    struct token a = sample(), b = sample();
    cr_expect_neq(memcmp(a.id, b.id, sizeof(a.id)), 0);
    cr_expect_neq(memcmp(a.secret, b.secret, sizeof(a.secret)), 0);
    cr_expect_eq(memcmp(a.authority, b.authority, sizeof(a.authority)), 0);
    cr_expect_eq(a.authority[0], 1);
    cr_expect_eq(a.authority[15], (uint8_t)(15 * 37 + 1));
}

Test(token, every_typing_error_is_seen)
{
    struct token token = sample(), back;
    char text[TOKEN_TEXT_SIZE];
    token_format(&token, text);
    for (size_t i = 5; i < TOKEN_TEXT_SIZE - 1; i++) {
        char right = text[i];
        for (const char *c = alphabet; *c != '\0'; c++) {
            if (*c != right) {
                text[i] = *c;
                cr_assert_eq(token_parse(text, &back, NULL), -ERR_CHECKSUM, "%s", text);
            }
        }
        text[i] = right;
        if (i + 1 < TOKEN_TEXT_SIZE - 1 && text[i + 1] != right) { /* two in the wrong order */
            text[i] = text[i + 1];
            text[i + 1] = right;
            cr_assert_eq(token_parse(text, &back, NULL), -ERR_CHECKSUM);
            text[i + 1] = text[i];
            text[i] = right;
        }
    }
    cr_assert_eq(token_parse(text, &back, NULL), 0);
}

Test(token, a_failure_leaves_nothing_and_shows_nothing)
{
    struct token token = sample(), back, zero;
    char text[TOKEN_TEXT_SIZE];
    struct diag *diag = diag_new(4);
    memset(&zero, 0, sizeof(zero));
    memset(&back, 1, sizeof(back));
    token_format(&token, text);
    text[20] = text[20] == 'x' ? 'y' : 'x';
    cr_expect_eq(token_parse(text, &back, diag), -ERR_CHECKSUM);
    cr_expect_eq(memcmp(&back, &zero, sizeof(zero)), 0);
    cr_expect_str_eq(diag_first(diag), "the token has a typing error: its checksum does not match");
    diag_free(&diag);
}

Test(token, what_may_be_typed_otherwise)
{
    struct token token, back;
    char text[TOKEN_TEXT_SIZE], other[TOKEN_TEXT_SIZE * 2];
    size_t n = 0;
    do {
        token = sample();
        token_format(&token, text);
    } while (strchr(text + 5, '0') == NULL || strchr(text + 5, '1') == NULL);
    for (size_t i = 0; text[i] != '\0'; i++) {
        char c = text[i];
        if (i >= 5) {
            c = c == '0' ? (i % 2 != 0 ? 'o' : 'O') : c == '1' ? (i % 2 != 0 ? 'l' : 'I') : c;
            if (i % 6 == 5) {
                other[n++] = '-';
            }
        }
        other[n++] = (char)toupper((unsigned char)c);
    }
    other[n] = '\0';
    cr_assert_eq(token_parse(other, &back, NULL), 0, "%s", other);
    cr_expect_eq(memcmp(&token, &back, sizeof(token)), 0);
}

Test(token, what_is_no_token)
{
    struct token token = sample(), back;
    char text[TOKEN_TEXT_SIZE + 2];
    struct diag *diag = diag_new(1);
    token_format(&token, text);
    struct {
        const char *text;
        int result;
        const char *sentence;
    } cases[] = {
        {"", -ERR_SYNTAX, "this is not a token"},
        {"mks", -ERR_SYNTAX, "this is not a token"},
        {"mks-", -ERR_SYNTAX, "this is not a token"},
        {"hello", -ERR_SYNTAX, "a token begins with mks1-"},
        {"mks2-000", -ERR_VERSION, "another version of this program"},
        {"MKS17-", -ERR_VERSION, "another version"},
        {"mks1-", -ERR_SYNTAX, "too short"},
        {"mks1-abc!", -ERR_SYNTAX, "a character at place 9"},
        {"mks1-abc def", -ERR_SYNTAX, "a character at place 9"},
        {"mks1-u", -ERR_SYNTAX, "a character at place 6"},
        {"mks1-\xc3\xa4", -ERR_SYNTAX, "a character at place 6"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        diag_clear(diag);
        cr_expect_eq(token_parse(cases[i].text, &back, diag), cases[i].result, "%s", cases[i].text);
        cr_expect(strstr(diag_first(diag), cases[i].sentence) != NULL, "%s", diag_first(diag));
    }
    diag_clear(diag);
    size_t n = strlen(text);
    text[n] = '0';
    text[n + 1] = '\0';
    cr_expect_eq(token_parse(text, &back, diag), -ERR_SYNTAX);
    cr_expect(strstr(diag_first(diag), "too long") != NULL);
    for (; n > 5; n--) {
        text[n - 1] = '\0';
        cr_expect_eq(token_parse(text, &back, NULL), -ERR_SYNTAX, "cut short");
    }
    diag_free(&diag);
}

Test(token, the_text_is_for_ever)
{
    struct token token, back;
    char text[TOKEN_TEXT_SIZE];
    for (size_t i = 0; i < 8; i++) {
        token.id[i] = (uint8_t)i;
    }
    for (size_t i = 0; i < 16; i++) {
        token.secret[i] = (uint8_t)(i + 8);
        token.authority[i] = (uint8_t)(255 - i);
    }
    token_format(&token, text);
    cr_expect_str_eq(text, KNOWN);
    cr_assert_eq(token_parse(KNOWN, &back, NULL), 0);
    cr_expect_eq(memcmp(&token, &back, sizeof(token)), 0);
}

Test(token, the_store_keeps_a_hash)
{
    struct token token = sample();
    uint8_t hash[TOKEN_HASH_SIZE];
    char hex[65];
    token_hash(token.secret, hash);
    cr_expect(token_matches(token.secret, hash));
    for (size_t i = 0; i < 16 * 8; i++) {
        token.secret[i / 8] ^= (uint8_t)(1 << i % 8);
        cr_expect(!token_matches(token.secret, hash));
        token.secret[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    memset(token.secret, 0, sizeof(token.secret));
    token_hash(token.secret, hash);
    str_hex(hex, hash, sizeof(hash));
    cr_expect_str_eq(hex, "374708fff7719dd5979ec875d56cd2286f6d3cf7ec317a3b25632aab28ec37bb");
}

Test(token, wiped_is_gone)
{
    struct token token = sample(), zero;
    memset(&zero, 0, sizeof(zero));
    token_wipe(&token);
    cr_expect_eq(memcmp(&token, &zero, sizeof(token)), 0);
}

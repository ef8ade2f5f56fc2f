/* digest_test.c: the two hash functions, by the examples of their standards (FIPS 180-4) and
 * piece by piece. */
#include "proto/digest.h"

#include "common/str.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *hex(struct digest *d, char text[2 * DIGEST_MAX + 1])
{
    uint8_t value[DIGEST_MAX];

    str_hex(text, value, digest_end(d, value));
    return text;
}

static const char *hex_of(enum digest_kind kind, const char *s, char text[2 * DIGEST_MAX + 1])
{
    struct digest *d = digest_new(kind);

    digest_add(d, s, strlen(s));
    (void)hex(d, text);
    digest_free(&d);
    return text;
}

Test(digest, examples_of_the_standard)
{
    char text[2 * DIGEST_MAX + 1];

    cr_expect_str_eq(hex_of(DIGEST_SHA256, "abc", text),
                     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    cr_expect_str_eq(hex_of(DIGEST_SHA256, "", text),
                     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    cr_expect_str_eq(hex_of(DIGEST_SHA1, "abc", text), "a9993e364706816aba3e25717850c26c9cd0d89d");
    cr_expect_str_eq(
        hex_of(DIGEST_SHA1, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", text),
        "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
}

Test(digest, pieces_and_a_new_beginning)
{
    struct digest *d = digest_new(DIGEST_SHA1);
    char text[2 * DIGEST_MAX + 1];
    uint8_t whole[DIGEST_MAX];

    digest_add(d, "waste", 5);
    digest_restart(d, DIGEST_SHA256);
    digest_add(d, "a", 1);
    digest_add(d, NULL, 0);
    digest_add(d, "bc", 2);
    cr_expect_str_eq(hex(d, text),
                     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    digest_free(&d);
    cr_expect_null(d);
    digest_free(&d);
    digest_sha256("abc", 3, whole);
    str_hex(text, whole, 32);
    cr_expect_str_eq(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

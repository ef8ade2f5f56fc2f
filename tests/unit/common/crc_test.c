/* The values of RFC 3720, appendix B.4, and the check value of the CRC's catalogue entry. */
#include "common/crc.h"

#include <criterion/criterion.h>
#include <string.h>

Test(crc, known_values)
{
    uint8_t b[32];

    cr_assert_eq(crc32c(0, "123456789", 9), 0xe3069283u);
    cr_assert_eq(crc32c(0, "", 0), 0u);
    memset(b, 0, sizeof b);
    cr_assert_eq(crc32c(0, b, sizeof b), 0x8a9136aau);
    memset(b, 0xff, sizeof b);
    cr_assert_eq(crc32c(0, b, sizeof b), 0x62a8ab43u);
    for (unsigned i = 0; i < sizeof b; i++)
        b[i] = (uint8_t)i;
    cr_assert_eq(crc32c(0, b, sizeof b), 0x46dd794eu);
}

Test(crc, pieces_make_the_whole)
{
    const char *text = "a record that was written in pieces";
    size_t n = strlen(text);

    for (size_t cut = 0; cut <= n; cut++)
        cr_assert_eq(crc32c(crc32c(0, text, cut), text + cut, n - cut), crc32c(0, text, n));
}

Test(crc, sees_every_flipped_bit)
{
    uint8_t b[64] = {1, 2, 3};
    uint32_t good = crc32c(0, b, sizeof b);

    for (size_t bit = 0; bit < 8 * sizeof b; bit++) {
        b[bit / 8] ^= (uint8_t)(1u << bit % 8);
        cr_assert_neq(crc32c(0, b, sizeof b), good);
        b[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

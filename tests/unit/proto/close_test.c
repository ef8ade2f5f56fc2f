/* close_test.c: the reasons of closing. */
#include "proto/close.h"

#include <criterion/criterion.h>
#include <string.h>

static const uint32_t numbers[] = {
#define CLOSE(name, number, is_error, dial_again, sentence) number,
#include "proto/close.def"
#undef CLOSE
};

#define COUNT (sizeof(numbers) / sizeof(numbers[0]))

Test(close, known_reasons)
{
    cr_assert_eq(CLOSE_REVOKED, 16);
    cr_assert_str_eq(close_name(CLOSE_REVOKED), "REVOKED");
    cr_assert(close_is_error(CLOSE_REVOKED));
    cr_assert_not(close_dial_again(CLOSE_REVOKED));
    cr_assert_str_eq(close_text(CLOSE_SHUTDOWN), "the program stops");
    cr_assert_not(close_is_error(CLOSE_SHUTDOWN));
    cr_assert(close_dial_again(CLOSE_SHUTDOWN));
    cr_assert_not(close_is_error(CLOSE_DONE));
    cr_assert_not(close_dial_again(CLOSE_DONE));
}

Test(close, a_number_of_a_later_version_is_an_error_worth_another_try)
{
    static const uint32_t odd[] = {0, 9999, UINT32_MAX};
    for (size_t i = 0; i < 3; i++) {
        cr_assert_str_eq(close_name(odd[i]), "UNKNOWN");
        cr_assert_gt(strlen(close_text(odd[i])), 0);
        cr_assert(close_is_error(odd[i]));
        cr_assert(close_dial_again(odd[i]));
    }
}

Test(close, every_reason_has_its_own_number_and_a_sentence)
{
    for (size_t i = 0; i < COUNT; i++) {
        cr_assert_gt(numbers[i], 0);
        cr_assert_str_neq(close_name(numbers[i]), "UNKNOWN");
        cr_assert_gt(strlen(close_text(numbers[i])), 10);
        for (size_t k = 0; k < i; k++) {
            cr_assert_neq(numbers[i], numbers[k]);
        }
    }
}

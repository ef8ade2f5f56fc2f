/* err_test.c: the codes are stable, have names and texts, and errno values find theirs. */
#include "common/err.h"

#include "common/attr.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

Test(err, numbers_never_move)
{
    cr_assert_eq(ERR_OK, 0);
    cr_assert_eq(ERR_NOMEM, 1);
    cr_assert_eq(ERR_LIMIT, 7);
    cr_assert_eq(ERR_FULL, 18);
    cr_assert_eq(ERR_NOTYET, 29);
    cr_assert_eq(ERR_UNREACH, 31);
}

Test(err, texts_by_either_sign)
{
    cr_assert_str_eq(err_text(0), "no error");
    cr_assert_str_eq(err_text(ERR_NOTFOUND), "not found");
    cr_assert_str_eq(err_text(-ERR_NOTFOUND), "not found");
    cr_assert_str_eq(err_name(-ERR_NOTFOUND), "NOTFOUND");
    cr_assert_str_eq(err_name(ERR_OK), "OK");
}

Test(err, unknown_numbers_have_a_text)
{
    static const int unknown[] = {9999, -9999, INT_MAX, -INT_MAX, INT_MIN};
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
        cr_assert_str_eq(err_text(unknown[i]), "unknown error");
        cr_assert_str_eq(err_name(unknown[i]), "UNKNOWN");
    }
}

Test(err, every_row_is_distinct)
{
    static const struct {
        int code;
        const char *name;
    } rows[] = {
#define ERR(name, number, text) {ERR_##name, #name},
#include "common/err.def"
#undef ERR
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cr_assert_str_eq(err_name(rows[i].code), rows[i].name);
        cr_assert_gt(strlen(err_text(rows[i].code)), 0);
        for (size_t j = 0; j < i; j++) {
            cr_assert_neq(rows[i].code, rows[j].code, "%s and %s", rows[i].name, rows[j].name);
        }
    }
}

Test(err, errno_values)
{
    static const struct {
        int errno_value;
        int code;
    } rows[] = {
        {ENOSPC, -ERR_FULL},   {EDQUOT, -ERR_FULL},      {ENOENT, -ERR_NOTFOUND}, {EEXIST, -ERR_EXISTS},
        {EACCES, -ERR_PERM},   {EPERM, -ERR_PERM},       {ENOMEM, -ERR_NOMEM},    {EIO, -ERR_IO},
        {EAGAIN, -ERR_AGAIN},  {EPIPE, -ERR_CLOSED},     {EMFILE, -ERR_LIMIT},    {ECONNREFUSED, -ERR_UNREACH},
        {ENOSYS, -ERR_UNSUP},  {ETIMEDOUT, -ERR_TIMEOUT}, {0, -ERR_SYS},          {-1, -ERR_SYS},
        {100000, -ERR_SYS},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cr_assert_eq(err_from_errno(rows[i].errno_value), rows[i].code, "errno %d", rows[i].errno_value);
    }
}

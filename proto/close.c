/* close.c: names and sentences of the reasons of closing. Owns nothing. */
#include "proto/close.h"

#include "common/attr.h"

#include <stddef.h>

struct close_row {
    uint32_t number;
    bool is_error;
    bool dial_again;
    const char *name;
    const char *text;
};

static const struct close_row rows[] = {
#define CLOSE(name, number, is_error, dial_again, sentence)                                        \
    {number, (is_error) != 0, (dial_again) != 0, #name, sentence},
#include "proto/close.def"
#undef CLOSE
};

static const struct close_row unknown = {0, true, true, "UNKNOWN", "a reason of an unknown number"};

static const struct close_row *find(uint32_t reason)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].number == reason) {
            return &rows[i];
        }
    }
    return &unknown;
}

const char *close_name(uint32_t reason)
{
    return find(reason)->name;
}

const char *close_text(uint32_t reason)
{
    return find(reason)->text;
}

bool close_is_error(uint32_t reason)
{
    return find(reason)->is_error;
}

bool close_dial_again(uint32_t reason)
{
    return find(reason)->dial_again;
}

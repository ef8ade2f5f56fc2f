/* place.c: names for a test's own files. Owns nothing: who makes a file removes it. */
#include "tests/harness/place.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

void place_pattern(char *path, size_t size, const char *name)
{
    const char *base = getenv("TMPDIR");
    int n = snprintf(path, size, "%s/%s.XXXXXX", base != NULL && base[0] != '\0' ? base : "/tmp", name);

    cr_assert(n > 0 && (size_t)n < size, "TMPDIR is too long for this test: %s", base);
}

void place_new_dir(char *path, size_t size, const char *name)
{
    place_pattern(path, size, name);
    cr_assert_not_null(mkdtemp(path), "%s", path);
}

/* version.c: the only file that is compiled again when the commit changes. Owns nothing. */
#include "common/version.h"

#include "makespan_build.h"

_Static_assert(sizeof(MAKESPAN_VERSION) <= 32, "messages give a version 32 bytes");

const char *version_text(void)
{
    return MAKESPAN_VERSION;
}

int64_t version_build_date_s(void)
{
    return MAKESPAN_BUILD_DATE;
}

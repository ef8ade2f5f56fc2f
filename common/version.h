/* version.h: which program this is. The build writes both into makespan_build.h. */
#ifndef MAKESPAN_COMMON_VERSION_H
#define MAKESPAN_COMMON_VERSION_H

#include <stdint.h>

/* "0.1.0", with "+" and the commit where it was built from a repository; at most 31 bytes. */
const char *version_text(void);

/* When the source was committed or built, in seconds since 1970 UTC: no earlier time can be now. */
int64_t version_build_date_s(void);

#endif

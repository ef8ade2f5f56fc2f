/* err.h: the one enum of error codes. Functions return 0 or a negative code: `return -ERR_IO;`. */
#ifndef MAKESPAN_COMMON_ERR_H
#define MAKESPAN_COMMON_ERR_H

enum err {
#define ERR(name, number, text) ERR_##name = (number),
#include "common/err.def"
#undef ERR
};

/* The sentence of a code; takes 0, a code or its negative; an unknown number gives "unknown error". Never NULL. */
const char *err_text(int code);

/* The short name of a code ("NOTFOUND"); takes 0, a code or its negative; unknown: "UNKNOWN". */
const char *err_name(int code);

/* The negative code that fits an errno value (ENOSPC, EDQUOT -> -ERR_FULL, ENOENT -> -ERR_NOTFOUND, …); 0 gives -ERR_SYS. */
int err_from_errno(int errno_value);

#endif

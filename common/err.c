/* err.c: the texts of the error codes and their relation to errno. Owns no state; the codes themselves are rows of err.def. */
#include "common/err.h"

#include "common/attr.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>

struct err_row {
    int code;
    const char *name;
    const char *text;
};

static const struct err_row rows[] = {
#define ERR(name, number, text) {number, #name, text},
#include "common/err.def"
#undef ERR
};

static const struct {
    int errno_value;
    int code;
} from_errno[] = {
    {ENOMEM, ERR_NOMEM},
    {EIO, ERR_IO},
    {ENXIO, ERR_IO},
    {EAGAIN, ERR_AGAIN},
    {EINTR, ERR_AGAIN},
    {EINVAL, ERR_INVAL},
    {EBADF, ERR_INVAL},
    {ENOTDIR, ERR_INVAL},
    {EISDIR, ERR_INVAL},
    {ELOOP, ERR_INVAL},
    {ERANGE, ERR_RANGE},
    {EOVERFLOW, ERR_RANGE},
    {EDOM, ERR_RANGE},
    {EMFILE, ERR_LIMIT},
    {ENFILE, ERR_LIMIT},
    {EFBIG, ERR_LIMIT},
    {E2BIG, ERR_LIMIT},
    {EMLINK, ERR_LIMIT},
    {ENAMETOOLONG, ERR_LIMIT},
    {ENOENT, ERR_NOTFOUND},
    {ESRCH, ERR_NOTFOUND},
    {ENODEV, ERR_NOTFOUND},
    {ECHILD, ERR_NOTFOUND},
    {EEXIST, ERR_EXISTS},
    {ENOTEMPTY, ERR_EXISTS},
    {EACCES, ERR_PERM},
    {EPERM, ERR_PERM},
    {EROFS, ERR_PERM},
    {ENOSPC, ERR_FULL},
    {EDQUOT, ERR_FULL},
    {EBUSY, ERR_BUSY},
    {ETXTBSY, ERR_BUSY},
    {EADDRINUSE, ERR_BUSY},
    {EPIPE, ERR_CLOSED},
    {ECONNRESET, ERR_CLOSED},
    {ECONNABORTED, ERR_CLOSED},
    {ENOTCONN, ERR_CLOSED},
    {ETIMEDOUT, ERR_TIMEOUT},
    {ECONNREFUSED, ERR_UNREACH},
    {EHOSTUNREACH, ERR_UNREACH},
    {ENETUNREACH, ERR_UNREACH},
    {EHOSTDOWN, ERR_UNREACH},
    {ENETDOWN, ERR_UNREACH},
    {EADDRNOTAVAIL, ERR_UNREACH},
    {ENOSYS, ERR_UNSUP},
    {EOPNOTSUPP, ERR_UNSUP},
    {EAFNOSUPPORT, ERR_UNSUP},
    {EPROTONOSUPPORT, ERR_UNSUP},
    {EPROTO, ERR_PROTO},
    {EILSEQ, ERR_SYNTAX},
    {ENOEXEC, ERR_CHILD},
};

static const struct err_row *find_row(int code)
{
    if (code == INT_MIN) {
        return NULL;
    }
    if (code < 0) {
        code = -code;
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].code == code) {
            return &rows[i];
        }
    }
    return NULL;
}

const char *err_text(int code)
{
    const struct err_row *row = find_row(code);
    return row != NULL ? row->text : "unknown error";
}

const char *err_name(int code)
{
    const struct err_row *row = find_row(code);
    return row != NULL ? row->name : "UNKNOWN";
}

int err_from_errno(int errno_value)
{
    for (size_t i = 0; i < ARRAY_LEN(from_errno); i++) {
        if (from_errno[i].errno_value == errno_value) {
            return -from_errno[i].code;
        }
    }
    return -ERR_SYS;
}

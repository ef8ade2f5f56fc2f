/* exit.c: exit statuses and which of them holds. Owns nothing. */
#include "common/err.h"
#include "coordinator/ctl/ctl.h"

static int rank(int status)
{
    switch (status) {
    case CTL_USAGE:
        return 4;
    case CTL_NO:
        return 3;
    case CTL_INFRASTRUCTURE:
        return 2;
    case CTL_UNDECIDED:
        return 1;
    default:
        return 0;
    }
}

int ctl_exit_join(int a, int b)
{
    return rank(a) >= rank(b) ? a : b;
}

int ctl_exit_of(int code)
{
    switch (code < 0 ? -code : code) {
    case ERR_OK:
        return CTL_DONE;
    case ERR_INVAL:
    case ERR_RANGE:
    case ERR_LIMIT:
    case ERR_SYNTAX:
    case ERR_NOTYET:
    case ERR_CHECKSUM:
    case ERR_VERSION:
        return CTL_USAGE;
    default:
        return CTL_INFRASTRUCTURE;
    }
}

/* cmd_watch.c: watch. */
#include "coordinator/ctl/call.h"
#include "coordinator/ctl/cmds.h"
#include "coordinator/ctl/follow.h"

#include <stdio.h>

int cmd_watch(struct ctl *ctl, const struct opts *opts)
{
    struct call *call;
    int status = call_open(ctl, &call);

    if (status == 0)
        status = follow_sweep(ctl, &call, opts->args[0], stdout, false);
    call_close(&call);
    return status;
}

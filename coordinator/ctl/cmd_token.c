/* cmd_token.c: token create. */
#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/num.h"
#include "coordinator/ctl/call.h"
#include "coordinator/ctl/cmds.h"
#include "proto/msg.h"

#include <stdio.h>

int cmd_token_create(struct ctl *ctl, const struct opts *opts)
{
    const char *ttl = opts_get(opts, "ttl") == NULL ? "1h" : opts_get(opts, "ttl");
    const char *role = opts_get(opts, "role") == NULL ? "worker" : opts_get(opts, "role");
    const char *classes[16];
    struct msg m = {.type = MSG_TOKEN_CREATE};
    struct buf body = BUF_INIT;
    struct call *call;
    int64_t ttl_ns;
    size_t n = 0;
    int status;

    if (num_parse_duration(ttl, &ttl_ns) != 0) {
        diag_error(ctl->diag, ERR_INVAL, "--ttl %s is no span of time: it is written as 30m, 1h, 7d", ttl);
        return CTL_USAGE;
    }
    while (opts_nth(opts, "class", n) != NULL) {
        if (n == ARRAY_LEN(classes)) {
            diag_error(ctl->diag, ERR_LIMIT, "more than %zu classes", ARRAY_LEN(classes));
            return CTL_USAGE;
        }
        classes[n] = opts_nth(opts, "class", n);
        n++;
    }
    status = call_open(ctl, &call);
    if (status != 0)
        return status;
    m.u.token_create.call = call_number(call);
    m.u.token_create.role = role;
    m.u.token_create.classes = classes;
    m.u.token_create.classes_count = n;
    m.u.token_create.ttl_ns = ttl_ns;
    m.u.token_create.name = opts_get(opts, "name");
    status = call_document(call, m.u.token_create.call, &m, &body);
    if (status == 0)
        fputs(buf_str(&body), stdout);
    buf_fini(&body);
    call_close(&call);
    return status;
}

/* cmd_report.c: report. */
#include "coordinator/ctl/cmd_report.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/num.h"
#include "common/str.h"
#include "coordinator/ctl/call.h"
#include "coordinator/ctl/cmds.h"
#include "coordinator/verdict/one.h"
#include "coordinator/verdict/report.h"
#include "proto/msg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool to_stdout(const char *kind, const void *bytes, size_t n, void *arg)
{
    (void)kind;
    (void)arg;
    return fwrite(bytes, 1, n, stdout) == n;
}

int report_check_format(const char *format, struct diag *diag)
{
    const char *const *formats = report_formats();
    const char *near;
    size_t n = 0;

    for (; formats[n] != NULL; n++)
        if (strcmp(format, formats[n]) == 0)
            return 0;
    near = str_nearest(format, formats, n);
    diag_error(diag, ERR_INVAL, "--format %s: %s%s%stable, mail, csv, json and markdown are there", format, near == NULL ? "" : "did you mean ",
               near == NULL ? "" : near, near == NULL ? "" : "? ");
    return CTL_USAGE;
}

int report_print(struct call *call, const char *sweep, const char *format)
{
    struct msg m = {.type = MSG_REPORT};
    struct call_answer answer;

    m.u.report.call = call_number(call);
    m.u.report.sweep = sweep;
    m.u.report.format = format;
    return call_ask(call, m.u.report.call, &m, to_stdout, NULL, &answer);
}

/* "17" or "17/2". */
static int read_attempt(const char *text, uint64_t *run, uint64_t *attempt)
{
    char copy[64];
    char *slash;

    if (strlen(text) >= sizeof copy)
        return -ERR_INVAL;
    memcpy(copy, text, strlen(text) + 1);
    slash = strchr(copy, '/');
    *attempt = 1;
    if (slash != NULL) {
        *slash = '\0';
        if (num_parse_u64(slash + 1, attempt) != 0 || *attempt > UINT32_MAX)
            return -ERR_INVAL;
    }
    return num_parse_u64(copy, run);
}

int cmd_report(struct ctl *ctl, const struct opts *opts)
{
    const char *format = opts_get(opts, "format") == NULL ? "table" : opts_get(opts, "format");
    const char *one = opts_get(opts, "attempt");
    struct msg m = {.type = MSG_REPORT};
    struct call_answer answer;
    uint64_t run = 0, attempt = 0;
    struct call *call;
    int status;

    if (one != NULL && read_attempt(one, &run, &attempt) != 0) {
        diag_error(ctl->diag, ERR_INVAL, "--attempt %s: it is written as RUN or RUN/N, as in the columns run and attempt of --format csv", one);
        return CTL_USAGE;
    }
    if (one == NULL)
        status = report_check_format(format, ctl->diag);
    else
        status = one_check_format(format, ctl->diag) == 0 ? 0 : CTL_USAGE;
    if (status == 0)
        status = call_open(ctl, &call);
    if (status != 0)
        return status;
    if (one == NULL) {
        status = report_print(call, opts->args[0], format);
    } else {
        m.u.report.call = call_number(call);
        m.u.report.sweep = opts->args[0];
        m.u.report.format = format;
        m.u.report.run = run;
        m.u.report.has_run = true;
        m.u.report.attempt = (uint32_t)attempt;
        m.u.report.has_attempt = true;
        status = call_ask(call, m.u.report.call, &m, to_stdout, NULL, &answer);
    }
    call_close(&call);
    return status;
}

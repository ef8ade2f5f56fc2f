/* cmd_sweep.c: sweep check, plan, run, list, show, pause, resume, cancel, retry. */
#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/json.h"
#include "common/str.h"
#include "coordinator/ctl/call.h"
#include "coordinator/ctl/checked.h"
#include "coordinator/ctl/cmds.h"
#include "coordinator/ctl/document.h"
#include "coordinator/ctl/follow.h"
#include "coordinator/ctl/out.h"
#include "coordinator/ctl/progress.h"
#include "coordinator/ctl/submit.h"
#include "proto/msg.h"

#include <stdio.h>
#include <string.h>

int cmd_sweep_check(struct ctl *ctl, const struct opts *opts)
{
    struct submit submit = {.action = "check", .file = opts->args[0], .document = true};
    struct call *call = NULL;
    struct buf out = BUF_INIT;
    struct buf line = BUF_INIT;
    json_t *doc = NULL;
    int status = submit_sweep(ctl, opts, &submit, &call, &out);

    if (status == 0 && ctl->json) {
        fputs(buf_str(&out), stdout);
    } else if (status == 0 && (doc = json_parse("the answer", buf_str(&out), out.len, ctl->diag)) == NULL) {
        status = CTL_INFRASTRUCTURE;
    } else if (status == 0) {
        checked_line(strcmp(submit.file, "-") == 0 ? "standard input" : submit.file, doc, &line);
        fputs(buf_str(&line), stderr);
    }
    json_decref(doc);
    buf_fini(&line);
    buf_fini(&out);
    call_close(&call);
    return status;
}

int cmd_sweep_plan(struct ctl *ctl, const struct opts *opts)
{
    struct submit submit = {.action = "plan", .file = opts->args[0]};
    struct call *call = NULL;
    struct buf out = BUF_INIT;
    int status = submit_sweep(ctl, opts, &submit, &call, &out);

    fputs(buf_str(&out), stdout);
    buf_fini(&out);
    call_close(&call);
    return status;
}

int cmd_sweep_run(struct ctl *ctl, const struct opts *opts)
{
    struct submit submit = {
        .action = "run", .file = opts->args[0], .key = opts_get(opts, "key"), .yes = opts_has(opts, "yes")};
    struct call *call = NULL;
    struct buf out = BUF_INIT;
    int status = submit_sweep(ctl, opts, &submit, &call, &out);

    fputs(buf_str(&out), stdout);
    if (status == 0 && opts_has(opts, "wait")) {
        char name[96];

        fflush(stdout);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(buf_str(&out), "\n"), buf_str(&out));
        status = follow_sweep(ctl, &call, name, stderr, false);
    }
    buf_fini(&out);
    call_close(&call);
    return status;
}

/* Columns of `sweep show`, which may go to a file. */
#define WIDTH 200

static void print_sweeps(const json_t *doc, struct buf *out)
{
    static const char *const HEADINGS[] = {"sweep", "state", "submitted", "by", "ended", "file", "because"};
    struct out_table *t = out_table_new(HEADINGS, ARRAY_LEN(HEADINGS));
    const json_t *sweeps = json_object_get(doc, "sweeps");
    char text[64];

    for (size_t i = 0; i < json_array_size(sweeps); i++) {
        const json_t *s = json_array_get(sweeps, i);

        out_cell(t, json_str(s, "sweep", NULL));
        out_cell(t, json_str(s, "state", NULL));
        out_cell(t, out_time(text, sizeof text, json_int(s, "submitted_wall_ns", 0)));
        out_cell(t, json_str(s, "submitted_by", NULL));
        out_cell(t, out_time(text, sizeof text, json_int(s, "ended_wall_ns", 0)));
        out_cell(t, json_str(s, "file", NULL));
        out_cell(t, json_str(s, "because", NULL));
    }
    if (json_array_size(sweeps) == 0)
        buf_add_str(out, "no sweeps yet\n");
    else
        out_table_print(t, out);
    out_table_free(&t);
}

/* A cell is open while its comparisons are not closed; with all its runs at their end, or its sweep, nobody waits for it. */
static const char *cell_state(const json_t *sweep, const json_t *cell)
{
    const char *state = json_str(cell, "state", NULL);
    bool ended = json_int(sweep, "ended_wall_ns", 0) > 0 ||
                 json_int(cell, "have", 0) + json_int(cell, "failed", 0) >= json_int(cell, "wanted", 0);

    return str_eq(state, "open") && ended ? "ended" : state;
}

static void print_cells(const json_t *doc, struct buf *out)
{
    static const char *const HEADINGS[] = {"host", "workload", "variant", "jobs", "state", ">wanted", ">have", ">failed", ">invalid", ">real", "because"};
    struct out_table *t = out_table_new(HEADINGS, ARRAY_LEN(HEADINGS));
    const json_t *cells = json_object_get(doc, "cells");

    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *c = json_array_get(cells, i);

        out_cell(t, json_str(c, "host", NULL));
        out_cell(t, json_str(c, "workload", NULL));
        out_cell(t, json_str(c, "variant", NULL));
        out_cell(t, json_str(c, "jobs", NULL));
        out_cell(t, cell_state(doc, c));
        out_cellf(t, "%lld", json_int(c, "wanted", 0));
        out_cellf(t, "%lld", json_int(c, "have", 0));
        out_cellf(t, "%lld", json_int(c, "failed", 0));
        out_cellf(t, "%lld", json_int(c, "invalid", 0));
        if (json_int(c, "real_mean_ns", -1) < 0)
            out_cell(t, NULL);
        else
            out_cellf(t, "%.2f", (double)json_int(c, "real_mean_ns", 0) / 1e9);
        out_cell(t, json_str(c, "reason", NULL));
    }
    out_table_print(t, out);
    out_table_free(&t);
}

static void print_sweep(const json_t *doc, struct buf *out)
{
    progress_picture(doc, WIDTH, out);
    buf_add_char(out, '\n');
    print_cells(doc, out);
}

static int show(struct ctl *ctl, const char *sweep)
{
    struct msg m = {.type = MSG_SWEEP_LIST};
    struct call *call;
    int status = call_open(ctl, &call);

    if (status != 0)
        return status;
    m.u.sweep_list.call = call_number(call);
    m.u.sweep_list.sweep = sweep;
    status = document_ask(ctl, call, m.u.sweep_list.call, &m, sweep == NULL ? print_sweeps : print_sweep);
    call_close(&call);
    return status;
}

int cmd_sweep_list(struct ctl *ctl, const struct opts *opts)
{
    (void)opts;
    return show(ctl, NULL);
}

int cmd_sweep_show(struct ctl *ctl, const struct opts *opts)
{
    return show(ctl, opts->args[0]);
}

static int set(struct ctl *ctl, const struct opts *opts, const char *action)
{
    struct msg m = {.type = MSG_SWEEP_SET};
    struct call_answer answer;
    struct call *call;
    int status = call_open(ctl, &call);

    if (status != 0)
        return status;
    m.u.sweep_set.call = call_number(call);
    m.u.sweep_set.sweep = opts->args[0];
    m.u.sweep_set.action = action;
    m.u.sweep_set.text = opts_get(opts, "because");
    status = call_ask(call, m.u.sweep_set.call, &m, NULL, NULL, &answer);
    call_close(&call);
    return status;
}

int cmd_sweep_pause(struct ctl *ctl, const struct opts *opts)
{
    return set(ctl, opts, "pause");
}

int cmd_sweep_resume(struct ctl *ctl, const struct opts *opts)
{
    return set(ctl, opts, "resume");
}

int cmd_sweep_cancel(struct ctl *ctl, const struct opts *opts)
{
    return set(ctl, opts, "cancel");
}

int cmd_sweep_retry(struct ctl *ctl, const struct opts *opts)
{
    return set(ctl, opts, "retry");
}

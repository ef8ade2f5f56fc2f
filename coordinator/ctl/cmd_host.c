/* cmd_host.c: host list, show, drain, resume, label, unlabel, revoke. */
#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/json.h"
#include "common/num.h"
#include "coordinator/ctl/call.h"
#include "coordinator/ctl/cmds.h"
#include "coordinator/ctl/document.h"
#include "coordinator/ctl/out.h"
#include "proto/msg.h"

#include <stdio.h>
#include <string.h>

/* Why it takes no work, and since when. */
static void describe_no_room(const json_t *host, struct buf *out)
{
    char span[32];

    if (json_str(host, "no_room", NULL) == NULL)
        return;
    buf_printf(out, "; takes no work: %s, for %s", json_str(host, "no_room", ""), out_span(span, sizeof span, json_int(host, "no_room_age_ns", -1)));
}

/* "sweep/3 variant -j2: run, 12 s" of the first thing that a host does. */
static void describe_now(const json_t *host, struct buf *out)
{
    const json_t *now = json_object_get(host, "now");
    const json_t *first = json_array_get(now, 0);
    const char *jobs = json_str(first, "jobs", "?");
    char flag[64] = "";
    char span[32];

    if (first == NULL) {
        buf_add_str(out, "nothing");
        describe_no_room(host, out);
        return;
    }
    if (strcmp(jobs, "none") != 0)
        snprintf(flag, sizeof flag, " -j%s", strcmp(jobs, "max") == 0 ? "" : jobs);
    buf_printf(out, "%s (%s)%s: %s, %s", json_str(first, "workload", "?"), json_str(first, "variant", "?"), flag,
               json_str(first, "phase", json_str(first, "state", "?")), out_span(span, sizeof span, json_int(first, "age_ns", -1)));
    if (json_int(first, "overdue_ns", 0) > 0)
        buf_printf(out, ", overdue for %s", out_span(span, sizeof span, json_int(first, "overdue_ns", 0)));
    if (json_str(first, "text", NULL) != NULL)
        buf_printf(out, ", %s", json_str(first, "text", ""));
    if (json_array_size(now) > 1)
        buf_printf(out, "; %zu more", json_array_size(now) - 1);
    describe_no_room(host, out);
}

static void add_classes(const json_t *host, struct buf *out)
{
    const json_t *classes = json_object_get(host, "classes");

    for (size_t i = 0; i < json_array_size(classes); i++)
        buf_printf(out, "%s%s", i == 0 ? "" : " ", json_string_value(json_array_get(classes, i)));
}

static void print_list(const json_t *doc, struct buf *out)
{
    static const char *const HEADINGS[] = {"host", "state", "link", "since", ">cpus", ">memory", "classes", "does"};
    struct out_table *t = out_table_new(HEADINGS, ARRAY_LEN(HEADINGS));
    const json_t *hosts = json_object_get(doc, "hosts");
    char text[64];

    for (size_t i = 0; i < json_array_size(hosts); i++) {
        const json_t *h = json_array_get(hosts, i);
        const json_t *cpus = json_object_get(h, "cpus");
        struct buf b = BUF_INIT;

        out_cell(t, json_str(h, "host", "?"));
        out_cell(t, json_str(h, "state", "?"));
        out_cell(t, json_str(h, "link", "?"));
        out_cell(t, out_span(text, sizeof text, json_int(h, "link_age_ns", -1)));
        if (json_is_number(cpus))
            out_cellf(t, "%g", json_number_value(cpus));
        else
            out_cell(t, NULL);
        out_cell(t, json_int(h, "memory_bytes", 0) == 0 ? NULL : num_size_text(text, sizeof text, (uint64_t)json_int(h, "memory_bytes", 0)));
        add_classes(h, &b);
        out_cell(t, buf_str(&b));
        buf_reset(&b);
        describe_now(h, &b);
        out_cell(t, buf_str(&b));
        buf_fini(&b);
    }
    out_table_print(t, out);
    if (json_array_size(hosts) == 0)
        buf_add_str(out, "no hosts yet: `makespan token create --role worker`, then `makespan-worker join HOST:PORT TOKEN` on each\n");
    out_table_free(&t);
}

static void print_one(const json_t *doc, struct buf *out)
{
    const json_t *h = json_array_get(json_object_get(doc, "hosts"), 0);
    json_t *facts = json_object_get(h, "facts");
    const char *key;
    json_t *value;
    char text[64];

    buf_printf(out, "%-22s%s\n", "host", json_str(h, "host", "?"));
    buf_printf(out, "%-22s%s\n", "state", json_str(h, "state", "?"));
    buf_printf(out, "%-22s%s, %s\n", "link", json_str(h, "link", "?"), out_span(text, sizeof text, json_int(h, "link_age_ns", -1)));
    buf_printf(out, "%-22s", "classes");
    add_classes(h, out);
    buf_printf(out, "\n%-22s", "does");
    describe_now(h, out);
    buf_printf(out, "\n%-22s%s\n", "worker", json_str(h, "version", "-"));
    buf_printf(out, "%-22s%s UTC\n", "joined", out_time(text, sizeof text, json_int(h, "joined_wall_ns", 0)));
    if (json_int(h, "seen_wall_ns", 0) == 0)
        buf_printf(out, "%-22snever\n", "last heard of");
    else if (strcmp(json_str(h, "link", "?"), "up") != 0) /* while the link is up: when it came up */
        buf_printf(out, "%-22s%s UTC\n", "last heard of", out_time(text, sizeof text, json_int(h, "seen_wall_ns", 0)));
    json_object_foreach(facts, key, value)
    {
        buf_printf(out, "%-22s%s\n", key, json_is_string(value) ? json_string_value(value) : "?");
    }
}

static int list(struct ctl *ctl, const char *name)
{
    struct msg m = {.type = MSG_HOST_LIST};
    struct call *call;
    int status = call_open(ctl, &call);

    if (status != 0)
        return status;
    m.u.host_list.call = call_number(call);
    m.u.host_list.name = name;
    status = document_ask(ctl, call, m.u.host_list.call, &m, name == NULL ? print_list : print_one);
    call_close(&call);
    return status;
}

int cmd_host_list(struct ctl *ctl, const struct opts *opts)
{
    (void)opts;
    return list(ctl, NULL);
}

int cmd_host_show(struct ctl *ctl, const struct opts *opts)
{
    return list(ctl, opts->args[0]);
}

static int set(struct ctl *ctl, const struct opts *opts, const char *action)
{
    struct msg m = {.type = MSG_HOST_SET};
    struct call_answer answer;
    struct call *call;
    int status = call_open(ctl, &call);

    if (status != 0)
        return status;
    m.u.host_set.call = call_number(call);
    m.u.host_set.name = opts->args[0];
    m.u.host_set.action = action;
    m.u.host_set.label = opts->arg_count > 1 ? opts->args[1] : NULL;
    status = call_ask(call, m.u.host_set.call, &m, NULL, NULL, &answer);
    call_close(&call);
    return status;
}

int cmd_host_drain(struct ctl *ctl, const struct opts *opts)
{
    return set(ctl, opts, "drain");
}

int cmd_host_resume(struct ctl *ctl, const struct opts *opts)
{
    return set(ctl, opts, "resume");
}

int cmd_host_label(struct ctl *ctl, const struct opts *opts)
{
    return set(ctl, opts, "label");
}

int cmd_host_unlabel(struct ctl *ctl, const struct opts *opts)
{
    return set(ctl, opts, "unlabel");
}

int cmd_host_revoke(struct ctl *ctl, const struct opts *opts)
{
    return set(ctl, opts, "revoke");
}

/* progress.c: says how a sweep stands. Owns nothing. */
#include "coordinator/ctl/progress.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/str.h"
#include "coordinator/ctl/ctl.h"
#include "coordinator/ctl/out.h"

#include <string.h>

#define BAR_WIDTH 24

/* Names of hosts stand in a column as wide as the longest, up to this. */
#define NAME_WIDTH 24

/* What a host does, or what it waits for. */
static void doing(const json_t *host, struct buf *out)
{
    const json_t *now = json_array_get(json_object_get(host, "now"), 0);
    const json_t *wait = json_object_get(host, "wait");
    char span[32];

    if (json_str(host, "skipped", NULL) != NULL) {
        buf_printf(out, "skipped: %s", json_str(host, "skipped", ""));
    } else if (json_is_true(json_object_get(host, "finished"))) {
        if (json_str(host, "lost", NULL) != NULL)
            buf_printf(out, "lost: %s", json_str(host, "lost", ""));
        else
            buf_add_str(out, "finished");
    } else if (now != NULL) {
        const char *jobs = json_str(now, "jobs", "?");

        buf_printf(out, "(%s)%s%s %s%s, %s", json_str(now, "variant", "?"), strcmp(jobs, "none") == 0 ? "" : " -j",
                   strcmp(jobs, "none") == 0 || strcmp(jobs, "max") == 0 ? "" : jobs,
                   json_is_true(json_object_get(now, "warmup")) ? "warm-up, " : "", json_str(now, "phase", json_str(now, "state", "?")),
                   out_span(span, sizeof span, json_int(now, "age_ns", -1)));
        if (json_int(now, "overdue_ns", 0) > 0)
            buf_printf(out, ", overdue for %s", out_span(span, sizeof span, json_int(now, "overdue_ns", 0)));
        if (json_str(now, "text", NULL) != NULL)
            buf_printf(out, ", %s", json_str(now, "text", ""));
    } else if (json_is_object(wait)) {
        buf_printf(out, "waits for %s (%s) since %s", json_str(wait, "for", "?"), json_str(wait, "owner", "?"),
                   out_span(span, sizeof span, json_int(wait, "age_ns", -1)));
    } else {
        buf_add_str(out, "waits");
    }
}

/* Appends at most `width` columns of text, escaped. */
static void add_cut(struct buf *out, const char *text, size_t width)
{
    struct buf safe = BUF_INIT;
    size_t n;

    str_escape(&safe, text, strlen(text));
    n = safe.len;
    while (n > 0 && str_columns(buf_str(&safe)) > width) {
        do
            n--;
        while (n > 0 && (safe.data[n] & 0xC0) == 0x80);
        safe.data[n] = '\0';
    }
    buf_add(out, buf_str(&safe), n);
    buf_fini(&safe);
}

/* How far something is: measured runs that are at their end, well or not; warm-ups are counted apart, and are in no other number. */
struct made {
    long long runs, runs_wanted;
    long long failed; /* of these runs */
    long long warmups, warmups_wanted;
};

static struct made made_of(const json_t *o)
{
    long long failed = json_int(o, "failed", 0);

    return (struct made){.runs = json_int(o, "have", 0) + failed,
                         .runs_wanted = json_int(o, "wanted", 0),
                         .failed = failed,
                         .warmups = json_int(o, "warmups_have", 0),
                         .warmups_wanted = json_int(o, "warmups_wanted", 0)};
}

static struct made made_of_all(const json_t *status)
{
    const json_t *hosts = json_object_get(status, "hosts");
    struct made all = made_of(status);

    all.warmups = all.warmups_wanted = 0;
    for (size_t i = 0; i < json_array_size(hosts); i++) {
        struct made one = made_of(json_array_get(hosts, i));

        all.warmups += one.warmups;
        all.warmups_wanted += one.warmups_wanted;
    }
    return all;
}

/* ", 1 failed, 2 of 4 warm-ups" */
static void add_besides(const struct made *m, struct buf *out)
{
    if (m->failed > 0)
        buf_printf(out, ", %lld failed", m->failed);
    if (m->warmups_wanted > 0)
        buf_printf(out, ", %lld of %lld warm-up%s", m->warmups, m->warmups_wanted, m->warmups_wanted == 1 ? "" : "s");
}

void progress_numbers(const json_t *status, struct buf *out)
{
    struct made m = made_of_all(status);

    buf_printf(out, "%s: %s, %lld of %lld run%s", json_str(status, "sweep", "?"), json_str(status, "state", "?"), m.runs, m.runs_wanted,
               m.runs_wanted == 1 ? "" : "s");
    add_besides(&m, out);
}

static void totals(const json_t *status, struct buf *out)
{
    char span[32];

    progress_numbers(status, out);
    if (json_int(status, "eta_ns", -1) >= CLOCK_SEC && strcmp(json_str(status, "state", ""), "active") == 0)
        buf_printf(out, ", about %s left", out_span(span, sizeof span, json_int(status, "eta_ns", -1)));
}

/* ", paused by boss: the disk is changed" */
static void add_because(const json_t *status, struct buf *out)
{
    const char *because = json_str(status, "because", NULL);

    if (because != NULL)
        buf_printf(out, ", %s", because);
}

static int name_width(const json_t *hosts)
{
    size_t width = 0;

    for (size_t i = 0; i < json_array_size(hosts); i++) {
        size_t one = strlen(json_str(json_array_get(hosts, i), "host", "?"));

        width = one > width ? one : width;
    }
    return (int)(width < NAME_WIDTH ? width : NAME_WIDTH);
}

size_t progress_picture(const json_t *status, size_t width, struct buf *out)
{
    const json_t *hosts = json_object_get(status, "hosts");
    size_t lines = 1;

    totals(status, out);
    buf_add_char(out, '\n');
    if (json_str(status, "because", NULL) != NULL) {
        add_cut(out, json_str(status, "because", ""), width > 1 ? width - 1 : width);
        buf_add_char(out, '\n');
        lines++;
    }
    for (size_t i = 0; i < json_array_size(hosts); i++, lines++) {
        const json_t *h = json_array_get(hosts, i);
        struct buf line = BUF_INIT;
        struct made m = made_of(h);
        char span[32];

        buf_printf(&line, "%-*s ", name_width(hosts), json_str(h, "host", "?"));
        out_bar(&line, m.runs, m.runs_wanted, BAR_WIDTH);
        buf_printf(&line, " %lld/%lld", m.runs, m.runs_wanted);
        add_besides(&m, &line);
        buf_add_str(&line, ", ");
        if (json_int(h, "eta_ns", -1) >= CLOCK_SEC && !json_is_true(json_object_get(h, "finished")))
            buf_printf(&line, "%s left, ", out_span(span, sizeof span, json_int(h, "eta_ns", -1)));
        doing(h, &line);
        add_cut(out, buf_str(&line), width > 1 ? width - 1 : width);
        buf_add_char(out, '\n');
        buf_fini(&line);
    }
    return lines;
}

void progress_line(const json_t *status, struct buf *out)
{
    const json_t *hosts = json_object_get(status, "hosts");
    struct buf line = BUF_INIT;

    totals(status, &line);
    add_because(status, &line);
    for (size_t i = 0; i < json_array_size(hosts); i++) {
        const json_t *h = json_array_get(hosts, i);

        buf_printf(&line, "; %s: ", json_str(h, "host", "?"));
        doing(h, &line);
    }
    str_escape(out, buf_str(&line), line.len);
    buf_add_char(out, '\n');
    buf_fini(&line);
}

int progress_exit(const json_t *status)
{
    const char *state = json_str(status, "state", "");
    const json_t *hosts = json_object_get(status, "hosts");
    const json_t *cells = json_object_get(status, "cells");
    int exit = CTL_DONE;

    if (strcmp(state, "done") != 0)
        exit = CTL_UNDECIDED;
    for (size_t i = 0; i < json_array_size(hosts); i++) {
        const json_t *h = json_array_get(hosts, i);

        /* The host was lost, or refuses what was planned. */
        if (json_int(h, "no_data", 0) > 0 || json_int(h, "skipped_runs", 0) > 0)
            exit = ctl_exit_join(exit, CTL_INFRASTRUCTURE);
        /* It ended early there. */
        if (json_int(h, "over_budget", 0) > 0)
            exit = ctl_exit_join(exit, CTL_UNDECIDED);
    }
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *c = json_array_get(cells, i);

        if (json_int(c, "failed", 0) > 0 || strcmp(json_str(c, "state", ""), "setup failed") == 0)
            exit = ctl_exit_join(exit, CTL_NO);
    }
    return exit;
}

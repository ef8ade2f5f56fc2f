/* quote.c: a sheet as text and as JSON: what `makespan sweep plan` says. */
#include "common/buf.h"
#include "common/clock.h"
#include "common/jobs.h"
#include "common/json.h"
#include "common/num.h"
#include "common/str.h"
#include "coordinator/plan/sheet.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* Hours and minutes; below an hour minutes and seconds. */
static const char *span_text(char *dst, size_t room, const struct sheet_host *h)
{
    if (!h->known) {
        snprintf(dst, room, "unknown");
        return dst;
    }
    int64_t grain = h->expected_ns >= CLOCK_HOUR ? CLOCK_MIN : CLOCK_SEC;
    int64_t rounded = (h->expected_ns + grain / 2) / grain * grain;
    return num_duration_text(dst, room, rounded);
}

static size_t widest_name(const struct sheet *sheet)
{
    size_t width = 4;
    for (size_t i = 0; i < sheet->host_count; i++) {
        size_t n = strlen(sheet->hosts[i].row.name);
        width = n > width ? n : width;
    }
    return width;
}

static int64_t skipped_cells(const struct sheet *sheet)
{
    int64_t n = 0;
    for (size_t i = 0; i < sheet->host_count; i++) {
        n += sheet->hosts[i].skipped_cells;
    }
    return n;
}

static void print_hosts(const struct sheet *sheet, struct buf *out)
{
    int width = (int)widest_name(sheet);
    buf_printf(out, "%-*s %8s %8s %8s %9s %6s %11s %11s %11s\n", width, "host", "cells", "skipped",
               "runs", "warm-ups", "boots", "first look", "expected", "last look");
    for (size_t i = 0; i < sheet->host_count; i++) {
        const struct sheet_host *h = &sheet->hosts[i];
        char span[32];
        span_text(span, sizeof(span), h);
        buf_printf(out,
                   "%-*s %8" PRId64 " %8" PRId64 " %8" PRId64 " %9" PRId64 " %6d %11s %11s %11s\n",
                   width, h->row.name, h->cells, h->skipped_cells, h->runs, h->warmups, 0, span,
                   span, span);
    }
}

static void print_budgets(const struct sheet *sheet, struct buf *out)
{
    for (size_t i = 0; i < sheet->host_count; i++) {
        const struct sheet_host *h = &sheet->hosts[i];
        char span[32];
        if (h->settings.repeat.budget_ns > 0 && h->skipped == NULL) {
            buf_printf(out, "budget: %s stops at the end of the block in which it has used %s\n",
                       h->row.name,
                       num_duration_text(span, sizeof(span), h->settings.repeat.budget_ns));
        }
    }
}

static void print_skipped(const struct sheet *sheet, struct buf *out)
{
    for (size_t i = 0; i < sheet->host_count; i++) {
        const struct sheet_host *h = &sheet->hosts[i];
        if (h->skipped != NULL) {
            buf_printf(out, "skipped: %s: %s\n", h->row.name, h->skipped);
        }
        for (size_t p = 0; p < h->point_count; p++) {
            char jobs[16];
            if (h->points[p].skip != NULL) {
                buf_printf(out, "skipped: %s, jobs %s: %s\n", h->row.name,
                           jobs_text(jobs, sizeof(jobs), h->points[p].jobs), h->points[p].skip);
            }
        }
    }
}

static bool any_unknown(const struct sheet *sheet)
{
    for (size_t i = 0; i < sheet->host_count; i++) {
        if (!sheet->hosts[i].known && sheet->hosts[i].cells > 0) {
            return true;
        }
    }
    return false;
}

void sheet_print(const struct sheet *sheet, struct buf *out)
{
    size_t workloads;
    size_t variants;
    char size[32];
    int64_t skipped = skipped_cells(sheet);
    spec_workloads(sheet->spec, &workloads);
    spec_variants(sheet->spec, &variants);
    buf_printf(out, "%s: %zu workload%s, %zu variant%s, %zu host%s, %" PRId64 " cell%s",
               spec_name(sheet->spec), workloads, plural((int64_t)workloads), variants,
               plural((int64_t)variants), sheet->host_count, plural((int64_t)sheet->host_count),
               sheet->cells - skipped, plural(sheet->cells - skipped));
    buf_printf(out, ", %" PRId64 " run%s and %" PRId64 " warm-up%s\n", sheet->runs,
               plural(sheet->runs), sheet->warmups, plural(sheet->warmups));
    print_hosts(sheet, out);
    if (any_unknown(sheet)) {
        buf_add_str(out, "unknown: until the first runs are measured\n");
    }
    if (sheet->archives > 0) {
        num_size_text(size, sizeof(size), sheet->archive_bytes);
        buf_printf(out, "disk: %zu archive%s of %s, on the coordinator and on each host\n",
                   sheet->archives, plural((int64_t)sheet->archives), size);
    }
    print_budgets(sheet, out);
    print_skipped(sheet, out);
}

/* --- JSON --- */

static json_t *span_json(const struct sheet_host *h)
{
    return h->known ? json_integer(h->expected_ns) : json_null();
}

static json_t *host_json(const struct sheet_host *h)
{
    json_t *o = json_object();
    json_t *skipped = json_array();
    json_set(o, "host", json_string(h->row.name));
    json_set(o, "selector", json_string(h->selector));
    json_set(o, "skipped", h->skipped != NULL ? json_string(h->skipped) : json_null());
    json_set(o, "cells", json_integer(h->cells));
    json_set(o, "skipped_cells", json_integer(h->skipped_cells));
    json_set(o, "runs", json_integer(h->runs));
    json_set(o, "warmups", json_integer(h->warmups));
    json_set(o, "boots", json_integer(0));
    int64_t budget = h->settings.repeat.budget_ns;
    json_set(o, "budget_ns", budget > 0 ? json_integer(budget) : json_null());
    json_set(o, "first_look_ns", span_json(h));
    json_set(o, "expected_ns", span_json(h));
    json_set(o, "last_look_ns", span_json(h));
    for (size_t p = 0; p < h->point_count; p++) {
        char jobs[16];
        if (h->points[p].skip == NULL) {
            continue;
        }
        json_t *point = json_object();
        json_set(point, "jobs", json_string(jobs_text(jobs, sizeof(jobs), h->points[p].jobs)));
        json_set(point, "reason", json_string(h->points[p].skip));
        json_array_append_new(skipped, point);
    }
    json_set(o, "skipped_points", skipped);
    return o;
}

int sheet_print_json(const struct sheet *sheet, const char *ref, int64_t id, struct buf *out)
{
    size_t workloads;
    size_t variants;
    json_t *doc = json_object();
    json_t *hosts = json_array();
    spec_workloads(sheet->spec, &workloads);
    spec_variants(sheet->spec, &variants);
    json_set(doc, "schema", json_integer(1));
    json_set(doc, "name", json_string(spec_name(sheet->spec)));
    json_set(doc, "sweep", ref != NULL ? json_string(ref) : json_null());
    json_set(doc, "id", id != 0 ? json_integer(id) : json_null());
    json_set(doc, "workloads", json_integer((json_int_t)workloads));
    json_set(doc, "variants", json_integer((json_int_t)variants));
    json_set(doc, "cells", json_integer(sheet->cells - skipped_cells(sheet)));
    json_set(doc, "skipped_cells", json_integer(skipped_cells(sheet)));
    json_set(doc, "runs", json_integer(sheet->runs));
    json_set(doc, "warmups", json_integer(sheet->warmups));
    json_set(doc, "archives", json_integer((json_int_t)sheet->archives));
    json_set(doc, "archive_bytes", json_integer((json_int_t)sheet->archive_bytes));
    for (size_t i = 0; i < sheet->host_count; i++) {
        json_array_append_new(hosts, host_json(&sheet->hosts[i]));
    }
    json_set(doc, "hosts", hosts);
    int rc = json_print(doc, 2, out);
    buf_add_char(out, '\n');
    json_decref(doc);
    return rc;
}

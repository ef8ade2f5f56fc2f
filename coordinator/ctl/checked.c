/* checked.c: says what was checked. Owns nothing. */
#include "coordinator/ctl/checked.h"

#include "common/buf.h"
#include "common/str.h"

#include <string.h>

static void add_count(struct buf *out, const char *before, long long n, const char *what)
{
    buf_printf(out, "%s%lld %s%s", before, n, what, n == 1 ? "" : "s");
}

static long long hosts_that_are(const json_t *doc, bool skipped)
{
    const json_t *hosts = json_object_get(doc, "hosts");
    long long n = 0;

    for (size_t i = 0; i < json_array_size(hosts); i++)
        n += (json_str(json_array_get(hosts, i), "skipped", NULL) != NULL) == skipped;
    return n;
}

void checked_line(const char *file, const json_t *doc, struct buf *out)
{
    long long workloads = json_int(doc, "workloads", 0);
    long long skipped_cells = json_int(doc, "skipped_cells", 0);
    long long skipped_hosts = hosts_that_are(doc, true);

    str_show(out, file, strlen(file));
    buf_add_str(out, ": no mistakes: ");
    if (workloads > 1)
        buf_printf(out, "%lld workloads, ", workloads);
    add_count(out, "", json_int(doc, "variants", 0), "variant");
    add_count(out, " on ", hosts_that_are(doc, false), "host");
    if (skipped_hosts > 0)
        buf_printf(out, " (%lld more skipped)", skipped_hosts);
    add_count(out, ", ", json_int(doc, "cells", 0), "cell");
    if (skipped_cells > 0)
        buf_printf(out, " (%lld more skipped)", skipped_cells);
    add_count(out, ": ", json_int(doc, "runs", 0), "run");
    if (json_int(doc, "warmups", 0) > 0)
        add_count(out, " and ", json_int(doc, "warmups", 0), "warm-up");
    buf_add_char(out, '\n');
}

/* gaps.c: the time between two runs on one host beyond the prescribed steps.
 *
 * usage: gaps [-l MS] [-v] <report.json       (of `makespan report SWEEP --format json`)
 *
 * Of each two attempts that follow each other on a host and in one start of the worker: from the
 * beginning of the first to the beginning of the second, less what the steps of the first took
 * (setup, reset, settling, the run, check). So whatever is done between the steps counts as gap too.
 * The median is printed beside the limit.
 *
 * Exit status: 0 within the limit, 1 above it, 2 it could not be measured. */
#include "common/attr.h"
#include "common/buf.h"
#include "common/diag.h"
#include "common/json.h"
#include "common/num.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct made {
    const char *host;
    int64_t visit, begin, end, steps;
    bool fresh;
};

static int64_t ns(const json_t *attempt, const char *key)
{
    return json_int(attempt, key, 0);
}

static int compare_made(const void *pa, const void *pb)
{
    const struct made *a = pa, *b = pb;
    int by_host = strcmp(a->host, b->host);

    if (by_host != 0)
        return by_host;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static int compare_gaps(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

    return a < b ? -1 : a > b;
}

/* Adds every attempt below a value, wherever cells and attempts stand in the document. */
static void collect(json_t *value, const char *host, struct made *made, size_t *n, size_t room)
{
    json_t *child;
    const char *key;
    size_t i;

    if (json_is_object(value)) {
        host = json_str(value, "host", host);
        if (json_object_get(value, "begin_wall_ns") != NULL && *n < room) {
            made[(*n)++] = (struct made){.host = host,
                                         .visit = ns(value, "visit"),
                                         .begin = ns(value, "begin_wall_ns"),
                                         .end = ns(value, "end_wall_ns"),
                                         .steps = ns(value, "setup_ns") + ns(value, "reset_ns") + ns(value, "settle_ns") +
                                                  ns(value, "real_ns") + ns(value, "check_ns")};
        }
        json_object_foreach(value, key, child) { collect(child, host, made, n, room); }
    } else if (json_is_array(value)) {
        json_array_foreach(value, i, child) { collect(child, host, made, n, room); }
    }
}

static int read_all(struct buf *text)
{
    char bytes[65536];
    size_t n;

    while ((n = fread(bytes, 1, sizeof bytes, stdin)) > 0)
        buf_add(text, bytes, n);
    return ferror(stdin) ? -1 : text->err;
}

int main(int argc, char **argv)
{
    static struct made made[20000];
    static int64_t gap[ARRAY_LEN(made)];
    struct diag *diag = diag_new(4);
    struct buf text = BUF_INIT;
    uint64_t limit = 20;
    size_t n = 0, gaps = 0;
    bool verbose = false;
    double median;
    json_t *doc;
    int option;

    while ((option = getopt(argc, argv, "l:v")) != -1) {
        if (option == 'v')
            verbose = true;
        else if (option != 'l' || num_parse_u64(optarg, &limit) != 0)
            return 2;
    }
    if (read_all(&text) != 0 || (doc = json_parse("report", buf_str(&text), text.len, diag)) == NULL) {
        fprintf(stderr, "gaps: no report on standard input: %s\n", diag_first(diag));
        return 2;
    }
    collect(doc, "?", made, &n, ARRAY_LEN(made));
    qsort(made, n, sizeof made[0], compare_made);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(made[i - 1].host, made[i].host) != 0 || made[i - 1].visit != made[i].visit)
            continue;
        gap[gaps++] = made[i].begin - made[i - 1].begin - made[i - 1].steps;
        if (verbose)
            printf("%.3f ms, of which %.3f ms within the attempt\n", (double)gap[gaps - 1] / 1e6,
                   (double)(made[i - 1].end - made[i - 1].begin - made[i - 1].steps) / 1e6);
    }
    if (gaps < 10) {
        fprintf(stderr, "gaps: only %zu pairs of attempts in the report\n", gaps);
        return 2;
    }
    qsort(gap, gaps, sizeof gap[0], compare_gaps);
    median = (double)gap[gaps / 2] / 1e6;
    printf("gap between two runs beyond their steps, median of %zu: %.1f ms, limit %" PRIu64 " ms: %s\n", gaps, median, limit,
           median <= (double)limit ? "ok" : "MISSED");
    json_decref(doc);
    buf_fini(&text);
    diag_free(&diag);
    return median <= (double)limit ? 0 : 1;
}

/* jobs.c: job-count expressions. Pure; knows no host: the number of CPUs is given. */
#include "common/jobs.h"

#include "common/err.h"
#include "common/num.h"

#include <stdio.h>
#include <string.h>

#define TEXT_MAX 64
#define SHARE_MAX_PPM INT64_C(10000000)

/* A job count in plain decimal, within the limits. */
static int parse_count(const char *text, int32_t *out, const char **why)
{
    uint64_t n = 0;
    int rc = num_parse_u64(text, &n);
    if (rc == -ERR_INVAL) {
        *why = "not a job count: none, max, a number from 1 to 4096, a range as 1..8 or 2..16/2, "
               "or a share as 50%";
        return rc;
    }
    if (rc == 0 && n == 0) {
        *why = "0 is not a job count; `none` hands the build no flag at all";
        return -ERR_RANGE;
    }
    if (rc < 0 || n > JOBS_LIMIT) {
        *why = "a job count is at most 4096";
        return -ERR_RANGE;
    }
    *out = (int32_t)n;
    return 0;
}

/* "A..B" or "A..B/STEP"; `dots` points at the two dots in text, which is changed. */
static int parse_range(char *text, char *dots, struct jobs_item *out, const char **why)
{
    *dots = '\0';
    char *last = dots + 2;
    char *slash = strchr(last, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    if (text[0] == '\0' || last[0] == '\0') {
        *why = "a range needs both its ends";
        return -ERR_INVAL;
    }
    int rc = parse_count(text, &out->first, why);
    if (rc == 0) {
        rc = parse_count(last, &out->last, why);
    }
    if (rc < 0) {
        return rc;
    }
    out->step = 1;
    if (slash != NULL) {
        const char *ignored;
        rc = parse_count(slash + 1, &out->step, &ignored);
        if (rc < 0) {
            *why = "the step of a range is a number from 1 to 4096";
            return rc;
        }
    }
    if (out->first > out->last) {
        *why = "the range falls: its first number is the larger one";
        return -ERR_INVAL;
    }
    out->kind = JOBS_ITEM_RANGE;
    return 0;
}

static int parse_share(const char *text, struct jobs_item *out, const char **why)
{
    int64_t ppm = 0;
    int rc = num_parse_percent(text, &ppm);
    if (rc == -ERR_INVAL) {
        *why = "not a share of the CPUs: a number and %, as 50%";
        return rc;
    }
    if (rc < 0 || ppm <= 0 || ppm > SHARE_MAX_PPM) {
        *why = "a share of the CPUs is above 0 and at most 1000%";
        return -ERR_RANGE;
    }
    out->kind = JOBS_ITEM_SHARE;
    out->share_ppm = ppm;
    return 0;
}

int jobs_parse(const char *text, struct jobs_item *out, const char **why)
{
    *out = (struct jobs_item){.kind = JOBS_ITEM_NONE};
    *why = "";
    if (strcmp(text, "none") == 0) {
        return 0;
    }
    if (strcmp(text, "max") == 0) {
        out->kind = JOBS_ITEM_MAX;
        return 0;
    }
    char copy[TEXT_MAX];
    size_t len = strlen(text);
    if (len >= sizeof(copy)) {
        *why = "too long for a job count";
        return -ERR_INVAL;
    }
    memcpy(copy, text, len + 1);
    char *dots = strstr(copy, "..");
    if (dots != NULL) {
        return parse_range(copy, dots, out, why);
    }
    if (strchr(copy, '%') != NULL) {
        return parse_share(copy, out, why);
    }
    if (copy[0] == '-' && copy[1] >= '0' && copy[1] <= '9') {
        *why = "a job count is not negative";
        return -ERR_RANGE;
    }
    int rc = parse_count(copy, &out->first, why);
    if (rc < 0) {
        return rc;
    }
    out->kind = JOBS_ITEM_RANGE;
    out->last = out->first;
    out->step = 1;
    return 0;
}

/* ceil(cpus * share), at most the limit; at least 1, since both are above 0. */
static int32_t share_of(int64_t cpus_milli, int64_t share_ppm)
{
    const int64_t unit = INT64_C(1000) * 1000000;
    const int64_t most = JOBS_LIMIT * INT64_C(1000);
    int64_t cpus = cpus_milli < 1 ? 1 : cpus_milli;
    cpus = cpus > most ? most : cpus;
    int64_t jobs = (cpus * share_ppm + unit - 1) / unit;
    return jobs > JOBS_LIMIT ? JOBS_LIMIT : (int32_t)jobs;
}

int jobs_points(const struct jobs_item *items, size_t n, int64_t cpus_milli, int32_t *points,
                size_t room)
{
    bool wanted[JOBS_LIMIT + 1] = {false};
    bool none = false;
    bool max = false;
    for (size_t i = 0; i < n; i++) {
        switch (items[i].kind) {
        case JOBS_ITEM_NONE:
            none = true;
            break;
        case JOBS_ITEM_MAX:
            max = true;
            break;
        case JOBS_ITEM_SHARE:
            wanted[share_of(cpus_milli, items[i].share_ppm)] = true;
            break;
        case JOBS_ITEM_RANGE:
            for (int32_t j = items[i].first; j <= items[i].last; j += items[i].step) {
                wanted[j] = true;
            }
            break;
        }
    }
    size_t count = 0;
    for (int32_t j = 0; j <= JOBS_LIMIT + 1; j++) {
        bool have = j == 0 ? none : j <= JOBS_LIMIT ? wanted[j] : max;
        if (!have) {
            continue;
        }
        if (count == room) {
            return -ERR_LIMIT;
        }
        points[count] = j == 0 ? JOBS_NONE : j <= JOBS_LIMIT ? j : JOBS_MAX;
        count++;
    }
    return (int)count;
}

const char *jobs_text(char *dst, size_t room, int32_t jobs)
{
    if (jobs == JOBS_NONE) {
        snprintf(dst, room, "none");
    } else if (jobs == JOBS_MAX) {
        snprintf(dst, room, "max");
    } else {
        snprintf(dst, room, "%d", (int)jobs);
    }
    return dst;
}

const char *jobs_flag(char *dst, size_t room, int32_t jobs)
{
    if (jobs == JOBS_NONE) {
        snprintf(dst, room, "%s", "");
    } else if (jobs == JOBS_MAX) {
        snprintf(dst, room, "-j");
    } else {
        snprintf(dst, room, "-j%d", (int)jobs);
    }
    return dst;
}

int jobs_from_text(const char *text, int32_t *jobs)
{
    if (strcmp(text, "none") == 0) {
        *jobs = JOBS_NONE;
        return 0;
    }
    if (strcmp(text, "max") == 0) {
        *jobs = JOBS_MAX;
        return 0;
    }
    const char *ignored;
    return parse_count(text, jobs, &ignored) < 0 ? -ERR_INVAL : 0;
}

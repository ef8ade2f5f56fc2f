/* expand.c: multiplies a sweep file out over its hosts: settings, job counts, memory, numbers. */
#include "common/diag.h"
#include "common/err.h"
#include "common/jobs.h"
#include "common/mem.h"
#include "common/num.h"
#include "coordinator/plan/sheet.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A pass over one host. */
struct expanding {
    struct sheet *sheet;
    struct sheet_host *host;
    struct diag *diag;
    size_t workloads;
    size_t variants;
};

static int complain(struct expanding *e, const char *text)
{
    return diag_error_at(e->diag, ERR_LIMIT, spec_file(e->sheet->spec), e->host->pos.line,
                         e->host->pos.column, "%s", text);
}

static int read_settings(struct expanding *e)
{
    struct sheet_host *h = e->host;
    const struct model_host *row = &h->row;
    h->timeouts = mem_arena_array(e->sheet->arena, e->workloads, sizeof(*h->timeouts));
    if (h->timeouts == NULL) {
        return -ERR_NOMEM;
    }
    for (size_t w = 0; w < e->workloads; w++) {
        struct spec_settings s;
        spec_settings_for(e->sheet->spec, row->name, row->classes, row->class_count, w, &s);
        h->timeouts[w] = s.timeout;
        if (w == 0) {
            h->settings = s;
        }
    }
    struct spec_settings all;
    spec_settings_for(e->sheet->spec, "", NULL, 0, 0, &all);
    if (all.priority != h->settings.priority) {
        return diag_error_at(
            e->diag, ERR_INVAL, spec_file(e->sheet->spec), h->pos.line, h->pos.column,
            "host `%s`: a sweep has one priority, `per` cannot change it", row->name);
    }
    return 0;
}

/* Why so many jobs do not fit the host's memory; NULL: they do, or nobody knows. */
static const char *too_large(struct expanding *e, int32_t jobs)
{
    int64_t each = e->host->settings.memory_per_job;
    int64_t have = e->host->row.memory_bytes;
    int64_t count = jobs == JOBS_NONE ? 1 : jobs == JOBS_MAX ? JOBS_LIMIT : jobs;
    int64_t need;
    if (each <= 0 || have <= 0) {
        return NULL;
    }
    if (num_mul_i64(each, count, &need) == 0 && need <= have) {
        return NULL;
    }
    char one[32];
    char all[32];
    num_size_text(one, sizeof(one), (uint64_t)each);
    num_size_text(all, sizeof(all), (uint64_t)have);
    if (jobs == JOBS_MAX) {
        return mem_arena_printf(e->sheet->arena,
                                "any number of jobs of %s may not fit %s (taken as %d)", one, all,
                                JOBS_LIMIT);
    }
    return mem_arena_printf(e->sheet->arena, "%" PRId64 " jobs of %s do not fit %s", count, one,
                            all);
}

static int make_points(struct expanding *e)
{
    struct sheet_host *h = e->host;
    int32_t *jobs = mem_xarray(PLAN_MAX_POINTS, sizeof(*jobs));
    int n = jobs_points(h->settings.jobs, h->settings.job_count, h->row.cpus_milli, jobs,
                        PLAN_MAX_POINTS);
    int rc = n < 0 ? n : 0;
    if (rc == 0) {
        h->points = mem_arena_array(e->sheet->arena, (size_t)n + 1, sizeof(*h->points));
        rc = h->points != NULL ? 0 : -ERR_NOMEM;
    }
    size_t open = 0;
    for (int i = 0; rc == 0 && i < n; i++) {
        h->points[i].jobs = jobs[i];
        h->points[i].skip = too_large(e, jobs[i]);
        open += h->points[i].skip == NULL;
    }
    free(jobs);
    if (rc < 0) {
        return rc;
    }
    h->point_count = (size_t)n;
    if (open == 0) {
        h->skipped = "no job count fits its memory";
    }
    if (h->settings.memory_per_job > 0 && h->row.memory_bytes <= 0) {
        diag_warn_at(e->diag, spec_file(e->sheet->spec), h->pos.line, h->pos.column,
                     "host `%s`: its memory is not known, nothing is skipped by memory.per_job",
                     h->row.name);
    }
    return 0;
}

/* Numbers of the host; each is far below 2^63: at most 64 workloads, 1024 variants, 4098 points,
 * 10000 runs. */
static int count(struct expanding *e)
{
    struct sheet_host *h = e->host;
    int64_t pairs = (int64_t)(e->workloads * e->variants);
    for (size_t i = 0; i < h->point_count; i++) {
        if (h->points[i].skip == NULL) {
            h->cells += pairs;
        } else {
            h->skipped_cells += pairs;
        }
    }
    h->runs = h->cells * h->settings.repeat.runs;
    h->warmups = h->cells * h->settings.repeat.warmup;
    e->sheet->cells += h->cells + h->skipped_cells;
    e->sheet->runs += h->runs;
    e->sheet->warmups += h->warmups;
    if (e->sheet->cells > PLAN_MAX_CELLS) {
        return complain(e, "the sweep has more than 250000 cells (workloads x variants x hosts x "
                           "job counts)");
    }
    if (e->sheet->runs + e->sheet->warmups > PLAN_MAX_RUNS) {
        return complain(e, "the sweep has more than 10000000 runs");
    }
    if (h->warmups > PLAN_MAX_CELLS) {
        return complain(e, "there are more than 250000 warm-ups on one host");
    }
    return 0;
}

static int expand_host(struct expanding *e)
{
    int rc = read_settings(e);
    if (rc == 0 && e->host->skipped == NULL) {
        rc = make_points(e);
    }
    return rc == 0 && e->host->skipped == NULL ? count(e) : rc;
}

static int compare_hashes(const void *a, const void *b)
{
    const struct spec_rev *const *pa = a;
    const struct spec_rev *const *pb = b;
    return strcmp((*pa)->blob, (*pb)->blob);
}

/* Distinct archives and their bytes. */
static void count_archives(struct expanding *e)
{
    size_t n = 0;
    const struct spec_rev **revs = mem_xarray(e->workloads * e->variants + 1, sizeof(*revs));
    for (size_t w = 0; w < e->workloads; w++) {
        for (size_t v = 0; v < e->variants; v++) {
            const struct spec_rev *rev = spec_rev_of(e->sheet->spec, v, w);
            if (rev != NULL && rev->blob[0] != '\0') {
                revs[n++] = rev;
            }
        }
    }
    qsort(revs, n, sizeof(*revs), compare_hashes);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || compare_hashes(&revs[i - 1], &revs[i]) != 0) {
            e->sheet->archives++;
            e->sheet->archive_bytes += (uint64_t)(revs[i]->size > 0 ? revs[i]->size : 0);
        }
    }
    free(revs);
}

int sheet_expand(struct sheet *sheet, struct diag *diag)
{
    struct expanding e = {.sheet = sheet, .diag = diag};
    spec_workloads(sheet->spec, &e.workloads);
    spec_variants(sheet->spec, &e.variants);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sheet->host_count; i++) {
        e.host = &sheet->hosts[i];
        rc = expand_host(&e);
    }
    if (rc == 0 && sheet->runs == 0) {
        rc = diag_error(diag, ERR_INVAL, "%s: nothing is left to measure on any host",
                        spec_file(sheet->spec));
    }
    if (rc == 0) {
        count_archives(&e);
    }
    return rc;
}

/* git.c: revisions of repositories that the coordinator reads: one job after another, their
 * archives taken into the folder. */
#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "coordinator/blob/blob_priv.h"
#include "coordinator/store/blobs.h"
#include "coordinator/store/store.h"
#include "proto/source.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define JOB_MAGIC 0x6a6f6221U

struct blob_job {
    unsigned magic;
    struct blob *blob;
    struct blob_job *next;
    struct mem_arena *arena; /* the texts of the spec */
    struct source_spec spec;
    blob_git_f *f;
    void *arg;
    struct source *source; /* while it runs */
    bool over;             /* its end is being told */
};

static void run_next(struct blob *blob);

static void free_job(struct blob_job *job)
{
    struct blob_job **at = &job->blob->jobs;
    while (*at != job) {
        at = &(*at)->next;
    }
    *at = job->next;
    source_cancel(&job->source);
    mem_arena_free(&job->arena);
    job->magic = 0;
    free(job);
}

/* --- what came out --- */

static int take_archive(struct blob *blob, const struct source_rev *rev, struct diag *diag)
{
    struct store_archive archive = {.size = rev->size, .exact = rev->exact};
    if (rev->path != NULL) {
        int rc = blob_take(blob, rev->path, rev->hash, rev->size, diag);
        if (rc < 0) {
            return rc;
        }
    }
    if (!rev->exact) {
        return 0; /* it holds another tree than the commit's, and is made again when it is wanted */
    }
    memcpy(archive.hash, rev->hash, MODEL_HASH);
    int rc = store_archive_put(blob->store, rev->commit, &archive);
    return rc < 0
               ? diag_error(diag, rc, "the archive cannot be noted: %s", store_error(blob->store))
               : 0;
}

static int take_all(struct blob_job *job, const struct source_result *result, struct blob_rev *revs,
                    struct diag *diag)
{
    struct store *store = job->blob->store;
    int savepoint = store_savepoint(store);
    int rc = savepoint < 0 ? diag_error(diag, savepoint, "%s", store_error(store)) : 0;
    for (size_t i = 0; i < result->count && rc == 0; i++) {
        const struct source_rev *from = &result->revs[i];
        struct blob_rev *to = &revs[i];
        str_copy(to->commit, sizeof(to->commit), from->commit);
        str_copy(to->tree, sizeof(to->tree), from->tree);
        str_copy(to->subject, sizeof(to->subject), from->subject);
        to->has_blob = from->has_archive;
        memcpy(to->blob, from->hash, MODEL_HASH);
        to->size = from->size;
        to->exact = from->exact;
        if (from->has_archive) {
            rc = take_archive(job->blob, from, diag);
        }
    }
    if (rc == 0) {
        rc = store_release(store, savepoint);
    } else if (savepoint > 0) {
        store_revert(store, savepoint);
    }
    return rc;
}

static void on_source(const struct source_result *result, void *arg)
{
    struct blob_job *job;
    CAST_OBJ(job, arg, JOB_MAGIC);
    struct blob *blob = job->blob;
    struct diag *diag = diag_new(1);
    struct blob_rev *revs = mem_xarray(result->count + 1, sizeof(revs[0]));
    struct buf text = BUF_INIT;
    int rc = result->code;
    job->source = NULL; /* it ends with this call */
    job->over = true;
    if (rc == 0) {
        rc = take_all(job, result, revs, diag);
        if (rc < 0) {
            buf_printf(&text, "%s: %s", result->name, diag_first(diag));
        }
    } else {
        buf_add_str(&text, result->text);
    }
    job->f(rc, buf_str(&text), revs, rc == 0 ? result->count : 0, result->warning, job->arg);
    free_job(job);
    buf_fini(&text);
    free(revs);
    diag_free(&diag);
    run_next(blob);
}

/* --- jobs --- */

static bool is_known(const char *commit, struct source_rev *rev, void *arg)
{
    struct blob_job *job;
    CAST_OBJ(job, arg, JOB_MAGIC);
    char path[FILE_PATH_MAX];
    struct store_archive archive;
    struct file_stat st;
    if (store_archive_get(job->blob->store, commit, &archive) < 0 ||
        blob_place(job->blob, archive.hash, path) < 0 || file_stat(path, &st) < 0 ||
        st.size != archive.size) {
        return false;
    }
    memcpy(rev->hash, archive.hash, MODEL_HASH);
    rev->size = archive.size;
    rev->exact = archive.exact;
    return true;
}

static int start(struct blob_job *job, struct diag *diag)
{
    struct blob *blob = job->blob;
    if (job->spec.archive) {
        int rc = blob_check_room(blob, 0, diag);
        if (rc < 0) {
            return rc;
        }
    }
    return source_start(blob->loop, &job->spec, on_source, job, &job->source, diag);
}

/* Starts the first job; one that cannot be started is told so. */
static void run_next(struct blob *blob)
{
    while (blob->jobs != NULL && blob->jobs->source == NULL && !blob->jobs->over) {
        struct blob_job *job = blob->jobs;
        struct diag *diag = diag_new(1);
        int rc = start(job, diag);
        if (rc < 0) {
            job->over = true;
            job->f(rc, diag_first(diag), NULL, 0, NULL, job->arg);
            free_job(job);
        }
        diag_free(&diag);
    }
}

static const char *copy(struct mem_arena *arena, const char *text)
{
    return text != NULL ? mem_arena_strdup(arena, text) : NULL;
}

int blob_git_resolve(struct blob *blob, const char *url, const struct source_expr *expr,
                     size_t rev_max, bool archive, blob_git_f *f, void *arg, struct blob_job **out,
                     struct diag *diag)
{
    assert(blob->magic == BLOB_MAGIC);
    *out = NULL;
    struct blob_job *job = mem_xzalloc(sizeof(*job));
    job->magic = JOB_MAGIC;
    job->blob = blob;
    job->arena = mem_arena_new(0);
    job->f = f;
    job->arg = arg;
    job->spec = (struct source_spec){
        .kind = SOURCE_GIT,
        .path = copy(job->arena, url),
        .expr = {.range = expr->range,
                 .from = {copy(job->arena, expr->from.a), copy(job->arena, expr->from.b)},
                 .to = {copy(job->arena, expr->to.a), copy(job->arena, expr->to.b)}},
        .archive = archive,
        .rev_max = rev_max,
        .work = blob->work,
        .mirrors = blob->mirrors,
        .any_owner = true, /* who may submit a sweep may name what this user can read */
        .timeout_ns = blob->limits.git_ns,
        .size_max = blob->limits.size_max,
        .known = is_known,
        .known_arg = job};
    struct blob_job **at = &blob->jobs;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = job;
    if (blob->jobs == job) {
        int rc = start(job, diag);
        if (rc < 0) {
            free_job(job);
            return rc;
        }
    }
    *out = job;
    return 0;
}

void blob_git_cancel(struct blob_job **job)
{
    if (*job == NULL) {
        return;
    }
    assert((*job)->magic == JOB_MAGIC);
    struct blob *blob = (*job)->blob;
    free_job(*job);
    *job = NULL;
    run_next(blob);
}

void blob_end_jobs(struct blob *blob)
{
    while (blob->jobs != NULL) {
        free_job(blob->jobs);
    }
}

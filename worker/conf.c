/* conf.c: the options of worker.yaml, and the judgement of an assignment by them. Owns the rows;
 * reading and printing are common/conf.c's. */
#include "worker/conf.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/jobs.h"
#include "common/log.h"
#include "common/num.h"
#include "common/str.h"
#include "proto/msg.h"
#include "worker/os/confine.h"
#include "worker/run/tree.h"

#include <inttypes.h>
#include <string.h>

#define AT(member) offsetof(struct worker_conf, member)
#define BYTES_MAX (INT64_C(1) << 50)

static const char *const WAYS[] = {"any", "cgroup2", "cgroup1", "follow", NULL};

static const struct conf_row ROWS[] = {
    {.name = "coordinator",
     .type = CONF_STR,
     .offset = AT(coordinator),
     .help = "HOST:PORT of the coordinator; `makespan-worker join` writes it."},
    {.name = "name",
     .type = CONF_STR,
     .offset = AT(name),
     .help = "Name of this host; it must be the certificate's, which is used when none is given."},
    {.name = "dir",
     .type = CONF_PATH,
     .offset = AT(dir),
     .dflt = WORKER_DIR,
     .help = "Folder of the key, the journal, results that wait, archives and prepared trees."},
    {.name = "run_as",
     .type = CONF_STR,
     .offset = AT(run_as),
     .help =
         "User whose name or number builds get when the worker is root; root itself when none is "
         "given."},
    {.name = "run_as_alone",
     .type = CONF_BOOL,
     .offset = AT(run_as_alone),
     .dflt = "no",
     .help = "That user runs nothing but builds of this worker: whatever else it runs is killed "
             "after each command."},
    {.name = "path",
     .type = CONF_STR,
     .offset = AT(path),
     .dflt = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
     .help = "PATH of builds."},
    {.name = "confine",
     .type = CONF_ENUM,
     .offset = AT(confine),
     .dflt = "any",
     .choices = WAYS,
     .help = "How processes of a build are kept together: any way that works, or this one."},
    {.name = "disk.trees",
     .type = CONF_SIZE,
     .offset = AT(disk_trees),
     .dflt = "20GiB",
     .min = 0,
     .max = BYTES_MAX,
     .help = "Space for prepared trees, those used longest ago go first; 0: no limit."},
    {.name = "disk.archives",
     .type = CONF_SIZE,
     .offset = AT(disk_archives),
     .dflt = "5GiB",
     .min = 0,
     .max = BYTES_MAX,
     .help = "Space for archives of sources, those used longest ago go first; 0: no limit."},
    {.name = "allow.host_dir",
     .type = CONF_LIST,
     .offset = AT(allow_host_dir),
     .help =
         "Folders of this host that sweeps may build in (`host_dir`), with all below them; none "
         "when none is given."},
    {.name = "allow.jobs",
     .type = CONF_INT,
     .offset = AT(allow_jobs),
     .dflt = "0",
     .min = 0,
     .max = JOBS_LIMIT,
     .help = "Largest job count; a bare -j is refused then. 0: no limit."},
    {.name = "allow.time",
     .type = CONF_DURATION,
     .offset = AT(allow_time_ns),
     .dflt = "0",
     .min = 0,
     .max = 3650 * CLOCK_DAY,
     .help = "Longest time limit that a sweep may give to one command. 0: no limit."},
    {.name = "beat",
     .type = CONF_DURATION,
     .offset = AT(beat_ns),
     .dflt = "30s",
     .min = 100 * CLOCK_MS,
     .max = 10 * CLOCK_MIN,
     .help = "Longest interval of the signs of life; the coordinator may want shorter ones."},
    {.name = "log.file",
     .type = CONF_PATH,
     .offset = AT(log_file),
     .help = "Log file; standard error when it is not given."},
    {.name = "log.level",
     .type = CONF_ENUM,
     .offset = AT(log_level),
     .dflt = "info",
     .choices = LOG_LEVELS,
     .help = "Lines of this level and more urgent ones are written."},
};

const struct conf_row *worker_conf_rows(size_t *n)
{
    *n = ARRAY_LEN(ROWS);
    return ROWS;
}

/* "/a/./b" and "/a/../b" may lead anywhere: only plain absolute paths can be compared. */
static bool is_plain_path(const char *path)
{
    if (path == NULL || path[0] != '/')
        return false;
    for (const char *p = path; p != NULL; p = strchr(p + 1, '/')) {
        const char *part = p + 1;
        size_t n = strcspn(part, "/");

        if ((n == 0 && part[0] == '/') || (n == 1 && part[0] == '.') ||
            (n == 2 && part[0] == '.' && part[1] == '.'))
            return false;
    }
    return true;
}

static int check(const char *path, const struct worker_conf *conf, struct diag *diag)
{
    int err = 0;

    if (conf->name != NULL && !str_is_name(conf->name))
        err = diag_error(diag, ERR_INVAL, "%s: name: %s is no name of a host", path, conf->name);
    if (conf->path != NULL && conf->path[0] == '\0')
        err = diag_error(diag, ERR_INVAL, "%s: path: builds need a PATH", path);
    for (size_t i = 0; i < conf->allow_host_dir.count; i++)
        if (!is_plain_path(conf->allow_host_dir.items[i]))
            err = diag_error(diag, ERR_INVAL,
                             "%s: allow.host_dir: %s must be absolute, without . and ..", path,
                             conf->allow_host_dir.items[i]);
    return err;
}

int worker_conf_load(const char *path, struct worker_conf *out, struct diag *diag)
{
    int err = conf_read(ROWS, ARRAY_LEN(ROWS), path, out, diag);

    return err != 0 ? err : check(path == NULL ? "defaults" : path, out, diag);
}

void worker_conf_free(struct worker_conf *conf)
{
    conf_free(ROWS, ARRAY_LEN(ROWS), conf);
}

unsigned worker_conf_confine(const struct worker_conf *conf)
{
    static const unsigned USE[] = {CONFINE_ALL, CONFINE_V2, CONFINE_V1, CONFINE_FOLLOW};

    return USE[conf->confine];
}

/* --- what may be asked --- */

static bool lies_in(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    while (n > 0 && folder[n - 1] == '/')
        n--;
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static int allows_source(const struct worker_conf *conf, const struct msg_assign *a,
                         struct diag *diag)
{
    switch (a->source_kind) {
    case TREE_ARCHIVE:
        if (!a->has_blob || a->blob.len != 32 || !a->has_blob_size)
            return diag_error(diag, ERR_DENIED, "the assignment names no archive");
        return 0;
    case TREE_NONE:
        return 0;
    case TREE_HOST_DIR:
        break;
    default:
        return diag_error(diag, ERR_DENIED,
                          "a source of kind %" PRIu32 " is not known to this worker",
                          a->source_kind);
    }
    if (!is_plain_path(a->host_dir))
        return diag_error(diag, ERR_DENIED, "host_dir must be absolute, without . and ..");
    for (size_t i = 0; i < conf->allow_host_dir.count; i++)
        if (lies_in(a->host_dir, conf->allow_host_dir.items[i]))
            return 0;
    return diag_error(
        diag, ERR_DENIED,
        "builds in %s are not allowed: allow.host_dir in this host's worker.yaml does "
        "not name it",
        a->host_dir);
}

static int allows_jobs(const struct worker_conf *conf, const struct msg_assign *a,
                       struct diag *diag)
{
    char text[16];

    if (a->jobs < JOBS_MAX || a->jobs > JOBS_LIMIT)
        return diag_error(diag, ERR_DENIED, "%" PRId64 " is no job count", a->jobs);
    if (conf->allow_jobs == 0 || (a->jobs != JOBS_MAX && a->jobs <= conf->allow_jobs))
        return 0;
    return diag_error(
        diag, ERR_DENIED,
        "job count %s is not allowed: allow.jobs in this host's worker.yaml is %" PRId64,
        jobs_text(text, sizeof text, (int32_t)a->jobs), conf->allow_jobs);
}

static int allows_times(const struct worker_conf *conf, const struct msg_assign *a,
                        struct diag *diag)
{
    const int64_t limits[] = {a->setup_timeout_ns, a->reset_timeout_ns, a->run_timeout_ns,
                              a->check_timeout_ns, a->settle_timeout_ns};
    char span[32], allowed[32];

    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        if (limits[i] <= 0 || limits[i] > 3650 * CLOCK_DAY)
            return diag_error(diag, ERR_DENIED,
                              "the assignment gives a time limit of %" PRId64 " ns", limits[i]);
        if (conf->allow_time_ns == 0 || limits[i] <= conf->allow_time_ns ||
            i == ARRAY_LEN(limits) - 1)
            continue;
        return diag_error(
            diag, ERR_DENIED,
            "a time limit of %s is not allowed: allow.time in this host's worker.yaml is %s",
            num_duration_text(span, sizeof span, limits[i]),
            num_duration_text(allowed, sizeof allowed, conf->allow_time_ns));
    }
    return 0;
}

int worker_conf_allows(const struct worker_conf *conf, const struct msg_assign *assign,
                       struct diag *diag)
{
    int err;

    if (assign->command[0] == '\0')
        return diag_error(diag, ERR_DENIED, "the assignment has no command to be timed");
    err = allows_source(conf, assign, diag);
    if (err == 0)
        err = allows_jobs(conf, assign, diag);
    return err == 0 ? allows_times(conf, assign, diag) : err;
}

/* conf.h: makespan-worker's configuration: rows of common/conf.h, and what it may be asked
 * to do. */
#ifndef MAKESPAN_WORKER_CONF_H
#define MAKESPAN_WORKER_CONF_H

#include "common/attr.h"
#include "common/conf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct msg_assign;

#define WORKER_CONF_PATH "/etc/makespan/worker.yaml"
#define WORKER_DIR "/var/lib/makespan-worker"

struct worker_conf {
    char *coordinator; /* NULL: not given */
    char *name;        /* NULL: as in the certificate */
    char *dir;
    char *run_as; /* NULL: as this process */
    bool run_as_alone;
    char *path;
    int confine; /* index into "any", "cgroup2", "cgroup1", "follow" */
    int64_t disk_trees;
    int64_t disk_archives;
    struct conf_list allow_host_dir;
    int64_t allow_jobs;    /* 0: no limit */
    int64_t allow_time_ns; /* of one command; 0: no limit */
    int64_t beat_ns;
    char *log_file; /* NULL: standard error */
    int log_level;  /* enum log_level */
};

const struct conf_row *worker_conf_rows(size_t *n);
/* Reads the file, or only the defaults when path is NULL; all mistakes in diag. 0 or negative;
 * worker_conf_free() in any case. */
int worker_conf_load(const char *path, struct worker_conf *out, struct diag *diag) MUST_CHECK;
void worker_conf_free(struct worker_conf *conf);

/* The CONFINE_* ways that may be used. */
unsigned worker_conf_confine(const struct worker_conf *conf);

/* Whether this host may be asked for that, and whether it can be understood at all: 0, or
 * -ERR_DENIED with a sentence. */
int worker_conf_allows(const struct worker_conf *conf, const struct msg_assign *assign,
                       struct diag *diag) MUST_CHECK;

#endif

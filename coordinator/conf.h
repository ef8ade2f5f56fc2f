/* conf.h: makespand's configuration: rows of common/conf.h. */
#ifndef MAKESPAN_COORDINATOR_CONF_H
#define MAKESPAN_COORDINATOR_CONF_H

#include "common/attr.h"
#include "common/conf.h"
#include "common/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;

struct coord_conf {
    char *listen;
    char *dir;
    char *log_file; /* NULL: standard error */
    int log_level;  /* enum log_level */
    int64_t beat_ns;
    int64_t lost_after_ns;
    int64_t take_ns;
    int64_t handshake_ns;
    int64_t hello_ns;
    int64_t max_connections;
    int64_t archive_max;
    int64_t disk_keep;
    int64_t git_ns;
    bool web;
};

#define COORD_DIR "/var/lib/makespan"
#define COORD_CONF_PATH "/etc/makespan/makespand.yaml"

const struct conf_row *coord_conf_rows(size_t *n);
/* Reads the file, or only the defaults when path is NULL; all mistakes in diag. 0 or negative; coord_conf_free() in any case. */
int coord_conf_load(const char *path, struct coord_conf *out, struct diag *diag) MUST_CHECK;
void coord_conf_free(struct coord_conf *conf);

#endif

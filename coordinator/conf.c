/* conf.c: the options of makespand.yaml. Owns the rows; reading and printing are common/conf.c's. */
#include "coordinator/conf.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"

#define AT(member) offsetof(struct coord_conf, member)

static const struct conf_row ROWS[] = {
    {.name = "listen",
     .type = CONF_STR,
     .offset = AT(listen),
     .dflt = ":7443",
     .help = "Address and port for workers and operators; an empty address is every address, port 0 lets the system choose."},
    {.name = "dir",
     .type = CONF_PATH,
     .offset = AT(dir),
     .dflt = COORD_DIR,
     .help = "Folder of the database, the authority's keys and the archives."},
    {.name = "log.file", .type = CONF_PATH, .offset = AT(log_file), .help = "Log file; standard error when it is not given."},
    {.name = "log.level",
     .type = CONF_ENUM,
     .offset = AT(log_level),
     .dflt = "info",
     .choices = LOG_LEVELS,
     .help = "Lines of this level and more urgent ones are written."},
    {.name = "beat",
     .type = CONF_DURATION,
     .offset = AT(beat_ns),
     .dflt = "30s",
     .min = 100 * CLOCK_MS,
     .max = 10 * CLOCK_MIN,
     .help = "Interval of the signs of life; a peer that misses three is taken for gone."},
    {.name = "lost_after",
     .type = CONF_DURATION,
     .offset = AT(lost_after_ns),
     .dflt = "24h",
     .min = CLOCK_SEC,
     .max = 365 * CLOCK_DAY,
     .help = "A host that was away this long has lost its runs; the sweep ends without them."},
    {.name = "take",
     .type = CONF_DURATION,
     .offset = AT(take_ns),
     .dflt = "1m",
     .min = CLOCK_SEC,
     .max = CLOCK_HOUR,
     .help = "An assignment that a connected worker has not confirmed after this time is sent again."},
    {.name = "timeout.handshake",
     .type = CONF_DURATION,
     .offset = AT(handshake_ns),
     .dflt = "10s",
     .min = 100 * CLOCK_MS,
     .max = 10 * CLOCK_MIN,
     .help = "Longest time of a TLS handshake."},
    {.name = "timeout.hello",
     .type = CONF_DURATION,
     .offset = AT(hello_ns),
     .dflt = "10s",
     .min = 100 * CLOCK_MS,
     .max = 10 * CLOCK_MIN,
     .help = "Longest wait for the first message after the handshake."},
    {.name = "timeout.git",
     .type = CONF_DURATION,
     .offset = AT(git_ns),
     .dflt = "30m",
     .min = CLOCK_SEC,
     .max = CLOCK_DAY,
     .help = "Longest time of one git command."},
    {.name = "limits.connections",
     .type = CONF_INT,
     .offset = AT(max_connections),
     .dflt = "20000",
     .min = 1,
     .max = 1000000,
     .help = "Most connections at a time."},
    {.name = "limits.archive",
     .type = CONF_SIZE,
     .offset = AT(archive_max),
     .dflt = "16GiB",
     .min = 1024,
     .max = INT64_C(1) << 50,
     .help = "Largest archive of a source."},
    {.name = "limits.disk_keep",
     .type = CONF_SIZE,
     .offset = AT(disk_keep),
     .dflt = "64MiB",
     .min = 0,
     .max = INT64_C(1) << 50,
     .help = "Space on the disk of `dir` that archives leave free."},
    {.name = "web.enabled",
     .type = CONF_BOOL,
     .offset = AT(web),
     .dflt = "no",
     .help = "The dashboard; not yet in this version."},
};

const struct conf_row *coord_conf_rows(size_t *n)
{
    *n = ARRAY_LEN(ROWS);
    return ROWS;
}

int coord_conf_load(const char *path, struct coord_conf *out, struct diag *diag)
{
    int err = conf_read(ROWS, ARRAY_LEN(ROWS), path, out, diag);

    if (err == 0 && out->web)
        err = diag_error(diag, ERR_NOTYET, "%s: web.enabled: the dashboard is not yet in this version: leave it at no", path);
    return err;
}

void coord_conf_free(struct coord_conf *conf)
{
    conf_free(ROWS, ARRAY_LEN(ROWS), conf);
}

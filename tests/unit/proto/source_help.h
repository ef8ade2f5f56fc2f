/* source_help.h: a folder with a shell, and readings of sources in it. For tests of sources and
 * archives. */
#ifndef MAKESPAN_TESTS_SOURCE_HELP_H
#define MAKESPAN_TESTS_SOURCE_HELP_H

#include "common/attr.h"
#include "common/buf.h"
#include "proto/source.h"

struct loop;

#define PATH_ROOM 160

struct bench {
    char dir[64];
    char work[PATH_ROOM];
    char mirrors[PATH_ROOM];
    struct loop *loop;
    struct buf said; /* what the last shell printed */
    int status;
    bool ended;
    /* the last reading */
    bool told;
    int code;
    char text[1024];
    char warning[256];
    size_t count;
    struct source_rev revs[16];
    char paths[16][PATH_ROOM];
    bool keep; /* the files stay */
};

void bench_open(struct bench *b);
void bench_close(struct bench *b);
/* Runs a script in the folder; it must succeed. Gives what it printed, without the last newline. */
const char *sh(struct bench *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The same, with its exit status instead. */
int sh_status(struct bench *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Reads a source to its end; the work folder, and the mirrors, are the bench's. */
void bench_read(struct bench *b, struct source_spec *spec);
/* One revision of the repository NAME in the folder, with its archive. */
struct source_spec git_spec(struct bench *b, const char *name, const char *rev);
/* "dir/name"; the last 8 stay valid. */
const char *at(struct bench *b, const char *name);
void expect_failure(struct bench *b, struct source_spec *spec, int code, const char *text);

#endif

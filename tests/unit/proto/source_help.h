/* source_help.h: a folder with a shell, and readings of sources in it. For tests of sources and
 * archives. */
#ifndef MAKESPAN_TESTS_SOURCE_HELP_H
#define MAKESPAN_TESTS_SOURCE_HELP_H

#include "common/attr.h"
#include "common/buf.h"
#include "proto/source.h"

struct loop;

#define PATH_ROOM 256

struct bench {
    char dir[128];
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
/* What makes the repository r: commits first, second and third, on main; tags v1 and v3; branch
 * topic at the second. It ends in r. */
#define REPO                                                                                       \
    "git init -q r && cd r && echo one >a && mkdir d && echo x >d/x && chmod +x d/x && ln -s a l"  \
    " && git add -A && git commit -qm 'first subject' && git tag v1 && echo two >a &&"             \
    " git commit -qam 'second' && git branch topic && echo three >a &&"                            \
    " git commit -qam 'third' && git tag v3"

void expect_ok(struct bench *b, size_t count);
/* Unpacks the kept archive i in "un" and gives the tree hash that git computes of it. */
const char *tree_of(struct bench *b, size_t i);
/* The archive is what its hash and size say. */
void expect_hash(struct bench *b, size_t i);
/* Nothing was left in the work folder. */
void expect_clean_work(struct bench *b);
void expect_failure(struct bench *b, struct source_spec *spec, int code, const char *text);

#endif

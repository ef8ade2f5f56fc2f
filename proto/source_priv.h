/* source_priv.h: the state of one reading of a source, for source*.c alone.
 *
 * A reading is a chain of steps. A step starts one child and names the next step, or hashes a
 * file, and ends by exactly one of source_run(), source_hash(), source_finish(), source_fail():
 * after that it touches nothing. */
#ifndef MAKESPAN_PROTO_SOURCE_PRIV_H
#define MAKESPAN_PROTO_SOURCE_PRIV_H

#include "common/fileio.h"
#include "common/proc.h"
#include "proto/source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct digest;
struct loop_timer;
struct mem_arena;

#define SOURCE_MAGIC 0x73726365U

typedef void source_step_f(struct source *s, const struct proc_output *o);
typedef void source_hashed_f(struct source *s);

/* What git needs beside the source itself. */
struct source_git {
    char repo[FILE_PATH_MAX]; /* ours: a mirror, or one that borrows objects */
    char from[FILE_PATH_MAX]; /* where revisions are looked up; is repo for a mirror */
    char top[FILE_PATH_MAX];  /* dirty: the work tree, its git folder, its index */
    char dir[FILE_PATH_MAX];
    char index[FILE_PATH_MAX];
    bool mirror;
    bool fetched;
    bool headless;    /* the repository's HEAD stands for no commit */
    bool anew;        /* the mirror was made anew after a lock was found in it */
    unsigned end;     /* number of the end that is looked up, see source_git.c */
    char ends[4][65]; /* what they are */
    int64_t *dates;   /* of each commit, seconds */
    char commit[65];  /* what is archived now: a commit of ours when the tree had to be changed */
    bool has_index;   /* an index of ours stands for the tree */
    bool links_told;
    const char *const *links; /* submodules that are to be left out, in the arena */
    size_t link_count;
};

struct source {
    unsigned magic;
    struct loop *loop;
    source_f *f;
    void *arg;
    struct mem_arena *arena;
    struct source_spec spec; /* its texts are in the arena */
    const char *shown;       /* the source's name for people */
    char
        scratch[FILE_PATH_MAX]; /* a folder of its own in the work folder; "" while there is none */
    char archive[FILE_PATH_MAX]; /* the file that is being made */
    struct loop_timer *timer;    /* the first step, and hashing */
    struct proc_collect *child;
    const char *program; /* of the child */
    source_step_f *next;
    struct file *out; /* the child's standard output, or what is hashed */
    struct digest *digest;
    uint64_t hashed;
    source_hashed_f *then;
    struct source_rev *revs;
    size_t count;
    size_t at; /* the revision that is being archived */
    const char *warning;
    struct source_git git;
};

/* Starts a child whose end is the step `next`. env: more variables, NULL-terminated, or NULL.
 * Its output is collected up to out_max bytes, or with out_max 0 written to s->archive. Fails by
 * itself when the program cannot be started or takes too long. */
void source_run(struct source *s, const char *const *argv, const char *const *env, size_t out_max,
                source_step_f *next);
/* Hashes the file, a bit each turn, into revs[at].hash and .size; then calls `then`. An archive
 * that was made here is on the disk then. */
void source_hash(struct source *s, const char *path, source_hashed_f *then);
/* Moves the archive that was made and hashed to its name in the work folder, and notes it in
 * revs[at]. False: it failed, and that was told. */
bool source_keep(struct source *s);
/* Tells the result and frees it. */
void source_finish(struct source *s);
void source_fail(struct source *s, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The same with what the child said last. */
void source_fail_child(struct source *s, const struct proc_output *o, const char *what);

/* Adds a sentence to the warnings. */
void source_warn(struct source *s, const char *text);
bool source_child_ok(const struct proc_output *o);
/* Whether its output went beyond the longest archive. */
bool source_child_too_long(const struct source *s, const struct proc_output *o);
/* Whether what a child said has this word in it. */
bool source_says(const struct buf *said, const char *word);
/* Copies the next line of a child's output to dst; false at the end, or when it does not fit. */
bool source_line(const struct buf *out, size_t *at, char *dst, size_t room);

/* The first step of a folder or a file. */
void source_files_begin(struct source *s);
/* The first step of a repository, and that of its archives, once the commits are known. */
void source_git_begin(struct source *s);
void source_tree_begin(struct source *s);
/* Sets the subject, as valid UTF-8 without control characters. */
void source_set_subject(struct source_rev *rev, const char *text);

/* --- repositories of our own, source_repo.c --- */

/* Makes a bare repository; one that is there is left as it is. objects: the folder of objects
 * that it borrows, or NULL. format: sha1 or sha256. head: what HEAD stands for, a reference. */
int source_repo_make(const char *path, const char *objects, const char *format,
                     const char *head) MUST_CHECK;
/* Copies a file and its time of change. */
int source_copy_file(const char *from, const char *to) MUST_CHECK;

#endif

/* tree_int.h: what the files of the prepared trees share. Not for others.
 *
 *     tree.c        the object, the folders, ready and spoilt
 *     tree_enter.c  one tree takes the place of another: a ladder of steps with children in between
 *     tree_store.c  the trees that wait: reading, looking up, throwing away
 *     tree_key.c    what makes two trees the same */
#ifndef MAKESPAN_WORKER_RUN_TREE_INT_H
#define MAKESPAN_WORKER_RUN_TREE_INT_H

#include "common/attr.h"
#include "common/fileio.h"
#include "worker/run/tree.h"
#include "worker/run/treestamp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct archive;
struct hostdir;
struct loop_timer;
struct proc_collect;
struct proc_output;
struct treehash;

#define TREES_MAGIC 0x74726565u

/* Folders below WORK. */
struct tree_paths {
    char work[FILE_PATH_MAX];
    char build[FILE_PATH_MAX]; /* the tree that stands */
    char trees[FILE_PATH_MAX]; /* those that wait, by key */
    char trash[FILE_PATH_MAX]; /* what is to be removed */
    char src[FILE_PATH_MAX];
    char obj[FILE_PATH_MAX];
    char home[FILE_PATH_MAX];
    char tmp[FILE_PATH_MAX];
};

struct trees {
    unsigned magic;
    struct loop *loop;
    struct tree_paths at;
    char *path;
    uint64_t budget;
    uint64_t entries_max;
    uint64_t bytes_max;
    bool set_user;
    uint32_t uid;
    uint32_t gid;
    char boot[65];
    uint64_t trash_count; /* names in the trash */
    uint64_t use_count;   /* the highest `used` of all stamps */

    struct treestamp *waiting;
    size_t waiting_count;
    size_t waiting_room;
    bool stands; /* there is a tree at WORK/build, and `stamp` is its */
    struct treestamp stamp;
    bool spoilt;
    char host_dir[FILE_PATH_MAX]; /* of the tree that stands: its SRC; "" when SRC is in it */

    struct tree_job *job;
    struct clean_job *clean;
    bool trash_stays; /* removing what lies in the trash was tried, and some stayed */
};

/* --- tree_key.c --- */
/* `says`: what the host's own folder said; "" otherwise. key has 65 bytes. */
void tree_key(const struct trees *trees, const struct tree_want *want, const char *says,
              char key[65]);

/* --- tree_store.c --- */
/* Reads WORK/trees and WORK/build; what is not usable goes to the trash. */
int tree_store_load(struct trees *trees, struct diag *diag) MUST_CHECK;
/* Index among those that wait, or -1. */
int tree_store_find(const struct trees *trees, const char *key);
/* A waiting tree goes to the trash. */
int tree_store_drop(struct trees *trees, size_t index) MUST_CHECK;
/* The least recently used of those that wait but `keep` (NULL: none is kept); -1 when there is
 * none. */
int tree_store_oldest(const struct trees *trees, const char *keep);
/* The tree that stands goes to those that wait, or to the trash. */
int tree_store_put_away(struct trees *trees, bool keep) MUST_CHECK;
/* A waiting tree comes to stand. */
int tree_store_take_out(struct trees *trees, size_t index) MUST_CHECK;
/* Moves any folder into the trash; a missing one is fine. */
int tree_store_trash(struct trees *trees, const char *folder) MUST_CHECK;
bool tree_store_has_trash(const struct trees *trees);
uint64_t tree_store_bytes(const struct trees *trees);

/* --- tree_enter.c --- */
void tree_job_cancel(struct trees *trees);
/* A child that removes what is in the trash. */
typedef void tree_output_f(const struct proc_output *output, void *arg);
int tree_empty_trash(struct trees *trees, tree_output_f *f, void *arg, struct proc_collect **out,
                     struct diag *diag) MUST_CHECK;

/* --- tree.c --- */
/* Makes a folder of the build's user; an existing one is fine. */
int tree_make_folder(const struct trees *trees, const char *path) MUST_CHECK;
/* Whether the tree that stands is whole, and its folders can be entered and written by their
 * owner. */
bool tree_is_usable(const struct trees *trees);

#endif

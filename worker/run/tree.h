/* tree.h: prepared trees: one stands at WORK/build, the others wait in WORK/trees/KEY.
 *
 * A tree is a folder with `src`, `obj` and a stamp that names its key and how far it is: only
 * one whose stamp says `ready` is used, every other is removed and made anew. It is moved in and
 * out by one rename, so a crash never mixes two. When built it always stands at the same path:
 * SRC = WORK/build/src, OBJ = WORK/build/obj. HOME = WORK/home and TMPDIR = WORK/tmp are emptied
 * for each attempt. A source that is the host's own folder stays where it is: SRC is that
 * folder, and the tree holds only `obj` and the stamp.
 *
 * Archives are hashed, read through by archive.h (nothing that would leave the tree) and then
 * unpacked as the build's user. Big removals are made by a child. Nothing of this runs while
 * something is timed. */
#ifndef MAKESPAN_WORKER_RUN_TREE_H
#define MAKESPAN_WORKER_RUN_TREE_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct loop;
struct trees;

enum tree_source {
    TREE_ARCHIVE = 1,
    TREE_HOST_DIR = 2,
    TREE_NONE = 3
}; /* as source_kind of ASSIGN */

struct trees_conf {
    const char *work; /* absolute; made when missing. All strings are copied. */
    const char *path; /* PATH for tar and the decompressors */
    /* bytes of all trees; 0: no limit. The one that stands is never removed for it. */
    uint64_t budget;
    uint64_t entries_max; /* of an archive; 0: 2 million */
    uint64_t bytes_max;   /* of its files together; 0: 64 GiB */
    bool set_user;        /* builds run as this user and own src, obj, HOME, TMPDIR */
    uint32_t uid;
    uint32_t gid;
};

/* Makes the folders, forgets what a crash left half-made. */
int trees_new(struct loop *loop, const struct trees_conf *conf, struct trees **out,
              struct diag *diag) MUST_CHECK;
void trees_free(struct trees **trees); /* kills its children; NULL inside is fine */

struct tree_want {
    enum tree_source source;
    const uint8_t *blob;   /* TREE_ARCHIVE: SHA-256, 32 bytes */
    const char *blob_path; /* the archive's file */
    const char *tree;     /* git's tree hash that must come out of it, hex; NULL or "": not known */
    const char *host_dir; /* TREE_HOST_DIR */
    const char *setup;    /* these four only enter the key; NULL: "" */
    const char *const *setup_env; /* NAME=VALUE, what setup sees beyond the fixed part */
    size_t setup_env_count;
    const char *storage;
    const char *fingerprint; /* hash of what the fingerprint command printed */
};

struct tree_result {
    /* 0, or negative: CHECKSUM the archive's bytes, DENIED its content, CONFLICT another tree
     * hash, FULL, CHILD tar failed, … */
    int code;
    const char *text; /* the sentence of a failure; "" */
    bool fresh;       /* it was just made: setup has to run, then trees_ready() */
    const char *key;  /* 64 hex digits */
    /* git's tree hash of what was unpacked, or what the host's own folder says ("HASH",
     * "HASH+dirty"); "" when it says nothing */
    const char *tree_seen;
    /* SHA-256 of the archive as it was read, 32 bytes; NULL without one */
    const uint8_t *blob_seen;
};
typedef void tree_f(const struct tree_result *result, void *arg);

/* Whether the wanted tree is ready, standing or waiting: then trees_enter() needs no archive. */
bool trees_have(const struct trees *trees, const struct tree_want *want);
/* Makes the wanted tree stand. `f` is called once, from the loop; strings are valid during the
 * call. One at a time: -ERR_BUSY. Until the next one it stands. */
int trees_enter(struct trees *trees, const struct tree_want *want, tree_f *f, void *arg,
                struct diag *diag) MUST_CHECK;
/* Kills the children and leaves nothing standing; `f` is not called. */
void trees_cancel(struct trees *trees);
/* Setup went well: from now on the tree that stands may be used again. */
int trees_ready(struct trees *trees, struct diag *diag) MUST_CHECK;
/* The tree that stands is spoilt (setup failed, reset failed): it is removed at the next
 * trees_enter(). */
void trees_spoilt(struct trees *trees);
/* HOME and TMPDIR that a build removed or locked are made anew; what others hold stays. 0 or
 * negative. */
int trees_mend_home(struct trees *trees) MUST_CHECK;
/* Empties HOME and TMPDIR. `f` is called once, from the loop, with 0 or a negative code. */
typedef void tree_clean_f(int code, void *arg);
int trees_clean_home(struct trees *trees, tree_clean_f *f, void *arg, struct diag *diag) MUST_CHECK;

/* What may be thrown away for room, the cheapest first; each with those before it. */
enum trees_room {
    TREES_ROOM_WAITING, /* the trees that wait */
    TREES_ROOM_HOME,    /* what lies in HOME and TMPDIR */
    TREES_ROOM_STANDING /* the tree that stands */
};

/* The disk is full: throws away one thing that can be made again, while nothing is timed: what lies
 * in HOME and TMPDIR, else the tree that waits for longest, else the one that stands, as far as
 * `what` allows. A child removes it, later: until trees_tidying() is false. False: there was
 * nothing, or a child is at work. */
bool trees_give_room(struct trees *trees, enum trees_room what);
/* Whether a child of trees_give_room() or trees_clean_home() is at work. */
bool trees_tidying(const struct trees *trees);

/* The folder of all of them; borrowed for the life of trees. */
const char *trees_work(const struct trees *trees);
/* Absolute paths; valid for the life of trees (src: until the next trees_enter()). */
const char *trees_src(const struct trees *trees);
const char *trees_obj(const struct trees *trees);
const char *trees_home(const struct trees *trees);
const char *trees_tmp(const struct trees *trees);
/* Bytes of all trees as last counted. */
uint64_t trees_bytes(const struct trees *trees);

#endif

/* source.h: a source as archives: revisions of a git repository, a folder, or a tar file, each
 * as one file with its SHA-256.
 *
 * Both sides that read sources use it: the coordinator (repositories, mirrors) and the
 * operator's command (its own work tree, folders, files). The work is done by children (git,
 * tar) on the loop; nothing here blocks. It keeps no rows and knows no sweep.
 *
 * What an archive holds:
 * - git: the tree of the commit, exactly: attributes that would leave out or change files
 *   (export-ignore, export-subst, text, eol, ident, filter, working-tree-encoding) are off, so
 *   that the unpacked tree has the tree hash that is told. Submodules are left out, with a
 *   warning, and then the hash is that of the tree without them. Modes are 755 and 644, times
 *   are the commit's. The same commit gives the same bytes.
 * - git with `dirty`: the work tree of HEAD with its uncommitted changes and with files that are
 *   new and not ignored. The repository is not written to.
 * - folder: every file below it but those named .git, sorted, owner 0, modes 755 and 644, one
 *   fixed time. GNU tar is needed.
 * - file: the file as it is: tar, plain or packed by gzip, bzip2, xz or zstd.
 *
 * A repository's own configuration is read only to look up its revisions, which starts no
 * program that it names; all else is done in a repository of our own that borrows its objects.
 * git 2.31 or later is needed. */
#ifndef MAKESPAN_PROTO_SOURCE_H
#define MAKESPAN_PROTO_SOURCE_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct loop;
struct source;

enum source_kind { SOURCE_GIT, SOURCE_DIR, SOURCE_FILE };

/* A revision; with b: the merge base of both. */
struct source_end {
    const char *a;
    const char *b; /* NULL: a alone */
};

/* One revision (`to`), or with `range` every commit that is reachable from `to` and not from
 * `from`. */
struct source_expr {
    bool range;
    struct source_end from;
    struct source_end to;
};

enum { SOURCE_HASH = 32, SOURCE_REV_MAX = 4096 };

struct source_rev {
    char commit[65];   /* full hash; "" for a folder or a file */
    char tree[65];     /* likewise: git's tree hash, of the dirty tree when it is one */
    char subject[257]; /* first line of the message, made valid UTF-8; "" */
    bool dirty;        /* there were uncommitted changes, and they are in the archive */
    bool exact;        /* all of the commit's tree; else `tree` is that without submodules */
    bool has_archive;
    uint8_t hash[SOURCE_HASH]; /* SHA-256 of the archive */
    uint64_t size;
    /* The archive: a new file in the work folder, which is the callback's to move or remove; or the
     * file itself of SOURCE_FILE. NULL: `known` gave it, or the same archive stands earlier. */
    const char *path;
};

struct source_spec {
    enum source_kind kind;
    const char *path;        /* repository (path or URL), folder or file */
    struct source_expr expr; /* SOURCE_GIT without dirty */
    bool dirty;              /* SOURCE_GIT in a work tree: HEAD and what is not committed */
    bool archive;            /* false: only look up */
    size_t rev_max;          /* most commits of a range; 0: SOURCE_REV_MAX */
    const char *work;        /* folder for archives and scratch; made when missing */
    const char *mirrors;     /* folder of mirrors of URLs; NULL: a URL is refused */
    /* Read repositories of other users too, since the caller's configuration names them. False:
     * git's own rule holds. */
    bool any_owner;
    int64_t timeout_ns;      /* of each child; 0: 30 min */
    uint64_t size_max;       /* longest archive; 0: no limit */
    /* Whether there is an archive of a commit already: fills hash, size and exact. NULL: there
     * is none. */
    bool (*known)(const char *commit, struct source_rev *rev, void *arg);
    void *known_arg;
};

struct source_result {
    const char *name; /* of the source, for people: a URL without its password */
    int code;         /* 0 or negative */
    const char *text; /* the sentence of a failure, which names the source and the revision; "" */
    const char *warning; /* NULL: none */
    const struct source_rev *revs; /* from the oldest to the newest */
    size_t count;
};
/* Called once, from a later turn; everything is borrowed for the call. Files in the work folder
 * that it left there are removed after it. */
typedef void source_f(const struct source_result *result, void *arg);

/* Begins. Everything in spec is copied. 0 or negative with text. After the callback the pointer
 * is dead. */
int source_start(struct loop *loop, const struct source_spec *spec, source_f *f, void *arg,
                 struct source **out, struct diag *diag) MUST_CHECK;
/* Kills the children, removes what was made, calls nobody. NULL inside is fine. */
void source_cancel(struct source **source);

/* Whether text names a repository elsewhere: SCHEME://… or HOST:PATH. */
bool source_is_url(const char *text);

#endif

/* source_tree.c: an archive of each commit of a repository, or of its work tree with what is not
 * committed.
 *
 * A commit whose tree is archived as it is goes straight to `git archive`. Where the tree is
 * another (submodules are taken out, uncommitted changes put in) it is made in an index of ours,
 * and archived by a commit of ours, whose time is the commit's, so that the bytes stay the same. */
#include "common/buf.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "proto/source_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX ((size_t)64 * 1024 * 1024)
#define LINKS_MAX 1000
#define WHO "makespan"

static void next_commit(struct source *s);

void source_set_subject(struct source_rev *rev, const char *text)
{
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == ' ') {
        n--;
    }
    if (n >= sizeof(rev->subject)) {
        n = sizeof(rev->subject) - 1;
        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80) {
            n--; /* no half character at the end */
        }
    }
    memcpy(rev->subject, text, n);
    rev->subject[n] = '\0';
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)rev->subject[i];
        if (c < 0x20 || c == 0x7f) {
            rev->subject[i] = ' ';
        }
    }
    size_t bad;
    while ((bad = str_utf8_bad(rev->subject, n)) < n) {
        rev->subject[bad] = '?';
    }
}

/* Variables by which git works on an index of ours, in a repository of ours. They live in the
 * arena. */
static const char *const *index_env(struct source *s)
{
    const char **env = mem_arena_array(s->arena, 10, sizeof(env[0]));
    const char *date = mem_arena_printf(s->arena, "@%" PRId64 " +0000", s->git.dates[s->at]);
    env[0] = mem_arena_printf(s->arena, "GIT_INDEX_FILE=%s/index", s->scratch);
    env[1] = "GIT_AUTHOR_NAME=" WHO;
    env[2] = "GIT_AUTHOR_EMAIL=" WHO;
    env[3] = "GIT_COMMITTER_NAME=" WHO;
    env[4] = "GIT_COMMITTER_EMAIL=" WHO;
    env[5] = mem_arena_printf(s->arena, "GIT_AUTHOR_DATE=%s", date);
    env[6] = mem_arena_printf(s->arena, "GIT_COMMITTER_DATE=%s", date);
    env[7] = mem_arena_printf(s->arena, "GIT_WORK_TREE=%s", s->scratch); /* an empty one */
    env[8] = NULL;
    return env;
}

static const char *git_dir(struct source *s)
{
    return mem_arena_printf(s->arena, "--git-dir=%s", s->git.repo);
}

/* The one hash that a child printed. */
static bool read_hash(const struct proc_output *o, char hash[65])
{
    size_t at = 0;
    return source_child_ok(o) && source_line(o->out, &at, hash, 65) && at == o->out->len &&
           strlen(hash) >= 40;
}

/* --- the archive --- */

static void on_hashed(struct source *s)
{
    if (source_keep(s)) {
        s->at++;
        next_commit(s);
    }
}

static void on_archive(struct source *s, const struct proc_output *o)
{
    char text[32];
    if (source_child_too_long(s, o)) {
        source_fail(s, ERR_LIMIT, "the archive of %.12s is longer than %s", s->revs[s->at].commit,
                    num_size_text(text, sizeof(text), s->spec.size_max));
    } else if (!source_child_ok(o)) {
        source_fail_child(s, o, "git cannot make an archive");
    } else {
        source_hash(s, s->archive, on_hashed);
    }
}

static void make_archive(struct source *s)
{
    const char *argv[] = {"git",         git_dir(s),
                          "-c",          "tar.umask=0022",
                          "-c",          "core.attributesFile=/dev/null",
                          "-c",          "core.autocrlf=false",
                          "-c",          "core.eol=lf",
                          "archive",     "--format=tar",
                          s->git.commit, NULL};
    source_run(s, argv, NULL, 0, on_archive);
}

/* --- a tree of ours --- */

static void on_commit_made(struct source *s, const struct proc_output *o)
{
    if (!read_hash(o, s->git.commit)) {
        source_fail_child(s, o, "git cannot make a commit of the tree");
        return;
    }
    make_archive(s);
}

/* revs[at].tree is not the commit's own: a commit is made for it. */
static void make_commit(struct source *s)
{
    const char *argv[] = {"git", git_dir(s),       "commit-tree",       "-p", s->revs[s->at].commit,
                          "-m",  "for an archive", s->revs[s->at].tree, NULL};
    source_run(s, argv, index_env(s), LIST_MAX, on_commit_made);
}

static void on_tree_without_links(struct source *s, const struct proc_output *o)
{
    if (!read_hash(o, s->revs[s->at].tree)) {
        source_fail_child(s, o, "git cannot write the tree");
        return;
    }
    s->revs[s->at].exact = false;
    make_commit(s);
}

static void on_links_removed(struct source *s, const struct proc_output *o)
{
    if (!source_child_ok(o)) {
        source_fail_child(s, o, "git cannot leave the submodules out");
        return;
    }
    const char *argv[] = {"git", git_dir(s), "write-tree", NULL};
    source_run(s, argv, index_env(s), LIST_MAX, on_tree_without_links);
}

/* Takes the submodules, whose names the arena holds, out of the index. */
static void remove_links(struct source *s, const char *const *names, size_t count)
{
    const char **argv = mem_xarray(count + 8, sizeof(argv[0]));
    size_t n = 0;
    argv[n++] = "git";
    argv[n++] = git_dir(s);
    argv[n++] = "update-index";
    argv[n++] = "--force-remove";
    argv[n++] = "--";
    for (size_t i = 0; i < count; i++) {
        argv[n++] = names[i];
    }
    argv[n] = NULL;
    source_run(s, argv, index_env(s), LIST_MAX, on_links_removed);
    free(argv);
}

struct links {
    const char **names;
    size_t count;
};

/* The submodules in a list of folders: "MODE TYPE HASH<tab>NAME<nul>". */
static bool read_links(struct source *s, const struct buf *out, struct links *links)
{
    const char *p = buf_str(out);
    const char *end = p + out->len;
    links->names = mem_arena_array(s->arena, LINKS_MAX, sizeof(links->names[0]));
    links->count = 0;
    while (p < end) {
        const char *tab = strchr(p, '\t');
        size_t n = strlen(p);
        if (tab == NULL || links->count == LINKS_MAX) {
            return false;
        }
        if (str_starts(p, "160000 ")) {
            links->names[links->count++] = mem_arena_strdup(s->arena, tab + 1);
        }
        p += n + 1;
    }
    return true;
}

static void remove_kept_links(struct source *s);

static void on_tree_read(struct source *s, const struct proc_output *o)
{
    if (!source_child_ok(o)) {
        source_fail_child(s, o, "git cannot read the tree");
        return;
    }
    s->git.has_index = true;
    remove_kept_links(s);
}

static void remove_kept_links(struct source *s)
{
    if (s->git.has_index) {
        remove_links(s, s->git.links, s->git.link_count);
        return;
    }
    const char *argv[] = {"git", git_dir(s), "read-tree", s->revs[s->at].tree, NULL};
    source_run(s, argv, index_env(s), LIST_MAX, on_tree_read);
}

static void on_links(struct source *s, const struct proc_output *o)
{
    struct links links;
    struct source_rev *rev = &s->revs[s->at];
    if (!source_child_ok(o)) {
        source_fail_child(s, o, "git cannot list the tree");
    } else if (!read_links(s, o->out, &links)) {
        source_fail(s, ERR_LIMIT, "it has more than %d submodules", LINKS_MAX);
    } else if (links.count > 0) {
        if (!s->git.links_told) {
            source_warn(s, mem_arena_printf(s->arena, "%s: submodules are not sent: %s%s", s->shown,
                                            links.names[0], links.count > 1 ? " and others" : ""));
        }
        s->git.links_told = true;
        s->git.links = links.names;
        s->git.link_count = links.count;
        remove_kept_links(s);
    } else if (rev->dirty) {
        make_commit(s);
    } else {
        str_copy(s->git.commit, sizeof(s->git.commit), rev->commit);
        make_archive(s);
    }
}

/* Whether the tree has submodules: folders and they are listed, no files. */
static void find_links(struct source *s)
{
    const char *argv[] = {"git", git_dir(s),    "ls-tree",           "-r", "-t", "-d",
                          "-z",  "--full-tree", s->revs[s->at].tree, NULL};
    source_run(s, argv, NULL, LIST_MAX, on_links);
}

/* --- uncommitted changes --- */

/* Variables by which git reads the work tree with its own configuration, and writes to ours
 * alone. */
static const char *const *work_env(struct source *s)
{
    const char **env = mem_arena_array(s->arena, 6, sizeof(env[0]));
    env[0] = mem_arena_printf(s->arena, "GIT_INDEX_FILE=%s/index", s->scratch);
    env[1] = mem_arena_printf(s->arena, "GIT_DIR=%s", s->git.dir);
    env[2] = mem_arena_printf(s->arena, "GIT_WORK_TREE=%s", s->git.top);
    env[3] = mem_arena_printf(s->arena, "GIT_OBJECT_DIRECTORY=%s/objects", s->git.repo);
    env[4] = NULL;
    return env;
}

static void on_work_tree(struct source *s, const struct proc_output *o)
{
    char tree[65];
    struct source_rev *rev = &s->revs[s->at];
    if (!read_hash(o, tree)) {
        source_fail_child(s, o, "git cannot write the tree");
        return;
    }
    rev->dirty = strcmp(tree, rev->tree) != 0;
    str_copy(rev->tree, sizeof(rev->tree), tree);
    find_links(s);
}

static void on_added(struct source *s, const struct proc_output *o)
{
    if (!source_child_ok(o)) {
        source_fail_child(s, o, "git cannot read the uncommitted changes");
        return;
    }
    s->git.has_index = true;
    const char *argv[] = {"git", "-C", s->git.top, "write-tree", NULL};
    source_run(s, argv, work_env(s), LIST_MAX, on_work_tree);
}

static void add_changes(struct source *s)
{
    char index[FILE_PATH_MAX];
    int rc = file_path(index, sizeof(index), s->scratch, "index");
    if (rc == 0 && file_exists(s->git.index)) {
        rc = source_copy_file(s->git.index, index);
    }
    if (rc < 0) {
        source_fail(s, rc, "its index cannot be copied: %s", err_text(rc));
        return;
    }
    const char *argv[] = {"git",
                          "-C",
                          s->git.top,
                          "-c",
                          "core.fsmonitor=false",
                          "-c",
                          "core.untrackedCache=false",
                          "-c",
                          "core.splitIndex=false",
                          "-c",
                          "core.safecrlf=false",
                          "-c",
                          "advice.addEmbeddedRepo=false",
                          "add",
                          "--all",
                          "--",
                          ".",
                          NULL};
    source_run(s, argv, work_env(s), LIST_MAX, on_added);
}

/* --- one commit after another --- */

static void next_commit(struct source *s)
{
    for (; s->at < s->count; s->at++) {
        struct source_rev *rev = &s->revs[s->at];
        s->git.has_index = false;
        if (s->spec.dirty) {
            add_changes(s);
            return;
        }
        if (s->spec.known == NULL || !s->spec.known(rev->commit, rev, s->spec.known_arg)) {
            find_links(s);
            return;
        }
        rev->has_archive = true;
    }
    source_finish(s);
}

void source_tree_begin(struct source *s)
{
    s->at = 0;
    next_commit(s);
}

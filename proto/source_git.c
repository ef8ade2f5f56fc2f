/* source_git.c: a repository: bringing a mirror up to date, looking revisions up, the list of
 * commits. What is archived of each is in source_tree.c.
 *
 * The ends of an expression are numbered: 0 and 1 are `to.a` and `to.b`, 2 and 3 `from.a` and
 * `from.b`. */
#include "common/buf.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "proto/digest.h"
#include "proto/source_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENDS 4
#define LINES_MAX ((size_t)16 * 1024 * 1024)
#define HEAD_OF_MIRROR "refs/makespan/HEAD"
#define ARGS_MAX (SOURCE_REV_MAX + 16)

static void find_next_end(struct source *s);

/* What was written at an end; NULL: nothing. */
static const char *end_text(const struct source *s, unsigned i)
{
    const struct source_expr *e = &s->spec.expr;
    const char *const texts[ENDS] = {e->to.a, e->to.b, e->range ? e->from.a : NULL,
                                     e->range ? e->from.b : NULL};
    return texts[i];
}

static bool is_hash(const char *text)
{
    size_t n = strspn(text, "0123456789abcdef");
    return text[n] == '\0' && (n == 40 || n == 64);
}

/* --- the list of commits --- */

/* HASH TREE DATE SUBJECT */
static bool read_commit(struct source *s, const char *line)
{
    struct source_rev *rev = &s->revs[s->count];
    char number[24];
    uint64_t date = 0;
    const char *fields[3];
    const char *p = line;
    for (size_t i = 0; i < 3; i++) {
        fields[i] = p;
        p = strchr(p, ' ');
        if (p == NULL) {
            return false;
        }
        p++;
    }
    size_t n = (size_t)(p - 1 - fields[2]);
    if ((size_t)(fields[1] - fields[0]) > sizeof(rev->commit) ||
        (size_t)(fields[2] - fields[1]) > sizeof(rev->tree) || n >= sizeof(number)) {
        return false;
    }
    memcpy(rev->commit, fields[0], (size_t)(fields[1] - fields[0]) - 1);
    memcpy(rev->tree, fields[1], (size_t)(fields[2] - fields[1]) - 1);
    memcpy(number, fields[2], n);
    number[n] = '\0';
    source_set_subject(rev, p);
    rev->exact = true;
    bool good = is_hash(rev->commit) && is_hash(rev->tree) && num_parse_u64(number, &date) == 0 &&
                date < INT64_MAX;
    s->git.dates[s->count++] = (int64_t)date;
    return good;
}

static void on_commits(struct source *s, const struct proc_output *o)
{
    size_t room = s->count;
    bool good = true;
    if (!source_child_ok(o)) {
        source_fail_child(s, o, "the commits cannot be read");
        return;
    }
    s->count = 0;
    for (const char *p = buf_str(o->out); *p != '\0' && good;) {
        size_t n = strcspn(p, "\n");
        const char *line = mem_arena_strndup(s->arena, p, n);
        good = s->count < room && read_commit(s, line);
        p += p[n] == '\n' ? n + 1 : n;
    }
    if (!good || s->count != room) {
        source_fail(s, ERR_CHILD, "git answers what is not understood");
    } else if (s->spec.archive) {
        source_tree_begin(s);
    } else {
        source_finish(s);
    }
}

/* Reads tree, date and subject of the commits in revs. */
static void read_commits(struct source *s)
{
    const char **argv = mem_xarray(ARGS_MAX, sizeof(argv[0]));
    char git_dir[FILE_PATH_MAX + 16];
    size_t n = 0;
    snprintf(git_dir, sizeof(git_dir), "--git-dir=%s", s->git.repo);
    s->git.dates = mem_xarray(s->count + 1, sizeof(s->git.dates[0]));
    argv[n++] = "git";
    argv[n++] = git_dir;
    argv[n++] = "log";
    argv[n++] = "--no-walk=unsorted";
    argv[n++] = "--no-color";
    argv[n++] = "--no-show-signature";
    argv[n++] = "--no-notes";
    argv[n++] = "--encoding=UTF-8";
    argv[n++] = "--format=tformat:%H %T %ct %<(250,trunc)%s";
    for (size_t i = 0; i < s->count; i++) {
        argv[n++] = s->revs[i].commit;
    }
    argv[n] = NULL;
    source_run(s, argv, NULL, LINES_MAX, on_commits);
    free(argv);
}

static void on_range(struct source *s, const struct proc_output *o)
{
    char line[80];
    size_t at = 0;
    size_t max = s->spec.rev_max;
    if (!source_child_ok(o)) {
        source_fail_child(s, o, "the commits cannot be listed");
        return;
    }
    s->revs = mem_xarray(max, sizeof(s->revs[0]));
    while (s->count < max && source_line(o->out, &at, line, sizeof(line)) && is_hash(line)) {
        str_copy(s->revs[s->count++].commit, sizeof(s->revs[0].commit), line);
    }
    if (at < o->out->len) {
        s->count = 0;
        source_fail(s, ERR_LIMIT, "there are more than %zu commits from `%s` to `%s`", max,
                    end_text(s, 2), end_text(s, 0));
    } else if (s->count == 0) {
        source_fail(s, ERR_NOTFOUND, "there is no commit from `%s` to `%s`", end_text(s, 2),
                    end_text(s, 0));
    } else {
        read_commits(s);
    }
}

/* Every end is a commit now. */
static void list_commits(struct source *s)
{
    char git_dir[FILE_PATH_MAX + 16];
    char without[80];
    char count[32];
    if (!s->spec.expr.range || s->spec.dirty) {
        s->revs = mem_xarray(1, sizeof(s->revs[0]));
        s->count = 1;
        str_copy(s->revs[0].commit, sizeof(s->revs[0].commit), s->git.ends[0]);
        read_commits(s);
        return;
    }
    snprintf(git_dir, sizeof(git_dir), "--git-dir=%s", s->git.repo);
    snprintf(without, sizeof(without), "^%s", s->git.ends[2]);
    snprintf(count, sizeof(count), "--max-count=%zu", s->spec.rev_max + 1);
    const char *argv[] = {"git", git_dir,        "rev-list", "--reverse", "--topo-order",
                          count, s->git.ends[0], without,    NULL};
    source_run(s, argv, NULL, LINES_MAX, on_range);
}

/* --- ends --- */

/* Ends 0 and 2 become the merge base where they have a second part. */
static void merge_bases(struct source *s);

static void on_merge_base(struct source *s, const struct proc_output *o)
{
    char line[80];
    size_t at = 0;
    unsigned i = s->git.end;
    if (!source_child_ok(o) || !source_line(o->out, &at, line, sizeof(line)) || !is_hash(line)) {
        if (o->end.signaled || o->end.exit_status != 1) {
            source_fail_child(s, o, "the merge base cannot be found");
        } else {
            source_fail(s, ERR_NOTFOUND, "`%s` and `%s` have no common ancestor", end_text(s, i),
                        end_text(s, i + 1));
        }
        return;
    }
    str_copy(s->git.ends[i], sizeof(s->git.ends[i]), line);
    s->git.end += 2;
    merge_bases(s);
}

static void merge_bases(struct source *s)
{
    char git_dir[FILE_PATH_MAX + 16];
    while (s->git.end < ENDS && s->git.ends[s->git.end + 1][0] == '\0') {
        s->git.end += 2;
    }
    if (s->git.end >= ENDS) {
        list_commits(s);
        return;
    }
    snprintf(git_dir, sizeof(git_dir), "--git-dir=%s", s->git.repo);
    const char *argv[] = {
        "git", git_dir, "merge-base", s->git.ends[s->git.end], s->git.ends[s->git.end + 1], NULL};
    source_run(s, argv, NULL, LINES_MAX, on_merge_base);
}

static void fetch(struct source *s);

static void on_end(struct source *s, const struct proc_output *o)
{
    char line[80];
    size_t at = 0;
    unsigned i = s->git.end;
    if (source_child_ok(o) && source_line(o->out, &at, line, sizeof(line)) && is_hash(line)) {
        str_copy(s->git.ends[i], sizeof(s->git.ends[i]), line);
        s->git.end++;
        find_next_end(s);
    } else if (s->git.mirror && !s->git.fetched) {
        fetch(s); /* a hash that the mirror does not know yet */
    } else if (s->spec.dirty) {
        source_fail(s, ERR_NOTFOUND, "there is no commit yet");
    } else {
        source_fail(s, ERR_NOTFOUND, "%s revision `%s`",
                    source_says(o->err, "ambiguous") ? "several commits fit the" : "there is no",
                    end_text(s, i));
    }
}

/* Looks the next end up; behind the last come the merge bases. */
static void find_next_end(struct source *s)
{
    char what[512];
    char git_dir[FILE_PATH_MAX + 16];
    while (s->git.end < ENDS && end_text(s, s->git.end) == NULL) {
        s->git.end++;
    }
    if (s->git.end == ENDS) {
        s->git.end = 0;
        merge_bases(s);
        return;
    }
    const char *text = end_text(s, s->git.end);
    if (text[0] == '-' || text[0] == '\0' || strlen(text) + 10 > sizeof(what)) {
        source_fail(s, ERR_INVAL, "`%s` is no revision", text);
        return;
    }
    snprintf(what, sizeof(what), "%s^{commit}", text);
    if (s->git.mirror) {
        snprintf(git_dir, sizeof(git_dir), "--git-dir=%s", s->git.repo);
        const char *argv[] = {"git", git_dir, "rev-parse", "--verify", "--end-of-options",
                              what,  NULL};
        source_run(s, argv, NULL, LINES_MAX, on_end);
    } else {
        const char *argv[] = {"git", "-C", s->git.from, "rev-parse", "--verify", "--end-of-options",
                              what,  NULL};
        source_run(s, argv, NULL, LINES_MAX, on_end);
    }
}

/* --- a mirror --- */

static int make_mirror(struct source *s)
{
    return source_repo_make(s->git.repo, NULL, "sha1", HEAD_OF_MIRROR);
}

static void on_fetch(struct source *s, const struct proc_output *o)
{
    if (source_child_ok(o)) {
        s->git.fetched = true;
        s->git.end = 0;
        memset(s->git.ends, 0, sizeof(s->git.ends));
        find_next_end(s);
    } else if (source_says(o->err, ".lock") && !s->git.anew) {
        /* A fetch was killed in the middle. The mirror is only a copy. */
        s->git.anew = true;
        int rc = file_remove_tree(s->git.repo);
        if (rc == 0) {
            rc = make_mirror(s);
        }
        if (rc < 0) {
            source_fail(s, rc, "its mirror %s cannot be made anew: %s", s->git.repo, err_text(rc));
        } else {
            fetch(s);
        }
    } else if (source_says(o->err, "remote ref HEAD") && !s->git.headless) {
        s->git.headless = true;
        fetch(s);
    } else {
        source_fail_child(s, o, "git cannot fetch it");
    }
}

static void fetch(struct source *s)
{
    char git_dir[FILE_PATH_MAX + 16];
    snprintf(git_dir, sizeof(git_dir), "--git-dir=%s", s->git.repo);
    const char *argv[] = {"git",
                          git_dir,
                          "-c",
                          "gc.autoDetach=false",
                          "fetch",
                          "--quiet",
                          "--prune",
                          "--force",
                          "--no-tags",
                          "--no-recurse-submodules",
                          "--end-of-options",
                          s->spec.path,
                          "+refs/heads/*:refs/heads/*",
                          "+refs/tags/*:refs/tags/*",
                          s->git.headless ? NULL : "+HEAD:" HEAD_OF_MIRROR,
                          NULL};
    source_run(s, argv, NULL, LINES_MAX, on_fetch);
}

static void begin_mirror(struct source *s)
{
    uint8_t hash[DIGEST_MAX];
    char name[2 * DIGEST_MAX + 1];
    bool hashes = true;
    if (s->spec.mirrors == NULL) {
        source_fail(s, ERR_INVAL, "a repository elsewhere is read by the coordinator only");
        return;
    }
    digest_sha256(s->spec.path, strlen(s->spec.path), hash);
    str_hex(name, hash, DIGEST_MAX);
    s->git.mirror = true;
    int rc = file_path(s->git.repo, sizeof(s->git.repo), s->spec.mirrors, name);
    if (rc == 0) {
        rc = make_mirror(s);
    }
    if (rc < 0) {
        source_fail(s, rc, "its mirror in %s cannot be made: %s", s->spec.mirrors, err_text(rc));
        return;
    }
    for (unsigned i = 0; i < ENDS; i++) {
        hashes = hashes && (end_text(s, i) == NULL || is_hash(end_text(s, i)));
    }
    if (hashes) {
        find_next_end(s); /* what a full hash names never changes: it may be here already */
    } else {
        fetch(s);
    }
}

/* --- a repository on this machine --- */

static void on_place(struct source *s, const struct proc_output *o)
{
    char objects[FILE_PATH_MAX];
    char format[16];
    size_t at = 0;
    if (!source_child_ok(o)) {
        if (source_says(o->err, "not a git repository")) {
            source_fail(s, ERR_NOTFOUND, "there is no git repository");
        } else if (s->spec.dirty && source_says(o->err, "work tree")) {
            source_fail(s, ERR_INVAL,
                        "uncommitted changes are in a work tree, and this repository has none");
        } else {
            source_fail_child(s, o, "git cannot read it");
        }
        return;
    }
    bool good = source_line(o->out, &at, objects, sizeof(objects)) &&
                source_line(o->out, &at, format, sizeof(format));
    if (s->spec.dirty) {
        good = good && source_line(o->out, &at, s->git.top, sizeof(s->git.top)) &&
               source_line(o->out, &at, s->git.dir, sizeof(s->git.dir)) &&
               source_line(o->out, &at, s->git.index, sizeof(s->git.index));
    }
    if (!good || at < o->out->len || objects[0] != '/') {
        source_fail(s, ERR_CHILD, "git answers what is not understood");
        return;
    }
    int rc = file_path(s->git.repo, sizeof(s->git.repo), s->scratch, "repo.git");
    if (rc == 0) {
        rc = source_repo_make(s->git.repo, objects, format, "refs/heads/none");
    }
    if (rc < 0) {
        source_fail(s, rc, "a repository that borrows its objects cannot be made: %s",
                    err_text(rc));
        return;
    }
    find_next_end(s);
}

static void begin_place(struct source *s)
{
    const char *path = str_starts(s->spec.path, "file://") ? s->spec.path + 7 : s->spec.path;
    if (str_copy(s->git.from, sizeof(s->git.from), path) >= sizeof(s->git.from)) {
        source_fail(s, ERR_LIMIT, "the path is longer than %d bytes", FILE_PATH_MAX - 1);
        return;
    }
    if (!file_exists(path)) {
        source_fail(s, ERR_NOTFOUND, "there is no such folder");
        return;
    }
    /* A question more when dirty; git answers them in this order. */
    const char *argv[] = {"git",
                          "-C",
                          s->git.from,
                          "rev-parse",
                          "--path-format=absolute",
                          "--git-path",
                          "objects",
                          "--show-object-format",
                          "--show-toplevel",
                          "--absolute-git-dir",
                          "--git-path",
                          "index",
                          NULL};
    if (!s->spec.dirty) {
        argv[8] = NULL;
    }
    source_run(s, argv, NULL, LINES_MAX, on_place);
}

void source_git_begin(struct source *s)
{
    if (s->spec.dirty) {
        s->spec.expr = (struct source_expr){.to = {.a = "HEAD"}};
    }
    if (s->spec.path[0] == '\0' || s->spec.path[0] == '-' || end_text(s, 0) == NULL) {
        source_fail(s, ERR_INVAL, "that is no repository");
    } else if (source_is_url(s->spec.path)) {
        begin_mirror(s);
    } else {
        begin_place(s);
    }
}

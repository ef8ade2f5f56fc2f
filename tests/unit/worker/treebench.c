/* treebench.c: prepared trees of a test: a work folder, small sources, entering and looking. */
#include "tests/unit/worker/treebench.h"

#include "common/diag.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/unit/worker/work.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void treebench_start(struct treebench *b)
{
    struct trees_conf conf = {.work = b->work,
                              .path = "/usr/local/bin:/usr/bin:/bin",
                              .budget = b->budget,
                              .set_user = b->user,
                              .uid = TREEBENCH_UID,
                              .gid = TREEBENCH_UID};

    b->loop = loop_new();
    b->diag = diag_new(4);
    cr_assert_eq(trees_new(b->loop, &conf, &b->trees, b->diag), 0, "%s", diag_first(b->diag));
}

void treebench_stop(struct treebench *b)
{
    trees_free(&b->trees);
    loop_free(&b->loop);
    diag_free(&b->diag);
}

void treebench_open(struct treebench *b)
{
    memset(b, 0, sizeof(*b));
    b->dir = work_dir_new();
    b->work = work_path(b->dir, "work");
    treebench_start(b);
}

void treebench_close(struct treebench *b)
{
    treebench_stop(b);
    free(b->work);
    work_dir_remove(&b->dir);
}

void treebench_make(const struct treebench *b, const char *name, struct treebench_source *s)
{
    char *text;
    FILE *f;
    struct digest *d = digest_new(DIGEST_SHA256);
    char chunk[4096], *tree;
    size_t n;

    cr_assert_eq(work_sh("cd %s && export HOME=%s && mkdir %s && cd %s && git init -q && echo %s "
                         ">file && mkdir sub && echo x >sub/x && git add -A && "
                         "git -c user.name=a -c user.email=a@b commit -q -m x && git archive "
                         "--format=tar HEAD >../%s.tar && "
                         "git rev-parse 'HEAD^{tree}' >../%s.tree",
                         b->dir, b->dir, name, name, name, name, name),
                 0);
    text = mem_xasprintf("%s.tar", name);
    s->path = work_path(b->dir, text);
    free(text);
    text = mem_xasprintf("%s/%s.tree", b->dir, name);
    tree = work_read(text);
    tree[strcspn(tree, "\n")] = '\0';
    (void)str_copy(s->tree, sizeof(s->tree), tree);
    free(tree);
    free(text);
    f = fopen(s->path, "r");
    cr_assert(f != NULL);
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        digest_add(d, chunk, n);
    (void)fclose(f);
    (void)digest_end(d, s->hash);
    digest_free(&d);
}

struct tree_want treebench_want(const struct treebench_source *s)
{
    return (struct tree_want){.source = TREE_ARCHIVE,
                              .blob = s->hash,
                              .blob_path = s->path,
                              .tree = s->tree,
                              .setup = "make"};
}

void treebench_on_tree(const struct tree_result *r, void *arg)
{
    struct treebench *b = arg;

    b->code = r->code;
    b->fresh = r->fresh;
    b->blob = r->blob_seen != NULL;
    (void)snprintf(b->text, sizeof(b->text), "%s", r->text);
    (void)snprintf(b->key, sizeof(b->key), "%s", r->key);
    (void)snprintf(b->seen, sizeof(b->seen), "%s", r->tree_seen);
    b->done = true;
}

void treebench_enter(struct treebench *b, const struct tree_want *want)
{
    b->done = false;
    cr_assert_eq(trees_enter(b->trees, want, treebench_on_tree, b, b->diag), 0, "%s",
                 diag_first(b->diag));
    cr_assert_not(b->done);
    work_until(b->loop, &b->done);
}

/* Enters and makes it ready, as setup does, which leaves its trace in the tree. */
void treebench_prepare(struct treebench *b, const struct tree_want *want)
{
    treebench_enter(b, want);
    cr_assert_eq(b->code, 0, "%s", b->text);
    if (b->fresh) {
        cr_assert_eq(work_sh("echo configured >%s/config", trees_obj(b->trees)), 0);
        cr_assert_eq(trees_ready(b->trees, b->diag), 0);
    }
}

char *treebench_file(const struct treebench *b)
{
    char *path = work_path(trees_src(b->trees), "file"), *text = work_read(path);

    text[strcspn(text, "\n")] = '\0';
    free(path);
    return text;
}

bool treebench_configured(const struct treebench *b)
{
    char *path = work_path(trees_obj(b->trees), "config");
    bool there = work_there(path);

    free(path);
    return there;
}

void treebench_expect_file(const struct treebench *b, const char *want)
{
    char *text = treebench_file(b);

    cr_expect_str_eq(text, want);
    free(text);
}

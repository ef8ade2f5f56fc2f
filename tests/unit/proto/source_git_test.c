/* source_git_test.c: repositories and work trees as archives, by real git. */
#include "proto/source.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "common/str.h"
#include "tests/unit/proto/source_help.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

Test(git, a_revision_becomes_an_archive_of_its_tree)
{
    struct bench b;
    bench_open(&b);
    sh(&b, "%s", REPO);
    struct source_spec spec = git_spec(&b, "r", "v1");
    b.keep = true;
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    cr_expect_str_eq(sh(&b, "git -C r rev-parse v1"), b.revs[0].commit);
    cr_expect_str_eq(sh(&b, "git -C r rev-parse v1^{tree}"), b.revs[0].tree);
    cr_expect_str_eq(b.revs[0].subject, "first subject");
    cr_expect(b.revs[0].has_archive && b.revs[0].exact && !b.revs[0].dirty);
    expect_hash(&b, 0);
    cr_expect_str_eq(tree_of(&b, 0), b.revs[0].tree);
    cr_expect_str_eq(sh(&b, "cat un/a; stat -c %%a un/a un/d/x; readlink un/l"),
                     "one\n644\n755\na");
    expect_clean_work(&b);
    cr_expect_str_eq(b.warning, "");
    bench_close(&b);
}

Test(git, the_same_commit_gives_the_same_bytes)
{
    struct bench b;
    uint8_t first[SOURCE_HASH];
    bench_open(&b);
    sh(&b, "%s", REPO);
    struct source_spec spec = git_spec(&b, "r", "v1");
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    memcpy(first, b.revs[0].hash, SOURCE_HASH);
    /* From a clone, with another umask, and other settings of the repository. */
    sh(&b, "git clone -q --bare r c.git; git -C c.git config tar.umask 0077; git -C c.git config "
           "core.autocrlf true");
    spec = git_spec(&b, "c.git", "v1");
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    cr_expect_arr_eq(b.revs[0].hash, first, SOURCE_HASH);
    bench_close(&b);
}

Test(git, attributes_change_nothing)
{
    struct bench b;
    bench_open(&b);
    sh(&b, "git init -q r && cd r && printf 'a\\nb\\n' >t && echo '$Format:%%H$ $Id$' >v && echo s "
           ">secret &&"
           " printf 'secret export-ignore\\nv export-subst ident\\nt text eol=crlf\\n* "
           "filter=x\\n' >.gitattributes &&"
           " git add -A && git commit -qm s && git config filter.x.smudge 'sed s/./X/g' &&"
           " echo '* export-ignore' >.git/info/attributes");
    struct source_spec spec = git_spec(&b, "r", "HEAD");
    b.keep = true;
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    cr_expect_str_eq(tree_of(&b, 0), b.revs[0].tree);
    cr_expect_str_eq(sh(&b, "cat un/secret un/v; od -c un/t | head -1"),
                     "s\n$Format:%H$ $Id$\n0000000   a  \\n   b  \\n");
    bench_close(&b);
}

Test(git, a_range_is_every_commit_from_the_oldest)
{
    struct bench b;
    bench_open(&b);
    sh(&b, "%s", REPO);
    struct source_spec spec = git_spec(&b, "r", "v3");
    spec.expr.range = true;
    spec.expr.from.a = "v1";
    b.keep = true;
    bench_read(&b, &spec);
    expect_ok(&b, 2);
    cr_expect_str_eq(b.revs[0].subject, "second");
    cr_expect_str_eq(b.revs[1].subject, "third");
    for (size_t i = 0; i < 2; i++) {
        cr_expect_str_eq(tree_of(&b, i), b.revs[i].tree);
        expect_hash(&b, i);
    }
    spec.rev_max = 1;
    expect_failure(&b, &spec, ERR_LIMIT, "more than 1 commits from `v1` to `v3`");
    spec.rev_max = 2;
    bench_read(&b, &spec);
    expect_ok(&b, 2);
    spec.expr.from.a = "v3";
    expect_failure(&b, &spec, ERR_NOTFOUND, "there is no commit from `v3` to `v3`");
    expect_clean_work(&b);
    bench_close(&b);
}

Test(git, a_merge_base)
{
    struct bench b;
    bench_open(&b);
    sh(&b,
       "%s && git checkout -q topic && echo t >t && git add t && git commit -qm 'on topic' && git "
       "checkout -q --orphan lone"
       " && git commit -qm lone",
       REPO);
    struct source_spec spec = git_spec(&b, "r", "v3");
    spec.archive = false;
    spec.expr.to.b = "topic";
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    cr_expect_str_eq(b.revs[0].subject, "second");
    cr_expect(!b.revs[0].has_archive && b.revs[0].path == NULL);
    /* As the beginning of a range. */
    spec.expr = (struct source_expr){.range = true, .from = {"v3", "topic"}, .to = {"topic", NULL}};
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    cr_expect_str_eq(b.revs[0].subject, "on topic");
    spec.expr = (struct source_expr){.to = {"v3", "lone"}};
    expect_failure(&b, &spec, ERR_NOTFOUND, "`v3` and `lone` have no common ancestor");
    bench_close(&b);
}

Test(git, what_is_not_there_is_named)
{
    struct bench b;
    char want[256];
    bench_open(&b);
    sh(&b, "%s; cd ..; mkdir plain; git init -q empty; echo x >file", REPO);
    struct source_spec spec = git_spec(&b, "r", "v6.x");
    snprintf(want, sizeof(want), "%s: there is no revision `v6.x`", at(&b, "r"));
    expect_failure(&b, &spec, ERR_NOTFOUND, want);
    cr_expect_str_eq(b.text, want);
    spec.expr = (struct source_expr){.to = {"v1", "v7"}};
    expect_failure(&b, &spec, ERR_NOTFOUND, "there is no revision `v7`");
    spec.expr = (struct source_expr){.range = true, .from = {"v8", NULL}, .to = {"v1", NULL}};
    expect_failure(&b, &spec, ERR_NOTFOUND, "there is no revision `v8`");
    spec = git_spec(&b, "none", "v1");
    expect_failure(&b, &spec, ERR_NOTFOUND, "there is no such folder");
    spec = git_spec(&b, "plain", "v1");
    expect_failure(&b, &spec, ERR_NOTFOUND, "there is no git repository");
    spec = git_spec(&b, "file", "v1");
    expect_failure(&b, &spec, ERR_CHILD, "git cannot read it");
    spec = git_spec(&b, "empty", "HEAD");
    expect_failure(&b, &spec, ERR_NOTFOUND, "there is no revision `HEAD`");
    /* A tree and a file of the repository are no commits. */
    spec = git_spec(&b, "r", "v1^{tree}");
    expect_failure(&b, &spec, ERR_NOTFOUND, "there is no revision");
    expect_clean_work(&b);
    bench_close(&b);
}

/* Cut off, it would name another repository. */
Test(git, a_path_that_is_too_long_is_refused)
{
    struct bench b;
    bench_open(&b);
    sh(&b, "%s && cd .. && git init -q other", REPO);
    struct buf path = BUF_INIT;
    buf_add_str(&path, at(&b, "r"));
    while (path.len < 1200) {
        buf_add_str(&path, "/.");
    }
    buf_add_str(&path, "/../other");
    struct source_spec spec = git_spec(&b, "r", "HEAD");
    spec.path = buf_str(&path);
    bench_read(&b, &spec);
    cr_expect_eq(b.code, -ERR_LIMIT, "%s: %s", err_name(b.code), b.text);
    cr_expect_eq(b.count, 0);
    buf_fini(&path);
    bench_close(&b);
}

Test(git, a_revision_is_never_an_option)
{
    struct bench b;
    bench_open(&b);
    sh(&b, "%s", REPO);
    const char *revs[] = {"--help", "--all", "-h", "--upload-pack=touch pwned", ""};
    for (size_t i = 0; i < ARRAY_LEN(revs); i++) {
        struct source_spec spec = git_spec(&b, "r", revs[i]);
        expect_failure(&b, &spec, ERR_INVAL, "is no revision");
    }
    const char *paths[] = {"--upload-pack=touch pwned", "-x", ""};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct source_spec spec = git_spec(&b, "r", "v1");
        spec.path = paths[i];
        expect_failure(&b, &spec, ERR_INVAL, "that is no repository");
    }
    struct source_spec spec = git_spec(&b, "r", "v1");
    spec.path = "ext::sh -c 'touch pwned'://";
    bench_read(&b, &spec);
    cr_expect_eq(b.code, -ERR_CHILD);
    cr_expect(strstr(b.text, "not allowed") != NULL, "%s", b.text);
    cr_expect_str_eq(sh(&b, "find . -name pwned"), "");
    bench_close(&b);
}

Test(git, the_configuration_of_a_repository_starts_nothing)
{
    struct bench b;
    bench_open(&b);
    sh(&b,
       "%s && for k in core.fsmonitor core.sshCommand core.pager core.editor gpg.program "
       "diff.external core.gitProxy"
       " tar.tar.command alias.archive filter.x.smudge core.askPass uploadpack.packObjectsHook; do "
       "git config $k"
       " \"touch $PWD/../pwned; false\"; done; git config log.showSignature true; mkdir -p "
       ".git/hooks; for h in"
       " post-checkout reference-transaction pre-auto-gc; do printf '#!/bin/sh\\ntouch "
       "../pwned\\n' >.git/hooks/$h; chmod +x"
       " .git/hooks/$h; done",
       REPO);
    struct source_spec spec = git_spec(&b, "r", "v3");
    spec.expr.range = true;
    spec.expr.from.a = "v1";
    spec.any_owner = true;
    bench_read(&b, &spec);
    expect_ok(&b, 2);
    cr_expect_str_eq(sh(&b, "find . -name pwned"), "");
    bench_close(&b);
}

Test(git, of_another_owner_only_when_that_is_allowed)
{
    struct bench b;
    if (geteuid() != 0) {
        cr_skip_test("only root can give files away");
    }
    bench_open(&b);
    sh(&b, "%s && cd .. && chown -R 65534 r", REPO);
    struct source_spec spec = git_spec(&b, "r", "v1");
    expect_failure(&b, &spec, ERR_CHILD, "dubious ownership");
    spec.any_owner = true;
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    bench_close(&b);
}

Test(git, submodules_are_left_out_with_a_warning)
{
    struct bench b;
    bench_open(&b);
    sh(&b,
       "%s && cd .. && git init -q m && cd m && echo x >x && git add x && git -c "
       "protocol.file.allow=always submodule -q add"
       " ../r sub/r && git commit -qm 'with a submodule' && echo y >x && git commit -qam again",
       REPO);
    struct source_spec spec = git_spec(&b, "m", "HEAD");
    spec.expr.range = true;
    spec.expr.from.a = "HEAD~1";
    spec.expr = (struct source_expr){.to = {"HEAD", NULL}};
    b.keep = true;
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    cr_expect(strstr(b.warning, "submodules are not sent: sub/r") != NULL, "%s", b.warning);
    cr_expect(!b.revs[0].exact);
    cr_expect_str_neq(b.revs[0].tree, sh(&b, "git -C m rev-parse HEAD^{tree}"));
    cr_expect_str_eq(tree_of(&b, 0), b.revs[0].tree);
    cr_expect_str_eq(sh(&b, "cat un/x; ls un; git -C m status --porcelain"), "y\nx");
    expect_hash(&b, 0);
    uint8_t first[SOURCE_HASH];
    memcpy(first, b.revs[0].hash, SOURCE_HASH);
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    cr_expect_arr_eq(b.revs[0].hash, first, SOURCE_HASH, "the same bytes again");
    bench_close(&b);
}

static bool know(const char *commit, struct source_rev *rev, void *arg)
{
    if (strcmp(commit, arg) != 0) {
        return false;
    }
    memset(rev->hash, 7, SOURCE_HASH);
    rev->size = 77;
    return true;
}

Test(git, what_is_known_is_not_made_again)
{
    struct bench b;
    char commit[65];
    bench_open(&b);
    sh(&b, "%s", REPO);
    snprintf(commit, sizeof(commit), "%s", sh(&b, "git -C r rev-parse v3~1"));
    struct source_spec spec = git_spec(&b, "r", "v3");
    spec.expr.range = true;
    spec.expr.from.a = "v1";
    spec.known = know;
    spec.known_arg = commit;
    bench_read(&b, &spec);
    expect_ok(&b, 2);
    cr_expect(b.revs[0].has_archive && b.revs[0].path == NULL);
    cr_expect_eq(b.revs[0].size, 77);
    cr_expect_eq(b.revs[0].hash[31], 7);
    cr_expect(b.revs[1].has_archive && b.revs[1].path != NULL);
    cr_expect_eq(b.revs[1].hash[31] == 7 && b.revs[1].hash[30] == 7, false);
    bench_close(&b);
}

Test(git, an_archive_has_a_longest_size)
{
    struct bench b;
    bench_open(&b);
    sh(&b, "git init -q r && cd r && head -c 300000 /dev/zero >z && git add z && git commit -qm z");
    struct source_spec spec = git_spec(&b, "r", "HEAD");
    spec.size_max = 100000;
    expect_failure(&b, &spec, ERR_LIMIT, "is longer than 100 KB");
    spec.size_max = 1000000;
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    expect_clean_work(&b);
    bench_close(&b);
}

Test(git, a_subject_is_clean_text)
{
    struct bench b;
    bench_open(&b);
    sh(&b, "git init -q r && cd r && git -c i18n.commitEncoding=none commit -q --allow-empty -F - "
           "<<'EOF'\nbad \xff byte\tand "
           "\x1b[31m tab\nEOF\n"
           "i=0; s=; while [ $i -lt 300 ]; do s=${s}\xe2\x82\xac; i=$((i+1)); done; git commit -q "
           "--allow-empty -m \"$s\"; git"
           " tag long");
    struct source_spec spec = git_spec(&b, "r", "HEAD~1");
    spec.archive = false;
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    cr_expect(str_is_utf8(b.revs[0].subject, strlen(b.revs[0].subject)));
    cr_expect(strchr(b.revs[0].subject, 0x1b) == NULL && strchr(b.revs[0].subject, '\t') == NULL);
    cr_expect(strncmp(b.revs[0].subject, "bad ", 4) == 0, "%s", b.revs[0].subject);
    spec.expr.to.a = "long";
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    size_t n = strlen(b.revs[0].subject);
    cr_expect(n > 240 && n <= 256, "%zu", n);
    cr_expect(str_is_utf8(b.revs[0].subject, n));
    bench_close(&b);
}

/* --- a work tree --- */

static struct source_spec dirty_spec(struct bench *b, const char *name)
{
    struct source_spec spec = git_spec(b, name, NULL);
    spec.dirty = true;
    return spec;
}

Test(dirty, takes_what_is_not_committed)
{
    struct bench b;
    bench_open(&b);
    sh(&b,
       "%s && echo '*.o' >.gitignore && echo t >kept.o && git add -f .gitignore kept.o && git "
       "commit -qm ignore && echo four "
       ">a && echo new >n &&"
       " echo o >x.o && rm l && echo staged >s && git add s && mkdir e && echo deep >e/f",
       REPO);
    const char *before =
        "git -C r status --porcelain; git -C r count-objects; sha256sum r/.git/index";
    char status[512];
    snprintf(status, sizeof(status), "%s", sh(&b, "%s", before));
    struct source_spec spec = dirty_spec(&b, "r");
    b.keep = true;
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    cr_expect(b.revs[0].dirty && b.revs[0].exact);
    cr_expect_str_eq(b.revs[0].subject, "ignore");
    cr_expect_str_eq(sh(&b, "git -C r rev-parse HEAD"), b.revs[0].commit);
    cr_expect_str_neq(sh(&b, "git -C r rev-parse HEAD^{tree}"), b.revs[0].tree);
    cr_expect_str_eq(tree_of(&b, 0), b.revs[0].tree);
    cr_expect_str_eq(sh(&b, "cd un; cat a n s e/f; ls -A"),
                     "four\nnew\nstaged\ndeep\n.gitignore\na\nd\ne\nkept.o\nn\ns");
    cr_expect_str_eq(sh(&b, "%s", before), status, "the repository was written to");
    uint8_t first[SOURCE_HASH];
    memcpy(first, b.revs[0].hash, SOURCE_HASH);
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    cr_expect_arr_eq(b.revs[0].hash, first, SOURCE_HASH, "the same bytes again");
    expect_clean_work(&b);
    bench_close(&b);
}

Test(dirty, sees_a_change_of_the_same_size_in_the_same_moment)
{
    struct bench b;
    bench_open(&b);
    sh(&b, "%s", REPO);
    for (int i = 0; i < 5; i++) {
        /* The file is as new as the index, and as long as what the index knows. */
        sh(&b,
           "cd r && git checkout -q . && printf 'AAA%d\\n' >a && git add a && printf 'BBB%d\\n' >a",
           i, i);
        struct source_spec spec = dirty_spec(&b, "r");
        b.keep = true;
        bench_read(&b, &spec);
        expect_ok(&b, 1);
        char want[16];
        snprintf(want, sizeof(want), "BBB%d", i);
        tree_of(&b, 0);
        cr_expect_str_eq(sh(&b, "cat un/a"), want);
    }
    bench_close(&b);
}

Test(dirty, a_clean_tree_is_the_commit)
{
    struct bench b;
    uint8_t commit[SOURCE_HASH];
    bench_open(&b);
    sh(&b, "%s", REPO);
    struct source_spec spec = git_spec(&b, "r", "HEAD");
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    memcpy(commit, b.revs[0].hash, SOURCE_HASH);
    spec = dirty_spec(&b, "r/d"); /* from within a folder: the whole tree */
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    cr_expect(!b.revs[0].dirty);
    cr_expect_arr_eq(b.revs[0].hash, commit, SOURCE_HASH);
    bench_close(&b);
}

Test(dirty, needs_a_work_tree_and_a_commit)
{
    struct bench b;
    bench_open(&b);
    sh(&b, "%s; cd ..; git clone -q --bare r c.git; git init -q empty", REPO);
    struct source_spec spec = dirty_spec(&b, "c.git");
    expect_failure(&b, &spec, ERR_INVAL,
                   "uncommitted changes are in a work tree, and this repository has none");
    spec = dirty_spec(&b, "empty");
    expect_failure(&b, &spec, ERR_NOTFOUND, "there is no commit yet");
    bench_close(&b);
}

/* tree_test.c: prepared trees: made once, found again, never mixed. */
#include "common/attr.h"
#include "common/err.h"
#include "common/mem.h"
#include "tests/unit/worker/treebench.h"
#include "tests/unit/worker/work.h"
#include "worker/run/tree_int.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Test(tree, made_once_and_used_again)
{
    struct treebench b;
    struct treebench_source one;
    struct tree_want want;

    treebench_open(&b);
    treebench_make(&b, "one", &one);
    want = treebench_want(&one);
    cr_expect_not(trees_have(b.trees, &want));
    treebench_enter(&b, &want);
    cr_assert_eq(b.code, 0, "%s", b.text);
    cr_expect(b.fresh);
    cr_expect(b.blob);
    cr_expect_str_eq(b.seen, one.tree);
    cr_expect_eq(strlen(b.key), 64);
    cr_expect_not(trees_have(b.trees, &want), "not before setup went well");
    treebench_expect_file(&b, "one");
    cr_assert_eq(trees_ready(b.trees, b.diag), 0);
    cr_expect(trees_have(b.trees, &want));
    /* The archive is not needed any more. */
    want.blob_path = "/nowhere";
    treebench_enter(&b, &want);
    cr_expect_eq(b.code, 0, "%s", b.text);
    cr_expect_not(b.fresh);
    cr_expect(b.blob);
    cr_expect_str_eq(b.seen, one.tree);
    treebench_expect_file(&b, "one");
    treebench_close(&b);
    free(one.path);
}

Test(tree, two_take_turns_at_one_place)
{
    struct treebench b;
    struct treebench_source one, two;
    struct tree_want w1, w2;
    char *place, *text;

    treebench_open(&b);
    treebench_make(&b, "one", &one);
    treebench_make(&b, "two", &two);
    w1 = treebench_want(&one);
    w2 = treebench_want(&two);
    place = mem_xstrdup(trees_src(b.trees));
    for (int i = 0; i < 3; i++) {
        treebench_prepare(&b, &w1);
        cr_expect_eq(b.fresh, i == 0);
        treebench_expect_file(&b, "one");
        cr_expect(treebench_configured(&b));
        cr_expect_str_eq(trees_src(b.trees), place, "always at the same path");
        treebench_prepare(&b, &w2);
        cr_expect_eq(b.fresh, i == 0);
        treebench_expect_file(&b, "two");
        cr_expect_str_eq(trees_src(b.trees), place);
        cr_expect_eq((int)b.trees->waiting_count, 1);
    }
    cr_expect(trees_bytes(b.trees) > 0);
    /* And a new worker finds both. */
    treebench_stop(&b);
    treebench_start(&b);
    cr_expect(trees_have(b.trees, &w1));
    cr_expect(trees_have(b.trees, &w2));
    treebench_prepare(&b, &w1);
    cr_expect_not(b.fresh);
    text = treebench_file(&b);
    cr_expect_str_eq(text, "one");
    free(text);
    free(place);
    treebench_close(&b);
    free(one.path);
    free(two.path);
}

Test(tree, what_makes_another_tree)
{
    static const char *const env[] = {"OPT=-O2"};
    static const uint8_t other[32] = {1};
    struct treebench b;
    struct treebench_source one;
    struct tree_want want[9];
    char key[9][65];

    treebench_open(&b);
    treebench_make(&b, "one", &one);
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        want[i] = treebench_want(&one);
    want[1].setup = "make -s";
    want[2].setup_env = env;
    want[2].setup_env_count = 1;
    want[3].storage = "tmpfs";
    want[4].fingerprint = "abc";
    want[5].blob = other;
    want[6].source = TREE_NONE;
    want[7].source = TREE_HOST_DIR;
    want[7].host_dir = "/a";
    want[8].setup = "maketmpfs"; /* parts do not run into each other: see want[3] */
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        tree_key(b.trees, &want[i], "", key[i]);
        for (size_t k = 0; k < i; k++)
            cr_expect_neq(strcmp(key[i], key[k]), 0, "%zu and %zu", i, k);
    }
    /* What only compares or finds makes none. */
    want[1] = want[0];
    want[1].tree = NULL;
    want[1].blob_path = "/x";
    tree_key(b.trees, &want[1], "", key[1]);
    cr_expect_str_eq(key[1], key[0]);
    treebench_close(&b);
    free(one.path);
}

Test(tree, another_revision_than_the_wanted_one)
{
    struct treebench b;
    struct treebench_source one, two;
    struct tree_want want;

    treebench_open(&b);
    treebench_make(&b, "one", &one);
    treebench_make(&b, "two", &two);
    want = treebench_want(&one);
    want.tree = two.tree;
    treebench_enter(&b, &want);
    cr_expect_eq(b.code, -ERR_CONFLICT);
    cr_expect_not(b.fresh);
    cr_expect(strstr(b.text, one.tree) != NULL && strstr(b.text, two.tree) != NULL, "%s", b.text);
    cr_expect_neq(trees_ready(b.trees, b.diag), 0, "nothing stands");
    want = treebench_want(&one);
    treebench_prepare(&b, &want);
    cr_expect(b.fresh);
    treebench_close(&b);
    free(one.path);
    free(two.path);
}

Test(tree, a_setup_that_failed_or_was_cut_off)
{
    struct treebench b;
    struct treebench_source one;
    struct tree_want want;

    treebench_open(&b);
    treebench_make(&b, "one", &one);
    want = treebench_want(&one);
    treebench_enter(&b, &want);
    cr_assert_eq(work_sh("echo half >%s/config", trees_obj(b.trees)), 0);
    trees_spoilt(b.trees);
    treebench_enter(&b, &want);
    cr_expect(b.fresh, "made anew");
    cr_expect_not(treebench_configured(&b), "nothing of the half is left");
    cr_assert_eq(work_sh("echo half >%s/config", trees_obj(b.trees)), 0);
    /* The worker dies here. */
    treebench_stop(&b);
    treebench_start(&b);
    cr_expect_not(trees_have(b.trees, &want));
    treebench_enter(&b, &want);
    cr_expect(b.fresh);
    cr_expect_not(treebench_configured(&b));
    cr_assert_eq(trees_ready(b.trees, b.diag), 0);
    /* A ready one that a failing reset spoilt goes too. */
    trees_spoilt(b.trees);
    cr_expect_not(trees_have(b.trees, &want));
    treebench_enter(&b, &want);
    cr_expect(b.fresh);
    cr_expect_eq(work_sh("ls %s/trash | grep -q .", b.work), 1, "the trash is empty");
    treebench_close(&b);
    free(one.path);
}

/* A folder's name is no proof of what lies in it. */
Test(tree, a_waiting_tree_under_another_name)
{
    struct treebench b;
    struct treebench_source one, two;
    struct tree_want w1, w2;
    char key[65];

    treebench_open(&b);
    treebench_make(&b, "one", &one);
    treebench_make(&b, "two", &two);
    w1 = treebench_want(&one);
    w2 = treebench_want(&two);
    treebench_prepare(&b, &w1);
    tree_key(b.trees, &w1, "", key);
    treebench_prepare(&b, &w2);
    treebench_stop(&b);
    cr_assert_eq(work_sh("cd %s/trees && mv %s 0%.63s", b.work, key, key), 0);
    treebench_start(&b);
    cr_expect_eq(b.trees->waiting_count, 0);
    cr_expect_not(trees_have(b.trees, &w1));
    treebench_close(&b);
    free(one.path);
    free(two.path);
}

/* Whatever a crash leaves, only a tree whose stamp says so is used. */
Test(tree, broken_stamps)
{
    static const char *const harm[] = {
        "rm work/build/stamp",
        ": >work/build/stamp",
        "sed -i 's/state ready/state made/' work/build/stamp",
        ("sed -i 's/^key .*/key 0000000000000000000000000000000000000000000000000000000000000000/' "
         "work/build/stamp"),
        "sed -i '$d' work/build/stamp",
        "sed -i 's/^boot ./boot x/' work/build/stamp",
        "rm -r work/build",
        "printf 'x' >>work/build/stamp",
        "head -c 100 work/build/stamp >s && mv s work/build/stamp",
    };

    for (size_t i = 0; i < ARRAY_LEN(harm); i++) {
        struct treebench b;
        struct treebench_source one;
        struct tree_want want;

        treebench_open(&b);
        treebench_make(&b, "one", &one);
        want = treebench_want(&one);
        treebench_prepare(&b, &want);
        treebench_stop(&b);
        cr_assert_eq(work_sh("cd %s && %s", b.dir, harm[i]), 0, "%s", harm[i]);
        treebench_start(&b);
        treebench_prepare(&b, &want);
        cr_expect(b.fresh, "%s", harm[i]);
        treebench_expect_file(&b, "one");
        treebench_close(&b);
        free(one.path);
    }
}

Test(tree, no_source_and_the_hosts_own_folder)
{
    struct treebench b;
    struct tree_want want = {.source = TREE_NONE, .setup = "x"};
    struct treebench_source one;
    char *repo, dirty[100];

    treebench_open(&b);
    treebench_enter(&b, &want);
    cr_expect_eq(b.code, 0, "%s", b.text);
    cr_expect(b.fresh);
    cr_expect_not(b.blob);
    cr_expect(work_there(trees_src(b.trees)));
    treebench_make(&b, "one", &one);
    repo = work_path(b.dir, "one");
    want = (struct tree_want){.source = TREE_HOST_DIR, .host_dir = repo};
    treebench_prepare(&b, &want);
    cr_expect(b.fresh);
    cr_expect_str_eq(trees_src(b.trees), repo);
    cr_expect_eq(strlen(b.seen), 40, "%s", b.seen);
    cr_expect(treebench_configured(&b), "what is built lies in the worker's folder");
    treebench_prepare(&b, &want);
    cr_expect_not(b.fresh);
    cr_expect_eq(strlen(b.seen), 40);
    /* Another state of the folder is another tree. */
    cr_assert_eq(work_sh("echo more >>%s/file", repo), 0);
    (void)snprintf(dirty, sizeof(dirty), "%s+dirty", b.seen);
    treebench_prepare(&b, &want);
    cr_expect(b.fresh);
    cr_expect_str_eq(b.seen, dirty);
    want.host_dir = "/no/such/folder";
    cr_expect_eq(trees_enter(b.trees, &want, treebench_on_tree, &b, b.diag), -ERR_NOTFOUND);
    want.host_dir = "relative";
    cr_expect_eq(trees_enter(b.trees, &want, treebench_on_tree, &b, b.diag), -ERR_INVAL);
    want = treebench_want(&one);
    treebench_prepare(&b, &want);
    cr_expect_neq(strcmp(trees_src(b.trees), repo), 0);
    treebench_close(&b);
    free(repo);
    free(one.path);
}

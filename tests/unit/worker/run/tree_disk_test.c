/* tree_disk_test.c: prepared trees and the disk: what goes when there are too many, what is
 * owned by whom, what a crash leaves. */
#include "common/attr.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "proto/digest.h"
#include "tests/unit/worker/treebench.h"
#include "tests/unit/worker/work.h"
#include "worker/os/os.h"
#include "worker/run/treestamp.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

Test(tree, after_a_crash_of_the_system)
{
    struct treebench b;
    struct treebench_source one, two;
    struct tree_want w1, w2;

    treebench_open(&b);
    treebench_make(&b, "one", &one);
    treebench_make(&b, "two", &two);
    w1 = treebench_want(&one);
    w2 = treebench_want(&two);
    treebench_prepare(&b, &w1);
    treebench_prepare(&b, &w2); /* one was synced when it was put away, two was not */
    treebench_stop(&b);
    cr_assert_eq(work_sh("sed -i 's/^boot .*/boot another/' %s/trees/*/stamp %s/build/stamp",
                         b.work, b.work),
                 0);
    treebench_start(&b);
    cr_expect(trees_have(b.trees, &w1));
    cr_expect_not(trees_have(b.trees, &w2), "nobody knows what of it is on the disk");
    treebench_close(&b);
    free(one.path);
    free(two.path);
}

Test(tree, the_least_recently_used_go_first)
{
    struct treebench b;
    struct treebench_source s[4];
    struct tree_want want[4];
    static const char *const name[] = {"one", "two", "three", "four"};

    treebench_open(&b);
    for (int i = 0; i < 4; i++) {
        treebench_make(&b, name[i], &s[i]);
        want[i] = treebench_want(&s[i]);
    }
    treebench_prepare(&b, &want[0]);
    treebench_prepare(&b, &want[1]);
    treebench_prepare(&b, &want[2]);
    cr_expect_eq((int)b.trees->waiting_count, 2);
    treebench_prepare(&b, &want[0]); /* used again: two is the oldest now */
    treebench_stop(&b);
    /* Room for two and a bit. */
    b.budget = 2 * 24 * 1024 + 1;
    {
        struct treestamp stamp;
        char path[600];

        treebench_start(&b);
        (void)snprintf(path, sizeof(path), "%s/build", b.work);
        cr_assert(treestamp_read(path, &stamp));
        b.budget = stamp.bytes * 5 / 2;
        treebench_stop(&b);
        treebench_start(&b);
    }
    treebench_prepare(&b, &want[3]);
    cr_expect_not(trees_have(b.trees, &want[1]), "the oldest went");
    cr_expect(trees_have(b.trees, &want[0]), "the youngest stayed");
    cr_expect(trees_have(b.trees, &want[3]));
    treebench_close(&b);
    for (int i = 0; i < 4; i++)
        free(s[i].path);
}

static void on_clean(int code, void *arg)
{
    struct treebench *b = arg;

    b->code = code;
    b->done = true;
}

static void clean(struct treebench *b)
{
    b->done = false;
    cr_assert_eq(trees_clean_home(b->trees, on_clean, b, b->diag), 0, "%s", diag_first(b->diag));
    cr_expect_not(b->done);
    work_until(b->loop, &b->done);
    cr_expect_eq(b->code, 0);
}

Test(tree, home_and_tmp_are_emptied)
{
    struct treebench b;

    treebench_open(&b);
    clean(&b);
    cr_assert_eq(work_sh("mkdir -p %s/.cache/d && echo x >%s/.cache/d/f && chmod 500 %s/.cache/d "
                         "&& mkdir %s/other && echo x >%s/other/keep && "
                         "ln -s %s/other %s/link",
                         trees_home(b.trees), trees_home(b.trees), trees_home(b.trees), b.dir,
                         b.dir, b.dir, trees_tmp(b.trees)),
                 0);
    clean(&b);
    cr_expect_eq(work_sh("test -d %s && test -d %s", trees_home(b.trees), trees_tmp(b.trees)), 0);
    cr_expect_eq(work_sh("test -z \"$(ls -A %s)$(ls -A %s)$(ls -A %s/trash)\"", trees_home(b.trees),
                         trees_tmp(b.trees), b.work),
                 0);
    cr_expect_eq(work_sh("test -f %s/other/keep", b.dir), 0, "links were not followed");
    b.done = false;
    cr_assert_eq(work_sh("echo x >%s/x", trees_home(b.trees)), 0);
    cr_assert_eq(trees_clean_home(b.trees, on_clean, &b, b.diag), 0);
    {
        struct tree_want want = {.source = TREE_NONE};

        cr_expect_eq(trees_enter(b.trees, &want, treebench_on_tree, &b, b.diag), -ERR_BUSY);
        cr_expect_eq(trees_clean_home(b.trees, on_clean, &b, b.diag), -ERR_BUSY);
    }
    work_until(b.loop, &b.done);
    treebench_close(&b);
}

static void give_room(struct treebench *b)
{
    cr_assert(trees_give_room(b->trees, TREES_ROOM_STANDING));
    cr_expect_not(trees_give_room(b->trees, TREES_ROOM_STANDING), "one after the other");
    for (int64_t end = clock_mono_ns() + 30 * CLOCK_SEC; trees_tidying(b->trees);) {
        cr_assert_lt(clock_mono_ns(), end);
        loop_turn(b->loop, 100 * CLOCK_MS);
    }
}

/* What a build mounted in its folder, and left so, is the machine's: nothing in it is removed. */
Test(tree, what_is_mounted_within_stays)
{
    struct treebench b;
    char *mounted, *precious;

    if (!os_is_root())
        return;
    treebench_open(&b);
    mounted = work_path(trees_tmp(b.trees), "root/dev");
    cr_assert_eq(work_sh("mkdir -p %s && echo x >%s/../x", mounted, mounted), 0);
    /* Mounted for this test's process and its children alone. */
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount("none", mounted, "tmpfs", 0, "size=1m") == 0) {
        cr_assert_eq(work_sh("echo x >%s/precious", mounted), 0);
        clean(&b);
        cr_expect_eq(work_sh("test -z \"$(ls -A %s)\"", trees_tmp(b.trees)), 0);
        free(mounted);
        mounted = work_path(b.work, "trash/0/root/dev");
        precious = work_path(mounted, "precious");
        cr_expect(work_there(precious), "not the build's");
        cr_expect_eq(work_sh("test -e %s/../x", mounted), 1, "all else is removed");
        give_room(&b);
        cr_expect_not(trees_give_room(b.trees, TREES_ROOM_STANDING), "what stays gives none");
        free(precious);
        cr_assert_eq(umount(mounted), 0);
        clean(&b);
        cr_expect_not(work_there(mounted), "when it is mounted no more");
    }
    free(mounted);
    treebench_close(&b);
}

/* As an ordinary user, who makes folders writable before they are removed: not those that a link in
 * the place of TMPDIR leads to. */
Test(tree, a_link_in_place_of_a_folder_is_removed_alone)
{
    char *place = work_dir_new();
    pid_t pid;
    int status;

    if (os_is_root())
        cr_assert_eq(chown(place, TREEBENCH_UID, TREEBENCH_UID), 0);
    pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0) {
        struct treebench b;

        if (os_is_root() && (setgid(TREEBENCH_UID) != 0 || setuid(TREEBENCH_UID) != 0))
            _exit(1);
        (void)setenv("TMPDIR", place, 1);
        treebench_open(&b);
        if (work_sh("cd %s && mkdir -p far/off && echo x >far/off/x && chmod 400 far/off/x && "
                    "chmod 500 far/off && rmdir %s && ln -s %s/far %s",
                    b.dir, trees_tmp(b.trees), b.dir, trees_tmp(b.trees)) != 0)
            _exit(2);
        clean(&b);
        if (work_sh("cd %s && test -d %s && test ! -h %s && test -z \"$(ls -A %s/trash)\" && "
                    "test \"$(stat -c %%a far/off far/off/x | tr '\\n' ' ')\" = '500 400 '",
                    b.dir, trees_tmp(b.trees), trees_tmp(b.trees), b.work) != 0)
            _exit(3);
        (void)work_sh("chmod 700 %s/far/off", b.dir);
        treebench_close(&b);
        _exit(0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
    work_dir_remove(&place);
}

/* On a full disk: HOME and TMPDIR, then what waits, then what stands; and then it is made again. */
Test(tree, gives_room_one_by_one)
{
    struct treebench b;
    struct treebench_source s[3];
    struct tree_want want[3];
    static const char *const name[] = {"one", "two", "three"};

    treebench_open(&b);
    for (int i = 0; i < 3; i++) {
        treebench_make(&b, name[i], &s[i]);
        want[i] = treebench_want(&s[i]);
        treebench_prepare(&b, &want[i]);
    }
    cr_assert_eq(work_sh("echo x >%s/x && echo y >%s/.y", trees_home(b.trees), trees_tmp(b.trees)),
                 0);
    give_room(&b);
    cr_expect_eq(work_sh("test -z \"$(ls -A %s/trash)\"", b.work), 0);
    cr_expect_eq(work_sh("test -z \"$(ls -A %s)$(ls -A %s)\"", trees_home(b.trees),
                         trees_tmp(b.trees)),
                 0);
    cr_expect(trees_have(b.trees, &want[0]));
    give_room(&b);
    cr_expect_not(trees_have(b.trees, &want[0]));
    cr_expect(trees_have(b.trees, &want[1]));
    give_room(&b);
    cr_expect_not(trees_have(b.trees, &want[1]));
    cr_expect(trees_have(b.trees, &want[2]));
    cr_expect_not(trees_give_room(b.trees, TREES_ROOM_HOME), "what stands was not offered");
    give_room(&b);
    cr_expect_not(trees_have(b.trees, &want[2]));
    cr_expect_not(trees_give_room(b.trees, TREES_ROOM_STANDING), "there is nothing more");
    treebench_prepare(&b, &want[2]);
    cr_expect(b.fresh);
    treebench_expect_file(&b, "three");
    treebench_close(&b);
    for (int i = 0; i < 3; i++)
        free(s[i].path);
}

Test(tree, owned_by_the_builds_user)
{
    struct treebench b;
    struct treebench_source one;
    struct tree_want want;
    struct stat st;
    char *stamp;

    if (!os_is_root())
        return;
    memset(&b, 0, sizeof(b));
    b.dir = work_dir_new();
    b.work = work_path(b.dir, "work");
    b.user = true;
    treebench_start(&b);
    treebench_make(&b, "one", &one);
    want = treebench_want(&one);
    treebench_prepare(&b, &want);
    {
        const char *const its[] = {trees_src(b.trees), trees_obj(b.trees), trees_home(b.trees),
                                   trees_tmp(b.trees)};

        for (size_t i = 0; i < ARRAY_LEN(its); i++) {
            cr_assert_eq(stat(its[i], &st), 0);
            cr_expect_eq(st.st_uid, TREEBENCH_UID, "%s", its[i]);
        }
    }
    /* The stamp is not for the build to write. */
    stamp = work_path(b.work, "build/stamp");
    cr_assert_eq(stat(stamp, &st), 0);
    cr_expect_eq(st.st_uid, 0);
    cr_expect_eq(
        work_sh("setpriv --reuid %u --regid %u --clear-groups sh -c 'echo x >>%s' 2>/dev/null",
                TREEBENCH_UID, TREEBENCH_UID, stamp),
        2);
    free(stamp);
    treebench_close(&b);
    free(one.path);
}

Test(tree, a_full_disk_takes_older_trees)
{
    struct treebench b;
    struct treebench_source one, two;
    struct tree_want w1, w2;

    if (!os_is_root())
        return;
    memset(&b, 0, sizeof(b));
    b.dir = work_dir_new();
    b.work = work_path(b.dir, "small");
    cr_assert_eq(mkdir(b.work, 0755), 0);
    /* A file system of this test's own, which goes when its process ends. */
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", b.work, "tmpfs", 0, "size=8m") != 0) {
        free(b.work);
        work_dir_remove(&b.dir);
        return;
    }
    treebench_start(&b);
    treebench_make(&b, "one", &one);
    cr_assert_eq(work_sh("cd %s && mkdir two && cd two && head -c 5000000 /dev/urandom >big && "
                         "echo two >file && tar -cf ../two.tar . ",
                         b.dir),
                 0);
    two.path = work_path(b.dir, "two.tar");
    two.tree[0] = '\0';
    {
        struct digest *d = digest_new(DIGEST_SHA256);
        char *chunk = malloc(6000000);
        FILE *f = fopen(two.path, "r");
        size_t n;

        cr_assert(f != NULL && chunk != NULL);
        n = fread(chunk, 1, 6000000, f);
        digest_add(d, chunk, n);
        (void)fclose(f);
        free(chunk);
        (void)digest_end(d, two.hash);
        digest_free(&d);
    }
    w1 = treebench_want(&one);
    w2 = treebench_want(&two);
    treebench_prepare(&b, &w1);
    cr_assert_eq(work_sh("head -c 4000000 /dev/zero >%s/fat", trees_obj(b.trees)), 0);
    treebench_prepare(&b, &w2);
    cr_expect(b.fresh);
    treebench_expect_file(&b, "two");
    cr_expect_not(trees_have(b.trees, &w1), "it made room");
    /* With nothing left to give, it says so. */
    cr_assert_eq(work_sh("rm %s/build/src/big; head -c 6000000 /dev/zero >%s/fill", b.work, b.work),
                 0);
    trees_spoilt(b.trees);
    treebench_enter(&b, &w2);
    cr_expect_eq(b.code, -ERR_FULL, "%d %s", b.code, b.text);
    cr_expect(strstr(b.text, "full") != NULL, "%s", b.text);
    treebench_stop(&b);
    cr_assert_eq(umount(b.work), 0);
    free(b.work);
    free(one.path);
    free(two.path);
    work_dir_remove(&b.dir);
}

Test(tree, cancelled_at_any_time)
{
    for (int turns = 0; turns < 40; turns += 2) {
        struct treebench b;
        struct treebench_source one;
        struct tree_want want;

        treebench_open(&b);
        treebench_make(&b, "one", &one);
        want = treebench_want(&one);
        b.done = false;
        cr_assert_eq(trees_enter(b.trees, &want, treebench_on_tree, &b, b.diag), 0);
        cr_expect_eq(trees_enter(b.trees, &want, treebench_on_tree, &b, b.diag), -ERR_BUSY);
        for (int i = 0; i < turns && !b.done; i++)
            loop_turn(b.loop, 1000000);
        trees_cancel(b.trees);
        b.done = false;
        work_turn(b.loop, 5000000);
        cr_expect_not(b.done);
        treebench_prepare(&b, &want);
        cr_expect(b.fresh);
        treebench_expect_file(&b, "one");
        treebench_close(&b);
        free(one.path);
    }
}

Test(tree, a_work_folder_that_cannot_be)
{
    struct loop *loop = loop_new();
    struct diag *diag = diag_new(2);
    struct trees_conf conf = {.work = "/dev/null/work", .path = "/bin"};
    struct trees *trees;

    cr_expect(trees_new(loop, &conf, &trees, diag) < 0);
    cr_expect_null(trees);
    cr_expect(strstr(diag_first(diag), "/dev/null/work") != NULL, "%s", diag_first(diag));
    conf.work = "relative";
    diag_clear(diag);
    cr_expect_eq(trees_new(loop, &conf, &trees, diag), -ERR_INVAL);
    diag_free(&diag);
    loop_free(&loop);
}

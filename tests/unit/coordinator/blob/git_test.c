/* git_test.c: repositories that the coordinator reads become archives of its folder. */
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "coordinator/blob/blob.h"
#include "coordinator/store/blobs.h"
#include "coordinator/store/store.h"
#include "tests/unit/coordinator/store/store_help.h"
#include "tests/unit/proto/source_help.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

struct rig {
    struct box box;
    struct bench bench; /* its loop is the only one */
    struct blob *blob;
};

struct answer {
    struct rig *rig;
    int count;
    int code;
    char text[512];
    char warning[256];
    size_t revs;
    struct blob_rev rev[8];
    struct blob_job **cancel; /* by the callback */
    struct answer *resolve;   /* begun by the callback */
    int order;
    int *turn;
};

static void rig_open(struct rig *r)
{
    box_open(&r->box);
    bench_open(&r->bench);
    cr_assert_eq(blob_open(r->bench.loop, r->box.store, r->box.dir, NULL, &r->blob, r->box.diag), 0,
                 "%s", diag_first(r->box.diag));
    sh(&r->bench, "%s", REPO);
}

static void rig_close(struct rig *r)
{
    blob_close(&r->blob);
    bench_close(&r->bench);
    box_close(&r->box);
}

static const struct source_expr V1 = {.to = {"v1", NULL}};
static const struct source_expr RANGE = {.range = true, .from = {"v1", NULL}, .to = {"v3", NULL}};

static void on_answer(int code, const char *text, const struct blob_rev *revs, size_t count,
                      const char *warning, void *arg)
{
    struct answer *a = arg;
    a->count++;
    a->code = code;
    snprintf(a->text, sizeof(a->text), "%s", text);
    snprintf(a->warning, sizeof(a->warning), "%s", warning != NULL ? warning : "");
    a->revs = count;
    cr_assert(count <= 8);
    for (size_t i = 0; i < count; i++) {
        a->rev[i] = revs[i];
    }
    if (a->turn != NULL) {
        a->order = ++*a->turn;
    }
    if (a->cancel != NULL) {
        blob_git_cancel(a->cancel);
    }
    if (a->resolve != NULL) {
        struct blob_job *job = NULL;
        cr_assert_eq(blob_git_resolve(a->rig->blob, at(&a->rig->bench, "r"), &V1, 10, false,
                                      on_answer, a->resolve, &job, NULL),
                     0);
    }
}

static struct blob_job *ask(struct rig *r, struct answer *a, const char *name,
                            const struct source_expr *expr, bool archive)
{
    struct blob_job *job = NULL;
    a->rig = r;
    diag_clear(r->box.diag);
    cr_assert_eq(blob_git_resolve(r->blob, at(&r->bench, name), expr, 10, archive, on_answer, a,
                                  &job, r->box.diag),
                 0, "%s", diag_first(r->box.diag));
    cr_expect_eq(a->count, 0, "told before a later turn");
    return job;
}

static void wait_for(struct rig *r, const struct answer *a)
{
    while (a->count == 0) {
        loop_turn(r->bench.loop, -1);
    }
}

Test(resolve, makes_archives_that_can_be_read)
{
    struct rig r;
    struct answer a = {0};
    uint8_t head[512];
    size_t got = 0;
    uint64_t size = 0;
    rig_open(&r);
    ask(&r, &a, "r", &RANGE, true);
    wait_for(&r, &a);
    cr_assert_eq(a.code, 0, "%s", a.text);
    cr_assert_eq(a.revs, 2);
    cr_expect_str_eq(a.rev[0].subject, "second");
    cr_expect_str_eq(a.rev[1].subject, "third");
    cr_expect_str_eq(sh(&r.bench, "git -C r rev-parse v3"), a.rev[1].commit);
    cr_expect_str_eq(sh(&r.bench, "git -C r rev-parse v3^{tree}"), a.rev[1].tree);
    cr_expect(store_dirty(r.box.store));
    box_commit(&r.box);
    for (size_t i = 0; i < 2; i++) {
        cr_expect(a.rev[i].has_blob && a.rev[i].exact);
        cr_assert_eq(blob_size(r.blob, a.rev[i].blob, &size), 0);
        cr_expect_eq(size, a.rev[i].size);
        cr_assert_eq(blob_read(r.blob, a.rev[i].blob, 0, head, sizeof(head), &got), 0);
        cr_expect(memcmp(head + 257, "ustar", 5) == 0);
    }
    cr_expect(memcmp(a.rev[0].blob, a.rev[1].blob, MODEL_HASH) != 0);
    cr_expect_str_eq(
        sh(&r.bench, "ls %s/blobs/work %s/blobs/part", r.box.dir, r.box.dir),
        sh(&r.bench, "printf '%s/blobs/part:\\n\\n%s/blobs/work:\\n'", r.box.dir, r.box.dir));
    rig_close(&r);
}

Test(resolve, knows_what_it_made)
{
    struct rig r;
    struct answer first = {0};
    struct answer second = {0};
    struct answer third = {0};
    char place[192];
    rig_open(&r);
    ask(&r, &first, "r", &RANGE, true);
    wait_for(&r, &first);
    box_commit(&r.box);
    snprintf(place, sizeof(place), "cd %s/blobs; stat -c %%i */* | sort", r.box.dir);
    char before[256];
    snprintf(before, sizeof(before), "%s", sh(&r.bench, "%s", place));
    ask(&r, &second, "r", &RANGE, true);
    wait_for(&r, &second);
    cr_assert_eq(second.code, 0, "%s", second.text);
    cr_expect(memcmp(second.rev[1].blob, first.rev[1].blob, MODEL_HASH) == 0);
    cr_expect_eq(second.rev[1].size, first.rev[1].size);
    cr_expect_str_eq(sh(&r.bench, "%s", place), before, "the files were made again");
    /* A file that is gone is. */
    sh(&r.bench, "cd %s/blobs; rm -r $(ls -d ?? | head -1)", r.box.dir);
    ask(&r, &third, "r", &RANGE, true);
    wait_for(&r, &third);
    cr_assert_eq(third.code, 0, "%s", third.text);
    uint8_t byte;
    size_t got = 0;
    for (size_t i = 0; i < 2; i++) {
        cr_expect_eq(blob_read(r.blob, third.rev[i].blob, 0, &byte, 1, &got), 0);
    }
    rig_close(&r);
}

Test(resolve, without_archives_writes_nothing)
{
    struct rig r;
    struct answer a = {0};
    rig_open(&r);
    ask(&r, &a, "r", &RANGE, false);
    wait_for(&r, &a);
    cr_assert_eq(a.code, 0, "%s", a.text);
    cr_assert_eq(a.revs, 2);
    cr_expect(!a.rev[0].has_blob);
    cr_expect(!store_dirty(r.box.store));
    rig_close(&r);
}

Test(resolve, says_what_is_not_there)
{
    struct rig r;
    struct answer a = {0};
    char want[256];
    rig_open(&r);
    const struct source_expr expr = {.to = {"v6.x", NULL}};
    ask(&r, &a, "r", &expr, true);
    wait_for(&r, &a);
    cr_expect_eq(a.code, -ERR_NOTFOUND);
    snprintf(want, sizeof(want), "%s: there is no revision `v6.x`", at(&r.bench, "r"));
    cr_expect_str_eq(a.text, want);
    cr_expect_eq(a.revs, 0);
    cr_expect(!store_dirty(r.box.store));
    rig_close(&r);
}

Test(resolve, submodules_are_made_anew_and_warned_of)
{
    struct rig r;
    struct answer a = {0};
    struct answer b = {0};
    const struct source_expr head = {.to = {"HEAD", NULL}};
    rig_open(&r);
    sh(&r.bench, "git init -q m && cd m && git -c protocol.file.allow=always submodule -q add ../r "
                 "r && git commit -qm m");
    ask(&r, &a, "m", &head, true);
    wait_for(&r, &a);
    cr_assert_eq(a.code, 0, "%s", a.text);
    cr_expect(!a.rev[0].exact);
    cr_expect(strstr(a.warning, "submodules are not sent") != NULL, "%s", a.warning);
    ask(&r, &b, "m", &head, true);
    wait_for(&r, &b);
    cr_assert_eq(b.code, 0, "%s", b.text);
    cr_expect_str_eq(b.rev[0].tree, a.rev[0].tree);
    cr_expect(memcmp(b.rev[0].blob, a.rev[0].blob, MODEL_HASH) == 0);
    cr_expect_str_eq(b.warning, a.warning);
    rig_close(&r);
}

Test(jobs, run_one_after_another)
{
    struct rig r;
    struct answer a[4] = {{0}};
    int turn = 0;
    rig_open(&r);
    for (int i = 0; i < 4; i++) {
        a[i].turn = &turn;
        ask(&r, &a[i], i == 1 ? "none" : "r", i == 2 ? &RANGE : &V1, true);
    }
    wait_for(&r, &a[3]);
    for (int i = 0; i < 4; i++) {
        cr_expect_eq(a[i].count, 1);
        cr_expect_eq(a[i].order, i + 1);
        cr_expect_eq(a[i].code, i == 1 ? -ERR_NOTFOUND : 0, "%s", a[i].text);
    }
    rig_close(&r);
}

Test(jobs, can_be_cancelled)
{
    struct rig r;
    struct answer a[4] = {{0}};
    struct blob_job *job[4];
    rig_open(&r);
    for (int i = 0; i < 4; i++) {
        job[i] = ask(&r, &a[i], "r", &V1, true);
    }
    loop_turn(r.bench.loop, 1000000);
    blob_git_cancel(&job[0]); /* the one that runs */
    cr_expect_null(job[0]);
    blob_git_cancel(&job[2]); /* one that waits */
    wait_for(&r, &a[3]);
    cr_expect_eq(a[0].count, 0);
    cr_expect_eq(a[1].count, 1);
    cr_expect_eq(a[1].code, 0, "%s", a[1].text);
    cr_expect_eq(a[2].count, 0);
    cr_expect_eq(a[3].code, 0, "%s", a[3].text);
    rig_close(&r);
}

Test(jobs, the_callback_may_begin_and_cancel)
{
    struct rig r;
    struct answer a[3] = {{0}};
    struct answer more = {0};
    struct blob_job *job[3];
    rig_open(&r);
    for (int i = 0; i < 3; i++) {
        job[i] = ask(&r, &a[i], "r", &V1, true);
    }
    a[0].cancel = &job[1];
    a[0].resolve = &more;
    wait_for(&r, &more);
    cr_expect_eq(a[0].count, 1, "told %d times", a[0].count);
    cr_expect_eq(a[1].count, 0);
    cr_expect_eq(a[2].count, 1);
    cr_expect_eq(more.code, 0, "%s", more.text);
    rig_close(&r);
}

Test(jobs, end_with_the_folder)
{
    struct rig r;
    struct answer a[2] = {{0}};
    rig_open(&r);
    ask(&r, &a[0], "r", &V1, true);
    ask(&r, &a[1], "r", &V1, true);
    loop_turn(r.bench.loop, 1000000);
    rig_close(&r);
    cr_expect_eq(a[0].count + a[1].count, 0);
}

Test(resolve, a_turn_that_is_rolled_back_takes_the_rows)
{
    struct rig r;
    struct answer a = {0};
    struct answer b = {0};
    uint64_t size = 0;
    rig_open(&r);
    ask(&r, &a, "r", &V1, true);
    wait_for(&r, &a);
    store_rollback(r.box.store);
    cr_expect_eq(blob_size(r.blob, a.rev[0].blob, &size), -ERR_NOTFOUND);
    ask(&r, &b, "r", &V1, true);
    wait_for(&r, &b);
    cr_expect_eq(b.code, 0, "%s", b.text);
    box_commit(&r.box);
    cr_expect_eq(blob_size(r.blob, b.rev[0].blob, &size), 0);
    cr_expect(memcmp(a.rev[0].blob, b.rev[0].blob, MODEL_HASH) == 0);
    rig_close(&r);
}

Test(resolve, a_database_that_cannot_be_written_is_told)
{
    struct rig r;
    struct answer a = {0};
    struct store *other = NULL;
    rig_open(&r);
    cr_assert_eq(store_open(r.box.path, NULL, 0, &other, r.box.diag), 0);
    cr_assert_eq(store_meta_set(other, "a", "b"), 0);
    ask(&r, &a, "r", &V1, true);
    wait_for(&r, &a);
    cr_expect_eq(a.code, -ERR_BUSY, "%s", a.text);
    cr_expect(strncmp(a.text, at(&r.bench, "r"), strlen(at(&r.bench, "r"))) == 0, "%s", a.text);
    cr_expect_eq(a.revs, 0);
    store_close(&other);
    rig_close(&r);
}

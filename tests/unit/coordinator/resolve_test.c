/* resolve_test.c: a sweep of a git repository that the coordinator reads: revisions become commits
 * and archives, the worker is given their hashes, mistakes have their place. */
#include "common/proc.h"
#include "common/str.h"
#include "tests/unit/proto/source_help.h"
#include "tests/unit/whole/house.h"

#include <stdio.h>
#include <string.h>

struct cast {
    struct house h;
    struct bench bench;
    struct ident p6, ann;
    struct guest *worker, *admin;
};

static void begin(struct cast *c)
{
    bench_open(&c->bench);
    sh(&c->bench, REPO);
    house_init(&c->h);
    house_start(&c->h);
    house_admit(&c->h, ROLE_WORKER, "p6", &c->p6);
    house_admit(&c->h, ROLE_ADMIN, "ann", &c->ann);
    c->worker = house_welcome(&c->h, &c->p6);
    c->admin = house_welcome(&c->h, &c->ann);
}

static void finish(struct cast *c)
{
    house_fini(&c->h);
    bench_close(&c->bench);
    ident_free(&c->p6);
    ident_free(&c->ann);
}

static void put(struct cast *c, const char *action, const char *repo, const char *variants,
                struct answer *a)
{
    struct buf text = BUF_INIT;
    buf_printf(&text,
               "sweep: t\nworkload: {source: {git: %s/%s}, run: make}\nvariants: %s\n"
               "hosts: [p6]\njobs: [1]\nrepeat: {warmup: 0, until: 1}\n",
               c->bench.dir, repo, variants);
    guest_put(c->admin, action, buf_str(&text), a);
    buf_fini(&text);
}

Test(coord_resolve, revisions_become_commits_and_archives)
{
    struct cast c;
    struct answer a;
    begin(&c);
    put(&c, "run", "r", "[{name: old, rev: v1}, {name: new, rev: v3}]", &a);
    cr_assert_eq(a.exit, 0, "%s", buf_str(&a.talk));
    cr_expect_str_eq(buf_str(&a.body), "t/1\n");
    answer_free(&a);
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_ASSIGN) > 0);
    guest_make(c.worker, 0);
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_ASSIGN) > 1);
    uint8_t blobs[2][32];
    for (size_t i = 0; i < 2; i++) {
        const struct msg_assign *as = &guest_got(c.worker, MSG_ASSIGN, i)->u.assign;
        bool old = strcmp(as->variant, "old") == 0;
        cr_expect_str_eq(as->rev, sh(&c.bench, "git -C r rev-parse %s", old ? "v1" : "v3"));
        cr_expect_str_eq(as->tree,
                         sh(&c.bench, "git -C r rev-parse %s^{tree}", old ? "v1" : "v3"));
        cr_assert_eq(as->blob.len, 32);
        cr_expect_gt(as->blob_size, 0);
        memcpy(blobs[i], as->blob.data, 32);
    }
    cr_expect_neq(memcmp(blobs[0], blobs[1], 32), 0);
    struct msg m = {.type = MSG_BLOB_GET};
    m.u.blob_get.hash = (struct msg_bytes){.data = blobs[0], .len = 32};
    m.u.blob_get.length = 1000;
    cr_assert_eq(guest_send(c.worker, &m), 0);
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_BLOB_DATA) > 0);
    finish(&c);
}

Test(coord_resolve, what_is_not_there_is_told_with_its_place)
{
    struct cast c;
    struct answer a;
    begin(&c);
    put(&c, "check", "r", "[{name: old, rev: v1}, {name: new, rev: v9}]", &a);
    cr_expect_eq(a.exit, 64, "%s", buf_str(&a.talk));
    EXPECT_HAS(buf_str(&a.talk), "s.yaml:3:");
    EXPECT_HAS(buf_str(&a.talk), "v9");
    answer_free(&a);
    put(&c, "run", "nix", "[{name: old, rev: v1}]", &a);
    cr_expect(a.exit == 64 || a.exit == 3, "%u", (unsigned)a.exit);
    EXPECT_HAS(buf_str(&a.talk), "nix");
    answer_free(&a);
    house_idle(&c.h);
    cr_expect_eq(guest_count(c.worker, MSG_ASSIGN), 0);
    finish(&c);
}

Test(coord_resolve, the_coordinator_may_end_while_git_runs)
{
    struct cast c;
    struct msg m = {.type = MSG_SWEEP_PUT};
    struct buf text = BUF_INIT;
    begin(&c);
    buf_printf(&text,
               "sweep: t\nworkload: {source: {git: %s/r}, run: make}\n"
               "variants: [{name: a, rev: v1}]\nhosts: [p6]\n",
               c.bench.dir);
    for (int i = 0; i < 3; i++) {
        m.u.sweep_put.call = guest_call(c.admin);
        m.u.sweep_put.action = "run";
        m.u.sweep_put.file = "s.yaml";
        m.u.sweep_put.text = (struct msg_bytes){.data = text.data, .len = text.len};
        m.u.sweep_put.format = "text";
        cr_assert_eq(guest_send(c.admin, &m), 0);
        for (int turn = 0; turn <= i; turn++) {
            loop_turn(c.h.loop, CLOCK_MS);
        }
        house_stop(&c.h);
        guest_leave(c.admin);
        house_start(&c.h);
        c.admin = house_welcome(&c.h, &c.ann);
    }
    buf_fini(&text);
    finish(&c);
}

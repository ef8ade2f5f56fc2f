/* later_test.c: what takes more than a turn is answered, and others are answered meanwhile. */
#include "coordinator/store/runs.h"
#include "coordinator/store/store.h"
#include "coordinator/store/sweeps.h"
#include "coordinator/store/cells.h"
#include "common/mem.h"
#include "tests/unit/whole/house.h"

#include <string.h>

enum { RUNS = 20000 };

static const char SWEEP[] = "sweep: t\n"
                            "workload: {name: w, run: make}\n"
                            "variants: [{name: a}]\n"
                            "hosts: [p6]\n"
                            "jobs: [1]\n"
                            "repeat: {warmup: 0, until: 10000}\n";

struct cast {
    struct house h;
    struct ident p6, ann, eve;
    struct guest *ann_at, *eve_at;
};

static int keep_cell(const struct model_cell *cell, void *arg)
{
    struct model_run *run = arg;
    run->sweep = cell->sweep;
    run->host = cell->host;
    run->cell = cell->id;
    return 0;
}

/* A sweep of RUNS runs, as rows. */
static void begin(struct cast *c)
{
    struct answer a;
    struct mem_arena *arena = mem_arena_new(0);
    struct model_sweep sweep;
    struct model_run run = {.state = RUN_DONE};
    house_init(&c->h);
    house_start(&c->h);
    house_admit(&c->h, ROLE_WORKER, "p6", &c->p6);
    house_admit(&c->h, ROLE_ADMIN, "ann", &c->ann);
    house_admit(&c->h, ROLE_VIEWER, "eve", &c->eve);
    house_welcome(&c->h, &c->p6);
    c->ann_at = house_welcome(&c->h, &c->ann);
    c->eve_at = house_welcome(&c->h, &c->eve);
    guest_put(c->ann_at, "run", SWEEP, &a);
    cr_assert_eq(a.exit, 0, "%s", buf_str(&a.talk));
    answer_free(&a);
    cr_assert_eq(store_sweep_find(house_store(&c->h), "t", arena, &sweep), 0);
    cr_assert_eq(store_cells_each(house_store(&c->h), sweep.id, 0, keep_cell, &run), 0);
    for (int64_t i = 0; i < RUNS; i++) {
        int64_t id;
        run.block = 1000 + i;
        run.slot = 1000 + i;
        cr_assert_eq(store_run_insert(house_store(&c->h), &run, &id), 0);
    }
    cr_assert_eq(store_commit(house_store(&c->h), c->h.diag), 0);
    house_idle(&c->h);
    mem_arena_free(&arena);
}

static void finish(struct cast *c)
{
    house_fini(&c->h);
    ident_free(&c->p6);
    ident_free(&c->ann);
    ident_free(&c->eve);
}

/* Sends `m`, and questions about hosts from somebody else, one after the other: many are answered
 * before it. Were it read in one piece, or in a few, they could not be. */
static void expect_others_first(struct cast *c, uint32_t call, const struct msg *m, int many,
                                const char *part)
{
    struct answer late, a;
    struct msg hosts = {.type = MSG_HOST_LIST};
    int others = 0;
    cr_assert_eq(guest_send(c->ann_at, m), 0);
    while (!guest_answered(c->ann_at, call, &late)) {
        answer_free(&late);
        guest_forget(c->eve_at);
        hosts.u.host_list.call = guest_call(c->eve_at);
        guest_ask(c->eve_at, hosts.u.host_list.call, &hosts, &a);
        cr_expect_eq(a.exit, 0);
        answer_free(&a);
        others++;
    }
    cr_expect_gt(others, many);
    cr_expect_eq(late.exit, 0, "%s", buf_str(&late.talk));
    EXPECT_HAS(buf_str(&late.body), part);
    answer_free(&late);
}

Test(net_later, a_report_of_many_runs_lets_others_be_answered_meanwhile)
{
    struct cast c;
    struct msg m = {.type = MSG_REPORT};
    begin(&c);
    m.u.report.call = guest_call(c.ann_at);
    m.u.report.sweep = "t";
    m.u.report.format = "table";
    expect_others_first(&c, m.u.report.call, &m, 6, "t/1");
    /* Who leaves in the middle of it leaves nothing behind. */
    m.u.report.call = guest_call(c.ann_at);
    cr_assert_eq(guest_send(c.ann_at, &m), 0);
    house_idle(&c.h);
    guest_leave(c.ann_at);
    house_idle(&c.h);
    finish(&c);
}

Test(net_later, the_first_status_of_many_runs_lets_others_be_answered_meanwhile)
{
    struct cast c;
    struct msg m = {.type = MSG_SWEEP_LIST};
    begin(&c);
    m.u.sweep_list.call = guest_call(c.ann_at);
    m.u.sweep_list.sweep = "t";
    expect_others_first(&c, m.u.sweep_list.call, &m, 2, "\"failed\": 20000");
    finish(&c);
}

Test(net_later, a_watcher_of_many_runs_sees_its_status_when_it_is_made)
{
    struct cast c;
    struct msg m = {.type = MSG_WATCH};
    begin(&c);
    guest_forget(c.ann_at);
    m.u.watch.call = guest_call(c.ann_at);
    m.u.watch.sweep = "t";
    cr_assert_eq(guest_send(c.ann_at, &m), 0);
    HOUSE_WAIT(&c.h, guest_count(c.ann_at, MSG_REPLY) > 0);
    const struct msg_reply *r = &guest_got(c.ann_at, MSG_REPLY, 0)->u.reply;
    static const char part[] = "\"failed\":20000";
    cr_expect(!r->last, "it goes on");
    cr_expect_str_eq(r->kind, "event");
    cr_expect_not_null(memmem(r->body.data, r->body.len, part, strlen(part)), "%.*s",
                       (int)r->body.len, (const char *)r->body.data);
    finish(&c);
}

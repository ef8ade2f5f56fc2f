/* json_test.c: makespan-json(7) names every member of every document. Runs in the tree's root. */
#include "common/fileio.h"
#include "common/json.h"
#include "common/str.h"
#include "tests/unit/whole/house.h"

#include <stdio.h>
#include <string.h>

static const char SWEEP[] = "sweep: t\n"
                            "workload: {source: {host_dir: /usr/src}, run: make}\n"
                            "variants: [{name: a}]\n"
                            "hosts: [p6]\n"
                            "jobs: [1, 2]\n"
                            "repeat: {warmup: 0, until: 2}\n";

struct cast {
    struct house h;
    struct ident p6, ann;
    struct guest *worker, *admin;
    struct buf page;
    size_t members;
};

/* Whether `word` stands as a whole word in a line of the page that begins with .It Cm, .Cm, or
 * follows in its list. */
static bool is_named(const struct buf *page, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = buf_str(page); (p = strstr(p, word)) != NULL; p++) {
        const char *line = p;
        while (line > buf_str(page) && line[-1] != '\n') {
            line--;
        }
        bool whole = p[-1] == ' ' && (p[n] == ' ' || p[n] == '\n');
        if (whole && (str_starts(line, ".It Cm ") || str_starts(line, ".Cm "))) {
            return true;
        }
    }
    return false;
}

static void look_at(struct cast *c, const json_t *value, const char *where)
{
    const char *key;
    json_t *member;
    size_t i;
    json_array_foreach(value, i, member)
    {
        look_at(c, member, where);
    }
    if (!json_is_object(value)) {
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)value, key, member)
    {
        c->members++;
        cr_expect(is_named(&c->page, key), "%s: no word of %s", where, key);
        if (strcmp(key, "facts") != 0) {
            look_at(c, member, key);
        }
    }
}

static void look_at_answer(struct cast *c, struct answer *a, const char *where)
{
    cr_assert_eq(a->exit, 0, "%s", buf_str(&a->talk));
    json_t *doc = json_parse(where, buf_str(&a->body), a->body.len, c->h.diag);
    cr_assert_not_null(doc, "%s", diag_first(c->h.diag));
    cr_expect_eq(json_int(doc, "schema", 0), 1, "%s", where);
    look_at(c, doc, where);
    json_decref(doc);
    answer_free(a);
}

static void look_at_status(struct cast *c, const char *sweep)
{
    struct msg m = {.type = MSG_SWEEP_LIST};
    struct answer a;
    m.u.sweep_list.call = guest_call(c->admin);
    m.u.sweep_list.sweep = sweep;
    guest_ask(c->admin, m.u.sweep_list.call, &m, &a);
    look_at_answer(c, &a, sweep != NULL ? "sweep show" : "sweep list");
}

static void look_at_host(struct cast *c)
{
    struct msg m = {.type = MSG_HOST_LIST};
    struct answer a;
    m.u.host_list.call = guest_call(c->admin);
    m.u.host_list.name = "p6";
    guest_ask(c->admin, m.u.host_list.call, &m, &a);
    look_at_answer(c, &a, "host show");
}

static void look_at_plan(struct cast *c)
{
    struct msg m = {.type = MSG_SWEEP_PUT};
    struct answer a;
    m.u.sweep_put.call = guest_call(c->admin);
    m.u.sweep_put.action = "plan";
    m.u.sweep_put.file = "s.yaml";
    m.u.sweep_put.text =
        (struct msg_bytes){.data = (const uint8_t *)SWEEP, .len = sizeof(SWEEP) - 1};
    m.u.sweep_put.format = "json";
    guest_ask(c->admin, m.u.sweep_put.call, &m, &a);
    look_at_answer(c, &a, "sweep plan");
}

static void look_at_watch(struct cast *c)
{
    struct msg m = {.type = MSG_WATCH};
    struct answer a;
    m.u.watch.call = guest_call(c->admin);
    m.u.watch.sweep = "t";
    guest_ask(c->admin, m.u.watch.call, &m, &a);
    json_t *doc = json_parse("watch", buf_str(&a.body), a.body.len, c->h.diag);
    cr_assert_not_null(doc, "%s", diag_first(c->h.diag));
    look_at(c, doc, "watch");
    json_decref(doc);
    answer_free(&a);
}

Test(net_json, every_member_of_every_document_is_in_the_manual)
{
    struct cast c = {.members = 0};
    struct answer a;
    cr_assert_eq(file_read_all("deploy/man/makespan-json.7", 1 << 20, &c.page), 0,
                 "run in the tree's root");
    cr_expect(!is_named(&c.page, "nonsense"));
    house_init(&c.h);
    house_start(&c.h);
    house_admit_host(&c.h, "p6", "old", &c.p6);
    house_admit(&c.h, ROLE_ADMIN, "ann", &c.ann);
    c.worker = house_welcome(&c.h, &c.p6);
    c.admin = house_welcome(&c.h, &c.ann);
    look_at_plan(&c);
    guest_put(c.admin, "run", SWEEP, &a);
    cr_assert_eq(a.exit, 0, "%s", buf_str(&a.talk));
    answer_free(&a);
    HOUSE_WAIT(&c.h, guest_count(c.worker, MSG_ASSIGN) > 0);
    guest_taken(c.worker, &guest_got(c.worker, MSG_ASSIGN, 0)->u.assign);
    house_idle(&c.h);
    look_at_host(&c);
    look_at_status(&c, "t");
    guest_result(c.worker, &guest_got(c.worker, MSG_ASSIGN, 0)->u.assign, CLOCK_SEC);
    guest_end(c.worker, &guest_got(c.worker, MSG_ASSIGN, 0)->u.assign);
    guest_ready(c.worker, 1);
    for (size_t i = 1; i < 4; i++) {
        guest_make(c.worker, i);
    }
    HOUSE_WAIT(&c.h, guest_sees(c.admin, "t", "\"state\": \"done\""));
    look_at_status(&c, NULL);
    look_at_status(&c, "t");
    look_at_watch(&c);
    guest_report(c.admin, "t", "json", &a);
    look_at_answer(&c, &a, "report");
    /* What a scripted worker does not send, from a stored report. */
    struct buf golden = BUF_INIT;
    cr_assert_eq(file_read_all("tests/golden/report/report.json", 1 << 20, &golden), 0);
    json_t *doc = json_parse("report.json", buf_str(&golden), golden.len, c.h.diag);
    cr_assert_not_null(doc);
    look_at(&c, doc, "stored report");
    json_decref(doc);
    buf_fini(&golden);
    cr_expect_gt(c.members, 200);
    house_fini(&c.h);
    ident_free(&c.p6);
    ident_free(&c.ann);
    buf_fini(&c.page);
}

/* watch_test.c: an operator follows a sweep. */
#include "common/json.h"
#include "coordinator/store/store.h"
#include "tests/unit/whole/house.h"

#include <stdio.h>
#include <string.h>

static const char SWEEP[] = "sweep: t\n"
                            "workload: {name: w, run: make}\n"
                            "variants: [{name: a}]\n"
                            "hosts: [p6]\n"
                            "jobs: [1]\n"
                            "repeat: {warmup: 0, until: 2}\n";

struct cast {
    struct house h;
    struct ident p6, ann;
    struct guest *worker, *admin, *watcher;
    uint32_t call;
};

static void begin(struct cast *c)
{
    struct answer a;
    house_init(&c->h);
    house_start(&c->h);
    house_admit(&c->h, ROLE_WORKER, "p6", &c->p6);
    house_admit(&c->h, ROLE_ADMIN, "ann", &c->ann);
    c->worker = house_welcome(&c->h, &c->p6);
    c->admin = house_welcome(&c->h, &c->ann);
    c->watcher = house_welcome(&c->h, &c->ann);
    guest_put(c->admin, "run", SWEEP, &a);
    cr_assert_eq(a.exit, 0, "%s", buf_str(&a.talk));
    answer_free(&a);
}

static void finish(struct cast *c)
{
    house_fini(&c->h);
    ident_free(&c->p6);
    ident_free(&c->ann);
}

static void watch(struct cast *c, const char *sweep)
{
    struct msg m = {.type = MSG_WATCH};
    c->call = guest_call(c->watcher);
    m.u.watch.call = c->call;
    m.u.watch.sweep = sweep;
    cr_assert_eq(guest_send(c->watcher, &m), 0);
}

/* The lines that came. */
struct lines {
    size_t statuses, events, dropped;
    bool ended;       /* the last piece came */
    char state[16];   /* of the last status */
    char kinds[4096]; /* of the events, each with a space behind it */
};

static void read_lines(struct cast *c, struct lines *out)
{
    struct answer a;
    memset(out, 0, sizeof(*out));
    out->ended = guest_answered(c->watcher, c->call, &a);
    const char *p = buf_str(&a.body);
    for (const char *end; (end = strchr(p, '\n')) != NULL; p = end + 1) {
        json_t *doc = json_parse("a line", p, (size_t)(end - p), c->h.diag);
        cr_assert_not_null(doc, "%s", diag_first(c->h.diag));
        out->dropped += (size_t)json_int(doc, "dropped", 0);
        if (strcmp(json_str(doc, "type", ""), "status") == 0) {
            const json_t *status = json_object_get(doc, "status");
            out->statuses++;
            snprintf(out->state, sizeof(out->state), "%s", json_str(status, "state", ""));
            cr_expect_str_eq(json_str(status, "sweep", ""), "t/1");
        } else {
            size_t n = strlen(out->kinds);
            cr_expect_str_eq(json_str(doc, "type", ""), "event");
            cr_expect_gt(json_int(doc, "wall_ns", 0), 0);
            cr_expect_not_null(json_str(doc, "text", NULL));
            out->events++;
            if (n < sizeof(out->kinds) - 64) {
                snprintf(out->kinds + n, sizeof(out->kinds) - n, "%s ", json_str(doc, "kind", "?"));
            }
        }
        json_decref(doc);
    }
    cr_expect_eq(*p, '\0', "half a line");
    answer_free(&a);
}

static struct lines lines_now(struct cast *c)
{
    struct lines l;
    read_lines(c, &l);
    return l;
}

/* Events that came or are said to be missing. */
static size_t told(struct cast *c)
{
    struct lines l = lines_now(c);
    return l.events + l.dropped;
}

Test(net_watch, shows_the_status_at_once_what_happens_and_the_end)
{
    struct cast c;
    begin(&c);
    watch(&c, "t");
    HOUSE_WAIT(&c.h, lines_now(&c).statuses == 1);
    cr_expect_str_eq(lines_now(&c).state, "active");
    cr_expect(!lines_now(&c).ended);
    guest_make(c.worker, 0);
    HOUSE_WAIT(&c.h, lines_now(&c).statuses > 1);
    guest_make(c.worker, 1);
    HOUSE_WAIT(&c.h, lines_now(&c).ended);
    struct lines l = lines_now(&c);
    cr_expect_str_eq(l.state, "done");
    EXPECT_HAS(l.kinds, "attempt ");
    EXPECT_HAS(l.kinds, "sweep-ended ");
    cr_expect_eq(l.dropped, 0);
    /* An ended sweep is shown once. */
    guest_forget(c.watcher);
    watch(&c, "t/1");
    HOUSE_WAIT(&c.h, lines_now(&c).ended);
    cr_expect_eq(lines_now(&c).statuses, 1);
    finish(&c);
}

Test(net_watch, an_unknown_sweep_is_refused)
{
    struct cast c;
    struct answer a;
    begin(&c);
    watch(&c, "nix");
    HOUSE_WAIT(&c.h, guest_count(c.watcher, MSG_REPLY) > 0);
    cr_assert(guest_answered(c.watcher, c.call, &a));
    cr_expect_eq(a.exit, 64);
    EXPECT_HAS(buf_str(&a.talk), "nix");
    answer_free(&a);
    finish(&c);
}

Test(net_watch, ends_when_the_operator_says_so)
{
    struct cast c;
    struct msg m = {.type = MSG_WATCH_END};
    begin(&c);
    watch(&c, "t");
    HOUSE_WAIT(&c.h, lines_now(&c).statuses == 1);
    m.u.watch_end.call = c.call + 7; /* none: nothing happens */
    cr_assert_eq(guest_send(c.watcher, &m), 0);
    house_idle(&c.h);
    cr_expect(!lines_now(&c).ended);
    m.u.watch_end.call = c.call;
    cr_assert_eq(guest_send(c.watcher, &m), 0);
    HOUSE_WAIT(&c.h, lines_now(&c).ended);
    struct lines before = lines_now(&c);
    house_news(&c.h, 0, "more");
    guest_make(c.worker, 0);
    house_idle(&c.h);
    cr_expect_eq(lines_now(&c).events, before.events, "nothing more comes");
    finish(&c);
}

Test(net_watch, events_of_other_sweeps_are_not_shown)
{
    struct cast c;
    begin(&c);
    watch(&c, "t");
    HOUSE_WAIT(&c.h, lines_now(&c).statuses == 1);
    house_news(&c.h, 0, "of none");
    house_idle(&c.h);
    cr_expect_null(strstr(lines_now(&c).kinds, "operator "));
    house_news(&c.h, 1, "of this");
    HOUSE_WAIT(&c.h, strstr(lines_now(&c).kinds, "operator ") != NULL);
    finish(&c);
}

Test(net_watch, a_slow_reader_misses_lines_and_hears_how_many)
{
    struct cast c;
    char text[4000];
    enum { A_TURN = 100, TURNS = 30 };
    begin(&c);
    watch(&c, "t");
    HOUSE_WAIT(&c.h, lines_now(&c).statuses == 1);
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    conn_pause(c.watcher->conn, true);
    for (int turn = 0; turn < TURNS; turn++) { /* 12 MB: more than any socket holds */
        for (int i = 0; i < A_TURN; i++) {
            house_news(&c.h, 1, text);
        }
        loop_turn(c.h.loop, CLOCK_MS);
    }
    cr_expect(!c.watcher->closed, "it is not cut off: %s", c.watcher->text);
    conn_pause(c.watcher->conn, false);
    /* The next line that is sent says what is missing. */
    HOUSE_WAIT(&c.h, told(&c) >= A_TURN * TURNS);
    struct lines l = lines_now(&c);
    cr_expect_gt(l.dropped, 0);
    cr_expect_lt(l.events, A_TURN * TURNS);
    finish(&c);
}

Test(net_watch, a_watcher_that_goes_leaves_nothing_behind)
{
    struct cast c;
    begin(&c);
    watch(&c, "t");
    HOUSE_WAIT(&c.h, lines_now(&c).statuses == 1);
    guest_leave(c.watcher);
    for (int i = 0; i < 3; i++) {
        house_news(&c.h, 1, "somebody there?");
        house_idle(&c.h);
    }
    guest_make(c.worker, 0);
    guest_make(c.worker, 1);
    HOUSE_WAIT(&c.h, guest_sees(c.admin, "t", "\"state\": \"done\""));
    finish(&c);
}

Test(net_watch, one_connection_does_not_watch_without_end)
{
    enum { MANY = 100 };
    struct cast c;
    struct answer a;
    size_t refused = 0;
    begin(&c);
    uint32_t first = c.watcher->calls + 1;
    for (int i = 0; i < MANY; i++) {
        watch(&c, "t");
    }
    HOUSE_WAIT(&c.h, guest_count(c.watcher, MSG_REPLY) >= MANY);
    for (uint32_t call = first; call < first + MANY; call++) {
        if (guest_answered(c.watcher, call, &a)) {
            cr_expect_eq(a.exit, 64);
            EXPECT_HAS(buf_str(&a.talk), "end one of them");
            refused++;
        }
        answer_free(&a);
    }
    cr_expect_gt(refused, MANY / 2);
    cr_expect_lt(refused, MANY, "some are answered");
    /* One that ends makes room. */
    struct msg m = {.type = MSG_WATCH_END};
    m.u.watch_end.call = first;
    cr_assert_eq(guest_send(c.watcher, &m), 0);
    guest_forget(c.watcher);
    watch(&c, "t");
    HOUSE_WAIT(&c.h, lines_now(&c).statuses == 1);
    finish(&c);
}

/* hello_test.c: who is let in, who is not, and how connections end. */
#include "common/mem.h"
#include "coordinator/coord.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/store.h"
#include "proto/close.h"
#include "proto/pki.h"
#include "tests/unit/whole/house.h"

#include <stdlib.h>
#include <string.h>

static void expect_closed(struct guest *g, enum close_reason reason, const char *part)
{
    HOUSE_WAIT(g->house, g->closed);
    cr_expect_eq(g->reason, reason, "%s: %s", close_name((uint32_t)g->reason), g->text);
    cr_expect(g->by_peer);
    EXPECT_HAS(g->text, part);
}

static bool is_up(struct guest *admin, const char *host)
{
    struct msg m = {.type = MSG_HOST_LIST};
    struct answer a;
    m.u.host_list.call = guest_call(admin);
    m.u.host_list.name = host;
    guest_ask(admin, m.u.host_list.call, &m, &a);
    cr_assert_eq(a.exit, 0, "%s", buf_str(&a.talk));
    bool up = strstr(buf_str(&a.body), "\"link\": \"up\"") != NULL;
    answer_free(&a);
    return up;
}

static void set_host(struct guest *admin, const char *host, const char *action, struct answer *a)
{
    struct msg m = {.type = MSG_HOST_SET};
    m.u.host_set.call = guest_call(admin);
    m.u.host_set.name = host;
    m.u.host_set.action = action;
    guest_ask(admin, m.u.host_set.call, &m, a);
}

Test(net_hello, welcomes_workers_and_operators)
{
    struct house h;
    struct ident p6, boss;
    house_init(&h);
    house_start(&h);
    house_admit(&h, ROLE_WORKER, "p6", &p6);
    house_admit(&h, ROLE_VIEWER, "eve", &boss);
    struct guest *worker = house_welcome(&h, &p6);
    const struct msg_welcome *w = &guest_got(worker, MSG_WELCOME, 0)->u.welcome;
    cr_expect_str_eq(w->fleet, "lab");
    cr_expect_eq(w->proto, 1);
    cr_expect_eq(w->beat_ns, h.conf.beat_ns);
    cr_expect_eq(w->caps_count, 2);
    cr_expect_eq(w->warnings_count, 0, "%s", w->warnings_count > 0 ? w->warnings[0] : "");
    struct guest *viewer = house_welcome(&h, &boss);
    cr_expect(is_up(viewer, "p6"));
    guest_leave(worker);
    HOUSE_WAIT(&h, !is_up(viewer, "p6"));
    house_fini(&h);
    ident_free(&p6);
    ident_free(&boss);
}

Test(net_hello, warns_a_worker_of_its_clock_and_of_the_end_of_its_certificate)
{
    struct house h;
    struct ident p6;
    house_init(&h);
    house_start(&h);
    house_admit(&h, ROLE_WORKER, "p6", &p6);
    struct guest *g = house_guest(&h, &p6);
    HOUSE_WAIT(&h, g->opened);
    struct msg m = {.type = MSG_HELLO};
    m.u.hello.proto_min = 1;
    m.u.hello.proto_max = 1;
    m.u.hello.program = "makespan-worker";
    m.u.hello.version = "0";
    static const int64_t empty_batteries[] = {0, INT64_MIN};
    for (size_t i = 0; i < ARRAY_LEN(empty_batteries); i++) {
        g = i == 0 ? g : house_guest(&h, &p6);
        HOUSE_WAIT(&h, g->opened);
        m.u.hello.wall_ns = empty_batteries[i];
        cr_assert_eq(guest_send(g, &m), 0);
        HOUSE_WAIT(&h, guest_count(g, MSG_WELCOME) > 0);
        const struct msg_welcome *w = &guest_got(g, MSG_WELCOME, 0)->u.welcome;
        cr_assert_eq(w->warnings_count, 1);
        EXPECT_HAS(w->warnings[0], "behind the coordinator's");
    }
    house_fini(&h);
    ident_free(&p6);
}

/* A worker that is out of its mind is its own trouble, and not the database's. */
Test(net_hello, facts_with_one_key_are_one)
{
    static const struct rec_fact facts[] = {
        {.key = "os", .value = "Linux"}, {.key = "os", .value = "BSD"}, {.key = "cpu", .value = "i686"}};
    struct house h;
    struct ident p6;
    house_init(&h);
    house_start(&h);
    house_admit(&h, ROLE_WORKER, "p6", &p6);
    struct guest *g = house_guest(&h, &p6);
    HOUSE_WAIT(&h, g->opened);
    struct msg m = {.type = MSG_HELLO};
    m.u.hello.proto_min = 1;
    m.u.hello.proto_max = 1;
    m.u.hello.program = "makespan-worker";
    m.u.hello.version = "0";
    m.u.hello.wall_ns = clock_wall_ns();
    m.u.hello.facts = facts;
    m.u.hello.facts_count = ARRAY_LEN(facts);
    cr_assert_eq(guest_send(g, &m), 0);
    HOUSE_WAIT(&h, guest_count(g, MSG_WELCOME) > 0 || g->closed);
    house_idle(&h);
    cr_expect(!g->closed, "%s", g->text);
    cr_expect(!coord_is_stuck(h.coord));
    house_fini(&h);
    ident_free(&p6);
}

Test(net_hello, refuses_versions_that_it_does_not_speak)
{
    struct house h;
    struct ident who[2];
    house_init(&h);
    house_start(&h);
    house_admit(&h, ROLE_WORKER, "p6", &who[0]);
    house_admit(&h, ROLE_ADMIN, "ann", &who[1]);
    for (size_t i = 0; i < 2; i++) {
        struct guest *g = house_guest(&h, &who[i]);
        HOUSE_WAIT(&h, g->opened);
        struct msg m = {.type = MSG_HELLO};
        m.u.hello.proto_min = 7;
        m.u.hello.proto_max = 9;
        m.u.hello.program = "from the future";
        m.u.hello.version = "9";
        cr_assert_eq(guest_send(g, &m), 0);
        expect_closed(g, CLOSE_VERSION, "7");
        cr_expect_eq(guest_count(g, MSG_WELCOME), 0);
    }
    house_fini(&h);
    ident_free(&who[0]);
    ident_free(&who[1]);
}

Test(net_hello, closes_who_says_nothing)
{
    struct house h;
    struct ident p6;
    house_init(&h);
    h.conf.hello_ns = 100 * CLOCK_MS;
    house_start(&h);
    house_admit(&h, ROLE_WORKER, "p6", &p6);
    struct guest *mute = house_guest(&h, &p6);
    expect_closed(mute, CLOSE_HELLO_TIMEOUT, "in time");
    house_fini(&h);
    ident_free(&p6);
}

Test(net_hello, closes_who_falls_silent)
{
    struct house h;
    struct ident p6, ann;
    house_init(&h);
    h.conf.beat_ns = 100 * CLOCK_MS;
    house_start(&h);
    house_admit(&h, ROLE_WORKER, "p6", &p6);
    house_admit(&h, ROLE_ADMIN, "ann", &ann);
    int64_t begin = clock_mono_ns();
    struct guest *worker = house_welcome(&h, &p6);
    struct guest *admin = house_welcome(&h, &ann);
    expect_closed(worker, CLOSE_SILENT, "three intervals");
    expect_closed(admin, CLOSE_SILENT, "three intervals");
    cr_expect_geq(clock_mono_ns() - begin, 3 * h.conf.beat_ns);
    cr_expect_gt(guest_count(worker, MSG_BEAT), 0, "the coordinator gives signs of life");
    house_fini(&h);
    ident_free(&p6);
    ident_free(&ann);
}

Test(net_hello, keeps_who_gives_signs_of_life)
{
    struct house h;
    struct ident p6;
    house_init(&h);
    h.conf.beat_ns = 100 * CLOCK_MS;
    house_start(&h);
    house_admit(&h, ROLE_WORKER, "p6", &p6);
    struct guest *g = house_welcome(&h, &p6);
    struct msg beat = {.type = MSG_BEAT};
    for (size_t seen = 0; seen < 8; seen = guest_count(g, MSG_BEAT)) {
        HOUSE_WAIT(&h, guest_count(g, MSG_BEAT) > seen || g->closed);
        cr_assert(!g->closed, "%s", g->text);
        beat.u.beat.n++;
        cr_assert_eq(guest_send(g, &beat), 0);
    }
    cr_expect_eq(guest_got(g, MSG_BEAT, 4)->u.beat.n, 5, "they count up");
    house_fini(&h);
    ident_free(&p6);
}

Test(net_hello, a_second_connection_takes_the_place_of_the_first)
{
    struct house h;
    struct ident p6, eve;
    house_init(&h);
    house_start(&h);
    house_admit(&h, ROLE_WORKER, "p6", &p6);
    house_admit(&h, ROLE_VIEWER, "eve", &eve);
    struct guest *viewer = house_welcome(&h, &eve);
    struct guest *first = house_welcome(&h, &p6);
    struct guest *second = house_welcome(&h, &p6);
    expect_closed(first, CLOSE_REPLACED, "another connection");
    cr_expect(is_up(viewer, "p6"), "the end of the old link is not the end of the new one");
    cr_expect(!second->closed);
    house_fini(&h);
    ident_free(&p6);
    ident_free(&eve);
}

Test(net_hello, a_revoked_host_is_cut_off_and_does_not_come_back)
{
    struct house h;
    struct ident p6, quad, ann;
    struct answer a;
    house_init(&h);
    house_start(&h);
    house_admit(&h, ROLE_WORKER, "p6", &p6);
    house_admit(&h, ROLE_WORKER, "quad", &quad);
    house_admit(&h, ROLE_ADMIN, "ann", &ann);
    struct guest *admin = house_welcome(&h, &ann);
    struct guest *worker = house_welcome(&h, &p6);
    struct guest *other = house_welcome(&h, &quad);
    set_host(admin, "p6", "revoke", &a);
    cr_expect_eq(a.exit, 0);
    EXPECT_HAS(buf_str(&a.talk), "p6: revoked\n");
    answer_free(&a);
    expect_closed(worker, CLOSE_REVOKED, "join again");
    struct guest *again = house_guest(&h, &p6);
    HOUSE_WAIT(&h, again->closed);
    cr_expect_eq(again->reason, CLOSE_REVOKED, "%s: %s", close_name((uint32_t)again->reason),
                 again->text);
    cr_expect_eq(again->count, 0);
    cr_expect(is_up(admin, "quad") && !other->closed, "others stay");
    house_fini(&h);
    ident_free(&p6);
    ident_free(&quad);
    ident_free(&ann);
}

Test(net_hello, a_host_that_has_another_key_by_now_is_told_to_join_again)
{
    struct house h;
    struct ident p6;
    struct mem_arena *arena = mem_arena_new(0);
    struct model_host row;
    house_init(&h);
    house_start(&h);
    house_admit(&h, ROLE_WORKER, "p6", &p6);
    /* A database that was put back: its row has another key, the certificate is not revoked. */
    cr_assert_eq(store_host_by_name(house_store(&h), "p6", arena, &row), 0);
    cr_assert_eq(store_host_set_key(house_store(&h), row.id, "another", 1), 0);
    cr_assert_eq(store_commit(house_store(&h), NULL), 0);
    struct guest *g = house_guest(&h, &p6);
    HOUSE_WAIT(&h, g->opened);
    guest_hello(g, 1);
    expect_closed(g, CLOSE_REVOKED, "knows no host p6 with this key: make a token and join again");
    cr_expect_eq(guest_count(g, MSG_WELCOME), 0);
    mem_arena_free(&arena);
    house_fini(&h);
    ident_free(&p6);
}

Test(net_hello, the_end_of_the_coordinator_is_said)
{
    struct house h;
    struct ident p6;
    house_init(&h);
    house_start(&h);
    house_admit(&h, ROLE_WORKER, "p6", &p6);
    struct guest *g = house_welcome(&h, &p6);
    house_stop(&h);
    expect_closed(g, CLOSE_SHUTDOWN, "stops");
    house_fini(&h);
    ident_free(&p6);
}

Test(net_hello, hosts_are_drained_labelled_and_changed_by_known_words_only)
{
    static const struct {
        const char *host, *action, *label;
        uint32_t exit;
        const char *says;
    } rows[] = {
        {"p6", "drain", NULL, 0, "p6: drained"},
        {"p6", "resume", NULL, 0, "p6: resumed"},
        {"p6", "label", "old", 0, "p6: in class old"},
        {"p6", "unlabel", "old", 0, "p6: no longer in class old"},
        {"p6", "unlabel", "old", 64, "old"},
        {"p6", "label", NULL, 64, "label needs a class"},
        {"p6", "label", "no name", 64, "no name"},
        {"p6", "explode", NULL, 64, "unknown action explode: it is one of drain"},
        {"nobody", "drain", NULL, 64, "nobody"},
        {"nobody", "revoke", NULL, 64, "nobody"},
    };
    struct house h;
    struct ident p6, ann;
    house_init(&h);
    house_start(&h);
    house_admit(&h, ROLE_WORKER, "p6", &p6);
    house_admit(&h, ROLE_ADMIN, "ann", &ann);
    struct guest *admin = house_welcome(&h, &ann);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct msg m = {.type = MSG_HOST_SET};
        struct answer a;
        m.u.host_set.call = guest_call(admin);
        m.u.host_set.name = rows[i].host;
        m.u.host_set.action = rows[i].action;
        m.u.host_set.label = rows[i].label;
        guest_ask(admin, m.u.host_set.call, &m, &a);
        cr_expect_eq(a.exit, rows[i].exit, "%s %s: %u: %s", rows[i].host, rows[i].action,
                     (unsigned)a.exit, buf_str(&a.talk));
        EXPECT_HAS(buf_str(&a.talk), rows[i].says);
        answer_free(&a);
    }
    house_fini(&h);
    ident_free(&p6);
    ident_free(&ann);
}

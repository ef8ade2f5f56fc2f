/* long_test.c: answers that are longer than what a connection queues, and readers that do not
 * read. */
#include "common/mem.h"
#include "proto/close.h"
#include "tests/unit/whole/house.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 262144, PIECES = 40 }; /* 10 MiB: more than queue and sockets hold */

static const char SWEEP[] = "sweep: t\n"
                            "workload: {name: w, run: make}\n"
                            "variants: [{name: a}]\n"
                            "hosts: [p6]\n"
                            "jobs: [1]\n"
                            "repeat: {warmup: 0, until: 1}\n";

struct cast {
    struct house h;
    struct ident p6, ann;
    struct guest *worker, *reader;
    uint64_t run;
};

/* The result of the run, and what it printed. */
static void print_much(struct cast *c, const struct msg_assign *assign)
{
    struct msg m = {.type = MSG_OUTPUT};
    char *bytes = mem_xarray(PIECE, 1);
    memset(bytes, 'x', PIECE);
    m.u.output.run = assign->run;
    m.u.output.attempt = assign->attempt;
    m.u.output.phase = PHASE_MEASURE;
    m.u.output.total = (uint64_t)PIECE * PIECES;
    m.u.output.bytes = (struct msg_bytes){.data = (const uint8_t *)bytes, .len = PIECE};
    for (uint32_t i = 0; i < PIECES; i++) {
        m.u.output.seq = i + 1;
        m.u.output.offset = (uint64_t)PIECE * i;
        bytes[0] = (char)('0' + i % 10);
        cr_assert_eq(guest_send(c->worker, &m), 0);
        HOUSE_WAIT(&c->h, conn_queued(c->worker->conn) == 0);
    }
    free(bytes);
}

static void begin(struct cast *c)
{
    struct answer a;
    struct msg end = {.type = MSG_END};
    house_init(&c->h);
    house_start(&c->h);
    house_admit(&c->h, ROLE_WORKER, "p6", &c->p6);
    house_admit(&c->h, ROLE_ADMIN, "ann", &c->ann);
    c->worker = house_welcome(&c->h, &c->p6);
    c->reader = house_welcome(&c->h, &c->ann);
    guest_put(c->reader, "run", SWEEP, &a);
    cr_assert_eq(a.exit, 0, "%s", buf_str(&a.talk));
    answer_free(&a);
    HOUSE_WAIT(&c->h, guest_count(c->worker, MSG_ASSIGN) > 0);
    struct msg_assign assign = guest_got(c->worker, MSG_ASSIGN, 0)->u.assign;
    guest_taken(c->worker, &assign);
    guest_result(c->worker, &assign, CLOCK_SEC);
    print_much(c, &assign);
    end.u.end.run = assign.run;
    end.u.end.attempt = assign.attempt;
    end.u.end.seq = PIECES + 1;
    end.u.end.count = PIECES + 2;
    cr_assert_eq(guest_send(c->worker, &end), 0);
    HOUSE_WAIT(&c->h, guest_has_acked(c->worker, &assign));
    c->run = assign.run;
}

static void finish(struct cast *c)
{
    house_fini(&c->h);
    ident_free(&c->p6);
    ident_free(&c->ann);
}

static uint32_t ask_attempt(struct cast *c)
{
    struct msg m = {.type = MSG_REPORT};
    uint32_t call = guest_call(c->reader);
    m.u.report.call = call;
    m.u.report.sweep = "t";
    m.u.report.format = "table";
    m.u.report.has_run = true;
    m.u.report.run = c->run;
    cr_assert_eq(guest_send(c->reader, &m), 0);
    return call;
}

static bool has_come(struct cast *c, uint32_t call)
{
    struct answer a;
    bool last = guest_answered(c->reader, call, &a);
    answer_free(&a);
    return last || c->reader->closed;
}

/* Every piece of the output, in its order. */
static void expect_whole(const struct answer *a)
{
    const char *p = strstr(buf_str(&a->body), "0xxx");
    cr_assert_not_null(p);
    cr_assert_eq(strlen(p), (size_t)PIECE * PIECES);
    for (size_t i = 0; i < PIECES; i++) {
        cr_expect_eq(p[i * PIECE], (char)('0' + i % 10));
    }
}

Test(net_long, an_answer_longer_than_the_queue_comes_whole)
{
    struct cast c;
    struct answer a;
    begin(&c);
    uint32_t call = ask_attempt(&c);
    HOUSE_WAIT(&c.h, has_come(&c, call));
    cr_assert(!c.reader->closed, "%s", c.reader->text);
    cr_assert(guest_answered(c.reader, call, &a));
    cr_expect_eq(a.exit, 0);
    expect_whole(&a);
    answer_free(&a);
    finish(&c);
}

Test(net_long, several_come_whole_and_a_short_one_does_not_wait_for_them)
{
    struct cast c;
    struct answer a;
    uint32_t calls[3];
    begin(&c);
    calls[0] = ask_attempt(&c);
    calls[1] = ask_attempt(&c);
    struct msg m = {.type = MSG_SWEEP_LIST};
    calls[2] = m.u.sweep_list.call = guest_call(c.reader);
    cr_assert_eq(guest_send(c.reader, &m), 0);
    HOUSE_WAIT(&c.h, has_come(&c, calls[2]));
    cr_expect(!has_come(&c, calls[1]));
    HOUSE_WAIT(&c.h, has_come(&c, calls[1]));
    cr_assert(!c.reader->closed, "%s", c.reader->text);
    for (size_t i = 0; i < 2; i++) {
        cr_assert(guest_answered(c.reader, calls[i], &a));
        expect_whole(&a);
        answer_free(&a);
    }
    finish(&c);
}

Test(net_long, who_asks_and_does_not_read_is_cut_off)
{
    struct cast c;
    begin(&c);
    conn_pause(c.reader->conn, true);
    for (int i = 0; i < 8; i++) {
        ask_attempt(&c);
    }
    house_idle(&c.h);
    conn_pause(c.reader->conn, false);
    HOUSE_WAIT(&c.h, c.reader->closed);
    cr_expect_eq(c.reader->reason, CLOSE_QUEUE_FULL, "%s", c.reader->text);
    finish(&c);
}

Test(net_long, a_run_that_cannot_be_has_no_attempt)
{
    static const uint64_t runs[] = {4711, INT64_MAX, UINT64_MAX};
    struct cast c;
    struct answer a;
    begin(&c);
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        c.run = runs[i];
        uint32_t call = ask_attempt(&c);
        HOUSE_WAIT(&c.h, has_come(&c, call));
        cr_assert(guest_answered(c.reader, call, &a));
        cr_expect_eq(a.exit, 64);
        EXPECT_HAS(buf_str(&a.talk), "t has no attempt");
        answer_free(&a);
    }
    finish(&c);
}

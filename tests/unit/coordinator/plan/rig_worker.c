/* rig_worker.c: the workers of a rig: a journal, a spool and a wire, a few lines each. */
#include "tests/unit/coordinator/plan/rig.h"

#include "common/err.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS = 4 }; /* of an attempt: OUTPUT, SAMPLES, RESULT, END */

static size_t unbegun(const struct rig_worker *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->held_count; i++) {
        n += w->held[i].state != PLAN_HELD_SPOOLED;
    }
    return n;
}

static uint32_t room_of(const struct rig_worker *w)
{
    size_t held = unbegun(w);
    return held < w->room + 1 ? (uint32_t)(w->room + 1 - held) : 0;
}

static void say_room(struct rig *rig, struct rig_worker *w)
{
    if (w->up) {
        plan_ready(rig->plan, rig->now, w->id, room_of(w));
    }
}

static void drop_held(struct rig_worker *w, size_t i)
{
    memmove(&w->held[i], &w->held[i + 1], (w->held_count - i - 1) * sizeof(w->held[0]));
    w->held_count--;
}

void rig_up(struct rig *rig, struct rig_worker *w)
{
    struct plan_held held[RIG_HELD];
    struct diag *diag = diag_new(4);
    w->wire_count = 0;
    w->up = true;
    for (size_t i = w->held_count; i > 0; i--) {
        struct ingest_ack ack;
        struct rig_held *h = &w->held[i - 1];
        if (h->state != PLAN_HELD_SPOOLED) {
            continue;
        }
        cr_assert_eq(ingest_known(rig->ingest, w->id, h->order.run, h->order.attempt, &ack), 0);
        h->acked = ack.seq;
        if (ack.whole) {
            drop_held(w, i - 1);
        }
    }
    for (size_t i = 0; i < w->held_count; i++) {
        const struct rig_held *h = &w->held[i];
        held[i] = (struct plan_held){h->order.run, h->order.attempt, h->state,
                                     h->state == PLAN_HELD_RUNNING ? PHASE_MEASURE : PHASE_IDLE};
    }
    struct plan_hello hello = {.boot_id = w->boot,
                               .machine_id = w->name,
                               .version = "1",
                               .visit = 1,
                               .room = room_of(w),
                               .cpus_milli = 4000,
                               .memory_bytes = INT64_C(1) << 30,
                               .held = held,
                               .held_count = w->held_count};
    int rc = plan_host_up(rig->plan, rig->now, w->id, &hello, diag);
    cr_assert_eq(rc, 0, "%s: %s", w->name, diag_first(diag));
    diag_free(&diag);
}

void rig_down(struct rig *rig, struct rig_worker *w)
{
    if (w->up) {
        w->up = false;
        w->wire_count = 0;
        ingest_host_down(rig->ingest, w->id);
        cr_assert_eq(plan_host_down(rig->plan, rig->now, w->id, "test"), 0);
    }
}

static size_t find_held(const struct rig_worker *w, const struct rig_message *m)
{
    size_t i = 0;
    while (i < w->held_count &&
           (w->held[i].order.run != m->run || w->held[i].order.attempt != m->attempt)) {
        i++;
    }
    return i;
}

static void on_assign(struct rig *rig, struct rig_worker *w, const struct rig_message *m)
{
    cr_assert_eq(find_held(w, m), w->held_count, "run %d attempt %d was sent twice", (int)m->run,
                 (int)m->attempt);
    if (room_of(w) == 0) {
        cr_assert_eq(plan_refused(rig->plan, rig->now, w->id, m->run, m->attempt, ERR_BUSY, "full"),
                     0);
        return;
    }
    cr_assert_lt(w->held_count, RIG_HELD);
    w->held[w->held_count++] = (struct rig_held){.order = *m, .state = PLAN_HELD_QUEUED};
    cr_assert_eq(plan_taken(rig->plan, rig->now, w->id, m->run, m->attempt), 0);
}

bool rig_deliver(struct rig *rig, struct rig_worker *w)
{
    if (!w->up || w->wire_count == 0) {
        return false;
    }
    struct rig_message m = w->wire[0];
    memmove(&w->wire[0], &w->wire[1], --w->wire_count * sizeof(w->wire[0]));
    size_t i = find_held(w, &m);
    switch (m.kind) {
    case RIG_ASSIGN:
        on_assign(rig, w, &m);
        break;
    case RIG_WITHDRAW:
        if (i < w->held_count && w->held[i].state == PLAN_HELD_QUEUED) {
            drop_held(w, i);
            cr_assert_eq(
                plan_refused(rig->plan, rig->now, w->id, m.run, m.attempt, ERR_STATE, "withdrawn"),
                0);
        }
        break;
    case RIG_CANCEL:
        if (i < w->held_count && w->held[i].state != PLAN_HELD_SPOOLED) {
            w->held[i].state = PLAN_HELD_SPOOLED;
            w->held[i].outcome = OUTCOME_CANCELLED;
            w->held[i].phase = PHASE_MEASURE;
        }
        break;
    case RIG_AWAY_OK:
        break;
    }
    say_room(rig, w);
    return true;
}

struct rig_held *rig_head(struct rig_worker *w)
{
    for (size_t i = 0; i < w->held_count; i++) {
        if (w->held[i].state != PLAN_HELD_SPOOLED) {
            return &w->held[i];
        }
    }
    return NULL;
}

void rig_begin(struct rig *rig, struct rig_worker *w)
{
    struct rig_held *h = rig_head(w);
    if (h == NULL || h->state != PLAN_HELD_QUEUED) {
        return;
    }
    h->state = PLAN_HELD_RUNNING;
    if (w->up) {
        cr_assert_eq(plan_phase(rig->plan, rig->now, w->id, h->order.run, h->order.attempt,
                                PHASE_RESET, NULL),
                     0);
    }
}

void rig_end(struct rig *rig, struct rig_worker *w, enum outcome outcome, enum phase phase)
{
    struct rig_held *h = rig_head(w);
    if (h == NULL || h->state != PLAN_HELD_RUNNING) {
        return;
    }
    h->state = PLAN_HELD_SPOOLED;
    h->outcome = outcome;
    h->phase = phase;
    h->warm = h->order.warmup || (h->fresh && h->order.fresh_warmup);
    say_room(rig, w);
}

static int send_record(struct rig *rig, struct rig_worker *w, const struct rig_held *h,
                       uint32_t seq)
{
    int64_t run = h->order.run;
    uint32_t attempt = h->order.attempt;
    int64_t wall = rig->now.wall_ns;
    if (seq == 0) {
        return ingest_output(rig->ingest, wall, w->id, run, attempt, seq, h->phase, 0,
                             "no rule\nto make it\n", 19, 19);
    }
    if (seq == 1) {
        struct model_point point = {5, 1, 7};
        return ingest_samples(rig->ingest, wall, w->id, run, attempt, seq, &point, 1);
    }
    if (seq == 3) {
        return ingest_end(rig->ingest, wall, w->id, run, attempt, seq, RECORDS);
    }
    struct model_attempt a = {.run = run,
                              .attempt = attempt,
                              .reported = h->outcome,
                              .phase = h->phase,
                              .ending = ENDING_EXIT,
                              .text = h->outcome == OUTCOME_OK ? "" : "it went wrong",
                              .warmup = h->warm,
                              .fresh_tree = h->fresh,
                              .real_ns = {h->outcome == OUTCOME_OK, 2 * CLOCK_SEC},
                              .user_ns = {true, CLOCK_SEC},
                              .sys_ns = {true, CLOCK_SEC},
                              .cpu_way = CPU_WAY_WAIT4,
                              .begin_wall_ns = wall - 3 * CLOCK_SEC,
                              .end_wall_ns = wall,
                              .boot_id = w->boot,
                              .visit = 1,
                              .jobs = h->order.jobs,
                              .worker_version = w->name};
    return ingest_result(rig->ingest, wall, w->id, seq, &a, NULL, 0);
}

static void on_ack(void *arg, const struct ingest_ack *ack)
{
    struct rig_worker *w = arg;
    struct rig_message key = {.run = ack->run, .attempt = ack->attempt};
    size_t i = find_held(w, &key);
    if (i < w->held_count) {
        w->held[i].acked = ack->seq > w->held[i].acked ? ack->seq : w->held[i].acked;
        if (ack->whole) {
            drop_held(w, i);
        }
    }
}

void rig_feed(struct rig *rig, struct rig_worker *w, size_t limit)
{
    for (size_t i = 0; w->up && i < w->held_count; i++) {
        struct rig_held *h = &w->held[i];
        for (uint32_t seq = h->acked; h->state == PLAN_HELD_SPOOLED && seq < RECORDS && limit > 0;
             seq++, limit--) {
            int rc = send_record(rig, w, h, seq);
            cr_assert(rc == 0 || rc == -ERR_NOTFOUND || rc == -ERR_DENIED, "%s", err_name(rc));
        }
    }
    ingest_take_acks(rig->ingest, w->id, on_ack, w);
}

void rig_settle(struct rig *rig)
{
    bool moved = true;
    while (moved) {
        moved = false;
        cr_assert_eq(rig_turn(rig), 0);
        for (size_t i = 0; i < rig->worker_count; i++) {
            while (rig_deliver(rig, &rig->workers[i])) {
                moved = true;
            }
            ingest_take_acks(rig->ingest, rig->workers[i].id, on_ack, &rig->workers[i]);
        }
    }
}

void rig_make(struct rig *rig, struct rig_worker *w, enum outcome outcome, enum phase phase)
{
    rig_settle(rig);
    cr_assert(rig_head(w) != NULL, "%s has nothing to make", w->name);
    rig_begin(rig, w);
    rig_end(rig, w, outcome, phase);
    rig_feed(rig, w, SIZE_MAX);
    rig_settle(rig);
}

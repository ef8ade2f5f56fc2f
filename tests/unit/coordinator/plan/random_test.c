/* Random fleets: links cut and come back, workers and the coordinator die, commits fail, records
 * come twice, operators pause and drain. Whatever happens, no attempt is sent twice, each run counts
 * at most one attempt, nothing is filed under another host, and when the storm is over every sweep
 * ends with all its runs. A failing seed is in the message. */
#include "tests/unit/coordinator/plan/rig.h"

#include "common/err.h"
#include "common/mem.h"
#include "common/prng.h"
#include "coordinator/plan/tally.h"
#include "coordinator/store/attempts.h"
#include "coordinator/store/cells.h"
#include "coordinator/store/runs.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTS = 4, SWEEPS = 3, STEPS = 2500, SEEDS = 12 };

static const char *const files[SWEEPS] = {
    "sweep: one\nworkload: {name: w, run: make $JFLAG}\n"
    "variants: [{name: a, env: {X: 1}}, {name: b, env: {X: 2}}]\n"
    "jobs: [1, 2, max]\nrepeat: {warmup: 1, until: 7}\nhosts: [\"class:all\"]\n",
    "sweep: two\nworkload: {name: w, setup: ./configure, run: make}\n"
    "variants: [{name: a, env: {X: 1}}, {name: b, env: {X: 2}}, {name: c, env: {X: 3}}]\n"
    "jobs: [none]\nrepeat: {warmup: 0, until: 9}\nretry: {failed: 1}\norder: shuffle\n"
    "hosts: [h0, h1]\n",
    "sweep: three\nworkload: {name: w, run: make}\npriority: gate\n"
    "variants: [{name: a, env: {X: 1}}, {name: b, env: {X: 2}}]\n"
    "jobs: [1]\nrepeat: {warmup: 2, until: 11}\nhosts: [\"class:all\"]\n",
};

struct storm {
    struct rig *rig;
    struct prng g;
    int64_t sweeps[SWEEPS];
    bool submitted[SWEEPS];
    int setup_failures;
};

static uint64_t below(struct storm *s, uint64_t n)
{
    return prng_below(&s->g, n);
}

/* --- what must always hold --- */

struct check {
    struct storm *s;
    int64_t counted;
    uint64_t seed;
};

static int check_attempt(const struct model_attempt *a, void *arg)
{
    struct check *c = arg;
    c->counted += a->whole && a->outcome == OUTCOME_OK && !a->warmup && !a->late;
    return 0;
}

static int check_run(const struct model_run *run, void *arg)
{
    struct check *c = arg;
    struct rig *rig = c->s->rig;
    c->counted = 0;
    cr_assert_eq(store_attempts_of_run(rig->store, run->id, check_attempt, c), 0);
    cr_assert(run->counted <= run->attempts);
    if (run->counted != 0) {
        cr_assert_eq(run->state, RUN_DONE, "seed %d: run %d counts and is %s", (int)c->seed,
                     (int)run->id, model_run_word((int)run->state));
        cr_assert(!run->warmup);
        struct mem_arena *arena = mem_arena_new(0);
        struct model_attempt a;
        cr_assert_eq(store_attempt_get(rig->store, run->id, run->counted, arena, &a), 0);
        cr_assert(a.whole && a.outcome == OUTCOME_OK && !a.warmup);
        /* What the worker built is what the cell says, and it ran where the cell is. */
        struct model_cell cell;
        cr_assert_eq(store_cell_get(rig->store, run->cell, arena, &cell), 0);
        cr_assert_eq(cell.jobs, a.jobs);
        cr_assert_eq(cell.host, run->host);
        char name[32];
        snprintf(name, sizeof(name), "h%d", (int)run->host - 1);
        cr_assert_str_eq(name, a.worker_version, "seed %d: filed under another host", (int)c->seed);
        mem_arena_free(&arena);
    }
    if (run->state == RUN_REPLACED) {
        cr_assert_eq(run->counted, 0);
    }
    return 0;
}

/* Counts that were kept up to date are those that reading everything gives. */
static void check_counts(struct storm *s, int64_t sweep, uint64_t seed)
{
    json_t *kept = rig_status(s->rig, sweep);
    tally_forget(s->rig->plan, 0);
    json_t *fresh = rig_status(s->rig, sweep);
    cr_assert(json_equal(kept, fresh), "seed %d: kept counts are wrong", (int)seed);
    json_decref(kept);
    json_decref(fresh);
}

static void check_all(struct storm *s, uint64_t seed)
{
    struct check c = {.s = s, .seed = seed};
    for (size_t i = 0; i < SWEEPS; i++) {
        if (s->submitted[i]) {
            cr_assert_eq(store_runs_of_sweep(s->rig->store, s->sweeps[i], check_run, &c), 0);
            check_counts(s, s->sweeps[i], seed);
        }
    }
}

/* --- steps --- */

static void end_some(struct storm *s, struct rig_worker *w)
{
    struct rig_held *h = rig_head(w);
    if (h == NULL) {
        return;
    }
    h->fresh = below(s, 12) == 0;
    uint64_t dice = below(s, 20);
    if (dice == 0) {
        rig_end(s->rig, w, OUTCOME_INVALID, PHASE_CHECK);
    } else if (dice == 1) {
        rig_end(s->rig, w, OUTCOME_FAILED, PHASE_CHECK);
    } else {
        rig_end(s->rig, w, OUTCOME_OK, PHASE_CHECK);
    }
}

/* The worker dies: what it was making is over, what waits is in its journal. */
static void worker_dies(struct storm *s, struct rig_worker *w)
{
    rig_down(s->rig, w);
    struct rig_held *h = rig_head(w);
    if (h != NULL && h->state == PLAN_HELD_RUNNING) {
        h->state = PLAN_HELD_SPOOLED;
        h->outcome = OUTCOME_INTERRUPTED;
        h->phase = PHASE_MEASURE;
    }
}

static void operate(struct storm *s)
{
    struct rig *rig = s->rig;
    size_t i = (size_t)below(s, SWEEPS);
    char ref[32];
    struct diag *diag = diag_new(4);
    int rc = 0;
    snprintf(ref, sizeof(ref), "%d", (int)s->sweeps[i]);
    switch (below(s, 5)) {
    case 0:
        if (!s->submitted[i]) {
            s->sweeps[i] = rig_sweep(rig, files[i]);
            s->submitted[i] = true;
        }
        break;
    case 1:
        if (s->submitted[i]) {
            rc = plan_sweep_set(rig->plan, rig->now, ref, PLAN_SWEEP_PAUSE, NULL, "op", NULL, diag);
        }
        break;
    case 2:
        if (s->submitted[i]) {
            rc =
                plan_sweep_set(rig->plan, rig->now, ref, PLAN_SWEEP_RESUME, NULL, "op", NULL, diag);
        }
        break;
    default: {
        const char *name = rig->workers[below(s, HOSTS)].name;
        enum plan_host_action action = below(s, 2) == 0 ? PLAN_HOST_DRAIN : PLAN_HOST_RESUME;
        rc = plan_host_set(rig->plan, rig->now, name, action, NULL, "op", NULL, diag);
        break;
    }
    }
    cr_assert(rc == 0 || rc == -ERR_STATE, "%s: %s", err_name(rc), diag_first(diag));
    diag_free(&diag);
}

static void step(struct storm *s)
{
    struct rig *rig = s->rig;
    struct rig_worker *w = &rig->workers[below(s, HOSTS)];
    uint64_t dice = below(s, 200);
    if (dice < 60) {
        rig_deliver(rig, w);
    } else if (dice < 90) {
        rig_begin(rig, w);
    } else if (dice < 120) {
        end_some(s, w);
    } else if (dice < 160) {
        rig_feed(rig, w, 1 + (size_t)below(s, 6));
    } else if (dice < 180) {
        if (!w->up) {
            rig_up(rig, w);
            for (size_t i = 0; i < w->held_count && below(s, 2) == 0; i++) {
                w->held[i].acked = 0; /* everything is sent again */
            }
        }
    } else if (dice < 186) {
        rig_down(rig, w);
    } else if (dice < 189) {
        worker_dies(s, w);
    } else if (dice < 190) {
        rig_crash(rig);
        return;
    } else if (dice < 192) {
        rig_roll_back(rig, -ERR_FULL);
        return;
    } else if (dice < 195) {
        rig->now.mono_ns += (int64_t)below(s, 90) * CLOCK_SEC;
        rig->now.wall_ns += (int64_t)below(s, 90) * CLOCK_SEC;
    } else {
        operate(s);
    }
    if (below(s, 3) != 0) { /* a turn may hold several of these */
        cr_assert_eq(rig_turn(rig), 0);
    }
}

/* Everything comes back, and the rest is made without incidents. */
static void calm(struct storm *s)
{
    struct rig *rig = s->rig;
    struct diag *diag = diag_new(16);
    cr_assert_eq(rig_turn(rig), 0);
    for (size_t i = 0; i < SWEEPS; i++) {
        char ref[32];
        if (!s->submitted[i]) {
            s->sweeps[i] = rig_sweep(rig, files[i]);
            s->submitted[i] = true;
        }
        snprintf(ref, sizeof(ref), "%d", (int)s->sweeps[i]);
        int rc =
            plan_sweep_set(rig->plan, rig->now, ref, PLAN_SWEEP_RESUME, NULL, "op", NULL, diag);
        cr_assert(rc == 0 || rc == -ERR_STATE);
    }
    for (size_t i = 0; i < HOSTS; i++) {
        struct rig_worker *w = &rig->workers[i];
        cr_assert_eq(
            plan_host_set(rig->plan, rig->now, w->name, PLAN_HOST_RESUME, NULL, "op", NULL, diag),
            0);
        rig_down(rig, w);
        rig_up(rig, w);
    }
    diag_free(&diag);
}

static bool all_done(struct storm *s)
{
    for (size_t i = 0; i < SWEEPS; i++) {
        if (rig_state(s->rig, s->sweeps[i]) != SWEEP_DONE) {
            return false;
        }
    }
    return true;
}

static void drain(struct storm *s, uint64_t seed)
{
    struct rig *rig = s->rig;
    for (int i = 0; i < 3000 && !all_done(s); i++) {
        rig_settle(rig);
        for (size_t k = 0; k < HOSTS; k++) {
            struct rig_worker *w = &rig->workers[k];
            rig_begin(rig, w);
            if (rig_head(w) != NULL) {
                rig_head(w)->fresh = false;
            }
            rig_end(rig, w, OUTCOME_OK, PHASE_CHECK);
            rig_feed(rig, w, SIZE_MAX);
        }
    }
    rig_settle(rig);
    if (!all_done(s)) {
        for (size_t i = 0; i < SWEEPS; i++) {
            json_t *doc = rig_status(rig, s->sweeps[i]);
            char *text = json_dumps(doc, JSON_INDENT(1));
            fprintf(stderr, "%s\n", text);
            free(text);
            json_decref(doc);
        }
    }
    cr_assert(all_done(s), "seed %d: it does not end", (int)seed);
    for (size_t k = 0; k < HOSTS; k++) {
        cr_assert_eq(rig->workers[k].held_count, 0, "seed %d: %s holds %d", (int)seed,
                     rig->workers[k].name, (int)rig->workers[k].held_count);
    }
}

struct places {
    int64_t measured;
    int64_t warmups;
};

static int count_place(const struct model_run *run, void *arg)
{
    struct places *p = arg;
    p->measured += !run->warmup && run->state != RUN_REPLACED;
    p->warmups += run->warmup;
    return 0;
}

/* Each cell has as many places as its file says, whatever was replaced. */
static int check_cell(const struct model_cell *cell, void *arg)
{
    struct check *c = arg;
    static const struct places want[SWEEPS] = {{7, 1}, {9, 0}, {11, 2}};
    struct places have = {0, 0};
    size_t i = 0;
    while (c->s->sweeps[i] != cell->sweep) {
        i++;
    }
    cr_assert_eq(cell->state, CELL_OPEN);
    cr_assert_eq(store_runs_of_cell(c->s->rig->store, cell->id, count_place, &have), 0);
    cr_assert_eq(have.measured, want[i].measured, "seed %d", (int)c->seed);
    cr_assert_eq(have.warmups, want[i].warmups, "seed %d", (int)c->seed);
    return 0;
}

static void check_end(struct storm *s, uint64_t seed)
{
    for (size_t i = 0; i < SWEEPS; i++) {
        json_t *doc = rig_status(s->rig, s->sweeps[i]);
        size_t k;
        json_t *cell;
        json_array_foreach(json_object_get(doc, "cells"), k, cell)
        {
            cr_assert_eq(json_int(cell, "have", -1) + json_int(cell, "failed", -1),
                         json_int(cell, "wanted", -2), "seed %d, sweep %d, cell %d", (int)seed,
                         (int)i, (int)k);
        }
        json_decref(doc);
        struct check c = {.s = s, .seed = seed};
        cr_assert_eq(store_cells_each(s->rig->store, s->sweeps[i], 0, check_cell, &c), 0);
        cr_assert_eq(rig_count(s->rig, s->sweeps[i], RUN_QUEUED, false), 0);
        cr_assert_eq(rig_count(s->rig, s->sweeps[i], RUN_RUNNING, false), 0);
    }
}

Test(random, storms_lose_nothing_and_count_nothing_twice)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct storm s = {.rig = rig_new()};
        prng_init(&s.g, seed);
        for (int i = 0; i < HOSTS; i++) {
            char name[8];
            snprintf(name, sizeof(name), "h%d", i);
            struct rig_worker *w = rig_host(s.rig, name, "all", 4000, 0);
            w->room = (uint32_t)below(&s, 3);
            if (i >= 2) {
                snprintf(w->boot, sizeof(w->boot), "boot-of-both"); /* one machine */
            }
            if (i < HOSTS - 1) {
                rig_up(s.rig, w);
            }
        }
        for (int i = 0; i < STEPS; i++) {
            step(&s);
            if (i % 100 == 0) {
                check_all(&s, seed);
            }
        }
        calm(&s);
        drain(&s, seed);
        check_all(&s, seed);
        check_end(&s, seed);
        rig_free(&s.rig);
    }
}

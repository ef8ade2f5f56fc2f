/* rig.c: the planner's surroundings for tests. */
#include "tests/unit/coordinator/plan/rig.h"

#include "common/err.h"
#include "common/mem.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/runs.h"
#include "coordinator/store/sweeps.h"
#include "tests/harness/place.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- what the planner asks of its surroundings --- */

static struct rig_worker *find_worker(struct rig *rig, int64_t host)
{
    for (size_t i = 0; i < rig->worker_count; i++) {
        if (rig->workers[i].id == host) {
            return &rig->workers[i];
        }
    }
    cr_assert_fail("a message for host %d, which is none", (int)host);
    return NULL;
}

static struct rig_message *put_message(struct rig *rig, int64_t host, int64_t run, uint32_t attempt)
{
    struct rig_worker *w = find_worker(rig, host);
    cr_assert(w->up, "a message for %s, whose link is down", w->name);
    cr_assert_lt(w->wire_count, RIG_WIRE);
    struct rig_message *m = &w->wire[w->wire_count++];
    memset(m, 0, sizeof(*m));
    m->run = run;
    m->attempt = attempt;
    return m;
}

static void op_assign(void *arg, const struct plan_assignment *a)
{
    struct rig *rig = arg;
    struct rig_message *m = put_message(rig, a->host, a->run, a->attempt);
    m->kind = RIG_ASSIGN;
    m->jobs = a->cell->jobs;
    m->warmup = a->warmup;
    m->fresh_warmup = a->fresh_warmup;
    m->cell = a->cell->id;
    m->slot = a->slot;
    m->block = a->block;
    snprintf(m->setup, sizeof(m->setup), "%s",
             a->workload->setup != NULL ? a->workload->setup : "");
    cr_assert(a->sweep != NULL && a->workload->run != NULL && a->variant->name != NULL);
    rig->assigned++;
}

static void op_withdraw(void *arg, int64_t host, int64_t run, uint32_t attempt)
{
    put_message(arg, host, run, attempt)->kind = RIG_WITHDRAW;
}

static void op_cancel(void *arg, int64_t host, int64_t run, uint32_t attempt, const char *text)
{
    cr_assert(text != NULL);
    put_message(arg, host, run, attempt)->kind = RIG_CANCEL;
}

static void op_away_ok(void *arg, int64_t host, int64_t run, uint32_t attempt)
{
    put_message(arg, host, run, attempt)->kind = RIG_AWAY_OK;
}

static int op_event(void *arg, const struct model_event *event)
{
    struct rig *rig = arg;
    buf_printf(&rig->events, "%s: %s\n", model_event_word((int)event->kind), event->text);
    return rig->event_code;
}

static void give_rev(struct rig *rig, uint64_t ticket, const char *text)
{
    struct spec_rev rev = {.size = 1000, .subject = "a change"};
    unsigned h = 5381;
    for (const char *p = text; *p != '\0'; p++) {
        h = h * 33 + (unsigned char)*p;
    }
    snprintf(rev.commit, sizeof(rev.commit), "%040x", h);
    snprintf(rev.tree, sizeof(rev.tree), "%040x", h + 1);
    plan_resolved(rig->plan, rig->now, ticket, 0, &rev, 1, NULL);
}

static int op_resolve(void *arg, uint64_t ticket, const struct spec_expr *expr, bool archive,
                      struct diag *diag)
{
    struct rig *rig = arg;
    (void)diag;
    if (rig->resolve_at_once) {
        give_rev(rig, ticket, expr->text);
        return 0;
    }
    cr_assert_lt(rig->ask_count, RIG_ASKS);
    struct rig_look_up *ask = &rig->asks[rig->ask_count++];
    ask->ticket = ticket;
    ask->archive = archive;
    snprintf(ask->path, sizeof(ask->path), "%s", expr->source.path);
    snprintf(ask->text, sizeof(ask->text), "%s", expr->text != NULL ? expr->text : "");
    return 0;
}

static void op_resolve_cancel(void *arg, uint64_t ticket)
{
    struct rig *rig = arg;
    (void)ticket;
    rig->cancelled_asks++;
}

static uint64_t op_random(void *arg)
{
    struct rig *rig = arg;
    return ++rig->random * 77;
}

static const struct plan_ops plan_ops = {.assign = op_assign,
                                         .withdraw = op_withdraw,
                                         .cancel = op_cancel,
                                         .away_ok = op_away_ok,
                                         .event = op_event,
                                         .resolve = op_resolve,
                                         .resolve_cancel = op_resolve_cancel,
                                         .random = op_random};

static bool op_out_of_order(void *arg, int64_t run, uint32_t attempt)
{
    struct rig *rig = arg;
    return plan_out_of_order(rig->plan, run, attempt);
}

static int op_whole(void *arg, int64_t host, const struct model_attempt *attempt)
{
    struct rig *rig = arg;
    return plan_attempt_whole(rig->plan, rig->now, host, attempt);
}

static int op_rejected(void *arg, int64_t host, int64_t run, uint32_t attempt, const char *why)
{
    struct rig *rig = arg;
    return plan_attempt_rejected(rig->plan, rig->now, host, run, attempt, why);
}

static const struct ingest_ops ingest_ops = {.out_of_order = op_out_of_order,
                                             .whole = op_whole,
                                             .rejected = op_rejected,
                                             .event = op_event};

/* --- the coordinator --- */

static void start(struct rig *rig)
{
    struct diag *diag = diag_new(8);
    cr_assert_eq(store_open(rig->path, NULL, STORE_ALONE, &rig->store, diag), 0, "%s",
                 diag_first(diag));
    cr_assert_eq(plan_new(rig->store, &plan_ops, rig, &rig->conf, rig->now, &rig->plan, diag), 0,
                 "%s", diag_first(diag));
    rig->ingest = ingest_new(rig->store, &ingest_ops, rig);
    diag_free(&diag);
}

static void stop(struct rig *rig)
{
    plan_free(&rig->plan);
    ingest_free(&rig->ingest);
    store_rollback(rig->store);
    store_close(&rig->store);
}

struct rig *rig_new(void)
{
    struct rig *rig = mem_xzalloc(sizeof(*rig));
    place_new_dir(rig->dir, sizeof(rig->dir), "plan-rig");
    snprintf(rig->path, sizeof(rig->path), "%s/db", rig->dir);
    rig->conf = (struct plan_conf)PLAN_CONF_DEFAULT;
    rig->now = (struct plan_now){1000 * CLOCK_SEC, INT64_C(1800000000) * CLOCK_SEC};
    start(rig);
    return rig;
}

void rig_free(struct rig **out)
{
    struct rig *rig = *out;
    char file[300];
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    stop(rig);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        snprintf(file, sizeof(file), "%s%s", rig->path, ends[i]);
        unlink(file);
    }
    rmdir(rig->dir);
    buf_fini(&rig->events);
    free(rig);
    *out = NULL;
}

int rig_turn(struct rig *rig)
{
    struct diag *diag = diag_new(2);
    rig->next = plan_turn(rig->plan, rig->now);
    int rc = plan_failed(rig->plan);
    if (rc == 0) {
        rc = store_commit(rig->store, diag);
    }
    diag_free(&diag);
    if (rc < 0) {
        rig_roll_back(rig, rc);
        return rc;
    }
    ingest_committed(rig->ingest);
    plan_committed(rig->plan);
    return 0;
}

void rig_roll_back(struct rig *rig, int code)
{
    store_rollback(rig->store);
    ingest_rolled_back(rig->ingest);
    cr_assert_eq(plan_rolled_back(rig->plan, rig->now, code), 0);
    /* As the owner does: links are closed, what that writes is lost too. */
    for (size_t i = 0; i < rig->worker_count; i++) {
        rig_down(rig, &rig->workers[i]);
    }
    store_rollback(rig->store);
}

void rig_pass(struct rig *rig, int64_t ns)
{
    rig->now.mono_ns += ns;
    rig->now.wall_ns += ns;
    cr_assert_eq(rig_turn(rig), 0);
}

void rig_crash(struct rig *rig)
{
    stop(rig);
    for (size_t i = 0; i < rig->worker_count; i++) {
        rig->workers[i].up = false;
        rig->workers[i].wire_count = 0;
    }
    rig->ask_count = 0;
    rig->now.mono_ns = 5 * CLOCK_SEC; /* another boot's clock, perhaps */
    start(rig);
}

struct rig_worker *rig_host(struct rig *rig, const char *name, const char *classes,
                            int64_t cpus_milli, int64_t memory_bytes)
{
    cr_assert_lt(rig->worker_count, RIG_HOSTS);
    struct rig_worker *w = &rig->workers[rig->worker_count++];
    const char *list[8];
    char copy[128];
    char *save = NULL;
    size_t n = 0;
    memset(w, 0, sizeof(*w));
    snprintf(copy, sizeof(copy), "%s", classes);
    for (char *p = strtok_r(copy, " ", &save); p != NULL; p = strtok_r(NULL, " ", &save)) {
        list[n++] = p;
    }
    snprintf(w->name, sizeof(w->name), "%s", name);
    snprintf(w->boot, sizeof(w->boot), "boot-of-%s", name);
    w->room = 1;
    struct model_host row = {.name = w->name,
                             .state = HOST_ACTIVE,
                             .classes = list,
                             .class_count = n,
                             .key_hash = w->name,
                             .cpus_milli = cpus_milli,
                             .memory_bytes = memory_bytes,
                             .joined_wall_ns = rig->now.wall_ns};
    cr_assert_eq(store_host_insert(rig->store, &row, &w->id), 0);
    cr_assert_eq(rig_turn(rig), 0);
    return w;
}

/* --- requests --- */

static void on_answer(void *arg, const struct plan_answer *a)
{
    struct rig_answer *out = arg;
    cr_assert(!out->given, "answered twice");
    *out = (struct rig_answer){
        true, a->code, a->exit, a->sweep, mem_xstrdup(a->body), mem_xstrdup(a->talk)};
}

void rig_answer_free(struct rig_answer *answer)
{
    free(answer->body);
    free(answer->talk);
    memset(answer, 0, sizeof(*answer));
}

struct rig_answer rig_submit(struct rig *rig, const struct plan_request *request)
{
    struct rig_answer answer = {.given = false};
    uint64_t ticket = plan_submit(rig->plan, rig->now, request, on_answer, &answer);
    cr_assert_gt(ticket, 0);
    cr_assert(!answer.given, "answered within the call");
    cr_assert_eq(rig_turn(rig), 0);
    if (!answer.given) {
        for (size_t i = 0; i < rig->ask_count; i++) {
            rig_resolve(rig, i, 0, NULL);
        }
        cr_assert_eq(rig_turn(rig), 0);
    }
    rig->ask_count = 0;
    cr_assert(answer.given);
    return answer;
}

void rig_resolve(struct rig *rig, size_t ask, int code, const char *text)
{
    if (code == 0) {
        give_rev(rig, rig->asks[ask].ticket, rig->asks[ask].text);
    } else {
        plan_resolved(rig->plan, rig->now, rig->asks[ask].ticket, code, NULL, 0, text);
    }
}

int64_t rig_sweep(struct rig *rig, const char *text)
{
    struct plan_request request = {
        .action = PLAN_RUN, .file = "test.yaml", .text = text, .size = strlen(text), .who = "op"};
    struct rig_answer answer = rig_submit(rig, &request);
    cr_assert_eq(answer.code, 0, "%s", answer.talk);
    int64_t id = answer.sweep;
    rig_answer_free(&answer);
    return id;
}

/* --- reading --- */

struct model_run rig_run(struct rig *rig, int64_t id)
{
    struct mem_arena *arena = mem_arena_new(0);
    struct model_run run;
    cr_assert_eq(store_run_get(rig->store, id, arena, &run), 0);
    run.reason = NULL;
    mem_arena_free(&arena);
    return run;
}

struct counter {
    enum run_state state;
    bool warmup;
    int64_t n;
};

static int count(const struct model_run *run, void *arg)
{
    struct counter *c = arg;
    c->n += run->state == c->state && run->warmup == c->warmup;
    return 0;
}

int64_t rig_count(struct rig *rig, int64_t sweep, enum run_state state, bool warmup)
{
    struct counter c = {state, warmup, 0};
    cr_assert_eq(store_runs_of_sweep(rig->store, sweep, count, &c), 0);
    return c.n;
}

json_t *rig_status(struct rig *rig, int64_t sweep)
{
    char ref[32];
    struct buf out = BUF_INIT;
    struct diag *diag = diag_new(4);
    snprintf(ref, sizeof(ref), "%" PRId64, sweep);
    int rc;
    do {
        rc = plan_status_sweep(rig->plan, rig->now, ref, &out, diag);
        rig->status_calls++;
    } while (rc > 0);
    cr_assert_eq(rc, 0, "%s", diag_first(diag));
    json_t *doc = json_parse("status", buf_str(&out), out.len, diag);
    cr_assert(doc != NULL, "%s", diag_first(diag));
    buf_fini(&out);
    diag_free(&diag);
    return doc;
}

enum sweep_state rig_state(struct rig *rig, int64_t sweep)
{
    struct mem_arena *arena = mem_arena_new(0);
    struct model_sweep row;
    cr_assert_eq(store_sweep_get(rig->store, sweep, arena, &row), 0);
    enum sweep_state state = row.state;
    mem_arena_free(&arena);
    return state;
}

/* --- a fleet of five, and requests of it --- */

struct rig *rig_fleet(void)
{
    struct rig *rig = rig_new();
    rig_host(rig, "quad1", "quad-core all", 4000, INT64_C(8) << 30);
    rig_host(rig, "quad2", "quad-core all", 4000, INT64_C(8) << 30);
    rig_host(rig, "many", "many-core all", 48000, INT64_C(256) << 30);
    rig_host(rig, "p6", "p6 all", 2000, INT64_C(64) << 20);
    rig_host(rig, "new", "fresh", 0, 0);
    return rig;
}

struct plan_request rig_request(enum plan_action action, const char *text)
{
    return (struct plan_request){
        .action = action, .file = "f.yaml", .text = text, .size = strlen(text), .who = "op"};
}

struct rig_answer rig_ask(struct rig *rig, enum plan_action action, const char *text)
{
    struct plan_request r = rig_request(action, text);
    return rig_submit(rig, &r);
}

static int count_sweep(const struct model_sweep *row, void *arg)
{
    int *n = arg;
    (void)row;
    (*n)++;
    return 0;
}

int rig_sweeps(struct rig *rig)
{
    int n = 0;
    cr_assert_eq(store_sweeps_each(rig->store, NULL, count_sweep, &n), 0);
    return n;
}

struct rig_worker *rig_one_host(struct rig **rig, uint32_t room)
{
    *rig = rig_new();
    struct rig_worker *w = rig_host(*rig, "alpha", "p6", 4000, INT64_C(1) << 30);
    w->room = room;
    rig_up(*rig, w);
    return w;
}

int64_t rig_held_run(struct rig *rig, struct rig_worker *w)
{
    rig_settle(rig);
    cr_assert(rig_head(w) != NULL);
    return rig_head(w)->order.run;
}

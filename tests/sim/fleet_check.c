/* fleet_check.c: what must hold in a simulated fleet after every turn, and at its end.
 *
 * Looked at: what workers and operator were told (ACK, REPLY), what lies in each spool, the rows of
 * the coordinator, and which commands really ran (fleet_run_at()). */
#include "common/err.h"
#include "common/jobs.h"
#include "common/mem.h"
#include "common/str.h"
#include "coordinator/coord.h"
#include "coordinator/model.h"
#include "coordinator/store/attempts.h"
#include "coordinator/store/load.h"
#include "coordinator/store/store.h"
#include "proto/msg.h"
#include "tests/sim/fleet.h"
#include "tests/sim/sim.h"
#include "worker/agent.h"
#include "worker/agent_int.h"
#include "worker/run/journal.h"
#include "worker/run/spool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SWEEP 1 /* the id of the first sweep */

/* Commits from one look at all rows to the next: what is wrong in them stays wrong. */
#define ROWS_INTERVAL 16

/* What somebody has been promised of an attempt. */
struct promise {
    uint64_t run;
    uint32_t attempt;
    unsigned worker;
    bool spooled;   /* it lay whole in the worker's spool */
    bool delivered; /* the worker was told that all of it is committed */
    bool taken;     /* the worker has said that it holds the assignment */
    bool released;  /* and that was taken back */
    uint32_t acked; /* so many records are */
};

struct fleet_check {
    struct fleet *fleet;
    struct promise *list;
    size_t count, room;
    unsigned coord_starts; /* of the last look at all promises */
    uint64_t commits;      /* of the last look at the rows */
    uint64_t interval;     /* commits between two looks */
    bool over;
};

struct fleet_check *fleet_check_new(struct fleet *fleet)
{
    struct fleet_check *c = mem_xzalloc(sizeof(*c));
    c->fleet = fleet;
    c->interval = ROWS_INTERVAL;
    return c;
}

void fleet_check_free(struct fleet_check **check)
{
    if (*check == NULL) {
        return;
    }
    free((*check)->list);
    free(*check);
    *check = NULL;
}

static struct promise *known(struct fleet_check *c, uint64_t run, uint32_t attempt)
{
    for (size_t i = c->count; i > 0; i--) {
        if (c->list[i - 1].run == run && c->list[i - 1].attempt == attempt) {
            return &c->list[i - 1];
        }
    }
    return NULL;
}

static struct promise *promise_of(struct fleet_check *c, uint64_t run, uint32_t attempt,
                                  unsigned worker)
{
    struct promise *there = known(c, run, attempt);
    if (there != NULL) {
        if (there->worker != worker) {
            fleet_fail(c->fleet, "run %" PRIu64 " attempt %" PRIu32 " at w%u and at w%u", run,
                       attempt, there->worker + 1, worker + 1);
        }
        return there;
    }
    if (c->count == c->room) {
        c->room = c->room > 0 ? c->room * 2 : 128;
        c->list = mem_xrealloc(c->list, c->room, sizeof(c->list[0]));
    }
    struct promise *p = &c->list[c->count++];
    *p = (struct promise){.run = run, .attempt = attempt, .worker = worker};
    return p;
}

/* --- promises --- */

/* The coordinator's store, in its context; NULL while it is down. */
static struct store *enter_store(struct fleet_check *c)
{
    struct coord *coord = fleet_coord(c->fleet);
    if (coord == NULL) {
        return NULL;
    }
    sim_enter(fleet_coordinator(c->fleet));
    return coord_store(coord);
}

static void check_kept(struct fleet_check *c, struct store *store, const struct promise *p)
{
    struct store_intake intake = {0};
    int rc = store_intake_get(store, (int64_t)p->run, p->attempt, &intake);
    if (p->acked > 0 && (rc != 0 || intake.next_seq < p->acked)) {
        fleet_fail(c->fleet,
                   "%" PRIu32 " records of run %" PRIu64 " attempt %" PRIu32
                   " were acknowledged, %" PRIu32 " are there",
                   p->acked, p->run, p->attempt, rc != 0 ? 0 : intake.next_seq);
    }
    if (p->delivered && (rc != 0 || !intake.whole)) {
        fleet_fail(c->fleet,
                   "run %" PRIu64 " attempt %" PRIu32 " was acknowledged as whole and is not",
                   p->run, p->attempt);
    }
}

static void hear(struct fleet_check *c, unsigned worker, const struct rec_acked *list, size_t n)
{
    struct node *before = sim_here();
    struct store *store = enter_store(c);
    for (size_t i = 0; i < n; i++) {
        struct promise *p = promise_of(c, list[i].run, list[i].attempt, worker);
        p->acked = list[i].seq > p->acked ? list[i].seq : p->acked;
        p->delivered = p->delivered || list[i].whole;
        if (store != NULL) {
            check_kept(c, store, p);
        }
    }
    sim_enter(before);
}

static void release(struct fleet_check *c, uint64_t run, uint32_t attempt)
{
    struct promise *p = known(c, run, attempt);
    if (p != NULL) {
        p->released = true;
    }
}

static void worker_hears(struct fleet_check *c, unsigned worker, const struct msg *msg)
{
    switch (msg->type) {
    case MSG_ASSIGN:
        promise_of(c, msg->u.assign.run, msg->u.assign.attempt, worker);
        break;
    case MSG_ACK:
        hear(c, worker, msg->u.ack.acked, msg->u.ack.acked_count);
        break;
    case MSG_WELCOME:
        hear(c, worker, msg->u.welcome.acked, msg->u.welcome.acked_count);
        break;
    case MSG_WITHDRAW:
        release(c, msg->u.withdraw.run, msg->u.withdraw.attempt);
        break;
    case MSG_CANCEL:
        release(c, msg->u.cancel.run, msg->u.cancel.attempt);
        break;
    default:
        break;
    }
}

void fleet_check_heard(struct fleet_check *check, struct node *node, const struct msg *msg)
{
    unsigned worker = fleet_index(check->fleet, node);
    if (worker < fleet_workers(check->fleet)) {
        worker_hears(check, worker, msg);
    } else if (msg->type == MSG_TAKEN) {
        struct promise *p = known(check, msg->u.taken.run, msg->u.taken.attempt);
        if (p == NULL) {
            fleet_fail(check->fleet, "run %" PRIu64 " is taken by nobody", msg->u.taken.run);
        } else {
            p->taken = true;
        }
    } else if (msg->type == MSG_REFUSED) {
        release(check, msg->u.refused.run, msg->u.refused.attempt);
    }
}

static bool is_held(const struct agent *agent, const struct promise *p)
{
    const struct journal_running *running = journal_running(agent->journal);
    if (running != NULL && running->assign->run == p->run &&
        running->assign->attempt == p->attempt) {
        return true;
    }
    for (size_t i = 0; i < journal_queued(agent->journal); i++) {
        const struct msg_assign *a = journal_at(agent->journal, i);
        if (a->run == p->run && a->attempt == p->attempt) {
            return true;
        }
    }
    return false;
}

/* What was taken is held until it is spooled or taken back; what lies in a spool once stays there
 * until it is delivered. */
static void check_spools(struct fleet_check *c)
{
    for (unsigned i = 0; i < fleet_workers(c->fleet); i++) {
        struct agent *agent = fleet_agent(c->fleet, i);
        size_t n = agent != NULL ? agent_spooled(agent) : 0;
        for (size_t k = 0; k < n; k++) {
            const struct spool_entry *e = spool_at(agent->spool, k);
            promise_of(c, e->run, e->attempt, i)->spooled = true;
        }
    }
    for (size_t i = 0; i < c->count; i++) {
        const struct promise *p = &c->list[i];
        struct agent *agent = fleet_agent(c->fleet, p->worker);
        if (agent == NULL || p->delivered || !(p->spooled || p->taken) ||
            spool_find(agent->spool, p->run, p->attempt, 0) < spool_count(agent->spool)) {
            continue;
        }
        if (p->spooled) {
            fleet_fail(c->fleet,
                       "run %" PRIu64 " attempt %" PRIu32
                       " was in the spool of w%u, was not delivered, and is gone",
                       p->run, p->attempt, p->worker + 1);
        } else if (!p->released && !is_held(agent, p)) {
            fleet_fail(c->fleet,
                       "w%u has taken attempt %" PRIu32 " of run %" PRIu64 ", and does not have it",
                       p->worker + 1, p->attempt, p->run);
        }
    }
}

/* --- rows --- */

struct rows {
    struct fleet *fleet;
    struct mem_arena *arena;
    struct model_sweep_data data;
};

static const struct model_cell *cell_of(const struct rows *r, int64_t id)
{
    for (size_t i = 0; i < r->data.cell_count; i++) {
        if (r->data.cells[i].id == id) {
            return &r->data.cells[i];
        }
    }
    return NULL;
}

static unsigned worker_of(const struct rows *r, int64_t host)
{
    for (size_t i = 0; i < r->data.host_count; i++) {
        for (unsigned k = 0; r->data.hosts[i].id == host && k < fleet_workers(r->fleet); k++) {
            if (str_eq(r->data.hosts[i].name, node_name(fleet_worker(r->fleet, k)))) {
                return k;
            }
        }
    }
    return fleet_workers(r->fleet);
}

static const char *variant_of(const struct rows *r, int64_t id)
{
    for (size_t i = 0; i < r->data.variant_count; i++) {
        if (r->data.variants[i].id == id) {
            return r->data.variants[i].name;
        }
    }
    return "";
}

/* An attempt with a time is filed where its command ran, and as what it was. */
static void check_filed(const struct rows *r, const struct model_attempt *a)
{
    const struct model_cell *cell = cell_of(r, a->cell);
    if (cell == NULL || !a->start_wall_ns.has || !a->real_ns.has) {
        if (cell == NULL) {
            fleet_fail(r->fleet, "run %" PRId64 " has no cell", a->run);
        }
        return;
    }
    unsigned worker = worker_of(r, cell->host);
    const struct fleet_run *run = fleet_run_find(r->fleet, worker, a->start_wall_ns.v);
    char jobs[16];
    jobs_text(jobs, sizeof(jobs), cell->jobs);
    if (run == NULL) {
        fleet_fail(r->fleet, "run %" PRId64 " attempt %" PRIu32 " never ran at w%u", a->run,
                   a->attempt, worker + 1);
    } else if (run->run != (uint64_t)a->run || run->attempt != a->attempt) {
        fleet_fail(r->fleet, "run %" PRIu64 " is filed as run %" PRId64, run->run, a->run);
    } else if (!str_eq(run->variant, variant_of(r, cell->variant))) {
        fleet_fail(r->fleet, "run %" PRId64 ": variant %s is filed as %s", a->run, run->variant,
                   variant_of(r, cell->variant));
    } else if (!str_eq(run->jobs[0] != '\0' ? run->jobs : "none", jobs)) {
        fleet_fail(r->fleet, "run %" PRId64 ": jobs %s are filed as %s", a->run, run->jobs, jobs);
    } else if (!str_eq(run->boot_id, a->boot_id)) {
        fleet_fail(r->fleet, "run %" PRId64 " is filed under another boot", a->run);
    } else if (a->outcome == OUTCOME_OK && run->exit_status != 0) {
        fleet_fail(r->fleet, "run %" PRId64 " failed and is filed as ok", a->run);
    }
}

/* A run counts at most one attempt, which is clean. */
static void check_run(const struct rows *r, const struct model_run *run,
                      const struct model_attempt *a, size_t n)
{
    unsigned clean = 0;
    bool counted = false;
    for (size_t i = 0; i < n; i++) {
        bool ok = a[i].outcome == OUTCOME_OK && !a[i].warmup && !run->warmup;
        clean += ok;
        counted = counted || (ok && a[i].attempt == run->counted);
        check_filed(r, &a[i]);
        if (a[i].cell != run->cell) {
            fleet_fail(r->fleet, "an attempt of run %" PRId64 " is in another cell", run->id);
        }
    }
    if (model_run_word((int)run->state) == NULL) {
        fleet_fail(r->fleet, "run %" PRId64 " is in state %d", run->id, (int)run->state);
    }
    if (run->warmup) {
        return;
    }
    if (clean > 1) {
        fleet_fail(r->fleet, "run %" PRId64 " counts %u attempts", run->id, clean);
    }
    if (run->counted != 0 && !counted) {
        fleet_fail(r->fleet, "run %" PRId64 " counts attempt %" PRIu32 ", which is not clean",
                   run->id, run->counted);
    }
    if (clean > 0 && run->counted == 0 && run->state != RUN_REPLACED) {
        fleet_fail(r->fleet, "run %" PRId64 " has a clean attempt and counts none", run->id);
    }
}

static void check_all_runs(const struct rows *r)
{
    for (size_t i = 0; i < r->data.run_count; i++) {
        const struct model_run *run = &r->data.runs[i];
        size_t from = 0;
        while (from < r->data.attempt_count && r->data.attempts[from].run != run->id) {
            from++;
        }
        size_t n = 0;
        while (from + n < r->data.attempt_count && r->data.attempts[from + n].run == run->id) {
            n++;
        }
        check_run(r, run, r->data.attempts + from, n);
    }
}

/* False: the sweep is not there. */
static bool load(struct fleet_check *c, struct rows *r)
{
    struct store *store = enter_store(c);
    r->fleet = c->fleet;
    r->arena = mem_arena_new(0);
    int rc = store != NULL ? store_load_sweep(store, SWEEP, r->arena, &r->data) : -ERR_CLOSED;
    sim_enter(NULL);
    if (rc != 0 && rc != -ERR_NOTFOUND && rc != -ERR_CLOSED) {
        fleet_fail(c->fleet, "the rows cannot be read: %s", err_text(rc));
    }
    if (rc == -ERR_NOTFOUND && fleet_is_accepted(c->fleet)) {
        fleet_fail(c->fleet, "the sweep was accepted and is not there");
    }
    return rc == 0;
}

void fleet_check_rows(struct fleet_check *check)
{
    struct rows r;
    if (load(check, &r)) {
        check_all_runs(&r);
        check->over = model_sweep_is_end((int)r.data.sweep.state);
    }
    mem_arena_free(&r.arena);
}

void fleet_check_often(struct fleet_check *check)
{
    check->interval = 1;
}

static void check_promises(struct fleet_check *c)
{
    struct store *store = enter_store(c);
    for (size_t i = 0; i < c->count && store != NULL; i++) {
        check_kept(c, store, &c->list[i]);
    }
    sim_enter(NULL);
}

void fleet_check_turn(struct fleet_check *check)
{
    struct coord *coord = fleet_coord(check->fleet);
    check_spools(check);
    if (coord == NULL) {
        return;
    }
    unsigned starts = node_starts(fleet_coordinator(check->fleet));
    uint64_t commits = store_commits(coord_store(coord));
    if (starts != check->coord_starts) {
        check_promises(check);
    }
    if (starts != check->coord_starts || commits >= check->commits + check->interval) {
        fleet_check_rows(check);
        check->coord_starts = starts;
        check->commits = commits;
    }
}

bool fleet_check_is_over(struct fleet_check *check)
{
    struct coord *coord = fleet_coord(check->fleet);
    if (coord == NULL) {
        return false;
    }
    uint64_t commits = store_commits(coord_store(coord));
    if (commits != check->commits) {
        check->commits = commits;
        fleet_check_rows(check);
    }
    return check->over;
}

/* --- the end --- */

static void check_delivered(struct fleet_check *c)
{
    for (unsigned i = 0; i < fleet_workers(c->fleet); i++) {
        struct agent *agent = fleet_agent(c->fleet, i);
        if (agent == NULL) {
            fleet_fail(c->fleet, "w%u is down at the end", i + 1);
        } else if (agent_spooled(agent) > 0) {
            fleet_fail(c->fleet, "%zu attempts are never delivered by w%u", agent_spooled(agent),
                       i + 1);
        }
    }
    for (size_t i = 0; i < c->count; i++) {
        if (c->list[i].spooled && !c->list[i].delivered) {
            fleet_fail(c->fleet, "run %" PRIu64 " attempt %" PRIu32 " is not delivered",
                       c->list[i].run, c->list[i].attempt);
        }
    }
}

void fleet_check_end(struct fleet_check *check)
{
    struct rows r;
    check_promises(check);
    check_delivered(check);
    if (load(check, &r)) {
        check_all_runs(&r);
        for (size_t i = 0; i < r.data.run_count; i++) {
            const struct model_run *run = &r.data.runs[i];
            if (!model_run_is_end((int)run->state)) {
                fleet_fail(check->fleet, "run %" PRId64 " is %s at the end", run->id,
                           model_run_word((int)run->state));
            }
        }
        if (r.data.run_count == 0) {
            fleet_fail(check->fleet, "there are no runs");
        }
    } else {
        fleet_fail(check->fleet, "there is no sweep at the end");
    }
    mem_arena_free(&r.arena);
}

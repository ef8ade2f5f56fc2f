/* scenario_test.c: three workers, one coordinator, one operator; a sweep of two variants at job
 * counts none, 1 and 2, three runs each, and in its course: links cut while something is timed, a
 * worker that dies while it times, a coordinator that dies between its commit and the ACK, crashes
 * at any other effect; disks that are full for a while, wall clocks that are set forward and back.
 * Everything restarts, and the sweep ends.
 *
 * MAKESPAN_SEED=n replays one seed and prints its trace; MAKESPAN_SEEDS=n plays the first n, and
 * with MAKESPAN_STOP=1 ends at the first failure. That faults are found: tests/sim/faults.sh. */
#include "common/attr.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/prng.h"
#include "common/str.h"
#include "tests/sim/disk.h"
#include "tests/sim/fleet.h"
#include "tests/sim/fleet_int.h"
#include "tests/sim/world.h"
#include "worker/agent.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Under the sanitizers each takes several times as long. */
#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#define ADDRESS_SANITIZER __has_feature(address_sanitizer)
#else
#define ADDRESS_SANITIZER 0
#endif
enum { SEEDS = ADDRESS_SANITIZER ? 40 : 200 };
enum { WORKERS = 3 };

#define LIMIT (6 * CLOCK_HOUR) /* of virtual time; a sweep without faults takes some minutes */

#define BUILD                                                                                      \
    "sweep: sim\n"                                                                                 \
    "workload:\n"                                                                                  \
    "  name: build\n"                                                                              \
    "  source: {archive: src.tar}\n"                                                               \
    "  setup: configure\n"                                                                         \
    "  reset: clean\n"                                                                             \
    "  run: build $JFLAG\n"                                                                        \
    "  check: test -s out\n"                                                                       \
    "variants:\n"                                                                                  \
    "  - {name: old, env: {OPT: \"-O0\"}}\n"                                                       \
    "  - {name: new, env: {OPT: \"-O2\"}}\n"

static const char SWEEP[] = BUILD "hosts: [w1, w2, w3]\n"
                                  "jobs: [none, 1, 2]\n"
                                  "repeat: {warmup: 1, until: 3}\n";

/* What goes wrong in one seed. Counts go down to 0: then it happens. */
struct plan {
    unsigned cut_in;          /* timed commands until the links of that worker are cut */
    unsigned worker_crash_in; /* timed commands until that worker crashes in the midst of it */
    enum sim_crash worker_crash;
    unsigned worker_left; /* crashes of that kind to come */
    unsigned ack_crash_in; /* ACKs until the coordinator crashes just before one */
    enum sim_crash ack_crash;
    unsigned ack_left;
    unsigned any_crash_in; /* effects until whoever has one crashes just before it */
    enum sim_crash any_crash;
    unsigned any_left; /* crashes of that kind to come */
    unsigned isolate;  /* percent of timed commands in which a worker is not reached for minutes */
    unsigned full_in;   /* timed commands until a disk, that worker's or the coordinator's, is full */
    unsigned full_left; /* times to come */
    unsigned step_in;   /* timed commands until a wall clock is set */
    unsigned filled, stepped; /* disks and clocks so far */
    unsigned happened;  /* faults so far, of every kind */
};

struct play {
    struct fleet *fleet;
    struct plan plan;
    struct target *targets;
};

/* What a fault of later happens to. Kept until the play ends, which may be before the fault. */
struct target {
    struct play *play;
    struct node *node;
    struct target *next;
};

static unsigned draw(struct play *p, int64_t low, int64_t high)
{
    return (unsigned)world_between(fleet_world(p->fleet), low, high);
}

static enum sim_crash draw_crash(struct play *p)
{
    return world_chance(fleet_world(p->fleet), 50) ? SIM_KILL : SIM_POWER;
}

static int64_t draw_pause(struct play *p)
{
    return world_chance(fleet_world(p->fleet), 50)
               ? world_between(fleet_world(p->fleet), CLOCK_MS, 2 * CLOCK_SEC)
               : world_between(fleet_world(p->fleet), CLOCK_SEC, 5 * CLOCK_MIN);
}

static void plan_faults(struct play *p)
{
    struct plan *plan = &p->plan;
    plan->cut_in = draw(p, 1, 20);
    plan->worker_crash_in = draw(p, 1, 40);
    plan->worker_crash = draw_crash(p);
    plan->worker_left = draw(p, 1, 4);
    plan->ack_crash_in = draw(p, 1, 40);
    plan->ack_crash = draw_crash(p);
    plan->ack_left = draw(p, 1, 6);
    plan->any_left = draw(p, 0, 6);
    plan->any_crash_in = draw(p, 1, 3000);
    plan->any_crash = draw_crash(p);
    plan->isolate = world_chance(fleet_world(p->fleet), 50) ? draw(p, 1, 10) : 0;
    plan->full_in = draw(p, 1, 40);
    plan->full_left = draw(p, 0, 3);
    plan->step_in = draw(p, 1, 40);
}

/* --- faults --- */

static void cut(void *arg)
{
    struct target *t = arg;
    node_cut(t->node);
}

static void crash(void *arg)
{
    struct target *t = arg;
    struct play *p = t->play;
    if (node_is_up(t->node)) {
        node_crash(t->node, p->plan.worker_crash);
        fleet_restart(p->fleet, t->node, draw_pause(p));
    }
}

static void reach_again(void *arg)
{
    struct target *t = arg;
    node_isolate(t->node, false);
}

static void make_room(void *arg)
{
    struct target *t = arg;
    disk_set_size(node_disk(t->node), UINT64_MAX);
    world_note(fleet_world(t->play->fleet), "the disk of %s has room", node_name(t->node));
}

/* From now on only so little more fits: a few records, or a part of one. */
static void fill_disk(void *arg)
{
    struct target *t = arg;
    struct world *w = fleet_world(t->play->fleet);
    struct disk *disk = node_disk(t->node);
    disk_set_size(disk, UINT64_MAX - 1); /* so that what is left says what is used */
    uint64_t used = UINT64_MAX - 1 - disk_left(disk);
    disk_set_size(disk, used + (uint64_t)world_between(w, 0, 20000));
    world_note(w, "the disk of %s is full", node_name(t->node));
    world_after(w, world_between(w, CLOCK_SEC, 10 * CLOCK_MIN), make_room, t);
}

/* By hours, either way. */
static void step_wall(void *arg)
{
    struct target *t = arg;
    struct world *w = fleet_world(t->play->fleet);
    node_step_wall(t->node, world_between(w, -3 * CLOCK_HOUR, 3 * CLOCK_HOUR));
}

static struct target *target_of(struct play *p, struct node *node)
{
    struct target *t = mem_xzalloc(sizeof(*t));
    t->play = p;
    t->node = node;
    t->next = p->targets;
    p->targets = t;
    return t;
}

static void free_targets(struct play *p)
{
    while (p->targets != NULL) {
        struct target *next = p->targets->next;
        free(p->targets);
        p->targets = next;
    }
}

/* In the context of the worker: what happens to it happens a little later. */
static void on_measuring(struct fleet *fleet, unsigned worker, void *arg)
{
    struct play *p = arg;
    struct plan *plan = &p->plan;
    struct node *node = fleet_worker(fleet, worker);
    struct world *w = fleet_world(fleet);
    if (plan->cut_in > 0 && --plan->cut_in == 0) {
        world_after(w, world_between(w, 0, 2 * CLOCK_SEC), cut, target_of(p, node));
        plan->cut_in = draw(p, 5, 30);
        plan->happened++;
    }
    if (plan->worker_left > 0 && --plan->worker_crash_in == 0) {
        plan->worker_left--;
        plan->worker_crash_in = draw(p, 1, 20);
        world_after(w, world_between(w, 0, 2 * CLOCK_SEC), crash, target_of(p, node));
        plan->happened++;
    }
    struct node *either = world_chance(w, 50) ? node : fleet_coordinator(fleet);
    if (plan->full_left > 0 && --plan->full_in == 0) {
        plan->full_left--;
        plan->full_in = draw(p, 1, 40);
        plan->filled++;
        world_after(w, world_between(w, 0, 2 * CLOCK_SEC), fill_disk, target_of(p, either));
        plan->happened++;
    }
    if (--plan->step_in == 0) {
        plan->step_in = draw(p, 10, 60);
        plan->stepped++;
        world_after(w, world_between(w, 0, 2 * CLOCK_SEC), step_wall, target_of(p, either));
        plan->happened++;
    }
    if (world_chance(w, plan->isolate)) {
        node_isolate(node, true);
        world_after(w, world_between(w, CLOCK_SEC, 10 * CLOCK_MIN), reach_again,
                    target_of(p, node));
        plan->happened++;
    }
}

static int on_effect(struct fleet *fleet, struct node *node, enum sim_effect effect,
                     const char *what, void *arg)
{
    struct play *p = arg;
    struct plan *plan = &p->plan;
    enum sim_crash how = 0;
    bool coordinator = node == fleet_coordinator(fleet);
    if (!coordinator && fleet_index(fleet, node) == fleet_workers(fleet)) {
        return 0; /* the operator */
    }
    if (coordinator && effect == SIM_SEND && str_eq(what, "ACK") && plan->ack_left > 0 &&
        --plan->ack_crash_in == 0) {
        how = plan->ack_crash;
        plan->ack_left--;
        plan->ack_crash_in = draw(p, 1, 20);
        plan->ack_crash = draw_crash(p);
    } else if (plan->any_left > 0 && --plan->any_crash_in == 0) {
        how = plan->any_crash;
        plan->any_left--;
        plan->any_crash_in = draw(p, 1, 3000);
        plan->any_crash = draw_crash(p);
    }
    if (how == 0) {
        return 0;
    }
    plan->happened++;
    fleet_restart(fleet, node, draw_pause(p));
    return (int)how;
}

static const struct fleet_ops OPS = {.measuring = on_measuring, .effect = on_effect};

/* --- one seed --- */

struct told {
    char failure[512];
    uint64_t hash;
    uint64_t turns;
    unsigned happened, filled, stepped;
    size_t runs;
    int64_t took_ns; /* virtual */
};

static bool all_idle(struct fleet *fleet)
{
    if (!fleet_is_content(fleet)) {
        return false;
    }
    for (unsigned i = 0; i < fleet_workers(fleet); i++) {
        struct agent *agent = fleet_agent(fleet, i);
        if (agent == NULL || agent_spooled(agent) > 0 || agent_phase(agent) != PHASE_IDLE) {
            return false;
        }
    }
    return true;
}

/* In every second seed hosts are lost soon and the operator asks for their runs again; in every
 * third some builds take longer than the coordinator waits for an assignment to be taken. */
static void vary(struct fleet_conf *conf)
{
    if (conf->seed % 4 >= 2) {
        conf->lost_after_ns = 3 * CLOCK_MIN;
        conf->retries = 3;
        conf->retry_pause_ns = 4 * CLOCK_MIN;
    }
    if (conf->seed % 3 == 0) {
        conf->build_high_ns = 150 * CLOCK_SEC;
    }
}

static void play_fleet(uint64_t seed, bool show, unsigned workers, const char *sweep,
                       struct told *out)
{
    struct play p = {0};
    struct fleet_conf conf = {.seed = seed,
                              .workers = workers,
                              .sweep = sweep,
                              .fail_percent = 3,
                              .build_low_ns = 500 * CLOCK_MS,
                              .build_high_ns = 20 * CLOCK_SEC,
                              .ops = &OPS,
                              .arg = &p};
    vary(&conf);
    struct fleet *fleet = p.fleet = fleet_new(&conf);
    struct world *w = fleet_world(fleet);
    world_show_trace(w, show);
    if (show) {
        fleet_check_often(fleet->check);
    }
    plan_faults(&p);
    fleet_start(fleet);
    while (fleet_failure(fleet)[0] == '\0' && world_now(w) < LIMIT && world_step(w)) {
        if (all_idle(fleet) && fleet_check_is_over(fleet->check)) {
            break;
        }
    }
    if (fleet_failure(fleet)[0] == '\0') {
        if (world_now(w) >= LIMIT) {
            fleet_fail(fleet, "the sweep does not end");
        }
        fleet_check_end(fleet->check);
    }
    str_copy(out->failure, sizeof(out->failure), fleet_failure(fleet));
    out->hash = world_hash(w);
    out->turns = world_turns(w);
    out->happened = p.plan.happened;
    out->filled = p.plan.filled;
    out->stepped = p.plan.stepped;
    out->runs = fleet_run_count(fleet);
    out->took_ns = world_now(w);
    fleet_free(&fleet);
    free_targets(&p);
}

static void play(uint64_t seed, bool show, struct told *out)
{
    play_fleet(seed, show, WORKERS, SWEEP, out);
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void quiet(void)
{
    cr_assert_eq(log_open("sim", getenv("MAKESPAN_SEED") == NULL ? "/dev/null" : NULL, LOG_ERROR),
                 0);
}

/* Plays `first`, and every second seed after it: two tests run beside each other. */
static void play_many(uint64_t first)
{
    uint64_t last = number_of("MAKESPAN_SEEDS", SEEDS);
    bool stop = number_of("MAKESPAN_STOP", 0) != 0;
    struct told o, sum = {0};
    unsigned count = 0;
    for (uint64_t seed = first; seed <= last; seed += 2) {
        play(seed, false, &o);
        cr_expect(o.failure[0] == '\0',
                  "seed %" PRIu64 ": %s\n    replay: MAKESPAN_SEED=%" PRIu64
                  " build/tests/sim/scenario_test",
                  seed, o.failure, seed);
        count++;
        sum.turns += o.turns;
        sum.happened += o.happened;
        sum.filled += o.filled;
        sum.stepped += o.stepped;
        sum.runs += o.runs;
        sum.took_ns += o.took_ns;
        if (stop && o.failure[0] != '\0') {
            return;
        }
    }
    fprintf(stderr,
            "%u sweeps, %u faults (%u full disks, %u clocks set), %zu timed commands, %" PRIu64 " turns, %" PRId64
            " s of virtual time\n",
            count, sum.happened, sum.filled, sum.stepped, sum.runs, sum.turns, sum.took_ns / CLOCK_SEC);
    cr_expect(sum.happened >= count, "each sweep has its faults");
    cr_expect(count < 10 || (sum.filled > 0 && sum.stepped > 0), "of every kind");
}

static void play_one(uint64_t seed)
{
    struct told o;
    play(seed, true, &o);
    cr_assert(o.failure[0] == '\0', "seed %" PRIu64 ": %s", seed, o.failure);
}

Test(scenario, a_sweep_ends_whatever_is_cut_killed_or_without_power, .init = quiet)
{
    uint64_t only = number_of("MAKESPAN_SEED", 0);
    if (only > 0) {
        play_one(only);
    } else {
        play_many(1);
    }
}

Test(scenario, other_seeds_too, .init = quiet)
{
    if (number_of("MAKESPAN_SEED", 0) == 0) {
        play_many(2);
    }
}

Test(scenario, the_same_seed_gives_the_same_trace, .init = quiet)
{
    struct told a, b, c;
    play(11, false, &a);
    play(11, false, &b);
    play(12, false, &c);
    cr_assert_eq(a.hash, b.hash);
    cr_assert_eq(a.turns, b.turns);
    cr_assert_neq(a.hash, c.hash);
}

Test(scenario, fifty_nodes_live_in_one_process, .init = quiet)
{
    struct told o;
    struct buf sweep = BUF_INIT;
    buf_add_str(&sweep, BUILD "jobs: [2]\nrepeat: {warmup: 1, until: 1}\nhosts: [w1");
    for (unsigned i = 2; i <= FLEET_WORKERS; i++) {
        buf_printf(&sweep, ", w%u", i);
    }
    buf_add_str(&sweep, "]\n");
    play_fleet(7, false, FLEET_WORKERS, buf_str(&sweep), &o);
    cr_assert(o.failure[0] == '\0', "%s", o.failure);
    cr_assert(o.runs >= 4 * FLEET_WORKERS, "%zu", o.runs);
    buf_fini(&sweep);
}

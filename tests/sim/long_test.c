/* long_test.c: a build of two hours whose link is cut: the worker dials while it is timed, rarely, and
 * the run is made once and counts. */
#include "common/clock.h"
#include "common/log.h"
#include "tests/sim/fleet.h"
#include "tests/sim/fleet_int.h"
#include "tests/sim/world.h"
#include "worker/agent.h"

#include <criterion/criterion.h>

static const char SWEEP[] = "sweep: long\n"
                            "workload:\n"
                            "  name: build\n"
                            "  source: {archive: src.tar}\n"
                            "  run: build $JFLAG\n"
                            "  timeout: {run: 6h}\n"
                            "hosts: [w1]\n"
                            "jobs: [2]\n"
                            "repeat: {warmup: 0, until: 1}\n";

struct story {
    struct fleet *fleet;
    int64_t cut_after_ns;
    int64_t cut_ns;  /* when the link was cut; 0: not yet */
    int64_t down_ns; /* when the worker knew; 0: not yet */
    int64_t up_ns;   /* when it was up again while the build was timed; 0: it was not */
    int64_t open_ns, closed_ns; /* the timed window */
};

static void cut(void *arg)
{
    struct story *s = arg;
    s->cut_ns = world_now(fleet_world(s->fleet));
    node_cut(fleet_worker(s->fleet, 0));
}

static void on_measuring(struct fleet *fleet, unsigned worker, void *arg)
{
    struct story *s = arg;
    (void)worker;
    s->open_ns = world_now(fleet_world(fleet));
    world_after(fleet_world(fleet), s->cut_after_ns, cut, s);
}

static void on_turned(struct fleet *fleet, void *arg)
{
    struct story *s = arg;
    struct agent *agent = fleet_agent(fleet, 0);
    int64_t now = world_now(fleet_world(fleet));
    if (s->cut_ns == 0 || agent == NULL) {
        return;
    }
    if (s->down_ns == 0 && !agent_is_up(agent)) {
        s->down_ns = now;
    }
    if (s->down_ns != 0 && s->up_ns == 0 && agent_in_window(agent) && agent_is_up(agent)) {
        s->up_ns = now;
    }
    if (s->closed_ns == 0 && !agent_in_window(agent)) {
        s->closed_ns = now;
    }
}

static const struct fleet_ops OPS = {.measuring = on_measuring, .turned = on_turned};

static void tell(struct story *s, uint64_t seed, int64_t build_ns, int64_t cut_after_ns)
{
    struct fleet_conf conf = {.seed = seed,
                              .workers = 1,
                              .sweep = SWEEP,
                              .build_low_ns = build_ns,
                              .build_high_ns = build_ns,
                              .ops = &OPS,
                              .arg = s};
    *s = (struct story){.cut_after_ns = cut_after_ns};
    struct fleet *fleet = s->fleet = fleet_new(&conf);
    struct world *w = fleet_world(fleet);
    fleet_start(fleet);
    while (fleet_failure(fleet)[0] == '\0' && world_now(w) < 12 * CLOCK_HOUR && world_step(w)) {
        struct agent *agent = fleet_agent(fleet, 0);
        if (fleet_is_content(fleet) && agent != NULL && agent_spooled(agent) == 0 &&
            agent_phase(agent) == PHASE_IDLE && fleet_check_is_over(fleet->check)) {
            break;
        }
    }
    if (fleet_failure(fleet)[0] == '\0') {
        fleet_check_end(fleet->check);
    }
    cr_expect_str_empty(fleet_failure(fleet), "seed %d: %s", (int)seed, fleet_failure(fleet));
    cr_expect_lt(world_now(w), 12 * CLOCK_HOUR, "it ends");
    cr_expect_eq(fleet_run_count(fleet), 1, "the build is made once");
    fleet_free(&fleet);
}

static void quiet(void)
{
    cr_assert_eq(log_open("sim", "/dev/null", LOG_ERROR), 0);
}

Test(long_run, is_reached_again_while_it_is_timed, .init = quiet)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct story s;
        tell(&s, seed, 2 * CLOCK_HOUR, (int64_t)seed * 5 * CLOCK_MIN);
        cr_assert_gt(s.down_ns, 0);
        cr_assert_gt(s.up_ns, 0, "seed %d: never up again", (int)seed);
        cr_assert_lt(s.up_ns - s.cut_ns, 21 * CLOCK_MIN, "seed %d", (int)seed);
        cr_assert_geq(s.up_ns - s.open_ns, 10 * CLOCK_MIN, "seed %d: not before", (int)seed);
    }
}

Test(long_run, a_short_one_is_not_disturbed, .init = quiet)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct story s;
        tell(&s, seed, 9 * CLOCK_MIN, 30 * CLOCK_SEC);
        cr_assert_gt(s.down_ns, 0);
        cr_assert_eq(s.up_ns, 0, "seed %d", (int)seed);
    }
}

/* fakes_test.c: the simulation's own parts keep what their headers promise. Files and databases:
 * disk_test.c; connections: wire_test.c. */
#include "common/clock.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/proc.h"
#include "common/rand.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"
#include "worker/os/confine.h"
#include "worker/os/os.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One test's world: two nodes, a text of what happened. */
struct rig {
    struct world *world;
    struct node *a, *b;
    char log[4096];
    struct sim_command command;
    struct loop_timer *timer[3];
    struct confine *confine;
    struct confine_group *group;
    struct proc *proc;
};

static void say(struct rig *r, const char *text)
{
    size_t n = strlen(r->log);
    snprintf(r->log + n, sizeof(r->log) - n, "%s%s", n > 0 ? " " : "", text);
}

static bool on_start(struct node *node, struct loop *loop, void *arg)
{
    (void)node;
    (void)loop;
    (void)arg;
    return true;
}

/* What a test made at a node; also after a crash. */
static void on_stop(struct node *node, void *arg)
{
    struct rig *r = arg;
    if (node != r->a) {
        return;
    }
    for (size_t k = 0; k < ARRAY_LEN(r->timer); k++) {
        loop_timer_free(&r->timer[k]);
    }
    proc_free(&r->proc);
    confine_abandon(&r->group);
    confine_free(&r->confine);
}

static void on_command(struct node *node, const struct proc_spec *spec, struct sim_command *out,
                       void *arg)
{
    struct rig *r = arg;
    (void)node;
    (void)spec;
    *out = r->command;
}

static const struct world_ops OPS = {
    .start = on_start, .stop = on_stop, .command = on_command};

static struct rig *rig_new(uint64_t seed)
{
    struct rig *r = mem_xzalloc(sizeof(*r));
    r->world = world_new(seed, &OPS, r);
    r->a = world_add(r->world, "a", 1);
    r->b = world_add(r->world, "b", 2);
    cr_assert(node_start(r->a));
    cr_assert(node_start(r->b));
    return r;
}

static void rig_free(struct rig *r)
{
    world_free(&r->world);
    free(r);
}

static void run_until(struct rig *r, int64_t ns)
{
    while (world_now(r->world) < ns && world_step(r->world)) {
    }
}

/* --- loop --- */

static void tick0(void *arg)
{
    struct rig *r = arg;
    say(r, "0");
    if (strlen(r->log) < 4) {
        loop_timer_set(r->timer[0], 0); /* of a later turn */
    }
}

static void tick1(void *arg)
{
    say(arg, "1");
}

static void late(void *arg)
{
    say(arg, "deferred");
}

static void tick2(void *arg)
{
    struct rig *r = arg;
    say(r, "2");
    loop_defer(r->a->loop, late, r);
}

static void hook(void *arg)
{
    say(arg, "hook");
}

Test(fakes, a_turn_runs_what_is_due_then_hooks_then_what_was_deferred)
{
    struct rig *r = rig_new(1);
    loop_f *const f[] = {tick0, tick1, tick2};
    node_enter(r->a);
    for (size_t i = 0; i < ARRAY_LEN(f); i++) {
        r->timer[i] = loop_timer_new(r->a->loop, f[i], r);
    }
    loop_hook_add(r->a->loop, hook, r);
    int64_t begin = clock_mono_ns();
    loop_timer_set(r->timer[2], 7 * CLOCK_MS);
    loop_timer_set(r->timer[1], 5 * CLOCK_MS);
    loop_timer_set(r->timer[0], 5 * CLOCK_MS);
    cr_assert(loop_timer_pending(r->timer[0]));
    node_leave();
    while (world_step(r->world)) {
    }
    /* Of equal times the one that was set first; one set in a turn fires in a later turn. */
    cr_assert_str_eq(r->log, "1 0 hook 0 hook 2 hook deferred");
    node_enter(r->a);
    cr_assert_eq(clock_mono_ns() - begin, 7 * CLOCK_MS);
    node_leave();
    rig_free(r);
}

Test(fakes, each_machine_has_its_clocks_and_boot)
{
    struct rig *r = rig_new(1);
    char boot[65];
    int64_t a, b;
    struct os_ident ident;
    node_step_wall(r->a, -CLOCK_DAY);
    node_enter(r->a);
    a = clock_wall_ns();
    cr_assert_eq(os_ident(&ident), 0);
    cr_assert_str_eq(ident.hostname, "a");
    cr_assert_str_eq(ident.boot_id, machine_boot_id(r->world, 1));
    snprintf(boot, sizeof(boot), "%s", ident.boot_id);
    node_leave();
    node_enter(r->b);
    b = clock_wall_ns();
    cr_assert_eq(os_ident(&ident), 0);
    cr_assert_str_neq(ident.boot_id, boot);
    node_leave();
    cr_assert_eq(b - a, CLOCK_DAY);
    node_crash(r->a, SIM_KILL);
    cr_assert_str_eq(machine_boot_id(r->world, 1), boot);
    cr_assert(node_start(r->a));
    node_crash(r->a, SIM_POWER);
    cr_assert_str_neq(machine_boot_id(r->world, 1), boot);
    rig_free(r);
}

Test(fakes, numbers_depend_on_seed_node_and_start)
{
    uint64_t seen[5];
    for (int i = 0; i < 3; i++) {
        struct rig *r = rig_new(i == 2 ? 8 : 7);
        node_enter(r->a);
        rand_bytes(&seen[i], sizeof(seen[i]));
        node_leave();
        if (i == 1) {
            node_enter(r->b);
            rand_bytes(&seen[3], sizeof(seen[3]));
            node_leave();
            node_crash(r->a, SIM_KILL);
            cr_assert(node_start(r->a));
            node_enter(r->a);
            rand_bytes(&seen[4], sizeof(seen[4]));
            node_leave();
        }
        rig_free(r);
    }
    cr_assert_eq(seen[0], seen[1]);
    cr_assert_neq(seen[0], seen[2]);
    cr_assert_neq(seen[0], seen[3]);
    cr_assert_neq(seen[0], seen[4]);
}

/* --- children --- */

static void on_end(struct proc *proc, const struct proc_end *end, void *arg)
{
    struct rig *r = arg;
    char text[64];
    (void)proc;
    snprintf(text, sizeof(text), "%s%d after %d ms", end->signaled ? "signal " : "status ",
             end->signaled ? end->signal : end->exit_status,
             (int)((end->end_ns - end->start_ns) / CLOCK_MS));
    say(r, text);
}

static void spawn(struct rig *r)
{
    const char *const argv[] = {"/bin/sh", "-c", "make", NULL};
    struct proc_spec spec = PROC_SPEC_INIT;
    spec.argv = argv;
    cr_assert_eq(proc_spawn(r->a->loop, &spec, on_end, r, &r->proc, NULL), 0);
}

static void on_gone(const struct confine_left *left, void *arg)
{
    char text[32];
    snprintf(text, sizeof(text), "killed %zu", left->killed);
    say(arg, text);
}

Test(fakes, children_take_as_long_as_the_script_says_and_end_as_it_says)
{
    struct rig *r = rig_new(1);
    r->command = (struct sim_command){.real_ns = 3 * CLOCK_SEC, .exit_status = 2};
    node_enter(r->a);
    spawn(r);
    node_leave();
    while (world_step(r->world)) {
    }
    cr_assert_str_eq(r->log, "status 2 after 3000 ms");
    r->log[0] = '\0';
    r->command.stubborn = true;
    node_enter(r->a);
    proc_free(&r->proc);
    spawn(r);
    cr_assert_eq(proc_signal(r->proc, SIGTERM, true), 0);
    node_leave();
    while (world_step(r->world)) {
    }
    cr_assert_str_eq(r->log, "status 2 after 3000 ms", "a stubborn child goes on: %s", r->log);
    r->log[0] = '\0';
    node_enter(r->a);
    proc_free(&r->proc);
    r->command.real_ns = CLOCK_HOUR;
    spawn(r);
    cr_assert_eq(proc_signal(r->proc, SIGKILL, true), 0);
    node_leave();
    while (world_step(r->world)) {
    }
    cr_assert(strncmp(r->log, "signal 9 after", 14) == 0, "%s", r->log);
    rig_free(r);
}

static void begin_build(struct rig *r)
{
    const struct confine_opts opts = {.tag = "w1"};
    cr_assert_eq(confine_new(r->a->loop, &opts, &r->confine, NULL), 0);
    cr_assert_eq(confine_begin(r->confine, "1.1.run", &r->group, NULL), 0);
    spawn(r);
    confine_led_by(r->group, proc_pid(r->proc));
}

Test(fakes, a_build_outlives_its_worker_until_the_next_start_sweeps_or_the_power_fails)
{
    struct rig *r = rig_new(1);
    r->command = (struct sim_command){.real_ns = CLOCK_HOUR, .timed = true};
    node_enter(r->a);
    begin_build(r);
    node_leave();
    node_crash(r->a, SIM_KILL);
    cr_assert_eq(world_measuring(r->world, 1), 1);
    cr_assert(node_start(r->a));
    node_enter(r->a);
    const struct confine_opts opts = {.tag = "w1"};
    cr_assert_eq(confine_new(r->a->loop, &opts, &r->confine, NULL), 0);
    cr_assert_eq(confine_sweep(r->confine, on_gone, r, NULL), 0);
    node_leave();
    run_until(r, CLOCK_SEC);
    cr_assert_str_eq(r->log, "killed 1");
    cr_assert_eq(world_measuring(r->world, 1), 0);
    node_enter(r->a);
    confine_free(&r->confine);
    begin_build(r);
    node_leave();
    cr_assert_eq(world_measuring(r->world, 1), 1);
    node_crash(r->a, SIM_POWER);
    cr_assert_eq(world_measuring(r->world, 1), 0);
    cr_assert_str_eq(r->log, "killed 1", "nobody waits any more");
    rig_free(r);
}

Test(fakes, a_lock_is_the_machines_and_ends_with_the_process)
{
    struct rig *r = rig_new(1);
    struct node *c = world_add(r->world, "c", 1);
    struct file_lock *lock = NULL, *second = NULL, *other = NULL;
    char holder[256];
    cr_assert(node_start(c));
    node_enter(r->a);
    cr_assert_eq(file_lock_take("/run/lock/m", "a holds it", &lock, holder), 0);
    node_leave();
    node_enter(c);
    cr_assert_eq(file_lock_take("/run/lock/m", "c", &second, holder), -ERR_BUSY);
    cr_assert_str_eq(holder, "a holds it");
    node_leave();
    node_enter(r->b); /* another machine */
    cr_assert_eq(file_lock_take("/run/lock/m", "b", &other, holder), 0);
    file_lock_free(&other);
    node_leave();
    node_crash(r->a, SIM_KILL);
    node_enter(c);
    cr_assert_eq(file_lock_take("/run/lock/m", "c", &second, holder), 0);
    file_lock_free(&lock);
    cr_assert_eq(file_lock_take("/run/lock/m", "again", &other, holder), -ERR_BUSY,
                 "the handle of the dead frees nobody's lock");
    file_lock_free(&second);
    node_leave();
    rig_free(r);
}

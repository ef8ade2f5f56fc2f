/* fleet.c: nodes with real code on them: starting, stopping, the script of their commands. */
#include "tests/sim/fleet.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/proc.h"
#include "common/str.h"
#include "coordinator/conf.h"
#include "coordinator/coord.h"
#include "proto/msg.h"
#include "tests/sim/disk.h"
#include "tests/sim/fleet_int.h"
#include "tests/sim/sim.h"
#include "worker/agent.h"
#include "worker/agent_int.h"
#include "worker/conf.h"
#include "worker/identity.h"
#include "worker/run/journal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMPILER "cc (Simulated) 12.2.0\n"

/* --- failures --- */

void fleet_fail(struct fleet *fleet, const char *fmt, ...)
{
    va_list ap;
    if (fleet->failure[0] != '\0') {
        return;
    }
    va_start(ap, fmt);
    vsnprintf(fleet->failure, sizeof(fleet->failure), fmt, ap);
    va_end(ap);
    world_note(fleet->world, "WRONG: %s", fleet->failure);
}

const char *fleet_failure(const struct fleet *fleet)
{
    return fleet->failure;
}

/* --- commands --- */

static const char *env_of(const struct proc_spec *spec, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; spec->env != NULL && spec->env[i] != NULL; i++) {
        if (strncmp(spec->env[i], name, n) == 0 && spec->env[i][n] == '=') {
            return spec->env[i] + n + 1;
        }
    }
    return "";
}

static void note_run(struct fleet *fleet, unsigned worker, const struct proc_spec *spec, int status)
{
    const struct member *m = &fleet->member[worker];
    if (fleet->run_count == fleet->run_room) {
        fleet->run_room = fleet->run_room > 0 ? fleet->run_room * 2 : 128;
        fleet->runs = mem_xrealloc(fleet->runs, fleet->run_room, sizeof(fleet->runs[0]));
    }
    struct fleet_run *r = &fleet->runs[fleet->run_count++];
    const struct journal_running *running = journal_running(m->agent->journal);
    *r = (struct fleet_run){.worker = worker, .wall_ns = clock_wall_ns(), .exit_status = status};
    if (running == NULL) {
        fleet_fail(fleet, "w%u measures, and its journal knows nothing of it", worker + 1);
        return;
    }
    r->run = running->assign->run;
    r->attempt = running->assign->attempt;
    for (size_t i = 0; i + 1 < fleet->run_count; i++) {
        if (fleet->runs[i].run == r->run && fleet->runs[i].attempt == r->attempt) {
            fleet_fail(fleet, "attempt %" PRIu32 " of run %" PRIu64 " is made twice", r->attempt,
                       r->run);
        }
    }
    str_copy(r->variant, sizeof(r->variant), env_of(spec, "VARIANT"));
    str_copy(r->jobs, sizeof(r->jobs), env_of(spec, "JOBS"));
    str_copy(r->boot_id, sizeof(r->boot_id), machine_boot_id(fleet->world, m->node->machine));
}

/* The timed command of the sweep file is `build …`. */
static void begin_run(struct fleet *fleet, unsigned worker, const struct proc_spec *spec,
                      struct sim_command *out)
{
    struct world *w = fleet->world;
    out->timed = true;
    out->real_ns = world_between(w, fleet->conf.build_low_ns, fleet->conf.build_high_ns);
    out->user_ns = out->real_ns / 10 * 8;
    out->sys_ns = out->real_ns / 10;
    out->exit_status = world_chance(w, fleet->conf.fail_percent) ? 2 : 0;
    out->output = "cc -c main.c\n";
    if (world_measuring(w, fleet->member[worker].node->machine) > 0) {
        fleet_fail(fleet, "two measurements at once on the machine of w%u", worker + 1);
    }
    note_run(fleet, worker, spec, out->exit_status);
    if (fleet->conf.ops->measuring != NULL) {
        fleet->conf.ops->measuring(fleet, worker, fleet->conf.arg);
    }
}

static void on_command(struct node *node, const struct proc_spec *spec, struct sim_command *out,
                       void *arg)
{
    struct fleet *fleet = arg;
    unsigned worker = fleet_index(fleet, node);
    const char *last = "";
    for (size_t i = 0; spec->argv[i] != NULL; i++) {
        last = spec->argv[i];
    }
    out->real_ns = world_between(fleet->world, CLOCK_MS, 300 * CLOCK_MS);
    out->user_ns = out->real_ns / 2;
    if (worker < fleet->conf.workers && strncmp(last, "build", 5) == 0) {
        begin_run(fleet, worker, spec, out);
    } else if (str_eq(spec->argv[0], "cc")) {
        out->output = COMPILER;
    }
}

/* --- nodes --- */

static bool start_coordinator(struct fleet *fleet, struct loop *loop, struct diag *diag)
{
    int rc = coord_conf_load(NULL, &fleet->coord_conf, diag);
    if (rc == 0) {
        free(fleet->coord_conf.listen);
        free(fleet->coord_conf.dir);
        fleet->coord_conf.listen = mem_xstrdup(":7443");
        fleet->coord_conf.dir = mem_xstrdup(FLEET_COORD_DIR);
        if (fleet->conf.lost_after_ns > 0) {
            fleet->coord_conf.lost_after_ns = fleet->conf.lost_after_ns;
        }
        rc = coord_new(loop, &fleet->coord_conf, "sim", &fleet->coord, diag);
    }
    if (rc != 0) {
        coord_conf_free(&fleet->coord_conf);
    }
    return rc == 0;
}

static bool start_worker(struct fleet *fleet, struct member *m, struct loop *loop,
                         struct diag *diag)
{
    struct agent_setup setup = {.loop = loop, .conf = &m->conf, .identity = &m->identity};
    int rc = worker_conf_load(NULL, &m->conf, diag);
    if (rc == 0) {
        free(m->conf.dir);
        m->conf.dir = mem_xstrdup(FLEET_WORKER_DIR);
        m->conf.coordinator = mem_xstrdup("coord:7443");
        rc = identity_load(FLEET_WORKER_DIR, &m->identity, diag);
    }
    if (rc == 0) {
        rc = agent_new(&setup, &m->agent, diag);
    }
    if (rc != 0) {
        identity_fini(&m->identity);
        worker_conf_free(&m->conf);
    }
    (void)fleet;
    return rc == 0;
}

static bool on_start(struct node *node, struct loop *loop, void *arg)
{
    struct fleet *fleet = arg;
    struct diag *diag = diag_new(4);
    bool ok = true;
    if (node == fleet->coord_node) {
        ok = start_coordinator(fleet, loop, diag);
    } else if (node == fleet->op_node) {
        fleet_op_start(fleet, loop);
    } else {
        ok = start_worker(fleet, node_arg(node), loop, diag);
    }
    if (!ok && !node->gone) {
        fleet_fail(fleet, "%s does not start: %s", node_name(node), diag_first(diag));
    }
    diag_free(&diag);
    return ok;
}

static void on_stop(struct node *node, void *arg)
{
    struct fleet *fleet = arg;
    struct member *m = node_arg(node);
    if (node == fleet->coord_node && fleet->coord != NULL) {
        coord_free(&fleet->coord);
        coord_conf_free(&fleet->coord_conf);
    } else if (node == fleet->op_node) {
        fleet_op_stop(fleet);
    } else if (m != NULL && m->agent != NULL) {
        agent_free(&m->agent);
        identity_fini(&m->identity);
        worker_conf_free(&m->conf);
    }
}

static int on_effect(struct node *node, enum sim_effect effect, const char *what, uint64_t n,
                     void *arg)
{
    struct fleet *fleet = arg;
    const struct fleet_ops *ops = fleet->conf.ops;
    (void)n;
    return ops->effect != NULL ? ops->effect(fleet, node, effect, what, fleet->conf.arg) : 0;
}

static void on_heard(struct node *node, const struct msg *msg, void *arg)
{
    struct fleet *fleet = arg;
    fleet_check_heard(fleet->check, node, msg);
}

static void on_turned(struct world *world, void *arg)
{
    struct fleet *fleet = arg;
    (void)world;
    fleet_check_turn(fleet->check);
    if (fleet->conf.ops->turned != NULL) {
        fleet->conf.ops->turned(fleet, fleet->conf.arg);
    }
}

static const struct world_ops OPS = {.start = on_start,
                                     .stop = on_stop,
                                     .effect = on_effect,
                                     .command = on_command,
                                     .heard = on_heard,
                                     .turned = on_turned};

struct fleet *fleet_new(const struct fleet_conf *conf)
{
    assert(conf->workers > 0 && conf->workers <= FLEET_WORKERS);
    struct fleet *f = mem_xzalloc(sizeof(*f));
    f->conf = *conf;
    f->world = world_new(conf->seed, &OPS, f);
    f->coord_node = world_add(f->world, "coord", 0);
    for (unsigned i = 0; i < conf->workers; i++) {
        char name[16];
        snprintf(name, sizeof(name), "w%u", i + 1);
        f->member[i].node = world_add(f->world, name, i + 1);
        node_set_arg(f->member[i].node, &f->member[i]);
    }
    f->op_node = world_add(f->world, "op", conf->workers + 1);
    f->check = fleet_check_new(f);
    f->op.retries = conf->retries;
    fleet_found(f);
    return f;
}

void fleet_free(struct fleet **fleet)
{
    struct fleet *f = *fleet;
    if (f == NULL) {
        return;
    }
    world_free(&f->world);
    fleet_check_free(&f->check);
    free(f->runs);
    free(f);
    *fleet = NULL;
}

void fleet_start(struct fleet *fleet)
{
    node_start(fleet->coord_node);
    for (unsigned i = 0; i < fleet->conf.workers; i++) {
        node_start(fleet->member[i].node);
    }
    node_start(fleet->op_node);
}

static void on_restart(void *arg)
{
    struct node *node = arg;
    if (node->up || fleet_failure(node->world->arg)[0] != '\0') {
        return;
    }
    if (!node_start(node)) {
        world_after(node->world, CLOCK_SEC, on_restart, node);
    }
}

void fleet_restart(struct fleet *fleet, struct node *node, int64_t delay_ns)
{
    world_after(fleet->world, delay_ns, on_restart, node);
}

/* --- looking at it --- */

struct world *fleet_world(struct fleet *fleet)
{
    return fleet->world;
}

struct node *fleet_coordinator(struct fleet *fleet)
{
    return fleet->coord_node;
}

struct node *fleet_worker(struct fleet *fleet, unsigned index)
{
    return fleet->member[index].node;
}

unsigned fleet_workers(const struct fleet *fleet)
{
    return fleet->conf.workers;
}

unsigned fleet_index(const struct fleet *fleet, const struct node *node)
{
    unsigned i = 0;
    while (i < fleet->conf.workers && fleet->member[i].node != node) {
        i++;
    }
    return i;
}

struct coord *fleet_coord(struct fleet *fleet)
{
    return node_is_up(fleet->coord_node) ? fleet->coord : NULL;
}

struct agent *fleet_agent(struct fleet *fleet, unsigned index)
{
    return node_is_up(fleet->member[index].node) ? fleet->member[index].agent : NULL;
}

bool fleet_is_accepted(const struct fleet *fleet)
{
    return fleet->op.accepted;
}

bool fleet_is_content(const struct fleet *fleet)
{
    return fleet->op.accepted && fleet->op.retries == 0;
}

size_t fleet_run_count(const struct fleet *fleet)
{
    return fleet->run_count;
}

const struct fleet_run *fleet_run_at(const struct fleet *fleet, size_t index)
{
    return &fleet->runs[index];
}

const struct fleet_run *fleet_run_find(const struct fleet *fleet, unsigned worker, int64_t wall_ns)
{
    for (size_t i = 0; i < fleet->run_count; i++) {
        if (fleet->runs[i].worker == worker && fleet->runs[i].wall_ns == wall_ns) {
            return &fleet->runs[i];
        }
    }
    return NULL;
}

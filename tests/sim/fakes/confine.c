/* confine.c: worker/os/confine.h on scripted children: a control group that always works. What a
 * worker that died left is found by the tag, which stays the same. */
#include "worker/os/confine.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/proc.h"
#include "common/str.h"
#include "tests/sim/fakes/child.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

struct killing {
    struct sim_event look;
    confine_f *f;
    void *arg;
    size_t killed;
    char names[256];
};

struct confine {
    struct node *node;
    char tag[33];
    char env[64];
    struct confine_group *open;
    struct killing sweep;
};

struct confine_group {
    struct confine *confine;
    int64_t leader;
    int64_t start_ns;
    struct killing kill;
};

static struct sim_child *leader_of(const struct confine_group *group)
{
    if (group->leader == 0 || group->confine->node->gone) {
        return NULL;
    }
    return sim_child_find(group->confine->node->machine, group->leader);
}

static bool is_ours(const struct confine *confine, const struct sim_child *child)
{
    return str_eq(child->tag, confine->tag);
}

/* A living child of this worker, or of an earlier start of it. */
static struct sim_child *any_child(const struct confine *confine)
{
    if (confine->node->gone) {
        return NULL;
    }
    struct sim_child *c = sim_machine_of(confine->node)->children;
    while (c != NULL && !is_ours(confine, c)) {
        c = c->next;
    }
    return c;
}

static void look(struct killing *k, bool done)
{
    if (!done) {
        sim_event_set(&k->look, sim_world()->now_ns + CLOCK_MS);
        return;
    }
    struct confine_left left = {.killed = k->killed, .names = k->names};
    confine_f *f = k->f;
    k->f = NULL;
    f(&left, k->arg);
}

static void look_swept(void *arg)
{
    struct confine *confine = arg;
    look(&confine->sweep, any_child(confine) == NULL);
}

static void look_killed(void *arg)
{
    struct confine_group *group = arg;
    look(&group->kill, leader_of(group) == NULL);
}

static void begin(struct killing *k, confine_f *f, void *arg)
{
    assert(k->f == NULL);
    k->f = f;
    k->arg = arg;
    k->killed = 0;
    k->names[0] = '\0';
    sim_event_set(&k->look, sim_world()->now_ns + sim_between(10 * CLOCK_US, CLOCK_MS));
}

static void end(struct killing *k, struct sim_child *child)
{
    k->killed++;
    snprintf(k->names, sizeof(k->names), "sh (%lld)", (long long)child->pid);
    sim_child_signal(child, SIGKILL);
}

int confine_new(struct loop *loop, const struct confine_opts *opts, struct confine **out,
                struct diag *diag)
{
    struct confine *c = mem_xzalloc(sizeof(*c));
    (void)loop;
    (void)diag;
    c->node = sim_here();
    str_copy(c->tag, sizeof(c->tag), opts->tag);
    snprintf(c->env, sizeof(c->env), "MAKESPAN_WORKER=%s", c->tag);
    sim_event_init(&c->sweep.look, c->node, look_swept, c);
    *out = c;
    return 0;
}

void confine_free(struct confine **confine)
{
    if (*confine == NULL) {
        return;
    }
    assert((*confine)->open == NULL);
    sim_event_clear(&(*confine)->sweep.look);
    free(*confine);
    *confine = NULL;
}

const char *confine_way_text(const struct confine *confine)
{
    (void)confine;
    return "cgroup2";
}

bool confine_is_confined(const struct confine *confine)
{
    (void)confine;
    return true;
}

const char *confine_env(const struct confine *confine)
{
    return confine->env;
}

int confine_sweep(struct confine *confine, confine_f *f, void *arg, struct diag *diag)
{
    (void)diag;
    assert(confine->open == NULL);
    begin(&confine->sweep, f, arg);
    if (!confine->node->gone) {
        struct sim_machine *m = sim_machine_of(confine->node);
        for (struct sim_child *c = m->children; c != NULL; c = c->next) {
            if (is_ours(confine, c)) {
                end(&confine->sweep, c);
            }
        }
    }
    return 0;
}

int confine_begin(struct confine *confine, const char *name, struct confine_group **out,
                  struct diag *diag)
{
    (void)diag;
    (void)name;
    assert(confine->open == NULL);
    struct confine_group *g = mem_xzalloc(sizeof(*g));
    g->confine = confine;
    sim_event_init(&g->kill.look, confine->node, look_killed, g);
    confine->open = g;
    *out = g;
    return 0;
}

void confine_join(const struct confine_group *group, struct proc_spec *spec)
{
    (void)group;
    spec->join_count = 0;
}

void confine_led_by(struct confine_group *group, int64_t pid)
{
    group->leader = pid;
    group->start_ns = sim_world()->now_ns;
    struct sim_child *child = leader_of(group);
    if (child != NULL) {
        str_copy(child->tag, sizeof(child->tag), group->confine->tag);
    }
}

void confine_usage(const struct confine_group *group, const struct proc_usage *leader,
                   struct confine_usage *out)
{
    *out = (struct confine_usage){.way = CPU_WAY_CGROUP2, .peak_bytes = 64 << 20};
    if (leader != NULL) {
        out->user_ns = leader->user_ns;
        out->sys_ns = leader->sys_ns;
    } else {
        out->user_ns = sim_world()->now_ns - group->start_ns;
    }
}

void confine_orphans(const struct confine_group *group, struct proc_usage *out)
{
    (void)group;
    *out = (struct proc_usage){0};
}

void confine_kill(struct confine_group *group, int64_t grace_ns, int64_t limit_ns, confine_f *f,
                  void *arg)
{
    (void)grace_ns;
    (void)limit_ns;
    begin(&group->kill, f, arg);
    struct sim_child *child = leader_of(group);
    if (child != NULL) {
        end(&group->kill, child);
    }
}

void confine_signal(struct confine_group *group, int number)
{
    struct sim_child *child = leader_of(group);
    if (child != NULL) {
        sim_child_signal(child, number);
    }
}

void confine_end(struct confine_group **group)
{
    struct confine_group *g = *group;
    if (g == NULL) {
        return;
    }
    assert(g->kill.f == NULL);
    confine_abandon(group);
}

void confine_abandon(struct confine_group **group)
{
    struct confine_group *g = *group;
    if (g == NULL) {
        return;
    }
    sim_event_clear(&g->kill.look);
    g->confine->open = NULL;
    free(g);
    *group = NULL;
}

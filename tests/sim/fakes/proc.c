/* proc.c: common/proc.h without processes: the scenario says how long a command takes and how it
 * ends. Children belong to their machine: they outlive a worker that is killed, and nothing else
 * ends them but a signal or the machine's power. */
#include "common/proc.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/mem.h"
#include "tests/sim/disk.h"
#include "tests/sim/fakes/child.h"
#include "tests/sim/fakes/file.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define ERR_TEXT_MAX (64 * 1024)

struct proc {
    struct node *node;
    struct sim_child *child; /* NULL: it has ended, or the node is no longer seen */
    int64_t pid;
    struct sim_event deliver;
    proc_end_f *f;
    void *arg;
    struct proc_end end;
};

/* --- children of machines --- */

struct sim_child *sim_child_find(unsigned machine, int64_t pid)
{
    struct sim_child *c = sim_world()->machine[machine].children;
    while (c != NULL && c->pid != pid) {
        c = c->next;
    }
    return c;
}

static void leave(struct sim_child *child)
{
    struct sim_child **p = &sim_world()->machine[child->machine].children;
    while (*p != child) {
        p = &(*p)->next;
    }
    *p = child->next;
    sim_event_clear(&child->end);
    free(child);
}

static void print(const struct sim_child *c)
{
    struct sim_open *open = sim_open_find(c->node, c->out_fd);
    if (open == NULL || c->command.output == NULL) {
        return;
    }
    int rc = inode_write(open->disk, open->inode, inode_size(open->inode), c->command.output,
                         strlen(c->command.output));
    (void)rc; /* a full disk: its output is lost, as any command's would be */
}

static void child_ends(void *arg)
{
    struct sim_child *c = arg;
    const struct sim_command *s = &c->command;
    int number = c->killed_by != 0 ? c->killed_by : s->signal;
    bool seen = c->node->up && !c->node->gone && c->node->disk == c->disk;
    world_note(sim_world(), "child %lld of %s ends%s", (long long)c->pid, c->node->name,
               c->killed_by != 0 ? " (killed)" : "");
    if (seen && c->killed_by == 0) {
        print(c);
        if (s->done != NULL) {
            s->done(c->node, s->done_arg);
        }
    }
    struct proc *proc = c->proc;
    if (proc != NULL) {
        int64_t ran = sim_world()->now_ns - c->start_ns;
        bool whole = s->real_ns <= 0 || ran >= s->real_ns;
        proc->child = NULL;
        proc->end.signaled = number != 0;
        proc->end.signal = number;
        proc->end.exit_status = number != 0 ? 0 : s->exit_status;
        proc->end.usage = (struct proc_usage){
            .user_ns = whole ? s->user_ns : s->user_ns / 1000 * (ran / (s->real_ns / 1000 + 1)),
            .sys_ns = whole ? s->sys_ns : 0,
            .max_rss_bytes = 48 << 20,
            .minor_faults = 1000,
            .voluntary_switches = 10,
            .involuntary_switches = 20,
        };
        sim_event_set(&proc->deliver, sim_world()->now_ns + sim_between(0, 200 * CLOCK_US));
    }
    leave(c);
}

void sim_child_signal(struct sim_child *child, int number)
{
    bool ends = number == SIGKILL || number == SIGTERM || number == SIGHUP || number == SIGINT;
    if (!ends || (number != SIGKILL && child->command.stubborn)) {
        return;
    }
    if (child->killed_by != 0 && number != SIGKILL) {
        return;
    }
    child->killed_by = number;
    int64_t at = sim_world()->now_ns + sim_between(CLOCK_US, 2 * CLOCK_MS);
    if (at < child->end.at_ns) {
        sim_event_set(&child->end, at);
    }
}

void sim_children_forget(struct node *node)
{
    for (struct sim_child *c = sim_machine_of(node)->children; c != NULL; c = c->next) {
        if (c->node == node && c->proc != NULL) {
            c->proc->child = NULL;
            c->proc = NULL;
        }
        if (c->node == node) {
            c->disk = NULL;
        }
    }
}

void sim_children_power_off(unsigned machine)
{
    struct sim_machine *m = &sim_world()->machine[machine];
    while (m->children != NULL) {
        assert(m->children->proc == NULL);
        leave(m->children);
    }
}

unsigned sim_children_timed(const struct world *world, unsigned machine)
{
    unsigned n = 0;
    for (const struct sim_child *c = world->machine[machine].children; c != NULL; c = c->next) {
        n += c->command.timed;
    }
    return n;
}

/* --- proc.h --- */

static void deliver(void *arg)
{
    struct proc *proc = arg;
    struct proc_end end;
    proc->end.end_ns = clock_mono_ns();
    end = proc->end;
    proc->f(proc, &end, proc->arg);
}

static const char *text_of(const struct proc_spec *spec)
{
    const char *last = "";
    for (size_t i = 0; spec->argv[i] != NULL; i++) {
        last = spec->argv[i];
    }
    return last;
}

int proc_spawn(struct loop *loop, const struct proc_spec *spec, proc_end_f *f, void *arg,
               struct proc **out, struct diag *diag)
{
    struct node *node = sim_here();
    struct world *w = sim_world();
    (void)loop;
    assert(node != NULL);
    int rc = sim_effect(SIM_SPAWN, text_of(spec), 0);
    if (rc != 0) {
        return diag_error(diag, rc, "%s cannot be started: %s", spec->argv[0], err_text(rc));
    }
    struct proc *proc = mem_xzalloc(sizeof(*proc));
    *out = proc;
    proc->node = node;
    proc->f = f;
    proc->arg = arg;
    proc->pid = ++sim_machine_of(node)->last_pid;
    proc->end.start_ns = clock_mono_ns();
    sim_event_init(&proc->deliver, node, deliver, proc);
    if (node->gone) {
        return 0;
    }
    struct sim_child *c = mem_xzalloc(sizeof(*c));
    proc->child = c;
    c->machine = node->machine;
    c->pid = proc->pid;
    c->node = node;
    c->disk = node->disk;
    c->out_fd = spec->out_fd;
    c->proc = proc;
    c->start_ns = w->now_ns;
    if (w->ops->command != NULL) {
        w->ops->command(node, spec, &c->command, w->arg);
    }
    c->next = sim_machine_of(node)->children;
    sim_machine_of(node)->children = c;
    world_note(w, "child %lld: %.200s", (long long)c->pid, text_of(spec));
    sim_event_init(&c->end, NULL, child_ends, c);
    sim_event_set(&c->end, w->now_ns + c->command.real_ns);
    return 0;
}

int64_t proc_pid(const struct proc *proc)
{
    return proc->pid;
}

int proc_signal(struct proc *proc, int number, bool group)
{
    (void)group;
    if (proc->child == NULL) {
        return -ERR_NOTFOUND;
    }
    sim_child_signal(proc->child, number);
    return 0;
}

void proc_free(struct proc **proc)
{
    struct proc *p = *proc;
    if (p == NULL) {
        return;
    }
    sim_event_clear(&p->deliver);
    if (p->child != NULL) {
        p->child->proc = NULL;
    }
    free(p);
    *proc = NULL;
}

int proc_reap_orphans(struct loop *loop, proc_orphan_f *f, void *arg)
{
    (void)loop;
    (void)f;
    (void)arg;
    return 0; /* there are none: a scripted child has no children */
}

/* --- helpers with their output --- */

struct proc_collect {
    struct proc *proc;
    struct loop_timer *limit;
    size_t out_max;
    bool to_file, timed_out, truncated;
    struct buf out, err;
    const char *text;
    proc_output_f *f;
    void *arg;
};

static void collect_free(struct proc_collect *c)
{
    proc_free(&c->proc);
    loop_timer_free(&c->limit);
    buf_fini(&c->out);
    buf_fini(&c->err);
    free(c);
}

static void on_limit(void *arg)
{
    struct proc_collect *c = arg;
    c->timed_out = true;
    int rc = proc_signal(c->proc, SIGKILL, true);
    (void)rc; /* it has ended just now */
}

static void on_collected(struct proc *proc, const struct proc_end *end, void *arg)
{
    struct proc_collect *c = arg;
    (void)proc;
    if (c->text != NULL && !c->to_file && !end->signaled) {
        size_t n = strlen(c->text);
        c->truncated = n > c->out_max;
        buf_add(&c->out, c->text, c->truncated ? c->out_max : n);
    }
    struct proc_output output = {.end = *end,
                                 .timed_out = c->timed_out,
                                 .truncated = c->truncated,
                                 .out = &c->out,
                                 .err = &c->err};
    c->f(&output, c->arg);
    collect_free(c);
}

int proc_collect(struct loop *loop, const struct proc_spec *spec, size_t out_max,
                 int64_t timeout_ns, proc_output_f *f, void *arg, struct proc_collect **out,
                 struct diag *diag)
{
    struct proc_collect *c = mem_xzalloc(sizeof(*c));
    c->f = f;
    c->arg = arg;
    c->out_max = out_max;
    c->to_file = spec->out_fd >= 0;
    buf_init(&c->err, ERR_TEXT_MAX);
    int rc = proc_spawn(loop, spec, on_collected, c, &c->proc, diag);
    if (rc != 0) {
        collect_free(c);
        return rc;
    }
    if (c->proc->child != NULL) {
        c->text = c->proc->child->command.output;
    }
    c->limit = loop_timer_new(loop, on_limit, c);
    if (timeout_ns > 0) {
        loop_timer_set(c->limit, timeout_ns);
    }
    if (out != NULL) {
        *out = c;
    }
    return 0;
}

void proc_collect_cancel(struct proc_collect **collect)
{
    if (*collect == NULL) {
        return;
    }
    int rc = proc_signal((*collect)->proc, SIGKILL, true);
    (void)rc; /* it has ended just now */
    collect_free(*collect);
    *collect = NULL;
}

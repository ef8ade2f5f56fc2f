/* step.c: one command of an attempt, from the spawn until its whole tree is dead.
 *
 *     RUNNING  the leader runs
 *     ENDING   time limit or cancel: SIGTERM was sent, the grace runs
 *     CLEARING what is left of the tree is being killed
 *     DONE     the callback was called */
#include "worker/run/step.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/num.h"
#include "worker/run/output.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_MAGIC 0x73746570u
#define FIRST_TICK (100 * CLOCK_MS)
#define SLOWEST_TICK CLOCK_SEC
#define CPU_BLUR (50 * CLOCK_MS)

enum state { RUNNING, ENDING, CLEARING, DONE };

struct step {
    unsigned magic;
    struct loop *loop;
    enum state state;
    struct step_spec spec; /* strings in it are not used after the start */
    step_end_f *f;
    void *arg;
    struct confine_group *group;
    struct proc *proc;
    struct loop_timer *tick;  /* output and samples; after the end: the delivery */
    struct loop_timer *limit; /* time limit, then grace */
    enum ending why;          /* ENDING_TIMEOUT or ENDING_CANCEL, else ENDING_NONE */
    bool leader_ended;
    bool killed; /* the confine is through with the tree */
    int64_t ended_ns;
    struct proc_end end;
    struct step_result result;
};

static const char *signal_name(int number, char text[16])
{
    static const struct {
        int number;
        const char *name;
    } known[] = {
        {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
        {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
        {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
        {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"},
        {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"},
    };

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (known[i].number == number)
            return known[i].name;
    (void)snprintf(text, 16, "signal %d", number);
    return text;
}

/* --- the end --- */

static void say(struct step *s)
{
    struct step_result *r = &s->result;
    char last[240] = "", name[16], limit[32];
    size_t n;

    if (s->spec.output != NULL && r->ending != ENDING_NOEXEC)
        output_last_line(s->spec.output, last, sizeof(last));
    switch (r->ending) {
    case ENDING_EXIT:
        if (r->exit_status == 0)
            return;
        if (r->exit_status > 128 && r->exit_status <= 128 + 64)
            (void)snprintf(r->text, sizeof(r->text),
                           "exited with status %d, which a shell gives for %s", r->exit_status,
                           signal_name(r->exit_status - 128, name));
        else
            (void)snprintf(r->text, sizeof(r->text), "exited with status %d", r->exit_status);
        break;
    case ENDING_SIGNAL:
        (void)snprintf(r->text, sizeof(r->text), "was ended by %s", signal_name(r->signal, name));
        break;
    case ENDING_TIMEOUT:
        (void)snprintf(r->text, sizeof(r->text), "ran into its limit of %s",
                       num_duration_text(limit, sizeof(limit), s->spec.timeout_ns));
        break;
    case ENDING_CANCEL:
        (void)snprintf(r->text, sizeof(r->text), "was cancelled");
        break;
    case ENDING_NOEXEC:
    case ENDING_NONE:
        return; /* said where it happened */
    }
    n = strlen(r->text);
    if (last[0] != '\0')
        (void)snprintf(r->text + n, sizeof(r->text) - n, "; the last line of its output: %s", last);
}

static void mark_output(struct step *s)
{
    struct step_result *r = &s->result;
    struct output *o = s->spec.output;
    char total[32];
    struct diag *diag;

    if (o == NULL)
        return;
    diag = diag_new(1);
    if (output_finish(o, diag) != 0) {
        marks_add(&r->marks, MARK_OUTPUT_TRUNCATED, "%s", diag_first(diag));
        diag_free(&diag);
        return;
    }
    diag_free(&diag);
    if (output_was_truncated(o))
        marks_add(&r->marks, MARK_OUTPUT_TRUNCATED,
                  "the command shortened its own output file; what was in it before is lost");
    if (output_was_cut(o))
        marks_add(&r->marks, MARK_OUTPUT_CUT, "of %s the start and the end were kept%s",
                  num_size_text(total, sizeof(total), output_total(o)),
                  output_is_exact(o)
                      ? ""
                      : "; files have no holes here, bytes near the end may be missing");
}

static void mark_tree(struct step *s, const struct confine_left *left)
{
    struct step_result *r = &s->result;

    r->survivors = left->killed + left->stuck;
    r->stuck = left->stuck;
    /* Of a command that was ended by force, what had to be killed is no finding. */
    if (left->stuck > 0)
        marks_add(&r->marks, MARK_SURVIVORS, "%zu processes could not be ended: %s", left->stuck,
                  left->names);
    else if (left->killed > 0 && s->why == ENDING_NONE)
        marks_add(&r->marks, MARK_SURVIVORS, "%zu %s left at the end and killed: %s", left->killed,
                  left->killed == 1 ? "process was" : "processes were", left->names);
    if (!confine_is_confined(s->spec.confine))
        marks_add(&r->marks, MARK_UNCONFINED,
                  "no control groups: processes were followed by descent");
}

/* CPU time: at once where a control group counts it, after all are dead where wait4() does. */
static void take_usage(struct step *s, bool at_end)
{
    struct step_result *r = &s->result;
    struct proc_usage orphans;

    if (!at_end && r->usage.way != CPU_WAY_REAPER && r->usage.way != CPU_WAY_WAIT4)
        return;
    confine_usage(s->group, &s->end.usage, &r->usage);
    confine_orphans(s->group, &orphans);
    r->wait = s->end.usage;
    if (r->usage.way != CPU_WAY_REAPER)
        return;
    r->wait.user_ns += orphans.user_ns;
    r->wait.sys_ns += orphans.sys_ns;
    /* A peak of the first process that is not known (-1) makes that of all unknown. */
    if (r->wait.max_rss_bytes >= 0 && orphans.max_rss_bytes > r->wait.max_rss_bytes)
        r->wait.max_rss_bytes = orphans.max_rss_bytes;
    r->wait.minor_faults += orphans.minor_faults;
    r->wait.major_faults += orphans.major_faults;
    r->wait.voluntary_switches += orphans.voluntary_switches;
    r->wait.involuntary_switches += orphans.involuntary_switches;
    r->wait.block_in += orphans.block_in;
    r->wait.block_out += orphans.block_out;
}

static void compare_cpu(struct step *s)
{
    struct step_result *r = &s->result;
    int64_t group = r->usage.user_ns + r->usage.sys_ns, wait = r->wait.user_ns + r->wait.sys_ns;

    /* The group holds the leader and more: it cannot have used less. */
    if ((r->usage.way == CPU_WAY_CGROUP1 || r->usage.way == CPU_WAY_CGROUP2) &&
        wait > group + group / 50 + CPU_BLUR)
        marks_add(&r->marks, MARK_CPU_DISAGREE,
                  "the control group says %.3f s of processor time, wait4() %.3f s",
                  (double)group / 1e9, (double)wait / 1e9);
}

static void deliver(struct step *s)
{
    s->state = DONE;
    loop_timer_clear(s->tick);
    loop_timer_clear(s->limit);
    s->f(&s->result, s->arg);
}

/* Both the leader's end and the death of the tree are known, or are given up. */
static void finish(struct step *s)
{
    struct step_result *r = &s->result;

    if (s->leader_ended)
        take_usage(s, false);
    r->clear_ns = clock_mono_ns() - s->ended_ns;
    confine_end(&s->group);
    proc_free(&s->proc);
    compare_cpu(s);
    mark_output(s);
    say(s);
    deliver(s);
}

static void set_ending(struct step *s, bool known)
{
    struct step_result *r = &s->result;
    const struct proc_end *e = &s->end;

    r->exit_status = -1;
    r->signal = 0;
    if (known && e->signaled)
        r->signal = e->signal;
    else if (known)
        r->exit_status = e->exit_status;
    if (s->why != ENDING_NONE)
        r->ending = s->why;
    else if (known && e->exec_failed) {
        r->ending = ENDING_NOEXEC;
        (void)snprintf(r->text, sizeof(r->text), "/bin/sh could not be started: %s",
                       strerror(e->errno_value));
    } else
        r->ending = e->signaled ? ENDING_SIGNAL : ENDING_EXIT;
    r->ok = r->ending == ENDING_EXIT && r->exit_status == 0;
}

static void tree_dead(const struct confine_left *left, void *arg)
{
    struct step *s;

    CAST_OBJ(s, arg, STEP_MAGIC);
    s->killed = true;
    mark_tree(s, left);
    if (!s->leader_ended && left->stuck > 0) {
        /* The leader itself hangs in the kernel: its end may never be told. */
        s->ended_ns = clock_mono_ns();
        s->result.real_ns = s->ended_ns - s->result.start_ns;
        set_ending(s, false);
        confine_usage(s->group, &s->end.usage, &s->result.usage);
        if (s->spec.after != NULL)
            s->spec.after(&s->end, s->spec.hook_arg);
        finish(s);
        return;
    }
    if (s->leader_ended)
        finish(s);
}

static void leader_ended(struct proc *proc, const struct proc_end *end, void *arg)
{
    struct step *s;

    (void)proc;
    CAST_OBJ(s, arg, STEP_MAGIC);
    if (s->state == DONE)
        return;
    s->end = *end;
    take_usage(s, true);
    if (s->spec.after != NULL)
        s->spec.after(end, s->spec.hook_arg);
    s->leader_ended = true;
    s->ended_ns = end->end_ns;
    s->result.start_ns = end->start_ns;
    s->result.real_ns = end->end_ns - end->start_ns;
    loop_timer_clear(s->limit);
    set_ending(s, true);
    if (s->state != CLEARING) {
        s->state = CLEARING;
        confine_kill(s->group, 0, 0, tree_dead, s);
    } else if (s->killed) {
        finish(s);
    }
}

/* --- while it runs --- */

static void tick(void *arg)
{
    struct step *s;
    int64_t delay = SLOWEST_TICK, other;

    CAST_OBJ(s, arg, STEP_MAGIC);
    if (s->state == DONE)
        return;
    if (s->spec.output != NULL)
        delay = output_check(s->spec.output);
    if (s->spec.tick != NULL && !s->leader_ended) {
        other = s->spec.tick(s->spec.hook_arg);
        delay = other < delay ? other : delay;
    }
    loop_timer_set(s->tick, delay);
}

/* Begins the forced end. */
static void force(struct step *s, enum ending why)
{
    s->why = why;
    s->state = ENDING;
    confine_signal(s->group, SIGTERM);
    confine_signal(s->group, SIGCONT); /* who is stopped would not hear it */
    loop_timer_set(s->limit,
                   s->spec.kill_grace_ns > 0 ? s->spec.kill_grace_ns : STEP_KILL_GRACE_NS);
}

static void limit_due(void *arg)
{
    struct step *s;

    CAST_OBJ(s, arg, STEP_MAGIC);
    if (s->state == RUNNING) {
        force(s, ENDING_TIMEOUT);
    } else if (s->state == ENDING) {
        s->state = CLEARING;
        confine_kill(s->group, 0, 0, tree_dead, s);
    }
}

void step_cancel(struct step *step)
{
    if (step->state == RUNNING)
        force(step, ENDING_CANCEL);
}

int64_t step_pid(const struct step *step)
{
    return step->proc != NULL && !step->leader_ended ? proc_pid(step->proc) : 0;
}

void step_usage(const struct step *step, struct confine_usage *out)
{
    if (step->group != NULL) {
        confine_usage(step->group, NULL, out);
        return;
    }
    *out = step->result.usage;
}

/* --- the start --- */

/* The shell could not even be tried: told from the loop like any other end. */
static void not_started(void *arg)
{
    struct step *s;

    CAST_OBJ(s, arg, STEP_MAGIC);
    mark_output(s);
    deliver(s);
}

static int spawn(struct step *s, const struct step_spec *spec, struct diag *diag)
{
    const char *plain[] = {"/bin/sh", "-c", spec->command, NULL};
    const char *strict[] = {"/bin/sh", "-e", "-c", spec->command, NULL};
    struct proc_spec p = PROC_SPEC_INIT;
    int r;

    p.argv = spec->stop_on_error ? strict : plain;
    p.env = spec->env;
    p.cwd = spec->cwd;
    p.out_fd = spec->output != NULL ? output_fd(spec->output) : -1;
    p.err_fd = p.out_fd;
    p.new_session = true;
    p.set_user = spec->set_user;
    p.uid = spec->uid;
    p.gid = spec->gid;
    p.nice = spec->nice;
    p.no_core = true;
    p.own_memory = true;
    p.no_new_privs = spec->set_user && spec->uid != 0; /* no program gives it back what was taken */
    confine_join(s->group, &p);
    if (spec->before != NULL)
        spec->before(spec->hook_arg);
    r = proc_spawn(s->loop, &p, leader_ended, s, &s->proc, diag);
    if (r == 0)
        confine_led_by(s->group, proc_pid(s->proc));
    return r;
}

int step_start(struct loop *loop, const struct step_spec *spec, step_end_f *f, void *arg,
               struct step **out, struct diag *diag)
{
    struct step *s = mem_xzalloc(sizeof(*s));
    struct diag *why;
    int r;

    *out = NULL;
    s->magic = STEP_MAGIC;
    s->loop = loop;
    s->spec = *spec;
    s->f = f;
    s->arg = arg;
    r = confine_begin(spec->confine, spec->name, &s->group, diag);
    if (r != 0) {
        free(s);
        return r;
    }
    s->tick = loop_timer_new(loop, tick, s);
    s->limit = loop_timer_new(loop, limit_due, s);
    why = diag_new(4);
    s->result.start_wall_ns = clock_wall_ns();
    s->result.start_ns = clock_mono_ns();
    r = spawn(s, spec, why);
    if (r == 0) {
        loop_timer_set(s->tick, FIRST_TICK);
        if (spec->timeout_ns > 0)
            loop_timer_set(s->limit, spec->timeout_ns);
    } else {
        s->result.ending = ENDING_NOEXEC;
        s->result.exit_status = -1;
        s->result.usage = (struct confine_usage){.way = CPU_WAY_NONE, .peak_bytes = -1};
        (void)snprintf(s->result.text, sizeof(s->result.text), "/bin/sh could not be started: %s",
                       diag_first(why));
        if (spec->after != NULL)
            spec->after(&s->end, spec->hook_arg);
        confine_end(&s->group);
        loop_timer_free(&s->tick);
        s->tick = loop_timer_new(loop, not_started, s);
        loop_timer_set(s->tick, 0);
    }
    diag_free(&why);
    *out = s;
    return 0;
}

void step_free(struct step **step)
{
    struct step *s = *step;

    if (s == NULL)
        return;
    if (s->group != NULL) {
        confine_signal(s->group, SIGKILL);
        confine_abandon(&s->group);
    }
    proc_free(&s->proc);
    loop_timer_free(&s->tick);
    loop_timer_free(&s->limit);
    s->magic = 0;
    free(s);
    *step = NULL;
}

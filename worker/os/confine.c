/* confine.c: the worker's confinement: one open group, its end in rounds of looking and killing,
 * and the sweep of what was left.
 *
 * Owns the rounds, the deadlines, the list of processes that cannot be ended. Where processes
 * are found: confine_groups.c, confine_follow.c. */
#include "worker/os/confine.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/proc.h"
#include "common/str.h"
#include "worker/os/confine_int.h"
#include "worker/os/os.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONFINE_MAGIC 0x636f6e66u
#define SEEN_MAX 128   /* processes told apart; more are only counted */
#define ALIVE_MAX 2048 /* found in one look: up to here none counts twice in it */
#define GRACE_MIN (20 * CLOCK_MS)
#define LIMIT_DEFAULT (10 * CLOCK_SEC)
#define WAIT_MIN CLOCK_MS
#define WAIT_MAX (50 * CLOCK_MS)
#define NAMES_MAX 256
#define FREE_TRIES 100
#define FREE_PAUSE_US 2000

/* A process, told from a later one with the same number by its start. */
struct seen {
    int64_t pid;
    int64_t start;
    char name[32];
};

/* Who is found in one look, and who was found so far. */
struct census {
    struct seen who[SEEN_MAX];
    size_t known;             /* entries of who */
    size_t now;               /* alive in the last look */
    size_t nameless;          /* of them, those without an entry */
    size_t most_nameless;     /* the most in one look */
    int64_t alive[ALIVE_MAX]; /* their numbers */
};

/* All that were found: of those without an entry, who was in several looks counts once. */
static size_t total_of(const struct census *census)
{
    return census->known + census->most_nameless;
}

/* What is being ended. */
struct job {
    bool on;
    bool killing; /* the grace is over */
    int64_t grace_end_ns;
    int64_t limit_end_ns;
    int64_t wait_ns;
    confine_f *f;
    void *arg;
    struct census census;
};

struct confine {
    unsigned magic;
    struct loop *loop;
    struct loop_timer *timer;
    char tag[33];
    char env[64];
    struct confine_opts opts;
    struct cg cg;
    bool confined;
    bool reaper;
    struct confine_group *group; /* the open one, or NULL */
    struct job job;
    struct seen stuck[SEEN_MAX];
    size_t stuck_count;
};

struct confine_group {
    struct confine *confine;
    struct cg_group cg;
    int64_t leader;
    int64_t leader_start;
    struct proc_usage orphans;
};

static void add_usage(struct proc_usage *sum, const struct proc_usage *more)
{
    sum->user_ns += more->user_ns;
    sum->sys_ns += more->sys_ns;
    if (more->max_rss_bytes > sum->max_rss_bytes)
        sum->max_rss_bytes = more->max_rss_bytes;
    sum->minor_faults += more->minor_faults;
    sum->major_faults += more->major_faults;
    sum->voluntary_switches += more->voluntary_switches;
    sum->involuntary_switches += more->involuntary_switches;
    sum->block_in += more->block_in;
    sum->block_out += more->block_out;
}

static void on_orphan(int64_t pid, const struct proc_end *end, void *arg)
{
    struct confine *c;

    (void)pid;
    CAST_OBJ(c, arg, CONFINE_MAGIC);
    if (c->group != NULL)
        add_usage(&c->group->orphans, &end->usage);
}

/* --- counting processes --- */

static void note(struct census *census, const struct os_proc *proc)
{
    for (size_t i = 0; i < census->now && i < ALIVE_MAX; i++)
        if (census->alive[i] == proc->pid)
            return; /* found in two ways */
    if (census->now < ALIVE_MAX)
        census->alive[census->now] = proc->pid;
    census->now++;
    for (size_t i = 0; i < census->known; i++)
        if (census->who[i].pid == proc->pid && census->who[i].start == proc->start)
            return;
    if (census->known < SEEN_MAX) {
        struct seen *s = &census->who[census->known++];

        s->pid = proc->pid;
        s->start = proc->start;
        (void)str_copy(s->name, sizeof(s->name), proc->name);
    } else if (++census->nameless > census->most_nameless) {
        census->most_nameless = census->nameless;
    }
}

static void note_proc(const struct os_proc *proc, void *arg)
{
    note(arg, proc);
}

static void note_pid(int64_t pid, void *arg)
{
    struct os_proc proc;

    if (os_proc_get(pid, &proc) == 0 && !proc.zombie)
        note(arg, &proc);
}

static const char *names_of(const struct seen *who, size_t known, size_t total, char dst[NAMES_MAX])
{
    struct buf text = BUF_INIT;
    size_t shown;

    for (shown = 0; shown < known && text.len < NAMES_MAX - 90; shown++) {
        if (shown > 0)
            buf_add_str(&text, ", ");
        str_escape(&text, who[shown].name, strlen(who[shown].name));
        buf_printf(&text, " (%" PRId64 ")", who[shown].pid);
    }
    if (total > shown)
        buf_printf(&text, " and %zu more", total - shown);
    (void)str_copy(dst, NAMES_MAX, buf_str(&text));
    buf_fini(&text);
    return dst;
}

/* --- looking and killing: the open group, or with none what earlier ones left --- */

/* Whether this process has a child that it has not waited for. As the reaper of orphans it has one
 * as long as any descendant lives: without one there is nothing to follow. */
static bool has_children(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

/* `stray`: those that left the control groups too. */
static void rule_of(const struct confine *c, bool stray, struct follow_rule *rule)
{
    memset(rule, 0, sizeof(*rule));
    rule->self = os_pid();
    rule->of_user = c->opts.set_user && c->opts.uid_is_ours && c->opts.uid != 0;
    rule->uid = c->opts.uid;
    rule->leader_start = -1;
    if (c->group == NULL) {
        rule->mark = c->env;
        return;
    }
    rule->leader = c->group->leader;
    rule->leader_start = c->group->leader_start;
    rule->descend = rule->leader > 0 && (!c->confined || (stray && has_children()));
    rule->zombies = c->reaper; /* what they used is known when they are reaped */
}

/* The processes of earlier groups that still live. */
static void note_stuck(struct confine *c, struct census *census)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->stuck_count; i++) {
        struct os_proc proc;

        if (os_proc_get(c->stuck[i].pid, &proc) != 0 || proc.zombie ||
            proc.start != c->stuck[i].start)
            continue;
        c->stuck[kept++] = c->stuck[i];
        if (census != NULL)
            note(census, &proc);
    }
    c->stuck_count = kept;
}

static void look(struct confine *c, struct census *census)
{
    struct follow_rule rule;

    census->now = census->nameless = 0;
    if (c->group != NULL) {
        if (!cg_empty(&c->group->cg))
            cg_pids(&c->group->cg, note_pid, census);
    } else {
        struct cg_group left;

        for (size_t i = 0; cg_leftover(&c->cg, NULL, i, &left); i++)
            cg_pids(&left, note_pid, census);
        note_stuck(c, census);
    }
    rule_of(c, true, &rule);
    /* A system that lists no processes has said so when this object was made. */
    if ((rule.descend || rule.of_user || rule.mark != NULL) &&
        follow_each(&rule, note_proc, census) != 0)
        return;
}

static void end_proc(const struct os_proc *proc, void *arg)
{
    const int *signal = arg;

    if (os_kill(proc->pid, *signal) != 0)
        return; /* gone meanwhile, or not ours to end: the next look tells */
}

static void signal_all(struct confine *c, int signal)
{
    struct follow_rule rule;

    if (c->group != NULL) {
        if (signal == SIGKILL)
            cg_kill(&c->group->cg);
        else
            cg_signal(&c->group->cg, signal);
    } else {
        struct cg_group left;
        struct os_proc proc;

        for (size_t i = 0; cg_leftover(&c->cg, NULL, i, &left); i++)
            cg_kill(&left);
        for (size_t i = 0; i < c->stuck_count; i++)
            if (os_proc_get(c->stuck[i].pid, &proc) == 0 && proc.start == c->stuck[i].start)
                end_proc(&proc, &signal);
    }
    /* The groups pass on a polite signal: nobody is to get it twice. */
    rule_of(c, signal == SIGKILL, &rule);
    if ((rule.descend || rule.of_user || rule.mark != NULL) &&
        follow_each(&rule, end_proc, &signal) != 0)
        return;
}

/* Groups that nobody closed: their folders go when they are empty. Returns how many stay. */
static size_t remove_leftovers(struct confine *c)
{
    const struct cg_group *open = c->group == NULL ? NULL : &c->group->cg;
    struct cg_group left;
    size_t stay = 0;

    while (cg_leftover(&c->cg, open, stay, &left))
        if (!cg_close(&left))
            stay++;
    return stay;
}

static void finish(struct confine *c)
{
    struct job *job = &c->job;
    struct confine_left left = {.killed = 0};
    char names[NAMES_MAX];
    size_t total = total_of(&job->census);
    confine_f *f = job->f;
    void *arg = job->arg;

    left.stuck = job->census.now;
    if (job->killing)
        left.killed = total > left.stuck ? total - left.stuck : 0;
    for (size_t i = 0; i < job->census.now && i < ALIVE_MAX && c->stuck_count < SEEN_MAX; i++) {
        struct os_proc proc;

        if (os_proc_get(job->census.alive[i], &proc) != 0 || proc.zombie)
            continue;
        c->stuck[c->stuck_count] = (struct seen){.pid = proc.pid, .start = proc.start};
        (void)str_copy(c->stuck[c->stuck_count].name, sizeof(c->stuck[0].name), proc.name);
        c->stuck_count++;
    }
    left.names = job->killing ? names_of(job->census.who, job->census.known, total, names) : "";
    job->on = false;
    if (c->group == NULL)
        (void)remove_leftovers(c);
    f(&left, arg);
}

static void round_due(void *arg)
{
    struct confine *c;
    struct job *job;
    int64_t now;

    CAST_OBJ(c, arg, CONFINE_MAGIC);
    job = &c->job;
    if (!job->on)
        return;
    if (!job->killing) /* who ends in the grace does not count */
        job->census.known = job->census.most_nameless = 0;
    look(c, &job->census);
    now = clock_mono_ns();
    if (job->census.now == 0) {
        finish(c);
        return;
    }
    if (!job->killing && now >= job->grace_end_ns)
        job->killing = true;
    if (job->killing) {
        if (now >= job->limit_end_ns) {
            finish(c);
            return;
        }
        signal_all(c, SIGKILL);
    }
    loop_timer_set(c->timer, job->wait_ns);
    job->wait_ns = job->wait_ns * 2 < WAIT_MAX ? job->wait_ns * 2 : WAIT_MAX;
}

static void begin_job(struct confine *c, int64_t grace_ns, int64_t limit_ns, confine_f *f,
                      void *arg)
{
    struct job *job = &c->job;

    assert(!job->on);
    memset(job, 0, sizeof(*job));
    job->on = true;
    job->f = f;
    job->arg = arg;
    job->wait_ns = WAIT_MIN;
    job->grace_end_ns = clock_mono_ns() + grace_ns;
    job->limit_end_ns = job->grace_end_ns + (limit_ns > 0 ? limit_ns : LIMIT_DEFAULT);
    loop_timer_set(c->timer, 0);
}

void confine_kill(struct confine_group *group, int64_t grace_ns, int64_t limit_ns, confine_f *f,
                  void *arg)
{
    begin_job(group->confine, grace_ns > GRACE_MIN ? grace_ns : GRACE_MIN, limit_ns, f, arg);
}

int confine_sweep(struct confine *confine, confine_f *f, void *arg, struct diag *diag)
{
    if (confine->group != NULL || confine->job.on)
        return diag_error(diag, ERR_STATE, "a group of processes is open");
    begin_job(confine, 0, 0, f, arg);
    return 0;
}

void confine_signal(struct confine_group *group, int signal)
{
    signal_all(group->confine, signal);
}

/* --- the worker's object --- */

static int count_one(const struct os_proc *proc, void *arg)
{
    (void)proc;
    (void)arg;
    return 1;
}

int confine_new(struct loop *loop, const struct confine_opts *opts, struct confine **out,
                struct diag *diag)
{
    struct confine *c = mem_xzalloc(sizeof(*c));
    unsigned use = opts->use == 0 ? CONFINE_ALL : opts->use;
    bool lists = os_procs(count_one, NULL) == 1;
    int r;

    *out = NULL;
    c->magic = CONFINE_MAGIC;
    c->loop = loop;
    c->opts = *opts;
    (void)str_copy(c->tag, sizeof(c->tag), opts->tag);
    c->opts.tag = c->tag;
    (void)snprintf(c->env, sizeof(c->env), "MAKESPAN_WORKER=%s", c->tag);
    cg_probe(&c->cg, c->tag, use, diag);
    c->confined = cg_any(&c->cg);
    if (!c->confined && !lists) {
        free(c);
        return diag_error(
            diag, ERR_SYS,
            "builds cannot be held together: no control groups, and processes cannot be listed");
    }
    r = proc_reap_orphans(loop, on_orphan, c);
    c->reaper = r == 0;
    if (r != 0)
        (void)diag_note(diag, "orphans of builds are not given to this process: %s", err_text(r));
    c->timer = loop_timer_new(loop, round_due, c);
    *out = c;
    return 0;
}

void confine_free(struct confine **confine)
{
    struct confine *c = *confine;

    if (c == NULL)
        return;
    assert(c->group == NULL);
    loop_timer_free(&c->timer);
    if (c->reaper && proc_reap_orphans(c->loop, NULL, NULL) != 0)
        c->reaper = false;
    /* What was killed just now is gone for good only a moment later. */
    for (int i = 0; i < FREE_TRIES && remove_leftovers(c) > 0; i++)
        (void)usleep(FREE_PAUSE_US);
    cg_fini(&c->cg);
    c->magic = 0;
    free(c);
    *confine = NULL;
}

const char *confine_way_text(const struct confine *confine)
{
    return cg_text(&confine->cg);
}

bool confine_is_confined(const struct confine *confine)
{
    return confine->confined;
}

const char *confine_env(const struct confine *confine)
{
    return confine->env;
}

/* --- a group --- */

int confine_begin(struct confine *confine, const char *name, struct confine_group **out,
                  struct diag *diag)
{
    struct confine_group *g;
    char names[NAMES_MAX];
    int r;

    *out = NULL;
    if (confine->group != NULL || confine->job.on)
        return diag_error(diag, ERR_STATE, "a group of processes is open");
    note_stuck(confine, NULL);
    if (confine->stuck_count > 0)
        return diag_error(
            diag, ERR_BUSY, "processes of an earlier run could not be ended: %s",
            names_of(confine->stuck, confine->stuck_count, confine->stuck_count, names));
    (void)remove_leftovers(confine);
    g = mem_xzalloc(sizeof(*g));
    g->confine = confine;
    g->leader_start = -1;
    r = cg_open(&confine->cg, name, &g->cg, diag);
    if (r != 0) {
        free(g);
        return r;
    }
    confine->group = g;
    *out = g;
    return 0;
}

void confine_join(const struct confine_group *group, struct proc_spec *spec)
{
    spec->join_count = 0;
    for (int k = 0; k < CG_KINDS; k++)
        if (group->cg.join_fd[k] >= 0)
            spec->join_fds[spec->join_count++] = group->cg.join_fd[k];
}

void confine_led_by(struct confine_group *group, int64_t pid)
{
    struct os_proc proc;

    group->leader = pid;
    group->leader_start = os_proc_get(pid, &proc) == 0 ? proc.start : -1;
}

void confine_usage(const struct confine_group *group, const struct proc_usage *leader,
                   struct confine_usage *out)
{
    out->way = cg_usage(&group->cg, &out->user_ns, &out->sys_ns, &out->peak_bytes);
    if (out->way != CPU_WAY_NONE || leader == NULL)
        return;
    out->way = group->confine->reaper ? CPU_WAY_REAPER : CPU_WAY_WAIT4;
    out->user_ns = leader->user_ns + group->orphans.user_ns;
    out->sys_ns = leader->sys_ns + group->orphans.sys_ns;
}

void confine_orphans(const struct confine_group *group, struct proc_usage *out)
{
    *out = group->orphans;
}

void confine_end(struct confine_group **group)
{
    struct confine_group *g = *group;

    if (g == NULL)
        return;
    assert(!g->confine->job.on);
    (void)cg_close(&g->cg); /* what is busy still goes with the next group */
    g->confine->group = NULL;
    free(g);
    *group = NULL;
}

void confine_abandon(struct confine_group **group)
{
    if (*group == NULL)
        return;
    (*group)->confine->job.on = false;
    loop_timer_clear((*group)->confine->timer);
    confine_end(group);
}

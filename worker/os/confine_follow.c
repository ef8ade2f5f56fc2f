/* confine_follow.c: finds the processes of a build by descent, session, user and environment.
 * Owns only the list of a moment. */
#include "worker/os/confine_int.h"

#include "common/err.h"
#include "common/mem.h"
#include "worker/os/os.h"

#include <stdlib.h>
#include <string.h>

#define LIST_CAP (64 * 1024 * 1024) /* bytes: some 400 000 processes */

struct entry {
    struct os_proc proc;
    bool in;     /* belongs */
    bool others; /* another worker, or a descendant of one */
};

struct list {
    struct entry *entry; /* by process id, once sorted */
    size_t count;
    size_t room;
    int err;
};

bool follow_is_worker_name(const char *name)
{
    /* The system may show 15 bytes of a name. */
    return strncmp(name, "makespan-worker", 15) == 0;
}

static int add(const struct os_proc *proc, void *arg)
{
    struct list *list = arg;

    if (proc->kernel)
        return 0;
    if (list->count == list->room) {
        size_t room = list->room == 0 ? 256 : list->room * 2;
        struct entry *more =
            room * sizeof(*more) > LIST_CAP ? NULL : realloc(list->entry, room * sizeof(*more));

        if (more == NULL)
            return -ERR_NOMEM;
        list->entry = more;
        list->room = room;
    }
    list->entry[list->count++] = (struct entry){.proc = *proc};
    return 0;
}

static int by_pid(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return (x->proc.pid > y->proc.pid) - (x->proc.pid < y->proc.pid);
}

static struct entry *find(const struct list *list, int64_t pid)
{
    struct entry key = {.proc.pid = pid};

    return list->count == 0 ? NULL : bsearch(&key, list->entry, list->count, sizeof(key), by_pid);
}

static bool younger(const struct follow_rule *rule, const struct os_proc *proc)
{
    return rule->leader_start < 0 || proc->start >= rule->leader_start;
}

/* Those that the rule names directly. */
static void seed(const struct follow_rule *rule, const struct list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct entry *e = &list->entry[i];
        const struct os_proc *p = &e->proc;

        if (p->pid == rule->self || p->pid <= 1)
            continue;
        /* A build can take the name of a worker, but not be of another user than its own. */
        e->others =
            follow_is_worker_name(p->name) && !(rule->of_user && os_proc_is_of(p->pid, rule->uid));
        if (rule->descend && rule->leader > 0 && younger(rule, p) &&
            (p->pid == rule->leader || p->sid == rule->leader || p->pgid == rule->leader ||
             p->ppid == rule->self))
            e->in = true;
    }
}

/* Takes in the children of what is in, until nothing changes. Sorted by number, parents mostly
 * stand before their children. */
static void spread(const struct list *list, int64_t self)
{
    bool changed = true;

    while (changed) {
        changed = false;
        for (size_t i = 0; i < list->count; i++) {
            struct entry *e = &list->entry[i], *parent;

            if (e->proc.pid == self || e->proc.pid <= 1 || (e->in && e->others))
                continue;
            parent = find(list, e->proc.ppid);
            if (parent == NULL || parent->proc.pid == self)
                continue;
            if (parent->in && !e->in) {
                e->in = true;
                changed = true;
            }
            if (parent->others && !e->others) {
                e->others = true;
                changed = true;
            }
        }
    }
}

int follow_each(const struct follow_rule *rule, follow_f *f, void *arg)
{
    struct list list = {NULL, 0, 0, 0};
    int r = os_procs(add, &list);

    if (r == 0) {
        if (list.count > 0)
            qsort(list.entry, list.count, sizeof(*list.entry), by_pid);
        seed(rule, &list);
        spread(&list, rule->self);
        for (size_t i = 0; i < list.count; i++) {
            struct entry *e = &list.entry[i];

            if (e->proc.pid <= 1 || e->proc.pid == rule->self)
                continue;
            if (e->proc.zombie && !(rule->zombies && e->in && e->proc.ppid == rule->self &&
                                    e->proc.pid != rule->leader))
                continue;
            if (!e->in && !e->others &&
                ((rule->of_user && os_proc_is_of(e->proc.pid, rule->uid)) ||
                 (rule->mark != NULL && os_proc_has_env(e->proc.pid, rule->mark))))
                e->in = true;
            if (e->in)
                f(&e->proc, arg);
        }
    }
    free(list.entry);
    return r;
}

/* confine_groups.c: Linux's control groups as a build's container: v2, the older hierarchies, or
 * both side by side.
 *
 * Owns the folders makespan-TAG and what is in them. Which hierarchies there are says os.h;
 * files are read and written here, with plain system calls and without allocation where the
 * timed window asks. */
#include "worker/os/confine_int.h"

#include "common/compat/compat.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/num.h"
#include "common/str.h"
#include "worker/os/confine.h"
#include "worker/os/os.h"
#include "worker/os/parse_cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SELF "/makespan-self" /* the worker's own leaf, where it had to make room */

static bool path_of(char *dst, const char *folder, const char *name)
{
    int n = snprintf(dst, CG_PATH, "%s/%s", folder, name);

    return n > 0 && n < CG_PATH;
}

/* The first room - 1 bytes of a file. */
static bool read_text(const char *folder, const char *name, char *dst, size_t room)
{
    char path[CG_PATH];
    ssize_t n;
    int fd;

    if (!path_of(path, folder, name) || (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return false;
    n = read(fd, dst, room - 1);
    (void)close(fd);
    dst[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static bool write_text(const char *folder, const char *name, const char *text)
{
    char path[CG_PATH];
    size_t len = strlen(text);
    bool ok;
    int fd;

    if (!path_of(path, folder, name) || (fd = open(path, O_WRONLY | O_CLOEXEC)) < 0)
        return false;
    ok = write(fd, text, len) == (ssize_t)len;
    (void)close(fd);
    return ok;
}

static bool has_file(const char *folder, const char *name)
{
    char path[CG_PATH];

    return path_of(path, folder, name) && access(path, F_OK) == 0;
}

static bool make_folder(const char *path)
{
    return mkdir(path, 0755) == 0 || errno == EEXIST;
}

/* Whether a process of this one's kind can be put into the group: a child tries. */
static bool can_join(const char *folder)
{
    char path[CG_PATH];
    int fd, status = 1;
    pid_t pid;

    if (!path_of(path, folder, "cgroup.procs") || (fd = open(path, O_WRONLY | O_CLOEXEC)) < 0)
        return false;
    pid = fork();
    if (pid == 0)
        _exit(write(fd, "0\n", 2) == 2 ? 0 : 1);
    (void)close(fd);
    if (pid < 0)
        return false;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* v2 counts memory only when the group above hands the controller down, which it may only while
 * it holds no process itself (the root may always): this process moves into a leaf of its own,
 * when it is alone. */
static void hand_down_memory(char *own, const char *parent)
{
    char text[256], alone[32], leaf[CG_PATH];

    if (!read_text(own, "cgroup.controllers", text, sizeof(text)) || strstr(text, "memory") == NULL)
        return;
    if (!write_text(own, "cgroup.subtree_control", "+memory") && errno == EBUSY) {
        (void)snprintf(alone, sizeof(alone), "%" PRId64 "\n", os_pid());
        if (!read_text(own, "cgroup.procs", text, sizeof(text)) || strcmp(text, alone) != 0)
            return;
        if (!path_of(leaf, own, &SELF[1]) || !make_folder(leaf) ||
            !write_text(leaf, "cgroup.procs", alone))
            return;
        (void)write_text(own, "cgroup.subtree_control", "+memory");
    }
    (void)write_text(parent, "cgroup.subtree_control", "+memory");
}

static void give_up(struct cg_place *place)
{
    (void)rmdir(place->parent);
    if (place->own_fd >= 0)
        (void)close(place->own_fd);
    place->own_fd = -1;
}

static void try_place(struct cg *cg, int kind, const char *folder, const char *tag,
                      struct diag *diag)
{
    static const char *const name[] = {[CG_V2] = "cgroup v2",
                                       [CG_CPUACCT] = "cgroup cpuacct",
                                       [CG_MEMORY] = "cgroup memory",
                                       [CG_FREEZER] = "cgroup freezer"};
    struct cg_place *place = &cg->place[kind];
    char own[CG_PATH], child[CG_PATH], *self;
    int n;

    if (folder[0] == '\0')
        return;
    (void)str_copy(own, sizeof(own), folder);
    self = strstr(own, SELF);
    if (self != NULL && self[strlen(SELF)] == '\0')
        *self = '\0';
    n = snprintf(place->parent, sizeof(place->parent), "%s%smakespan-%s", own,
                 own[strlen(own) - 1] == '/' ? "" : "/", tag);
    place->own_fd = n < 0 || n >= CG_PATH ? -1 : cg_own(place->parent);
    if (place->own_fd < 0) {
        (void)diag_note(diag, "%s is not used: %s cannot be made: %s", name[kind], place->parent,
                        strerror(errno));
        return;
    }
    if (kind == CG_V2)
        hand_down_memory(own, place->parent);
    if (path_of(child, place->parent, "probe") && make_folder(child) && can_join(child))
        place->on = true;
    else
        (void)diag_note(diag, "%s is not used: no process can be put into %s", name[kind], child);
    if (kind == CG_V2 && place->on)
        cg->v2_cpu = has_file(child, "cpu.stat");
    /* A joined child is gone for good only a moment after it was waited for. */
    for (int i = 0; i < 100 && rmdir(child) != 0 && errno == EBUSY; i++)
        (void)usleep(1000);
    (void)cg_remove_abandoned(place->parent);
    if (!place->on)
        give_up(place);
}

void cg_probe(struct cg *cg, const char *tag, unsigned use, struct diag *diag)
{
    struct os_cgroups at;

    memset(cg, 0, sizeof(*cg));
    if ((use & (CONFINE_V1 | CONFINE_V2)) == 0 || os_cgroups(&at) != 0)
        return;
    if ((use & CONFINE_V2) != 0)
        try_place(cg, CG_V2, at.v2, tag, diag);
    if ((use & CONFINE_V1) == 0)
        return;
    /* Each hierarchy that is joined costs the build something: v2 kills and counts time by
     * itself. */
    if (!cg->v2_cpu)
        try_place(cg, CG_CPUACCT, at.cpuacct, tag, diag);
    if (!cg->place[CG_V2].on)
        try_place(cg, CG_FREEZER, at.freezer, tag, diag);
    try_place(cg, CG_MEMORY, at.memory, tag, diag);
}

void cg_fini(struct cg *cg)
{
    for (int k = 0; k < CG_KINDS; k++)
        if (cg->place[k].on)
            give_up(&cg->place[k]);
    memset(cg, 0, sizeof(*cg));
}

bool cg_any(const struct cg *cg)
{
    for (int k = 0; k < CG_KINDS; k++)
        if (cg->place[k].on)
            return true;
    return false;
}

const char *cg_text(const struct cg *cg)
{
    bool v1 = cg->place[CG_CPUACCT].on || cg->place[CG_MEMORY].on || cg->place[CG_FREEZER].on;

    if (cg->place[CG_V2].on)
        return v1 ? "cgroup2+cgroup1" : "cgroup2";
    return v1 ? "cgroup1" : "follow";
}

int cg_open(const struct cg *cg, const char *name, struct cg_group *out, struct diag *diag)
{
    memset(out, 0, sizeof(*out));
    out->cg = cg;
    for (int k = 0; k < CG_KINDS; k++)
        out->join_fd[k] = -1;
    for (int k = 0; k < CG_KINDS; k++) {
        char procs[CG_PATH];

        if (!cg->place[k].on)
            continue;
        if (path_of(out->path[k], cg->place[k].parent, name) && make_folder(out->path[k]) &&
            path_of(procs, out->path[k], "cgroup.procs"))
            out->join_fd[k] = open(procs, O_WRONLY | O_CLOEXEC);
        if (out->join_fd[k] < 0) {
            int code = err_from_errno(errno);

            code = diag_error(diag, code, "the control group %s cannot be made: %s", out->path[k],
                              strerror(errno));
            (void)cg_close(out);
            return code;
        }
    }
    return 0;
}

bool cg_close(struct cg_group *group)
{
    bool gone = true;

    for (int k = 0; k < CG_KINDS; k++) {
        if (group->join_fd[k] >= 0)
            (void)close(group->join_fd[k]);
        group->join_fd[k] = -1;
        if (group->path[k][0] != '\0' && rmdir(group->path[k]) != 0 && errno != ENOENT)
            gone = false;
        group->path[k][0] = '\0';
    }
    return gone;
}

enum cpu_way cg_usage(const struct cg_group *group, int64_t *user_ns, int64_t *sys_ns,
                      int64_t *peak_bytes)
{
    char text[1024], more[256];
    enum cpu_way way = CPU_WAY_NONE;

    *user_ns = -1;
    *sys_ns = -1;
    *peak_bytes = -1;
    if (group->path[CG_V2][0] != '\0') {
        if (read_text(group->path[CG_V2], "cpu.stat", text, sizeof(text)) &&
            parse_cgroup_cpu_stat(text, user_ns, sys_ns) == 0)
            way = CPU_WAY_CGROUP2;
        if (read_text(group->path[CG_V2], "memory.peak", text, sizeof(text)) &&
            parse_cgroup_max(text, peak_bytes) != 0)
            *peak_bytes = -1;
    }
    if (way == CPU_WAY_NONE && group->path[CG_CPUACCT][0] != '\0' &&
        read_text(group->path[CG_CPUACCT], "cpuacct.usage", more, sizeof(more)) &&
        read_text(group->path[CG_CPUACCT], "cpuacct.stat", text, sizeof(text)) &&
        parse_cgroup_cpuacct(more, text, user_ns, sys_ns) == 0)
        way = CPU_WAY_CGROUP1;
    if (*peak_bytes < 0 && group->path[CG_MEMORY][0] != '\0' &&
        read_text(group->path[CG_MEMORY], "memory.max_usage_in_bytes", text, sizeof(text)) &&
        parse_cgroup_max(text, peak_bytes) != 0)
        *peak_bytes = -1;
    return way;
}

/* --- members --- */

/* The processes of one folder. */
static void pids_of(const char *folder, cg_pid_f *f, void *arg)
{
    char path[CG_PATH], chunk[4096];
    size_t n = 0;
    int fd;

    if (!path_of(path, folder, "cgroup.procs") || (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return;
    for (;;) {
        ssize_t r = read(fd, chunk + n, sizeof(chunk) - n);
        size_t at = 0;

        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            break;
        n += (size_t)r;
        for (;;) { /* whole lines */
            const char *end = memchr(chunk + at, '\n', n - at);
            uint64_t pid;

            if (end == NULL)
                break;
            if (num_parse_digits(chunk + at, (size_t)(end - (chunk + at)), &pid) == 0 && pid > 1)
                f((int64_t)pid, arg);
            at = (size_t)(end + 1 - chunk);
        }
        memmove(chunk, chunk + at, n - at);
        n -= at;
    }
    (void)close(fd);
}

/* A folder and all below it: a build may make groups of its own where it is let. Calls f with
 * each folder, the deepest first. */
static void walk_down(const char *folder, int depth, void (*f)(const char *folder, void *arg),
                      void *arg)
{
    DIR *dir = depth < 16 ? opendir(folder) : NULL;
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char path[CG_PATH];
        struct stat st;

        if (entry->d_name[0] == '.' || !path_of(path, folder, entry->d_name) ||
            compat_stat(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, &st, NULL) != 0 ||
            !S_ISDIR(st.st_mode))
            continue;
        walk_down(path, depth + 1, f, arg);
    }
    if (dir != NULL)
        (void)closedir(dir);
    f(folder, arg);
}

struct pids_arg {
    cg_pid_f *f;
    void *arg;
};

static void pids_of_folder(const char *folder, void *arg)
{
    struct pids_arg *a = arg;

    pids_of(folder, a->f, a->arg);
}

/* The hierarchy that is asked who is in the group. */
static const char *listing(const struct cg_group *group)
{
    static const int order[] = {CG_V2, CG_FREEZER, CG_CPUACCT, CG_MEMORY};

    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        if (group->path[order[i]][0] != '\0')
            return group->path[order[i]];
    return NULL;
}

void cg_pids(const struct cg_group *group, cg_pid_f *f, void *arg)
{
    struct pids_arg a = {f, arg};
    const char *folder = listing(group);

    if (folder != NULL)
        walk_down(folder, 0, pids_of_folder, &a);
}

static void note_alive(int64_t pid, void *arg)
{
    struct os_proc proc;
    bool *alive = arg;

    if (os_proc_get(pid, &proc) == 0 && !proc.zombie)
        *alive = true;
}

bool cg_empty(const struct cg_group *group)
{
    char text[256];
    bool populated, alive = false;

    if (group->path[CG_V2][0] != '\0' &&
        read_text(group->path[CG_V2], "cgroup.events", text, sizeof(text)) &&
        parse_cgroup_populated(text, &populated) == 0)
        return !populated;
    cg_pids(group, note_alive, &alive);
    return !alive;
}

static void send_signal(int64_t pid, void *arg)
{
    const int *signal = arg;

    if (os_kill(pid, *signal) != 0)
        return; /* gone meanwhile, or not ours to end: the next look tells */
}

void cg_signal(const struct cg_group *group, int signal)
{
    cg_pids(group, send_signal, &signal);
}

static void thaw(const char *folder, void *arg)
{
    (void)arg;
    (void)write_text(folder, "freezer.state", "THAWED");
}

void cg_kill(const struct cg_group *group)
{
    const char *v2 = group->path[CG_V2], *freezer = group->path[CG_FREEZER];

    if (v2[0] != '\0' && write_text(v2, "cgroup.kill", "1"))
        return;
    /* Nobody forks while all are frozen; the signals arrive when they thaw. */
    if (v2[0] != '\0')
        (void)write_text(v2, "cgroup.freeze", "1");
    if (freezer[0] != '\0')
        (void)write_text(freezer, "freezer.state", "FROZEN");
    cg_signal(group, SIGKILL);
    if (v2[0] != '\0')
        (void)write_text(v2, "cgroup.freeze", "0");
    if (freezer[0] != '\0')
        walk_down(freezer, 0, thaw, NULL);
}

bool cg_leftover(const struct cg *cg, const struct cg_group *open, size_t skip,
                 struct cg_group *out)
{
    for (int k = 0; k < CG_KINDS; k++) {
        DIR *dir = cg->place[k].on ? opendir(cg->place[k].parent) : NULL;
        struct dirent *entry;
        bool found = false;

        while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
            char path[CG_PATH];
            struct stat st;

            if (entry->d_name[0] == '.' || !path_of(path, cg->place[k].parent, entry->d_name) ||
                compat_stat(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, &st, NULL) != 0 ||
                !S_ISDIR(st.st_mode) ||
                (open != NULL && strcmp(open->path[k], path) == 0))
                continue;
            if (skip > 0) {
                skip--;
                continue;
            }
            memset(out, 0, sizeof(*out));
            out->cg = cg;
            for (int i = 0; i < CG_KINDS; i++)
                out->join_fd[i] = -1;
            (void)str_copy(out->path[k], CG_PATH, path);
            found = true;
        }
        if (dir != NULL)
            (void)closedir(dir);
        if (found)
            return true;
    }
    return false;
}

/* os.c: worker/os/os.h: a host of fixed size; what differs is its machine's number and boot. */
#include "worker/os/os.h"

#include "common/err.h"
#include "common/str.h"
#include "tests/sim/disk.h"
#include "tests/sim/fakes/child.h"
#include "tests/sim/fakes/file.h"

#include <stdio.h>
#include <string.h>

int os_cpus(struct os_cpus *out)
{
    *out = (struct os_cpus){.online = 4,
                            .affinity = 4,
                            .quota_milli = -1,
                            .sockets = 1,
                            .cores = 4,
                            .threads = 4,
                            .numa = 1,
                            .model = "Simulated CPU"};
    return 0;
}

int os_memory(struct os_memory *out)
{
    *out = (struct os_memory){INT64_C(8) << 30, INT64_C(6) << 30, 0, 0};
    return 0;
}

int os_ident(struct os_ident *out)
{
    struct node *node = sim_here();
    *out = (struct os_ident){.name = "Linux",
                             .release = "6.1.0",
                             .version = "#1",
                             .machine = "x86_64",
                             .system = "Simulated system",
                             .kernel = "Linux 6.1.0 #1 x86_64",
                             .clock_source = "tsc"};
    str_copy(out->hostname, sizeof(out->hostname), node->name);
    str_copy(out->boot_id, sizeof(out->boot_id), sim_machine_of(node)->boot_id);
    snprintf(out->machine_id, sizeof(out->machine_id), "%032x", node->machine + 1);
    return 0;
}

int os_limits(struct os_limits *out)
{
    *out = (struct os_limits){.processes = 30000,
                              .files = 20000,
                              .stack = 8 << 20,
                              .core = 0,
                              .pids = OS_NO_LIMIT,
                              .memory = OS_NO_LIMIT};
    return 0;
}

int os_load(struct os_load *out)
{
    *out = (struct os_load){{500, 400, 300}, 1};
    return 0;
}

int os_ticks(struct os_ticks *out)
{
    int64_t now = sim_world()->now_ns;
    *out = (struct os_ticks){now, now / 10, now * 2, 0, 0, 0};
    return 0;
}

int os_paging(struct os_paging *out)
{
    *out = (struct os_paging){0, 0};
    return 0;
}

int os_pressure(enum os_pressure what, int64_t *some_ns)
{
    (void)what;
    *some_ns = 0;
    return 0;
}

int os_self_usage(struct os_usage *out)
{
    int64_t now = sim_world()->now_ns;
    *out = (struct os_usage){now / 10000, now / 20000, 4 << 20, 0};
    return 0;
}

bool os_is_root(void)
{
    return true;
}

uint32_t os_uid(void)
{
    return 0;
}

uint32_t os_gid(void)
{
    return 0;
}

int64_t os_pid(void)
{
    return 2 + (int64_t)sim_here()->index;
}

int os_user_find(const char *name, struct os_user *out)
{
    (void)name;
    *out = (struct os_user){1000, 1000};
    return 0;
}

int os_chown(const char *path, uint32_t uid, uint32_t gid)
{
    struct inode *inode = disk_find(sim_here()->disk, path);
    (void)gid;
    if (inode == NULL) {
        return -ERR_NOTFOUND;
    }
    inode_set(inode, inode_mode(inode), uid, inode_mtime(inode));
    return 0;
}

static void describe(const struct sim_child *child, struct os_proc *out)
{
    *out = (struct os_proc){.pid = child->pid,
                            .ppid = 2,
                            .pgid = child->pid,
                            .sid = child->pid,
                            .start = child->start_ns,
                            .name = "sh"};
}

int os_procs(os_proc_f *f, void *arg)
{
    for (struct sim_child *c = sim_machine_of(sim_here())->children; c != NULL; c = c->next) {
        struct os_proc proc;
        describe(c, &proc);
        int rc = f(&proc, arg);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

int os_proc_get(int64_t pid, struct os_proc *out)
{
    struct sim_child *child = sim_child_find(sim_here()->machine, pid);
    if (child == NULL) {
        return -ERR_NOTFOUND;
    }
    describe(child, out);
    return 0;
}

bool os_proc_is_of(int64_t pid, uint32_t uid)
{
    return sim_child_find(sim_here()->machine, pid) != NULL && uid == 0;
}

bool os_proc_has_env(int64_t pid, const char *name_value)
{
    struct sim_child *child = sim_child_find(sim_here()->machine, pid);
    const char *value = strchr(name_value, '=');
    return child != NULL && value != NULL && str_eq(child->tag, value + 1);
}

int os_kill(int64_t pid, int number)
{
    struct sim_child *child = sim_child_find(sim_here()->machine, pid);
    if (child == NULL) {
        return -ERR_NOTFOUND;
    }
    if (!sim_here()->gone) {
        sim_child_signal(child, number);
    }
    return 0;
}

int os_cgroups(struct os_cgroups *out)
{
    memset(out, 0, sizeof(*out));
    return -ERR_UNSUP;
}

const char *os_lock_path(void)
{
    return "/run/lock/makespan.lock";
}

int os_fs_kind(const char *path, char *dst, size_t room)
{
    (void)path;
    str_copy(dst, room, "ext4");
    return 0;
}

int os_punch(int fd, uint64_t offset, uint64_t length)
{
    static const uint8_t zeros[4096];
    struct sim_open *open = sim_open_find(sim_here(), fd);
    if (open == NULL) {
        return -ERR_INVAL;
    }
    uint64_t end = inode_size(open->inode);
    end = offset + length < end ? offset + length : end;
    for (uint64_t at = offset; at < end;) {
        size_t n = end - at < sizeof(zeros) ? (size_t)(end - at) : sizeof(zeros);
        int rc = inode_write(open->disk, open->inode, at, zeros, n);
        if (rc != 0) {
            return rc;
        }
        at += n;
    }
    return 0;
}

int os_fd_chown(int fd, uint32_t uid, uint32_t gid)
{
    struct sim_open *open = sim_open_find(sim_here(), fd);
    (void)gid;
    if (open == NULL) {
        return -ERR_INVAL;
    }
    inode_set(open->inode, inode_mode(open->inode), uid, inode_mtime(open->inode));
    return 0;
}

char *const *os_environ(void)
{
    static char *const none[] = {NULL};
    return none;
}

/* fileio.c: common/fileio.h on the disk of the node whose code runs; outside of all nodes there are
 * no files. Locks are the machine's, and end with the process that holds them. */
#include "common/fileio.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/sim/disk.h"
#include "tests/sim/fakes/file.h"
#include "tests/sim/sim.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers for file_fd(): no descriptor of this process. */
#define FIRST_FD (1 << 20)

struct file {
    struct sim_open open;
    int flags;
};

struct file_lock {
    struct sim_lock *lock;
};

/* A lock of a machine; in its list while it is held. */
struct sim_lock {
    struct sim_lock *next;
    struct node *node;
    struct file_lock *handle; /* NULL: its process has ended */
    char path[FILE_PATH_MAX];
    char holder[256];
};

static struct disk *here(void)
{
    struct node *node = sim_here();
    assert(node != NULL);
    return node->disk;
}

/* --- open files --- */

static int may(const char *path, struct inode *inode, int flags)
{
    if (inode == NULL) {
        return flags & FILE_CREATE ? 0 : -ERR_NOTFOUND;
    }
    if ((flags & FILE_CREATE) != 0 && (flags & FILE_EXCL) != 0) {
        return -ERR_EXISTS;
    }
    (void)path;
    return inode_is_folder(inode) && (flags & (FILE_WRITE | FILE_APPEND)) != 0 ? -ERR_INVAL : 0;
}

int file_open(const char *path, int flags, unsigned mode, struct file **out)
{
    struct disk *disk = here();
    struct inode *inode = disk_find(disk, path);
    int rc = may(path, inode, flags);
    *out = NULL;
    if (rc == 0 && inode == NULL) {
        rc = sim_effect(SIM_NAME, path, 0);
        rc = rc != 0 ? rc : disk_make(disk, path, false, mode, &inode);
        if (rc == 0) {
            inode_set(inode, mode, 0, clock_wall_ns());
        }
    } else if (rc == 0 && (flags & FILE_TRUNC) != 0 && inode_size(inode) > 0) {
        rc = sim_effect(SIM_WRITE, path, 0);
        rc = rc != 0 ? rc : inode_truncate(disk, inode, 0);
    }
    if (rc != 0) {
        return rc;
    }
    struct node *node = sim_here();
    struct file *file = mem_xzalloc(sizeof(*file));
    file->flags = flags;
    file->open.disk = disk;
    file->open.inode = inode;
    file->open.fd = FIRST_FD + ++node->last_fd;
    str_copy(file->open.path, sizeof(file->open.path), path);
    file->open.next = node->opens;
    node->opens = &file->open;
    *out = file;
    return 0;
}

void file_close(struct file **file)
{
    struct file *f = *file;
    if (f == NULL) {
        return;
    }
    for (struct sim_open **p = &sim_here()->opens; *p != NULL; p = &(*p)->next) {
        if (*p == &f->open) {
            *p = f->open.next;
            break;
        }
    }
    free(f);
    *file = NULL;
}

static int write_bytes(struct file *file, uint64_t offset, const void *data, size_t n)
{
    int rc = sim_effect(SIM_WRITE, file->open.path, n);
    if (rc == 0) {
        rc = inode_write(file->open.disk, file->open.inode, offset, data, n);
    }
    if (rc == 0) {
        inode_set(file->open.inode, inode_mode(file->open.inode), inode_uid(file->open.inode),
                  clock_wall_ns());
    }
    return rc;
}

int file_append(struct file *file, const void *data, size_t n)
{
    return write_bytes(file, inode_size(file->open.inode), data, n);
}

int file_read_at(struct file *file, uint64_t offset, void *dst, size_t n, size_t *got)
{
    *got = inode_read(file->open.inode, offset, dst, n);
    return 0;
}

int file_write_at(struct file *file, uint64_t offset, const void *data, size_t n)
{
    return write_bytes(file, offset, data, n);
}

int file_sync(struct file *file)
{
    int rc = sim_effect(SIM_SYNC, file->open.path, 0);
    if (rc == 0) {
        inode_sync(file->open.disk, file->open.inode);
    }
    return rc;
}

int file_size(struct file *file, uint64_t *size)
{
    *size = inode_size(file->open.inode);
    return 0;
}

int file_truncate(struct file *file, uint64_t size)
{
    int rc = sim_effect(SIM_WRITE, file->open.path, 0);
    return rc != 0 ? rc : inode_truncate(file->open.disk, file->open.inode, size);
}

int file_fd(const struct file *file)
{
    return file->open.fd;
}

struct sim_open *sim_open_find(struct node *node, int fd)
{
    for (struct sim_open *open = node->opens; open != NULL; open = open->next) {
        if (open->fd == fd) {
            return open;
        }
    }
    return NULL;
}

/* --- whole files --- */

int file_read_all(const char *path, size_t max, struct buf *out)
{
    struct inode *inode = disk_find(here(), path);
    if (inode == NULL) {
        return -ERR_NOTFOUND;
    }
    if (inode_is_folder(inode)) {
        return -ERR_INVAL;
    }
    size_t n = (size_t)inode_size(inode);
    if (n > max) {
        return -ERR_LIMIT;
    }
    if (n == 0) {
        return 0;
    }
    uint8_t *to = buf_reserve(out, n);
    if (to == NULL) {
        return out->err;
    }
    buf_grew(out, inode_read(inode, 0, to, n));
    return 0;
}

static int dir_of(const char *path, char dir[FILE_PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL || (size_t)(slash - path) >= FILE_PATH_MAX) {
        return -ERR_LIMIT;
    }
    snprintf(dir, FILE_PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return 0;
}

int file_write_atomic(const char *path, const void *data, size_t n, unsigned mode)
{
    char name[FILE_PATH_MAX];
    unsigned tag;
    struct file *file = NULL;
    tag = (unsigned)prng_below(&sim_here()->prng, UINT64_C(1) << 32);
    if (snprintf(name, sizeof(name), "%s.tmp-%08x", path, tag) >= (int)sizeof(name)) {
        return -ERR_LIMIT;
    }
    int rc = file_open(name, FILE_WRITE | FILE_CREATE | FILE_EXCL, mode, &file);
    if (rc != 0) {
        return rc;
    }
    rc = file_append(file, data, n);
    rc = rc != 0 ? rc : file_sync(file);
    file_close(&file);
    rc = rc != 0 ? rc : file_rename(name, path);
    if (rc != 0) {
        int left = file_remove(name);
        (void)left; /* the first failure is what is told */
    }
    return rc;
}

/* --- names --- */

int file_mkdirs(const char *path, unsigned mode)
{
    char part[FILE_PATH_MAX];
    size_t n = strlen(path);
    if (n >= sizeof(part)) {
        return -ERR_LIMIT;
    }
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0') {
            continue;
        }
        memcpy(part, path, i);
        part[i] = '\0';
        struct inode *there = disk_find(here(), part);
        if (there != NULL && !inode_is_folder(there)) {
            return -ERR_INVAL;
        }
        if (there != NULL) {
            continue;
        }
        int rc = sim_effect(SIM_NAME, part, 0);
        rc = rc != 0 ? rc : disk_make(here(), part, true, mode, NULL);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

int file_remove(const char *path)
{
    if (disk_find(here(), path) == NULL) {
        return -ERR_NOTFOUND;
    }
    int rc = sim_effect(SIM_NAME, path, 0);
    return rc != 0 ? rc : disk_remove(here(), path);
}

int file_sync_dir(const char *path)
{
    struct inode *dir = disk_find(here(), path);
    if (dir == NULL) {
        return -ERR_NOTFOUND;
    }
    int rc = sim_effect(SIM_SYNC, path, 0);
    if (rc == 0) {
        inode_sync(here(), dir);
    }
    return rc;
}

int file_rename(const char *from, const char *to)
{
    char dir[FILE_PATH_MAX];
    int rc = dir_of(to, dir);
    rc = rc != 0 ? rc : sim_effect(SIM_NAME, to, 0);
    rc = rc != 0 ? rc : disk_rename(here(), from, to);
    return rc != 0 ? rc : file_sync_dir(dir);
}

int file_stat(const char *path, struct file_stat *out)
{
    struct inode *inode = disk_find(here(), path);
    if (inode == NULL) {
        return -ERR_NOTFOUND;
    }
    *out = (struct file_stat){.type = inode_is_folder(inode) ? FILE_T_DIR : FILE_T_FILE,
                              .size = inode_size(inode),
                              .mode = inode_mode(inode),
                              .uid = inode_uid(inode),
                              .mtime_ns = inode_mtime(inode)};
    return 0;
}

bool file_exists(const char *path)
{
    return disk_find(here(), path) != NULL;
}

int file_list(const char *path, file_list_f *f, void *arg)
{
    struct inode *dir = disk_find(here(), path);
    char name[256];
    const char *next;
    int rc = 0;
    if (dir == NULL) {
        return -ERR_NOTFOUND;
    }
    if (!inode_is_folder(dir)) {
        return -ERR_INVAL;
    }
    name[0] = '\0';
    /* f may remove what it is shown: the next is the first name behind the last one. */
    for (size_t i = 0; rc == 0 && (next = inode_entry(dir, i)) != NULL;) {
        if (strcmp(next, name) <= 0) {
            i++;
            continue;
        }
        str_copy(name, sizeof(name), next);
        rc = f(name, arg);
        i = 0;
    }
    return rc;
}

int file_remove_tree(const char *path)
{
    struct inode *inode = disk_find(here(), path);
    const char *name;
    if (inode == NULL) {
        return 0;
    }
    while (inode_is_folder(inode) && (name = inode_entry(inode, 0)) != NULL) {
        char inner[FILE_PATH_MAX];
        int rc = file_path(inner, sizeof(inner), path, name);
        rc = rc != 0 ? rc : file_remove_tree(inner);
        if (rc != 0) {
            return rc;
        }
    }
    return file_remove(path);
}

int file_disk_free(const char *path, uint64_t *bytes)
{
    (void)path;
    *bytes = disk_left(here());
    *bytes = *bytes < (UINT64_C(1) << 40) ? *bytes : UINT64_C(1) << 40;
    return 0;
}

/* A node has one. */
bool file_same_disk(const char *a, const char *b)
{
    return file_exists(a) && file_exists(b);
}

int file_path(char *dst, size_t room, const char *dir, const char *name)
{
    int n = snprintf(dst, room, "%s%s%s", dir, strcmp(dir, "/") == 0 ? "" : "/", name);
    return n >= 0 && (size_t)n < room ? 0 : -ERR_LIMIT;
}

/* --- locks --- */

int file_lock_take(const char *path, const char *holder, struct file_lock **out, char other[256])
{
    struct node *node = sim_here();
    struct sim_machine *m = sim_machine_of(node);
    other[0] = '\0';
    for (struct sim_lock *l = m->locks; l != NULL; l = l->next) {
        if (strcmp(l->path, path) == 0) {
            str_copy(other, 256, l->holder);
            return -ERR_BUSY;
        }
    }
    struct file_lock *handle = mem_xzalloc(sizeof(*handle));
    *out = handle;
    if (node->gone) {
        return 0; /* nobody is kept out by it any more */
    }
    struct sim_lock *l = mem_xzalloc(sizeof(*l));
    l->node = node;
    l->handle = handle;
    handle->lock = l;
    str_copy(l->path, sizeof(l->path), path);
    str_copy(l->holder, sizeof(l->holder), holder);
    l->next = m->locks;
    m->locks = l;
    return 0;
}

static void release(struct sim_lock *lock)
{
    for (struct sim_lock **p = &sim_machine_of(lock->node)->locks; *p != NULL; p = &(*p)->next) {
        if (*p == lock) {
            *p = lock->next;
            break;
        }
    }
    lock->handle->lock = NULL;
    free(lock);
}

void file_lock_free(struct file_lock **lock)
{
    if (*lock == NULL) {
        return;
    }
    if ((*lock)->lock != NULL) {
        release((*lock)->lock);
    }
    free(*lock);
    *lock = NULL;
}

void sim_files_drop(struct node *node)
{
    struct sim_lock *next;
    for (struct sim_lock *l = sim_machine_of(node)->locks; l != NULL; l = next) {
        next = l->next;
        if (l->node == node) {
            release(l);
        }
    }
}

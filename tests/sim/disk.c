/* disk.c: files in memory: each knows what it was at its last sync and what was done since. What a
 * crash makes of that: disk_crash.c. */
#include "tests/sim/disk.h"

#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/sim/disk_int.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct inode *disk_inode_new(struct disk *disk, bool folder)
{
    struct inode *inode = mem_xzalloc(sizeof(*inode));
    inode->folder = folder;
    inode->next = disk->inodes;
    disk->inodes = inode;
    return inode;
}

struct disk *disk_new(void)
{
    struct disk *disk = mem_xzalloc(sizeof(*disk));
    disk->limit = UINT64_MAX;
    disk->root = disk_inode_new(disk, true);
    disk->root->mode = 0755;
    return disk;
}

static void drop_writes(struct inode *inode)
{
    for (size_t i = 0; i < inode->write_count; i++) {
        free(inode->writes[i].data);
        free(inode->writes[i].old);
    }
    inode->write_count = 0;
}

void disk_free(struct disk **disk)
{
    struct disk *d = *disk;
    if (d == NULL) {
        return;
    }
    while (d->inodes != NULL) {
        struct inode *inode = d->inodes;
        d->inodes = inode->next;
        drop_writes(inode);
        free(inode->writes);
        free(inode->data);
        free(inode->now.list);
        free(inode->sure.list);
        free(inode);
    }
    free(d->changes);
    free(d);
    *disk = NULL;
}

void disk_set_size(struct disk *disk, uint64_t bytes)
{
    disk->limit = bytes;
}

/* Bytes of all files that have a name. */
static uint64_t count_bytes(const struct inode *inode)
{
    uint64_t n = inode->size;
    for (size_t i = 0; i < inode->now.count; i++) {
        n += count_bytes(inode->now.list[i].inode);
    }
    return n;
}

uint64_t disk_left(const struct disk *disk)
{
    if (disk->limit == UINT64_MAX) {
        return disk->limit;
    }
    uint64_t used = count_bytes(disk->root);
    return disk->limit > used ? disk->limit - used : 0;
}

/* --- names --- */

static size_t place_of(const struct entries *e, const char *name, bool *found)
{
    size_t low = 0, high = e->count;
    *found = false;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = strcmp(e->list[mid].name, name);
        if (order == 0) {
            *found = true;
            return mid;
        }
        if (order < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

void disk_set_entry(struct entries *e, const char *name, struct inode *inode)
{
    bool found;
    size_t at = place_of(e, name, &found);
    if (inode == NULL) {
        if (found) {
            memmove(&e->list[at], &e->list[at + 1], (e->count - at - 1) * sizeof(e->list[0]));
            e->count--;
        }
        return;
    }
    if (!found) {
        if (e->count == e->room) {
            e->room = e->room > 0 ? e->room * 2 : 8;
            e->list = mem_xrealloc(e->list, e->room, sizeof(e->list[0]));
        }
        memmove(&e->list[at + 1], &e->list[at], (e->count - at) * sizeof(e->list[0]));
        e->count++;
        str_copy(e->list[at].name, NAME_ROOM, name);
    }
    e->list[at].inode = inode;
}

static struct inode *get_entry(const struct entries *e, const char *name)
{
    bool found;
    size_t at = place_of(e, name, &found);
    return found ? e->list[at].inode : NULL;
}

/* The folder of the last name of path, and that name ("" for the root). NULL when there is none. */
static struct inode *walk(const struct disk *disk, const char *path, char name[NAME_ROOM])
{
    struct inode *dir = disk->root;
    assert(path[0] == '/');
    name[0] = '\0';
    for (;;) {
        path += strspn(path, "/");
        size_t n = strcspn(path, "/");
        if (n == 0) {
            return dir;
        }
        assert(n < NAME_ROOM && strncmp(path, "..", n) != 0);
        if (name[0] != '\0') {
            dir = get_entry(&dir->now, name);
            if (dir == NULL || !dir->folder) {
                return NULL;
            }
        }
        memcpy(name, path, n);
        name[n] = '\0';
        path += n;
    }
}

struct inode *disk_find(const struct disk *disk, const char *path)
{
    char name[NAME_ROOM];
    struct inode *dir = walk(disk, path, name);
    if (dir == NULL || name[0] == '\0') {
        return dir;
    }
    return get_entry(&dir->now, name);
}

/* Does to `now` what is said, and notes it. */
static void change(struct disk *disk, const struct change *c)
{
    if (disk->change_count == disk->change_room) {
        disk->change_room = disk->change_room > 0 ? disk->change_room * 2 : 16;
        disk->changes = mem_xrealloc(disk->changes, disk->change_room, sizeof(*c));
    }
    disk->changes[disk->change_count++] = *c;
    if (c->from != NULL) {
        disk_set_entry(&c->from->now, c->from_name, NULL);
    }
    disk_set_entry(&c->dir->now, c->name, c->inode);
}

int disk_make(struct disk *disk, const char *path, bool folder, unsigned mode, struct inode **out)
{
    struct change c = {0};
    c.dir = walk(disk, path, c.name);
    if (c.dir == NULL) {
        return -ERR_NOTFOUND;
    }
    if (c.name[0] == '\0' || get_entry(&c.dir->now, c.name) != NULL) {
        return -ERR_EXISTS;
    }
    c.inode = disk_inode_new(disk, folder);
    c.inode->mode = mode;
    c.inode->parent = c.dir;
    change(disk, &c);
    if (out != NULL) {
        *out = c.inode;
    }
    return 0;
}

int disk_remove(struct disk *disk, const char *path)
{
    struct change c = {0};
    c.dir = walk(disk, path, c.name);
    struct inode *inode = c.dir != NULL ? get_entry(&c.dir->now, c.name) : NULL;
    if (inode == NULL) {
        return -ERR_NOTFOUND;
    }
    if (inode->folder && inode->now.count > 0) {
        return -ERR_EXISTS;
    }
    change(disk, &c);
    return 0;
}

int disk_rename(struct disk *disk, const char *from, const char *to)
{
    struct change c = {0};
    c.from = walk(disk, from, c.from_name);
    c.dir = walk(disk, to, c.name);
    c.inode = c.from != NULL ? get_entry(&c.from->now, c.from_name) : NULL;
    if (c.inode == NULL || c.dir == NULL) {
        return -ERR_NOTFOUND;
    }
    struct inode *there = get_entry(&c.dir->now, c.name);
    if (there == c.inode) {
        return 0;
    }
    if (there != NULL && (there->folder != c.inode->folder || there->now.count > 0)) {
        return -ERR_EXISTS;
    }
    c.inode->parent = c.dir;
    change(disk, &c);
    return 0;
}

/* --- bytes --- */

bool inode_is_folder(const struct inode *inode)
{
    return inode->folder;
}

uint64_t inode_size(const struct inode *inode)
{
    return inode->size;
}

uint32_t inode_mode(const struct inode *inode)
{
    return inode->mode;
}

uint32_t inode_uid(const struct inode *inode)
{
    return inode->uid;
}

int64_t inode_mtime(const struct inode *inode)
{
    return inode->mtime_ns;
}

void inode_set(struct inode *inode, uint32_t mode, uint32_t uid, int64_t mtime_ns)
{
    inode->mode = mode;
    inode->uid = uid;
    inode->mtime_ns = mtime_ns;
}

size_t inode_read(const struct inode *inode, uint64_t offset, void *dst, size_t n)
{
    if (offset >= inode->size) {
        return 0;
    }
    if (n > inode->size - offset) {
        n = (size_t)(inode->size - offset);
    }
    memcpy(dst, inode->data + offset, n);
    return n;
}

void disk_resize(struct inode *inode, size_t size)
{
    if (size > inode->room) {
        inode->room = size > inode->room * 2 ? size : inode->room * 2;
        inode->data = mem_xrealloc(inode->data, inode->room, 1);
    }
    if (size > inode->size) {
        memset(inode->data + inode->size, 0, size - inode->size);
    }
    inode->size = size;
}

static uint8_t *copy_bytes(const void *data, size_t n)
{
    uint8_t *copy = mem_xarray(n > 0 ? n : 1, 1);
    if (n > 0) {
        memcpy(copy, data, n);
    }
    return copy;
}

/* Notes what is about to be changed. */
static struct write *note(struct inode *inode, uint64_t offset, size_t n)
{
    if (inode->write_count == inode->write_room) {
        inode->write_room = inode->write_room > 0 ? inode->write_room * 2 : 8;
        inode->writes = mem_xrealloc(inode->writes, inode->write_room, sizeof(struct write));
    }
    struct write *w = &inode->writes[inode->write_count++];
    *w = (struct write){.offset = offset, .n = n, .old_size = inode->size};
    if (offset < inode->size) {
        w->old_n = inode->size - offset < n ? (size_t)(inode->size - offset) : n;
        w->old = copy_bytes(inode->data + offset, w->old_n);
    }
    return w;
}

int inode_write(struct disk *disk, struct inode *inode, uint64_t offset, const void *data, size_t n)
{
    uint64_t end = offset + n;
    uint64_t more = end > inode->size ? end - inode->size : 0;
    if (more > disk_left(disk)) {
        return -ERR_FULL;
    }
    struct write *w = note(inode, offset, n);
    w->data = copy_bytes(data, n);
    if (more > 0) {
        disk_resize(inode, (size_t)end);
    }
    if (n > 0) {
        memcpy(inode->data + offset, data, n);
    }
    w->new_size = inode->size;
    return 0;
}

int inode_truncate(struct disk *disk, struct inode *inode, uint64_t size)
{
    uint64_t more = size > inode->size ? size - inode->size : 0;
    if (more > disk_left(disk)) {
        return -ERR_FULL;
    }
    struct write *w = note(inode, size, size < inode->size ? (size_t)(inode->size - size) : 0);
    disk_resize(inode, (size_t)size);
    w->new_size = size;
    return 0;
}

/* --- durability --- */

void disk_settle(const struct change *c)
{
    if (c->from != NULL) {
        disk_set_entry(&c->from->sure, c->from_name, NULL);
    }
    disk_set_entry(&c->dir->sure, c->name, c->inode);
}

/* The names of the folder, and its own name up to the root. */
static void sync_names(struct disk *disk, const struct inode *folder)
{
    size_t kept = 0;
    for (size_t i = 0; i < disk->change_count; i++) {
        struct change *c = &disk->changes[i];
        bool ours = c->dir == folder || c->from == folder;
        for (const struct inode *up = folder; up != NULL && !ours; up = up->parent) {
            ours = c->inode == up;
        }
        if (ours) {
            disk_settle(c);
        } else {
            disk->changes[kept++] = *c;
        }
    }
    disk->change_count = kept;
}

void inode_sync(struct disk *disk, struct inode *inode)
{
    drop_writes(inode);
    if (inode->folder) {
        sync_names(disk, inode);
    }
}

void disk_sync_all(struct disk *disk)
{
    for (size_t i = 0; i < disk->change_count; i++) {
        disk_settle(&disk->changes[i]);
    }
    disk->change_count = 0;
    for (struct inode *inode = disk->inodes; inode != NULL; inode = inode->next) {
        drop_writes(inode);
    }
}

const char *inode_entry(const struct inode *folder, size_t index)
{
    return index < folder->now.count ? folder->now.list[index].name : NULL;
}

struct inode *inode_child(const struct inode *folder, size_t index)
{
    return folder->now.list[index].inode;
}

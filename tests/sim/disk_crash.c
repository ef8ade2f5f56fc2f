/* disk_crash.c: copies of a disk: as it is, and as a power failure leaves it. */
#include "common/mem.h"
#include "common/prng.h"
#include "tests/sim/disk.h"
#include "tests/sim/disk_int.h"

#include <string.h>

#define SECTOR 512

/* What of a write is left: [from, from + n) of its bytes. */
static void redo(struct inode *to, const struct write *w, size_t from, size_t n)
{
    if (w->data == NULL) {
        disk_resize(to, (size_t)w->new_size);
        return;
    }
    if (n == 0) {
        return;
    }
    if (w->offset + from + n > to->size) {
        disk_resize(to, (size_t)(w->offset + from + n));
    }
    memcpy(to->data + w->offset + from, w->data + from, n);
}

static void undo(struct inode *to, const struct write *w)
{
    disk_resize(to, (size_t)w->old_size);
    if (w->old_n > 0) {
        memcpy(to->data + w->offset, w->old, w->old_n);
    }
}

/* The bytes of a file after a power failure. */
static void tear(struct inode *to, const struct inode *from, struct prng *prng)
{
    uint64_t luck = prng_below(prng, 4);
    if (luck == 0) {
        return; /* the system had written everything */
    }
    for (size_t i = from->write_count; i > 0; i--) {
        undo(to, &from->writes[i - 1]);
    }
    if (luck == 1) {
        return; /* and here nothing */
    }
    if (luck == 2) { /* the first ones, the last of them in part */
        uint64_t whole = prng_below(prng, from->write_count);
        for (size_t i = 0; i < whole; i++) {
            redo(to, &from->writes[i], 0, from->writes[i].n);
        }
        redo(to, &from->writes[whole], 0, (size_t)prng_below(prng, from->writes[whole].n + 1));
        return;
    }
    for (size_t i = 0; i < from->write_count; i++) { /* sectors here and there */
        const struct write *w = &from->writes[i];
        if (w->data == NULL) {
            redo(to, w, 0, 0);
            continue;
        }
        for (size_t at = 0; at < w->n;) {
            size_t n = SECTOR - (size_t)((w->offset + at) % SECTOR);
            n = n < w->n - at ? n : w->n - at;
            if (prng_below(prng, 2) == 0) {
                redo(to, w, at, n);
            }
            at += n;
        }
    }
}

static void copy_names(struct inode *to, const struct entries *from)
{
    for (size_t i = 0; i < from->count; i++) {
        struct inode *twin = from->list[i].inode->twin;
        disk_set_entry(&to->now, from->list[i].name, twin);
        disk_set_entry(&to->sure, from->list[i].name, twin);
        twin->parent = to;
    }
}

/* Names that were changed and not synced: of each folder the first ones are left. */
static void keep_changes(const struct disk *disk, struct prng *prng)
{
    uint64_t luck = prng_below(prng, 3); /* 0: all, 1: none, 2: some */
    for (size_t i = 0; i < disk->change_count; i++) {
        const struct change *c = &disk->changes[i];
        bool lost = luck == 1 || (luck == 2 && prng_below(prng, 4) == 0);
        lost = lost || c->dir->twin->cut || (c->from != NULL && c->from->twin->cut);
        if (lost) {
            c->dir->twin->cut = true;
            if (c->from != NULL) {
                c->from->twin->cut = true;
            }
            continue;
        }
        struct change twin = *c;
        twin.dir = c->dir->twin;
        twin.from = c->from != NULL ? c->from->twin : NULL;
        twin.inode = c->inode != NULL ? c->inode->twin : NULL;
        if (twin.from != NULL) {
            disk_set_entry(&twin.from->now, twin.from_name, NULL);
        }
        disk_set_entry(&twin.dir->now, twin.name, twin.inode);
        if (twin.inode != NULL) {
            twin.inode->parent = twin.dir;
        }
        disk_settle(&twin);
    }
}

/* `prng` NULL: all is sure. */
static struct disk *copy(const struct disk *disk, struct prng *prng)
{
    struct disk *d = mem_xzalloc(sizeof(*d));
    d->limit = disk->limit;
    for (struct inode *inode = disk->inodes; inode != NULL; inode = inode->next) {
        struct inode *twin = disk_inode_new(d, inode->folder);
        inode->twin = twin;
        inode_set(twin, inode->mode, inode->uid, inode->mtime_ns);
        if (inode->size > 0) {
            twin->data = mem_xrealloc(NULL, inode->size, 1);
            twin->size = twin->room = inode->size;
            memcpy(twin->data, inode->data, inode->size);
        }
        if (prng != NULL && inode->write_count > 0) {
            tear(twin, inode, prng);
        }
    }
    d->root = disk->root->twin;
    for (struct inode *inode = disk->inodes; inode != NULL; inode = inode->next) {
        copy_names(inode->twin, prng != NULL ? &inode->sure : &inode->now);
    }
    if (prng != NULL) {
        keep_changes(disk, prng);
    }
    return d;
}

struct disk *disk_copy(const struct disk *disk)
{
    return copy(disk, NULL);
}

struct disk *disk_survive(const struct disk *disk, struct prng *prng)
{
    return copy(disk, prng);
}

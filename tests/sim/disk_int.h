/* disk_int.h: what a disk consists of: for disk*.c alone. */
#ifndef MAKESPAN_TESTS_SIM_DISK_INT_H
#define MAKESPAN_TESTS_SIM_DISK_INT_H

#include "tests/sim/disk.h"

#define NAME_ROOM 256

struct entry {
    char name[NAME_ROOM];
    struct inode *inode;
};

struct entries {
    struct entry *list; /* in the order of names */
    size_t count, room;
};

/* A write since the last sync; a change of the size when `data` is NULL. */
struct write {
    uint64_t offset;
    size_t n;
    uint8_t *data;
    uint8_t *old; /* the bytes that were there: of the file's old size, at most n from offset on */
    size_t old_n;
    uint64_t old_size, new_size;
};

struct inode {
    struct inode *next; /* all of a disk, also those without a name */
    struct inode *parent; /* of a folder */
    struct inode *twin;   /* in the copy that is being made */
    bool folder;
    uint32_t mode, uid;
    int64_t mtime_ns;
    uint8_t *data;
    size_t size, room;
    struct write *writes;
    size_t write_count, write_room;
    struct entries now, sure;
    bool cut; /* of the copy that is being made: its later names are lost */
};

/* A change of names since the last sync of its folder: `name` in `dir` is `inode` (NULL: gone); of
 * a rename, `from_name` in `from` is gone by it. */
struct change {
    struct inode *dir, *from, *inode;
    char name[NAME_ROOM], from_name[NAME_ROOM];
};

struct disk {
    struct inode *inodes, *root;
    struct change *changes;
    size_t change_count, change_room;
    uint64_t limit;
};

/* disk.c */
struct inode *disk_inode_new(struct disk *disk, bool folder);
void disk_set_entry(struct entries *entries, const char *name, struct inode *inode);
void disk_resize(struct inode *inode, size_t size);
/* Makes a change sure. */
void disk_settle(const struct change *change);

#endif

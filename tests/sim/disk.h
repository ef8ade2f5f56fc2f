/* disk.h: the files of one node, in memory, and what of them is left after the power fails: for
 * fakes/fileio.c and vfs.c.
 *
 * Of a file: what inode_sync() reached is sure; of later writes all, nothing, a torn first part, or
 * single sectors are left, as the seed says. Of a folder: what inode_sync() reached, and of its
 * later names a first part. Syncing a folder makes its own name sure too, as file systems here do.
 * Errors are negative codes of common/err.h. */
#ifndef MAKESPAN_TESTS_SIM_DISK_H
#define MAKESPAN_TESTS_SIM_DISK_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct disk;
struct inode;
struct prng;

struct disk *disk_new(void) MUST_CHECK;
void disk_free(struct disk **disk); /* NULL inside is fine */
/* As it is now, all of it sure. */
struct disk *disk_copy(const struct disk *disk) MUST_CHECK;
/* As a power failure leaves it. */
struct disk *disk_survive(const struct disk *disk, struct prng *prng) MUST_CHECK;
/* Everything is sure from now on. */
void disk_sync_all(struct disk *disk);
/* The most bytes of all files together; UINT64_MAX: no limit. A write beyond it: -ERR_FULL. */
void disk_set_size(struct disk *disk, uint64_t bytes);
uint64_t disk_left(const struct disk *disk);

/* NULL when missing. The path is absolute, without . and .. */
struct inode *disk_find(const struct disk *disk, const char *path);
/* Makes a file (-ERR_EXISTS when the name is there, -ERR_NOTFOUND without its folder). */
int disk_make(struct disk *disk, const char *path, bool folder, unsigned mode,
              struct inode **out) MUST_CHECK;
/* A file or an empty folder; open handles keep what it was. */
int disk_remove(struct disk *disk, const char *path) MUST_CHECK;
int disk_rename(struct disk *disk, const char *from, const char *to) MUST_CHECK;

bool inode_is_folder(const struct inode *inode);
uint64_t inode_size(const struct inode *inode);
uint32_t inode_mode(const struct inode *inode);
uint32_t inode_uid(const struct inode *inode);
int64_t inode_mtime(const struct inode *inode);
void inode_set(struct inode *inode, uint32_t mode, uint32_t uid, int64_t mtime_ns);
/* How many bytes were there. */
size_t inode_read(const struct inode *inode, uint64_t offset, void *dst, size_t n);
int inode_write(struct disk *disk, struct inode *inode, uint64_t offset, const void *data,
                size_t n) MUST_CHECK;
int inode_truncate(struct disk *disk, struct inode *inode, uint64_t size) MUST_CHECK;
void inode_sync(struct disk *disk, struct inode *inode);
/* The name in place `index` of a folder, in the order of bytes; NULL beyond the last. */
const char *inode_entry(const struct inode *folder, size_t index);
/* Of the children; not for files. */
struct inode *inode_child(const struct inode *folder, size_t index);

#endif

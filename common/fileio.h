/* fileio.h: files, with durability spelled out. A seam: the simulation keeps files in memory and loses at a crash what was not synced.
 *
 * Every path is absolute or relative to the process. Functions return 0 or a negative code (errno mapped: ENOSPC is -ERR_FULL). */
#ifndef MAKESPAN_COMMON_FILEIO_H
#define MAKESPAN_COMMON_FILEIO_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct file;
struct file_lock;

enum {
    FILE_READ = 1,
    FILE_WRITE = 2,   /* read and write at positions */
    FILE_APPEND = 4,  /* every write goes to the end */
    FILE_CREATE = 8,  /* make it when missing */
    FILE_EXCL = 16,   /* with FILE_CREATE: fail with -ERR_EXISTS when there */
    FILE_TRUNC = 32,
    FILE_NOFOLLOW = 64,
};

struct file_stat {
    enum { FILE_T_FILE, FILE_T_DIR, FILE_T_LINK, FILE_T_OTHER } type;
    uint64_t size;
    uint32_t mode;
    uint32_t uid;
    int64_t mtime_ns;
};

int file_open(const char *path, int flags, unsigned mode, struct file **out) MUST_CHECK;
void file_close(struct file **file); /* NULL inside is fine; does not sync */
int file_append(struct file *file, const void *data, size_t n) MUST_CHECK; /* all of n or an error */
/* Reads up to n bytes at the offset; *got is less only at the end of the file. */
int file_read_at(struct file *file, uint64_t offset, void *dst, size_t n, size_t *got) MUST_CHECK;
int file_write_at(struct file *file, uint64_t offset, const void *data, size_t n) MUST_CHECK;
/* Data and length are on the disk when it returns 0; the name of a new file is when file_sync_dir() of its folder did. */
int file_sync(struct file *file) MUST_CHECK;
int file_size(struct file *file, uint64_t *size) MUST_CHECK;
int file_truncate(struct file *file, uint64_t size) MUST_CHECK;
int file_fd(const struct file *file); /* to hand to a child; -1 in the simulation */

/* The whole file appended to out; more than max bytes: -ERR_LIMIT. On an error nothing is appended. */
int file_read_all(const char *path, size_t max, struct buf *out) MUST_CHECK;
/* Replaces the file so that after a crash either the old or the new content is there: temporary name (PATH.tmp-XXXXXXXX: a
 * crash may leave it), sync, rename, sync of the folder. `mode` is not cut by the umask. */
int file_write_atomic(const char *path, const void *data, size_t n, unsigned mode) MUST_CHECK;
int file_mkdirs(const char *path, unsigned mode) MUST_CHECK; /* parents too; existing is fine; not synced */
int file_remove(const char *path) MUST_CHECK;                /* a file or an empty folder; missing: -ERR_NOTFOUND */
int file_rename(const char *from, const char *to) MUST_CHECK; /* and syncs the folder of `to` */
int file_sync_dir(const char *path) MUST_CHECK;
int file_stat(const char *path, struct file_stat *out) MUST_CHECK; /* follows no last link */
bool file_exists(const char *path);
/* Calls f for every entry but . and .., in the order of names (bytes); f returns 0 to go on, else its value is returned at once. */
typedef int file_list_f(const char *name, void *arg);
int file_list(const char *path, file_list_f *f, void *arg) MUST_CHECK;
/* Removes a folder with all in it, without following links; missing is fine. What is mounted within is left alone (-ERR_BUSY); at most 64
 * levels. Blocks: for small folders of our own (big trees: a child). */
int file_remove_tree(const char *path) MUST_CHECK;
/* Free bytes of the file system that holds path. */
int file_disk_free(const char *path, uint64_t *bytes) MUST_CHECK;
/* Whether one file system holds both; false also when one of them cannot be looked at. */
bool file_same_disk(const char *a, const char *b);

/* An advisory lock on a file (flock) that is made, mode 0666, when missing. `holder` is a line (at most 255 bytes) written into it for others
 * to read. Held by another: -ERR_BUSY, and that line, without control characters, is copied to `other` (256 bytes; empty when unknown: on a full
 * disk the holder stays unnamed). Ends with
 * the process at the latest. Neither a link nor a file with a second name is used (-ERR_INVAL). */
int file_lock_take(const char *path, const char *holder, struct file_lock **out, char other[256]) MUST_CHECK;
void file_lock_free(struct file_lock **lock);

/* dir "/" name into dst; -ERR_LIMIT when it does not fit. */
int file_path(char *dst, size_t room, const char *dir, const char *name) MUST_CHECK;
#define FILE_PATH_MAX 1024
/* The path with the current folder before it unless it is absolute, without slashes at its end. -ERR_LIMIT when it does not fit, -ERR_NOTFOUND when the current folder is gone. */
int file_absolute(char *dst, size_t room, const char *path) MUST_CHECK;

#endif

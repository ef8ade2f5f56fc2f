/* fileio.c: reading, writing and syncing of single files. Owns the open files it hands out. Folders: fileio_dir.c; locks: fileio_lock.c. */
#include "common/fileio.h"

#include "common/buf.h"
#include "common/compat/compat.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/rand.h"
#include "common/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define READ_CHUNK 16384
#define TMP_ROOM (FILE_PATH_MAX + 32)

struct file {
    int fd;
};

static int last_error(void)
{
    return err_from_errno(errno);
}

/* open() that is not disturbed by signals; close-on-exec always. */
static int open_fd(const char *path, int flags, mode_t mode)
{
    int fd;
    do {
        fd = open(path, flags | O_CLOEXEC | O_NOCTTY, mode);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

static int open_flags(int flags)
{
    int f = O_RDONLY;
    if ((flags & FILE_WRITE) != 0 || (flags & (FILE_READ | FILE_APPEND)) == (FILE_READ | FILE_APPEND)) {
        f = O_RDWR;
    } else if ((flags & FILE_APPEND) != 0) {
        f = O_WRONLY;
    }
    f |= (flags & FILE_APPEND) != 0 ? O_APPEND : 0;
    f |= (flags & FILE_CREATE) != 0 ? O_CREAT : 0;
    f |= (flags & FILE_EXCL) != 0 ? O_EXCL : 0;
    f |= (flags & FILE_TRUNC) != 0 ? O_TRUNC : 0;
    f |= (flags & FILE_NOFOLLOW) != 0 ? O_NOFOLLOW : 0;
    return f;
}

int file_open(const char *path, int flags, unsigned mode, struct file **out)
{
    int fd = open_fd(path, open_flags(flags), (mode_t)mode);
    if (fd < 0) {
        return last_error();
    }
    *out = mem_xzalloc(sizeof(**out));
    (*out)->fd = fd;
    return 0;
}

void file_close(struct file **file)
{
    if (*file == NULL) {
        return;
    }
    close((*file)->fd); /* what must be on the disk was synced, and a descriptor is gone whatever close() says */
    free(*file);
    *file = NULL;
}

static int write_fd(int fd, const void *data, size_t n)
{
    const char *p = data;
    while (n > 0) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done < 0) {
            return last_error();
        }
        if (done == 0) {
            return -ERR_IO;
        }
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

int file_append(struct file *file, const void *data, size_t n)
{
    return write_fd(file->fd, data, n);
}

/* Whether the n bytes from offset on can be named by an off_t of 64 bits. */
static bool is_reachable(uint64_t offset, size_t n)
{
    return offset <= (uint64_t)INT64_MAX && n <= (uint64_t)INT64_MAX - offset;
}

int file_read_at(struct file *file, uint64_t offset, void *dst, size_t n, size_t *got)
{
    char *p = dst;
    *got = 0;
    if (!is_reachable(offset, n)) {
        return -ERR_RANGE;
    }
    while (*got < n) {
        ssize_t done = pread(file->fd, p + *got, n - *got, (off_t)(offset + *got));
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done < 0) {
            return last_error();
        }
        if (done == 0) {
            break;
        }
        *got += (size_t)done;
    }
    return 0;
}

int file_write_at(struct file *file, uint64_t offset, const void *data, size_t n)
{
    const char *p = data;
    if (!is_reachable(offset, n)) {
        return -ERR_RANGE;
    }
    while (n > 0) {
        ssize_t done = pwrite(file->fd, p, n, (off_t)offset);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done < 0) {
            return last_error();
        }
        if (done == 0) {
            return -ERR_IO;
        }
        p += done;
        offset += (uint64_t)done;
        n -= (size_t)done;
    }
    return 0;
}

static int sync_fd(int fd)
{
    int rc;
    do {
        rc = fsync(fd);
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : last_error();
}

int file_sync(struct file *file)
{
    int rc;
    do {
        rc = fdatasync(file->fd);
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : last_error();
}

int file_size(struct file *file, uint64_t *size)
{
    struct stat st;
    int rc = compat_stat(file->fd, NULL, 0, &st, NULL);
    if (rc == 0) {
        *size = (uint64_t)st.st_size;
    }
    return rc;
}

int file_truncate(struct file *file, uint64_t size)
{
    int rc;
    if (!is_reachable(size, 0)) {
        return -ERR_RANGE;
    }
    do {
        rc = ftruncate(file->fd, (off_t)size);
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : last_error();
}

int file_fd(const struct file *file)
{
    return file->fd;
}

static int read_fd(int fd, size_t max, struct buf *out)
{
    for (;;) {
        uint8_t chunk[READ_CHUNK];
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return last_error();
        }
        if (n == 0) {
            return 0;
        }
        if ((size_t)n > max) {
            return -ERR_LIMIT;
        }
        max -= (size_t)n;
        buf_add(out, chunk, (size_t)n);
        if (out->err != 0) {
            return out->err;
        }
    }
}

int file_read_all(const char *path, size_t max, struct buf *out)
{
    if (out->err != 0) {
        return out->err;
    }
    int fd = open_fd(path, O_RDONLY, 0);
    if (fd < 0) {
        return last_error();
    }
    size_t before = out->len;
    int rc = read_fd(fd, max, out);
    close(fd);
    if (rc != 0 && out->len > before) {
        out->len = before; /* all or nothing */
        out->data[before] = '\0';
    }
    return rc;
}

/* The folder that holds path, into dst of FILE_PATH_MAX bytes. */
static int parent_of(char *dst, const char *path)
{
    if (str_copy(dst, FILE_PATH_MAX, path) >= FILE_PATH_MAX) {
        return -ERR_LIMIT;
    }
    char *slash = strrchr(dst, '/');
    if (slash == NULL) {
        str_copy(dst, FILE_PATH_MAX, ".");
    } else if (slash == dst) {
        dst[1] = '\0';
    } else {
        *slash = '\0';
    }
    return 0;
}

static int sync_parent(const char *path)
{
    char dir[FILE_PATH_MAX];
    int rc = parent_of(dir, path);
    return rc != 0 ? rc : file_sync_dir(dir);
}

/* Fills and syncs the new file. */
static int write_new(int fd, const void *data, size_t n, unsigned mode)
{
    int rc = fchmod(fd, (mode_t)mode) == 0 ? 0 : last_error();
    if (rc == 0) {
        rc = write_fd(fd, data, n);
    }
    if (rc == 0) {
        rc = sync_fd(fd);
    }
    if (close(fd) != 0 && rc == 0 && errno != EINTR) {
        rc = last_error(); /* some network file systems tell of a full disk here */
    }
    return rc;
}

int file_write_atomic(const char *path, const void *data, size_t n, unsigned mode)
{
    char tmp[TMP_ROOM];
    uint32_t word;
    rand_bytes(&word, sizeof(word));
    int len = snprintf(tmp, sizeof(tmp), "%s.tmp-%08" PRIx32, path, word);
    if (len < 0 || (size_t)len >= sizeof(tmp) || strlen(path) >= FILE_PATH_MAX) {
        return -ERR_LIMIT;
    }
    int fd = open_fd(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return last_error();
    }
    int rc = write_new(fd, data, n, mode);
    if (rc == 0 && rename(tmp, path) != 0) {
        rc = last_error();
    }
    if (rc != 0) {
        unlink(tmp); /* the first error is the one to tell */
        return rc;
    }
    return sync_parent(path);
}

int file_remove(const char *path)
{
    if (unlink(path) == 0) {
        return 0;
    }
    int first = errno;
    if (first != EISDIR && first != EPERM) { /* the two ways to say that it is a folder */
        return err_from_errno(first);
    }
    if (rmdir(path) == 0) {
        return 0;
    }
    return err_from_errno(errno == ENOTDIR ? first : errno);
}

int file_rename(const char *from, const char *to)
{
    if (rename(from, to) != 0) {
        return last_error();
    }
    return sync_parent(to);
}

int file_sync_dir(const char *path)
{
    int fd = open_fd(path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) {
        return last_error();
    }
    int rc = sync_fd(fd);
    close(fd);
    return rc == -ERR_INVAL ? 0 : rc; /* EINVAL: a file system that has nothing to sync in a folder */
}

int file_stat(const char *path, struct file_stat *out)
{
    struct stat st;
    int64_t mtime_ns;
    int rc = compat_stat(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, &st, &mtime_ns);
    if (rc != 0) {
        return rc;
    }
    *out = (struct file_stat){
        .type = S_ISREG(st.st_mode)   ? FILE_T_FILE
                : S_ISDIR(st.st_mode) ? FILE_T_DIR
                : S_ISLNK(st.st_mode) ? FILE_T_LINK
                                      : FILE_T_OTHER,
        .size = (uint64_t)st.st_size,
        .mode = (uint32_t)st.st_mode & 07777U,
        .uid = (uint32_t)st.st_uid,
        .mtime_ns = mtime_ns,
    };
    return 0;
}

bool file_exists(const char *path)
{
    struct stat st;
    return compat_stat(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, &st, NULL) == 0;
}

int file_disk_free(const char *path, uint64_t *bytes)
{
    struct statvfs fs;
    int rc;
    do {
        rc = statvfs(path, &fs);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0) {
        return last_error();
    }
    *bytes = (uint64_t)fs.f_bavail * (fs.f_frsize != 0 ? fs.f_frsize : fs.f_bsize);
    return 0;
}

bool file_same_disk(const char *a, const char *b)
{
    struct stat one;
    struct stat other;
    return compat_stat(AT_FDCWD, a, 0, &one, NULL) == 0 &&
           compat_stat(AT_FDCWD, b, 0, &other, NULL) == 0 && one.st_dev == other.st_dev;
}

int file_path(char *dst, size_t room, const char *dir, const char *name)
{
    size_t n = strlen(dir);
    const char *slash = n > 0 && dir[n - 1] == '/' ? "" : "/";
    int len = snprintf(dst, room, "%s%s%s", dir, slash, name);
    if (len < 0 || (size_t)len >= room) {
        if (room > 0) {
            dst[0] = '\0';
        }
        return -ERR_LIMIT;
    }
    return 0;
}

int file_absolute(char *dst, size_t room, const char *path)
{
    char here[FILE_PATH_MAX];
    size_t n;

    if (path[0] != '/' && getcwd(here, sizeof here) == NULL) {
        return errno == ERANGE ? -ERR_LIMIT : -ERR_NOTFOUND;
    }
    if (path[0] != '/') {
        int err = file_path(dst, room, here, path);
        if (err != 0) {
            return err;
        }
    } else if (strlen(path) >= room) {
        return -ERR_LIMIT;
    } else {
        memcpy(dst, path, strlen(path) + 1);
    }
    n = strlen(dst);
    while (n > 1 && dst[n - 1] == '/') {
        dst[--n] = '\0';
    }
    return 0;
}

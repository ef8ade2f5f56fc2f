/* fileio_lock.c: advisory locks on files that any user may share, with the holder's name inside. The file stays when the lock ends: to remove it
 * would let two processes hold two files of one name.
 *
 * The file lies in a folder where everyone may write, so nothing in it is trusted: no link is followed, no other kind of file and no second
 * name of one is written to, and what it says of its holder is cleaned. */
#include "common/fileio.h"

#include "common/compat/compat.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOLDER_MAX 255
#define TRIES 10

struct file_lock {
    int fd;
};

/* Opens the file, or makes it when missing. O_CREAT only where there is none: with fs.protected_regular even root may not open another's
 * file in a sticky folder with it. */
static int open_lock(const char *path, int *out)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    for (int i = 0; i < TRIES; i++) {
        int fd = open(path, flags);
        if (fd >= 0) {
            *out = fd;
            return 0;
        }
        if (errno == ENOENT) {
            mode_t mask = umask(0); /* never for a moment a file that other users may not open */
            fd = open(path, flags | O_CREAT | O_EXCL, 0666);
            int first = errno;
            umask(mask);
            if (fd >= 0) {
                *out = fd;
                return 0;
            }
            errno = first;
        }
        /* made or removed by another meanwhile: once more */
        if (errno != EEXIST && errno != EINTR && errno != ENOENT) {
            break;
        }
    }
    return err_from_errno(errno);
}

static void read_holder(int fd, char other[256])
{
    char line[HOLDER_MAX + 1];
    ssize_t n;
    do {
        n = pread(fd, line, HOLDER_MAX, 0);
    } while (n < 0 && errno == EINTR);
    size_t len = n > 0 ? (size_t)n : 0; /* unreadable: the holder stays unnamed, the lock is held all the same */
    size_t kept = 0;
    for (; kept < len && line[kept] != '\n' && line[kept] != '\0'; kept++) {
        unsigned char c = (unsigned char)line[kept];
        bool high = kept > 0 && c >= 0x80 && c < 0xa0 && (unsigned char)line[kept - 1] == 0xc2; /* U+0080 to U+009F */
        other[kept] = c < 0x20 || c == 0x7f || high ? '?' : line[kept];
        if (high) {
            other[kept - 1] = '?';
        }
    }
    other[kept] = '\0';
    kept = str_utf8_bad(other, kept);
    other[kept] = '\0';
}

static int write_holder(int fd, const char *holder)
{
    char line[HOLDER_MAX + 1];
    size_t n = strnlen(holder, HOLDER_MAX);
    memcpy(line, holder, n);
    line[n++] = '\n';
    if (ftruncate(fd, 0) != 0) {
        return err_from_errno(errno);
    }
    ssize_t done;
    do {
        done = pwrite(fd, line, n, 0);
    } while (done < 0 && errno == EINTR);
    int rc = done < 0 ? err_from_errno(errno) : (size_t)done == n ? 0 : -ERR_FULL;
    if (rc != -ERR_FULL) {
        return rc;
    }
    /* On a full disk the holder stays unnamed, the lock is held all the same. */
    return ftruncate(fd, 0) == 0 ? 0 : err_from_errno(errno);
}

/* Locks the open file. -ERR_AGAIN: the path names another file by now. */
static int lock_fd(const char *path, int fd, const char *holder, char other[256])
{
    struct stat own;
    struct stat named;
    int rc;
    rc = compat_stat(fd, NULL, 0, &own, NULL);
    if (rc != 0) {
        return rc;
    }
    if (!S_ISREG(own.st_mode) || own.st_nlink > 1) {
        return -ERR_INVAL;
    }
    do {
        rc = flock(fd, LOCK_EX | LOCK_NB);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0) {
        if (errno != EWOULDBLOCK) {
            return err_from_errno(errno);
        }
        read_holder(fd, other);
        return -ERR_BUSY;
    }
    if (compat_stat(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, &named, NULL) != 0 ||
        named.st_dev != own.st_dev || named.st_ino != own.st_ino) {
        return -ERR_AGAIN;
    }
    return write_holder(fd, holder);
}

int file_lock_take(const char *path, const char *holder, struct file_lock **out, char other[256])
{
    int rc = -ERR_AGAIN;
    other[0] = '\0';
    for (int i = 0; i < TRIES && rc == -ERR_AGAIN; i++) {
        int fd = -1;
        rc = open_lock(path, &fd);
        if (rc != 0) {
            return rc;
        }
        rc = lock_fd(path, fd, holder, other);
        if (rc == 0) {
            *out = mem_xzalloc(sizeof(**out));
            (*out)->fd = fd;
            return 0;
        }
        close(fd);
    }
    return rc;
}

void file_lock_free(struct file_lock **lock)
{
    if (*lock == NULL) {
        return;
    }
    /* no name of one who holds it no more; where that fails, the next holder writes its own */
    int rc = ftruncate((*lock)->fd, 0);
    (void)rc;
    close((*lock)->fd);
    free(*lock);
    *lock = NULL;
}

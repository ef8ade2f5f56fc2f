/* confine_abandoned.c: whose folder of control groups is: a lock that ends with its owner, and the
 * removal of empty folders that have no owner any more.
 *
 * A worker that is killed leaves its folder makespan-TAG, and no later start has that tag when the
 * worker's own folder was of a moment, as that of `makespan local`. Every owner holds a shared lock
 * (flock) on its folder, in which other processes have no part: its descriptor is closed at exec.
 * Who gets the exclusive one knows that there is no owner. A folder is removed by rmdir() alone,
 * which leaves a group with a process in it, or with a group below it, as it is.
 *
 * Does not own: the folders in use (confine_groups.c). */
#include "worker/os/confine_int.h"

#include "common/compat/compat.h"
#include "common/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "makespan-"
#define TAG_DIGITS 16 /* of a worker that was configured: agent.c */
#define DEPTH_MAX 16
#define TRIES 10

static int lock(int fd, int how)
{
    int rc;

    do
        rc = flock(fd, how);
    while (rc != 0 && errno == EINTR);
    return rc;
}

/* Whether the path names the open folder still. */
static bool is_same(const char *path, int fd)
{
    struct stat named, open;

    return compat_stat(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, &named, NULL) == 0 &&
           compat_stat(fd, NULL, 0, &open, NULL) == 0 && named.st_dev == open.st_dev &&
           named.st_ino == open.st_ino;
}

int cg_own(const char *path)
{
    for (int i = 0; i < TRIES; i++) {
        int fd = -1;

        if (mkdir(path, 0755) != 0 && errno != EEXIST)
            return -1;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno != ENOENT)
            return -1;
        /* Another start may be about to remove what it found without an owner. */
        if (fd >= 0 && lock(fd, LOCK_SH) == 0 && is_same(path, fd))
            return fd;
        if (fd >= 0)
            (void)close(fd);
    }
    errno = EAGAIN;
    return -1;
}

/* makespan- and 16 hex digits. */
static bool is_ours(const char *name)
{
    if (strncmp(name, NAME, strlen(NAME)) != 0)
        return false;
    name += strlen(NAME);
    return strlen(name) == TAG_DIGITS && strspn(name, "0123456789abcdef") == TAG_DIGITS;
}

/* Removes the groups below, the deepest first, as far as they are empty. */
static void remove_below(const char *folder, int depth)
{
    DIR *dir = depth < DEPTH_MAX ? opendir(folder) : NULL;
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char path[CG_PATH];
        struct stat st;
        int n = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);

        if (entry->d_name[0] == '.' || n < 0 || n >= CG_PATH ||
            compat_stat(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, &st, NULL) != 0 ||
            !S_ISDIR(st.st_mode))
            continue;
        remove_below(path, depth + 1);
        (void)rmdir(path);
    }
    if (dir != NULL)
        (void)closedir(dir);
}

static bool remove_abandoned(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool gone = false;

    if (fd < 0)
        return false;
    if (lock(fd, LOCK_EX | LOCK_NB) == 0 && is_same(path, fd)) {
        remove_below(path, 0);
        gone = rmdir(path) == 0;
    }
    (void)close(fd);
    return gone;
}

size_t cg_remove_abandoned(const char *own)
{
    const char *slash = strrchr(own, '/');
    char parent[CG_PATH], path[CG_PATH];
    struct dirent *entry;
    size_t removed = 0;
    DIR *dir;

    if (slash == NULL || slash == own || (size_t)(slash - own) >= sizeof parent)
        return 0;
    (void)snprintf(parent, sizeof parent, "%.*s", (int)(slash - own), own);
    dir = opendir(parent);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        int n = snprintf(path, sizeof path, "%s/%s", parent, entry->d_name);

        if (is_ours(entry->d_name) && n > 0 && n < CG_PATH && !str_eq(path, own) &&
            remove_abandoned(path))
            removed++;
    }
    if (dir != NULL)
        (void)closedir(dir);
    return removed;
}

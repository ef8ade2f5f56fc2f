/* fileio_dir.c: folders: making, listing and removing them. Owns nothing beyond a call. */
#include "common/fileio.h"

#include "common/compat/compat.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIST_MAX ((size_t)1000000)
#define NAMES_MAX ((size_t)64 * 1024 * 1024)
#define DEPTH_MAX 64 /* each level of a tree that is removed holds a descriptor */

static int make_dir(const char *path, unsigned mode)
{
    struct stat st;
    if (mkdir(path, (mode_t)mode) == 0) {
        return 0;
    }
    int first = errno;
    /* on a read-only or foreign parent mkdir may say so before it says that the folder is there */
    if (compat_stat(AT_FDCWD, path, 0, &st, NULL) == 0) {
        return S_ISDIR(st.st_mode) ? 0 : -ERR_EXISTS;
    }
    return err_from_errno(first);
}

int file_mkdirs(const char *path, unsigned mode)
{
    char part[FILE_PATH_MAX];
    size_t n = strlen(path);
    if (n == 0) {
        return -ERR_INVAL;
    }
    if (n >= sizeof(part)) {
        return -ERR_LIMIT;
    }
    for (size_t i = 1; i <= n; i++) {
        if ((path[i] == '/' || path[i] == '\0') && path[i - 1] != '/') {
            memcpy(part, path, i);
            part[i] = '\0';
            int rc = make_dir(part, mode);
            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

struct names {
    struct mem_arena *arena;
    const char **items;
    size_t count;
    size_t room;
};

static int add_name(struct names *names, const char *name)
{
    if (names->count == LIST_MAX) {
        return -ERR_LIMIT;
    }
    const char *copy = mem_arena_strdup(names->arena, name);
    if (copy == NULL) {
        return -ERR_LIMIT;
    }
    if (names->count == names->room) {
        names->room = names->room != 0 ? names->room * 2 : 32;
        names->items = mem_xrealloc(names->items, names->room, sizeof(names->items[0]));
    }
    names->items[names->count++] = copy;
    return 0;
}

static int read_names(DIR *dir, struct names *names)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL) {
            return errno == 0 ? 0 : err_from_errno(errno);
        }
        if (!is_dots(entry->d_name)) {
            int rc = add_name(names, entry->d_name);
            if (rc != 0) {
                return rc;
            }
        }
    }
}

static int compare_names(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;
    return strcmp(*x, *y);
}

int file_list(const char *path, file_list_f *f, void *arg)
{
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return err_from_errno(errno);
    }
    struct names names = {.arena = mem_arena_new(NAMES_MAX)};
    int rc = read_names(dir, &names);
    closedir(dir);
    if (rc == 0 && names.count > 0) {
        qsort(names.items, names.count, sizeof(names.items[0]), compare_names);
        for (size_t i = 0; rc == 0 && i < names.count; i++) {
            rc = f(names.items[i], arg);
        }
    }
    free(names.items);
    mem_arena_free(&names.arena);
    return rc;
}

/* Where the removal of a tree has come to. */
struct level {
    int depth;
    dev_t device; /* of the tree: what is mounted within it is left alone */
};

static int remove_at(int parent, const char *name, struct level level);

/* Removes what the folder holds, once through; *removed says whether there was anything. */
static int empty_dir(DIR *dir, struct level level, bool *removed)
{
    *removed = false;
    rewinddir(dir);
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL) {
            return errno == 0 ? 0 : err_from_errno(errno);
        }
        if (!is_dots(entry->d_name)) {
            int rc = remove_at(dirfd(dir), entry->d_name, level);
            if (rc != 0) {
                return rc;
            }
            *removed = true;
        }
    }
}

static int empty_fd(int fd, struct level level)
{
    struct stat st;
    struct stat root;
    int rc = compat_stat(fd, NULL, 0, &st, NULL);
    if (rc == 0) {
        rc = compat_stat(AT_FDCWD, "/", 0, &root, NULL);
    }
    if (rc == 0 && st.st_dev == root.st_dev && st.st_ino == root.st_ino) {
        rc = -ERR_INVAL; /* under whatever name it came */
    }
    if (rc == 0 && level.depth > 0 && st.st_dev != level.device) {
        rc = -ERR_BUSY;
    }
    if (rc != 0) {
        close(fd);
        return rc;
    }
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        rc = err_from_errno(errno);
        close(fd);
        return rc;
    }
    /* a folder that changes under readdir() may hide entries: once more until a pass finds nothing */
    bool removed = true;
    while (rc == 0 && removed) {
        rc = empty_dir(dir, (struct level){level.depth + 1, st.st_dev}, &removed);
    }
    closedir(dir);
    return rc;
}

/* Removes one entry of the open folder `parent`: by descriptor all the way down, so that nobody can put a link in the way. */
static int remove_at(int parent, const char *name, struct level level)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) {
        return 0;
    }
    int first = errno;
    if (first != EISDIR && first != EPERM) { /* the two ways to say that it is a folder */
        return err_from_errno(first);
    }
    if (level.depth > DEPTH_MAX) {
        return -ERR_LIMIT;
    }
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return err_from_errno(errno == ENOTDIR || errno == ELOOP ? first : errno);
    }
    int rc = empty_fd(fd, level);
    if (rc == 0 && unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT) {
        rc = err_from_errno(errno);
    }
    return rc;
}

/* The path without slashes at its end ("link/" would follow the link) into dst of FILE_PATH_MAX bytes. -ERR_INVAL for what cannot be meant: a name
 * that was never filled in must not take the root, or the folder above, with it. */
static int clean_tree_path(char *dst, const char *path)
{
    size_t n = str_copy(dst, FILE_PATH_MAX, path);
    if (n >= FILE_PATH_MAX) {
        return -ERR_LIMIT;
    }
    while (n > 0 && dst[n - 1] == '/') {
        dst[--n] = '\0';
    }
    const char *slash = strrchr(dst, '/');
    return n == 0 || is_dots(slash != NULL ? slash + 1 : dst) ? -ERR_INVAL : 0;
}

int file_remove_tree(const char *path)
{
    char clean[FILE_PATH_MAX];
    int rc = clean_tree_path(clean, path);
    return rc != 0 ? rc : remove_at(AT_FDCWD, clean, (struct level){0, 0});
}

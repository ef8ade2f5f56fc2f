/* source_repo.c: repositories of our own, written as files: a mirror to fetch into, and one that
 * borrows the objects of another. */
#include "common/buf.h"
#include "common/err.h"
#include "common/mem.h"
#include "proto/source_priv.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Nothing that a tree says of itself changes what is archived of it. */
#define ATTRIBUTES                                                                                 \
    "* -export-ignore -export-subst -text -eol -ident -filter -working-tree-encoding\n"

#define COPY_PIECE ((size_t)1024 * 1024)

/* durable: on the disk when it returns. What serves one reading alone need not be. */
static int put(const char *dir, const char *name, const char *text, bool durable)
{
    char path[FILE_PATH_MAX];
    struct file *file = NULL;
    int rc = file_path(path, sizeof(path), dir, name);
    if (rc == 0 && durable) {
        return file_write_atomic(path, text, strlen(text), 0600);
    }
    if (rc == 0) {
        rc = file_open(path, FILE_APPEND | FILE_CREATE | FILE_TRUNC, 0600, &file);
    }
    if (rc == 0) {
        rc = file_append(file, text, strlen(text));
    }
    file_close(&file);
    return rc;
}

static int make_folder(const char *dir, const char *name)
{
    char path[FILE_PATH_MAX];
    int rc = file_path(path, sizeof(path), dir, name);
    return rc < 0 ? rc : file_mkdirs(path, 0700);
}

int source_repo_make(const char *path, const char *objects, const char *format, const char *head)
{
    static const char *const folders[] = {"objects/info", "objects/pack", "refs/heads", "info"};
    struct buf text = BUF_INIT;
    char done[FILE_PATH_MAX];
    bool sha256 = strcmp(format, "sha256") == 0;
    bool durable = objects == NULL; /* a mirror */
    int rc = file_path(done, sizeof(done), path, "HEAD");
    if (rc < 0 || file_exists(done)) {
        return rc;
    }
    for (size_t i = 0; i < ARRAY_LEN(folders) && rc == 0; i++) {
        rc = make_folder(path, folders[i]);
    }
    if (rc == 0) {
        rc = put(path, "info/attributes", ATTRIBUTES, durable);
    }
    if (rc == 0 && objects != NULL) {
        buf_printf(&text, "%s\n", objects);
        rc = text.err != 0 ? text.err
                           : put(path, "objects/info/alternates", buf_str(&text), durable);
    }
    if (rc == 0) {
        rc = put(path, "config",
                 sha256 ? "[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
                          "[extensions]\n\tobjectFormat = sha256\n"
                        : "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
                 durable);
    }
    if (rc == 0) {
        /* Last: from here on it is a repository. */
        buf_reset(&text);
        buf_printf(&text, "ref: %s\n", head);
        rc = text.err != 0 ? text.err : put(path, "HEAD", buf_str(&text), durable);
    }
    buf_fini(&text);
    return rc;
}

static int copy(struct file *in, struct file *out)
{
    uint8_t *piece = mem_try_zalloc(COPY_PIECE, COPY_PIECE);
    uint64_t at = 0;
    size_t got = 0;
    int rc = piece == NULL ? -ERR_NOMEM : 0;
    do {
        rc = rc < 0 ? rc : file_read_at(in, at, piece, COPY_PIECE, &got);
        rc = rc < 0 ? rc : file_append(out, piece, got);
        at += got;
    } while (rc == 0 && got == COPY_PIECE);
    free(piece);
    return rc;
}

int source_copy_file(const char *from, const char *to)
{
    struct file *in = NULL;
    struct file *out = NULL;
    struct file_stat st;
    int rc = file_stat(from, &st);
    if (rc == 0) {
        rc = file_open(from, FILE_READ, 0, &in);
    }
    if (rc == 0) {
        rc = file_open(to, FILE_APPEND | FILE_CREATE | FILE_TRUNC, 0600, &out);
    }
    if (rc == 0) {
        rc = copy(in, out);
    }
    file_close(&in);
    file_close(&out);
    if (rc == 0) {
        /* git takes an entry that is as new as its index for one that may have changed since. */
        struct timespec times[2] = {{0, UTIME_OMIT}, {0, 0}};
        times[1].tv_sec = (time_t)(st.mtime_ns / 1000000000);
        times[1].tv_nsec = (long)(st.mtime_ns % 1000000000);
        rc = utimensat(AT_FDCWD, to, times, 0) == 0 ? 0 : -ERR_IO;
    }
    return rc;
}

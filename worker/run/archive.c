/* archive.c: an archive becomes a tree.
 *
 *     READ    the file is read in slices: hashed, and when it is plain tar, checked
 *     LIST    a decompressor's output is checked
 *     UNPACK  tar reads the file, or the output of a second decompressor
 *
 * What was checked is what is unpacked: the file lies in a folder of the worker's own. */
#include "worker/run/archive.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/proc.h"
#include "common/str.h"
#include "proto/digest.h"
#include "worker/run/tarcheck.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARCHIVE_MAGIC 0x61726368u
#define SLICE (256 * 1024)
#define LIMIT_NS (2 * CLOCK_HOUR) /* for each program */
#define FULL_BYTES (1024 * 1024)  /* less than this is left: the disk is full */

/* Programs that unpack, by the first bytes of what they packed. */
static const struct packer {
    const char *program;
    const char *magic;
    size_t len;
} packers[] = {{"gzip", "\x1f\x8b", 2},
               {"bzip2", "BZh", 3},
               {"xz",
                "\xfd"
                "7zXZ\0",
                6},
               {"zstd", "\x28\xb5\x2f\xfd", 4}};

struct archive {
    unsigned magic;
    struct loop *loop;
    struct loop_timer *timer; /* READ: the next slice; LIST: the limit */
    char *path;
    char *dest;
    char *env_path;
    uint8_t want[DIGEST_MAX];
    uint8_t seen[DIGEST_MAX];
    bool hashed;
    bool set_user;
    uint32_t uid;
    uint32_t gid;
    archive_f *f;
    void *arg;
    struct file *file;
    uint64_t offset;
    struct digest *digest;
    struct tarcheck *check;
    const struct packer *packer; /* NULL: plain tar */
    struct proc *unpacker;       /* the decompressor */
    bool unpacker_ended;
    int unpacker_code; /* 0, or how it failed */
    char unpacker_text[160];
    int pipe_fd; /* its output, in LIST */
    struct loop_fd *pipe_watch;
    bool listed;
    struct proc_collect *tar;
    bool tar_ended;
    struct diag *diag;
    uint8_t *buffer;
};

/* --- the end --- */

static void release(struct archive *a)
{
    loop_timer_free(&a->timer);
    loop_fd_free(&a->pipe_watch);
    if (a->pipe_fd >= 0)
        (void)close(a->pipe_fd);
    if (a->unpacker != NULL && !a->unpacker_ended)
        (void)proc_signal(a->unpacker, SIGKILL, true);
    proc_free(&a->unpacker);
    if (a->tar != NULL)
        proc_collect_cancel(&a->tar);
    file_close(&a->file);
    digest_free(&a->digest);
    tarcheck_free(&a->check);
    diag_free(&a->diag);
    free(a->path);
    free(a->dest);
    free(a->env_path);
    free(a->buffer);
    a->magic = 0;
    free(a);
}

void archive_cancel(struct archive **archive)
{
    if (*archive == NULL)
        return;
    release(*archive);
    *archive = NULL;
}

static void finish(struct archive *a, int code, const char *text)
{
    struct archive_result r = {.code = code, .text = text, .hash = a->hashed ? a->seen : NULL};
    archive_f *f = a->f;
    void *arg = a->arg;
    uint8_t seen[DIGEST_MAX];
    char copy[1024];

    r.entries = tarcheck_entries(a->check);
    r.bytes = tarcheck_bytes(a->check);
    memcpy(seen, a->seen, sizeof(seen));
    if (r.hash != NULL)
        r.hash = seen;
    (void)str_copy(copy, sizeof(copy), text);
    r.text = copy;
    release(a);
    f(&r, arg);
}

/* Ends with what the checker or a call said in a->diag. */
static void refuse(struct archive *a, int code)
{
    char text[900];

    if (code == -ERR_NOTFOUND) /* a program, not the archive */
        code = -ERR_CHILD;
    (void)snprintf(text, sizeof(text), "the archive cannot be unpacked: %s", diag_first(a->diag));
    finish(a, code, text);
}

/* --- UNPACK --- */

static void both_ended(struct archive *a)
{
    if (!a->tar_ended || (a->unpacker != NULL && !a->unpacker_ended))
        return;
    finish(a, a->unpacker_code, a->unpacker_text);
}

static void tar_ended(const struct proc_output *output, void *arg)
{
    const struct proc_end *end = &output->end;
    uint64_t free_bytes = UINT64_MAX;
    struct buf said = BUF_INIT;
    struct archive *a;
    char text[900];
    int code = -ERR_CHILD;

    CAST_OBJ(a, arg, ARCHIVE_MAGIC);
    a->tar = NULL;
    a->tar_ended = true;
    if (!end->signaled && !end->exec_failed && end->exit_status == 0 && !output->timed_out) {
        both_ended(a);
        return;
    }
    if (output->timed_out) {
        finish(a, -ERR_TIMEOUT, "tar took too long to unpack the archive");
        return;
    }
    if (file_disk_free(a->dest, &free_bytes) == 0 && free_bytes < FULL_BYTES)
        code = -ERR_FULL;
    {
        size_t n = output->err->len < 300 ? output->err->len : 300;

        while (n > 0 && output->err->data[n - 1] == '\n')
            n--;
        str_escape(&said, buf_str(output->err), n);
    }
    if (end->exec_failed)
        (void)snprintf(text, sizeof(text), "tar could not be started: %s",
                       strerror(end->errno_value));
    else if (end->signaled)
        (void)snprintf(text, sizeof(text), "tar was ended by signal %d", end->signal);
    else
        (void)snprintf(text, sizeof(text), "%star ended with status %d: %s",
                       code == -ERR_FULL ? "the disk is full: " : "", end->exit_status,
                       buf_str(&said));
    buf_fini(&said);
    finish(a, code, text);
}

static void unpacker_ended(struct proc *proc, const struct proc_end *end, void *arg);

/* A child of the build's user without anything but a path. */
static void child_spec(const struct archive *a, struct proc_spec *spec, const char **env,
                       char *path_var, size_t room)
{
    (void)snprintf(path_var, room, "PATH=%s", a->env_path);
    env[0] = path_var;
    env[1] = "LC_ALL=C";
    env[2] = "TZ=UTC";
    env[3] = NULL;
    *spec = (struct proc_spec)PROC_SPEC_INIT;
    spec->env = env;
    spec->cwd = a->dest;
    spec->new_session = true;
    spec->set_user = a->set_user;
    spec->uid = a->uid;
    spec->gid = a->gid;
    spec->no_core = true;
}

/* Starts the decompressor on the file; *out is the reading end of a pipe with what it unpacks. */
static int start_unpacker(struct archive *a, int *out)
{
    const char *argv[] = {a->packer->program, "-dc", NULL}, *env[4];
    struct file *file = NULL;
    struct proc_spec spec;
    char path_var[4096];
    int ends[2], r;

    r = file_open(a->path, FILE_READ, 0, &file);
    if (r != 0)
        return diag_error(a->diag, r, "%s cannot be opened: %s", a->path, err_text(r));
    if (pipe(ends) != 0) {
        r = err_from_errno(errno);
        file_close(&file);
        return diag_error(a->diag, r, "a pipe cannot be made: %s", err_text(r));
    }
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    child_spec(a, &spec, env, path_var, sizeof(path_var));
    spec.argv = argv;
    spec.in_fd = file_fd(file);
    spec.out_fd = ends[1];
    a->unpacker_ended = false;
    r = proc_spawn(a->loop, &spec, unpacker_ended, a, &a->unpacker, a->diag);
    (void)close(ends[1]);
    file_close(&file);
    if (r != 0)
        (void)close(ends[0]);
    else
        *out = ends[0];
    return r;
}

static void unpack(struct archive *a)
{
    const char *argv[] = {"tar", "-xof", "-", NULL}, *env[4];
    struct file *file = NULL;
    struct proc_spec spec;
    char path_var[4096];
    int in = -1, r;

    if (a->packer != NULL)
        r = start_unpacker(a, &in);
    else
        r = file_open(a->path, FILE_READ, 0, &file);
    if (r == 0) {
        child_spec(a, &spec, env, path_var, sizeof(path_var));
        spec.argv = argv;
        spec.in_fd = a->packer != NULL ? in : file_fd(file);
        r = proc_collect(a->loop, &spec, 4096, LIMIT_NS, tar_ended, a, &a->tar, a->diag);
    }
    if (in >= 0)
        (void)close(in);
    file_close(&file);
    if (r != 0)
        refuse(a, r);
}

/* --- LIST --- */

/* The whole of the decompressor's output was checked, and its end is known. */
static void listing_ended(struct archive *a)
{
    int r;

    if (!a->listed || !a->unpacker_ended)
        return;
    loop_timer_clear(a->timer);
    proc_free(&a->unpacker);
    if (a->unpacker_code != 0) {
        finish(a, a->unpacker_code, a->unpacker_text);
        return;
    }
    r = tarcheck_end(a->check, a->diag);
    if (r != 0)
        refuse(a, r);
    else
        unpack(a);
}

static void unpacker_ended(struct proc *proc, const struct proc_end *end, void *arg)
{
    struct archive *a;
    bool unpacking;

    (void)proc;
    CAST_OBJ(a, arg, ARCHIVE_MAGIC);
    a->unpacker_ended = true;
    unpacking = a->tar != NULL || a->tar_ended;
    /* A tar that has seen the end of the archive may leave the rest unread. */
    if (!end->signaled && end->exit_status == 0)
        a->unpacker_code = 0;
    else if (end->signaled && end->signal == SIGPIPE && unpacking)
        a->unpacker_code = 0;
    else
        a->unpacker_code = end->exec_failed ? -ERR_CHILD : -ERR_CORRUPT;
    if (end->exec_failed)
        (void)snprintf(a->unpacker_text, sizeof(a->unpacker_text),
                       "this host has no %s to unpack the archive with: %s", a->packer->program,
                       strerror(end->errno_value));
    else if (a->unpacker_code != 0)
        (void)snprintf(a->unpacker_text, sizeof(a->unpacker_text),
                       "the archive cannot be unpacked: %s says that it is damaged",
                       a->packer->program);
    if (unpacking)
        both_ended(a);
    else
        listing_ended(a);
}

static void list_more(int fd, int what, void *arg)
{
    struct archive *a;
    ssize_t n;
    int r;

    (void)what;
    CAST_OBJ(a, arg, ARCHIVE_MAGIC);
    n = read(fd, a->buffer, SLICE);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        loop_fd_free(&a->pipe_watch);
        (void)close(a->pipe_fd);
        a->pipe_fd = -1;
        a->listed = true;
        listing_ended(a);
        return;
    }
    r = tarcheck_feed(a->check, a->buffer, (size_t)n, a->diag);
    if (r != 0)
        refuse(a, r);
}

static void list(struct archive *a)
{
    int r = start_unpacker(a, &a->pipe_fd);

    if (r == 0) {
        a->pipe_watch = loop_fd_new(a->loop, a->pipe_fd, LOOP_READ, list_more, a);
        loop_timer_set(a->timer, LIMIT_NS);
        return;
    }
    refuse(a, r);
}

/* --- READ --- */

static void read_whole(struct archive *a)
{
    int r = 0;

    file_close(&a->file);
    (void)digest_end(a->digest, a->seen);
    a->hashed = true;
    if (memcmp(a->seen, a->want, 32) != 0) {
        char seen[65], want[65];

        str_hex(seen, a->seen, 32);
        str_hex(want, a->want, 32);
        (void)diag_error(a->diag, ERR_CHECKSUM, "its SHA-256 is %.16s… and should be %.16s…", seen,
                         want);
        refuse(a, -ERR_CHECKSUM);
        return;
    }
    if (a->packer != NULL) {
        list(a);
        return;
    }
    r = tarcheck_end(a->check, a->diag);
    if (r != 0)
        refuse(a, r);
    else
        unpack(a);
}

static const struct packer *packer_of(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(packers); i++)
        if (n >= packers[i].len && memcmp(p, packers[i].magic, packers[i].len) == 0)
            return &packers[i];
    return NULL;
}

static void timer_due(void *arg)
{
    struct archive *a;
    size_t got = 0;
    int r;

    CAST_OBJ(a, arg, ARCHIVE_MAGIC);
    if (a->hashed) {
        finish(a, -ERR_TIMEOUT, "the archive took too long to be read");
        return;
    }
    r = file_read_at(a->file, a->offset, a->buffer, SLICE, &got);
    if (r != 0) {
        (void)diag_error(a->diag, r, "%s cannot be read: %s", a->path, err_text(r));
        refuse(a, r);
        return;
    }
    if (a->offset == 0)
        a->packer = packer_of(a->buffer, got);
    digest_add(a->digest, a->buffer, got);
    a->offset += got;
    /* The hash speaks first: what is wrong with damaged bytes does not matter. */
    if (a->packer == NULL)
        r = tarcheck_feed(a->check, a->buffer, got, NULL);
    if (got < SLICE)
        read_whole(a);
    else
        loop_timer_set(a->timer, 0);
}

int archive_unpack(struct loop *loop, const struct archive_spec *spec, archive_f *f, void *arg,
                   struct archive **out, struct diag *diag)
{
    struct archive *a = mem_xzalloc(sizeof(*a));
    struct tarcheck_limits limits = {.entries = spec->entries_max, .bytes = spec->bytes_max};
    int r;

    *out = NULL;
    a->magic = ARCHIVE_MAGIC;
    a->loop = loop;
    a->f = f;
    a->arg = arg;
    a->path = mem_xstrdup(spec->file);
    a->dest = mem_xstrdup(spec->dest);
    a->env_path = mem_xstrdup(spec->path);
    memcpy(a->want, spec->hash, 32);
    a->set_user = spec->set_user;
    a->uid = spec->uid;
    a->gid = spec->gid;
    a->pipe_fd = -1;
    a->unpacker_ended = true;
    a->diag = diag_new(1);
    a->check = tarcheck_new(&limits);
    a->digest = digest_new(DIGEST_SHA256);
    a->buffer = mem_xzalloc(SLICE);
    a->timer = loop_timer_new(loop, timer_due, a);
    r = file_open(spec->file, FILE_READ | FILE_NOFOLLOW, 0, &a->file);
    if (r != 0) {
        (void)diag_error(diag, r, "the archive %s cannot be opened: %s", spec->file, err_text(r));
        release(a);
        return r;
    }
    loop_timer_set(a->timer, 0);
    *out = a;
    return 0;
}

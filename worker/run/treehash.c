/* treehash.c: git's hash of a folder.
 *
 * A folder's object lists its entries in the order of their names, a folder's name counted as if
 * a slash stood behind it; each with its mode and the hash of its own object. An object's hash
 * is that of "KIND LENGTH", a NUL byte and the content. */
#include "worker/run/treehash.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/str.h"
#include "proto/digest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TREEHASH_MAGIC 0x74687368u
#define CHUNK (128 * 1024)
#define SLICE_BYTES (1024 * 1024)
#define SLICE_ENTRIES 200
#define DEPTH_MAX 200
#define ENTRIES_MAX 1000000 /* of one folder */

struct entry {
    char *name;
    struct file_stat st;
};

/* A folder on the way. */
struct level {
    size_t path_len; /* of the path up to this folder */
    struct entry *entry;
    size_t count;
    size_t room;
    size_t next;
    struct buf object; /* the content of its object so far */
    bool overflow;
};

struct treehash {
    unsigned magic;
    struct loop *loop;
    struct loop_timer *timer;
    enum digest_kind kind;
    struct digest *digest;
    treehash_f *f;
    void *arg;
    char path[FILE_PATH_MAX];
    struct level *level[DEPTH_MAX];
    size_t depth;
    struct file *file; /* being read */
    uint64_t file_left;
    uint64_t file_at;
    uint8_t *chunk;
    size_t slice_bytes;
    size_t slice_entries;
};

static void free_level(struct level *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->entry[i].name);
    free(l->entry);
    buf_fini(&l->object);
    free(l);
}

static void release(struct treehash *t)
{
    loop_timer_free(&t->timer);
    digest_free(&t->digest);
    file_close(&t->file);
    while (t->depth > 0)
        free_level(t->level[--t->depth]);
    free(t->chunk);
    t->magic = 0;
    free(t);
}

void treehash_cancel(struct treehash **hash)
{
    if (*hash == NULL)
        return;
    release(*hash);
    *hash = NULL;
}

static void finish(struct treehash *t, int code, const uint8_t *hash, size_t n, const char *text)
{
    char hex[2 * DIGEST_MAX + 1] = "";
    treehash_f *f = t->f;
    void *arg = t->arg;

    if (hash != NULL)
        str_hex(hex, hash, n);
    release(t);
    f(code, hex, text, arg);
}

static void fail(struct treehash *t, int code, const char *what)
{
    struct buf text = BUF_INIT;

    buf_printf(&text, "the unpacked tree cannot be read: %s: ", what);
    str_escape(&text, t->path, strlen(t->path));
    finish(t, code, NULL, 0, buf_str(&text));
    buf_fini(&text);
}

static int add_entry(const char *name, void *arg)
{
    struct level *l = arg;

    if (l->count == ENTRIES_MAX) {
        l->overflow = true;
        return -ERR_LIMIT;
    }
    if (l->count == l->room) {
        l->room = l->room == 0 ? 32 : l->room * 2;
        l->entry = mem_xrealloc(l->entry, l->room, sizeof(*l->entry));
    }
    memset(&l->entry[l->count], 0, sizeof(l->entry[0]));
    l->entry[l->count++].name = mem_xstrdup(name);
    return 0;
}

/* Git's order: by bytes, a folder as if its name ended in a slash. */
static int by_git(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    size_t nx = strlen(x->name), ny = strlen(y->name), n = nx < ny ? nx : ny;
    int r = memcmp(x->name, y->name, n);
    unsigned char cx, cy;

    if (r != 0)
        return r;
    cx = x->name[n] != '\0' ? (unsigned char)x->name[n] : x->st.type == FILE_T_DIR ? '/' : '\0';
    cy = y->name[n] != '\0' ? (unsigned char)y->name[n] : y->st.type == FILE_T_DIR ? '/' : '\0';
    return (cx > cy) - (cx < cy);
}

/* Puts the name behind the path of the deepest folder. */
static bool path_to(struct treehash *t, const char *name)
{
    size_t len = t->level[t->depth - 1]->path_len, n = strlen(name);

    if (len + 1 + n >= sizeof(t->path))
        return false;
    t->path[len] = '/';
    memcpy(t->path + len + 1, name, n + 1);
    return true;
}

/* Goes into the folder whose path is in t->path. */
static int enter(struct treehash *t)
{
    struct level *l;
    int r;

    if (t->depth == DEPTH_MAX)
        return -ERR_LIMIT;
    l = mem_xzalloc(sizeof(*l));
    l->path_len = strlen(t->path);
    t->level[t->depth++] = l;
    r = file_list(t->path, add_entry, l);
    if (r != 0)
        return l->overflow ? -ERR_LIMIT : r;
    for (size_t i = 0; i < l->count; i++) {
        if (!path_to(t, l->entry[i].name))
            return -ERR_LIMIT;
        r = file_stat(t->path, &l->entry[i].st);
        if (r != 0)
            return r;
    }
    t->path[l->path_len] = '\0';
    if (l->count > 0)
        qsort(l->entry, l->count, sizeof(*l->entry), by_git);
    return 0;
}

static void begin_object(struct treehash *t, const char *kind, uint64_t size)
{
    char head[64];
    int n = snprintf(head, sizeof(head), "%s %" PRIu64, kind, size);

    digest_restart(t->digest, t->kind);
    digest_add(t->digest, head, (size_t)n + 1);
}

/* The object that was begun is whole: its hash goes into the list of the deepest folder. */
static void end_object(struct treehash *t, const char *mode, const char *name)
{
    uint8_t hash[DIGEST_MAX];
    size_t n = digest_end(t->digest, hash);
    struct level *l = t->level[t->depth - 1];

    buf_printf(&l->object, "%s %s", mode, name);
    buf_add_char(&l->object, '\0');
    buf_add(&l->object, hash, n);
}

static const struct entry *current(const struct treehash *t)
{
    const struct level *l = t->level[t->depth - 1];

    return &l->entry[l->next];
}

/* A piece of the file that is open. */
static int read_some(struct treehash *t)
{
    size_t got = 0, want = t->file_left < CHUNK ? (size_t)t->file_left : CHUNK;
    int r = 0;

    if (want > 0)
        r = file_read_at(t->file, t->file_at, t->chunk, want, &got);
    if (r != 0)
        return r;
    if (got < want)
        return -ERR_STATE; /* it shrank */
    digest_add(t->digest, t->chunk, got);
    t->file_at += got;
    t->file_left -= got;
    t->slice_bytes += got;
    if (t->file_left > 0)
        return 0;
    file_close(&t->file);
    end_object(t, (current(t)->st.mode & 0100) != 0 ? "100755" : "100644", current(t)->name);
    t->level[t->depth - 1]->next++;
    return 0;
}

static int link_object(struct treehash *t, const char *name)
{
    char target[4096];
    ssize_t n = readlink(t->path, target, sizeof(target));

    if (n < 0)
        return err_from_errno(errno);
    if ((size_t)n == sizeof(target))
        return -ERR_LIMIT;
    begin_object(t, "blob", (uint64_t)n);
    digest_add(t->digest, target, (size_t)n);
    end_object(t, "120000", name);
    return 0;
}

/* The deepest folder is done. 1: it was the last, and hash holds the answer. */
static int leave(struct treehash *t, uint8_t hash[DIGEST_MAX], size_t *n)
{
    struct level *l = t->level[t->depth - 1];
    bool empty = l->object.len == 0;

    if (l->object.err != 0)
        return l->object.err;
    begin_object(t, "tree", l->object.len);
    digest_add(t->digest, l->object.data, l->object.len);
    free_level(l);
    t->depth--;
    if (t->depth == 0) {
        *n = digest_end(t->digest, hash);
        return 1;
    }
    if (!empty)
        end_object(t, "40000", current(t)->name);
    t->level[t->depth - 1]->next++;
    t->path[t->level[t->depth - 1]->path_len] = '\0';
    return 0;
}

/* One step: a piece of a file, a link, going into or out of a folder. */
static int step(struct treehash *t, uint8_t hash[DIGEST_MAX], size_t *n)
{
    struct level *l = t->level[t->depth - 1];
    const struct entry *e;
    int r;

    if (t->file != NULL)
        return read_some(t);
    if (l->next == l->count)
        return leave(t, hash, n);
    e = &l->entry[l->next];
    t->slice_entries++;
    if (!path_to(t, e->name))
        return -ERR_LIMIT;
    switch (e->st.type) {
    case FILE_T_DIR:
        return enter(t);
    case FILE_T_LINK:
        r = link_object(t, e->name);
        if (r == 0)
            l->next++;
        return r;
    case FILE_T_FILE:
        r = file_open(t->path, FILE_READ | FILE_NOFOLLOW, 0, &t->file);
        if (r != 0)
            return r;
        t->file_left = e->st.size;
        t->file_at = 0;
        begin_object(t, "blob", e->st.size);
        return read_some(t);
    case FILE_T_OTHER:
        break;
    }
    return -ERR_UNSUP;
}

static void slice(void *arg)
{
    struct treehash *t;
    uint8_t hash[DIGEST_MAX];
    size_t n = 0;
    int r = 0;

    CAST_OBJ(t, arg, TREEHASH_MAGIC);
    t->slice_bytes = 0;
    t->slice_entries = 0;
    while (r == 0 && t->slice_bytes < SLICE_BYTES && t->slice_entries < SLICE_ENTRIES)
        r = step(t, hash, &n);
    if (r == 1)
        finish(t, 0, hash, n, "");
    else if (r < 0)
        fail(t, r, err_text(r));
    else
        loop_timer_set(t->timer, 0);
}

int treehash_start(struct loop *loop, const char *folder, bool sha256, treehash_f *f, void *arg,
                   struct treehash **out, struct diag *diag)
{
    struct treehash *t;
    int r;

    *out = NULL;
    if (strlen(folder) >= FILE_PATH_MAX)
        return diag_error(diag, ERR_LIMIT, "%s: the path is too long", folder);
    t = mem_xzalloc(sizeof(*t));
    t->magic = TREEHASH_MAGIC;
    t->loop = loop;
    t->f = f;
    t->arg = arg;
    t->kind = sha256 ? DIGEST_SHA256 : DIGEST_SHA1;
    t->digest = digest_new(t->kind);
    t->chunk = mem_xzalloc(CHUNK);
    t->timer = loop_timer_new(loop, slice, t);
    (void)str_copy(t->path, sizeof(t->path), folder);
    r = enter(t);
    if (r != 0) {
        release(t);
        return diag_error(diag, r, "%s cannot be read: %s", folder, err_text(r));
    }
    loop_timer_set(t->timer, 0);
    *out = t;
    return 0;
}

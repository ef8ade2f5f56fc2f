/* tree_store.c: the prepared trees that wait in WORK/trees, and the trash. Every move is one
 * rename within WORK. */
#include "worker/run/tree_int.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tree_store_trash(struct trees *trees, const char *folder)
{
    char name[32], to[FILE_PATH_MAX];
    int r;

    if (!file_exists(folder))
        return 0;
    do {
        (void)snprintf(name, sizeof(name), "%" PRIu64, trees->trash_count++);
        r = file_path(to, sizeof(to), trees->at.trash, name);
        if (r != 0)
            return r;
    } while (file_exists(to));
    return file_rename(folder, to);
}

static int note_any(const char *name, void *arg)
{
    (void)name;
    *(bool *)arg = true;
    return 1;
}

bool tree_store_has_trash(const struct trees *trees)
{
    bool any = false;

    return file_list(trees->at.trash, note_any, &any) >= 0 && any;
}

static void add(struct trees *trees, const struct treestamp *stamp)
{
    if (trees->waiting_count == trees->waiting_room) {
        trees->waiting_room = trees->waiting_room == 0 ? 8 : trees->waiting_room * 2;
        trees->waiting = mem_xrealloc(trees->waiting, trees->waiting_room, sizeof(*trees->waiting));
    }
    trees->waiting[trees->waiting_count++] = *stamp;
    if (stamp->used > trees->use_count)
        trees->use_count = stamp->used;
}

static void forget(struct trees *trees, size_t index)
{
    trees->waiting_count--;
    memmove(&trees->waiting[index], &trees->waiting[index + 1],
            (trees->waiting_count - index) * sizeof(*trees->waiting));
}

/* One folder of WORK/trees: a tree whose stamp names it, or something to throw away. */
static int look_at(const char *name, void *arg)
{
    struct trees *trees = arg;
    struct treestamp stamp;
    char path[FILE_PATH_MAX];
    int r = file_path(path, sizeof(path), trees->at.trees, name);

    if (r != 0)
        return r;
    if (treestamp_read(path, &stamp) && strcmp(stamp.key, name) == 0 &&
        treestamp_usable(&stamp, trees->boot)) {
        add(trees, &stamp);
        return 0;
    }
    return tree_store_trash(trees, path);
}

int tree_store_load(struct trees *trees, struct diag *diag)
{
    int r = file_list(trees->at.trees, look_at, trees);

    if (r != 0)
        return diag_error(diag, r, "%s cannot be read: %s", trees->at.trees, err_text(r));
    trees->stands = treestamp_read(trees->at.build, &trees->stamp) &&
                    treestamp_usable(&trees->stamp, trees->boot);
    if (trees->stands) {
        if (trees->stamp.used > trees->use_count)
            trees->use_count = trees->stamp.used;
        return 0;
    }
    r = tree_store_trash(trees, trees->at.build);
    return r == 0
               ? 0
               : diag_error(diag, r, "%s cannot be moved away: %s", trees->at.build, err_text(r));
}

int tree_store_find(const struct trees *trees, const char *key)
{
    for (size_t i = 0; i < trees->waiting_count; i++)
        if (strcmp(trees->waiting[i].key, key) == 0)
            return (int)i;
    return -1;
}

int tree_store_oldest(const struct trees *trees, const char *keep)
{
    int oldest = -1;

    for (size_t i = 0; i < trees->waiting_count; i++) {
        if (keep != NULL && strcmp(trees->waiting[i].key, keep) == 0)
            continue;
        if (oldest < 0 || trees->waiting[i].used < trees->waiting[oldest].used)
            oldest = (int)i;
    }
    return oldest;
}

int tree_store_drop(struct trees *trees, size_t index)
{
    char path[FILE_PATH_MAX];
    int r = file_path(path, sizeof(path), trees->at.trees, trees->waiting[index].key);

    if (r == 0)
        r = tree_store_trash(trees, path);
    if (r == 0)
        forget(trees, index);
    return r;
}

int tree_store_put_away(struct trees *trees, bool keep)
{
    char path[FILE_PATH_MAX];
    int r, twin;

    if (!trees->stands || !keep) {
        r = tree_store_trash(trees, trees->at.build);
        trees->stands = trees->stands && r != 0;
        return r;
    }
    /* Never two of one key. */
    twin = tree_store_find(trees, trees->stamp.key);
    r = twin >= 0 ? tree_store_drop(trees, (size_t)twin) : 0;
    if (r == 0)
        r = file_path(path, sizeof(path), trees->at.trees, trees->stamp.key);
    if (r == 0)
        r = file_rename(trees->at.build, path);
    if (r != 0)
        return r;
    add(trees, &trees->stamp);
    trees->stands = false;
    return 0;
}

int tree_store_take_out(struct trees *trees, size_t index)
{
    struct treestamp stamp = trees->waiting[index];
    char path[FILE_PATH_MAX];
    int r = file_path(path, sizeof(path), trees->at.trees, stamp.key);

    if (r == 0)
        r = file_rename(path, trees->at.build);
    if (r != 0)
        return r;
    forget(trees, index);
    trees->stands = true;
    trees->stamp = stamp;
    trees->spoilt = false;
    return 0;
}

uint64_t tree_store_bytes(const struct trees *trees)
{
    uint64_t sum = trees->stands ? trees->stamp.bytes : 0;

    for (size_t i = 0; i < trees->waiting_count; i++)
        sum += trees->waiting[i].bytes;
    return sum;
}

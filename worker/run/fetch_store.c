/* fetch_store.c: the folder of archives: what is in it, in which order it was used, what goes
 * when it is too much.
 *
 * HASH is whole, HASH.part is not, `index` has a line a hash with the number of its last use.
 * What the index does not know counts as never used. */
#include "worker/run/fetch_store.h"

#include "common/buf.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEX FETCH_STORE_HEX
#define INDEX_MAX (1024 * 1024)

int fetch_store_path(const struct fetch_store *store, const char *hex, bool part,
                     char dst[FILE_PATH_MAX])
{
    char name[HEX + 8];

    (void)snprintf(name, sizeof(name), "%s%s", hex, part ? ".part" : "");
    return file_path(dst, FILE_PATH_MAX, store->dir, name);
}

struct fetch_blob *fetch_store_find(struct fetch_store *store, const char *hex)
{
    for (size_t i = 0; i < store->count; i++)
        if (strcmp(store->blob[i].hex, hex) == 0)
            return &store->blob[i];
    return NULL;
}

struct fetch_blob *fetch_store_add(struct fetch_store *store, const char *hex)
{
    struct fetch_blob *b = fetch_store_find(store, hex);

    if (b != NULL)
        return b;
    if (store->count == store->room) {
        store->room = store->room == 0 ? 16 : store->room * 2;
        store->blob = mem_xrealloc(store->blob, store->room, sizeof(*store->blob));
    }
    b = &store->blob[store->count++];
    memset(b, 0, sizeof(*b));
    (void)str_copy(b->hex, sizeof(b->hex), hex);
    return b;
}

static bool is_hex(const char *s)
{
    return strspn(s, "0123456789abcdef") >= HEX;
}

/* One file of the folder; the names come in order, a whole archive before a part of it. */
static int note_file(const char *name, void *arg)
{
    struct fetch_store *store = arg;
    struct file_stat st;
    char path[FILE_PATH_MAX], hex[HEX + 1];
    size_t n = strlen(name);
    bool part = n == HEX + 5 && strcmp(name + HEX, ".part") == 0;
    struct fetch_blob *b;

    if ((!part && n != HEX) || !is_hex(name))
        return 0;
    if (file_path(path, sizeof(path), store->dir, name) != 0 || file_stat(path, &st) != 0 ||
        st.type != FILE_T_FILE)
        return 0;
    memcpy(hex, name, HEX);
    hex[HEX] = '\0';
    if (part && fetch_store_find(store, hex) != NULL) { /* an older try */
        int r = file_remove(path);

        return r == -ERR_NOTFOUND ? 0 : r;
    }
    b = fetch_store_add(store, hex);
    b->size = st.size;
    b->part = part;
    return 0;
}

static void read_index(struct fetch_store *store)
{
    struct buf text = BUF_INIT;
    char path[FILE_PATH_MAX];
    const char *p;

    if (file_path(path, sizeof(path), store->dir, "index") != 0 ||
        file_read_all(path, INDEX_MAX, &text) != 0) {
        buf_fini(&text);
        return;
    }
    for (p = buf_str(&text); *p != '\0';) {
        size_t n = strcspn(p, "\n");
        char hex[HEX + 1];
        struct fetch_blob *b;
        uint64_t used;

        if (n > HEX + 1 && p[HEX] == ' ' && is_hex(p) &&
            num_parse_digits(p + HEX + 1, n - HEX - 1, &used) == 0) {
            memcpy(hex, p, HEX);
            hex[HEX] = '\0';
            b = fetch_store_find(store, hex);
            if (b != NULL) {
                b->used = used;
                store->use_count = used > store->use_count ? used : store->use_count;
            }
        }
        p += n + (p[n] == '\n' ? 1 : 0);
    }
    buf_fini(&text);
}

int fetch_store_open(struct fetch_store *store, const char *dir, uint64_t budget)
{
    int r = 0;

    memset(store, 0, sizeof(*store));
    store->budget = budget;
    if (str_copy(store->dir, sizeof(store->dir), dir) >= sizeof(store->dir))
        r = -ERR_LIMIT;
    if (r == 0)
        r = file_mkdirs(store->dir, 0700);
    if (r == 0)
        r = file_list(store->dir, note_file, store);
    if (r != 0) {
        fetch_store_close(store);
        return r;
    }
    read_index(store);
    return 0;
}

void fetch_store_close(struct fetch_store *store)
{
    free(store->blob);
    store->blob = NULL;
    store->count = store->room = 0;
}

void fetch_store_used(struct fetch_store *store, struct fetch_blob *blob)
{
    struct buf text = BUF_INIT;
    char path[FILE_PATH_MAX];
    int r;

    blob->used = ++store->use_count;
    for (size_t i = 0; i < store->count; i++)
        buf_printf(&text, "%s %" PRIu64 "\n", store->blob[i].hex, store->blob[i].used);
    r = text.err != 0 ? text.err : file_path(path, sizeof(path), store->dir, "index");
    if (r == 0)
        r = file_write_atomic(path, buf_str(&text), text.len, 0600);
    if (r != 0) /* only the order of throwing away is lost */
        log_warn("the list of archives in %s cannot be written: %s", store->dir, err_text(r));
    buf_fini(&text);
}

int fetch_store_drop(struct fetch_store *store, struct fetch_blob *blob)
{
    char path[FILE_PATH_MAX];
    int r = fetch_store_path(store, blob->hex, blob->part, path);

    if (r == 0)
        r = file_remove(path);
    if (r != 0 && r != -ERR_NOTFOUND)
        return r;
    *blob = store->blob[--store->count];
    return 0;
}

bool fetch_store_drop_oldest(struct fetch_store *store, const char *keep, const char *wish)
{
    struct fetch_blob *oldest = NULL;

    for (size_t i = 0; i < store->count; i++) {
        struct fetch_blob *b = &store->blob[i];

        if ((keep != NULL && strcmp(b->hex, keep) == 0) ||
            (wish != NULL && strcmp(b->hex, wish) == 0))
            continue;
        if (oldest == NULL || b->used < oldest->used)
            oldest = b;
    }
    return oldest != NULL && fetch_store_drop(store, oldest) == 0;
}

void fetch_store_keep_budget(struct fetch_store *store, uint64_t coming, const char *keep,
                             const char *wish)
{
    uint64_t sum;

    do {
        sum = coming;
        for (size_t i = 0; i < store->count; i++)
            sum += store->blob[i].size;
    } while (store->budget > 0 && sum > store->budget &&
             fetch_store_drop_oldest(store, keep, wish));
}

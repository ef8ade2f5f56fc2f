/* fetch.c: the archives that this worker has, and the fetching of one.
 *
 *     CHECK   what lies there (whole or in part) is hashed, in slices
 *     ASK     pieces are asked for, WINDOW ahead of what came
 *
 * The folder and its budget are fetch_store.c's. */
#include "worker/run/fetch.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/str.h"
#include "proto/digest.h"
#include "worker/run/fetch_store.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FETCH_MAGIC 0x66657463u
#define HEX FETCH_STORE_HEX
#define SLICE (256 * 1024)
#define WINDOW (4 * FETCH_PIECE)
#define SILENCES 5

enum state { IDLE, CHECK, ASK, TELL };

struct fetch {
    unsigned magic;
    struct loop *loop;
    struct loop_timer *timer;
    struct fetch_store store;
    fetch_ask_f *ask;
    void *ask_arg;
    bool up;
    bool keeps;
    char keep[HEX + 1];

    enum state state;
    uint8_t hash[FETCH_HASH];
    char hex[HEX + 1];
    uint64_t size;
    uint64_t have;  /* bytes of the part that are in the file, and in the digest */
    uint64_t asked; /* up to here pieces were asked for */
    unsigned silences;
    bool whole; /* CHECK reads HASH, not HASH.part */
    struct file *file;
    struct digest *digest;
    uint8_t *buffer;
    fetch_f *f;
    void *arg;
    int code;
    char path[FILE_PATH_MAX];
    char text[512];
};

/* Which archives stay whatever the budget says. */
static const char *kept(const struct fetch *f)
{
    return f->keeps ? f->keep : NULL;
}

static const char *wished(const struct fetch *f)
{
    return f->state != IDLE ? f->hex : NULL;
}

/* --- the end of a wish --- */

static void let_go(struct fetch *f)
{
    file_close(&f->file);
    digest_free(&f->digest);
    free(f->buffer);
    f->buffer = NULL;
    loop_timer_clear(f->timer);
    f->state = IDLE;
}

static void end(struct fetch *f, int code, const char *text)
{
    f->code = code;
    (void)str_copy(f->text, sizeof(f->text), text);
    file_close(&f->file);
    f->state = TELL;
    loop_timer_set(f->timer, 0);
}

static void tell(struct fetch *f)
{
    struct fetch_result r = {
        .code = f->code, .path = f->code == 0 ? f->path : NULL, .text = f->text};
    fetch_f *call = f->f;
    void *arg = f->arg;

    let_go(f);
    call(&r, arg);
}

/* The archive is whole, under its name. */
static void have_it(struct fetch *f)
{
    struct fetch_blob *b = fetch_store_add(&f->store, f->hex);

    b->size = f->size;
    b->part = false;
    fetch_store_used(&f->store, b);
    end(f, 0, "");
}

static void broken(struct fetch *f, int code, const char *what)
{
    char text[400];

    (void)snprintf(text, sizeof(text), "%s: %s", what, err_text(code));
    end(f, code, text);
}

/* --- ASK --- */

static void ask_more(struct fetch *f)
{
    uint64_t until = f->have + WINDOW < f->size ? f->have + WINDOW : f->size;

    if (!f->up)
        return;
    while (f->asked < until) {
        uint64_t n = f->size - f->asked < FETCH_PIECE ? f->size - f->asked : FETCH_PIECE;

        f->ask(f->hash, f->asked, (uint32_t)n, f->ask_arg);
        f->asked += n;
        if (f->state != ASK)
            return; /* the asking told at once that there is none */
    }
    loop_timer_set(f->timer, FETCH_SILENCE_NS);
}

static void begin_asking(struct fetch *f)
{
    f->state = ASK;
    f->asked = f->have;
    f->silences = 0;
    loop_timer_clear(f->timer);
    ask_more(f);
}

/* The last byte came. */
static void check_part(struct fetch *f)
{
    char part[FILE_PATH_MAX];
    uint8_t seen[DIGEST_MAX];
    int r = fetch_store_path(&f->store, f->hex, true, part);

    (void)digest_end(f->digest, seen);
    if (r == 0 && memcmp(seen, f->hash, FETCH_HASH) != 0) {
        struct fetch_blob *b = fetch_store_find(&f->store, f->hex);

        file_close(&f->file);
        r = b != NULL ? fetch_store_drop(&f->store, b) : file_remove(part);
        end(f, -ERR_CHECKSUM, "what the coordinator sent does not have the SHA-256 of the archive");
        return;
    }
    if (r == 0)
        r = file_sync(f->file);
    if (r == 0)
        r = file_rename(part, f->path);
    if (r != 0)
        broken(f, r, "the archive cannot be stored");
    else
        have_it(f);
}

static int append(struct fetch *f, const uint8_t *bytes, size_t n)
{
    int r;

    for (;;) {
        r = file_write_at(f->file, f->have, bytes, n);
        if (r != -ERR_FULL || !fetch_store_drop_oldest(&f->store, kept(f), wished(f)))
            return r;
    }
}

void fetch_data(struct fetch *fetch, const uint8_t hash[FETCH_HASH], uint64_t offset,
                uint64_t total, const uint8_t *bytes, size_t n)
{
    struct fetch *f = fetch;
    struct fetch_blob *b;
    int r;

    if (f->state != ASK || memcmp(hash, f->hash, FETCH_HASH) != 0 || offset != f->have || n == 0)
        return;
    if (total != f->size || n > f->size - f->have) {
        end(f, -ERR_PROTO,
            "the coordinator sends an archive of another size than the one announced");
        return;
    }
    r = append(f, bytes, n);
    if (r != 0) {
        broken(f, r, r == -ERR_FULL ? "the disk is full" : "the archive cannot be written");
        return;
    }
    digest_add(f->digest, bytes, n);
    f->have += n;
    f->silences = 0;
    b = fetch_store_add(&f->store, f->hex);
    b->part = true;
    b->size = f->have;
    if (f->have == f->size)
        check_part(f);
    else {
        if (f->asked < f->have)
            f->asked = f->have;
        ask_more(f);
    }
}

void fetch_none(struct fetch *fetch, const uint8_t hash[FETCH_HASH], const char *text)
{
    char why[400];

    if (fetch->state != ASK || memcmp(hash, fetch->hash, FETCH_HASH) != 0)
        return;
    (void)snprintf(why, sizeof(why), "the coordinator has no such archive: %s", text);
    end(fetch, -ERR_NOTFOUND, why);
}

void fetch_link(struct fetch *fetch, bool up)
{
    fetch->up = up;
    if (fetch->state != ASK)
        return;
    if (up)
        begin_asking(fetch);
    else
        loop_timer_clear(fetch->timer);
}

/* --- CHECK --- */

/* What lies there is no good: from the start. */
static void start_over(struct fetch *f)
{
    char part[FILE_PATH_MAX];
    struct fetch_blob *b = fetch_store_find(&f->store, f->hex);
    int r = 0;

    file_close(&f->file);
    if (b != NULL)
        r = fetch_store_drop(&f->store, b);
    fetch_store_keep_budget(&f->store, f->size, kept(f), wished(f));
    if (r == 0)
        r = fetch_store_path(&f->store, f->hex, true, part);
    if (r == 0)
        r = file_open(part, FILE_READ | FILE_WRITE | FILE_CREATE | FILE_TRUNC | FILE_NOFOLLOW, 0600,
                      &f->file);
    if (r != 0) {
        broken(f, r, "the archive cannot be written");
        return;
    }
    f->have = 0;
    digest_restart(f->digest, DIGEST_SHA256);
    if (f->size == 0)
        check_part(f);
    else
        begin_asking(f);
}

/* All that is there went through the digest. */
static void checked(struct fetch *f)
{
    uint8_t seen[DIGEST_MAX];

    if (!f->whole) {
        if (f->have == f->size)
            check_part(f);
        else
            begin_asking(f);
        return;
    }
    (void)digest_end(f->digest, seen);
    if (f->have == f->size && memcmp(seen, f->hash, FETCH_HASH) == 0) {
        have_it(f);
        return;
    }
    log_warn("the archive %s is damaged on the disk and is fetched again", f->path);
    start_over(f);
}

static void check_some(struct fetch *f)
{
    size_t got = 0;
    int r = file_read_at(f->file, f->have, f->buffer, SLICE, &got);

    if (r != 0 || f->have + got > f->size) {
        start_over(f);
        return;
    }
    digest_add(f->digest, f->buffer, got);
    f->have += got;
    if (got < SLICE)
        checked(f);
    else
        loop_timer_set(f->timer, 0);
}

static void timer_due(void *arg)
{
    struct fetch *f;

    CAST_OBJ(f, arg, FETCH_MAGIC);
    switch (f->state) {
    case IDLE:
        break;
    case TELL:
        tell(f);
        break;
    case CHECK:
        check_some(f);
        break;
    case ASK:
        if (++f->silences >= SILENCES) {
            end(f, -ERR_TIMEOUT,
                "the coordinator did not send the archive though it was asked for it five times");
            break;
        }
        f->asked = f->have;
        ask_more(f);
        break;
    }
}

/* --- the object and the wish --- */

int fetch_new(struct loop *loop, const struct fetch_conf *conf, struct fetch **out,
              struct diag *diag)
{
    struct fetch *f = mem_xzalloc(sizeof(*f));
    int r;

    *out = NULL;
    f->magic = FETCH_MAGIC;
    f->loop = loop;
    f->ask = conf->ask;
    f->ask_arg = conf->ask_arg;
    r = fetch_store_open(&f->store, conf->dir, conf->budget);
    if (r != 0) {
        free(f);
        return diag_error(diag, r, "the folder of archives %s cannot be used: %s", conf->dir,
                          err_text(r));
    }
    f->timer = loop_timer_new(loop, timer_due, f);
    fetch_store_keep_budget(&f->store, 0, NULL, NULL);
    *out = f;
    return 0;
}

void fetch_free(struct fetch **fetch)
{
    struct fetch *f = *fetch;

    if (f == NULL)
        return;
    let_go(f);
    loop_timer_free(&f->timer);
    fetch_store_close(&f->store);
    f->magic = 0;
    free(f);
    *fetch = NULL;
}

int fetch_get(struct fetch *fetch, const uint8_t hash[FETCH_HASH], uint64_t size, fetch_f *f,
              void *arg, struct diag *diag)
{
    char part[FILE_PATH_MAX];
    struct fetch_blob *b;
    int r;

    if (fetch->state != IDLE)
        return diag_error(diag, ERR_BUSY, "another archive is being fetched");
    memcpy(fetch->hash, hash, FETCH_HASH);
    str_hex(fetch->hex, hash, FETCH_HASH);
    r = fetch_store_path(&fetch->store, fetch->hex, false, fetch->path);
    if (r == 0)
        r = fetch_store_path(&fetch->store, fetch->hex, true, part);
    if (r != 0)
        return diag_error(diag, r, "the path of the archive is too long");
    fetch->size = size;
    fetch->have = 0;
    fetch->f = f;
    fetch->arg = arg;
    fetch->state = CHECK;
    fetch->digest = digest_new(DIGEST_SHA256);
    fetch->buffer = mem_xzalloc(SLICE);
    b = fetch_store_find(&fetch->store, fetch->hex);
    fetch->whole = b != NULL && !b->part;
    r = b == NULL ? -ERR_NOTFOUND
                  : file_open(fetch->whole ? fetch->path : part,
                              FILE_READ | (fetch->whole ? 0 : FILE_WRITE) | FILE_NOFOLLOW, 0,
                              &fetch->file);
    if (r == 0)
        loop_timer_set(fetch->timer, 0);
    else
        start_over(fetch);
    return 0;
}

void fetch_cancel(struct fetch *fetch)
{
    if (fetch->state != IDLE)
        let_go(fetch);
}

void fetch_keep(struct fetch *fetch, const uint8_t *hash)
{
    fetch->keeps = hash != NULL;
    if (hash != NULL)
        str_hex(fetch->keep, hash, FETCH_HASH);
}

const char *fetch_dir(const struct fetch *fetch)
{
    return fetch->store.dir;
}

bool fetch_progress(const struct fetch *fetch, uint64_t *have, uint64_t *size)
{
    if (fetch->state == IDLE)
        return false;
    *have = fetch->have;
    *size = fetch->size;
    return true;
}

/* spool.c: which attempts are on disk, the one that is being written, the reserve. The form of a
 * file is spool_file.c's. */
#include "worker/run/spool.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "proto/msg.h"
#include "worker/run/spool_file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names: SERIAL-RUN-ATTEMPT (20, 20 and 10 digits), and these. */
#define WRITING "writing"
#define RESERVE "reserve"
#define ASIDE "damaged-"
#define REJECTED "rejected-"
#define NAME_LEN 52
#define NAME_ROOM 80

struct spool {
    char *dir;
    struct spool_entry *list;
    size_t head; /* entries before it are gone */
    size_t end;
    size_t room;
    uint64_t bytes;
    uint64_t serial; /* of the next commit */
    bool has_reserve;
    struct buf work;
    /* the attempt that is being written; file NULL: none */
    struct file *file;
    struct spool_entry now;
    bool ended;
    /* the file that was read last, and where its next record is */
    struct file *reading;
    uint64_t reading_serial;
    uint32_t reading_seq;
    uint64_t reading_offset;
};

static void name_of(const struct spool_entry *e, char name[NAME_ROOM])
{
    snprintf(name, NAME_ROOM, "%020" PRIu64 "-%020" PRIu64 "-%010" PRIu32, e->serial, e->run,
             e->attempt);
}

/* Folders whose names leave no room for a file are refused by spool_open(). */
static void path_of(const struct spool *s, const char *name, char path[FILE_PATH_MAX])
{
    int err = file_path(path, FILE_PATH_MAX, s->dir, name);

    assert(err == 0);
    (void)err;
}

/* --- the list --- */

static void add_entry(struct spool *s, const struct spool_entry *e)
{
    if (s->end == s->room && s->head > s->room / 2) {
        memmove(s->list, s->list + s->head, (s->end - s->head) * sizeof *s->list);
        s->end -= s->head;
        s->head = 0;
    }
    if (s->end == s->room) {
        s->room = s->room == 0 ? 16 : 2 * s->room;
        s->list = mem_xrealloc(s->list, s->room, sizeof *s->list);
    }
    s->list[s->end++] = *e;
    s->bytes += e->size;
}

static void drop_entry(struct spool *s, size_t index)
{
    struct spool_entry *e = spool_at(s, index);

    s->bytes -= e->size;
    if (s->reading != NULL && s->reading_serial == e->serial)
        file_close(&s->reading);
    if (index == 0)
        s->head++;
    else
        memmove(e, e + 1, (spool_count(s) - index - 1) * sizeof *e);
    if (index != 0)
        s->end--;
    if (s->head == s->end)
        s->head = s->end = 0;
}

size_t spool_count(const struct spool *spool)
{
    return spool->end - spool->head;
}

uint64_t spool_bytes(const struct spool *spool)
{
    return spool->bytes;
}

struct spool_entry *spool_at(const struct spool *spool, size_t index)
{
    assert(index < spool_count(spool));
    return &spool->list[spool->head + index];
}

size_t spool_find(const struct spool *spool, uint64_t run, uint32_t attempt, size_t hint)
{
    size_t n = spool_count(spool);

    for (size_t i = 0; i < n; i++) {
        size_t at = (hint + i) % n;
        const struct spool_entry *e = spool_at(spool, at);

        if (e->run == run && e->attempt == attempt)
            return at;
    }
    return n;
}

/* --- opening --- */

static void set_aside(const struct spool *s, const char *name, const char *why)
{
    char from[FILE_PATH_MAX], to[FILE_PATH_MAX], aside[NAME_ROOM + sizeof ASIDE];
    int err;

    snprintf(aside, sizeof aside, ASIDE "%s", name);
    path_of(s, name, from);
    path_of(s, aside, to);
    err = file_rename(from, to);
    if (err != 0)
        log_error("the spooled file %s is damaged (%s) and cannot be renamed: %s", from, why,
                  err_text(err));
    else
        log_error(
            "the spooled file %s is damaged (%s): its attempt is lost; it was set aside as %s",
            from, why, to);
}

static bool read_name(const char *name, struct spool_entry *e)
{
    uint64_t attempt;

    if (strlen(name) != NAME_LEN || name[20] != '-' || name[41] != '-')
        return false;
    if (num_parse_digits(name, 20, &e->serial) != 0 ||
        num_parse_digits(name + 21, 20, &e->run) != 0 ||
        num_parse_digits(name + 42, 10, &attempt) != 0 || attempt > UINT32_MAX)
        return false;
    e->attempt = (uint32_t)attempt;
    return true;
}

static int check_file(struct spool *s, const char *name, struct spool_entry *e)
{
    char path[FILE_PATH_MAX];
    struct file *file = NULL;
    uint64_t run;
    uint32_t attempt;
    int err;

    path_of(s, name, path);
    err = file_open(path, FILE_READ | FILE_NOFOLLOW, 0, &file);
    if (err == 0)
        err = spool_check(file, &run, &attempt, &e->count, &e->size);
    if (err == 0 && (run != e->run || attempt != e->attempt))
        err = -ERR_CORRUPT;
    file_close(&file);
    return err;
}

/* One name of the folder, in the order of serials. */
static int take_name(const char *name, void *arg)
{
    struct spool *s = arg;
    struct spool_entry e = {0};
    char path[FILE_PATH_MAX];
    int err;

    if (str_starts(name, ASIDE) || str_starts(name, REJECTED))
        return 0;
    if (str_eq(name, WRITING)) {
        /* It never counted: the journal knows what was being made. */
        path_of(s, name, path);
        err = file_remove(path);
        if (err != 0)
            log_warn("%s cannot be removed: %s", path, err_text(err));
        return 0;
    }
    if (str_eq(name, RESERVE))
        return 0;
    if (!read_name(name, &e)) {
        if (strlen(name) <= NAME_LEN)
            set_aside(s, name, "it has no name of the spool's");
        return 0;
    }
    if (e.serial >= s->serial)
        s->serial = e.serial + 1;
    err = check_file(s, name, &e);
    if (err == 0)
        add_entry(s, &e);
    else if (err == -ERR_CORRUPT)
        set_aside(s, name, err_text(err));
    else
        log_error("the spooled file %s cannot be read now: %s", name, err_text(err));
    return 0;
}

int spool_open(const char *dir, struct spool **out, struct diag *diag)
{
    struct spool *s;
    int err;

    *out = NULL;
    if (strlen(dir) + sizeof REJECTED + NAME_ROOM >= FILE_PATH_MAX)
        return diag_error(diag, ERR_LIMIT, "the name of the folder %s is too long", dir);
    s = mem_xzalloc(sizeof *s);
    s->dir = mem_xstrdup(dir);
    s->serial = 1;
    buf_init(&s->work, 2 * 1024 * 1024);
    err = file_mkdirs(dir, 0700);
    if (err == 0)
        err = file_list(dir, take_name, s);
    if (err != 0) {
        spool_close(&s);
        return diag_error(diag, err, "the folder %s of results cannot be used: %s", dir,
                          err_text(err));
    }
    err = spool_refill(s);
    if (err != 0)
        log_warn("no space can be reserved for results in %s: %s", dir, err_text(err));
    if (spool_count(s) > 0)
        log_info("%zu finished attempts wait to be sent", spool_count(s));
    *out = s;
    return 0;
}

void spool_close(struct spool **spool)
{
    struct spool *s = *spool;

    if (s == NULL)
        return;
    file_close(&s->file);
    file_close(&s->reading);
    buf_fini(&s->work);
    free(s->list);
    free(s->dir);
    free(s);
    *spool = NULL;
}

/* --- the reserve --- */

const char *spool_dir(const struct spool *spool)
{
    return spool->dir;
}

bool spool_has_reserve(const struct spool *spool)
{
    return spool->has_reserve;
}

/* Bytes that no file system stores as nothing. */
static void fill(uint8_t *p, size_t n)
{
    uint32_t x = 0x9e3779b9u;

    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        p[i] = (uint8_t)(x >> 24);
    }
}

static int write_reserve(const char *path)
{
    enum { PIECE = 16384 };
    uint8_t *piece = mem_xarray(PIECE, 1);
    struct file *file = NULL;
    int err = file_open(path, FILE_APPEND | FILE_CREATE | FILE_TRUNC | FILE_NOFOLLOW, 0600, &file);

    fill(piece, PIECE);
    for (size_t done = 0; err == 0 && done < SPOOL_RESERVE; done += PIECE)
        err = file_append(file, piece, PIECE);
    if (err == 0)
        err = file_sync(file);
    file_close(&file);
    free(piece);
    return err;
}

int spool_refill(struct spool *spool)
{
    char path[FILE_PATH_MAX];
    struct file_stat st;
    int err;

    if (spool->has_reserve)
        return 0;
    path_of(spool, RESERVE, path);
    err = file_stat(path, &st);
    if (err != 0 || st.size != SPOOL_RESERVE) {
        err = write_reserve(path);
        if (err != 0 && file_remove(path) != 0)
            log_debug("%s: no reserve, and nothing to remove", path);
    }
    spool->has_reserve = err == 0;
    return err;
}

static bool give_up_reserve(struct spool *s)
{
    char path[FILE_PATH_MAX];
    int err;

    if (!s->has_reserve)
        return false;
    path_of(s, RESERVE, path);
    err = file_remove(path);
    s->has_reserve = false;
    log_warn(
        "the disk of %s is full: the reserve is used, and no work is begun until there is room",
        s->dir);
    return err == 0;
}

/* --- writing --- */

int spool_begin(struct spool *spool, uint64_t run, uint32_t attempt)
{
    char path[FILE_PATH_MAX];
    int err;

    file_close(&spool->file);
    spool->now = (struct spool_entry){.run = run, .attempt = attempt};
    spool->ended = false;
    path_of(spool, WRITING, path);
    for (;;) {
        err = file_open(path, FILE_APPEND | FILE_CREATE | FILE_TRUNC | FILE_NOFOLLOW, 0600,
                        &spool->file);
        buf_reset(&spool->work);
        spool_head_make(&spool->work, run, attempt);
        if (err == 0)
            err = file_append(spool->file, spool->work.data, spool->work.len);
        if (err == 0)
            break;
        file_close(&spool->file);
        if (err != -ERR_FULL || !give_up_reserve(spool))
            return err;
    }
    spool->now.size = SPOOL_HEAD;
    return 0;
}

uint32_t spool_next_seq(const struct spool *spool)
{
    return spool->now.count;
}

/* A record that did not fit as a whole must not stay in part. */
static int append(struct spool *s, bool may_use_reserve)
{
    for (;;) {
        int err = file_append(s->file, s->work.data, s->work.len);

        if (err == 0)
            return 0;
        if (file_truncate(s->file, s->now.size) != 0) {
            file_close(&s->file); /* its end is not known any more */
            return -ERR_IO;
        }
        if (err != -ERR_FULL || !may_use_reserve || !give_up_reserve(s))
            return err;
    }
}

int spool_add(struct spool *spool, const struct msg *msg)
{
    struct msg_record_id id;
    int err;

    if (spool->file == NULL)
        return -ERR_STATE;
    if (!msg_record_id(msg, &id) || id.run != spool->now.run || id.attempt != spool->now.attempt ||
        id.seq != spool->now.count || spool->ended ||
        (msg->type == MSG_END && msg->u.end.count != id.seq + 1))
        return -ERR_INVAL;
    buf_reset(&spool->work);
    err = spool_record_make(&spool->work, msg);
    if (err == 0)
        err =
            append(spool, msg->type == MSG_RESULT || msg->type == MSG_MARK || msg->type == MSG_END);
    if (err == 0) {
        spool->now.size += spool->work.len;
        spool->now.count++;
        spool->ended = msg->type == MSG_END;
    }
    if (spool->work.room > 65536)
        buf_fini(&spool->work);
    return err;
}

int spool_commit(struct spool *spool)
{
    char from[FILE_PATH_MAX], to[FILE_PATH_MAX], name[NAME_ROOM];
    int err;

    if (spool->file == NULL || !spool->ended)
        return -ERR_STATE;
    spool->now.serial = spool->serial;
    name_of(&spool->now, name);
    path_of(spool, WRITING, from);
    path_of(spool, name, to);
    err = file_sync(spool->file);
    file_close(&spool->file);
    if (err == 0)
        err = file_rename(from, to);
    if (err != 0)
        return err;
    spool->serial++;
    add_entry(spool, &spool->now);
    return 0;
}

/* --- reading --- */

/* The file of the entry is open and stands at the record. */
static int seek(struct spool *s, const struct spool_entry *e, uint32_t seq)
{
    char path[FILE_PATH_MAX], name[NAME_ROOM];
    int err = 0;

    if (s->reading == NULL || s->reading_serial != e->serial || s->reading_seq > seq) {
        file_close(&s->reading);
        name_of(e, name);
        path_of(s, name, path);
        err = file_open(path, FILE_READ | FILE_NOFOLLOW, 0, &s->reading);
        s->reading_serial = e->serial;
        s->reading_seq = 0;
        s->reading_offset = SPOOL_HEAD;
    }
    while (err == 0 && s->reading_seq < seq) {
        err = spool_record_skip(s->reading, &s->reading_offset);
        s->reading_seq++;
    }
    return err;
}

static bool is_record(const struct msg *m, const struct spool_entry *e, uint32_t seq)
{
    struct msg_record_id id;

    return msg_record_id(m, &id) && id.run == e->run && id.attempt == e->attempt && id.seq == seq;
}

int spool_read(struct spool *spool, size_t index, uint32_t seq, struct msg **out)
{
    struct spool_entry *e = spool_at(spool, index);
    char name[NAME_ROOM];
    const uint8_t *body;
    uint8_t type;
    size_t n;
    int err = seek(spool, e, seq);

    *out = NULL;
    if (err == 0)
        err = spool_record_read(spool->reading, &spool->reading_offset, &spool->work, &type, &body,
                                &n);
    if (err == 0) {
        spool->reading_seq = seq + 1;
        err = msg_decode(type, body, n, out, NULL);
        if (err == 0 && !is_record(*out, e, seq)) {
            msg_free(out);
            err = -ERR_CORRUPT;
        }
        if (err == -ERR_PROTO || err == -ERR_LIMIT || err == -ERR_UNSUP)
            err = -ERR_CORRUPT;
    }
    if (err == 0 && seq + 1 < e->count)
        return 0;
    /* The last record, or a failure: the next one is read from another file. */
    file_close(&spool->reading);
    buf_fini(&spool->work);
    if (err == -ERR_END || err == -ERR_NOTFOUND)
        err = -ERR_CORRUPT;
    if (err == -ERR_CORRUPT) {
        name_of(e, name);
        drop_entry(spool, index);
        set_aside(spool, name, "found when it was to be sent");
    }
    return err;
}

void spool_reject(struct spool *spool, size_t index, const char *why)
{
    char from[FILE_PATH_MAX], to[FILE_PATH_MAX], name[NAME_ROOM],
        aside[NAME_ROOM + sizeof REJECTED];
    struct spool_entry e = *spool_at(spool, index);
    int err;

    name_of(&e, name);
    snprintf(aside, sizeof aside, REJECTED "%s", name);
    path_of(spool, name, from);
    path_of(spool, aside, to);
    drop_entry(spool, index);
    err = file_rename(from, to);
    if (err != 0)
        log_error(
            "the coordinator refuses attempt %" PRIu32 " of run %" PRIu64
            " for good: %s; %s cannot be renamed (%s), and is sent again after the next start",
            e.attempt, e.run, why, from, err_text(err));
    else
        log_error(
            "the coordinator refuses attempt %" PRIu32 " of run %" PRIu64
            " for good: %s; it counts in nothing, and its records were set aside as %s: if they "
            "matter, keep that file with this line for whoever mends it, else remove it",
            e.attempt, e.run, why, to);
}

void spool_forget(struct spool *spool, size_t index)
{
    char path[FILE_PATH_MAX], name[NAME_ROOM];
    int err;

    name_of(spool_at(spool, index), name);
    drop_entry(spool, index);
    path_of(spool, name, path);
    err = file_remove(path);
    if (err != 0 && err != -ERR_NOTFOUND)
        log_warn("%s cannot be removed: %s", path, err_text(err));
}

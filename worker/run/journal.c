/* journal.c: the two files, which of them is written next, and the changes. Their form is
 * journal_file.c's. */
#include "worker/run/journal.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "proto/msg.h"
#include "worker/run/journal_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_AT_FIRST                                                                              \
    (64 * 1024) /* each file is at least so long: room for a queue on a full disk */
#define JOURNAL_BYTES_MAX (256u * 1024 * 1024)
#define HEARD_EVERY_S 3600

static const char *const NAMES[2] = {"journal.a", "journal.b"};

struct journal {
    char *dir;
    struct file *files[2];
    int synced; /* the file whose state is on the disk: never the next to be written */
    uint64_t number;
    struct journal_state state;
    int64_t heard_written_s;
    struct buf bytes;
};

static int path_of(const struct journal *j, const char *name, char path[FILE_PATH_MAX])
{
    return file_path(path, FILE_PATH_MAX, j->dir, name);
}

static int write_state(struct journal *j, bool sync)
{
    int at = 1 - j->synced;
    int err;

    buf_reset(&j->bytes);
    err = journal_state_make(&j->state, j->number + 1, &j->bytes);
    if (err == 0)
        err = file_write_at(j->files[at], 0, j->bytes.data, j->bytes.len);
    if (err == 0 && sync)
        err = file_sync(j->files[at]);
    if (j->bytes.room > 256 * 1024)
        buf_fini(&j->bytes);
    if (err != 0)
        return err;
    j->number++;
    j->heard_written_s = j->state.heard_s;
    if (sync)
        j->synced = at;
    return 0;
}

/* --- opening --- */

/* What a file says. -ERR_NOTFOUND, -ERR_CORRUPT, -ERR_VERSION, … */
static int read_file(const struct journal *j, const char *name, uint64_t *number,
                     struct journal_state *state)
{
    struct buf bytes;
    char path[FILE_PATH_MAX];
    int err = path_of(j, name, path);

    *state = (struct journal_state){0};
    buf_init(&bytes, JOURNAL_BYTES_MAX);
    if (err == 0)
        err = file_read_all(path, JOURNAL_BYTES_MAX, &bytes);
    if (err == 0)
        err = journal_state_read(bytes.data, bytes.len, number, state);
    buf_fini(&bytes);
    return err;
}

static void set_aside(const struct journal *j, const char *name)
{
    char from[FILE_PATH_MAX], to[FILE_PATH_MAX], aside[64];
    int err;

    snprintf(aside, sizeof aside, "damaged-%s", name);
    err = path_of(j, name, from);
    if (err == 0)
        err = path_of(j, aside, to);
    if (err == 0)
        err = file_rename(from, to);
    if (err != 0 && err != -ERR_NOTFOUND)
        log_error("the damaged journal %s cannot be renamed: %s", name, err_text(err));
}

/* Reads the newer whole file into the state. 0 also when there is none. */
static int read_both(struct journal *j, int64_t now_wall_ns, struct diag *diag)
{
    struct journal_state state[2];
    uint64_t number[2] = {0, 0};
    int err[2];
    int newer;

    for (int i = 0; i < 2; i++)
        err[i] = read_file(j, NAMES[i], &number[i], &state[i]);
    newer = err[1] == 0 && (err[0] != 0 || number[1] > number[0]);
    if (err[newer] == 0) {
        j->state = state[newer];
        j->number = number[newer];
        j->synced = newer;
        journal_state_fini(&state[1 - newer]);
        return 0;
    }
    for (int i = 0; i < 2; i++)
        if (err[i] != -ERR_NOTFOUND && err[i] != -ERR_CORRUPT)
            return diag_error(diag, err[i], "%s/%s cannot be read: %s", j->dir, NAMES[i],
                              err_text(err[i]));
    if (err[0] == -ERR_NOTFOUND && err[1] == -ERR_NOTFOUND)
        return 0;
    log_error("the journal in %s is damaged: what was queued or running is forgotten, and the "
              "coordinator will hand it out again; the files are set aside as damaged-*",
              j->dir);
    set_aside(j, NAMES[0]);
    set_aside(j, NAMES[1]);
    j->state.visit = now_wall_ns > 0 ? (uint64_t)(now_wall_ns / CLOCK_SEC) : 1;
    return 0;
}

/* Opens a file for writing in place, at least SIZE_AT_FIRST long. */
static int open_file(struct journal *j, int i)
{
    char path[FILE_PATH_MAX];
    uint8_t *zeros;
    uint64_t size = 0;
    int err = path_of(j, NAMES[i], path);

    if (err == 0)
        err = file_open(path, FILE_READ | FILE_WRITE | FILE_CREATE | FILE_NOFOLLOW, 0600,
                        &j->files[i]);
    if (err == 0)
        err = file_size(j->files[i], &size);
    if (err != 0 || size >= SIZE_AT_FIRST)
        return err;
    zeros = mem_xarray(SIZE_AT_FIRST, 1);
    err = file_write_at(j->files[i], size, zeros, (size_t)(SIZE_AT_FIRST - size));
    free(zeros);
    if (err == -ERR_FULL)
        err = 0; /* then there may be no room later: that is seen, and said, later */
    return err;
}

int journal_open(const char *dir, int64_t now_wall_ns, struct journal **out, struct diag *diag)
{
    struct journal *j = mem_xzalloc(sizeof *j);
    int err = file_mkdirs(dir, 0700);

    *out = NULL;
    j->dir = mem_xstrdup(dir);
    buf_init(&j->bytes, JOURNAL_BYTES_MAX);
    if (err != 0)
        err = diag_error(diag, err, "the folder %s cannot be made: %s", dir, err_text(err));
    else
        err = read_both(j, now_wall_ns, diag);
    if (err == 0) {
        j->state.running.boot_id = j->state.boot_id;
        j->state.visit++;
        for (int i = 0; err == 0 && i < 2; i++)
            err = open_file(j, i);
        /* It may never have reached the disk, and the older one is about to be overwritten. */
        if (err == 0)
            err = file_sync(j->files[j->synced]);
        if (err == 0)
            err = write_state(j, true);
        if (err == 0)
            err = file_sync_dir(dir);
        if (err != 0)
            err = diag_error(diag, err, "the journal in %s cannot be written: %s", dir,
                             err_text(err));
    }
    if (err == 0)
        *out = j;
    else
        journal_close(&j);
    return err;
}

void journal_close(struct journal **journal)
{
    struct journal *j = *journal;

    if (j == NULL)
        return;
    file_close(&j->files[0]);
    file_close(&j->files[1]);
    journal_state_fini(&j->state);
    buf_fini(&j->bytes);
    free(j->dir);
    free(j);
    *journal = NULL;
}

uint64_t journal_visit(const struct journal *journal)
{
    return journal->state.visit;
}

/* --- the queue --- */

size_t journal_queued(const struct journal *journal)
{
    return journal->state.count;
}

const struct msg_assign *journal_at(const struct journal *journal, size_t index)
{
    return &journal->state.queue[index]->u.assign;
}

/* A message of its own, by way of its bytes. */
static int copy_assign(const struct msg *m, struct msg **out)
{
    struct buf frame = BUF_INIT;
    int err = msg_encode(m, &frame);

    *out = NULL;
    if (err == 0)
        err = msg_decode(MSG_ASSIGN, frame.data + 5, frame.len - 5, out, NULL);
    buf_fini(&frame);
    return err;
}

int journal_add(struct journal *journal, const struct msg *assign)
{
    struct journal_state *s = &journal->state;
    struct msg *copy;
    int err;

    if (assign->type != MSG_ASSIGN)
        return -ERR_INVAL;
    if (s->count >= JOURNAL_QUEUE_MAX)
        return -ERR_LIMIT;
    err = copy_assign(assign, &copy);
    if (err != 0)
        return err;
    if (s->count == s->room) {
        s->room = s->room == 0 ? 4 : 2 * s->room;
        s->queue = mem_xrealloc(s->queue, s->room, sizeof *s->queue);
    }
    s->queue[s->count++] = copy;
    err = write_state(journal, true);
    if (err != 0)
        msg_free(&s->queue[--s->count]);
    return err;
}

/* Takes the message out of the queue, which stays in order. */
static struct msg *take(struct journal_state *s, size_t at)
{
    struct msg *m = s->queue[at];

    memmove(&s->queue[at], &s->queue[at + 1], (s->count - at - 1) * sizeof(s->queue[0]));
    s->count--;
    return m;
}

int journal_remove(struct journal *journal, uint64_t run, uint32_t attempt)
{
    struct journal_state *s = &journal->state;

    for (size_t i = 0; i < s->count; i++) {
        struct msg *m = s->queue[i];

        if (m->u.assign.run != run || m->u.assign.attempt != attempt)
            continue;
        m = take(s, i);
        msg_free(&m);
        return write_state(journal, true);
    }
    return -ERR_NOTFOUND;
}

/* --- the one that is being made --- */

const struct journal_running *journal_running(const struct journal *journal)
{
    return journal->state.running_msg == NULL ? NULL : &journal->state.running;
}

int journal_begin(struct journal *journal, const char *boot_id, int64_t now_wall_ns)
{
    struct journal_state *s = &journal->state;
    int err;

    if (s->running_msg != NULL || s->count == 0)
        return -ERR_STATE;
    s->running_msg = take(s, 0);
    s->running = (struct journal_running){.assign = &s->running_msg->u.assign,
                                          .phase = PHASE_FETCH,
                                          .begin_wall_ns = now_wall_ns,
                                          .boot_id = s->boot_id,
                                          .visit = s->visit};
    str_copy(s->boot_id, sizeof s->boot_id, boot_id);
    err = write_state(journal, true);
    if (err != 0) {
        memmove(&s->queue[1], &s->queue[0], s->count * sizeof(s->queue[0]));
        s->queue[0] = s->running_msg;
        s->count++;
        s->running_msg = NULL;
    }
    return err;
}

/* What is not synced need not be written; but then it is old news that a crash leaves. */
static void write_softly(struct journal *j)
{
    int err = write_state(j, false);

    if (err != 0)
        log_warn("the journal in %s cannot be written: %s", j->dir, err_text(err));
}

void journal_phase(struct journal *journal, enum phase phase, bool fresh_tree)
{
    if (journal->state.running_msg == NULL)
        return;
    journal->state.running.phase = phase;
    journal->state.running.fresh_tree = fresh_tree;
    write_softly(journal);
}

void journal_done(struct journal *journal)
{
    msg_free(&journal->state.running_msg);
    write_softly(journal);
}

/* --- the coordinator --- */

int64_t journal_heard_s(const struct journal *journal)
{
    return journal->state.heard_s;
}

void journal_heard(struct journal *journal, int64_t wall_s)
{
    if (wall_s <= journal->state.heard_s)
        return;
    journal->state.heard_s = wall_s;
    if (wall_s - journal->heard_written_s >= HEARD_EVERY_S)
        write_softly(journal);
}

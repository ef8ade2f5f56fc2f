/* slot_rig.c: makes the slot's neighbours, plays its owner. */
#include "tests/unit/worker/run/slot_rig.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/str.h"
#include "tests/unit/worker/run/records.h"
#include "worker/os/confine.h"
#include "worker/run/fetch.h"
#include "worker/run/journal.h"
#include "worker/run/spool.h"
#include "worker/run/tree.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define PATIENCE (60 * CLOCK_SEC)

static void on_state(uint64_t run, uint32_t attempt, enum phase phase, const char *text, void *arg)
{
    struct slot_rig *rig = arg;

    (void)run;
    (void)attempt;
    if (text != NULL)
        str_copy(rig->waits, sizeof rig->waits, text);
    if (rig->phase_count > 0 && rig->phases[rig->phase_count - 1] == phase)
        return;
    cr_assert_lt(rig->phase_count, 64u);
    rig->phases[rig->phase_count++] = phase;
}

static size_t queued(void *arg)
{
    return ((struct slot_rig *)arg)->queued;
}

static void on_window(bool open, void *arg)
{
    struct slot_rig *rig = arg;

    cr_assert(open != rig->window);
    rig->window = open;
    rig->windows += open;
    if (!open && rig->fill_behind_window)
        slot_rig_fill(rig, "filler");
}

static void on_done(uint64_t run, uint32_t attempt, bool spooled, void *arg)
{
    struct slot_rig *rig = arg;

    (void)run;
    (void)attempt;
    rig->done = true;
    rig->spooled = spooled;
}

static const struct slot_ops OPS = {
    .state = on_state, .queued = queued, .window = on_window, .done = on_done};

/* The coordinator's answer comes in a turn of its own: all that is missing. */
static void answer(void *arg)
{
    struct slot_rig *rig = arg;
    uint64_t have, size, last = UINT64_MAX;

    if (rig->archive == NULL)
        fetch_none(rig->fetch, rig->ask_hash, "no such archive");
    while (rig->archive != NULL && fetch_progress(rig->fetch, &have, &size) && have != last &&
           have < rig->archive_len) {
        size_t n = rig->archive_len - (size_t)have;

        last = have;
        fetch_data(rig->fetch, rig->ask_hash, have, rig->archive_len, rig->archive + have,
                   n < FETCH_PIECE ? n : FETCH_PIECE);
    }
}

static void ask(const uint8_t hash[FETCH_HASH], uint64_t offset, uint32_t length, void *arg)
{
    struct slot_rig *rig = arg;

    rig->asked++;
    memcpy(rig->ask_hash, hash, FETCH_HASH);
    (void)offset;
    (void)length;
    loop_defer(rig->loop, answer, rig);
}

static void path_in(const struct slot_rig *rig, const char *name, char path[FILE_PATH_MAX])
{
    cr_assert_eq(file_path(path, FILE_PATH_MAX, rig->dir, name), 0);
}

static void on_swept(const struct confine_left *left, void *arg)
{
    struct slot_rig *rig = arg;

    cr_assert_eq(left->stuck, 0u, "%s", left->names);
    rig->swept = true;
}

static void build(struct slot_rig *rig, unsigned use)
{
    char path[FILE_PATH_MAX], out[FILE_PATH_MAX];
    struct diag *diag = diag_new(8);
    char tag[32];
    struct confine_opts confine = {.tag = tag, .use = use};
    struct trees_conf trees = {.work = path, .path = "/usr/bin:/bin"};
    struct fetch_conf fetch = {.dir = path, .ask = ask, .ask_arg = rig};
    struct slot_conf slot = {.loop = NULL,
                             .out_dir = out,
                             .path = "/usr/local/bin:/usr/bin:/bin",
                             .lock_path = rig->lock_path,
                             .holder = "the rig",
                             .boot_id = "boot-of-the-rig",
                             .kernel = "kernel of the rig"};

    /* Tests run beside each other: what one starts is none of another's leftovers. */
    snprintf(tag, sizeof tag, "slottest%d", (int)getpid());
    rig->loop = loop_new();
    path_in(rig, "lock", rig->lock_path);
    path_in(rig, "journal", path);
    cr_assert_eq(journal_open(path, clock_wall_ns(), &rig->journal, diag), 0, "%s",
                 diag_first(diag));
    path_in(rig, "spool", path);
    cr_assert_eq(spool_open(path, &rig->spool, diag), 0, "%s", diag_first(diag));
    cr_assert_eq(confine_new(rig->loop, &confine, &rig->confine, diag), 0, "%s", diag_first(diag));
    path_in(rig, "work", path);
    cr_assert_eq(trees_new(rig->loop, &trees, &rig->trees, diag), 0, "%s", diag_first(diag));
    path_in(rig, "blobs", path);
    cr_assert_eq(fetch_new(rig->loop, &fetch, &rig->fetch, diag), 0, "%s", diag_first(diag));
    fetch_link(rig->fetch, true);
    path_in(rig, "out", out);
    cr_assert_eq(file_mkdirs(out, 0711), 0);
    slot.loop = rig->loop;
    slot.confine = rig->confine;
    slot.trees = rig->trees;
    slot.fetch = rig->fetch;
    slot.spool = rig->spool;
    slot.journal = rig->journal;
    rig->slot = slot_new(&slot, &OPS, rig);
    rig->swept = false;
    cr_assert_eq(confine_sweep(rig->confine, on_swept, rig, diag), 0, "%s", diag_first(diag));
    for (int64_t end = clock_mono_ns() + PATIENCE; !rig->swept;) {
        cr_assert_lt(clock_mono_ns(), end);
        loop_turn(rig->loop, CLOCK_SEC);
    }
    diag_free(&diag);
}

static void unbuild(struct slot_rig *rig)
{
    slot_free(&rig->slot);
    fetch_free(&rig->fetch);
    trees_free(&rig->trees);
    confine_free(&rig->confine);
    spool_close(&rig->spool);
    journal_close(&rig->journal);
    loop_free(&rig->loop);
}

void slot_rig_open(struct slot_rig *rig, unsigned use)
{
    memset(rig, 0, sizeof *rig);
    cr_assert_eq(log_open("test", getenv("TEST_LOG") != NULL ? NULL : "/dev/null", LOG_DEBUG), 0);
    records_dir(rig->dir);
    build(rig, use);
}

void slot_rig_close(struct slot_rig *rig)
{
    unbuild(rig);
    cr_assert_eq(file_remove_tree(rig->dir), 0);
    log_close();
}

void slot_rig_restart(struct slot_rig *rig, unsigned use)
{
    unbuild(rig);
    build(rig, use);
}

void slot_rig_small_disk(struct slot_rig *rig)
{
    if (geteuid() != 0)
        cr_skip_test("only root can mount a small disk");
    slot_rig_close(rig);
    cr_assert_eq(unshare(CLONE_NEWNS), 0);
    cr_assert_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    cr_assert_eq(
        mount("none", getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp", "tmpfs", 0, "size=8m"),
        0);
    slot_rig_open(rig, CONFINE_ALL);
}

void slot_rig_fill(struct slot_rig *rig, const char *name)
{
    static const uint8_t zeros[4096];
    char path[FILE_PATH_MAX];
    struct file *file = NULL;

    path_in(rig, name, path);
    cr_assert_eq(file_open(path, FILE_APPEND | FILE_CREATE, 0600, &file), 0);
    while (file_append(file, zeros, sizeof zeros) == 0)
        ;
    file_close(&file);
}

void slot_rig_empty(struct slot_rig *rig, const char *name)
{
    char path[FILE_PATH_MAX];

    path_in(rig, name, path);
    cr_assert_eq(file_remove(path), 0);
}

static int remove_log(const char *name, void *arg)
{
    char path[FILE_PATH_MAX], in[300];

    snprintf(in, sizeof in, "out/%s", name);
    path_in(arg, in, path);
    return file_remove(path);
}

void slot_rig_start(struct slot_rig *rig, const struct msg *assign)
{
    char out[FILE_PATH_MAX];

    path_in(rig, "out", out);
    cr_assert_eq(file_list(out, remove_log, rig), 0);
    cr_assert_eq(journal_add(rig->journal, assign), 0);
    cr_assert_eq(journal_begin(rig->journal, "boot-of-the-rig", clock_wall_ns()), 0);
    rig->done = false;
    rig->phase_count = 0;
    rig->windows = 0;
    rig->waits[0] = '\0';
    slot_start(rig->slot);
}

void slot_rig_wait(struct slot_rig *rig)
{
    for (int64_t end = clock_mono_ns() + PATIENCE; !rig->done;) {
        cr_assert_lt(clock_mono_ns(), end, "it hangs in phase %s",
                     vocab_phase((int)slot_phase(rig->slot)));
        loop_turn(rig->loop, CLOCK_SEC);
    }
    cr_assert_eq(slot_phase(rig->slot), PHASE_IDLE);
    cr_assert_not(rig->window);
    cr_assert_null(journal_running(rig->journal));
}

void slot_rig_until(struct slot_rig *rig, enum phase phase)
{
    for (int64_t end = clock_mono_ns() + PATIENCE; slot_phase(rig->slot) != phase;) {
        cr_assert_lt(clock_mono_ns(), end);
        cr_assert_not(rig->done, "it ended before phase %s", vocab_phase((int)phase));
        loop_turn(rig->loop, CLOCK_SEC);
    }
}

void slot_rig_until_printed(struct slot_rig *rig, enum phase phase, const char *command)
{
    char path[FILE_PATH_MAX], name[64];
    struct file_stat st;

    slot_rig_until(rig, phase);
    snprintf(name, sizeof name, "out/%s.log", command);
    path_in(rig, name, path);
    /* The file begins with a mark of the worker's own. */
    for (int64_t end = clock_mono_ns() + PATIENCE; file_stat(path, &st) != 0 || st.size <= 16;) {
        cr_assert_lt(clock_mono_ns(), end);
        cr_assert_not(rig->done);
        loop_turn(rig->loop, 10 * CLOCK_MS);
    }
}

void slot_rig_in_window(struct slot_rig *rig)
{
    slot_rig_until_printed(rig, PHASE_MEASURE, "run");
    cr_assert(rig->window);
}

void slot_rig_run(struct slot_rig *rig, const struct msg *assign)
{
    slot_rig_start(rig, assign);
    slot_rig_wait(rig);
}

bool slot_rig_went_through(const struct slot_rig *rig, enum phase phase)
{
    for (size_t i = 0; i < rig->phase_count; i++)
        if (rig->phases[i] == phase)
            return true;
    return false;
}

void slot_rig_records(struct slot_rig *rig, struct slot_records *out)
{
    size_t index = spool_count(rig->spool);
    uint32_t n;

    memset(out, 0, sizeof *out);
    cr_assert_gt(index, 0u, "nothing is spooled");
    n = spool_at(rig->spool, --index)->count;
    cr_assert_leq(n, 64u);
    for (uint32_t i = 0; i < n; i++) {
        cr_assert_eq(spool_read(rig->spool, index, i, &out->msg[i]), 0);
        out->count++;
    }
    cr_assert_eq(out->msg[0]->type, MSG_RESULT);
    cr_assert_eq(out->msg[n - 1]->type, MSG_END);
    out->result = &out->msg[0]->u.result;
}

void slot_rig_forget(struct slot_records *records)
{
    for (size_t i = 0; i < records->count; i++)
        msg_free(&records->msg[i]);
    memset(records, 0, sizeof *records);
}

const struct msg_mark *slot_rig_mark(const struct slot_records *records, enum mark mark)
{
    for (size_t i = 0; i < records->count; i++)
        if (records->msg[i]->type == MSG_MARK && records->msg[i]->u.mark.mark == (uint32_t)mark)
            return &records->msg[i]->u.mark;
    return NULL;
}

size_t slot_rig_output(const struct slot_records *records, enum phase phase, char *dst, size_t room)
{
    size_t n = 0;

    for (size_t i = 0; i < records->count; i++) {
        const struct msg_output *o = &records->msg[i]->u.output;

        if (records->msg[i]->type != MSG_OUTPUT || o->phase != (uint32_t)phase)
            continue;
        cr_assert_lt(n + o->bytes.len, room);
        memcpy(dst + n, o->bytes.data, o->bytes.len);
        n += o->bytes.len;
    }
    dst[n] = '\0';
    return n;
}

const char *slot_rig_fact(const struct slot_records *records, const char *key)
{
    for (size_t i = 0; i < records->result->facts_count; i++)
        if (strcmp(records->result->facts[i].key, key) == 0)
            return records->result->facts[i].value;
    return NULL;
}

/* A full disk: what the worker cannot write it waits for, visibly, and no attempt is lost; a build
 * that fills its own tree fails with its output. Each on a small disk of its own. */
#include "common/buf.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/loop.h"
#include "proto/digest.h"
#include "tests/unit/worker/run/records.h"
#include "tests/unit/worker/run/slot_rig.h"
#include "tests/unit/worker/tarmake.h"
#include "worker/os/confine.h"
#include "worker/run/slot_int.h"
#include "worker/run/spool.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct slot_rig rig;
static struct slot_records got;

static void set_up(void)
{
    slot_rig_open(&rig, CONFINE_ALL);
    slot_rig_small_disk(&rig);
}

static void tear_down(void)
{
    slot_rig_forget(&got);
    slot_rig_close(&rig);
}

TestSuite(slot_disk, .init = set_up, .fini = tear_down, .timeout = 120);

static bool says(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* Turns until the slot says that it waits for room, which it must in that phase. */
static void until_it_waits(enum phase phase, const char *folder)
{
    char path[FILE_PATH_MAX];

    cr_assert_eq(file_path(path, sizeof path, rig.dir, folder), 0);
    for (int64_t end = clock_mono_ns() + 60 * CLOCK_SEC; !says(rig.waits, "waits for room");) {
        cr_assert_lt(clock_mono_ns(), end);
        if (rig.done) {
            slot_rig_records(&rig, &got);
            cr_assert_fail("it ended: %s", got.result->text);
        }
        loop_turn(rig.loop, CLOCK_SEC);
    }
    cr_assert_eq(slot_phase(rig.slot), phase, "%s", vocab_phase((int)slot_phase(rig.slot)));
    cr_assert(says(rig.waits, path), "%s", rig.waits);
    cr_assert(says(rig.waits, " free)"), "%s", rig.waits);
}

static const struct msg_result *ends(void)
{
    slot_rig_wait(&rig);
    cr_assert(rig.spooled);
    slot_rig_records(&rig, &got);
    return got.result;
}

static void goes_on(void)
{
    slot_rig_empty(&rig, "filler");
    cr_assert_eq(ends()->outcome, (uint32_t)OUTCOME_OK, "%s", got.result->text);
    cr_assert_eq(spool_count(rig.spool), 1u);
}

Test(slot_disk, an_output_file_waits_for_room)
{
    struct msg m = records_assign(1, 1);

    m.u.assign.fingerprint = "echo print";
    slot_rig_fill(&rig, "filler");
    slot_rig_start(&rig, &m);
    until_it_waits(PHASE_FETCH, "out");
    goes_on();
}

Test(slot_disk, a_tree_waits_for_room)
{
    struct msg m = records_assign(1, 1);

    m.u.assign.setup = "echo made >made";
    m.u.assign.command = "cat made";
    slot_rig_fill(&rig, "filler");
    slot_rig_start(&rig, &m);
    until_it_waits(PHASE_SETUP, "work");
    goes_on();
}

static struct msg assign_archive(struct buf *tar, uint8_t hash[DIGEST_MAX], size_t n)
{
    struct msg m = records_assign(1, 1);
    char *text = calloc(1, n);

    cr_assert_not_null(text);
    memset(text, 'x', n);
    buf_init(tar, 16 << 20);
    tarmake_entry(tar, '0', "file", 0644, NULL, text, n);
    tarmake_end(tar);
    free(text);
    digest_sha256(tar->data, tar->len, hash);
    rig.archive = tar->data;
    rig.archive_len = tar->len;
    m.u.assign.source_kind = 1;
    m.u.assign.has_blob = m.u.assign.has_blob_size = true;
    m.u.assign.blob = (struct msg_bytes){.data = hash, .len = 32};
    m.u.assign.blob_size = tar->len;
    m.u.assign.command = "test -s file";
    return m;
}

Test(slot_disk, an_archive_waits_for_room)
{
    struct buf tar = BUF_INIT;
    uint8_t hash[DIGEST_MAX];
    struct msg m = assign_archive(&tar, hash, 1 << 20);

    slot_rig_fill(&rig, "filler");
    slot_rig_start(&rig, &m);
    until_it_waits(PHASE_FETCH, "blobs");
    goes_on();
    buf_fini(&tar);
}

/* The archive fits and what is in it does not. */
Test(slot_disk, unpacking_waits_for_room)
{
    struct buf tar = BUF_INIT;
    uint8_t hash[DIGEST_MAX];
    struct msg m = assign_archive(&tar, hash, 4 << 20);

    slot_rig_start(&rig, &m);
    until_it_waits(PHASE_SETUP, "work");
    /* Nothing is tried while nothing has changed. */
    for (int64_t end = clock_mono_ns() + 7 * CLOCK_SEC; clock_mono_ns() < end;)
        loop_turn(rig.loop, 100 * CLOCK_MS);
    cr_assert_not(rig.done);
    cr_assert_leq(rig.phase_count, 8u);
    cr_assert(slot_cancel(rig.slot, 1, 1, "enough"));
    cr_assert_eq(ends()->outcome, (uint32_t)OUTCOME_CANCELLED, "%s", got.result->text);
    buf_fini(&tar);
}

/* Others get the machine meanwhile. */
Test(slot_disk, the_machine_is_free_while_a_run_waits_for_room)
{
    struct msg m = records_assign(1, 1);
    struct file_lock *lock = NULL;
    char other[256];

    m.u.assign.reset = "echo here; sleep 0.5";
    m.u.assign.command = "echo go";
    slot_rig_start(&rig, &m);
    slot_rig_until_printed(&rig, PHASE_RESET, "reset");
    slot_rig_fill(&rig, "filler");
    until_it_waits(PHASE_RESET, "out");
    /* The lock lies on the full disk too, so that its holder's name cannot be written. */
    cr_assert_neq(file_lock_take(rig.lock_path, "x", &lock, other), -ERR_BUSY, "%s", other);
    file_lock_free(&lock);
    cr_assert_eq(rig.windows, 0u);
    goes_on();
    cr_assert_eq(rig.windows, 1u);
}

Test(slot_disk, a_result_is_kept_while_its_check_waits_for_room)
{
    struct msg m = records_assign(1, 1);

    m.u.assign.command = "sleep 0.3";
    m.u.assign.check = "echo good";
    rig.fill_behind_window = true;
    slot_rig_start(&rig, &m);
    until_it_waits(PHASE_CHECK, "out");
    goes_on();
    cr_assert(got.result->has_real_ns && got.result->real_ns >= 300 * CLOCK_MS);
}

Test(slot_disk, who_waits_for_room_can_be_cancelled)
{
    struct msg m = records_assign(1, 1);

    slot_rig_fill(&rig, "filler");
    slot_rig_start(&rig, &m);
    until_it_waits(PHASE_SETUP, "work");
    cr_assert(slot_cancel(rig.slot, 1, 1, "enough"));
    cr_assert_eq(ends()->outcome, (uint32_t)OUTCOME_CANCELLED);
}

Test(slot_disk, who_waits_for_room_can_be_stopped)
{
    struct msg m = records_assign(1, 1);

    slot_rig_fill(&rig, "filler");
    slot_rig_start(&rig, &m);
    until_it_waits(PHASE_SETUP, "work");
    slot_stop(rig.slot);
    cr_assert_eq(ends()->outcome, (uint32_t)OUTCOME_INTERRUPTED);
}

/* It is the build that wants more than there is: it fails, its output is there, nobody waits. */
Test(slot_disk, a_build_that_fills_its_own_tree_fails)
{
    struct msg m = records_assign(1, 1);
    char printed[4096];

    m.u.assign.command = "echo go; head -c 20000000 /dev/zero >big || exit 7";
    slot_rig_start(&rig, &m);
    cr_assert_eq(ends()->outcome, (uint32_t)OUTCOME_FAILED, "%s", got.result->text);
    cr_assert_eq(got.result->exit_status, 7);
    cr_assert(says(got.result->text, "is full ("), "%s", got.result->text);
    slot_rig_output(&got, PHASE_MEASURE, printed, sizeof printed);
    cr_assert(says(printed, "go\n"), "%s", printed);
    cr_assert_not(says(rig.waits, "waits for room"), "%s", rig.waits);
}

/* What an earlier sweep left goes before the next one suffers from it: its tree, HOME and TMPDIR. */
Test(slot_disk, what_other_builds_left_makes_room)
{
    static const char *const fills[] = {"big", "$HOME/big", "$TMPDIR/big"};
    char command[64];

    for (size_t i = 0; i < 3; i++) {
        struct msg m = records_assign(10 + 2 * i, 1);
        struct msg next = records_assign(11 + 2 * i, 1);

        (void)snprintf(command, sizeof command, "cat /dev/zero >\"%s\" 2>/dev/null; true", fills[i]);
        m.u.assign.setup = "echo one >made";
        m.u.assign.command = command;
        slot_rig_start(&rig, &m);
        cr_assert_eq(ends()->outcome, (uint32_t)OUTCOME_OK, "%s", got.result->text);
        cr_assert(slot_disk_is_full(rig.dir));
        slot_rig_forget(&got);
        next.u.assign.setup = "echo another >made";
        next.u.assign.command = "head -c 2000000 /dev/zero >mine";
        slot_rig_start(&rig, &next);
        cr_assert_eq(ends()->outcome, (uint32_t)OUTCOME_OK, "%s", got.result->text);
        cr_assert_not(says(rig.waits, "waits for room"), "%s", rig.waits);
        slot_rig_forget(&got);
    }
}

/* A disk that gets full while a run is prepared: a tree that waits is given for it. */
Test(slot_disk, a_waiting_tree_makes_room)
{
    struct msg m = records_assign(1, 1);
    struct msg next = records_assign(2, 1);

    m.u.assign.setup = "head -c 2000000 /dev/zero >large";
    slot_rig_run(&rig, &m);
    next.u.assign.fingerprint = "echo another";
    next.u.assign.reset = "echo here; sleep 0.5";
    next.u.assign.command = "test ! -e large";
    slot_rig_start(&rig, &next);
    slot_rig_until_printed(&rig, PHASE_RESET, "reset");
    slot_rig_fill(&rig, "filler");
    until_it_waits(PHASE_RESET, "out");
    cr_assert_eq(ends()->outcome, (uint32_t)OUTCOME_OK, "%s", got.result->text);
}

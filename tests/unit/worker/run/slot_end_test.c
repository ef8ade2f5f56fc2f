/* Attempts that end early: cancelled, withdrawn, stopped in every phase, left behind by a worker
 * that died, and written on a full disk. */
#include "common/clock.h"
#include "common/err.h"
#include "common/loop.h"
#include "tests/unit/worker/run/records.h"
#include "tests/unit/worker/run/slot_rig.h"
#include "tests/unit/worker/work.h"
#include "worker/os/confine.h"
#include "worker/run/journal.h"
#include "worker/run/slot_int.h"
#include "worker/run/spool.h"
#include "worker/run/tree_int.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct slot_rig rig;
static struct slot_records got;

static void set_up(void)
{
    slot_rig_open(&rig, CONFINE_ALL);
}

static void tear_down(void)
{
    slot_rig_forget(&got);
    slot_rig_close(&rig);
}

TestSuite(slot_end, .init = set_up, .fini = tear_down, .timeout = 120);

/* An assignment that stays in that phase for ever. */
static struct msg stays_in(enum phase phase)
{
    static uint64_t runs;
    struct msg m = records_assign(++runs, 1);
    static const char forever[] = "echo here; sleep 600";

    switch (phase) {
    case PHASE_FETCH:
        m.u.assign.fingerprint = forever;
        break;
    case PHASE_SETUP:
        m.u.assign.setup = forever;
        break;
    case PHASE_RESET:
        m.u.assign.reset = forever;
        break;
    case PHASE_MEASURE:
        m.u.assign.command = forever;
        break;
    case PHASE_CHECK:
        m.u.assign.check = forever;
        break;
    default:
        break;
    }
    return m;
}

static const enum phase PHASES[] = {PHASE_FETCH,  PHASE_SETUP,   PHASE_RESET,
                                    PHASE_SETTLE, PHASE_MEASURE, PHASE_CHECK};

static void start_in(enum phase phase, struct msg *m, struct file_lock **lock)
{
    char other[256];

    *lock = NULL;
    *m = stays_in(phase);
    if (phase == PHASE_SETTLE)
        cr_assert_eq(file_lock_take(rig.lock_path, "the test", lock, other), 0);
    slot_rig_start(&rig, m);
    slot_rig_until(&rig, phase);
    if (phase != PHASE_SETTLE)
        slot_rig_until_printed(&rig, phase,
                               phase == PHASE_FETCH ? "fingerprint" : vocab_phase((int)phase));
}

static void expect_idle_machine(void)
{
    char other[256];
    struct file_lock *lock = NULL;

    cr_assert_eq(file_lock_take(rig.lock_path, "x", &lock, other), 0, "%s", other);
    file_lock_free(&lock);
    cr_assert_not(rig.window);
}

Test(slot_end, a_cancel_ends_any_phase)
{
    for (size_t i = 0; i < 6; i++) {
        struct file_lock *lock;
        struct msg m;

        start_in(PHASES[i], &m, &lock);
        cr_assert_not(slot_cancel(rig.slot, m.u.assign.run, 2, "another attempt"));
        cr_assert_not(slot_cancel(rig.slot, m.u.assign.run + 1, 1, "another run"));
        cr_assert(slot_cancel(rig.slot, m.u.assign.run, 1, "nobody wants it"));
        (void)slot_cancel(rig.slot, m.u.assign.run, 1, "once more");
        slot_rig_wait(&rig);
        cr_assert(rig.spooled);
        slot_rig_records(&rig, &got);
        cr_assert_eq(got.result->run, m.u.assign.run);
        cr_assert_eq(got.result->outcome, (uint32_t)OUTCOME_CANCELLED, "phase %s: %s",
                     vocab_phase((int)PHASES[i]), got.result->text);
        cr_assert_eq(got.result->phase, (uint32_t)PHASES[i]);
        cr_assert_not_null(strstr(got.result->text, "nobody wants it"));
        if (PHASES[i] != PHASE_SETTLE)
            cr_assert_eq(got.result->ending, (uint32_t)ENDING_CANCEL);
        cr_assert_eq(got.result->has_real_ns, PHASES[i] >= PHASE_MEASURE);
        slot_rig_forget(&got);
        file_lock_free(&lock);
        expect_idle_machine();
    }
    cr_assert_not(slot_cancel(rig.slot, 1, 1, "nothing is there"));
}

Test(slot_end, a_withdrawal_reaches_what_has_not_begun)
{
    for (size_t i = 0; i < 6; i++) {
        struct file_lock *lock;
        struct msg m;
        bool early = PHASES[i] < PHASE_RESET;

        start_in(PHASES[i], &m, &lock);
        size_t before = spool_count(rig.spool);
        cr_assert_eq(slot_withdraw(rig.slot, m.u.assign.run, 1), early, "phase %s",
                     vocab_phase((int)PHASES[i]));
        if (!early)
            cr_assert(slot_cancel(rig.slot, m.u.assign.run, 1, "end of the test"));
        slot_rig_wait(&rig);
        cr_assert_eq(rig.spooled, !early);
        cr_assert_eq(spool_count(rig.spool), before + !early);
        file_lock_free(&lock);
        expect_idle_machine();
    }
}

Test(slot_end, a_withdrawn_setup_leaves_no_tree)
{
    struct file_lock *lock;
    struct msg m;

    start_in(PHASE_SETUP, &m, &lock);
    cr_assert(slot_withdraw(rig.slot, m.u.assign.run, 1));
    slot_rig_wait(&rig);
    m.u.assign.run = 1000;
    slot_rig_start(&rig, &m);
    slot_rig_until_printed(&rig, PHASE_SETUP, "setup");
    cr_assert(slot_cancel(rig.slot, 1000, 1, "end of the test"));
    slot_rig_wait(&rig);
    slot_rig_records(&rig, &got);
    cr_assert(got.result->fresh_tree);
}

Test(slot_end, a_stop_interrupts_any_phase)
{
    for (size_t i = 0; i < 6; i++) {
        struct file_lock *lock;
        struct msg m;

        start_in(PHASES[i], &m, &lock);
        slot_stop(rig.slot);
        slot_rig_wait(&rig);
        slot_rig_records(&rig, &got);
        cr_assert_eq(got.result->outcome, (uint32_t)OUTCOME_INTERRUPTED);
        cr_assert_eq(got.result->phase, (uint32_t)PHASES[i]);
        cr_assert_not_null(strstr(got.result->text, "the worker was stopped"));
        slot_rig_forget(&got);
        file_lock_free(&lock);
    }
    slot_stop(rig.slot); /* nothing to be done */
}

Test(slot_end, a_cancel_after_the_end_of_the_run_says_so)
{
    struct msg m = records_assign(1, 1);
    siginfo_t info;

    /* The leader ends; what it left has to be killed, which takes a moment. */
    m.u.assign.command = "sh -c 'trap \"\" TERM; echo here; sleep 600' & sleep 0.3";
    slot_rig_start(&rig, &m);
    slot_rig_in_window(&rig);
    cr_assert_eq(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
    loop_turn(rig.loop, 0);
    cr_assert_eq(slot_phase(rig.slot), PHASE_MEASURE);
    cr_assert(slot_cancel(rig.slot, 1, 1, "too late"));
    slot_rig_wait(&rig);
    slot_rig_records(&rig, &got);
    cr_assert_eq(got.result->outcome, (uint32_t)OUTCOME_CANCELLED);
    cr_assert_eq(got.result->ending, (uint32_t)ENDING_EXIT);
    cr_assert_not_null(slot_rig_mark(&got, MARK_CANCELLED_LATE));
}

/* Begins an attempt, and ends it while HOME and TMPDIR are being emptied. */
static void overrun_emptying(uint64_t run)
{
    struct msg m = records_assign(run, 1);
    char path[FILE_PATH_MAX];

    /* So many that the child is sure to be at it in the next turn. */
    cr_assert_eq(file_path(path, sizeof path, trees_tmp(rig.trees), "left"), 0);
    cr_assert_eq(file_mkdirs(path, 0755), 0);
    cr_assert_eq(work_sh("cd '%s' && seq 20000 | xargs touch", path), 0);
    slot_rig_start(&rig, &m);
    slot_rig_until(&rig, PHASE_RESET);
    cr_assert(rig.slot->cleaning);
    loop_timer_set(rig.slot->deadline, 0);
    slot_rig_wait(&rig);
    slot_rig_records(&rig, &got);
    cr_expect_eq(got.result->outcome, OUTCOME_INTERRUPTED);
    cr_expect_eq(got.result->phase, PHASE_RESET);
    slot_rig_forget(&got);
}

/* A child empties them, and may take longer than the phase may last: its end means nothing to what
 * the slot does then. */
Test(slot_end, an_emptying_that_lasts_too_long_ends_its_attempt_alone)
{
    struct msg m = records_assign(3, 1);

    overrun_emptying(1);
    for (int64_t end = clock_mono_ns() + CLOCK_MIN; rig.trees->clean != NULL;) {
        cr_assert_lt(clock_mono_ns(), end);
        loop_turn(rig.loop, CLOCK_SEC);
    }
    cr_expect_eq(slot_phase(rig.slot), PHASE_IDLE);
    overrun_emptying(2);
    slot_rig_run(&rig, &m);
    slot_rig_records(&rig, &got);
    cr_expect_eq(got.result->outcome, OUTCOME_OK, "%s", got.result->text);
    cr_expect(slot_rig_went_through(&rig, PHASE_RESET));
    cr_expect_not_null(got.result->tree_key);
}

/* --- a worker that died --- */

Test(slot_end, what_an_earlier_start_left_is_reported)
{
    struct file_lock *lock;
    struct msg m;
    struct journal_running left;
    char boot[65];

    start_in(PHASE_MEASURE, &m, &lock);
    slot_rig_restart(&rig, CONFINE_ALL);
    cr_assert_not_null(journal_running(rig.journal));
    left = *journal_running(rig.journal);
    cr_assert_eq(left.phase, PHASE_MEASURE);
    cr_assert_eq(slot_report_interrupted(rig.spool, &left, "boot-of-the-rig"), 0);
    cr_assert_eq(slot_report_interrupted(rig.spool, &left, "boot-of-the-rig"), 0, "twice is once");
    cr_assert_eq(spool_count(rig.spool), 1u);
    slot_rig_records(&rig, &got);
    cr_assert_eq(got.count, 2u);
    cr_assert_eq(got.result->outcome, (uint32_t)OUTCOME_INTERRUPTED);
    cr_assert_eq(got.result->phase, (uint32_t)PHASE_MEASURE);
    cr_assert_eq(got.result->visit, 1u);
    cr_assert_str_eq(got.result->boot_id, "boot-of-the-rig");
    cr_assert_not_null(strstr(got.result->text, "without a word"));
    cr_assert(got.result->fresh_tree);
    slot_rig_forget(&got);
    spool_forget(rig.spool, 0);
    memset(boot, 'b', 5);
    boot[5] = '\0';
    cr_assert_eq(slot_report_interrupted(rig.spool, &left, boot), 0);
    slot_rig_records(&rig, &got);
    cr_assert_not_null(strstr(got.result->text, "started anew"));
    journal_done(rig.journal);
}

/* --- a full disk --- */

Test(slot_end, on_a_full_disk_the_result_is_kept_and_the_bulk_left_out)
{
    struct msg m = records_assign(1, 1);

    slot_rig_small_disk(&rig);
    m.u.assign.command = "head -c 100000 /dev/zero | tr '\\0' x; echo; echo go; sleep 0.2";
    slot_rig_start(&rig, &m);
    slot_rig_in_window(&rig);
    slot_rig_until(&rig, PHASE_MEASURE);
    slot_rig_fill(&rig, "filler");
    slot_rig_wait(&rig);
    slot_rig_records(&rig, &got);
    cr_assert_eq(got.result->outcome, (uint32_t)OUTCOME_OK, "%s", got.result->text);
    cr_assert_not_null(slot_rig_mark(&got, MARK_OUTPUT_CUT));
    for (size_t i = 0; i < got.count; i++)
        cr_assert(got.msg[i]->type != MSG_OUTPUT || got.msg[i]->u.output.bytes.len < 100000);
}

/* With the reserve gone too the slot waits, says so, and goes on when there is room. */
Test(slot_end, on_a_full_disk_without_reserve_it_waits)
{
    struct msg m = records_assign(1, 1);

    slot_rig_small_disk(&rig);
    m.u.assign.check = "echo here; sleep 0.2";
    slot_rig_start(&rig, &m);
    slot_rig_until_printed(&rig, PHASE_CHECK, "check");
    char path[FILE_PATH_MAX];
    cr_assert_eq(file_path(path, sizeof path, rig.dir, "spool/reserve"), 0);
    (void)!file_remove(path);
    slot_rig_fill(&rig, "filler");
    for (int64_t end = clock_mono_ns() + 60 * CLOCK_SEC; rig.waits[0] == '\0';) {
        cr_assert_lt(clock_mono_ns(), end);
        loop_turn(rig.loop, CLOCK_SEC);
    }
    cr_assert_not_null(strstr(rig.waits, "no space left"), "%s", rig.waits);
    cr_assert_eq(slot_phase(rig.slot), PHASE_FLUSH);
    cr_assert_eq(spool_count(rig.spool), 0u);
    cr_assert(slot_cancel(rig.slot, 1, 1, "meanwhile"));
    slot_rig_empty(&rig, "filler");
    slot_rig_wait(&rig);
    slot_rig_records(&rig, &got);
    cr_assert_eq(got.result->outcome, (uint32_t)OUTCOME_OK);
    cr_assert_not_null(slot_rig_mark(&got, MARK_CANCELLED_LATE));
}

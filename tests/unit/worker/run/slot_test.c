/* An attempt from the assignment to its records, with small real commands: what comes out when all
 * goes well, and when something does not. */
#include "common/clock.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/str.h"
#include "common/version.h"
#include "tests/unit/worker/run/records.h"
#include "tests/unit/worker/run/slot_rig.h"
#include "worker/os/confine.h"
#include "worker/run/spool.h"
#include "worker/run/tree.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

TestSuite(slot, .init = set_up, .fini = tear_down, .timeout = 120);

static const struct msg_result *run(const struct msg *assign)
{
    slot_rig_forget(&got);
    slot_rig_run(&rig, assign);
    cr_assert(rig.spooled);
    slot_rig_records(&rig, &got);
    return got.result;
}

static int note_any(const char *name, void *arg)
{
    (void)name;
    *(bool *)arg = true;
    return 0;
}

static bool says(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static struct msg assign(const char *command)
{
    static uint64_t runs;
    struct msg m = records_assign(++runs, 1);

    m.u.assign.command = command;
    return m;
}

/* --- all goes well --- */

Test(slot, makes_an_attempt)
{
    static const char *const env[] = {"OPT=-O2"};
    struct msg m = assign("echo $JOBS $JFLAG $OPT $VARIANT; cat made; echo ran >>made");
    const struct msg_result *r;
    char text[4096];

    m.u.assign.setup = "echo from setup >made";
    m.u.assign.reset = "echo from reset >>made";
    m.u.assign.check = "echo checking; echo objects=6; test -s made";
    m.u.assign.fingerprint = "echo compiler 1.0";
    m.u.assign.env = env;
    m.u.assign.env_count = 1;
    r = run(&m);
    cr_assert_eq(r->outcome, (uint32_t)OUTCOME_OK, "%s", r->text);
    cr_assert_str_eq(r->text, "");
    cr_assert_eq(r->run, m.u.assign.run);
    cr_assert_eq(r->phase, (uint32_t)PHASE_CHECK);
    cr_assert_eq(r->ending, (uint32_t)ENDING_EXIT);
    cr_assert(r->has_exit_status && r->exit_status == 0 && !r->has_signal);
    cr_assert(r->fresh_tree);
    cr_assert_not(r->warmup);
    cr_assert_eq(r->jobs, 2);
    cr_assert(r->has_real_ns && r->real_ns > 0);
    cr_assert(r->has_user_ns && r->has_sys_ns);
    cr_assert_neq(r->cpu_way, (uint32_t)CPU_WAY_NONE);
    cr_assert(!r->has_max_rss_bytes || r->max_rss_bytes > 0); /* unknown under a sanitizer */
    cr_assert(r->has_setup_ns && r->has_reset_ns && r->has_settle_ns && r->has_check_ns);
    cr_assert(r->has_cpus_milli && r->cpus_milli >= 1000 / 1000);
    cr_assert_str_eq(r->boot_id, "boot-of-the-rig");
    cr_assert_str_eq(r->kernel_seen, "kernel of the rig");
    cr_assert_eq(r->visit, 1u);
    cr_assert_str_eq(r->worker_version, version_text());
    cr_assert_leq(r->begin_wall_ns, r->start_wall_ns);
    cr_assert_leq(r->start_wall_ns, r->end_wall_ns);
    cr_assert_eq(strlen(r->tree_key), 64u);
    cr_assert_eq(strlen(r->fingerprint), 64u);
    cr_assert_str_eq(r->fingerprint_text, "compiler 1.0\n");
    cr_assert_eq(r->facts_count, 1u);
    cr_assert_str_eq(slot_rig_fact(&got, "objects"), "6");
    slot_rig_output(&got, PHASE_MEASURE, text, sizeof text);
    cr_assert_str_eq(text, "2 -j2 -O2 plain\nfrom setup\nfrom reset\n");
    slot_rig_output(&got, PHASE_CHECK, text, sizeof text);
    cr_assert_str_eq(text, "checking\nobjects=6\n");
    cr_assert_eq(r->output_bytes, 38u);
    const enum phase phases[] = {PHASE_FETCH,   PHASE_SETUP, PHASE_RESET, PHASE_SETTLE,
                                 PHASE_MEASURE, PHASE_CHECK, PHASE_FLUSH};
    cr_assert_eq(rig.phase_count, 7u);
    for (size_t i = 0; i < 7; i++)
        cr_assert_eq(rig.phases[i], phases[i]);
    cr_assert_eq(rig.windows, 1u);
}

Test(slot, uses_a_prepared_tree_again)
{
    struct msg m = assign("cat made");
    char first[65], text[256];

    m.u.assign.setup = "echo once >>made";
    cr_assert(run(&m)->fresh_tree);
    str_copy(first, sizeof first, got.result->tree_key);
    m = assign("cat made");
    m.u.assign.setup = "echo once >>made";
    m.u.assign.variant = "another variant, of which setup sees nothing";
    cr_assert_not(run(&m)->fresh_tree);
    cr_assert_str_eq(got.result->tree_key, first);
    cr_assert_not(got.result->has_setup_ns);
    slot_rig_output(&got, PHASE_MEASURE, text, sizeof text);
    cr_assert_str_eq(text, "once\n");
    m = assign("cat made");
    m.u.assign.setup = "echo twice >>made";
    cr_assert(run(&m)->fresh_tree);
    cr_assert_str_neq(got.result->tree_key, first);
}

/* What setup sees makes the tree; what it does not name, it does not see. */
Test(slot, setup_sees_what_it_names)
{
    struct msg m = assign("cat made");
    char text[256];

    m.u.assign.setup = "sh -c 'echo v=$VAR''IANT j=$JO''BS n=$NCPU' >made";
    m.u.assign.variant = "one";
    run(&m);
    slot_rig_output(&got, PHASE_MEASURE, text, sizeof text);
    cr_assert_eq(strncmp(text, "v= j= n=", 8), 0, "%s", text);
    cr_assert_neq(text[8], '\n');
    for (int i = 0; i < 2; i++) {
        m = assign("cat made");
        m.u.assign.setup = "echo $VARIANT $JOBS >made";
        m.u.assign.variant = i == 0 ? "one" : "two";
        cr_assert(run(&m)->fresh_tree, "two variants share what one of them made");
        slot_rig_output(&got, PHASE_MEASURE, text, sizeof text);
        cr_assert_str_eq(text, i == 0 ? "one 2\n" : "two 2\n");
    }
}

Test(slot, an_attempt_in_a_fresh_tree_is_a_warm_up_when_that_is_asked_for)
{
    struct msg m = assign("true");

    m.u.assign.has_fresh_warmup = m.u.assign.fresh_warmup = true;
    cr_assert(run(&m)->warmup);
    cr_assert(got.result->fresh_tree);
    m.u.assign.run = 1000;
    cr_assert_not(run(&m)->warmup);
    m.u.assign.run = 1001;
    m.u.assign.warmup = true;
    cr_assert(run(&m)->warmup);
}

Test(slot, gives_each_job_count_its_flag)
{
    static const struct {
        int64_t jobs;
        const char *text;
    } cases[] = {{0, "[] []\n"}, {1, "[1] [-j1]\n"}, {-1, "[] [-j]\n"}};
    char text[256];

    for (size_t i = 0; i < 3; i++) {
        struct msg m = assign("echo \"[$JOBS] [$JFLAG]\"");

        m.u.assign.jobs = cases[i].jobs;
        cr_assert_eq(run(&m)->jobs, cases[i].jobs);
        slot_rig_output(&got, PHASE_MEASURE, text, sizeof text);
        cr_assert_str_eq(text, cases[i].text);
    }
}

Test(slot, a_changed_fingerprint_makes_the_attempt_invalid)
{
    struct msg m = assign("true");
    char first[65];

    m.u.assign.fingerprint = "echo 1.0";
    run(&m);
    str_copy(first, sizeof first, got.result->fingerprint);
    m.u.assign.run = 1000;
    m.u.assign.fingerprint_want = first;
    cr_assert_eq(run(&m)->outcome, (uint32_t)OUTCOME_OK);
    m.u.assign.run = 1001;
    m.u.assign.fingerprint = "echo 1.1";
    cr_assert_eq(run(&m)->outcome, (uint32_t)OUTCOME_INVALID);
    cr_assert_not_null(slot_rig_mark(&got, MARK_FINGERPRINT));
    cr_assert(slot_rig_mark(&got, MARK_FINGERPRINT)->invalid);
    cr_assert(says(got.result->text, "1.1"), "%s", got.result->text);
    cr_assert(got.result->has_real_ns, "what was measured is kept");
}

/* --- something fails --- */

Test(slot, a_failing_run_says_how)
{
    static const struct {
        const char *command, *part;
        enum ending ending;
        int64_t status, signal;
    } cases[] = {
        {"echo one; echo two >&2; exit 2", "run exited with status 2", ENDING_EXIT, 2, 0},
        {"kill -KILL $$", "SIGKILL", ENDING_SIGNAL, -1, 9},
        {"printf 'new option? '; read a", "new option?", ENDING_EXIT, 1, 0},
        {"printf '\\377\\001'; exit 3", "\\xff\\x01", ENDING_EXIT, 3, 0},
        {"echo 'no \"main\\\\n\"'; exit 5", "output: no \"main\\n\"", ENDING_EXIT, 5, 0},
        {"exec >&- 2>&-; exit 4", "status 4", ENDING_EXIT, 4, 0},
        {"/nonexistent/program", "status 127", ENDING_EXIT, 127, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct msg m = assign(cases[i].command);
        const struct msg_result *r;

        m.u.assign.check = "echo never=1";
        r = run(&m);
        cr_assert_eq(r->outcome, (uint32_t)OUTCOME_FAILED, "case %zu", i);
        cr_assert_eq(r->phase, (uint32_t)PHASE_MEASURE);
        cr_assert_eq(r->ending, (uint32_t)cases[i].ending);
        cr_assert_eq(r->has_exit_status ? r->exit_status : -1, cases[i].status);
        cr_assert_eq(r->has_signal ? r->signal : 0, cases[i].signal);
        cr_assert(says(r->text, cases[i].part), "case %zu: %s", i, r->text);
        cr_assert(r->has_real_ns, "failed runs keep their time");
        cr_assert_eq(r->facts_count, 0u);
        cr_assert_not(slot_rig_went_through(&rig, PHASE_CHECK));
    }
}

Test(slot, a_run_without_end_is_ended)
{
    struct msg m = assign("trap '' TERM; echo started; while :; do sleep 1; done");

    m.u.assign.run_timeout_ns = 2 * CLOCK_SEC; /* time to start, on a busy machine too */
    cr_assert_eq(run(&m)->outcome, (uint32_t)OUTCOME_FAILED);
    cr_assert_eq(got.result->ending, (uint32_t)ENDING_TIMEOUT);
    cr_assert(says(got.result->text, "2s"), "%s", got.result->text);
    cr_assert(says(got.result->text, "started"), "%s", got.result->text);
}

Test(slot, every_command_has_its_limit)
{
    struct msg m = assign("true");

    m.u.assign.check = "sleep 600";
    m.u.assign.check_timeout_ns = 200 * CLOCK_MS;
    cr_assert_eq(run(&m)->ending, (uint32_t)ENDING_TIMEOUT);
    cr_assert_eq(got.result->phase, (uint32_t)PHASE_CHECK);
    m = assign("true");
    m.u.assign.reset = "sleep 600";
    m.u.assign.reset_timeout_ns = 200 * CLOCK_MS;
    cr_assert_eq(run(&m)->ending, (uint32_t)ENDING_TIMEOUT);
    cr_assert_eq(got.result->phase, (uint32_t)PHASE_RESET);
    m = assign("true");
    m.u.assign.setup = "sleep 600";
    m.u.assign.setup_timeout_ns = 200 * CLOCK_MS;
    cr_assert_eq(run(&m)->ending, (uint32_t)ENDING_TIMEOUT);
    cr_assert_eq(got.result->phase, (uint32_t)PHASE_SETUP);
}

Test(slot, a_failing_check_fails_the_attempt)
{
    struct msg m = assign("true");

    m.u.assign.check = "echo size=0; echo the file is empty; false";
    cr_assert_eq(run(&m)->outcome, (uint32_t)OUTCOME_FAILED);
    cr_assert_eq(got.result->phase, (uint32_t)PHASE_CHECK);
    cr_assert(says(got.result->text, "check exited with status 1"), "%s", got.result->text);
    cr_assert(says(got.result->text, "the file is empty"), "%s", got.result->text);
    cr_assert(got.result->has_real_ns);
}

Test(slot, a_failing_setup_shows_the_end_of_its_output)
{
    struct msg m = assign("echo never");
    char text[4096];

    m.u.assign.setup = "for i in 1 2 3 4; do echo line $i; done\nfalse\necho not reached";
    cr_assert_eq(run(&m)->outcome, (uint32_t)OUTCOME_FAILED);
    cr_assert_eq(got.result->phase, (uint32_t)PHASE_SETUP);
    cr_assert(says(got.result->text, "setup exited with status 1"), "%s", got.result->text);
    cr_assert(says(got.result->text, "line 1\\nline 2\\nline 3\\nline 4"), "%s", got.result->text);
    cr_assert_not(got.result->has_real_ns);
    slot_rig_output(&got, PHASE_SETUP, text, sizeof text);
    cr_assert_str_eq(text, "line 1\nline 2\nline 3\nline 4\n");
    /* What a failing setup left is not taken for a tree. */
    m.u.assign.run = 1000;
    cr_assert(run(&m)->fresh_tree);
}

Test(slot, a_failing_fingerprint_and_reset_fail_the_attempt)
{
    struct msg m = assign("true");

    m.u.assign.fingerprint = "echo no compiler; exit 127";
    cr_assert_eq(run(&m)->outcome, (uint32_t)OUTCOME_FAILED);
    cr_assert_eq(got.result->phase, (uint32_t)PHASE_FETCH);
    cr_assert(says(got.result->text, "fingerprint"), "%s", got.result->text);
    m = assign("true");
    m.u.assign.reset = "exit 3";
    cr_assert_eq(run(&m)->outcome, (uint32_t)OUTCOME_FAILED);
    cr_assert_eq(got.result->phase, (uint32_t)PHASE_RESET);
    m.u.assign.run = 1000;
    cr_assert(run(&m)->fresh_tree, "a tree whose reset failed is made anew");
}

Test(slot, a_build_that_locks_its_folders_locks_out_no_other)
{
    struct msg m = assign("chmod 000 \"$SRC\" \"$OBJ\" \"$HOME\" \"$TMPDIR\"");

    cr_assert_eq(run(&m)->outcome, (uint32_t)OUTCOME_OK);
    m = assign("cd / && test \"$(stat -c %a \"$SRC\" \"$OBJ\" \"$HOME\" \"$TMPDIR\" | cut -c 1 | sort -u)\" = 7");
    cr_assert_eq(run(&m)->outcome, (uint32_t)OUTCOME_OK, "%s", got.result->text);
    cr_assert(got.result->fresh_tree);
}

/* What is asked before HOME is emptied does not depend on what the attempt before did to it. */
Test(slot, a_build_that_removes_its_home_takes_it_from_no_other)
{
    struct msg m = assign("cd / && rm -rf \"$HOME\" \"$TMPDIR\"");

    cr_assert_eq(run(&m)->outcome, (uint32_t)OUTCOME_OK);
    m = assign("true");
    m.u.assign.fingerprint = "cc --version >/dev/null; pwd >\"$TMPDIR/here\"; pwd";
    m.u.assign.setup = "echo x >\"$HOME/x\"";
    cr_assert_eq(run(&m)->outcome, (uint32_t)OUTCOME_OK, "%s", got.result->text);
    cr_expect_not_null(strstr(got.result->fingerprint_text, trees_home(rig.trees)));
}

Test(slot, nothing_of_the_output_stays_on_the_disk)
{
    struct msg m = assign("echo much");
    char text[64];
    bool any = false;
    char path[FILE_PATH_MAX];

    m.u.assign.check = "echo a=b";
    cr_assert_eq(run(&m)->outcome, (uint32_t)OUTCOME_OK);
    slot_rig_output(&got, PHASE_MEASURE, text, sizeof text);
    cr_assert_str_eq(text, "much\n");
    cr_assert_eq(file_path(path, sizeof path, rig.dir, "out"), 0);
    cr_assert_eq(file_list(path, note_any, &any), 0);
    cr_assert_not(any);
}

Test(slot, a_mistaken_environment_is_said)
{
    static const char *const env[] = {"no variable"};
    struct msg m = assign("true");

    m.u.assign.env = env;
    m.u.assign.env_count = 1;
    cr_assert_eq(run(&m)->outcome, (uint32_t)OUTCOME_FAILED);
    cr_assert(says(got.result->text, "no variable"), "%s", got.result->text);
}

Test(slot, survivors_are_killed_and_marked)
{
    struct msg m = assign("setsid sleep 600 </dev/null >/dev/null 2>&1 & "
                          "until grep -qx sleep /proc/$!/comm; do sleep 0.01; done; echo ok");

    cr_assert_eq(run(&m)->outcome, (uint32_t)OUTCOME_OK);
    cr_assert_not_null(slot_rig_mark(&got, MARK_SURVIVORS));
    cr_assert(says(slot_rig_mark(&got, MARK_SURVIVORS)->text, "sleep"), "%s",
              slot_rig_mark(&got, MARK_SURVIVORS)->text);
}

Test(slot, a_process_limit_is_marked)
{
    struct msg m = assign("echo 'sh: 1: Cannot fork'; exit 2");

    run(&m);
    cr_assert_not_null(slot_rig_mark(&got, MARK_PROCESS_LIMIT));
    cr_assert(says(slot_rig_mark(&got, MARK_PROCESS_LIMIT)->text, "of the worker's service"));
}

/* --- the machine's lock --- */

/* Makes the file that a command waits for. */
static void let_on(const char *name)
{
    char path[FILE_PATH_MAX];

    cr_assert_eq(file_path(path, sizeof path, rig.dir, name), 0);
    records_write(path, (const uint8_t *)"", 0);
}

Test(slot, waits_for_the_lock_and_gives_up)
{
    char other[256];
    struct file_lock *lock = NULL;
    struct msg m = assign("echo never");

    cr_assert_eq(file_lock_take(rig.lock_path, "worker p6 of lab", &lock, other), 0);
    m.u.assign.settle_timeout_ns = 100 * CLOCK_MS;
    cr_assert_eq(run(&m)->outcome, (uint32_t)OUTCOME_INVALID);
    cr_assert_eq(got.result->phase, (uint32_t)PHASE_SETTLE);
    cr_assert_eq(got.result->ending, (uint32_t)ENDING_NONE);
    cr_assert(slot_rig_mark(&got, MARK_LOCK_BUSY)->invalid);
    cr_assert(says(got.result->text, "worker p6 of lab"), "%s", got.result->text);
    cr_assert(says(rig.waits, "worker p6 of lab"), "STATE says whom it waits for");
    cr_assert_not(got.result->has_real_ns);
    file_lock_free(&lock);
}

Test(slot, holds_the_lock_while_it_measures_and_not_longer)
{
    char other[256];
    struct file_lock *lock = NULL;
    char run_command[FILE_PATH_MAX + 100] = "", check[FILE_PATH_MAX + 100];
    struct msg m = assign(run_command);

    (void)snprintf(run_command, sizeof run_command,
                   "echo started; until test -e %s/go; do sleep 0.02; done", rig.dir);
    (void)snprintf(check, sizeof check,
                   "echo checking; until test -e %s/end; do sleep 0.02; done", rig.dir);
    m.u.assign.check = check;
    slot_rig_start(&rig, &m);
    slot_rig_in_window(&rig);
    cr_assert_eq(file_lock_take(rig.lock_path, "x", &lock, other), -ERR_BUSY);
    cr_assert_str_eq(other, "the rig");
    let_on("go");
    slot_rig_until(&rig, PHASE_CHECK);
    cr_assert_eq(file_lock_take(rig.lock_path, "x", &lock, other), 0);
    file_lock_free(&lock);
    let_on("end");
    slot_rig_wait(&rig);
}

/* --- the timed window --- */

Test(slot, the_heap_does_not_grow_in_the_window)
{
    struct msg once = assign("true"), m = assign("echo here; sleep 600");
    size_t most = 0, first = 0;

    run(&once); /* what is made once is made */
    slot_rig_start(&rig, &m);
    slot_rig_in_window(&rig);
    first = mallinfo2().uordblks;
    for (int turns = 0; turns < 4; turns++) {
        loop_turn(rig.loop, CLOCK_SEC / 2);
        cr_assert(rig.window);
        if (mallinfo2().uordblks > most)
            most = mallinfo2().uordblks;
    }
    cr_assert_leq(most, first);
    cr_assert(slot_cancel(rig.slot, m.u.assign.run, 1, "end of the test"));
    slot_rig_wait(&rig);
}

/* --- trees that are being tidied up --- */

static void on_tidy(int code, void *arg)
{
    (void)code;
    *(bool *)arg = true;
}

Test(slot, waits_while_the_trees_are_tidied_up)
{
    struct msg m = assign("true");
    char path[FILE_PATH_MAX];
    bool tidy = false;

    cr_assert_eq(file_path(path, sizeof path, trees_home(rig.trees), "left"), 0);
    records_write(path, (const uint8_t *)"x", 1);
    cr_assert_eq(trees_clean_home(rig.trees, on_tidy, &tidy, NULL), 0);
    cr_assert_eq(run(&m)->outcome, (uint32_t)OUTCOME_OK, "%s", got.result->text);
    cr_assert(tidy);
}

/* --- the link before the window --- */

Test(slot, a_link_that_does_not_drain_delays_only_a_little)
{
    struct msg m = assign("true");

    rig.queued = 1000;
    cr_assert_eq(run(&m)->outcome, (uint32_t)OUTCOME_OK);
    cr_assert_geq(got.result->settle_ns, 900 * CLOCK_MS);
    /* Nothing that is waited for takes less than a second: one attempt without that wait shows it. A
     * busy machine may hold up any single one. */
    rig.queued = 0;
    m.u.assign.run = 1000;
    while (run(&m)->settle_ns >= 900 * CLOCK_MS)
        m.u.assign.run++;
}

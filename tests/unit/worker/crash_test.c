/* A worker that is killed (SIGKILL) in every phase and started again: what was being made is
 * reported as interrupted, once, nothing of its build is left, and what waited is made. The worker
 * is a process of its own, started by a helper that was forked before there was any loop. */
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/loop.h"
#include "common/str.h"
#include "proto/tls.h"
#include "tests/unit/worker/boss.h"
#include "tests/unit/worker/run/records.h"
#include "worker/agent.h"
#include "worker/conf.h"
#include "worker/identity.h"
#include "worker/os/os.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct boss boss;
static struct loop *loop;
static char dir[FILE_PATH_MAX], lock_path[FILE_PATH_MAX];
static int to_helper[2], from_helper[2];
static pid_t helper;

/* --- the helper: "s" and the address starts a worker, "k" kills it --- */

static void run_worker(void)
{
    struct worker_conf conf;
    struct trust_world world;
    struct identity identity;
    struct agent *agent = NULL;
    struct loop *own = loop_new();
    struct agent_setup setup = {
        .loop = own, .conf = &conf, .identity = &identity, .lock_path = lock_path};
    struct diag *diag = diag_new(4);

    boss_identity(&boss, &world, &identity);
    boss_conf(&boss, dir, &conf);
    if (agent_new(&setup, &agent, diag) != 0) {
        fprintf(stderr, "the worker does not start: %s\n", diag_first(diag));
        _exit(1);
    }
    loop_run(own);
    _exit(0);
}

static void help(void)
{
    pid_t worker = 0;
    char c;
    ssize_t n;

    while ((n = read(to_helper[0], &c, 1)) == 1) {
        if (c == 's') {
            if (read(to_helper[0], boss.address, sizeof boss.address) != sizeof boss.address)
                _exit(1);
            worker = fork();
            if (worker == 0)
                run_worker();
        } else {
            kill(worker, SIGKILL);
            waitpid(worker, NULL, 0);
            worker = 0;
        }
        if (write(from_helper[1], "x", 1) != 1)
            _exit(1);
    }
    if (worker > 0) {
        kill(worker, SIGKILL);
        waitpid(worker, NULL, 0);
    }
    _exit(0);
}

static void tell_helper(char c)
{
    char answer;

    cr_assert_eq(write(to_helper[1], &c, 1), 1);
    if (c == 's')
        cr_assert_eq(write(to_helper[1], boss.address, sizeof boss.address),
                     (ssize_t)sizeof boss.address);
    cr_assert_eq(read(from_helper[0], &answer, 1), 1);
}

static void set_up(void)
{
    cr_assert_eq(log_open("test", getenv("TEST_LOG") != NULL ? NULL : "/dev/null", LOG_DEBUG), 0);
    records_dir(dir);
    cr_assert_eq(file_path(lock_path, sizeof lock_path, dir, "machine.lock"), 0);
    boss_init(&boss);
    cr_assert_eq(pipe2(to_helper, O_CLOEXEC), 0);
    cr_assert_eq(pipe2(from_helper, O_CLOEXEC), 0);
    helper = fork();
    if (helper == 0) {
        close(to_helper[1]);
        help();
    }
    close(to_helper[0]);
    loop = loop_new();
    boss_listen(&boss, loop);
}

static void tear_down(void)
{
    close(to_helper[1]);
    cr_assert_eq(waitpid(helper, NULL, 0), helper);
    boss_fini(&boss);
    loop_free(&loop);
    cr_assert_eq(file_remove_tree(dir), 0);
    log_close();
}

TestSuite(crash, .init = set_up, .fini = tear_down, .timeout = 240);

/* The phase that STATE told last of a run. */
static int phase_of(uint64_t run)
{
    int phase = -1;

    for (size_t i = 0; i < boss.count; i++)
        if (boss.box[i]->type == MSG_STATE && boss.box[i]->u.state.run == run)
            phase = (int)boss.box[i]->u.state.phase;
    return phase;
}

static bool printed(const char *command)
{
    char path[FILE_PATH_MAX], name[64];
    struct file_stat st;

    snprintf(name, sizeof name, "out/%s.log", command);
    cr_assert_eq(file_path(path, sizeof path, dir, name), 0);
    return file_stat(path, &st) == 0 && st.size > 16;
}

static void forget_output(const char *command)
{
    char path[FILE_PATH_MAX], name[64];

    snprintf(name, sizeof name, "out/%s.log", command);
    cr_assert_eq(file_path(path, sizeof path, dir, name), 0);
    (void)!file_remove(path);
}

static const struct {
    enum phase phase;
    const char *command;
} PHASES[] = {
    {PHASE_FETCH, "fingerprint"}, {PHASE_SETUP, "setup"}, {PHASE_RESET, "reset"},
    {PHASE_SETTLE, NULL},         {PHASE_MEASURE, "run"}, {PHASE_CHECK, "check"},
};

static struct msg stays_in(uint64_t run, enum phase phase, char command[1200])
{
    struct msg m = records_assign(run, 1);

    snprintf(command, 1200, "echo $$ >>%s/pids; echo here; sleep 600", dir);
    m.u.assign.setup_timeout_ns = 600 * CLOCK_SEC;
    m.u.assign.run_timeout_ns = 600 * CLOCK_SEC;
    m.u.assign.fingerprint = phase == PHASE_FETCH ? command : NULL;
    m.u.assign.setup = phase == PHASE_SETUP ? command : NULL;
    m.u.assign.reset = phase == PHASE_RESET ? command : NULL;
    m.u.assign.command = phase == PHASE_MEASURE ? command : "true";
    m.u.assign.check = phase == PHASE_CHECK ? command : NULL;
    return m;
}

/* Every shell that noted its number is dead. */
static bool all_dead(void)
{
    static uint8_t text[4096];
    char path[FILE_PATH_MAX];
    size_t n, at = 0;

    cr_assert_eq(file_path(path, sizeof path, dir, "pids"), 0);
    if (!file_exists(path))
        return true;
    n = records_read(path, text, sizeof text - 1);
    text[n] = '\0';
    while (at < n) {
        struct os_proc proc;

        if (os_proc_get(strtol((char *)text + at, NULL, 10), &proc) == 0 && !proc.zombie)
            return false;
        while (text[at++] != '\n')
            ;
    }
    return true;
}

Test(crash, in_every_phase)
{
    char command[1200], other[256];
    uint64_t run = 0;

    tell_helper('s');
    for (size_t i = 0; i < sizeof PHASES / sizeof PHASES[0]; i++) {
        struct file_lock *lock = NULL;
        struct msg m = stays_in(++run, PHASES[i].phase, command);
        const struct msg_result *r;
        unsigned hellos;

        if (PHASES[i].command != NULL)
            forget_output(PHASES[i].command);
        if (PHASES[i].phase == PHASE_SETTLE)
            cr_assert_eq(file_lock_take(lock_path, "the test", &lock, other), 0);
        BOSS_WAIT(&boss, boss.conn != NULL && boss.hellos > 0);
        boss_send(&boss, &m);
        BOSS_WAIT(&boss, phase_of(run) == (int)PHASES[i].phase &&
                             (PHASES[i].command == NULL || printed(PHASES[i].command)));
        m = records_assign(++run, 1); /* it waits behind the other */
        boss_send(&boss, &m);
        /* In the window it is read, but not confirmed. */
        if (PHASES[i].phase != PHASE_MEASURE)
            BOSS_WAIT(&boss, boss_count(&boss, MSG_TAKEN) >= run - (i > 4));

        tell_helper('k');
        file_lock_free(&lock);
        BOSS_WAIT(&boss, boss.conn == NULL);
        hellos = boss.hellos;
        tell_helper('s');
        BOSS_WAIT(&boss, boss.hellos > hellos && boss.whole[run - 1]);
        r = boss_result(&boss, run - 1);
        cr_assert_eq(r->outcome, (uint32_t)OUTCOME_INTERRUPTED);
        cr_assert_eq(r->phase, (uint32_t)PHASES[i].phase, "said to be in %s",
                     vocab_phase((int)r->phase));
        cr_assert_eq(r->visit, i + 1);
        if (PHASES[i].phase != PHASE_MEASURE) {
            BOSS_WAIT(&boss, boss.whole[run]);
            cr_assert_eq(boss_result(&boss, run)->outcome, (uint32_t)OUTCOME_OK);
        }
        cr_assert(all_dead(), "something of the build lives on");
    }
}

/* Killed at any instant of many short runs: each attempt arrives once, whole, and well or
 * interrupted. */
Test(crash, at_any_instant)
{
    enum { RUNS = 40 };
    struct msg m;
    uint64_t given = 0, wanted;
    uint32_t seed = 2026;

    tell_helper('s');
    for (int step = 0; step < 12 || given < RUNS; step++) {
        int64_t until;

        cr_assert_lt(step, 200);
        BOSS_WAIT(&boss, boss.conn != NULL && boss_count(&boss, MSG_HELLO) > (size_t)step);
        wanted = given;
        while (given < RUNS && given < wanted + 4) {
            m = records_assign(++given, 1);
            m.u.assign.setup = "echo made >it";
            m.u.assign.check = "test -s it";
            boss_send(&boss, &m);
        }
        seed = seed * 1664525u + 1013904223u;
        until = clock_mono_ns() + (seed >> 16) % 250 * CLOCK_MS;
        while (clock_mono_ns() < until)
            loop_turn(loop, CLOCK_MS);
        tell_helper('k');
        BOSS_WAIT(&boss, boss.conn == NULL);
        tell_helper('s');
    }
    BOSS_WAIT(&boss, boss.conn != NULL);
    /* What was confirmed is made or reported; what was not is not held any more. */
    for (uint64_t run = 1; run <= RUNS; run++) {
        bool taken = false;

        for (size_t i = 0; i < boss.count; i++)
            taken = taken || (boss.box[i]->type == MSG_TAKEN && boss.box[i]->u.taken.run == run);
        if (!taken)
            continue;
        BOSS_WAIT(&boss, boss.whole[run]);
        enum outcome outcome = (enum outcome)boss_result(&boss, run)->outcome;
        cr_assert(outcome == OUTCOME_OK || outcome == OUTCOME_INTERRUPTED, "run %d: %s", (int)run,
                  boss_result(&boss, run)->text);
    }
}

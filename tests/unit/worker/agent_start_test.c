/* What a worker needs to start: its folder to itself, and a configuration that can be. */
#include "worker/agent.h"

#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/loop.h"
#include "tests/unit/worker/boss.h"
#include "tests/unit/worker/run/records.h"
#include "worker/conf.h"
#include "worker/identity.h"
#include "worker/run/journal.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct boss boss;
static struct loop *loop;
static char dir[FILE_PATH_MAX], lock_path[FILE_PATH_MAX];
static struct worker_conf conf;
static struct trust_world world;
static struct identity identity;
static struct agent *agent;

static void start(void)
{
    struct agent_setup setup = {
        .loop = loop, .conf = &conf, .identity = &identity, .lock_path = lock_path};
    struct diag *diag = diag_new(4);

    cr_assert_eq(agent_new(&setup, &agent, diag), 0, "%s", diag_first(diag));
    diag_free(&diag);
}

static void set_up(void)
{
    cr_assert_eq(log_open("test", getenv("TEST_LOG") != NULL ? NULL : "/dev/null", LOG_DEBUG), 0);
    records_dir(dir);
    cr_assert_eq(file_path(lock_path, sizeof lock_path, dir, "machine.lock"), 0);
    boss_init(&boss);
    loop = loop_new();
    boss_listen(&boss, loop);
    boss_identity(&boss, &world, &identity);
    boss_conf(&boss, dir, &conf);
}

static void tear_down(void)
{
    agent_free(&agent);
    boss_fini(&boss);
    identity_fini(&identity);
    worker_conf_free(&conf);
    loop_free(&loop);
    cr_assert_eq(file_remove_tree(dir), 0);
    log_close();
}

TestSuite(agent_start, .init = set_up, .fini = tear_down, .timeout = 120);

Test(agent_start, keeps_its_folder_to_itself)
{
    struct agent_setup setup = {
        .loop = loop, .conf = &conf, .identity = &identity, .lock_path = lock_path};
    struct diag *diag = diag_new(4);
    struct agent *second = NULL;

    start();
    cr_assert_eq(agent_new(&setup, &second, diag), -ERR_BUSY);
    cr_assert_not_null(strstr(diag_first(diag), "makespan-worker p6"), "%s", diag_first(diag));
    diag_free(&diag);
}

/* A worker that was killed while it started a child: for a moment the child has the lock. */
static void let_child_end(void *arg)
{
    close(*(int *)arg);
}

/* Holds the worker's folder in the name of a process, until its input ends. */
static void hold_folder(pid_t maker, int in, int out)
{
    char path[FILE_PATH_MAX], holder[64], other[256], byte;
    struct file_lock *lock = NULL;

    snprintf(holder, sizeof holder, "makespan-worker p6, pid %d", (int)maker);
    if (file_path(path, sizeof path, dir, "lock") != 0 ||
        file_lock_take(path, holder, &lock, other) != 0 || write(out, "x", 1) != 1)
        _exit(1);
    while (read(in, &byte, 1) > 0)
        ;
    _exit(0);
}

Test(agent_start, waits_for_a_lock_that_a_dead_worker_left)
{
    int to[2], from[2], status;
    char byte;
    pid_t dead = fork();
    pid_t child;
    struct loop_timer *timer;

    if (dead == 0)
        _exit(0);
    cr_assert_eq(waitpid(dead, NULL, 0), dead);
    cr_assert_eq(pipe(to), 0);
    cr_assert_eq(pipe(from), 0);
    child = fork();
    if (child == 0) {
        close(to[1]);
        hold_folder(dead, to[0], from[1]);
    }
    close(from[1]);
    cr_assert_eq(read(from[0], &byte, 1), 1, "the child does not hold the lock");
    timer = loop_timer_new(loop, let_child_end, &to[1]);
    loop_timer_set(timer, 100 * CLOCK_MS);
    start();
    cr_assert_not_null(agent);
    loop_timer_free(&timer);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
}

Test(agent_start, does_not_start_with_what_cannot_be)
{
    struct agent_setup setup = {
        .loop = loop, .conf = &conf, .identity = &identity, .lock_path = lock_path};
    struct diag *diag = diag_new(4);

    free(conf.name);
    conf.name = strdup("another");
    cr_assert_eq(agent_new(&setup, &agent, diag), -ERR_CONFLICT);
    free(conf.name);
    conf.name = NULL;
    conf.run_as = strdup("no-such-user-here");
    cr_assert_lt(agent_new(&setup, &agent, diag), 0);
    free(conf.run_as);
    conf.run_as = NULL;
    free(conf.coordinator);
    conf.coordinator = NULL;
    cr_assert_eq(agent_new(&setup, &agent, diag), -ERR_INVAL);
    conf.coordinator = strdup("no port");
    cr_assert_lt(agent_new(&setup, &agent, diag), 0);
    diag_free(&diag);
}

/* The question to the compiler is a child of the worker's own: no build begins beside it. */
Test(agent_start, begins_nothing_before_the_compiler_has_answered)
{
    char path[FILE_PATH_MAX], script[3 * FILE_PATH_MAX];
    struct journal *journal = NULL;
    struct msg assign = records_assign(1, 1);
    struct diag *diag = diag_new(2);
    struct file *file = NULL;

    cr_assert_eq(file_path(path, sizeof path, dir, "journal"), 0);
    cr_assert_eq(journal_open(path, clock_wall_ns(), &journal, diag), 0, "%s", diag_first(diag));
    cr_assert_eq(journal_add(journal, &assign), 0);
    journal_close(&journal);
    snprintf(script, sizeof script,
             "#!/bin/sh\n: >%s/asked\nuntil [ -e %s/go ]; do sleep 0.01; done\necho cc 1.0\n", dir,
             dir);
    cr_assert_eq(file_path(path, sizeof path, dir, "cc"), 0);
    cr_assert_eq(file_write_atomic(path, script, strlen(script), 0755), 0);
    snprintf(script, sizeof script, "%s:/usr/bin:/bin", dir);
    free(conf.path);
    conf.path = strdup(script);
    start();
    cr_assert_eq(file_path(path, sizeof path, dir, "asked"), 0);
    for (int64_t end = clock_mono_ns() + CLOCK_MIN; !file_exists(path);) {
        cr_assert_lt(clock_mono_ns(), end);
        loop_turn(loop, 10 * CLOCK_MS);
    }
    for (int64_t end = clock_mono_ns() + 200 * CLOCK_MS; clock_mono_ns() < end;) {
        loop_turn(loop, 10 * CLOCK_MS);
        cr_assert_eq(agent_phase(agent), PHASE_IDLE);
    }
    cr_assert_eq(agent_queued(agent), 1u);
    cr_assert_eq(file_path(path, sizeof path, dir, "go"), 0);
    cr_assert_eq(file_open(path, FILE_WRITE | FILE_CREATE, 0600, &file), 0);
    file_close(&file);
    for (int64_t end = clock_mono_ns() + CLOCK_MIN; agent_phase(agent) == PHASE_IDLE;) {
        cr_assert_lt(clock_mono_ns(), end);
        loop_turn(loop, 10 * CLOCK_MS);
    }
    diag_free(&diag);
}

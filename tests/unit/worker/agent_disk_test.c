/* A worker whose disk is full while it has nothing to do: it says so to the coordinator, takes no
 * work, and goes on by itself. On a small disk of its own. */
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/loop.h"
#include "tests/unit/worker/boss.h"
#include "tests/unit/worker/run/records.h"
#include "worker/agent.h"
#include "worker/conf.h"
#include "worker/identity.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static struct boss boss;
static struct loop *loop;
static char dir[FILE_PATH_MAX], lock_path[FILE_PATH_MAX], filler[FILE_PATH_MAX];
static struct worker_conf conf;
static struct trust_world world;
static struct identity identity;
static struct agent *agent;

static void set_up(void)
{
    if (geteuid() != 0)
        cr_skip_test("only root can mount a small disk");
    cr_assert_eq(log_open("test", getenv("TEST_LOG") != NULL ? NULL : "/dev/null", LOG_DEBUG), 0);
    cr_assert_eq(unshare(CLONE_NEWNS), 0);
    cr_assert_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    records_dir(dir);
    cr_assert_eq(file_path(lock_path, sizeof lock_path, dir, "machine.lock"), 0);
    cr_assert_eq(mount("none", dir, "tmpfs", 0, "size=8m"), 0);
    cr_assert_eq(file_path(filler, sizeof filler, dir, "filler"), 0);
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
    log_close();
}

TestSuite(agent_disk, .init = set_up, .fini = tear_down, .timeout = 120);

static void fill(void)
{
    static const uint8_t zeros[4096];
    struct file *file = NULL;

    cr_assert_eq(file_open(filler, FILE_APPEND | FILE_CREATE, 0600, &file), 0);
    while (file_append(file, zeros, sizeof zeros) == 0)
        ;
    file_close(&file);
}

static void start(void)
{
    struct agent_setup setup = {
        .loop = loop, .conf = &conf, .identity = &identity, .lock_path = lock_path};
    struct diag *diag = diag_new(4);

    cr_assert_eq(agent_new(&setup, &agent, diag), 0, "%s", diag_first(diag));
    diag_free(&diag);
}

/* It starts on a full disk, with nothing left in reserve. */
Test(agent_disk, says_that_it_takes_no_work_and_takes_it_again)
{
    struct msg m = records_assign(1, 1);
    char path[FILE_PATH_MAX];
    const struct msg *said;

    start();
    (void)boss_next(&boss, MSG_HELLO);
    agent_free(&agent);
    cr_assert_eq(file_path(path, sizeof path, dir, "spool/reserve"), 0);
    cr_assert_eq(file_remove(path), 0);
    fill();
    start();
    cr_assert_eq(boss_next(&boss, MSG_HELLO)->u.hello.room, 0u);
    said = boss_next(&boss, MSG_READY);
    cr_assert_eq(said->u.ready.room, 0u);
    cr_assert_not_null(said->u.ready.text);
    cr_assert_eq(file_path(path, sizeof path, dir, "spool"), 0);
    cr_assert_not_null(strstr(said->u.ready.text, path), "%s", said->u.ready.text);
    cr_assert_not_null(strstr(said->u.ready.text, " free"), "%s", said->u.ready.text);
    /* Once, and not each time that it looks. */
    for (int64_t end = clock_mono_ns() + 6 * CLOCK_SEC; clock_mono_ns() < end;)
        loop_turn(loop, 100 * CLOCK_MS);
    cr_assert_eq(boss_count(&boss, MSG_READY), 1u);
    /* And again on a new link. */
    boss_cut(&boss);
    cr_assert_eq(boss_next(&boss, MSG_HELLO)->u.hello.room, 0u);
    cr_assert_not_null(boss_next(&boss, MSG_READY)->u.ready.text);
    cr_assert_eq(file_remove(filler), 0);
    said = boss_next(&boss, MSG_READY);
    cr_assert_eq(said->u.ready.room, 2u);
    cr_assert_null(said->u.ready.text);
    boss_send(&boss, &m);
    BOSS_WAIT(&boss, boss.whole[1]);
    cr_assert_eq(boss_result(&boss, 1)->outcome, (uint32_t)OUTCOME_OK);
}

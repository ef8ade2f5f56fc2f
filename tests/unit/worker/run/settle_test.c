/* One measurement at a time on one machine: the lock, its holder's name, the end of the wait. */
#include "worker/run/settle.h"

#include "common/clock.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "common/str.h"
#include "tests/unit/worker/run/records.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static char dir[FILE_PATH_MAX], path[FILE_PATH_MAX];
static struct loop *loop;
static struct file_lock *got;
static int code;
static unsigned answers, waits;
static char text[512], wait_text[512];

static void set_up(void)
{
    records_dir(dir);
    cr_assert_eq(file_path(path, sizeof path, dir, "lock"), 0);
    loop = loop_new();
}

static void tear_down(void)
{
    file_lock_free(&got);
    loop_free(&loop);
    cr_assert_eq(file_remove_tree(dir), 0);
}

TestSuite(settle, .init = set_up, .fini = tear_down, .timeout = 60);

static void on_answer(const struct settle_result *result, void *arg)
{
    cr_assert_eq(arg, &answers);
    answers++;
    code = result->code;
    got = result->lock;
    str_copy(text, sizeof text, result->text);
}

static void on_wait(const char *why, void *arg)
{
    cr_assert_eq(arg, &answers);
    waits++;
    str_copy(wait_text, sizeof wait_text, why);
}

static struct settle *start(int64_t timeout_ns)
{
    struct settle_spec spec = {
        .path = path, .holder = "the second", .timeout_ns = timeout_ns, .waits = on_wait};

    return settle_start(loop, &spec, on_answer, &answers);
}

Test(settle, takes_a_free_lock)
{
    char other[256];
    struct file_lock *second = NULL;

    (void)start(CLOCK_SEC);
    cr_assert_eq(answers, 0u, "the answer came from within the start");
    while (answers == 0)
        loop_turn(loop, -1);
    cr_assert_eq(code, 0);
    cr_assert_not_null(got);
    cr_assert_eq(waits, 0u);
    cr_assert_eq(file_lock_take(path, "x", &second, other), -ERR_BUSY);
    cr_assert_str_eq(other, "the second");
}

Test(settle, waits_and_says_for_whom)
{
    char other[256];
    struct file_lock *first = NULL;

    cr_assert_eq(file_lock_take(path, "worker p6 of lab", &first, other), 0);
    (void)start(60 * CLOCK_SEC);
    while (waits == 0)
        loop_turn(loop, -1);
    cr_assert_str_eq(wait_text, "another measurement holds this machine: worker p6 of lab");
    for (int i = 0; i < 5; i++)
        loop_turn(loop, -1);
    cr_assert_eq(waits, 1u, "it says the same again");
    cr_assert_eq(answers, 0u);
    file_lock_free(&first);
    while (answers == 0)
        loop_turn(loop, -1);
    cr_assert_eq(code, 0);
}

Test(settle, ends_at_its_limit)
{
    char other[256];
    struct file_lock *first = NULL;

    cr_assert_eq(file_lock_take(path, "worker p6 of lab", &first, other), 0);
    (void)start(30 * CLOCK_MS);
    while (answers == 0)
        loop_turn(loop, -1);
    cr_assert_eq(code, -ERR_BUSY);
    cr_assert_null(got);
    cr_assert_not_null(strstr(text, "worker p6 of lab"));
    file_lock_free(&first);
}

Test(settle, does_not_go_without_the_lock)
{
    cr_assert_eq(file_mkdirs(path, 0700), 0); /* where the file should be */
    (void)start(20 * CLOCK_MS);
    while (answers == 0)
        loop_turn(loop, -1);
    cr_assert_lt(code, 0);
    cr_assert_null(got);
    cr_assert_not_null(strstr(text, path));
}

Test(settle, can_be_forgotten)
{
    struct settle *s = start(CLOCK_SEC);

    settle_cancel(&s);
    cr_assert_null(s);
    loop_turn(loop, 0);
    cr_assert_eq(answers, 0u);
}

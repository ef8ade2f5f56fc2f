/* What counts in the spool, what a crash and a damaged disk leave of it, and what a full
 * one stops. */
#include "worker/run/spool.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/str.h"
#include "tests/unit/worker/run/records.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[FILE_PATH_MAX];
static struct spool *spool;

static void open_spool(void)
{
    struct diag *diag = diag_new(4);

    cr_assert_eq(spool_open(dir, &spool, diag), 0, "%s", diag_first(diag));
    diag_free(&diag);
}

static void again(void)
{
    spool_close(&spool);
    open_spool();
}

static void set_up(void)
{
    cr_assert_eq(log_open("test", "/dev/null", LOG_ERROR), 0);
    records_dir(dir);
    open_spool();
}

static void tear_down(void)
{
    spool_close(&spool);
    cr_assert_eq(file_remove_tree(dir), 0);
    log_close();
}

TestSuite(spool, .init = set_up, .fini = tear_down);

static void expect_record(size_t index, uint32_t seq, const struct msg *want)
{
    struct msg *got = NULL;

    cr_assert_eq(spool_read(spool, index, seq, &got), 0);
    cr_assert(msg_equal(got, want));
    msg_free(&got);
}

Test(spool, gives_back_what_was_committed)
{
    struct msg result = records_result(7, 2, 0, OUTCOME_OK);
    struct msg mark = records_mark(7, 2, 1);
    struct msg end = records_end(7, 2, 2);

    cr_assert_eq(spool_begin(spool, 7, 2), 0);
    cr_assert_eq(spool_add(spool, &result), 0);
    cr_assert_eq(spool_next_seq(spool), 1u);
    cr_assert_eq(spool_add(spool, &mark), 0);
    cr_assert_eq(spool_add(spool, &end), 0);
    cr_assert_eq(spool_count(spool), 0u, "it counts before it was committed");
    cr_assert_eq(spool_commit(spool), 0);
    for (int round = 0; round < 2; round++) {
        cr_assert_eq(spool_count(spool), 1u);
        cr_assert_eq(spool_at(spool, 0)->run, 7u);
        cr_assert_eq(spool_at(spool, 0)->attempt, 2u);
        cr_assert_eq(spool_at(spool, 0)->count, 3u);
        expect_record(0, 0, &result);
        expect_record(0, 1, &mark);
        expect_record(0, 2, &end);
        expect_record(0, 1, &mark); /* backwards, too */
        again();
    }
}

Test(spool, keeps_the_order_of_commits)
{
    records_spool(spool, 900, 1, 0, 0);
    records_spool(spool, 3, 1, 0, 0);
    records_spool(spool, 500, 1, 0, 0);
    again();
    records_spool(spool, 1, 1, 0, 0);
    cr_assert_eq(spool_count(spool), 4u);
    const uint64_t want[] = {900, 3, 500, 1};
    for (size_t i = 0; i < 4; i++)
        cr_assert_eq(spool_at(spool, i)->run, want[i]);
    cr_assert_eq(spool_find(spool, 500, 1, 0), 2u);
    cr_assert_eq(spool_find(spool, 500, 1, 3), 2u);
    cr_assert_eq(spool_find(spool, 500, 2, 0), 4u);
}

Test(spool, forgets)
{
    for (uint64_t run = 1; run <= 40; run++)
        records_spool(spool, run, 1, 1, 100);
    spool_forget(spool, spool_find(spool, 20, 1, 0));
    for (int i = 0; i < 10; i++)
        spool_forget(spool, 0);
    cr_assert_eq(spool_count(spool), 29u);
    cr_assert_eq(spool_at(spool, 0)->run, 11u);
    cr_assert_eq(spool_find(spool, 20, 1, 0), 29u);
    cr_assert_eq(spool_find(spool, 21, 1, 0), 9u);
    for (uint64_t run = 41; run <= 80; run++)
        records_spool(spool, run, 1, 0, 0);
    again();
    cr_assert_eq(spool_count(spool), 69u);
    while (spool_count(spool) > 0)
        spool_forget(spool, spool_count(spool) / 2);
    cr_assert_eq(spool_bytes(spool), 0u);
    cr_assert_eq(records_names(dir, "0"), 0u);
}

Test(spool, what_was_not_committed_leaves_nothing)
{
    struct msg m = records_result(5, 1, 0, OUTCOME_OK);

    cr_assert_eq(spool_begin(spool, 5, 1), 0);
    cr_assert_eq(spool_add(spool, &m), 0);
    again(); /* as after a crash: nothing was synced or renamed */
    cr_assert_eq(spool_count(spool), 0u);
    cr_assert_eq(records_names(dir, "writing"), 0u);
    records_spool(spool, 5, 1, 0, 0);
    cr_assert_eq(spool_count(spool), 1u);
}

Test(spool, refuses_what_does_not_fit)
{
    struct msg other = records_result(6, 1, 0, OUTCOME_OK);
    struct msg gap = records_result(5, 1, 1, OUTCOME_OK);
    struct msg good = records_result(5, 1, 0, OUTCOME_OK);
    struct msg assign = records_assign(5, 1);
    struct msg end = records_end(5, 1, 1);

    cr_assert_eq(spool_add(spool, &good), -ERR_STATE);
    cr_assert_eq(spool_begin(spool, 5, 1), 0);
    cr_assert_eq(spool_add(spool, &other), -ERR_INVAL);
    cr_assert_eq(spool_add(spool, &gap), -ERR_INVAL);
    cr_assert_eq(spool_add(spool, &assign), -ERR_INVAL);
    cr_assert_eq(spool_commit(spool), -ERR_STATE);
    cr_assert_eq(spool_add(spool, &good), 0);
    end.u.end.count = 3;
    cr_assert_eq(spool_add(spool, &end), -ERR_INVAL);
    end.u.end.count = 2;
    cr_assert_eq(spool_add(spool, &end), 0);
    good.u.result.seq = 2;
    cr_assert_eq(spool_add(spool, &good), -ERR_INVAL, "a record behind END was taken");
    cr_assert_eq(spool_commit(spool), 0);
    cr_assert_eq(spool_commit(spool), -ERR_STATE);
}

/* --- damage --- */

Test(spool, a_file_cut_at_any_byte_is_set_aside)
{
    static uint8_t bytes[65536];
    char path[FILE_PATH_MAX];
    size_t n;

    records_spool(spool, 1, 1, 2, 50);
    records_spool(spool, 2, 1, 0, 0);
    spool_close(&spool);
    records_file(dir, "00000000000000000001-", path);
    n = records_read(path, bytes, sizeof bytes);
    for (size_t cut = 0; cut < n; cut++) {
        records_write(path, bytes, cut);
        open_spool();
        cr_assert_eq(spool_count(spool), 1u, "cut at %zu of %zu", cut, n);
        cr_assert_eq(spool_at(spool, 0)->run, 2u);
        spool_close(&spool);
        cr_assert_eq(records_names(dir, "damaged-"), 1u);
    }
    records_write(path, bytes, n);
    open_spool();
    cr_assert_eq(spool_count(spool), 2u);
}

Test(spool, a_flipped_bit_is_seen)
{
    static uint8_t bytes[65536];
    char path[FILE_PATH_MAX];
    size_t n;

    records_spool(spool, 1, 1, 1, 20);
    spool_close(&spool);
    records_file(dir, "0", path);
    n = records_read(path, bytes, sizeof bytes);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        records_write(path, bytes, n);
        open_spool();
        cr_assert_eq(spool_count(spool), 0u, "bit %zu", bit);
        spool_close(&spool);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    open_spool();
}

Test(spool, bytes_behind_the_end_are_damage)
{
    static uint8_t bytes[65536];
    char path[FILE_PATH_MAX];
    size_t n;

    records_spool(spool, 1, 1, 0, 0);
    spool_close(&spool);
    records_file(dir, "0", path);
    n = records_read(path, bytes, sizeof bytes);
    records_write(path, bytes, n + 3);
    open_spool();
    cr_assert_eq(spool_count(spool), 0u);
}

Test(spool, a_name_of_another_attempt_is_damage)
{
    char path[FILE_PATH_MAX], to[FILE_PATH_MAX];

    records_spool(spool, 1, 1, 0, 0);
    spool_close(&spool);
    records_file(dir, "0", path);
    str_copy(to, sizeof to, path);
    to[strlen(to) - 1] = '2';
    cr_assert_eq(file_rename(path, to), 0);
    open_spool();
    cr_assert_eq(spool_count(spool), 0u);
    cr_assert_eq(records_names(dir, "damaged-"), 1u);
}

Test(spool, damage_found_while_reading_costs_that_attempt_alone)
{
    static uint8_t bytes[65536];
    struct msg *m = NULL;
    char path[FILE_PATH_MAX];
    size_t n;

    records_spool(spool, 1, 1, 1, 20);
    records_file(dir, "0", path);
    records_spool(spool, 2, 1, 0, 0);
    n = records_read(path, bytes, sizeof bytes);
    bytes[n / 2] ^= 1;
    records_write(path, bytes, n);
    int err = 0;
    for (uint32_t seq = 0; err == 0 && seq < 3; seq++) {
        err = spool_read(spool, 0, seq, &m);
        msg_free(&m);
    }
    cr_assert_eq(err, -ERR_CORRUPT);
    cr_assert_eq(spool_count(spool), 1u);
    cr_assert_eq(spool_at(spool, 0)->run, 2u);
    cr_assert_eq(spool_read(spool, 0, 0, &m), 0);
    msg_free(&m);
}

/* --- no space --- */

/* Runs f in a process of its own whose files cannot grow beyond n bytes; its exit status. */
static int with_file_limit(rlim_t n, void (*f)(void))
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        struct rlimit limit = {n, n};

        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(99);
        f();
        _exit(0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static void record_that_does_not_fit(void)
{
    static const uint8_t big[200000];
    struct msg m = records_result(1, 1, 0, OUTCOME_OK);

    if (spool_begin(spool, 1, 1) != 0 || spool_add(spool, &m) != 0)
        _exit(1);
    m = records_output(1, 1, 1, big, sizeof big);
    if (spool_add(spool, &m) == 0)
        _exit(2);
    m = records_mark(1, 1, 1);
    if (spool_add(spool, &m) != 0)
        _exit(3);
    m = records_end(1, 1, 2);
    if (spool_add(spool, &m) != 0 || spool_commit(spool) != 0)
        _exit(4);
}

Test(spool, a_record_that_does_not_fit_leaves_the_others_whole)
{
    struct msg result = records_result(1, 1, 0, OUTCOME_OK);
    struct msg mark = records_mark(1, 1, 1);

    cr_assert_eq(with_file_limit(100000, record_that_does_not_fit), 0);
    again();
    cr_assert_eq(spool_count(spool), 1u);
    expect_record(0, 0, &result);
    expect_record(0, 1, &mark);
}

/* Fills the file system until nothing fits. */
static void fill_disk(void)
{
    static const uint8_t zeros[4096];
    char path[FILE_PATH_MAX];
    struct file *file = NULL;

    cr_assert_eq(file_path(path, sizeof path, dir, "../filler"), 0);
    cr_assert_eq(file_open(path, FILE_APPEND | FILE_CREATE, 0600, &file), 0);
    while (file_append(file, zeros, sizeof zeros) == 0)
        ;
    file_close(&file);
}

static void free_disk(void)
{
    char path[FILE_PATH_MAX];

    cr_assert_eq(file_path(path, sizeof path, dir, "../filler"), 0);
    cr_assert_eq(file_remove(path), 0);
}

Test(spool, on_a_full_disk_the_result_still_fits)
{
    static uint8_t big[100000];
    static char text[4001];
    char top[FILE_PATH_MAX];
    struct msg m = records_result(1, 1, 0, OUTCOME_OK);

    if (geteuid() != 0)
        cr_skip_test("only root can mount a small disk");
    spool_close(&spool);
    cr_assert_eq(unshare(CLONE_NEWNS), 0);
    cr_assert_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    str_copy(top, sizeof top, dir);
    cr_assert_eq(mount("none", top, "tmpfs", 0, "size=4m"), 0);
    cr_assert_eq(file_path(dir, sizeof dir, top, "spool"), 0);
    open_spool();
    cr_assert(spool_has_reserve(spool));
    cr_assert_eq(spool_begin(spool, 1, 1), 0);
    fill_disk();
    memset(big, 'o', sizeof big);
    /* A result that needs space of its own gets the reserve's. */
    memset(text, 't', sizeof text - 1);
    m.u.result.text = text;
    m.u.result.fingerprint_text = text;
    cr_assert(spool_has_reserve(spool));
    cr_assert_eq(spool_add(spool, &m), 0);
    cr_assert_not(spool_has_reserve(spool));
    fill_disk();
    m = records_output(1, 1, 1, big, sizeof big);
    cr_assert_eq(spool_add(spool, &m), -ERR_FULL);
    m = records_mark(1, 1, 1);
    cr_assert_eq(spool_add(spool, &m), 0);
    m = records_end(1, 1, 2);
    cr_assert_eq(spool_add(spool, &m), 0);
    cr_assert_eq(spool_commit(spool), 0);

    fill_disk();
    cr_assert_eq(spool_refill(spool), -ERR_FULL);
    cr_assert_eq(records_names(dir, "reserve"), 0u);
    again(); /* a full disk does not keep it from starting, and loses nothing */
    cr_assert_not(spool_has_reserve(spool));
    cr_assert_eq(spool_count(spool), 1u);
    free_disk();
    cr_assert_eq(spool_refill(spool), 0);
    cr_assert(spool_has_reserve(spool));
    spool_close(&spool);
    cr_assert_eq(umount(top), 0);
    str_copy(dir, sizeof dir, top);
    open_spool();
}

/* What the journal still says after every change, after a crash at any byte, and after damage. */
#include "worker/run/journal.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "tests/unit/worker/run/records.h"
#include "worker/run/journal_file.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define NOW INT64_C(1796040000000000000)

static char dir[FILE_PATH_MAX];
static struct journal *journal;

static void open_journal(void)
{
    struct diag *diag = diag_new(4);

    cr_assert_eq(journal_open(dir, NOW, &journal, diag), 0, "%s", diag_first(diag));
    diag_free(&diag);
}

static void again(void)
{
    journal_close(&journal);
    open_journal();
}

static void set_up(void)
{
    cr_assert_eq(log_open("test", "/dev/null", LOG_ERROR), 0);
    records_dir(dir);
    open_journal();
}

static void tear_down(void)
{
    journal_close(&journal);
    cr_assert_eq(file_remove_tree(dir), 0);
    log_close();
}

TestSuite(journal, .init = set_up, .fini = tear_down);

static void add(uint64_t run)
{
    struct msg m = records_assign(run, 1);

    cr_assert_eq(journal_add(journal, &m), 0);
}

static void expect_queue(size_t n, const uint64_t *runs)
{
    cr_assert_eq(journal_queued(journal), n);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(journal_at(journal, i)->run, runs[i]);
}
#define QUEUE(...)                                                                                 \
    expect_queue(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__})

Test(journal, counts_the_starts)
{
    cr_assert_eq(journal_visit(journal), 1u);
    again();
    cr_assert_eq(journal_visit(journal), 2u);
    again();
    cr_assert_eq(journal_visit(journal), 3u);
    cr_assert_null(journal_running(journal));
    cr_assert_eq(journal_queued(journal), 0u);
}

Test(journal, keeps_the_queue)
{
    struct msg m = records_assign(3, 1);

    add(1);
    add(2);
    cr_assert_eq(journal_add(journal, &m), 0);
    QUEUE(1, 2, 3);
    again();
    QUEUE(1, 2, 3);
    struct msg got = {.type = MSG_ASSIGN, .u.assign = *journal_at(journal, 2)};
    cr_assert(msg_equal(&got, &m));
    cr_assert_eq(journal_remove(journal, 2, 2), -ERR_NOTFOUND);
    cr_assert_eq(journal_remove(journal, 2, 1), 0);
    QUEUE(1, 3);
    again();
    QUEUE(1, 3);
}

Test(journal, keeps_what_is_being_made)
{
    const struct journal_running *r;

    cr_assert_eq(journal_begin(journal, "b", NOW), -ERR_STATE);
    add(1);
    add(2);
    cr_assert_eq(journal_begin(journal, "boot-of-then", NOW + 5), 0);
    cr_assert_eq(journal_begin(journal, "b", NOW), -ERR_STATE);
    QUEUE(2);
    for (int round = 0; round < 2; round++) {
        r = journal_running(journal);
        cr_assert_not_null(r);
        cr_assert_eq(r->assign->run, 1u);
        cr_assert_eq(r->phase, PHASE_FETCH);
        cr_assert_eq(r->begin_wall_ns, NOW + 5);
        cr_assert_str_eq(r->boot_id, "boot-of-then");
        cr_assert_eq(r->visit, 1u);
        cr_assert_not(r->fresh_tree);
        again();
    }
    journal_phase(journal, PHASE_MEASURE, true);
    again();
    r = journal_running(journal);
    cr_assert_eq(r->phase, PHASE_MEASURE);
    cr_assert(r->fresh_tree);
    cr_assert_eq(r->visit, 1u, "the start in which it began, not this one");
    journal_done(journal);
    cr_assert_null(journal_running(journal));
    again();
    cr_assert_null(journal_running(journal));
    QUEUE(2);
}

Test(journal, keeps_when_the_coordinator_was_heard)
{
    journal_heard(journal, 100000);
    journal_heard(journal, 99999);
    cr_assert_eq(journal_heard_s(journal), 100000);
    again();
    cr_assert_eq(journal_heard_s(journal), 100000);
}

Test(journal, has_a_longest_queue)
{
    struct msg m = records_assign(0, 1);

    for (uint64_t run = 0; run < JOURNAL_QUEUE_MAX; run++) {
        m.u.assign.run = run;
        cr_assert_eq(journal_add(journal, &m), 0);
    }
    cr_assert_eq(journal_add(journal, &m), -ERR_LIMIT);
    again();
    cr_assert_eq(journal_queued(journal), (size_t)JOURNAL_QUEUE_MAX);
    cr_assert_eq(journal_at(journal, JOURNAL_QUEUE_MAX - 1)->run, JOURNAL_QUEUE_MAX - 1u);
}

/* --- crashes --- */

struct picture {
    uint8_t a[70000], b[70000];
    size_t n_a, n_b;
};

static void path_of(const char *name, char path[FILE_PATH_MAX])
{
    cr_assert_eq(file_path(path, FILE_PATH_MAX, dir, name), 0);
}

static void take(struct picture *p)
{
    char path[FILE_PATH_MAX];

    path_of("journal.a", path);
    p->n_a = records_read(path, p->a, sizeof p->a);
    path_of("journal.b", path);
    p->n_b = records_read(path, p->b, sizeof p->b);
}

static void put(const struct picture *p)
{
    char path[FILE_PATH_MAX];

    path_of("journal.a", path);
    records_write(path, p->a, p->n_a);
    path_of("journal.b", path);
    records_write(path, p->b, p->n_b);
}

/* Between two pictures one file has changed: at every byte of the change, and with the rest of the
 * file old or lost, the journal says what it said before, or what it said after. */
static void crash_everywhere(const struct picture *before, const struct picture *after,
                             void (*expect)(void))
{
    static struct picture torn;
    bool a = memcmp(before->a, after->a, after->n_a) != 0;
    bool b = memcmp(before->b, after->b, after->n_b) != 0;
    const uint8_t *from = a ? before->a : before->b;
    const uint8_t *to = a ? after->a : after->b;
    size_t n = a ? after->n_a : after->n_b;
    size_t last = 0;

    cr_assert(a != b, "a change writes one of the two files");
    for (size_t i = 0; i < n; i++)
        if (from[i] != to[i])
            last = i;
    for (size_t cut = 0; cut <= last + 1; cut++) {
        torn = *before;
        memcpy(a ? torn.a : torn.b, to, cut);
        if (cut % 2 == 1)
            memset((a ? torn.a : torn.b) + cut, 0, n - cut);
        journal_close(&journal);
        put(&torn);
        open_journal();
        expect();
    }
}

static void expect_one_or_two(void)
{
    size_t n = journal_queued(journal);

    cr_assert(n == 1 || n == 2);
    cr_assert_eq(journal_at(journal, 0)->run, 1u);
    cr_assert(n == 1 || journal_at(journal, 1)->run == 2u);
}

static void expect_queued_or_running(void)
{
    const struct journal_running *r = journal_running(journal);

    if (r == NULL)
        QUEUE(1, 2);
    else
        QUEUE(2);
    cr_assert(r == NULL || r->assign->run == 1u);
}

Test(journal, a_crash_while_it_is_written_leaves_the_old_or_the_new)
{
    static struct picture before, after;

    add(1);
    take(&before);
    add(2);
    take(&after);
    crash_everywhere(&before, &after, expect_one_or_two);
    journal_close(&journal);
    put(&after);
    open_journal();
    take(&before);
    cr_assert_eq(journal_begin(journal, "boot", NOW), 0);
    take(&after);
    crash_everywhere(&before, &after, expect_queued_or_running);
}

/* What was synced is not overwritten by what was not: after soft changes the synced file is still
 * there, and a loss of the other one loses only them. */
Test(journal, soft_changes_never_cost_what_was_synced)
{
    static struct picture synced, now;
    char path[FILE_PATH_MAX];

    add(1);
    cr_assert_eq(journal_begin(journal, "boot", NOW), 0);
    take(&synced);
    for (int i = 0; i < 5; i++)
        journal_phase(journal, i % 2 == 0 ? PHASE_SETUP : PHASE_RESET, false);
    take(&now);
    bool a = memcmp(synced.a, now.a, now.n_a) != 0;
    bool b = memcmp(synced.b, now.b, now.n_b) != 0;
    cr_assert(a != b, "soft changes went to both files");
    journal_close(&journal);
    path_of(a ? "journal.a" : "journal.b", path);
    records_write(path, (const uint8_t *)"", 0);
    open_journal();
    cr_assert_not_null(journal_running(journal));
    cr_assert_eq(journal_running(journal)->phase, PHASE_FETCH);
}

Test(journal, both_files_damaged_are_set_aside)
{
    char path[FILE_PATH_MAX];

    add(1);
    journal_close(&journal);
    path_of("journal.a", path);
    records_write(path, (const uint8_t *)"nonsense", 8);
    path_of("journal.b", path);
    records_write(path, (const uint8_t *)"MKJOURN1", 8);
    open_journal();
    cr_assert_eq(journal_queued(journal), 0u);
    cr_assert_eq(journal_visit(journal), (uint64_t)(NOW / 1000000000) + 1);
    cr_assert_eq(records_names(dir, "damaged-"), 2u);
    add(4);
    again();
    QUEUE(4);
}

Test(journal, one_damaged_file_costs_nothing_older)
{
    static uint8_t bytes[70000];
    char path[FILE_PATH_MAX];
    size_t n;

    for (int file = 0; file < 2; file++) {
        again();
        path_of(file == 0 ? "journal.a" : "journal.b", path);
        n = records_read(path, bytes, sizeof bytes);
        bytes[30] ^= 1;
        journal_close(&journal);
        records_write(path, bytes, n);
        open_journal();
        cr_assert_lt(journal_visit(journal), 10u, "starts are counted on");
    }
}

Test(journal, a_later_form_is_refused_and_kept)
{
    struct journal_state state = {.visit = 5};
    struct buf out = BUF_INIT;
    struct diag *diag = diag_new(2);
    struct journal *other = NULL;
    char path[FILE_PATH_MAX];

    journal_close(&journal);
    cr_assert_eq(journal_state_make(&state, 100, &out), 0);
    /* An item of an unknown kind, with a true checksum: made by hand from the empty state's form.
     */
    uint64_t number;
    struct journal_state got;
    cr_assert_eq(journal_state_read(out.data, out.len, &number, &got), 0);
    cr_assert_eq(number, 100u);
    cr_assert_eq(got.visit, 5u);
    journal_state_fini(&got);
    out.data[24] = 77; /* the first item's tag */
    cr_assert_eq(journal_state_read(out.data, out.len, &number, &got), -ERR_CORRUPT);
    journal_state_seal(&out);
    cr_assert_eq(journal_state_read(out.data, out.len, &number, &got), -ERR_VERSION);
    path_of("journal.a", path);
    records_write(path, out.data, out.len);
    path_of("journal.b", path);
    records_write(path, out.data, out.len);
    cr_assert_eq(journal_open(dir, NOW, &other, diag), -ERR_VERSION);
    cr_assert_eq(records_names(dir, "damaged-"), 0u);
    cr_assert(strstr(diag_first(diag), "journal.a") != NULL);
    buf_fini(&out);
    diag_free(&diag);
    cr_assert_eq(file_remove(path), 0);
    path_of("journal.a", path);
    cr_assert_eq(file_remove(path), 0);
    open_journal();
}

Test(journal, no_bytes_confuse_it)
{
    struct journal_state state = {.visit = 5};
    struct journal_state got;
    struct buf out = BUF_INIT;
    uint64_t number;

    cr_assert_eq(journal_state_make(&state, 1, &out), 0);
    for (size_t i = 24; i < out.len; i++) {
        for (int v = 0; v < 256; v++) {
            uint8_t was = out.data[i];

            out.data[i] = (uint8_t)v;
            journal_state_seal(&out);
            (void)!journal_state_read(out.data, out.len, &number, &got);
            journal_state_fini(&got);
            out.data[i] = was;
        }
    }
    buf_fini(&out);
}

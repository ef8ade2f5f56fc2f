/* turn_test.c: the turn's transaction: all or nothing, savepoints, and what happens when the
 * disk fails. */
#include "common/diag.h"
#include "common/err.h"
#include "coordinator/store/blobs.h"
#include "coordinator/store/events.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/store.h"
#include "tests/unit/coordinator/store/fault_vfs.h"
#include "tests/unit/coordinator/store/store_help.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

static int set(struct box *box, const char *key, const char *value)
{
    return store_meta_set(box->store, key, value);
}

static void expect_meta(struct box *box, const char *key, const char *want)
{
    const char *value = NULL;
    int rc = store_meta_get(box->store, key, box->arena, &value);
    if (want == NULL) {
        cr_expect_eq(rc, -ERR_NOTFOUND, "%s is there: %s", key, value);
    } else {
        cr_assert_eq(rc, 0, "%s: %s", key, store_error(box->store));
        cr_expect_str_eq(value, want);
    }
}

Test(turn, is_dirty_from_the_first_write_to_the_commit)
{
    struct box box;
    box_open(&box);
    cr_expect(!store_dirty(box.store));
    expect_meta(&box, "fleet", NULL);
    cr_expect(!store_dirty(box.store), "a read makes nothing dirty");
    cr_assert_eq(set(&box, "fleet", "lab"), 0);
    cr_expect(store_dirty(box.store));
    expect_meta(&box, "fleet", "lab");
    uint64_t before = store_commits(box.store);
    box_commit(&box);
    cr_expect(!store_dirty(box.store));
    box_commit(&box);
    cr_expect_eq(store_commits(box.store), before + 1);
    box_close(&box);
}

Test(turn, is_one_sync_however_much_was_written)
{
    struct box box;
    fault_vfs_register();
    box_open_with(&box, FAULT_VFS, 0);
    (void)fault_vfs_syncs();
    for (int i = 0; i < 50; i++) {
        struct model_event event = {.kind = EVENT_OPERATOR, .text = "x"};
        int64_t id;
        cr_assert_eq(store_event_append(box.store, &event, &id), 0);
    }
    box_commit(&box);
    int syncs = fault_vfs_syncs();
    cr_expect(syncs >= 1, "what is committed must be on the disk");
    cr_expect(syncs <= 2, "%d syncs for one turn", syncs);
    box_close(&box);
}

Test(turn, rollback_forgets_it)
{
    struct box box;
    box_open(&box);
    cr_assert_eq(set(&box, "a", "1"), 0);
    store_rollback(box.store);
    cr_expect(!store_dirty(box.store));
    expect_meta(&box, "a", NULL);
    cr_assert_eq(set(&box, "a", "2"), 0);
    box_commit(&box);
    box_reopen(&box);
    expect_meta(&box, "a", "2");
    box_close(&box);
}

Test(turn, a_broken_rule_harms_only_its_own_statement)
{
    struct box box;
    box_open(&box);
    int64_t id = box_host(&box, "quad");
    struct model_host twin = {.name = "quad", .state = HOST_ACTIVE};
    cr_expect_eq(store_host_insert(box.store, &twin, &id), -ERR_EXISTS);
    cr_expect_eq(store_failed(box.store), 0);
    cr_expect(strlen(store_error(box.store)) > 0);
    box_commit(&box);
    box_reopen(&box);
    struct model_host host;
    cr_expect_eq(store_host_by_name(box.store, "quad", box.arena, &host), 0);
    box_close(&box);
}

/* --- savepoints --- */

Test(savepoint, revert_takes_back_its_own_alone)
{
    struct box box;
    box_open(&box);
    cr_assert_eq(set(&box, "before", "1"), 0);
    int sp = store_savepoint(box.store);
    cr_assert(sp > 0);
    cr_assert_eq(set(&box, "within", "1"), 0);
    cr_assert_eq(set(&box, "before", "2"), 0);
    store_revert(box.store, sp);
    expect_meta(&box, "within", NULL);
    expect_meta(&box, "before", "1");
    cr_assert_eq(set(&box, "after", "1"), 0);
    box_commit(&box);
    box_reopen(&box);
    expect_meta(&box, "before", "1");
    expect_meta(&box, "within", NULL);
    expect_meta(&box, "after", "1");
    box_close(&box);
}

Test(savepoint, release_keeps)
{
    struct box box;
    box_open(&box);
    int sp = store_savepoint(box.store);
    cr_assert_eq(set(&box, "a", "1"), 0);
    cr_assert_eq(store_release(box.store, sp), 0);
    box_commit(&box);
    box_reopen(&box);
    expect_meta(&box, "a", "1");
    box_close(&box);
}

Test(savepoint, nests)
{
    struct box box;
    box_open(&box);
    int outer = store_savepoint(box.store);
    cr_assert_eq(set(&box, "outer", "1"), 0);
    int inner = store_savepoint(box.store);
    cr_expect(inner > outer);
    cr_assert_eq(set(&box, "inner", "1"), 0);
    store_revert(box.store, inner);
    int second = store_savepoint(box.store);
    cr_assert_eq(set(&box, "second", "1"), 0);
    cr_assert_eq(store_release(box.store, second), 0);
    cr_assert_eq(store_release(box.store, outer), 0);
    expect_meta(&box, "outer", "1");
    expect_meta(&box, "inner", NULL);
    expect_meta(&box, "second", "1");

    /* The outer one takes what the inner one kept. */
    outer = store_savepoint(box.store);
    inner = store_savepoint(box.store);
    cr_assert_eq(set(&box, "deep", "1"), 0);
    cr_assert_eq(store_release(box.store, inner), 0);
    store_revert(box.store, outer);
    expect_meta(&box, "deep", NULL);

    /* Ending the outer one ends the inner ones. */
    outer = store_savepoint(box.store);
    cr_assert_eq(set(&box, "kept", "1"), 0);
    inner = store_savepoint(box.store);
    cr_assert_eq(set(&box, "kept-too", "1"), 0);
    cr_assert_eq(store_release(box.store, outer), 0);
    box_commit(&box);
    box_reopen(&box);
    expect_meta(&box, "kept-too", "1");
    box_close(&box);
}

Test(savepoint, costs_nothing_until_something_is_written)
{
    struct box box;
    box_open(&box);
    int sp = store_savepoint(box.store);
    int inner = store_savepoint(box.store);
    cr_expect(!store_dirty(box.store));
    store_revert(box.store, inner);
    cr_assert_eq(store_release(box.store, sp), 0);
    cr_expect(!store_dirty(box.store));

    /* One that was promised before the first write holds all the same. */
    sp = store_savepoint(box.store);
    inner = store_savepoint(box.store);
    cr_assert_eq(set(&box, "a", "1"), 0);
    store_revert(box.store, inner);
    expect_meta(&box, "a", NULL);
    cr_assert_eq(set(&box, "a", "2"), 0);
    cr_assert_eq(store_release(box.store, sp), 0);
    box_commit(&box);
    expect_meta(&box, "a", "2");
    box_close(&box);
}

Test(savepoint, has_an_end)
{
    struct box box;
    box_open(&box);
    int first = store_savepoint(box.store);
    int rc = first;
    for (int i = 0; i < 40 && rc > 0; i++) {
        rc = store_savepoint(box.store);
    }
    cr_expect_eq(rc, -ERR_LIMIT);
    store_revert(box.store, first);
    box_close(&box);
}

/* --- when the disk fails --- */

#define FILL 5000

/* Writes events until one fails; gives its code. */
static int fill(struct box *box)
{
    char text[3000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (int i = 0; i < FILL; i++) {
        struct model_event event = {.kind = EVENT_OPERATOR, .text = text};
        int64_t id;
        int rc = store_event_append(box->store, &event, &id);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

Test(failure, a_full_database_loses_the_turn_and_says_so)
{
    struct box box;
    box_open(&box);
    cr_assert_eq(set(&box, "kept", "1"), 0);
    box_commit(&box);
    cr_assert_eq(store_limit_pages(box.store, 200), 0);
    cr_assert_eq(set(&box, "lost", "1"), 0);
    int sp = store_savepoint(box.store);
    cr_expect_eq(fill(&box), -ERR_FULL);
    cr_expect_eq(store_failed(box.store), -ERR_FULL);
    cr_expect(strstr(store_error(box.store), "full") != NULL, "%s", store_error(box.store));
    store_revert(box.store, sp);
    /* The turn is lost, whatever the savepoint says. */
    cr_expect_eq(set(&box, "more", "1"), -ERR_FULL);
    cr_expect_eq(store_commit(box.store, box.diag), -ERR_FULL);
    cr_expect(strstr(diag_first(box.diag), "full") != NULL, "%s", diag_first(box.diag));
    cr_expect_eq(store_failed(box.store), 0);
    cr_expect(!store_dirty(box.store));
    expect_meta(&box, "kept", "1");
    expect_meta(&box, "lost", NULL);
    /* With room again it goes on. */
    cr_assert_eq(store_limit_pages(box.store, 0), 0);
    cr_assert_eq(set(&box, "later", "1"), 0);
    box_commit(&box);
    box_reopen(&box);
    expect_meta(&box, "kept", "1");
    expect_meta(&box, "lost", NULL);
    expect_meta(&box, "later", "1");
    box_close(&box);
}

Test(failure, rollback_after_a_full_database)
{
    struct box box;
    box_open(&box);
    cr_assert_eq(store_limit_pages(box.store, 200), 0);
    cr_assert_eq(set(&box, "lost", "1"), 0);
    cr_expect_eq(fill(&box), -ERR_FULL);
    store_rollback(box.store);
    cr_expect_eq(store_failed(box.store), 0);
    expect_meta(&box, "lost", NULL);
    cr_assert_eq(set(&box, "kept", "1"), 0);
    box_commit(&box);
    box_close(&box);
}

static void commit_fails(enum fault fault, int code)
{
    struct box box;
    fault_vfs_register();
    box_open_with(&box, FAULT_VFS, 0);
    cr_assert_eq(set(&box, "kept", "1"), 0);
    box_commit(&box);
    cr_assert_eq(set(&box, "lost", "1"), 0);
    fault_vfs_set(fault, 0);
    cr_expect_eq(store_commit(box.store, box.diag), -code, "%s", diag_first(box.diag));
    cr_expect_eq(diag_errors(box.diag), 1);
    fault_vfs_set(FAULT_NONE, 0);
    cr_expect(!store_dirty(box.store));
    cr_expect_eq(store_failed(box.store), 0);
    expect_meta(&box, "kept", "1");
    expect_meta(&box, "lost", NULL);
    cr_assert_eq(set(&box, "later", "1"), 0);
    box_commit(&box);
    box_reopen(&box);
    expect_meta(&box, "kept", "1");
    expect_meta(&box, "lost", NULL);
    expect_meta(&box, "later", "1");
    box_close(&box);
}

Test(failure, no_space_at_the_commit)
{
    commit_fails(FAULT_WRITE_FULL, ERR_FULL);
}

Test(failure, a_write_fails_at_the_commit)
{
    commit_fails(FAULT_WRITE_IO, ERR_IO);
}

Test(failure, a_sync_fails_at_the_commit)
{
    commit_fails(FAULT_SYNC_IO, ERR_IO);
}

static int pass(const struct model_event *event, void *arg)
{
    (void)event;
    (void)arg;
    return 0;
}

Test(failure, a_database_that_cannot_be_read)
{
    struct box box;
    struct store *store = NULL;
    size_t count = 0;
    fault_vfs_register();
    box_open_with(&box, FAULT_VFS, 0);
    cr_assert_eq(fill(&box), 0); /* more than is kept in memory */
    box_commit(&box);
    /* A read that fails, beside a write that is not yet committed: who read may have taken
     * nothing for all. */
    cr_assert_eq(set(&box, "lost", "1"), 0);
    fault_vfs_set(FAULT_READ_IO, 0);
    cr_expect_eq(store_events_each(box.store, 0, 0, 0, pass, NULL), -ERR_IO);
    cr_expect_eq(store_failed(box.store), -ERR_IO);
    cr_expect_eq(store_commit(box.store, box.diag), -ERR_IO);
    fault_vfs_set(FAULT_NONE, 0);
    expect_meta(&box, "lost", NULL);
    fault_vfs_set(FAULT_READ_IO, 0);
    cr_expect_eq(store_events_prune(box.store, 1, &count), -ERR_IO);
    cr_expect_eq(store_failed(box.store), -ERR_IO);
    fault_vfs_set(FAULT_NONE, 0);
    cr_expect_eq(store_commit(box.store, box.diag), -ERR_IO);
    cr_expect_eq(store_events_prune(box.store, 1, &count), 0);
    cr_expect_eq(count, FILL);
    box_commit(&box);
    store_close(&box.store);
    fault_vfs_set(FAULT_READ_IO, 0);
    diag_clear(box.diag);
    cr_expect_eq(store_open(box.path, FAULT_VFS, 0, &store, box.diag), -ERR_IO);
    cr_expect_null(store);
    cr_expect(strstr(diag_first(box.diag), "I/O") != NULL, "%s", diag_first(box.diag));
    fault_vfs_set(FAULT_NONE, 0);
    box_close(&box);
}

Test(failure, a_database_that_another_holds_is_busy_not_lost)
{
    struct box box;
    struct store *other = NULL;
    box_open(&box);
    cr_assert_eq(store_open(box.path, NULL, 0, &other, box.diag), 0);
    cr_assert_eq(store_meta_set(other, "theirs", "1"), 0);
    cr_expect_eq(set(&box, "ours", "1"), -ERR_BUSY);
    cr_expect_eq(store_failed(box.store), 0);
    cr_expect(!store_dirty(box.store));
    cr_assert_eq(store_commit(other, box.diag), 0);
    cr_expect_eq(set(&box, "ours", "1"), 0);
    box_commit(&box);
    expect_meta(&box, "theirs", "1");
    store_close(&other);
    box_close(&box);
}

/* --- callbacks that use the store --- */

struct nested {
    struct box *box;
    int seen;
    int inner;
};

static int count_inner(const struct model_host *host, void *arg)
{
    struct nested *n = arg;
    (void)host;
    n->inner++;
    return 0;
}

static int count_outer(const struct model_host *host, void *arg)
{
    struct nested *n = arg;
    char name[80];
    snprintf(name, sizeof(name), "%s", host->name);
    n->seen++;
    cr_assert_eq(store_hosts_each(n->box->store, count_inner, n), 0);
    cr_expect_str_eq(host->name, name, "the row is lent for the whole callback");
    return 0;
}

static int stop(const struct model_host *host, void *arg)
{
    int *seen = arg;
    (void)host;
    ++*seen;
    return 17;
}

Test(each, may_be_nested_and_stopped)
{
    struct box box;
    box_open(&box);
    box_host(&box, "a");
    box_host(&box, "b");
    box_host(&box, "c");
    struct nested n = {&box, 0, 0};
    cr_expect_eq(store_hosts_each(box.store, count_outer, &n), 0);
    cr_expect_eq(n.seen, 3);
    cr_expect_eq(n.inner, 9);
    int seen = 0;
    cr_expect_eq(store_hosts_each(box.store, stop, &seen), 17);
    cr_expect_eq(seen, 1);
    box_commit(&box);
    box_close(&box);
}

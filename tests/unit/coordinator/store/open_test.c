/* open_test.c: opening the database: new, again, newer, foreign, damaged, read only; and steps
 * of the schema. */
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/mem.h"
#include "coordinator/store/db.h"
#include "coordinator/store/hosts.h"
#include "coordinator/store/migrate.h"
#include "coordinator/store/store.h"
#include "tests/unit/coordinator/store/store_help.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

static void expect_refused(struct box *box, unsigned flags, int code, const char *part)
{
    struct store *store = NULL;
    diag_clear(box->diag);
    cr_expect_eq(store_open(box->path, NULL, flags, &store, box->diag), -code);
    cr_expect_null(store);
    cr_expect(strstr(diag_first(box->diag), part) != NULL, "said: %s", diag_first(box->diag));
    cr_expect_eq(diag_errors(box->diag), 1);
}

static void ask(struct store *store, const char *sql, const char *want)
{
    char got[128];
    cr_assert_eq(db_ask(store, sql, got, sizeof(got)), 0, "%s", store_error(store));
    cr_expect_str_eq(got, want, "%s gives %s", sql, got);
}

Test(open, makes_every_table_from_nothing)
{
    struct box box;
    box_open(&box);
    cr_expect_eq(db_prepare_all(box.store), 0, "%s", store_error(box.store));
    char version[16];
    snprintf(version, sizeof(version), "%d", store_schema_version());
    ask(box.store, "PRAGMA user_version", version);
    ask(box.store, "PRAGMA journal_mode", "wal");
    ask(box.store, "PRAGMA synchronous", "2");
    ask(box.store, "PRAGMA foreign_keys", "1");
    ask(box.store, "PRAGMA foreign_key_check", "");
    cr_expect(!store_dirty(box.store));
    box_close(&box);
}

Test(open, keeps_what_was_committed_and_nothing_else)
{
    struct box box;
    struct model_host host;
    box_open(&box);
    int64_t id = box_host(&box, "kept");
    box_commit(&box);
    box_host(&box, "lost");
    box_reopen(&box);
    cr_expect_eq(store_host_by_name(box.store, "kept", box.arena, &host), 0);
    cr_expect_eq(host.id, id);
    cr_expect_eq(store_host_by_name(box.store, "lost", box.arena, &host), -ERR_NOTFOUND);
    box_close(&box);
}

Test(open, refuses_a_newer_schema)
{
    struct box box;
    box_open(&box);
    cr_assert_eq(db_exec(box.store, "PRAGMA user_version = 9999"), 0);
    store_close(&box.store);
    expect_refused(&box, 0, ERR_VERSION, "made by a newer makespand");
    expect_refused(&box, STORE_READ_ONLY, ERR_VERSION, "9999");
    box_close(&box);
}

Test(open, refuses_a_database_of_another_program)
{
    struct box box;
    box_open(&box);
    cr_assert_eq(db_exec(box.store, "PRAGMA application_id = 77"), 0);
    store_close(&box.store);
    expect_refused(&box, 0, ERR_CONFLICT, "another program");

    cr_assert_eq(file_remove(box.path), 0);
    struct store *store = NULL;
    cr_assert_eq(db_open(box.path, NULL, 0, &store, box.diag), 0);
    cr_assert_eq(db_exec(store, "CREATE TABLE theirs (x)"), 0);
    store_close(&store);
    expect_refused(&box, 0, ERR_CONFLICT, "another program");
    box_close(&box);
}

Test(open, says_what_is_wrong_with_a_file_that_is_none)
{
    struct box box;
    box_open(&box);
    store_close(&box.store);
    char junk[8192];
    memset(junk, 'x', sizeof(junk));
    cr_assert_eq(file_write_atomic(box.path, junk, sizeof(junk), 0600), 0);
    expect_refused(&box, 0, ERR_CORRUPT, "not a database");
    box_close(&box);
}

/* Overwrites pages of a database with hosts in it, from the given one (counted from the end when
 * below 0). */
static void damage(struct box *box, int64_t from)
{
    struct file *file = NULL;
    uint64_t size = 0;
    uint8_t junk[4096];
    memset(junk, 0x5a, sizeof(junk));
    for (int i = 0; i < 200; i++) {
        char name[16];
        snprintf(name, sizeof(name), "host-%d", i);
        box_host(box, name);
    }
    box_commit(box);
    store_close(&box->store); /* moves all pages into the file */
    cr_assert_eq(file_open(box->path, FILE_READ | FILE_WRITE, 0600, &file), 0);
    cr_assert_eq(file_size(file, &size), 0);
    uint64_t pages = size / sizeof(junk);
    cr_assert(pages > 8);
    for (uint64_t page = from < 0 ? pages - (uint64_t)-from : (uint64_t)from; page < pages;
         page++) {
        cr_assert_eq(file_write_at(file, page * sizeof(junk), junk, sizeof(junk)), 0);
    }
    file_close(&file);
}

Test(open, finds_damaged_pages)
{
    struct box box;
    box_open(&box);
    damage(&box, 2);
    expect_refused(&box, 0, ERR_CORRUPT,
                   "the database is damaged, and a backup must be put in its place");
    box_close(&box);
}

Test(open, finds_a_damaged_page_that_nobody_reads)
{
    struct box box;
    box_open(&box);
    damage(&box, -1);
    expect_refused(&box, 0, ERR_CORRUPT,
                   "the database is damaged, and a backup must be put in its place");
    box_close(&box);
}

Test(open, names_a_folder_that_is_not_there)
{
    struct box box;
    box_open(&box);
    store_close(&box.store);
    snprintf(box.path, sizeof(box.path), "%s/none/makespan.db", box.dir);
    expect_refused(&box, 0, ERR_IO, "none/makespan.db: the database cannot be opened");
    box_close(&box);
}

Test(open, read_only_reads_beside_the_writer_and_writes_nothing)
{
    struct box box;
    struct store *reader = NULL;
    struct model_host host;
    box_open(&box);
    box_host(&box, "first");
    box_commit(&box);
    cr_assert_eq(store_open(box.path, NULL, STORE_READ_ONLY, &reader, box.diag), 0, "%s",
                 diag_first(box.diag));
    cr_expect_eq(store_host_by_name(reader, "first", box.arena, &host), 0);
    box_host(&box, "second");
    cr_expect_eq(store_host_by_name(reader, "second", box.arena, &host), -ERR_NOTFOUND,
                 "saw what is not committed");
    box_commit(&box);
    cr_expect_eq(store_host_by_name(reader, "second", box.arena, &host), 0);
    int64_t id = 0;
    struct model_host third = {.name = "third", .state = HOST_ACTIVE};
    cr_expect_eq(store_host_insert(reader, &third, &id), -ERR_STATE);
    cr_expect(!store_dirty(reader));
    cr_expect(strstr(store_error(reader), "opened to be read") != NULL);
    store_close(&reader);
    box_close(&box);
}

Test(open, read_only_needs_the_file_and_its_schema)
{
    struct box box;
    box_open(&box);
    store_close(&box.store);
    char path[160];
    snprintf(path, sizeof(path), "%s", box.path);
    snprintf(box.path, sizeof(box.path), "%s/empty.db", box.dir);
    expect_refused(&box, STORE_READ_ONLY, ERR_IO, "cannot be opened");
    cr_assert_eq(file_write_atomic(box.path, "", 0, 0600), 0);
    expect_refused(&box, STORE_READ_ONLY, ERR_NOTFOUND, "start makespand first");
    box_close(&box);
}

Test(open, alone_needs_no_shared_memory)
{
    struct box box;
    char shm[192];
    box_open_with(&box, NULL, STORE_ALONE);
    box_host(&box, "h");
    box_commit(&box);
    snprintf(shm, sizeof(shm), "%s-shm", box.path);
    cr_expect(!file_exists(shm));
    ask(box.store, "PRAGMA journal_mode", "wal");
    store_close(&box.store);
    cr_assert_eq(store_open(box.path, NULL, STORE_ALONE, &box.store, box.diag), 0, "%s",
                 diag_first(box.diag));
    struct model_host host;
    cr_expect_eq(store_host_by_name(box.store, "h", box.arena, &host), 0);
    cr_expect(!file_exists(shm));
    box_close(&box);
}

/* --- steps of the schema --- */

static const struct migration TWO[] = {
    {1, "CREATE TABLE a (x INTEGER)"},
    {1, "INSERT INTO a VALUES (41)"},
    {2, "ALTER TABLE a ADD COLUMN y INTEGER NOT NULL DEFAULT 7"},
};

static const struct migration BROKEN[] = {
    {1, "CREATE TABLE a (x INTEGER)"},
    {1, "INSERT INTO a VALUES (41)"},
    {2, "CREATE TABLE b (x INTEGER)"},
    {2, "INSERT INTO nowhere VALUES (1)"},
};

static struct store *raw(struct box *box)
{
    struct store *store = NULL;
    store_close(&box->store);
    snprintf(box->path, sizeof(box->path), "%s/it's.db", box->dir);
    cr_assert_eq(db_open(box->path, NULL, 0, &store, box->diag), 0);
    return store;
}

Test(migrate, makes_each_step_once)
{
    struct box box;
    box_open(&box);
    struct store *store = raw(&box);
    cr_assert_eq(migrate_run(store, TWO, 2, box.diag), 0, "%s", diag_first(box.diag));
    ask(store, "PRAGMA user_version", "1");
    cr_assert_eq(migrate_run(store, TWO, 3, box.diag), 0, "%s", diag_first(box.diag));
    ask(store, "PRAGMA user_version", "2");
    ask(store, "SELECT x + y FROM a", "48");
    cr_assert_eq(migrate_run(store, TWO, 3, box.diag), 0);
    ask(store, "SELECT count(*) FROM a", "1");
    store_close(&store);
    box_close(&box);
}

Test(migrate, leaves_a_copy_of_what_was_there)
{
    struct box box;
    box_open(&box);
    struct store *store = raw(&box);
    char copy[192];
    cr_assert_eq(migrate_run(store, TWO, 2, box.diag), 0);
    snprintf(copy, sizeof(copy), "%s.before-0", box.path);
    cr_expect(!file_exists(copy), "a new database has nothing to be copied");
    cr_assert_eq(migrate_run(store, TWO, 3, box.diag), 0, "%s", diag_first(box.diag));
    snprintf(copy, sizeof(copy), "%s.before-1", box.path);
    cr_assert(file_exists(copy));
    /* A second migration from the same version does not touch the first copy. */
    cr_assert_eq(
        db_exec(store, "ALTER TABLE a DROP COLUMN y; UPDATE a SET x = 5; PRAGMA user_version = 1"),
        0);
    cr_assert_eq(migrate_run(store, TWO, 3, box.diag), 0, "%s", diag_first(box.diag));
    store_close(&store);
    cr_assert_eq(db_open(copy, NULL, 0, &store, box.diag), 0);
    ask(store, "SELECT x FROM a", "41");
    ask(store, "PRAGMA user_version", "1");
    store_close(&store);
    snprintf(copy, sizeof(copy), "%s.before-1.2", box.path);
    cr_assert_eq(db_open(copy, NULL, STORE_READ_ONLY, &store, box.diag), 0, "%s",
                 diag_first(box.diag));
    ask(store, "SELECT x FROM a", "5");
    store_close(&store);
    box_close(&box);
}

Test(migrate, a_step_that_fails_leaves_nothing_of_itself)
{
    struct box box;
    box_open(&box);
    struct store *store = raw(&box);
    cr_expect_eq(migrate_run(store, BROKEN, 4, box.diag), -ERR_SYS);
    cr_expect(strstr(diag_first(box.diag), "could not be brought to version 2") != NULL, "%s",
              diag_first(box.diag));
    cr_expect(strstr(diag_first(box.diag), "nowhere") != NULL, "%s", diag_first(box.diag));
    ask(store, "PRAGMA user_version", "1");
    ask(store, "SELECT x FROM a", "41");
    ask(store, "SELECT count(*) FROM sqlite_master WHERE name = 'b'", "0");
    store_close(&store);
    box_close(&box);
}

Test(migrate, versions_of_the_table_rise_by_one)
{
    size_t n = 0;
    const struct migration *steps = migrate_table(&n);
    cr_assert(n > 0);
    cr_expect_eq(steps[0].version, 1);
    for (size_t i = 1; i < n; i++) {
        cr_expect(steps[i].version == steps[i - 1].version ||
                  steps[i].version == steps[i - 1].version + 1);
    }
}

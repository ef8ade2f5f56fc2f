/* open.c: opening the database: what is checked before the first row is read, and how SQLite is
 * set up. */
#include "common/diag.h"
#include "common/err.h"
#include "coordinator/store/db.h"
#include "coordinator/store/migrate.h"
#include "coordinator/store/store.h"

#include <stdio.h>
#include <string.h>

/* "MKSP" in the file's header: a database of another program is not touched. */
#define APPLICATION_ID "1296782160"

static int say(struct store *store, struct diag *diag, int code)
{
    const char *what = "";
    if (code == -ERR_CORRUPT) {
        what = "the database is damaged, and a backup must be put in its place: ";
    }
    return diag_error(diag, code, "%s%s", what, store_error(store));
}

/* Whether the file is ours, or empty. */
static int check_owner(struct store *store, struct diag *diag)
{
    char id[32];
    char tables[32];
    int rc = db_ask(store, "PRAGMA application_id", id, sizeof(id));
    if (rc == 0) {
        rc = db_ask(store, "SELECT count(*) FROM sqlite_master", tables, sizeof(tables));
    }
    if (rc < 0) {
        return say(store, diag, rc);
    }
    if (strcmp(id, APPLICATION_ID) == 0) {
        return 0;
    }
    if (strcmp(id, "0") != 0 || strcmp(tables, "0") != 0) {
        return diag_error(diag, ERR_CONFLICT, "%s: this is a database of another program",
                          db_path(store));
    }
    if (db_read_only(store)) {
        return diag_error(diag, ERR_NOTFOUND, "%s: the database is empty: start makespand first",
                          db_path(store));
    }
    rc = db_exec(store, "PRAGMA application_id = " APPLICATION_ID);
    return rc < 0 ? say(store, diag, rc) : 0;
}

static int check_pages(struct store *store, struct diag *diag)
{
    char found[256];
    int rc = db_ask(store, "PRAGMA quick_check(1)", found, sizeof(found));
    if (rc == 0 && strcmp(found, "ok") != 0) {
        rc = db_fail(store, -ERR_CORRUPT, "%s: %s", db_path(store), found);
    }
    return rc < 0 ? say(store, diag, rc) : 0;
}

/* Before anything is read: the first read decides whether memory is shared. */
static int set_alone(struct store *store, struct diag *diag)
{
    char mode[32];
    int rc = db_ask(store, "PRAGMA locking_mode = EXCLUSIVE", mode, sizeof(mode));
    return rc < 0 ? say(store, diag, rc) : 0;
}

static int set_up(struct store *store, struct diag *diag)
{
    char mode[32];
    int rc = 0;
    if (!db_read_only(store)) {
        rc = db_ask(store, "PRAGMA journal_mode = WAL", mode, sizeof(mode));
        if (rc == 0 && strcmp(mode, "wal") != 0) {
            return diag_error(diag, ERR_UNSUP,
                              "%s: the file system cannot hold the database (journal mode %s)",
                              db_path(store), mode);
        }
    }
    if (rc == 0) {
        rc = db_exec(
            store,
            "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;"
            "PRAGMA cache_size = -2048; PRAGMA trusted_schema = OFF");
    }
    if (rc == 0 && !db_read_only(store)) {
        char limit[32];
        rc = db_ask(store, "PRAGMA journal_size_limit = 67108864", limit, sizeof(limit));
    }
    return rc < 0 ? say(store, diag, rc) : 0;
}

int store_open(const char *path, const char *vfs, unsigned flags, struct store **out,
               struct diag *diag)
{
    struct store *store = NULL;
    int rc = db_open(path, vfs, flags, &store, diag);
    if (rc == 0 && (flags & STORE_ALONE) != 0) {
        rc = set_alone(store, diag);
    }
    if (rc == 0) {
        rc = check_owner(store, diag);
    }
    if (rc == 0) {
        rc = set_up(store, diag);
    }
    if (rc == 0 && (flags & STORE_READ_ONLY) == 0) {
        rc = check_pages(store, diag);
    }
    if (rc == 0) {
        size_t n = 0;
        const struct migration *steps = migrate_table(&n);
        rc = migrate_run(store, steps, n, diag);
    }
    if (rc < 0) {
        store_close(&store);
    }
    *out = store;
    return rc;
}

/* migrate.c: steps from one version of the schema to the next. Owns the number in user_version;
 * knows no table. */
#include "coordinator/store/migrate.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/log.h"
#include "common/num.h"
#include "coordinator/store/db.h"
#include "coordinator/store/store.h"

#include <assert.h>
#include <stdio.h>

static const struct migration steps_of_def[] = {
#define MIGRATION(version, text) {version, text},
#include "coordinator/store/migrations.def"
#undef MIGRATION
};

#define COPIES_MAX 9

const struct migration *migrate_table(size_t *n)
{
    *n = ARRAY_LEN(steps_of_def);
    return steps_of_def;
}

int store_schema_version(void)
{
    return steps_of_def[ARRAY_LEN(steps_of_def) - 1].version;
}

/* All statements of one version and the new number, or nothing. *at is moved behind them. */
static int make_step(struct store *store, const struct migration *steps, size_t n, size_t *at)
{
    char number[48];
    int version = steps[*at].version;
    int rc = db_exec(store, "BEGIN IMMEDIATE");
    for (; rc == 0 && *at < n && steps[*at].version == version; (*at)++) {
        rc = db_exec(store, steps[*at].sql);
    }
    if (rc == 0) {
        snprintf(number, sizeof(number), "PRAGMA user_version = %d", version);
        rc = db_exec(store, number);
    }
    if (rc == 0) {
        rc = db_exec(store, "COMMIT");
    }
    if (rc < 0) {
        char text[512];
        snprintf(text, sizeof(text), "%s", store_error(store));
        /* A failure may have rolled back already: then this one has nothing to do and says so. */
        int undone = db_exec(store, "ROLLBACK");
        return db_fail(store, rc, "%s%s", text, undone < 0 ? "" : "; nothing was changed");
    }
    return 0;
}

/* Leaves a copy beside the database, under the first name that is free. */
static int make_copy(struct store *store, int version)
{
    struct buf sql = BUF_INIT;
    int rc = -ERR_SYS; /* that is how SQLite says that the file is there */
    for (int i = 1; i <= COPIES_MAX && rc == -ERR_SYS; i++) {
        buf_reset(&sql);
        buf_add_str(&sql, "VACUUM INTO '");
        for (const char *p = db_path(store); *p != '\0'; p++) {
            if (*p == '\'') {
                buf_add_char(&sql, '\'');
            }
            buf_add_char(&sql, *p);
        }
        buf_printf(&sql, ".before-%d", version);
        if (i > 1) {
            buf_printf(&sql, ".%d", i);
        }
        buf_add_char(&sql, '\'');
        rc = sql.err != 0 ? sql.err : db_exec(store, buf_str(&sql));
    }
    buf_fini(&sql);
    return rc;
}

int migrate_run(struct store *store, const struct migration *steps, size_t n, struct diag *diag)
{
    char text[32];
    int64_t version = 0;
    int rc = db_ask(store, "PRAGMA user_version", text, sizeof(text));
    if (rc < 0 || num_parse_i64(text, &version) < 0) {
        return diag_error(diag, rc < 0 ? rc : ERR_CORRUPT, "%s", store_error(store));
    }
    int newest = steps[n - 1].version;
    if (version > newest) {
        return diag_error(diag, ERR_VERSION,
                          "%s: the database has version %s, made by a newer makespand; this one "
                          "knows %d and earlier",
                          db_path(store), text, newest);
    }
    if (db_read_only(store) && version < newest) {
        return diag_error(
            diag, ERR_VERSION,
            "%s: the database has version %s, and %d is needed: start makespand first",
            db_path(store), text, newest);
    }
    size_t at = 0;
    while (at < n && steps[at].version <= version) {
        at++;
    }
    if (at == n) {
        return 0;
    }
    if (version > 0) {
        log_info("%s: migrating the database from version %s to %d", db_path(store), text, newest);
        rc = make_copy(store, (int)version);
        if (rc < 0) {
            return diag_error(
                diag, rc, "the database was not migrated, since no copy could be made before: %s",
                store_error(store));
        }
    }
    while (rc == 0 && at < n) {
        assert(steps[at].version == (int)version + 1);
        version = steps[at].version;
        rc = make_step(store, steps, n, &at);
    }
    return rc < 0 ? diag_error(diag, rc, "the database could not be brought to version %d: %s",
                               (int)version, store_error(store))
                  : 0;
}

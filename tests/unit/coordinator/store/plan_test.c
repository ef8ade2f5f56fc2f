/* plan_test.c: how SQLite answers the store's statements: none reads a table from end to end
 * that grows with every sweep. */
#include "common/attr.h"
#include "coordinator/store/store.h"
#include "tests/unit/coordinator/store/store_help.h"

#include <criterion/criterion.h>

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    const char *sql;
} STATEMENTS[] = {
#define STATEMENT(name, text) {#name, text},
#include "coordinator/store/statements.def"
#undef STATEMENT
};

/* Tables that grow, and the names under which statements join them. */
static const char *const GROWING[] = {"run",    "attempt", "intake", "mark", "fact",
                                      "sample", "output",  "event",  "cell", "comparison",
                                      "block",  "r",       "a",      "m",    "f"};

/* Indices that hold only the few rows which are open. */
static const char *const SHORT[] = {"USING INDEX run_held", "USING INDEX intake_open",
                                    "USING INDEX sweep_host_open"};

static bool reads_all(const char *step)
{
    for (size_t i = 0; i < ARRAY_LEN(SHORT); i++) {
        if (strstr(step, SHORT[i]) != NULL) {
            return false;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(GROWING); i++) {
        char want[32];
        size_t n = (size_t)snprintf(want, sizeof(want), "SCAN %s", GROWING[i]);
        if (strncmp(step, want, n) == 0 && (step[n] == '\0' || step[n] == ' ')) {
            return true;
        }
    }
    return false;
}

Test(plan, no_statement_reads_a_growing_table_from_end_to_end)
{
    struct box box;
    sqlite3 *db = NULL;
    size_t steps = 0;
    box_open(&box);
    cr_assert_eq(sqlite3_open(box.path, &db), SQLITE_OK);
    for (size_t i = 0; i < ARRAY_LEN(STATEMENTS); i++) {
        char sql[4096];
        sqlite3_stmt *q = NULL;
        snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", STATEMENTS[i].sql);
        cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK, "%s: %s",
                     STATEMENTS[i].name, sqlite3_errmsg(db));
        while (sqlite3_step(q) == SQLITE_ROW) {
            const char *step = (const char *)sqlite3_column_text(q, 3);
            cr_expect(!reads_all(step), "%s: %s", STATEMENTS[i].name, step);
            if (strcmp(STATEMENTS[i].name, "RUN_NEXT") == 0) { /* not from the first block on */
                cr_expect(strstr(step, "block>?") != NULL, "%s", step);
            }
            steps++;
        }
        sqlite3_finalize(q);
    }
    cr_expect(steps > 100);
    sqlite3_close(db);
    box_close(&box);
}

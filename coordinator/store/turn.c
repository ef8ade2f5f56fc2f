/* turn.c: the turn's transaction and its savepoints: begun by the first write, ended by one
 * commit. */
#include "common/diag.h"
#include "common/err.h"
#include "coordinator/store/db.h"
#include "coordinator/store/store.h"

#include <assert.h>
#include <stdio.h>

#define SAVEPOINTS_MAX 16

bool store_dirty(const struct store *store)
{
    return db_turn_of(store)->begun;
}

int store_failed(const struct store *store)
{
    return db_turn_of(store)->failed;
}

uint64_t store_commits(const struct store *store)
{
    return db_turn_of(store)->commits;
}

static void end_turn(struct turn *turn)
{
    turn->begun = false;
    turn->failed = 0;
    turn->made = 0;
}

void store_rollback(struct store *store)
{
    struct turn *turn = db_turn(store);
    assert(turn->depth == 0);
    if (turn->begun && db_in_transaction(store)) {
        /* Whatever it answers, the transaction is over: what SQLite cannot undo now, it undoes
         * when it reads the file again. */
        int rc = db_exec(store, "ROLLBACK");
        (void)rc;
    }
    end_turn(turn);
}

int store_commit(struct store *store, struct diag *diag)
{
    struct turn *turn = db_turn(store);
    assert(turn->depth == 0);
    if (!turn->begun) {
        return 0;
    }
    int rc = turn->failed != 0 ? turn->failed : db_exec(store, "COMMIT");
    if (rc == 0) {
        turn->commits += db_total_changes(store) != turn->before;
        end_turn(turn);
        return 0;
    }
    rc = diag_error(diag, rc, "%s", store_error(store));
    store_rollback(store);
    return rc;
}

int turn_begin(struct store *store)
{
    struct turn *turn = db_turn(store);
    if (turn->failed != 0) {
        return turn->failed;
    }
    if (db_read_only(store)) {
        return db_fail(store, -ERR_STATE, "%s: opened to be read", db_path(store));
    }
    int rc = 0;
    if (!turn->begun) {
        rc = db_exec(store, "BEGIN IMMEDIATE");
        if (rc == 0) {
            turn->begun = true;
            turn->before = db_total_changes(store);
        }
    }
    while (rc == 0 && turn->made < turn->depth) {
        char sql[32];
        snprintf(sql, sizeof(sql), "SAVEPOINT s%d", turn->made + 1);
        rc = db_exec(store, sql);
        if (rc == 0) {
            turn->made++;
        }
    }
    return rc;
}

/* --- savepoints --- */

int store_savepoint(struct store *store)
{
    struct turn *turn = db_turn(store);
    if (turn->depth == SAVEPOINTS_MAX) {
        return db_fail(store, -ERR_LIMIT, "more than %d savepoints", SAVEPOINTS_MAX);
    }
    return ++turn->depth;
}

/* The savepoint and those within it are over. */
static void close_savepoint(struct turn *turn, int handle)
{
    turn->depth = handle - 1;
    turn->made = turn->made < turn->depth ? turn->made : turn->depth;
}

int store_release(struct store *store, int handle)
{
    struct turn *turn = db_turn(store);
    assert(handle >= 1 && handle <= turn->depth);
    int rc = turn->failed;
    if (rc == 0 && turn->made >= handle) {
        char sql[32];
        snprintf(sql, sizeof(sql), "RELEASE s%d", handle);
        rc = db_exec(store, sql);
    }
    close_savepoint(turn, handle);
    return rc;
}

void store_revert(struct store *store, int handle)
{
    struct turn *turn = db_turn(store);
    assert(handle >= 1 && handle <= turn->depth);
    if (turn->failed == 0 && turn->made >= handle) {
        char sql[64];
        snprintf(sql, sizeof(sql), "ROLLBACK TO s%d; RELEASE s%d", handle, handle);
        int rc = db_exec(store, sql);
        if (rc < 0 && turn->failed == 0) {
            turn->failed = rc; /* what should be gone may be there: nothing of the turn is kept */
        }
    }
    close_savepoint(turn, handle);
}

/* db.h: what the store's own files share: statements by name, bound and read in the order of
 * their text. Not for other folders.
 *
 * A statement is opened, its values are put one after another, then it is run, or stepped
 * through while the columns of each row are taken one after another. Errors stick: the straight
 * line is written once and checked at its end. */
#ifndef MAKESPAN_COORDINATOR_STORE_DB_H
#define MAKESPAN_COORDINATOR_STORE_DB_H

#include "common/attr.h"
#include "coordinator/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct mem_arena;
struct stmt;
struct store;

enum statement {
#define STATEMENT(name, text) ST_##name,
#include "coordinator/store/statements.def"
#undef STATEMENT
    ST_COUNT
};

/* --- the connection, for open.c and migrate.c --- */

/* Opens the file and nothing more. *out is to be closed by store_close(). */
int db_open(const char *path, const char *vfs, unsigned flags, struct store **out,
            struct diag *diag) MUST_CHECK;
/* Runs statements that give no rows, outside of the turn's transaction. */
int db_exec(struct store *store, const char *sql) MUST_CHECK;
/* The first column of the first row as text, copied to dst and cut there; "" when there is no
 * row. */
int db_ask(struct store *store, const char *sql, char *dst, size_t room) MUST_CHECK;
const char *db_path(const struct store *store);
bool db_read_only(const struct store *store);
/* Prepares every statement: a mistake in one shows at once. */
int db_prepare_all(struct store *store) MUST_CHECK;

/* Rows that the last statement changed, and the id of the last row inserted. */
int64_t db_changes(const struct store *store);
int64_t db_last_id(const struct store *store);

/* --- the turn, turn.c --- */

/* The transaction that the writes of a loop turn share. */
struct turn {
    bool begun;       /* SQLite is in it */
    int failed;       /* 0, or the code of what lost it */
    int depth;        /* savepoints that are open */
    int made;         /* of these, how many SQLite knows */
    int64_t before;   /* rows changed in all when it began */
    uint64_t commits; /* so far, of those that wrote something */
};
struct turn *db_turn(struct store *store);
const struct turn *db_turn_of(const struct store *store);
/* Opens what was only promised: the transaction, and the savepoints within it. */
int turn_begin(struct store *store) MUST_CHECK;
/* What SQLite says: whether a transaction is open, and how many rows were changed in all. */
bool db_in_transaction(const struct store *store);
int64_t db_total_changes(const struct store *store);

/* --- statements --- */

/* Never NULL. A statement that writes begins the turn's transaction. It may be opened again
 * while it is open. */
struct stmt *stmt_open(struct store *store, enum statement which) MUST_CHECK;
void stmt_put_i64(struct stmt *q, int64_t value);
void stmt_put_opt(struct stmt *q, struct opt_i64 value);
void stmt_put_double(struct stmt *q, bool has, double value);
/* Texts and bytes are borrowed until the statement is closed. NULL stays NULL. */
void stmt_put_text(struct stmt *q, const char *text);
void stmt_put_bytes(struct stmt *q, const void *bytes, size_t n);

/* From here on texts and bytes are copied into the arena instead of lent; a text that is equal
 * to that of the row before is shared with it. */
void stmt_copy_into(struct stmt *q, struct mem_arena *arena);
/* 1: a row; 0: no more; negative. */
int stmt_next(struct stmt *q) MUST_CHECK;
int64_t stmt_i64(struct stmt *q);
struct opt_i64 stmt_opt(struct stmt *q);
double stmt_double(struct stmt *q, bool *has);
const char *stmt_text(struct stmt *q); /* NULL for NULL */
const uint8_t *stmt_bytes(struct stmt *q, size_t *n);
/* Exactly n bytes into dst; another length is -ERR_CORRUPT. */
void stmt_fixed_bytes(struct stmt *q, void *dst, size_t n);
/* The error that stuck, or 0. */
int stmt_check(const struct stmt *q) MUST_CHECK;
struct store *stmt_store(const struct stmt *q);
/* Ends it. Gives the first error that stuck, or `result`. */
int stmt_close(struct stmt *q, int result) MUST_CHECK;

/* Runs a statement that gives no rows, and closes it. *changes (may be NULL): rows that it
 * wrote. */
int stmt_run(struct stmt *q, int64_t *changes) MUST_CHECK;
/* The same for one that must change a row: -ERR_NOTFOUND when there was none. */
int stmt_run_one(struct stmt *q) MUST_CHECK;
/* The same for an insertion; *id (may be NULL) is the new row's. */
int stmt_insert(struct stmt *q, int64_t *id) MUST_CHECK;

/* Calls row(q, out) for the one row that the statement must give, with copies into the arena;
 * -ERR_NOTFOUND when there is none. Closes it. */
typedef void stmt_row_f(struct stmt *q, void *out);
int stmt_get(struct stmt *q, struct mem_arena *arena, stmt_row_f *row, void *out) MUST_CHECK;
/* Steps through the rows: each is read by row(q, out), then visit(arg) is called; closes the
 * statement. */
typedef int stmt_visit_f(void *arg);
int stmt_each(struct stmt *q, stmt_row_f *row, void *out, stmt_visit_f *visit,
              void *arg) MUST_CHECK;

/* Ends a savepoint by the result of what was done in it: keeps or takes back. Gives the result. */
int db_end(struct store *store, int savepoint, int result) MUST_CHECK;
/* Notes a failure that is not SQLite's own: returns code, and store_error() gives the text. */
int db_fail(struct store *store, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

#endif

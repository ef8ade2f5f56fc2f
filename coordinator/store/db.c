/* db.c: the connection to SQLite: prepared statements and errors.
 *
 * The only file that knows SQLite's functions. Knows no table. */
#include "coordinator/store/db.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "coordinator/store/store.h"

#include <sqlite3.h>

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STORE_MAGIC 0x53746f72U
#define BUSY_MS 250
#define COLUMNS_MAX 72 /* more than any statement gives */

struct stmt {
    struct store *store;
    sqlite3_stmt *handle;
    bool spare; /* made because the one by this name was open: freed at its end */
    bool open;
    int next; /* number of the next parameter, or of the next column */
    int err;
    struct mem_arena *arena;
    const char **before; /* with an arena: the texts of the row before, by column */
};

struct store {
    unsigned magic;
    sqlite3 *db;
    char *path;
    bool read_only;
    struct turn turn;
    char error[512];
    struct stmt statements[ST_COUNT];
};

static const struct {
    const char *name;
    const char *sql;
} texts[ST_COUNT] = {
#define STATEMENT(name, text) [ST_##name] = {#name, text},
#include "coordinator/store/statements.def"
#undef STATEMENT
};

/* --- errors --- */

static int code_of(int rc)
{
    switch (rc) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
        return -ERR_EXISTS;
    case SQLITE_IOERR_NOMEM:
        return -ERR_NOMEM;
    default:
        break;
    }
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return -ERR_FULL;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_PROTOCOL:
        return -ERR_IO;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return -ERR_CORRUPT;
    case SQLITE_NOMEM:
        return -ERR_NOMEM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -ERR_BUSY;
    case SQLITE_CONSTRAINT:
        return -ERR_CONFLICT;
    case SQLITE_READONLY:
        return -ERR_STATE;
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return -ERR_PERM;
    case SQLITE_TOOBIG:
        return -ERR_LIMIT;
    default:
        return -ERR_SYS;
    }
}

/* Failures after which nothing that was written in the turn can be trusted to be there. */
static bool loses_turn(int code)
{
    return code == -ERR_FULL || code == -ERR_IO || code == -ERR_CORRUPT || code == -ERR_NOMEM;
}

int db_fail(struct store *store, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(store->error, sizeof(store->error), fmt, ap);
    va_end(ap);
    return code;
}

/* Notes what SQLite says of a failure; `what` names the statement. */
static int fail(struct store *store, int rc, const char *what)
{
    int code = code_of(rc);
    db_fail(store, code, "%s: %s (%s)", store->path, sqlite3_errmsg(store->db), what);
    bool gone = store->turn.begun && !db_in_transaction(store);
    if (store->turn.failed == 0 && store->turn.begun && (gone || loses_turn(code))) {
        store->turn.failed = code;
    }
    return code;
}

/* --- the connection --- */

int db_open(const char *path, const char *vfs, unsigned flags, struct store **out,
            struct diag *diag)
{
    *out = NULL;
    struct store *store = mem_xzalloc(sizeof(*store));
    store->magic = STORE_MAGIC;
    store->path = mem_xstrdup(path);
    store->read_only = (flags & STORE_READ_ONLY) != 0;
    int how = store->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    int rc = sqlite3_open_v2(path, &store->db, how | SQLITE_OPEN_NOMUTEX, vfs);
    if (rc != SQLITE_OK) {
        const char *why = store->db != NULL ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc);
        int code =
            diag_error(diag, code_of(rc), "%s: the database cannot be opened: %s", path, why);
        store_close(&store);
        return code;
    }
    sqlite3_extended_result_codes(store->db, 1);
    sqlite3_busy_timeout(store->db, BUSY_MS);
    *out = store;
    return 0;
}

void store_close(struct store **store)
{
    struct store *s = *store;
    if (s == NULL) {
        return;
    }
    assert(s->magic == STORE_MAGIC);
    for (size_t i = 0; i < ST_COUNT; i++) {
        assert(!s->statements[i].open);
        sqlite3_finalize(s->statements[i].handle);
        free(s->statements[i].before);
    }
    sqlite3_close(s->db);
    s->magic = 0;
    free(s->path);
    free(s);
    *store = NULL;
}

int db_exec(struct store *store, const char *sql)
{
    int rc = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : fail(store, rc, sql);
}

int db_ask(struct store *store, const char *sql, char *dst, size_t room)
{
    sqlite3_stmt *q = NULL;
    dst[0] = '\0';
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &q, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(q);
    }
    if (rc == SQLITE_ROW && sqlite3_column_type(q, 0) != SQLITE_NULL) {
        snprintf(dst, room, "%s", (const char *)sqlite3_column_text(q, 0));
    }
    int result = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : fail(store, rc, sql);
    sqlite3_finalize(q);
    return result;
}

const char *db_path(const struct store *store)
{
    return store->path;
}

bool db_read_only(const struct store *store)
{
    return store->read_only;
}

const char *store_error(const struct store *store)
{
    return store->error;
}

int store_limit_pages(struct store *store, uint32_t pages)
{
    char sql[64];
    char got[32];
    snprintf(sql, sizeof(sql), "PRAGMA max_page_count = %u", pages != 0 ? pages : 0xfffffffeU);
    return db_ask(store, sql, got, sizeof(got));
}

struct turn *db_turn(struct store *store)
{
    return &store->turn;
}

const struct turn *db_turn_of(const struct store *store)
{
    return &store->turn;
}

bool db_in_transaction(const struct store *store)
{
    return sqlite3_get_autocommit(store->db) == 0;
}

int64_t db_total_changes(const struct store *store)
{
    return sqlite3_total_changes64(store->db);
}

/* --- statements --- */

static int prepare(struct store *store, enum statement which, sqlite3_stmt **out)
{
    int rc =
        sqlite3_prepare_v3(store->db, texts[which].sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);
    return rc == SQLITE_OK ? 0 : fail(store, rc, texts[which].name);
}

int db_prepare_all(struct store *store)
{
    for (size_t i = 0; i < ST_COUNT; i++) {
        struct stmt *q = &store->statements[i];
        int code = q->handle == NULL ? prepare(store, (enum statement)i, &q->handle) : 0;
        if (code < 0) {
            return code;
        }
        assert(sqlite3_column_count(q->handle) <= COLUMNS_MAX);
    }
    return 0;
}

struct stmt *stmt_open(struct store *store, enum statement which)
{
    assert(store->magic == STORE_MAGIC);
    struct stmt *q = &store->statements[which];
    if (q->open) {
        q = mem_xzalloc(sizeof(*q));
        q->spare = true;
    }
    q->store = store;
    q->open = true;
    q->next = 1;
    q->err = 0;
    q->arena = NULL;
    if (q->handle == NULL) {
        q->err = prepare(store, which, &q->handle);
    }
    if (q->err == 0 && sqlite3_stmt_readonly(q->handle) == 0) {
        q->err = turn_begin(store);
    }
    return q;
}

static const char *name_of(const struct stmt *q)
{
    ptrdiff_t i = q->spare ? -1 : q - q->store->statements;
    return i >= 0 ? texts[i].name : "nested statement";
}

static void check_put(struct stmt *q, int rc)
{
    if (rc != SQLITE_OK && q->err == 0) {
        q->err = fail(q->store, rc, name_of(q));
    }
}

void stmt_put_i64(struct stmt *q, int64_t value)
{
    if (q->err == 0) {
        check_put(q, sqlite3_bind_int64(q->handle, q->next++, value));
    }
}

void stmt_put_opt(struct stmt *q, struct opt_i64 value)
{
    if (value.has) {
        stmt_put_i64(q, value.v);
    } else {
        stmt_put_text(q, NULL);
    }
}

void stmt_put_double(struct stmt *q, bool has, double value)
{
    if (!has) {
        stmt_put_text(q, NULL);
    } else if (q->err == 0) {
        check_put(q, sqlite3_bind_double(q->handle, q->next++, value));
    }
}

void stmt_put_text(struct stmt *q, const char *text)
{
    if (q->err != 0) {
        return;
    }
    if (text == NULL) {
        check_put(q, sqlite3_bind_null(q->handle, q->next++));
    } else {
        check_put(q, sqlite3_bind_text64(q->handle, q->next++, text, strlen(text), SQLITE_STATIC,
                                         SQLITE_UTF8));
    }
}

void stmt_put_bytes(struct stmt *q, const void *bytes, size_t n)
{
    if (q->err != 0) {
        return;
    }
    if (bytes == NULL) {
        check_put(q, sqlite3_bind_null(q->handle, q->next++));
    } else {
        check_put(q, sqlite3_bind_blob64(q->handle, q->next++, bytes, n, SQLITE_STATIC));
    }
}

void stmt_copy_into(struct stmt *q, struct mem_arena *arena)
{
    q->arena = arena;
    if (q->before == NULL) {
        q->before = mem_xarray(COLUMNS_MAX, sizeof(q->before[0]));
    }
    memset(q->before, 0, COLUMNS_MAX * sizeof(q->before[0]));
}

int stmt_next(struct stmt *q)
{
    if (q->err != 0) {
        return q->err;
    }
    q->next = 0;
    int rc = sqlite3_step(q->handle);
    if (rc == SQLITE_ROW) {
        return 1;
    }
    if (rc != SQLITE_DONE) {
        q->err = fail(q->store, rc, name_of(q));
    }
    return q->err;
}

int64_t stmt_i64(struct stmt *q)
{
    return sqlite3_column_int64(q->handle, q->next++);
}

struct opt_i64 stmt_opt(struct stmt *q)
{
    struct opt_i64 v = {0};
    v.has = sqlite3_column_type(q->handle, q->next) != SQLITE_NULL;
    v.v = stmt_i64(q);
    return v;
}

double stmt_double(struct stmt *q, bool *has)
{
    *has = sqlite3_column_type(q->handle, q->next) != SQLITE_NULL;
    return sqlite3_column_double(q->handle, q->next++);
}

static void set_err(struct stmt *q, int code, const char *text)
{
    if (q->err == 0) {
        q->err = db_fail(q->store, code, "%s: %s (%s)", q->store->path, text, name_of(q));
    }
}

/* A value that is not NULL and yet cannot be had: memory is out. */
static void check_value(struct stmt *q, int column, const void *value)
{
    if (value == NULL && sqlite3_column_type(q->handle, column) != SQLITE_NULL &&
        sqlite3_errcode(q->store->db) == SQLITE_NOMEM) {
        set_err(q, -ERR_NOMEM, "out of memory");
    }
}

const char *stmt_text(struct stmt *q)
{
    int column = q->next++;
    const char *text = (const char *)sqlite3_column_text(q->handle, column);
    check_value(q, column, text);
    if (text == NULL || q->arena == NULL) {
        return text;
    }
    const char *last = q->before[column];
    if (last != NULL && strcmp(last, text) == 0) {
        return last;
    }
    char *copy = mem_arena_strdup(q->arena, text);
    if (copy == NULL) {
        set_err(q, -ERR_LIMIT, "more than the memory allowed for it");
    }
    q->before[column] = copy;
    return copy;
}

const uint8_t *stmt_bytes(struct stmt *q, size_t *n)
{
    int column = q->next++;
    const void *bytes = sqlite3_column_blob(q->handle, column);
    check_value(q, column, bytes);
    *n = (size_t)sqlite3_column_bytes(q->handle, column);
    if (bytes == NULL || q->arena == NULL) {
        return bytes;
    }
    void *copy = mem_arena_alloc(q->arena, *n);
    if (copy == NULL) {
        set_err(q, -ERR_LIMIT, "more than the memory allowed for it");
        *n = 0;
        return NULL;
    }
    memcpy(copy, bytes, *n);
    return copy;
}

void stmt_fixed_bytes(struct stmt *q, void *dst, size_t n)
{
    int column = q->next++;
    const void *bytes = sqlite3_column_blob(q->handle, column);
    if (bytes != NULL && (size_t)sqlite3_column_bytes(q->handle, column) == n) {
        memcpy(dst, bytes, n);
    } else {
        memset(dst, 0, n);
        set_err(q, -ERR_CORRUPT, "a value has another length than it must have");
    }
}

int stmt_close(struct stmt *q, int result)
{
    assert(q->open);
    if (q->err != 0) {
        result = q->err;
    }
    q->open = false;
    if (q->spare) {
        sqlite3_finalize(q->handle);
        free(q->before);
        free(q);
    } else if (q->handle != NULL) {
        sqlite3_reset(q->handle);
        sqlite3_clear_bindings(q->handle);
    }
    return result;
}

int stmt_check(const struct stmt *q)
{
    return q->err;
}

struct store *stmt_store(const struct stmt *q)
{
    return q->store;
}

int64_t db_changes(const struct store *store)
{
    return sqlite3_changes64(store->db);
}

int64_t db_last_id(const struct store *store)
{
    return sqlite3_last_insert_rowid(store->db);
}

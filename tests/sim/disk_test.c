/* disk_test.c: what a crash leaves of files, folders and databases in the simulation. */
#include "common/buf.h"
#include "common/err.h"
#include "common/fileio.h"
#include "tests/sim/disk.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum { SEEDS = 200 };

static struct {
    struct world *world;
    struct node *node;
    int crash; /* before the effect in which `count` reaches 0 */
    int count;
    int effects;
} rig;

static int on_effect(struct node *node, enum sim_effect effect, const char *what, uint64_t n,
                     void *arg)
{
    (void)node;
    (void)effect;
    (void)what;
    (void)n;
    (void)arg;
    rig.effects++;
    return rig.count > 0 && --rig.count == 0 ? rig.crash : 0;
}

static const struct world_ops OPS = {.effect = on_effect};

/* A node without code: the test is its code. */
static void begin(uint64_t seed)
{
    memset(&rig, 0, sizeof(rig));
    rig.world = world_new(seed, &OPS, NULL);
    rig.node = world_add(rig.world, "n", 1);
    cr_assert(node_start(rig.node));
    node_enter(rig.node);
}

static void crash(enum sim_crash how)
{
    node_leave();
    node_crash(rig.node, how);
    cr_assert(node_start(rig.node));
    node_enter(rig.node);
}

static void end(void)
{
    node_leave();
    world_free(&rig.world);
}

/* Appends, and syncs when asked to. */
static void add(const char *path, const char *text, bool sync)
{
    struct file *file;
    cr_assert_eq(file_open(path, FILE_APPEND | FILE_CREATE, 0600, &file), 0);
    cr_assert_eq(file_append(file, text, strlen(text)), 0);
    if (sync) {
        cr_assert_eq(file_sync(file), 0);
    }
    file_close(&file);
}

static void read_back(const char *path, struct buf *out)
{
    buf_init(out, 0);
    int rc = file_read_all(path, 1 << 20, out);
    cr_assert(rc == 0 || rc == -ERR_NOTFOUND, "%s: %d", path, rc);
}

Test(disk, files_are_read_as_they_were_written)
{
    struct buf b = BUF_INIT;
    struct file_stat st;
    begin(1);
    cr_assert_eq(file_mkdirs("/a/b", 0700), 0);
    add("/a/b/f", "hello ", false);
    add("/a/b/f", "world", false);
    read_back("/a/b/f", &b);
    cr_assert_str_eq(buf_str(&b), "hello world");
    buf_fini(&b);
    cr_assert_eq(file_rename("/a/b/f", "/a/g"), 0);
    cr_assert_not(file_exists("/a/b/f"));
    cr_assert_eq(file_stat("/a/g", &st), 0);
    cr_assert_eq(st.size, 11);
    cr_assert_eq(file_write_atomic("/a/g", "new", 3, 0644), 0);
    read_back("/a/g", &b);
    cr_assert_str_eq(buf_str(&b), "new");
    buf_fini(&b);
    cr_assert_eq(file_remove("/a"), -ERR_EXISTS);
    cr_assert_eq(file_remove_tree("/a"), 0);
    cr_assert_not(file_exists("/a"));
    end();
}

Test(disk, a_kill_loses_nothing)
{
    struct buf b = BUF_INIT;
    begin(1);
    add("/f", "not synced", false);
    crash(SIM_KILL);
    read_back("/f", &b);
    cr_assert_str_eq(buf_str(&b), "not synced");
    buf_fini(&b);
    end();
}

/* Over many seeds: what was synced is there each time; what was not is there whole, in part, with
 * holes, and not at all. */
Test(disk, without_power_only_what_was_synced_is_sure)
{
    static char more[3000];
    int whole = 0, none = 0, torn = 0, holes = 0, nameless = 0;
    memset(more, 'x', sizeof(more) - 1);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct buf b = BUF_INIT;
        begin(seed);
        add("/sure", "sure", true);
        cr_assert_eq(file_sync_dir("/"), 0);
        add("/sure", more, false);
        add("/new", "new", true);
        crash(SIM_POWER);
        read_back("/sure", &b);
        cr_assert(b.len >= 4 && memcmp(b.data, "sure", 4) == 0, "seed %d", (int)seed);
        size_t n = b.len - 4;
        bool hole = memchr(b.data, '\0', b.len) != NULL;
        whole += n == sizeof(more) - 1 && !hole;
        none += n == 0;
        torn += n > 0 && n < sizeof(more) - 1 && !hole;
        holes += hole;
        buf_fini(&b);
        read_back("/new", &b);
        nameless += b.len == 0;
        cr_assert(b.len == 0 || strcmp(buf_str(&b), "new") == 0);
        buf_fini(&b);
        end();
    }
    cr_assert(whole > 10 && none > 10 && torn > 10 && holes > 10, "%d %d %d %d", whole, none, torn,
              holes);
    cr_assert(nameless > 10 && nameless < SEEDS - 10, "%d", nameless);
}

Test(disk, an_atomic_write_is_there_as_a_whole_or_not_at_all_wherever_the_power_fails)
{
    int before = 0, after = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct buf b = BUF_INIT;
        begin(seed);
        cr_assert_eq(file_write_atomic("/f", "before", 6, 0600), 0);
        rig.crash = SIM_POWER;
        rig.count = 1 + (int)(seed % 6);
        int rc = file_write_atomic("/f", "after!", 6, 0600);
        cr_assert_eq(rc, 0);
        bool crashed = rig.node->gone;
        node_leave();
        if (crashed) {
            sim_turn_over(rig.node);
        } else {
            node_crash(rig.node, SIM_POWER);
        }
        cr_assert(node_start(rig.node));
        node_enter(rig.node);
        read_back("/f", &b);
        bool is_old = strcmp(buf_str(&b), "before") == 0;
        bool is_new = strcmp(buf_str(&b), "after!") == 0;
        cr_assert(is_old || is_new, "seed %d: %s", (int)seed, buf_str(&b));
        cr_assert(is_new || crashed, "seed %d: it had said that it is done", (int)seed);
        before += is_old;
        after += is_new;
        buf_fini(&b);
        end();
    }
    cr_assert(before > 10 && after > 10, "%d %d", before, after);
}

Test(disk, a_full_disk_says_so)
{
    begin(1);
    disk_set_size(node_disk(rig.node), 10);
    add("/f", "12345678", true);
    struct file *file;
    cr_assert_eq(file_open("/f", FILE_APPEND, 0600, &file), 0);
    cr_assert_eq(file_append(file, "9ab", 3), -ERR_FULL);
    cr_assert_eq(file_append(file, "9a", 2), 0);
    file_close(&file);
    cr_assert_eq(file_remove("/f"), 0);
    add("/g", "1234567890", true);
    end();
}

/* --- SQLite --- */

static int exec(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static int64_t ask(sqlite3 *db, const char *sql, char text[64])
{
    sqlite3_stmt *stmt;
    int64_t value = -1;
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK, "%s",
                 sqlite3_errmsg(db));
    cr_assert_eq(sqlite3_step(stmt), SQLITE_ROW, "%s", sqlite3_errmsg(db));
    value = sqlite3_column_int64(stmt, 0);
    if (text != NULL) {
        snprintf(text, 64, "%s", (const char *)sqlite3_column_text(stmt, 0));
    }
    sqlite3_finalize(stmt);
    return value;
}

/* Commits row after row until the crash. How many commits had been told as done before it. */
static int fill(bool full)
{
    sqlite3 *db;
    int done = 0;
    cr_assert_eq(sqlite3_open_v2("/db", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL),
                 SQLITE_OK);
    cr_assert_eq(exec(db, "PRAGMA journal_mode=WAL"), SQLITE_OK);
    cr_assert_eq(exec(db, full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=OFF"), SQLITE_OK);
    exec(db, "PRAGMA wal_autocheckpoint=8");
    exec(db, "CREATE TABLE t(n INTEGER, pad TEXT)");
    while (!rig.node->gone && done < 60) {
        int rc = exec(db, "INSERT INTO t VALUES((SELECT COUNT(*) FROM t), hex(zeroblob(300)))");
        done += rc == SQLITE_OK && !rig.node->gone;
    }
    sqlite3_close(db);
    return done;
}

/* Rows that are found again; -1: the database is damaged. */
static int found(void)
{
    sqlite3 *db;
    char text[64];
    int n = -1;
    cr_assert_eq(sqlite3_open_v2("/db", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL),
                 SQLITE_OK);
    if (exec(db, "CREATE TABLE IF NOT EXISTS t(n INTEGER, pad TEXT)") == SQLITE_OK) {
        ask(db, "PRAGMA integrity_check", text);
        n = strcmp(text, "ok") != 0 ? -1 : (int)ask(db, "SELECT COUNT(*) FROM t", NULL);
    }
    sqlite3_close(db);
    return n;
}

static int lost_rows(bool full, enum sim_crash how)
{
    int lost = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin(seed);
        rig.crash = (int)how;
        rig.count = 30 + (int)(seed * 7 % 400);
        int done = fill(full);
        bool crashed = rig.node->gone;
        rig.count = 0;
        node_leave();
        if (crashed) {
            sim_turn_over(rig.node);
        } else {
            node_crash(rig.node, how); /* with fewer effects than that */
        }
        cr_assert(node_start(rig.node));
        node_enter(rig.node);
        lost += found() < done;
        end();
    }
    return lost;
}

Test(disk, sqlite_keeps_what_it_committed_wherever_the_power_fails)
{
    cr_assert_eq(lost_rows(true, SIM_POWER), 0);
}

Test(disk, sqlite_keeps_what_it_committed_wherever_it_is_killed)
{
    cr_assert_eq(lost_rows(true, SIM_KILL), 0);
    cr_assert_eq(lost_rows(false, SIM_KILL), 0, "what is written outlives the process");
}

Test(disk, sqlite_without_syncs_loses_rows_when_the_power_fails)
{
    int lost = lost_rows(false, SIM_POWER);
    cr_assert(lost > SEEDS / 10, "%d", lost);
}

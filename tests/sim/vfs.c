/* vfs.c: SQLite's view of a node's files: "sim", the default VFS of the process. One connection to
 * a database at a time, as the coordinator has it: locks always succeed, and the shared memory of
 * WAL mode is plain memory that is gone when the database is closed. What is written without xSync
 * may be lost, as for any other file. */
#include "common/clock.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/sim/disk.h"
#include "tests/sim/fakes/file.h"
#include "tests/sim/sim.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHM_REGIONS = 256 };

struct vfs_file {
    sqlite3_file base;
    struct file *file;
    char path[FILE_PATH_MAX]; /* to be removed when closed; "" else */
    void *shm[SHM_REGIONS];
};

static struct vfs_file *of(sqlite3_file *base)
{
    return (struct vfs_file *)(void *)base;
}

static int result(int rc, int otherwise)
{
    return rc == 0 ? SQLITE_OK : rc == -ERR_FULL ? SQLITE_FULL : otherwise;
}

static int x_unmap(sqlite3_file *base, int remove)
{
    struct vfs_file *f = of(base);
    (void)remove;
    for (int i = 0; i < SHM_REGIONS; i++) {
        free(f->shm[i]);
        f->shm[i] = NULL;
    }
    return SQLITE_OK;
}

static int x_close(sqlite3_file *base)
{
    struct vfs_file *f = of(base);
    x_unmap(base, 0);
    file_close(&f->file);
    return f->path[0] == '\0' ? SQLITE_OK : result(file_remove(f->path), SQLITE_IOERR_DELETE);
}

static int x_read(sqlite3_file *base, void *dst, int n, sqlite3_int64 offset)
{
    size_t got = 0;
    if (file_read_at(of(base)->file, (uint64_t)offset, dst, (size_t)n, &got) != 0) {
        return SQLITE_IOERR_READ;
    }
    if (got == (size_t)n) {
        return SQLITE_OK;
    }
    memset((char *)dst + got, 0, (size_t)n - got);
    return SQLITE_IOERR_SHORT_READ;
}

static int x_write(sqlite3_file *base, const void *data, int n, sqlite3_int64 offset)
{
    return result(file_write_at(of(base)->file, (uint64_t)offset, data, (size_t)n),
                  SQLITE_IOERR_WRITE);
}

static int x_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    return result(file_truncate(of(base)->file, (uint64_t)size), SQLITE_IOERR_TRUNCATE);
}

static int x_sync(sqlite3_file *base, int flags)
{
    (void)flags;
    return result(file_sync(of(base)->file), SQLITE_IOERR_FSYNC);
}

static int x_size(sqlite3_file *base, sqlite3_int64 *size)
{
    uint64_t n = 0;
    int rc = file_size(of(base)->file, &n);
    *size = (sqlite3_int64)n;
    return result(rc, SQLITE_IOERR_FSTAT);
}

static int x_lock(sqlite3_file *base, int level)
{
    (void)base;
    (void)level;
    return SQLITE_OK;
}

static int x_check_lock(sqlite3_file *base, int *held)
{
    (void)base;
    *held = 0;
    return SQLITE_OK;
}

static int x_control(sqlite3_file *base, int op, void *arg)
{
    (void)base;
    (void)op;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int x_sector(sqlite3_file *base)
{
    (void)base;
    return 512;
}

static int x_traits(sqlite3_file *base)
{
    (void)base;
    return 0; /* nothing is promised */
}

static int x_map(sqlite3_file *base, int region, int size, int extend, void volatile **out)
{
    struct vfs_file *f = of(base);
    assert(region < SHM_REGIONS);
    if (f->shm[region] == NULL && extend) {
        f->shm[region] = mem_xzalloc((size_t)size);
    }
    *out = f->shm[region];
    return SQLITE_OK;
}

static int x_shm_lock(sqlite3_file *base, int offset, int n, int flags)
{
    (void)base;
    (void)offset;
    (void)n;
    (void)flags;
    return SQLITE_OK;
}

static void x_barrier(sqlite3_file *base)
{
    (void)base;
}

static const sqlite3_io_methods METHODS = {
    .iVersion = 2,
    .xClose = x_close,
    .xRead = x_read,
    .xWrite = x_write,
    .xTruncate = x_truncate,
    .xSync = x_sync,
    .xFileSize = x_size,
    .xLock = x_lock,
    .xUnlock = x_lock,
    .xCheckReservedLock = x_check_lock,
    .xFileControl = x_control,
    .xSectorSize = x_sector,
    .xDeviceCharacteristics = x_traits,
    .xShmMap = x_map,
    .xShmLock = x_shm_lock,
    .xShmBarrier = x_barrier,
    .xShmUnmap = x_unmap,
};

/* Of folders: SQLite syncs the one of a file that it made or removed, when it is asked to. */
static int sync_folder(const char *path)
{
    char dir[FILE_PATH_MAX];
    const char *slash = strrchr(path, '/');
    assert(slash != NULL);
    snprintf(dir, sizeof(dir), "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return result(file_sync_dir(dir), SQLITE_IOERR_DIR_FSYNC);
}

static int x_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags, int *out)
{
    struct vfs_file *f = of(base);
    char own[64];
    int how = FILE_READ | FILE_WRITE | ((flags & SQLITE_OPEN_CREATE) != 0 ? FILE_CREATE : 0) |
              ((flags & SQLITE_OPEN_EXCLUSIVE) != 0 ? FILE_EXCL : 0);
    (void)vfs;
    memset(f, 0, sizeof(*f));
    if (path == NULL) {
        snprintf(own, sizeof(own), "/sqlite-%d", ++sim_here()->last_fd);
        path = own;
    }
    bool made = !file_exists(path);
    if (file_open(path, how, 0644, &f->file) != 0) {
        return SQLITE_CANTOPEN;
    }
    base->pMethods = &METHODS;
    if ((flags & SQLITE_OPEN_DELETEONCLOSE) != 0) {
        str_copy(f->path, sizeof(f->path), path);
    }
    if (out != NULL) {
        *out = flags;
    }
    /* The system's VFS syncs the folder at the first sync of a new journal or WAL. Doing it here
     * is as good for what is durable: nothing is promised before that sync. */
    bool journal = (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL)) != 0;
    return made && journal ? sync_folder(path) : SQLITE_OK;
}

static int x_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    (void)vfs;
    if (!file_exists(path)) {
        return SQLITE_IOERR_DELETE_NOENT;
    }
    int rc = file_remove(path);
    return rc != 0 ? SQLITE_IOERR_DELETE : sync != 0 ? sync_folder(path) : SQLITE_OK;
}

static int x_access(sqlite3_vfs *vfs, const char *path, int flags, int *out)
{
    (void)vfs;
    struct file_stat st;
    *out = file_stat(path, &st) == 0 && (flags != SQLITE_ACCESS_EXISTS || st.size > 0);
    return SQLITE_OK;
}

static int x_full(sqlite3_vfs *vfs, const char *path, int room, char *dst)
{
    (void)vfs;
    if (path[0] != '/') {
        return SQLITE_CANTOPEN;
    }
    sqlite3_snprintf(room, dst, "%s", path);
    return SQLITE_OK;
}

static int x_random(sqlite3_vfs *vfs, int n, char *dst)
{
    (void)vfs;
    for (int i = 0; i < n; i++) {
        dst[i] = (char)prng_below(&sim_world()->salts, 256);
    }
    return n;
}

static int x_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return us;
}

/* Milliseconds since noon of 24 November 4714 BC, which is 210866760000000 before 1970. */
static int x_time(sqlite3_vfs *vfs, sqlite3_int64 *out)
{
    (void)vfs;
    *out = INT64_C(210866760000000) + clock_wall_ns() / CLOCK_MS;
    return SQLITE_OK;
}

static int x_time_old(sqlite3_vfs *vfs, double *out)
{
    sqlite3_int64 ms;
    int rc = x_time(vfs, &ms);
    *out = (double)ms / 86400000.0;
    return rc;
}

static int x_error(sqlite3_vfs *vfs, int room, char *dst)
{
    (void)vfs;
    (void)room;
    (void)dst;
    return 0;
}

void sim_vfs_reseed(void)
{
    struct world *w = sim_world();
    prng_init(&w->salts, w->seed);
    sqlite3_randomness(0, NULL);
}

void sim_vfs_register(void)
{
    static sqlite3_vfs vfs = {
        .iVersion = 2,
        .szOsFile = sizeof(struct vfs_file),
        .mxPathname = FILE_PATH_MAX - 1,
        .zName = "sim",
        .xOpen = x_open,
        .xDelete = x_delete,
        .xAccess = x_access,
        .xFullPathname = x_full,
        .xRandomness = x_random,
        .xSleep = x_sleep,
        .xCurrentTime = x_time_old,
        .xCurrentTimeInt64 = x_time,
        .xGetLastError = x_error,
    };
    /* One thread needs no locks; refused once SQLite runs, and then it is in force. */
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    int rc = sqlite3_vfs_register(&vfs, 1);
    assert(rc == SQLITE_OK);
    (void)rc;
    sim_vfs_reseed();
}

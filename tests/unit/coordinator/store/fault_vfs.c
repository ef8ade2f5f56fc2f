/* fault_vfs.c: a file layer for SQLite that fails on demand. */
#include "tests/unit/coordinator/store/fault_vfs.h"

#include <sqlite3.h>

#include <string.h>

struct shim {
    sqlite3_file base;
    sqlite3_io_methods methods;
    sqlite3_file *real; /* behind this struct */
};

static struct {
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    enum fault fault;
    int after;
    int syncs;
} state;

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct shim *)file)->real;
}

static int fails(enum fault fault)
{
    if (state.fault != fault) {
        return 0;
    }
    return state.after-- <= 0;
}

static int do_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int do_read(sqlite3_file *file, void *dst, int n, sqlite3_int64 at)
{
    return fails(FAULT_READ_IO) ? SQLITE_IOERR_READ
                                : real_of(file)->pMethods->xRead(real_of(file), dst, n, at);
}

static int do_write(sqlite3_file *file, const void *src, int n, sqlite3_int64 at)
{
    if (fails(FAULT_WRITE_FULL)) {
        return SQLITE_FULL;
    }
    if (fails(FAULT_WRITE_IO)) {
        return SQLITE_IOERR_WRITE;
    }
    return real_of(file)->pMethods->xWrite(real_of(file), src, n, at);
}

static int do_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int do_sync(sqlite3_file *file, int flags)
{
    state.syncs++;
    return fails(FAULT_SYNC_IO) ? SQLITE_IOERR_FSYNC
                                : real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int do_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int do_lock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int do_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int do_reserved(sqlite3_file *file, int *out)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), out);
}

static int do_control(sqlite3_file *file, int op, void *arg)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int do_sector(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int do_device(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int do_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, out);
}

static int do_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, n, flags);
}

static void do_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int do_shm_unmap(sqlite3_file *file, int remove)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static int do_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    struct shim *shim = (struct shim *)file;
    (void)vfs;
    memset(shim, 0, sizeof(*shim));
    shim->real = (sqlite3_file *)(void *)(shim + 1);
    int rc = state.real->xOpen(state.real, name, shim->real, flags, out);
    if (rc == SQLITE_OK) {
        shim->methods = (sqlite3_io_methods){.iVersion = 2,
                                             .xClose = do_close,
                                             .xRead = do_read,
                                             .xWrite = do_write,
                                             .xTruncate = do_truncate,
                                             .xSync = do_sync,
                                             .xFileSize = do_size,
                                             .xLock = do_lock,
                                             .xUnlock = do_unlock,
                                             .xCheckReservedLock = do_reserved,
                                             .xFileControl = do_control,
                                             .xSectorSize = do_sector,
                                             .xDeviceCharacteristics = do_device,
                                             .xShmMap = do_shm_map,
                                             .xShmLock = do_shm_lock,
                                             .xShmBarrier = do_shm_barrier,
                                             .xShmUnmap = do_shm_unmap};
        shim->base.pMethods = &shim->methods;
    }
    return rc;
}

void fault_vfs_register(void)
{
    state.real = sqlite3_vfs_find(NULL);
    state.vfs = *state.real;
    state.vfs.zName = FAULT_VFS;
    state.vfs.pNext = NULL;
    state.vfs.szOsFile = (int)sizeof(struct shim) + state.real->szOsFile;
    state.vfs.xOpen = do_open;
    sqlite3_vfs_register(&state.vfs, 0);
}

void fault_vfs_set(enum fault fault, int after)
{
    state.fault = fault;
    state.after = after;
}

int fault_vfs_syncs(void)
{
    int n = state.syncs;
    state.syncs = 0;
    return n;
}

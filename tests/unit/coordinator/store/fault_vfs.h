/* fault_vfs.h: a file layer for SQLite that passes everything on to the system's, until it is
 * told to fail. For tests of the store. */
#ifndef MAKESPAN_TESTS_FAULT_VFS_H
#define MAKESPAN_TESTS_FAULT_VFS_H

#define FAULT_VFS "fault"

enum fault { FAULT_NONE, FAULT_WRITE_FULL, FAULT_WRITE_IO, FAULT_SYNC_IO, FAULT_READ_IO };

/* Makes the layer known to SQLite; once a process. */
void fault_vfs_register(void);
/* What fails from now on, after `after` more calls of its kind went well. */
void fault_vfs_set(enum fault fault, int after);
/* How often files were synced since the last call. */
int fault_vfs_syncs(void);

#endif

/* spool_file.h: the form of one file of the spool. For spool*.c alone.
 *
 *     "MKSPOOL1"  u64 run  u32 attempt  u32 CRC-32C of these 20 bytes
 *     records:    u32 CRC-32C of what follows  frame (u32 length, u8 type, body)
 *
 * All numbers are big-endian. The last record is END, and its count is the number of records. */
#ifndef MAKESPAN_WORKER_RUN_SPOOL_FILE_H
#define MAKESPAN_WORKER_RUN_SPOOL_FILE_H

#include "common/attr.h"

#include <stddef.h>
#include <stdint.h>

struct buf;
struct file;
struct msg;

enum { SPOOL_HEAD = 24, SPOOL_RECORD_HEAD = 8 };

/* Appends the head of a file. */
void spool_head_make(struct buf *out, uint64_t run, uint32_t attempt);
/* Appends a record. -ERR_INVAL, -ERR_LIMIT, -ERR_NOMEM. */
int spool_record_make(struct buf *out, const struct msg *msg) MUST_CHECK;

/* -ERR_CORRUPT, -ERR_IO. */
int spool_head_read(struct file *file, uint64_t *run, uint32_t *attempt) MUST_CHECK;
/* Reads the record at *offset into `bytes` (which is emptied first) and moves the offset behind it:
 * the frame's type, body and length of the body, borrowed from `bytes`. -ERR_END: the file ends
 * exactly here; -ERR_CORRUPT: damaged or cut; -ERR_IO, -ERR_NOMEM. */
int spool_record_read(struct file *file, uint64_t *offset, struct buf *bytes, uint8_t *type,
                      const uint8_t **body, size_t *n) MUST_CHECK;
/* Moves the offset behind the record there without reading it. */
int spool_record_skip(struct file *file, uint64_t *offset) MUST_CHECK;
/* Reads through a file: head, every record, END. -ERR_CORRUPT when it is not whole. */
int spool_check(struct file *file, uint64_t *run, uint32_t *attempt, uint32_t *count,
                uint64_t *size) MUST_CHECK;

#endif

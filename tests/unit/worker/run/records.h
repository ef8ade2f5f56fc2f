/* records.h: messages and folders for the tests of spool, journal, feed and slot. */
#ifndef MAKESPAN_TESTS_UNIT_WORKER_RUN_RECORDS_H
#define MAKESPAN_TESTS_UNIT_WORKER_RUN_RECORDS_H

#include "common/fileio.h"
#include "proto/msg.h"

#include <stddef.h>
#include <stdint.h>

struct spool;

/* A new folder below TMPDIR. */
void records_dir(char path[FILE_PATH_MAX]);
/* The only file in a folder whose name begins with `start`; asserts that there is one. */
void records_file(const char *dir, const char *start, char path[FILE_PATH_MAX]);
/* How many names in a folder begin with `start`. */
size_t records_names(const char *dir, const char *start);
/* Reads, and replaces, a whole file. */
size_t records_read(const char *path, uint8_t *bytes, size_t room);
void records_write(const char *path, const uint8_t *bytes, size_t n);

/* An assignment of a run without a source. Borrows nothing but constants. */
struct msg records_assign(uint64_t run, uint32_t attempt);
struct msg records_result(uint64_t run, uint32_t attempt, uint32_t seq, enum outcome outcome);
struct msg records_mark(uint64_t run, uint32_t attempt, uint32_t seq);
struct msg records_output(uint64_t run, uint32_t attempt, uint32_t seq, const void *bytes,
                          size_t n);
struct msg records_end(uint64_t run, uint32_t attempt, uint32_t seq);

/* Writes RESULT, `outputs` OUTPUTs of n bytes and END as one committed attempt. */
void records_spool(struct spool *spool, uint64_t run, uint32_t attempt, size_t outputs, size_t n);

#endif

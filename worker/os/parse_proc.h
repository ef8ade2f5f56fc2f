/* parse_proc.h: reads the texts of Linux's /proc. Pure; nothing allocates; any text is safe. */
#ifndef MAKESPAN_WORKER_OS_PARSE_PROC_H
#define MAKESPAN_WORKER_OS_PARSE_PROC_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct os_load;
struct os_memory;
struct os_paging;
struct os_proc;
struct os_ticks;

/* /proc/stat, its first line alone: `hz` ticks a second. Columns that an old kernel lacks are -1
 * (irq: 0). -ERR_SYNTAX without a line of "cpu". */
int parse_proc_stat(const char *text, int64_t hz, struct os_ticks *out) MUST_CHECK;
/* /proc/meminfo. A kernel without MemAvailable: free, buffers and cache. -ERR_SYNTAX without
 * MemTotal. */
int parse_proc_meminfo(const char *text, struct os_memory *out) MUST_CHECK;
/* /proc/vmstat. */
int parse_proc_vmstat(const char *text, struct os_paging *out) MUST_CHECK;
/* /proc/loadavg. */
int parse_proc_loadavg(const char *text, struct os_load *out) MUST_CHECK;
/* /proc/pressure/X: the total of "some". */
int parse_proc_pressure(const char *text, int64_t *some_ns) MUST_CHECK;
/* /proc/PID/stat. The name may hold anything, parentheses and newlines included. */
int parse_proc_pid_stat(const char *text, int64_t hz, struct os_proc *out) MUST_CHECK;
/* /proc/PID/status: whether its real, effective or saved user is uid. */
bool parse_proc_status_is_of(const char *text, uint32_t uid);
/* A block of NAME=VALUE, each with a NUL behind it: whether one of them is name_value. */
bool parse_proc_environ_has(const char *block, size_t n, const char *name_value);

/* The value behind "KEY:" or "KEY " at the start of a line, as a number in front of an optional
 * unit; false when there is none. */
bool parse_proc_number(const char *text, const char *key, int64_t *value);

#endif

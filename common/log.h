/* log.h: the daemon's log: lines to standard error (or a file) with time, level and subject. One of the few modules with static state. */
#ifndef MAKESPAN_COMMON_LOG_H
#define MAKESPAN_COMMON_LOG_H

#include "common/attr.h"

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
/* Their names, in that order, then NULL. */
extern const char *const LOG_LEVELS[];

/* Opens the log: `path` NULL is standard error. `program` is borrowed for ever. Returns 0 or a negative code. */
int log_open(const char *program, const char *path, enum log_level level) MUST_CHECK;
void log_close(void);
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* While held, lines are kept in a fixed buffer of memory (64 KiB, the oldest win, the rest is counted) and written at release: the
 * worker's timed window writes nothing. Holds add up (several workers may share a process in the simulation): the last release writes. */
void log_hold(void);
void log_release(void);

/* The simulation names the node that speaks; NULL: none. Borrowed. */
void log_set_node(const char *node);

void log_error(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_warn(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_info(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_debug(const char *fmt, ...) PRINTF_LIKE(1, 2);

#endif

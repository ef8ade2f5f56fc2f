/* work.h: what the tests of the worker share: a folder, a loop that turns until something is
 * true, looking at processes. */
#ifndef MAKESPAN_TESTS_UNIT_WORKER_WORK_H
#define MAKESPAN_TESTS_UNIT_WORKER_WORK_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct loop;

/* A new folder of the test's own, mode 0755 on the whole way that the test made; removed with
 * work_dir_remove(). */
char *work_dir_new(void) MUST_CHECK;
void work_dir_remove(char **dir);
/* dir "/" name, freed by the caller. */
char *work_path(const char *dir, const char *name) MUST_CHECK;
void work_write(const char *path, const char *text);
/* The whole file as text; freed by the caller. Fails the test when it cannot be read. */
char *work_read(const char *path) MUST_CHECK;
bool work_there(const char *path);

/* Turns the loop until *flag; fails the test after two minutes. */
void work_until(struct loop *loop, const bool *flag);
/* Turns the loop until a file is there. */
void work_until_file(struct loop *loop, const char *path);
/* Turns the loop for some time, whatever happens: to show that nothing does. */
void work_turn(struct loop *loop, int64_t ns);
/* Runs a shell command and waits; its exit status, or 128 + signal. */
int work_sh(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Whether a process lives (a zombie does not). */
bool work_alive(int64_t pid);
/* Waits until it does not. */
void work_until_gone(int64_t pid);

#endif

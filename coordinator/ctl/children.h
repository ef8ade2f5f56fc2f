/* children.h: the project's other programs, started by this one: found, run to their end, or kept until this one ends. */
#ifndef MAKESPAN_COORDINATOR_CTL_CHILDREN_H
#define MAKESPAN_COORDINATOR_CTL_CHILDREN_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct child;
struct ctl;

/* Writes the path of a program of the project: beside this one when that was started by a path, else its bare name for PATH. Says in ctl->diag which package is missing when neither is there. 0 or a negative
 * code. */
int children_find(struct ctl *ctl, const char *name, char *dst, size_t room) MUST_CHECK;

/* Runs a program to its end; its standard output goes to `out_fd`, its standard error to `err_fd`. Its exit status; negative with text when it could not be started or was killed. */
int children_run(struct ctl *ctl, const char *const *argv, int out_fd, int err_fd);

/* Starts a program that ends with this one: it is given --guard and a pipe for standard input that ends when this process does, however that comes. It has a session of its own: what a terminal
 * sends to its foreground reaches this process alone. Output goes to the file `log`. 0 and *out, or a negative code. */
int children_start(struct ctl *ctl, const char *const *argv, const char *log, struct child **out) MUST_CHECK;
bool children_alive(const struct child *child);
/* Asks it to end (by ending its standard input), waits, kills it in the end. NULL inside is fine. */
void children_stop(struct ctl *ctl, struct child **child);
/* Appends the last lines of a log to standard error: those of a child, or of a file. */
void children_show_log(const struct child *child);
void children_show_file(const char *name, const char *path);

#endif

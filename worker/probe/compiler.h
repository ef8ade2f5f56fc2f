/* compiler.h: which compiler this host has: the first line of `cc --version`, asked by a child. */
#ifndef MAKESPAN_WORKER_PROBE_COMPILER_H
#define MAKESPAN_WORKER_PROBE_COMPILER_H

#include "common/attr.h"

struct diag;
struct loop;
struct probe_compiler;

/* `line` is "" when there is none. */
typedef void probe_compiler_f(const char *line, void *arg);
/* `path`: PATH of the builds. `f` is called once, from the loop, after at most 10 s. */
int probe_compiler_ask(struct loop *loop, const char *path, probe_compiler_f *f, void *arg,
                       struct probe_compiler **out, struct diag *diag) MUST_CHECK;
void probe_compiler_cancel(
    struct probe_compiler **ask); /* NULL inside is fine; not needed after f */

#endif

/* compiler.c: asks which compiler this host has. */
#include "worker/probe/compiler.h"

#include "common/attr.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/proc.h"
#include "worker/os/parse_text.h"

#include <stdio.h>
#include <stdlib.h>

#define PROBE_COMPILER_MAGIC 0x63636363u
#define OUTPUT_MAX (16 * 1024)
#define LIMIT_NS (10 * CLOCK_SEC)

struct probe_compiler {
    unsigned magic;
    struct proc_collect *child;
    probe_compiler_f *f;
    void *arg;
};

static void done(const struct proc_output *output, void *arg)
{
    struct probe_compiler *ask;
    char line[256] = "";
    probe_compiler_f *f;
    void *f_arg;

    CAST_OBJ(ask, arg, PROBE_COMPILER_MAGIC);
    f = ask->f;
    f_arg = ask->arg;
    if (!output->end.signaled && output->end.exit_status == 0)
        (void)parse_line(buf_str(output->out), line, sizeof(line));
    free(ask);
    f(line, f_arg);
}

int probe_compiler_ask(struct loop *loop, const char *path, probe_compiler_f *f, void *arg,
                       struct probe_compiler **out, struct diag *diag)
{
    static const char *const argv[] = {"cc", "--version", NULL};
    struct probe_compiler *ask = mem_xzalloc(sizeof(*ask));
    char *path_var = mem_xasprintf("PATH=%s", path);
    const char *env[] = {path_var, "LC_ALL=C", "TZ=UTC", NULL};
    struct proc_spec spec = PROC_SPEC_INIT;
    int r;

    ask->magic = PROBE_COMPILER_MAGIC;
    ask->f = f;
    ask->arg = arg;
    spec.argv = argv;
    spec.env = env;
    r = proc_collect(loop, &spec, OUTPUT_MAX, LIMIT_NS, done, ask, &ask->child, diag);
    free(path_var);
    if (r != 0) {
        free(ask);
        ask = NULL;
    }
    *out = ask;
    return r;
}

void probe_compiler_cancel(struct probe_compiler **ask)
{
    if (*ask == NULL)
        return;
    proc_collect_cancel(&(*ask)->child);
    free(*ask);
    *ask = NULL;
}

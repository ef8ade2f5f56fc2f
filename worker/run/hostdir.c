/* hostdir.c: asks a host's own folder what it is, by two questions to git. */
#include "worker/run/hostdir.h"

#include "common/attr.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTDIR_MAGIC 0x68646972u
#define LIMIT_NS CLOCK_MIN
#define STATUS_MAX (64 * 1024) /* more changed files than that are just as many */

struct hostdir {
    unsigned magic;
    struct loop *loop;
    struct proc_collect *child;
    char *dir;
    char *path_var;
    bool set_user;
    uint32_t uid;
    uint32_t gid;
    hostdir_f *f;
    void *arg;
    char commit[65];
};

static void release(struct hostdir *h)
{
    if (h->child != NULL)
        proc_collect_cancel(&h->child);
    free(h->dir);
    free(h->path_var);
    h->magic = 0;
    free(h);
}

void hostdir_cancel(struct hostdir **ask)
{
    if (*ask == NULL)
        return;
    release(*ask);
    *ask = NULL;
}

static void finish(struct hostdir *h, const char *says)
{
    hostdir_f *f = h->f;
    void *arg = h->arg;
    char copy[80];

    (void)snprintf(copy, sizeof(copy), "%s", says);
    release(h);
    f(copy, arg);
}

static int ask(struct hostdir *h, const char *const *question, proc_output_f *f, struct diag *diag)
{
    /* Nothing is written to the folder, and no program is started that its configuration names. */
    const char *argv[16] = {"git", "-c",  "safe.directory=*", "-c", "core.fsmonitor=false",
                            "-C",  h->dir};
    const char *env[] = {h->path_var,
                         "LC_ALL=C",
                         "TZ=UTC",
                         "HOME=/",
                         "GIT_OPTIONAL_LOCKS=0",
                         "GIT_TERMINAL_PROMPT=0",
                         "GIT_CONFIG_NOSYSTEM=1",
                         NULL};
    struct proc_spec spec = PROC_SPEC_INIT;
    size_t n = 7;

    for (; *question != NULL; question++)
        argv[n++] = *question;
    argv[n] = NULL;
    spec.argv = argv;
    spec.env = env;
    spec.set_user = h->set_user;
    spec.uid = h->uid;
    spec.gid = h->gid;
    spec.no_core = true;
    return proc_collect(h->loop, &spec, STATUS_MAX, LIMIT_NS, f, h, &h->child, diag);
}

static bool went_well(const struct proc_output *output)
{
    return !output->timed_out && !output->end.signaled && !output->end.exec_failed &&
           output->end.exit_status == 0;
}

static void on_status(const struct proc_output *output, void *arg)
{
    struct hostdir *h;
    char says[80];

    CAST_OBJ(h, arg, HOSTDIR_MAGIC);
    h->child = NULL;
    /* A listing that was cut off has changes in it; one that failed leaves open whether there
     * are any, and that is said as a change. */
    (void)snprintf(says, sizeof(says), "%s%s", h->commit,
                   went_well(output) && output->out->len == 0 ? "" : "+dirty");
    finish(h, says);
}

static void on_commit(const struct proc_output *output, void *arg)
{
    static const char *const status[] = {"status", "--porcelain", "--untracked-files=no", NULL};
    struct hostdir *h;
    const char *text;
    size_t n;

    CAST_OBJ(h, arg, HOSTDIR_MAGIC);
    h->child = NULL;
    text = buf_str(output->out);
    n = strspn(text, "0123456789abcdef");
    if (!went_well(output) || (n != 40 && n != 64) || text[n] != '\n') {
        finish(h, "");
        return;
    }
    /* With its mark a hash of 64 digits would not fit where it is stored; 58 tell it as well. */
    (void)snprintf(h->commit, sizeof(h->commit), "%.*s", n == 64 ? 58 : 40, text);
    if (ask(h, status, on_status, NULL) != 0) {
        char says[80];

        (void)snprintf(says, sizeof(says), "%s+dirty", h->commit);
        finish(h, says);
    }
}

int hostdir_ask(struct loop *loop, const struct hostdir_spec *spec, hostdir_f *f, void *arg,
                struct hostdir **out, struct diag *diag)
{
    static const char *const head[] = {"rev-parse", "--verify", "--quiet", "HEAD^{commit}", NULL};
    struct hostdir *h = mem_xzalloc(sizeof(*h));
    int r;

    *out = NULL;
    h->magic = HOSTDIR_MAGIC;
    h->loop = loop;
    h->dir = mem_xstrdup(spec->dir);
    h->path_var = mem_xasprintf("PATH=%s", spec->path);
    h->set_user = spec->set_user;
    h->uid = spec->uid;
    h->gid = spec->gid;
    h->f = f;
    h->arg = arg;
    r = ask(h, head, on_commit, diag);
    if (r != 0) {
        release(h);
        return r;
    }
    *out = h;
    return 0;
}

/* hostdir.h: asks a host's own folder what it is: git's commit and whether tracked files were
 * changed, from the folder itself. */
#ifndef MAKESPAN_WORKER_RUN_HOSTDIR_H
#define MAKESPAN_WORKER_RUN_HOSTDIR_H

#include "common/attr.h"

#include <stdbool.h>
#include <stdint.h>

struct diag;
struct hostdir;
struct loop;

struct hostdir_spec {
    const char *dir;
    const char *path; /* PATH of git */
    bool set_user; /* asked as the build's user: a repository's configuration can name programs */
    uint32_t uid;
    uint32_t gid;
};

/* "COMMIT" or "COMMIT+dirty"; "" when it is no git tree, or git is not there. The object is gone
 * after the call. */
typedef void hostdir_f(const char *says, void *arg);
int hostdir_ask(struct loop *loop, const struct hostdir_spec *spec, hostdir_f *f, void *arg,
                struct hostdir **out, struct diag *diag) MUST_CHECK;
void hostdir_cancel(struct hostdir **ask); /* NULL inside is fine; not after f */

#endif

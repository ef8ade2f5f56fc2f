/* treehash.h: git's hash of a folder, computed from what is there: the worker's own answer to
 * "which tree is this".
 *
 * Files are 100644, or 100755 when their owner may execute them; links are 120000; folders
 * without a file are not there, as in git. The walk is done in slices between which the loop
 * turns. */
#ifndef MAKESPAN_WORKER_RUN_TREEHASH_H
#define MAKESPAN_WORKER_RUN_TREEHASH_H

#include "common/attr.h"

#include <stdbool.h>

struct diag;
struct loop;
struct treehash;

/* code 0: hex has 40 or 64 digits. Else text says why. The object is gone after the call. */
typedef void treehash_f(int code, const char *hex, const char *text, void *arg);

/* `sha256`: as in a repository of that object format. `f` is called once, from the loop. */
int treehash_start(struct loop *loop, const char *folder, bool sha256, treehash_f *f, void *arg,
                   struct treehash **out, struct diag *diag) MUST_CHECK;
void treehash_cancel(struct treehash **hash); /* NULL inside is fine; not after f */

#endif

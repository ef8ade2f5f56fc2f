/* tarlinks.h: the symbolic links that an archive has made so far: is this path one, does it lie
 * below one. */
#ifndef MAKESPAN_WORKER_RUN_TARLINKS_H
#define MAKESPAN_WORKER_RUN_TARLINKS_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>

struct tarlinks;

#define TARLINKS_BYTES (64 * 1024 * 1024) /* memory for all of them */

struct tarlinks *tarlinks_new(void) MUST_CHECK;
void tarlinks_free(struct tarlinks **links);
/* Adds a link by its plain path. `target` not NULL: kept too, to be judged at the end. 0 or
 * -ERR_LIMIT. */
int tarlinks_add(struct tarlinks *links, const char *path, const char *target) MUST_CHECK;
bool tarlinks_has(const struct tarlinks *links, const char *path);
/* Whether a folder above the last part of path is a link. */
bool tarlinks_above(const struct tarlinks *links, const char *path);
/* Judges the targets that were kept: NULL, or what is wrong and *path whose it is. */
const char *tarlinks_judge(const struct tarlinks *links, const char **path) MUST_CHECK;

#endif

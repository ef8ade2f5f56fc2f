/* tarname.h: which names and links of an archive stay within the folder it is unpacked into.
 * Pure; touches no file. */
#ifndef MAKESPAN_WORKER_RUN_TARNAME_H
#define MAKESPAN_WORKER_RUN_TARNAME_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>

#define TARNAME_MAX 4096
#define TARNAME_PART_MAX 255

/* Brings a name of n bytes to its plain form: no ".", no empty part, no slash at the end; "" is
 * the folder itself. NULL when it may be used, else what is wrong with it, to be put behind the
 * name ("is absolute"). dst has TARNAME_MAX bytes. */
const char *tarname_clean(const char *name, size_t n, char *dst) MUST_CHECK;

/* What a symbolic link at `path` (in plain form) may say: relative, with ".." only at its start,
 * and not more of them than there are folders above. Then no sequence of such links leads out:
 * each leads down from a folder within. A ".." behind another part sets *later: whether it stays
 * within depends on whether the parts before are links, which tarname_walk() looks at once all
 * links are known. NULL when it may be used. */
const char *tarname_link(const char *path, const char *target, size_t n, bool *later) MUST_CHECK;

/* Calls is_link for each folder that the target passes before a "..", as a plain path; true from
 * it: the target cannot be judged, and the result is a complaint. Else the target is judged by
 * its letters, which then say the truth. NULL when it stays within. */
typedef bool tarname_is_link_f(const char *path, void *arg);
const char *tarname_walk(const char *path, const char *target, tarname_is_link_f *is_link,
                         void *arg) MUST_CHECK;

#endif

/* env.h: the fixed clean environment of a build's commands. Pure.
 *
 * Nothing of the worker's own environment gets in: PATH comes from its configuration, the rest
 * from here and from the variant.
 *     PATH HOME TMPDIR LC_ALL=C TZ=UTC SHELL=/bin/sh  JOBS JFLAG NCPU VARIANT REV KERNEL
 *       KERNEL_SHORT  SRC OBJ OBJ1…OBJn
 * then the variant's own variables, which may replace any of them, and confine_env(). JOBS is a
 * number or empty, JFLAG is "-j4", "-j" or empty. */
#ifndef MAKESPAN_WORKER_RUN_ENV_H
#define MAKESPAN_WORKER_RUN_ENV_H

#include "common/attr.h"

#include <stddef.h>
#include <stdint.h>

struct env;

struct env_spec {
    const char *path;   /* PATH */
    const char *home;   /* HOME */
    const char *tmpdir; /* TMPDIR */
    int64_t jobs;       /* 1 to 4096, 0 none, -1 max */
    int32_t ncpu;       /* usable CPUs */
    const char *variant;
    const char *rev;    /* NULL: "" */
    const char *kernel; /* NULL: "" ; KERNEL_SHORT is its first 12 characters */
    const char *src;
    const char *obj;
    const char *const *objs; /* OBJ1…; NULL with count 0: OBJ1 is obj */
    size_t obj_count;
    const char *mark;       /* confine_env(), or NULL */
    const char *const *own; /* NAME=VALUE of the variant */
    size_t own_count;
};

/* Copies all. -ERR_INVAL with text in diag for an own variable without a name or "=". */
struct diag;
int env_new(const struct env_spec *spec, struct env **out, struct diag *diag) MUST_CHECK;
void env_free(struct env **env);
/* NAME=VALUE …, NULL at the end: for proc_spec. Borrowed. */
const char *const *env_list(const struct env *env);
/* NULL when not set. */
const char *env_get(const struct env *env, const char *name);

/* Names of the variables in `outer` (NAME=VALUE …, NULL at the end: the worker's own
 * environment) that the build does not get, or gets with another value: those that steer builds
 * (MAKEFLAGS, CC, CCACHE_*, …) first, then the rest, each part in order, at most `max`; names
 * that are not UTF-8 are left out. Returned names are in *names (freed with env_dropped_free),
 * the count is the result. */
size_t env_dropped(const struct env *env, char *const *outer, size_t max, char ***names);
void env_dropped_free(char ***names, size_t count);

#endif

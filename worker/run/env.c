/* env.c: builds the environment of a build's commands. */
#include "worker/run/env.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_SHORT 12

struct env {
    char **list; /* NAME=VALUE, NULL at the end */
    size_t count;
};

/* Length of the name of NAME=VALUE; 0 when it is none. */
static size_t name_len(const char *name_value)
{
    const char *eq = strchr(name_value, '=');

    return eq == NULL ? 0 : (size_t)(eq - name_value);
}

static char **find(const struct env *env, const char *name, size_t len)
{
    for (size_t i = 0; i < env->count; i++)
        if (name_len(env->list[i]) == len && memcmp(env->list[i], name, len) == 0)
            return &env->list[i];
    return NULL;
}

/* Sets or replaces; owns the text. */
static void take(struct env *env, char *name_value)
{
    char **old = find(env, name_value, name_len(name_value));

    if (old != NULL) {
        free(*old);
        *old = name_value;
        return;
    }
    env->list = mem_xrealloc(env->list, env->count + 2, sizeof(*env->list));
    env->list[env->count++] = name_value;
    env->list[env->count] = NULL;
}

static void set(struct env *env, const char *name, const char *value)
{
    take(env, mem_xasprintf("%s=%s", name, value == NULL ? "" : value));
}

static void set_jobs(struct env *env, int64_t jobs)
{
    char number[32] = "", flag[32] = "";

    if (jobs > 0) {
        (void)snprintf(number, sizeof(number), "%" PRId64, jobs);
        (void)snprintf(flag, sizeof(flag), "-j%" PRId64, jobs);
    } else if (jobs < 0) {
        (void)str_copy(flag, sizeof(flag), "-j");
    }
    set(env, "JOBS", number);
    set(env, "JFLAG", flag);
}

int env_new(const struct env_spec *spec, struct env **out, struct diag *diag)
{
    struct env *env = mem_xzalloc(sizeof(*env));
    const char *kernel = spec->kernel == NULL ? "" : spec->kernel;
    char text[64];

    set(env, "PATH", spec->path);
    set(env, "HOME", spec->home);
    set(env, "TMPDIR", spec->tmpdir);
    set(env, "LC_ALL", "C");
    set(env, "TZ", "UTC");
    set(env, "SHELL", "/bin/sh");
    set_jobs(env, spec->jobs);
    (void)snprintf(text, sizeof(text), "%" PRId32, spec->ncpu);
    set(env, "NCPU", text);
    set(env, "VARIANT", spec->variant);
    set(env, "REV", spec->rev);
    set(env, "KERNEL", kernel);
    (void)snprintf(text, sizeof(text), "%.*s", KERNEL_SHORT, kernel);
    set(env, "KERNEL_SHORT", text);
    set(env, "SRC", spec->src);
    set(env, "OBJ", spec->obj);
    for (size_t i = 0; i < spec->obj_count; i++) {
        (void)snprintf(text, sizeof(text), "OBJ%zu", i + 1);
        set(env, text, spec->objs[i]);
    }
    if (spec->obj_count == 0)
        set(env, "OBJ1", spec->obj);
    for (size_t i = 0; i < spec->own_count; i++) {
        if (name_len(spec->own[i]) == 0) {
            env_free(&env);
            *out = NULL;
            return diag_error(diag, ERR_INVAL, "`%s` is no variable: NAME=VALUE is needed",
                              spec->own[i]);
        }
        take(env, mem_xstrdup(spec->own[i]));
    }
    if (spec->mark != NULL)
        take(env, mem_xstrdup(spec->mark));
    *out = env;
    return 0;
}

void env_free(struct env **env)
{
    if (*env == NULL)
        return;
    for (size_t i = 0; i < (*env)->count; i++)
        free((*env)->list[i]);
    free((*env)->list);
    free(*env);
    *env = NULL;
}

const char *const *env_list(const struct env *env)
{
    return (const char *const *)env->list;
}

const char *env_get(const struct env *env, const char *name)
{
    char **at = find(env, name, strlen(name));

    return at == NULL ? NULL : *at + strlen(name) + 1;
}

/* Whether a variable of this name changes how programs build: a name, or the start of one where
 * a '*' stands. */
static bool steers(const char *name, size_t len)
{
    static const char *const known[] = {
        "MAKE*",
        "MFLAGS",
        "GNUMAKE*",
        "MAKELEVEL",
        "NINJA*",
        "CMAKE*",
        "CCACHE*",
        "DISTCC*",
        "SCCACHE*",
        "ICECC*",
        "CC",
        "CXX",
        "CPP",
        "LD",
        "AR",
        "AS",
        "NM",
        "RANLIB",
        "*FLAGS",
        "LDLIBS",
        "ARCH",
        "CROSS*",
        "KBUILD*",
        "KCFLAGS",
        "LD_*",
        "GCC_*",
        "COMPILER_PATH",
        "C_INCLUDE_PATH",
        "CPATH",
        "CPLUS_INCLUDE_PATH",
        "LIBRARY_PATH",
        "PKG_CONFIG*",
        "PYTHON*",
        "PERL5*",
        "CARGO*",
        "RUST*",
        "GO*",
        "OMP_*",
        "GOMP_*",
        "MALLOC_*",
        "SOURCE_DATE_EPOCH",
        "CONFIG_SITE",
        "JOBS",
        "V",
        "O",
    };

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        size_t n = strlen(known[i]);

        if (known[i][0] == '*'
                ? len >= n - 1 && memcmp(name + len - (n - 1), known[i] + 1, n - 1) == 0
            : known[i][n - 1] == '*' ? len >= n - 1 && memcmp(name, known[i], n - 1) == 0
                                     : len == n && memcmp(name, known[i], n) == 0)
            return true;
    }
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

size_t env_dropped(const struct env *env, char *const *outer, size_t max, char ***names)
{
    size_t n = 0, total = 0, steering = 0;
    char **list;

    while (outer[total] != NULL)
        total++;
    list = mem_xarray(total + 1, sizeof(*list));
    /* Two passes: first what steers builds. */
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < total; i++) {
            size_t len = name_len(outer[i]);
            char **mine;

            if (len == 0 || len > 256 || !str_is_utf8(outer[i], len) ||
                steers(outer[i], len) != (pass == 0))
                continue;
            mine = find(env, outer[i], len);
            if (mine != NULL && strcmp(*mine, outer[i]) == 0)
                continue;
            list[n++] = mem_xstrndup(outer[i], len);
        }
        if (pass == 0) {
            steering = n;
            qsort(list, n, sizeof(*list), by_name);
        }
    }
    qsort(list + steering, n - steering, sizeof(*list), by_name);
    while (n > max)
        free(list[--n]);
    *names = list;
    return n;
}

void env_dropped_free(char ***names, size_t count)
{
    if (*names == NULL)
        return;
    for (size_t i = 0; i < count; i++)
        free((*names)[i]);
    free(*names);
    *names = NULL;
}

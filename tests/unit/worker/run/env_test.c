/* env_test.c: the environment of a build is fixed and clean, and what was left out is known;
 * marks keep their first text. */
#include "worker/run/env.h"

#include "common/diag.h"
#include "common/err.h"
#include "tests/unit/worker/work.h"
#include "worker/run/marks.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct env_spec plain(void)
{
    return (struct env_spec){.path = "/usr/bin:/bin",
                             .home = "/w/home",
                             .tmpdir = "/w/tmp",
                             .jobs = 4,
                             .ncpu = 6,
                             .variant = "prepatch",
                             .rev = "51be0aa",
                             .kernel = "8f3c1d2f00d0123456789",
                             .src = "/w/build/src",
                             .obj = "/w/build/obj",
                             .mark = "MAKESPAN_WORKER=x"};
}

Test(env, exactly_these)
{
    static const char *const want[] = {
        "PATH=/usr/bin:/bin",
        "HOME=/w/home",
        "TMPDIR=/w/tmp",
        "LC_ALL=C",
        "TZ=UTC",
        "SHELL=/bin/sh",
        "JOBS=4",
        "JFLAG=-j4",
        "NCPU=6",
        "VARIANT=prepatch",
        "REV=51be0aa",
        "KERNEL=8f3c1d2f00d0123456789",
        "KERNEL_SHORT=8f3c1d2f00d0",
        "SRC=/w/build/src",
        "OBJ=/w/build/obj",
        "OBJ1=/w/build/obj",
        "MAKESPAN_WORKER=x",
    };
    struct env_spec spec = plain();
    struct env *env;
    size_t n = 0;

    /* Whatever the worker itself was started with. */
    cr_assert_eq(setenv("MAKEFLAGS", "-l0.01", 1), 0);
    cr_assert_eq(setenv("CCACHE_DIR", "/c", 1), 0);
    cr_assert_eq(env_new(&spec, &env, NULL), 0);
    while (env_list(env)[n] != NULL) {
        cr_assert(n < ARRAY_LEN(want), "%s", env_list(env)[n]);
        cr_expect_str_eq(env_list(env)[n], want[n]);
        n++;
    }
    cr_expect_eq(n, ARRAY_LEN(want));
    env_free(&env);
    cr_expect_null(env);
}

/* What finds a build's processes after a crash of the worker is not the build's to change. */
Test(env, the_mark_stays)
{
    static const char *const own[] = {"HOME=/h", "MAKESPAN_WORKER=y"};
    struct env_spec spec = plain();
    struct env *env;

    spec.own = own;
    spec.own_count = ARRAY_LEN(own);
    cr_assert_eq(env_new(&spec, &env, NULL), 0);
    cr_expect_str_eq(env_get(env, "HOME"), "/h");
    cr_expect_str_eq(env_get(env, "MAKESPAN_WORKER"), "x");
    env_free(&env);
}

Test(env, job_counts)
{
    static const struct {
        int64_t jobs;
        const char *number, *flag;
    } row[] = {{0, "", ""}, {1, "1", "-j1"}, {4096, "4096", "-j4096"}, {-1, "", "-j"}};

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct env_spec spec = plain();
        struct env *env;

        spec.jobs = row[i].jobs;
        cr_assert_eq(env_new(&spec, &env, NULL), 0);
        cr_expect_str_eq(env_get(env, "JOBS"), row[i].number);
        cr_expect_str_eq(env_get(env, "JFLAG"), row[i].flag);
        env_free(&env);
    }
}

Test(env, several_objs_and_absent_texts)
{
    static const char *const objs[] = {"/a", "/b"};
    struct env_spec spec = plain();
    struct env *env;

    spec.objs = objs;
    spec.obj_count = 2;
    spec.kernel = NULL;
    spec.rev = NULL;
    spec.mark = NULL;
    cr_assert_eq(env_new(&spec, &env, NULL), 0);
    cr_expect_str_eq(env_get(env, "OBJ1"), "/a");
    cr_expect_str_eq(env_get(env, "OBJ2"), "/b");
    cr_expect_null(env_get(env, "OBJ3"));
    cr_expect_str_eq(env_get(env, "KERNEL"), "");
    cr_expect_str_eq(env_get(env, "KERNEL_SHORT"), "");
    cr_expect_str_eq(env_get(env, "REV"), "");
    cr_expect_null(env_get(env, "MAKESPAN_WORKER"));
    env_free(&env);
}

Test(env, the_variants_own_come_last_and_win)
{
    static const char *const own[] = {"OPT=-O2 -g", "PATH=/opt/cc/bin", "MAKEFLAGS=-k",
                                      "EMPTY=", "OPT=-O3"};
    struct env_spec spec = plain();
    struct env *env;

    spec.own = own;
    spec.own_count = ARRAY_LEN(own);
    cr_assert_eq(env_new(&spec, &env, NULL), 0);
    cr_expect_str_eq(env_get(env, "OPT"), "-O3");
    cr_expect_str_eq(env_get(env, "PATH"), "/opt/cc/bin");
    cr_expect_str_eq(env_get(env, "MAKEFLAGS"), "-k", "the sweep may set it");
    cr_expect_str_eq(env_get(env, "EMPTY"), "");
    for (size_t i = 0; env_list(env)[i] != NULL; i++)
        for (size_t k = i + 1; env_list(env)[k] != NULL; k++)
            cr_expect_neq(
                strcspn(env_list(env)[i], "="),
                strncmp(env_list(env)[i], env_list(env)[k], strcspn(env_list(env)[i], "=") + 1) == 0
                    ? strcspn(env_list(env)[i], "=")
                    : SIZE_MAX,
                "twice: %s", env_list(env)[i]);
    env_free(&env);
}

Test(env, what_is_no_variable)
{
    static const char *const bad[] = {"NOVALUE", "=x", ""};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct env_spec spec = plain();
        struct diag *diag = diag_new(1);
        struct env *env;

        spec.own = &bad[i];
        spec.own_count = 1;
        cr_expect_eq(env_new(&spec, &env, diag), -ERR_INVAL);
        cr_expect_null(env);
        cr_expect(strstr(diag_first(diag), "NAME=VALUE") != NULL);
        diag_free(&diag);
    }
}

/* Each of these reached a build once, somewhere, and changed what it measured. */
Test(env, what_was_left_out_is_listed)
{
    char *outer[] = {(char *)"LANG=de_DE.UTF-8",
                     (char *)"MAKEFLAGS=-l0.01",
                     (char *)"PATH=/usr/bin:/bin",
                     (char *)"GNUMAKEFLAGS=-j1",
                     (char *)"MFLAGS=-n",
                     (char *)"MAKELEVEL=2",
                     (char *)"CCACHE_DIR=/c",
                     (char *)"DISTCC_HOSTS=a b",
                     (char *)"CMAKE_BUILD_PARALLEL_LEVEL=9",
                     (char *)"CFLAGS=-O0",
                     (char *)"HOME=/root",
                     (char *)"NINJA_STATUS=x",
                     (char *)"\xff=1",
                     (char *)"OMP_NUM_THREADS=3",
                     (char *)"novalue",
                     (char *)"LD_PRELOAD=x.so",
                     (char *)"AAA=1",
                     NULL};
    static const char *const want[] = {"CCACHE_DIR",
                                       "CFLAGS",
                                       "CMAKE_BUILD_PARALLEL_LEVEL",
                                       "DISTCC_HOSTS",
                                       "GNUMAKEFLAGS",
                                       "LD_PRELOAD",
                                       "MAKEFLAGS",
                                       "MAKELEVEL",
                                       "MFLAGS",
                                       "NINJA_STATUS",
                                       "OMP_NUM_THREADS",
                                       "AAA",
                                       "HOME",
                                       "LANG"};
    struct env_spec spec = plain();
    struct env *env;
    char **names;
    size_t n;

    cr_assert_eq(env_new(&spec, &env, NULL), 0);
    n = env_dropped(env, outer, 64, &names);
    cr_assert_eq(n, ARRAY_LEN(want), "%zu", n);
    for (size_t i = 0; i < n; i++)
        cr_expect_str_eq(names[i], want[i]);
    env_dropped_free(&names, n);
    n = env_dropped(env, outer, 3, &names);
    cr_expect_eq(n, 3);
    cr_expect_str_eq(names[2], "CMAKE_BUILD_PARALLEL_LEVEL");
    env_dropped_free(&names, n);
    cr_expect_null(names);
    env_free(&env);
}

Test(marks, first_text_wins_and_nothing_overflows)
{
    struct marks a = {.count = 0}, b = {.count = 0};

    marks_add(&a, MARK_SURVIVORS, "%d left", 3);
    marks_add(&a, MARK_SURVIVORS, "other");
    marks_add(&a, MARK_SUSPEND, "slept");
    cr_expect_eq(a.count, 2);
    cr_expect_str_eq(marks_find(&a, MARK_SURVIVORS)->text, "3 left");
    cr_expect_not(marks_find(&a, MARK_SURVIVORS)->invalid);
    cr_expect(marks_find(&a, MARK_SUSPEND)->invalid);
    cr_expect_null(marks_find(&a, MARK_LOAD));
    marks_add(&b, MARK_LOAD, "7");
    marks_add(&b, MARK_SUSPEND, "again");
    marks_merge(&a, &b);
    cr_expect_eq(a.count, 3);
    cr_expect_str_eq(marks_find(&a, MARK_SUSPEND)->text, "slept");
    for (int i = 100; i < 200; i++)
        marks_add(&a, (enum mark)i, "x");
    cr_expect_eq(a.count, MARKS_MAX);
}

/* source_help.c: a folder with a shell, and readings of sources in it. */
#include "tests/unit/proto/source_help.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/proc.h"
#include "common/str.h"

#include <criterion/criterion.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_NS (INT64_C(60) * 1000000000)

void bench_open(struct bench *b)
{
    memset(b, 0, sizeof(*b));
    const char *tmp = getenv("TMPDIR");
    snprintf(b->dir, sizeof(b->dir), "%s/makespan-source.XXXXXX", tmp != NULL ? tmp : "/tmp");
    cr_assert(mkdtemp(b->dir) != NULL);
    snprintf(b->work, sizeof(b->work), "%s/work", b->dir);
    snprintf(b->mirrors, sizeof(b->mirrors), "%s/mirrors", b->dir);
    b->loop = loop_new();
    cr_assert(b->loop != NULL);
}

void bench_close(struct bench *b)
{
    buf_fini(&b->said);
    loop_free(&b->loop);
    cr_expect_eq(file_remove_tree(b->dir), 0);
}

const char *at(struct bench *b, const char *name)
{
    static char paths[8][PATH_ROOM];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, PATH_ROOM, "%s/%s", b->dir, name);
    return path;
}

static void on_shell(const struct proc_output *o, void *arg)
{
    struct bench *b = arg;
    b->ended = true;
    b->status = o->end.signaled || o->timed_out ? 999 : o->end.exit_status;
    buf_reset(&b->said);
    buf_add_str(&b->said, buf_str(o->out));
    if (b->said.len > 0 && b->said.data[b->said.len - 1] == '\n') {
        b->said.data[--b->said.len] = '\0';
    }
    if (b->status != 0) {
        fputs(buf_str(o->err), stderr);
    }
}

static int run(struct bench *b, const char *fmt, va_list ap)
{
    struct buf script = BUF_INIT;
    struct diag *diag = diag_new(1);
    struct proc_spec spec = PROC_SPEC_INIT;
    const char *env[] = {"PATH=/usr/local/bin:/usr/bin:/bin",
                         "LC_ALL=C",
                         "HOME=/nonexistent",
                         "GIT_CONFIG_NOSYSTEM=1",
                         "GIT_AUTHOR_NAME=a",
                         "GIT_AUTHOR_EMAIL=a@example.org",
                         "GIT_COMMITTER_NAME=c",
                         "GIT_COMMITTER_EMAIL=c@example.org",
                         "GIT_AUTHOR_DATE=@1700000000 +0000",
                         "GIT_COMMITTER_DATE=@1700000000 +0000",
                         NULL};
    buf_add_str(&script,
                "set -e; umask 022; git() { command git -c init.defaultBranch=main \"$@\"; }\n");
    buf_vprintf(&script, fmt, ap);
    const char *argv[] = {"/bin/sh", "-c", buf_str(&script), NULL};
    spec.argv = argv;
    spec.env = env;
    spec.cwd = b->dir;
    b->ended = false;
    cr_assert_eq(proc_collect(b->loop, &spec, 1000000, LIMIT_NS, on_shell, b, NULL, diag), 0, "%s",
                 diag_first(diag));
    while (!b->ended) {
        loop_turn(b->loop, -1);
    }
    diag_free(&diag);
    buf_fini(&script);
    return b->status;
}

const char *sh(struct bench *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int status = run(b, fmt, ap);
    va_end(ap);
    cr_assert_eq(status, 0, "the script `%s` ended with %d", fmt, status);
    return buf_str(&b->said);
}

int sh_status(struct bench *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int status = run(b, fmt, ap);
    va_end(ap);
    return status;
}

static void on_source(const struct source_result *r, void *arg)
{
    struct bench *b = arg;
    cr_assert(!b->told, "told twice");
    b->told = true;
    b->code = r->code;
    b->count = r->count;
    snprintf(b->text, sizeof(b->text), "%s", r->text);
    snprintf(b->warning, sizeof(b->warning), "%s", r->warning != NULL ? r->warning : "");
    cr_assert(r->count <= 16);
    for (size_t i = 0; i < r->count; i++) {
        b->revs[i] = r->revs[i];
        b->paths[i][0] = '\0';
        if (r->revs[i].path != NULL) {
            snprintf(b->paths[i], PATH_ROOM, "%s/kept-%zu.tar", b->dir, i);
            if (b->keep) {
                cr_assert_eq(file_rename(r->revs[i].path, b->paths[i]), 0);
            }
            b->revs[i].path = b->paths[i];
        }
    }
}

void bench_read(struct bench *b, struct source_spec *spec)
{
    struct diag *diag = diag_new(1);
    struct source *source = NULL;
    spec->work = b->work;
    b->told = false;
    cr_assert_eq(source_start(b->loop, spec, on_source, b, &source, diag), 0, "%s",
                 diag_first(diag));
    cr_assert(!b->told, "told before a later turn");
    while (!b->told) {
        loop_turn(b->loop, -1);
    }
    diag_free(&diag);
}

struct source_spec git_spec(struct bench *b, const char *name, const char *rev)
{
    return (struct source_spec){.kind = SOURCE_GIT,
                                .path = at(b, name),
                                .expr = {.to = {.a = rev}},
                                .archive = true,
                                .mirrors = b->mirrors};
}

void expect_ok(struct bench *b, size_t count)
{
    cr_assert_eq(b->code, 0, "%s", b->text);
    cr_assert_eq(b->count, count);
    cr_expect_str_eq(b->text, "");
}

const char *tree_of(struct bench *b, size_t i)
{
    return sh(b,
              "rm -rf un && mkdir un && tar -xf %s -C un && cd un && git init -q && git add -A -f "
              ". && git write-tree &&"
              " rm -rf .git",
              b->paths[i]);
}

void expect_hash(struct bench *b, size_t i)
{
    char hex[65];
    str_hex(hex, b->revs[i].hash, SOURCE_HASH);
    cr_expect_str_eq(sh(b, "sha256sum %s | cut -c1-64", b->paths[i]), hex);
    char size[32];
    snprintf(size, sizeof(size), "%llu", (unsigned long long)b->revs[i].size);
    cr_expect_str_eq(sh(b, "stat -c %%s %s", b->paths[i]), size);
}

void expect_clean_work(struct bench *b)
{
    cr_expect_str_eq(sh(b, "ls work"), "", "something was left in the work folder");
}

void expect_failure(struct bench *b, struct source_spec *spec, int code, const char *text)
{
    bench_read(b, spec);
    cr_expect_eq(b->code, -code, "%s: %s", err_name(b->code), b->text);
    cr_expect(strstr(b->text, text) != NULL, "said: %s\nwanted: %s", b->text, text);
    cr_expect(strncmp(b->text, spec->path, strlen(spec->path)) == 0 ||
                  strstr(spec->path, "://") != NULL,
              "the source is named: %s", b->text);
    cr_expect_eq(b->count, 0);
}

/* source_test.c: mirrors, folders and files as archives, and the life of a reading, by real git
 * and tar. */
#include "proto/source.h"

#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/loop.h"
#include "common/str.h"
#include "tests/unit/proto/source_help.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

Test(url, is_told_from_a_path)
{
    const char *urls[] = {"https://example.org/x.git",
                          "ssh://h/x",
                          "git://h/x",
                          "host:path",
                          "user@host:/x",
                          "a://b"};
    const char *paths[] = {"/srv/git/x.git", ".",  "..",           "x", "./a:b", "/a:b",
                           "dir/a:b",        ":x", "file:///srv/x"};
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        cr_expect(source_is_url(urls[i]), "%s", urls[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        cr_expect(!source_is_url(paths[i]), "%s", paths[i]);
    }
}

/* --- mirrors --- */

Test(mirror, is_made_and_follows)
{
    struct bench b;
    char url[256];
    bench_open(&b);
    sh(&b, "%s", REPO);
    /* As git sees it, a URL; for us it is none of this machine's paths. */
    snprintf(url, sizeof(url), "localhost:%s", at(&b, "r"));
    struct source_spec spec = git_spec(&b, "r", "HEAD");
    spec.path = url;
    spec.mirrors = NULL;
    expect_failure(&b, &spec, ERR_INVAL, "is read by the coordinator only");
    spec.mirrors = b.mirrors;
    /* In the place of ssh stands a shell that runs the command here. */
    sh(&b,
       "printf '#!/bin/sh\\necho x >>%s/calls\\nshift $(($# - 1))\\neval \"$1\"\\n' >fake-ssh; "
       "chmod +x fake-ssh",
       b.dir);
    setenv("GIT_SSH_COMMAND", at(&b, "fake-ssh"), 1);
    b.keep = true;
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    cr_expect_str_eq(b.revs[0].subject, "third");
    cr_expect_str_eq(tree_of(&b, 0), b.revs[0].tree);
    char old[65];
    snprintf(old, sizeof(old), "%s", b.revs[0].commit);
    sh(&b, "cd r && echo four >a && git commit -qam fourth && git branch -q new && git branch -qD "
           "topic");
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    cr_expect_str_eq(b.revs[0].subject, "fourth");
    spec.expr.to.a = "new";
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    spec.expr.to.a = "topic";
    expect_failure(&b, &spec, ERR_NOTFOUND, "there is no revision `topic`");
    /* A full hash that is here needs no connection. */
    sh(&b, "rm calls");
    spec.expr.to.a = old;
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    cr_expect_neq(sh_status(&b, "test -e calls"), 0, "it was fetched");
    spec.expr.to.a = "v1";
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    cr_expect_eq(sh_status(&b, "test -e calls"), 0);
    cr_expect_str_eq(sh(&b, "ls mirrors | wc -l"), "1");
    /* One whose fetch was killed is made anew. */
    sh(&b,
       "cd r && echo five >a && git commit -qam fifth; : >$(ls -d ../mirrors/*)/packed-refs.lock; :"
       " >$(ls -d ../mirrors/*)/refs/heads/main.lock");
    spec.expr.to.a = "HEAD";
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    cr_expect_str_eq(b.revs[0].subject, "fifth");
    /* HEAD may stand for nothing. */
    sh(&b, "git -C r symbolic-ref HEAD refs/heads/gone");
    spec.expr.to.a = "new";
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    expect_clean_work(&b);
    bench_close(&b);
}

Test(mirror, says_why_it_cannot_be_made)
{
    struct bench b;
    bench_open(&b);
    struct source_spec spec = git_spec(&b, "r", "v1");
    spec.path = "git://127.0.0.1:1/none.git";
    expect_failure(&b, &spec, ERR_CHILD, "git cannot fetch it");
    cr_expect(strstr(b.text, "git://127.0.0.1:1/none.git: ") == b.text, "%s", b.text);
    spec.path = "git://user:secret@127.0.0.1:1/none.git";
    bench_read(&b, &spec);
    cr_expect(strncmp(b.text, "git://user@127.0.0.1:1/none.git: ", 33) == 0, "%s", b.text);
    spec.path = "git://user:sec@ret@127.0.0.1:1/no@ne.git";
    bench_read(&b, &spec);
    cr_expect(strncmp(b.text, "git://user@127.0.0.1:1/no@ne.git: ", 34) == 0, "%s", b.text);
    cr_expect(strstr(b.text, "sec@ret") == NULL, "git's own words hold the password: %s", b.text);
    bench_close(&b);
}

/* --- folders and files --- */

Test(folder, is_packed_the_same_every_time)
{
    struct bench b;
    uint8_t first[SOURCE_HASH];
    bench_open(&b);
    sh(&b, "mkdir -p f/b f/.git f/sub/.git && echo 1 >f/z && echo 2 >f/b/a && echo no >f/.git/x && "
           "echo no >f/sub/.git/y &&"
           " chmod 4775 f/z && chmod 600 f/b/a && ln f/z f/hard && ln -s z f/soft");
    struct source_spec spec = {.kind = SOURCE_DIR, .path = at(&b, "f"), .archive = true};
    b.keep = true;
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    expect_hash(&b, 0);
    memcpy(first, b.revs[0].hash, SOURCE_HASH);
    cr_expect_str_eq(b.revs[0].commit, "");
    cr_expect_str_eq(sh(&b, "tar -tf %s", b.paths[0]),
                     "./\n./b/\n./b/a\n./hard\n./soft\n./sub/\n./z");
    cr_expect_str_eq(
        sh(&b, "mkdir un; tar -xpf %s -C un; stat -c '%%a %%u %%Y' un/z un/b/a", b.paths[0]),
        "755 0 1000000000\n644 0 1000000000");
    sh(&b, "touch f/z f/b; chmod 755 f/z; mv f g; cp -r g f");
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    cr_expect_arr_eq(b.revs[0].hash, first, SOURCE_HASH);
    sh(&b, "echo 3 >f/b/a");
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    cr_expect(memcmp(b.revs[0].hash, first, SOURCE_HASH) != 0);
    expect_clean_work(&b);
    bench_close(&b);
}

Test(folder, that_cannot_be_packed)
{
    struct bench b;
    bench_open(&b);
    sh(&b, "echo x >file; mkdir big; head -c 300000 /dev/zero >big/z");
    struct source_spec spec = {.kind = SOURCE_DIR, .path = at(&b, "none"), .archive = true};
    expect_failure(&b, &spec, ERR_NOTFOUND, "there is no such folder");
    spec.path = at(&b, "file");
    expect_failure(&b, &spec, ERR_NOTFOUND, "there is no such folder");
    spec.path = at(&b, "big");
    spec.size_max = 100000;
    expect_failure(&b, &spec, ERR_LIMIT, "is longer than 100 KB");
    bench_close(&b);
}

Test(file, is_taken_as_it_is)
{
    struct bench b;
    bench_open(&b);
    sh(&b, "mkdir f && echo 1 >f/z && tar -cf a.tar f && tar -czf a.tgz f && tar -cJf a.txz f && "
           "tar -cjf a.tbz f");
    const char *names[] = {"a.tar", "a.tgz", "a.txz", "a.tbz"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct source_spec spec = {.kind = SOURCE_FILE, .path = at(&b, names[i]), .archive = true};
        bench_read(&b, &spec);
        expect_ok(&b, 1);
        snprintf(b.paths[0], PATH_ROOM, "%s", spec.path);
        expect_hash(&b, 0);
        cr_expect(file_exists(spec.path), "the file stays");
    }
    sh(&b, "echo '(a zstd frame begins so)'; printf '\\050\\265\\057\\375xxxx' >a.zst");
    struct source_spec spec = {.kind = SOURCE_FILE, .path = at(&b, "a.zst"), .archive = true};
    bench_read(&b, &spec);
    expect_ok(&b, 1);
    expect_clean_work(&b);
    bench_close(&b);
}

Test(file, that_is_none)
{
    struct bench b;
    bench_open(&b);
    sh(&b, "echo hello >text; : >empty; mkdir dir; mkfifo fifo; head -c 3000000 /dev/zero | gzip "
           "-1 >z.gz");
    struct source_spec spec = {.kind = SOURCE_FILE, .path = at(&b, "text"), .archive = true};
    expect_failure(&b, &spec, ERR_INVAL, "it is no tar archive, nor one packed by");
    spec.path = at(&b, "empty");
    expect_failure(&b, &spec, ERR_INVAL, "it is no tar archive");
    spec.path = at(&b, "dir");
    expect_failure(&b, &spec, ERR_INVAL, "it is no file");
    spec.path = at(&b, "fifo");
    expect_failure(&b, &spec, ERR_INVAL, "it is no file");
    spec.path = at(&b, "none");
    expect_failure(&b, &spec, ERR_NOTFOUND, "it cannot be read: not found");
    spec.path = at(&b, "z.gz");
    spec.size_max = 1000;
    expect_failure(&b, &spec, ERR_LIMIT, "is longer than 1 KB");
    bench_close(&b);
}

/* --- the reading itself --- */

static void never(const struct source_result *result, void *arg)
{
    (void)result;
    (void)arg;
    cr_assert_fail("told after it was cancelled");
}

struct watched {
    bool done;
    bool cancelled;
};

static void watch(const struct source_result *result, void *arg)
{
    struct watched *w = arg;
    (void)result;
    cr_assert(!w->cancelled, "told after it was cancelled");
    w->done = true;
}

Test(reading, can_be_cancelled_at_every_step)
{
    struct bench b;
    struct watched w[60] = {{false, false}};
    unsigned cancelled = 0;
    bench_open(&b);
    sh(&b, "%s", REPO);
    struct source_spec spec = git_spec(&b, "r", "v3");
    spec.work = b.work;
    for (int turns = 0; turns < 60; turns++) {
        struct source *source = NULL;
        cr_assert_eq(source_start(b.loop, &spec, watch, &w[turns], &source, NULL), 0);
        for (int i = 0; i < turns && !w[turns].done; i++) {
            loop_turn(b.loop, 2000000);
        }
        if (!w[turns].done) {
            w[turns].cancelled = true;
            source_cancel(&source);
            cr_expect_null(source);
            cancelled++;
        }
    }
    cr_expect(cancelled >= 2);
    for (int i = 0; i < 20; i++) {
        loop_turn(b.loop, 1000000);
    }
    expect_clean_work(&b);
    bench_close(&b);
}

Test(reading, has_a_time_limit)
{
    struct bench b;
    bench_open(&b);
    sh(&b, "%s; cd ..; printf '#!/bin/sh\\nexec sleep 600\\n' >slow; chmod +x slow", REPO);
    setenv("GIT_SSH_COMMAND", at(&b, "slow"), 1);
    struct source_spec spec = git_spec(&b, "r", "v1");
    spec.path = "localhost:r";
    spec.timeout_ns = 50000000;
    expect_failure(&b, &spec, ERR_TIMEOUT, "git took longer than 50ms");
    bench_close(&b);
}

Test(reading, says_which_program_is_missing)
{
    struct bench b;
    bench_open(&b);
    sh(&b, "%s; mkdir nothing", REPO);
    setenv("PATH", at(&b, "nothing"), 1);
    struct source_spec spec = git_spec(&b, "r", "v1");
    expect_failure(&b, &spec, ERR_CHILD, "cannot execute git");
    spec = (struct source_spec){.kind = SOURCE_DIR, .path = at(&b, "r"), .archive = true};
    expect_failure(&b, &spec, ERR_CHILD, "cannot execute tar");
    setenv("PATH", "/usr/bin:/bin", 1);
    bench_close(&b);
}

Test(reading, needs_a_work_folder)
{
    struct bench b;
    struct source *source = NULL;
    bench_open(&b);
    sh(&b, "echo x >file");
    struct diag *diag = diag_new(1);
    struct source_spec spec = git_spec(&b, "r", "v1");
    spec.work = at(&b, "file");
    cr_expect_lt(source_start(b.loop, &spec, never, NULL, &source, diag), 0);
    cr_expect(strstr(diag_first(diag), "cannot be used") != NULL, "%s", diag_first(diag));
    cr_expect_null(source);
    diag_free(&diag);
    bench_close(&b);
}

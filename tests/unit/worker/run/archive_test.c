/* archive_test.c: archives of every packer become trees, hostile ones do not, and the tree's
 * hash is git's. */
#include "worker/run/archive.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/str.h"
#include "proto/digest.h"
#include "tests/unit/worker/tarmake.h"
#include "tests/unit/worker/work.h"
#include "worker/os/os.h"
#include "worker/run/hostdir.h"
#include "worker/run/treehash.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH "/usr/local/bin:/usr/bin:/bin"

struct bench {
    struct loop *loop;
    char *dir;
    char *file;
    char *dest;
    bool done;
    int code;
    char text[1200];
    char hex[65];
    uint64_t entries, bytes;
    bool hashed;
};

static void open_bench(struct bench *b)
{
    memset(b, 0, sizeof(*b));
    b->loop = loop_new();
    b->dir = work_dir_new();
    b->file = work_path(b->dir, "archive");
    b->dest = work_path(b->dir, "dest");
    cr_assert_eq(mkdir(b->dest, 0755), 0);
}

static void close_bench(struct bench *b)
{
    loop_free(&b->loop);
    free(b->file);
    free(b->dest);
    work_dir_remove(&b->dir);
}

static void on_unpacked(const struct archive_result *r, void *arg)
{
    struct bench *b = arg;

    b->done = true;
    b->code = r->code;
    b->entries = r->entries;
    b->bytes = r->bytes;
    b->hashed = r->hash != NULL;
    (void)snprintf(b->text, sizeof(b->text), "%s", r->text);
}

static void hash_of(const char *file, uint8_t hash[DIGEST_MAX])
{
    FILE *f = fopen(file, "r");
    struct digest *d = digest_new(DIGEST_SHA256);
    char chunk[65536];
    size_t n;

    cr_assert(f != NULL);
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        digest_add(d, chunk, n);
    (void)fclose(f);
    (void)digest_end(d, hash);
    digest_free(&d);
}

static struct archive_spec spec_of(const struct bench *b, const uint8_t *hash)
{
    return (struct archive_spec){.file = b->file, .hash = hash, .dest = b->dest, .path = PATH};
}

static void unpack_as(struct bench *b, const struct archive_spec *spec)
{
    struct archive *a;

    b->done = false;
    cr_assert_eq(archive_unpack(b->loop, spec, on_unpacked, b, &a, NULL), 0);
    cr_assert_not(b->done);
    work_until(b->loop, &b->done);
}

static void unpack(struct bench *b)
{
    uint8_t hash[DIGEST_MAX];
    struct archive_spec spec;

    hash_of(b->file, hash);
    spec = spec_of(b, hash);
    unpack_as(b, &spec);
}

static void write_bytes(const char *path, const struct buf *bytes)
{
    FILE *f = fopen(path, "w");

    cr_assert(f != NULL);
    cr_assert_eq(fwrite(bytes->data, 1, bytes->len, f), bytes->len);
    cr_assert_eq(fclose(f), 0);
}

/* A small repository in DIR/repo and its archive, packed by `packer`. */
static void make_source(const struct bench *b, const char *packer)
{
    cr_assert_eq(
        work_sh("cd %s && export HOME=%s GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a "
                "GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a "
                "GIT_COMMITTER_EMAIL=a@b && git init -q repo && cd repo && mkdir -p src/deep a.d "
                "&& echo 'int x;' >src/x.c && "
                "echo 'all:' >Makefile && printf '#!/bin/sh\\n' >run && chmod 755 run && ln -s "
                "../run src/link && ln -s nowhere dangling && "
                ": >empty && echo 1 >a && echo 2 >a.d/f && echo 3 >a-b && echo 5 >src.c && echo 6 "
                ">src-x && echo 4 >src/deep/f && "
                "head -c 3000000 /dev/urandom >big && "
                "git add -A && git commit -q -m one && git archive --format=tar HEAD | %s >%s",
                b->dir, b->dir, packer, b->file),
        0);
}

Test(archive, every_packer)
{
    static const char *const packer[] = {"cat", "gzip", "bzip2", "xz", "zstd -q"};

    for (size_t i = 0; i < ARRAY_LEN(packer); i++) {
        struct bench b;

        open_bench(&b);
        if (work_sh("command -v %.*s >/dev/null", (int)strcspn(packer[i], " "), packer[i]) == 0) {
            make_source(&b, packer[i]);
            unpack(&b);
            cr_expect_eq(b.code, 0, "%s: %s", packer[i], b.text);
            cr_expect(b.hashed);
            cr_expect_eq(b.entries, 16, "%llu", (unsigned long long)b.entries);
            cr_expect(b.bytes > 3000000);
            cr_expect_eq(
                work_sh("cd %s && test -x dest/run && test ! -x dest/Makefile && cmp dest/big "
                        "repo/big && "
                        "test \"$(readlink dest/src/link)\" = ../run && test -L dest/dangling",
                        b.dir),
                0, "%s", packer[i]);
        }
        close_bench(&b);
    }
}

Test(archive, as_the_builds_user)
{
    struct archive_spec spec;
    uint8_t hash[DIGEST_MAX];
    struct bench b;
    struct stat st;
    char *path;

    if (!os_is_root())
        return;
    open_bench(&b);
    make_source(&b, "gzip");
    /* The archive itself is not readable for that user. */
    cr_assert_eq(chmod(b.file, 0600), 0);
    cr_assert_eq(chown(b.dest, 54321, 54322), 0);
    hash_of(b.file, hash);
    spec = spec_of(&b, hash);
    spec.set_user = true;
    spec.uid = 54321;
    spec.gid = 54322;
    unpack_as(&b, &spec);
    cr_expect_eq(b.code, 0, "%s", b.text);
    path = work_path(b.dest, "src/x.c");
    cr_assert_eq(stat(path, &st), 0);
    cr_expect_eq(st.st_uid, 54321);
    cr_expect_eq(st.st_gid, 54322);
    free(path);
    close_bench(&b);
}

Test(archive, other_bytes_than_those_wanted)
{
    struct archive_spec spec;
    uint8_t hash[DIGEST_MAX];
    struct bench b;

    open_bench(&b);
    make_source(&b, "cat");
    hash_of(b.file, hash);
    cr_assert_eq(work_sh("printf x | dd of=%s bs=1 seek=3000 conv=notrunc 2>/dev/null", b.file), 0);
    spec = spec_of(&b, hash);
    unpack_as(&b, &spec);
    cr_expect_eq(b.code, -ERR_CHECKSUM);
    cr_expect(strstr(b.text, "SHA-256") != NULL, "%s", b.text);
    cr_expect_eq(rmdir(b.dest), 0, "nothing was unpacked");
    close_bench(&b);
}

Test(archive, hostile_ones_are_not_unpacked)
{
    static const struct {
        char kind;
        const char *name, *link, *text;
    } row[] = {
        {'0', "../evil", NULL, "leads upwards"},
        {'0', "/tmp/evil", NULL, "is absolute"},
        {'2', "l", "/etc", "leads to an absolute name"},
        {'2', "l", "../../..", "leads out"},
        {'3', "dev", NULL, "is a device"},
        {'6', "p", NULL, "is a fifo"},
        {'1', "h", "/etc/passwd", "hard link"},
    };
    static const char *const packer[] = {"cat", "gzip"};

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        for (size_t k = 0; k < ARRAY_LEN(packer); k++) {
            struct buf tar = BUF_INIT;
            struct bench b;
            char *plain;

            open_bench(&b);
            plain = work_path(b.dir, "plain");
            tarmake_entry(&tar, '0', "good", 0644, NULL, "x", 1);
            tarmake_entry(&tar, row[i].kind, row[i].name, 0644, row[i].link, NULL, 0);
            tarmake_end(&tar);
            write_bytes(plain, &tar);
            cr_assert_eq(work_sh("%s <%s >%s", packer[k], plain, b.file), 0);
            unpack(&b);
            cr_expect_eq(b.code, -ERR_DENIED, "%s: %s", row[i].name, b.text);
            cr_expect(strstr(b.text, row[i].text) != NULL, "%s", b.text);
            cr_expect_eq(rmdir(b.dest), 0, "nothing was unpacked");
            buf_fini(&tar);
            free(plain);
            close_bench(&b);
        }
    }
}

Test(archive, damaged_by_its_packer_and_too_large)
{
    struct archive_spec spec;
    uint8_t hash[DIGEST_MAX];
    struct bench b;

    open_bench(&b);
    make_source(&b, "gzip | head -c 100000");
    unpack(&b);
    cr_expect_eq(b.code, -ERR_CORRUPT, "%d %s", b.code, b.text);
    cr_expect(strstr(b.text, "gzip") != NULL, "%s", b.text);
    close_bench(&b);
    /* 2 GB of zeros in 2 MB: the limit ends it long before. */
    open_bench(&b);
    cr_assert_eq(
        work_sh("cd %s && truncate -s 2G zeros && tar -cf - zeros | gzip -1 >%s && rm zeros", b.dir,
                b.file),
        0);
    hash_of(b.file, hash);
    spec = spec_of(&b, hash);
    spec.bytes_max = 1000000;
    unpack_as(&b, &spec);
    cr_expect_eq(b.code, -ERR_LIMIT, "%s", b.text);
    cr_expect_eq(rmdir(b.dest), 0);
    close_bench(&b);
}

Test(archive, a_host_without_the_program)
{
    struct archive_spec spec;
    uint8_t hash[DIGEST_MAX];
    struct bench b;

    open_bench(&b);
    make_source(&b, "gzip");
    hash_of(b.file, hash);
    spec = spec_of(&b, hash);
    spec.path = b.dir;
    unpack_as(&b, &spec);
    cr_expect_eq(b.code, -ERR_CHILD, "%d", b.code);
    cr_expect(strstr(b.text, "gzip") != NULL, "%s", b.text);
    close_bench(&b);
    open_bench(&b);
    make_source(&b, "cat");
    hash_of(b.file, hash);
    spec = spec_of(&b, hash);
    spec.path = b.dir;
    unpack_as(&b, &spec);
    cr_expect_eq(b.code, -ERR_CHILD);
    cr_expect(strstr(b.text, "tar") != NULL, "%s", b.text);
    close_bench(&b);
}

Test(archive, tar_that_fails)
{
    struct archive_spec spec;
    uint8_t hash[DIGEST_MAX];
    struct bench b;
    char *tar;
    char path[600];

    open_bench(&b);
    make_source(&b, "gzip");
    tar = work_path(b.dir, "tar");
    work_write(tar, "#!/bin/sh\necho 'tar: no \033[1mroom' >&2\nexit 2\n");
    cr_assert_eq(chmod(tar, 0755), 0);
    hash_of(b.file, hash);
    spec = spec_of(&b, hash);
    (void)snprintf(path, sizeof(path), "%s:%s", b.dir, PATH);
    spec.path = path;
    unpack_as(&b, &spec);
    cr_expect_eq(b.code, -ERR_CHILD);
    cr_expect(strstr(b.text, "status 2: tar: no \\x1b[1mroom") != NULL, "%s", b.text);
    free(tar);
    close_bench(&b);
}

Test(archive, cancelled_at_any_time)
{
    for (int turns = 0; turns < 60; turns += 3) {
        struct archive_spec spec;
        uint8_t hash[DIGEST_MAX];
        struct archive *a;
        struct bench b;

        open_bench(&b);
        make_source(&b, "gzip");
        hash_of(b.file, hash);
        spec = spec_of(&b, hash);
        cr_assert_eq(archive_unpack(b.loop, &spec, on_unpacked, &b, &a, NULL), 0);
        for (int i = 0; i < turns && !b.done; i++)
            loop_turn(b.loop, 2000000);
        if (!b.done)
            archive_cancel(&a);
        b.done = false;
        work_turn(b.loop, 20000000);
        cr_expect_not(b.done);
        close_bench(&b);
    }
}

/* --- the tree's hash --- */

static void on_hash(int code, const char *hex, const char *text, void *arg)
{
    struct bench *b = arg;

    b->code = code;
    (void)snprintf(b->hex, sizeof(b->hex), "%s", hex);
    (void)snprintf(b->text, sizeof(b->text), "%s", text);
    b->done = true;
}

static void hash_tree(struct bench *b, const char *dir, bool sha256)
{
    struct treehash *t;

    b->done = false;
    cr_assert_eq(treehash_start(b->loop, dir, sha256, on_hash, b, &t, NULL), 0);
    work_until(b->loop, &b->done);
}

static char *git_says(const struct bench *b, const char *dir, const char *question)
{
    char *out = work_path(b->dir, "says"), *text;

    cr_assert_eq(
        work_sh("cd %s && HOME=%s git -c safe.directory='*' %s >%s", dir, b->dir, question, out),
        0);
    text = work_read(out);
    text[strcspn(text, "\n")] = '\0';
    free(out);
    return text;
}

Test(treehash, is_gits)
{
    struct bench b;
    char *repo, *want;

    open_bench(&b);
    make_source(&b, "cat");
    repo = work_path(b.dir, "repo");
    want = git_says(&b, repo, "rev-parse 'HEAD^{tree}'");
    unpack(&b);
    cr_assert_eq(b.code, 0, "%s", b.text);
    /* An empty folder is nothing to git. */
    cr_assert_eq(work_sh("mkdir -p %s/src/empty/er", b.dest), 0);
    hash_tree(&b, b.dest, false);
    cr_expect_eq(b.code, 0, "%s", b.text);
    cr_expect_str_eq(b.hex, want);
    cr_assert_eq(work_sh("chmod 744 %s/run", b.dest), 0);
    hash_tree(&b, b.dest, false);
    cr_expect_str_eq(b.hex, want, "only the owner's bit counts");
    cr_assert_eq(work_sh("chmod 655 %s/run", b.dest), 0);
    hash_tree(&b, b.dest, false);
    cr_expect_neq(strcmp(b.hex, want), 0, "a mode counts");
    cr_assert_eq(work_sh("chmod +x %s/run && echo y >>%s/src/x.c", b.dest, b.dest), 0);
    hash_tree(&b, b.dest, false);
    cr_expect_neq(strcmp(b.hex, want), 0, "a byte counts");
    free(want);
    free(repo);
    close_bench(&b);
}

Test(treehash, in_the_other_object_format)
{
    struct bench b;
    char *repo, *want;

    open_bench(&b);
    if (work_sh("cd %s && HOME=%s git init -q --object-format=sha256 repo 2>/dev/null && cd repo "
                "&& echo a >a && mkdir d && echo b >d/b && "
                "git add -A && git -c user.name=a -c user.email=a@b commit -q -m x",
                b.dir, b.dir) == 0) {
        repo = work_path(b.dir, "repo");
        want = git_says(&b, repo, "rev-parse 'HEAD^{tree}'");
        cr_assert_eq(work_sh("cd %s/repo && rm -rf .git", b.dir), 0);
        hash_tree(&b, repo, true);
        cr_expect_str_eq(b.hex, want);
        free(want);
        free(repo);
    }
    close_bench(&b);
}

Test(treehash, an_empty_folder_and_a_fifo)
{
    struct treehash *t;
    struct diag *diag = diag_new(1);
    struct bench b;

    open_bench(&b);
    hash_tree(&b, b.dest, false);
    cr_expect_str_eq(b.hex, "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "git's empty tree");
    cr_assert_eq(work_sh("mkfifo %s/pipe", b.dest), 0);
    hash_tree(&b, b.dest, false);
    cr_expect_eq(b.code, -ERR_UNSUP);
    cr_expect(strstr(b.text, "/pipe") != NULL, "%s", b.text);
    cr_expect(treehash_start(b.loop, "/no/such/folder", false, on_hash, &b, &t, diag) < 0);
    cr_expect(diag_errors(diag) == 1);
    cr_assert_eq(unlink(b.file) == 0 || true, true);
    diag_free(&diag);
    close_bench(&b);
}

Test(treehash, cancelled)
{
    struct treehash *t;
    struct bench b;

    open_bench(&b);
    make_source(&b, "cat");
    unpack(&b);
    b.done = false;
    cr_assert_eq(treehash_start(b.loop, b.dest, false, on_hash, &b, &t, NULL), 0);
    loop_turn(b.loop, 0);
    treehash_cancel(&t);
    cr_expect_null(t);
    work_turn(b.loop, 20000000);
    cr_expect_not(b.done);
    close_bench(&b);
}

/* --- the host's own folder --- */

static void on_says(const char *says, void *arg)
{
    struct bench *b = arg;

    (void)snprintf(b->hex, sizeof(b->hex), "%s", says);
    b->done = true;
}

static const char *ask(struct bench *b, const char *dir, bool user)
{
    struct hostdir_spec spec = {
        .dir = dir, .path = PATH, .set_user = user, .uid = 54321, .gid = 54321};
    struct hostdir *h;

    b->done = false;
    cr_assert_eq(hostdir_ask(b->loop, &spec, on_says, b, &h, NULL), 0);
    work_until(b->loop, &b->done);
    return b->hex;
}

Test(hostdir, what_the_folder_says)
{
    struct bench b;
    char *repo, *head, dirty[80];

    open_bench(&b);
    make_source(&b, "cat");
    repo = work_path(b.dir, "repo");
    head = git_says(&b, repo, "rev-parse HEAD");
    cr_expect_str_eq(ask(&b, repo, false), head);
    /* What a build leaves beside the tracked files is no change. */
    cr_assert_eq(work_sh("echo o >%s/src/x.o", repo), 0);
    cr_expect_str_eq(ask(&b, repo, false), head);
    if (os_is_root())
        cr_expect_str_eq(ask(&b, repo, true), head, "another user's repository is asked too");
    cr_assert_eq(work_sh("echo more >>%s/src/x.c", repo), 0);
    (void)snprintf(dirty, sizeof(dirty), "%s+dirty", head);
    cr_expect_str_eq(ask(&b, repo, false), dirty);
    cr_expect_str_eq(ask(&b, b.dest, false), "", "no repository");
    free(head);
    free(repo);
    close_bench(&b);
}

/* A repository's configuration can name programs: none of them runs. */
Test(hostdir, a_repository_that_names_programs)
{
    struct bench b;
    char *repo, *trap;

    open_bench(&b);
    make_source(&b, "cat");
    repo = work_path(b.dir, "repo");
    trap = work_path(b.dir, "trap");
    cr_assert_eq(
        work_sh("cd %s && HOME=%s git config core.fsmonitor 'touch %s; false'", repo, b.dir, trap),
        0);
    cr_expect_eq(strlen(ask(&b, repo, false)), 40);
    cr_expect_not(work_there(trap));
    free(trap);
    free(repo);
    close_bench(&b);
}

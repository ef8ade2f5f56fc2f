/* source_files.c: a folder packed by tar, and a file that is an archive already. */
#include "common/err.h"
#include "common/mem.h"
#include "common/num.h"
#include "proto/source_priv.h"

#include <string.h>

/* Of every file in the archive of a folder, so that the same files give the same bytes. */
#define FOLDER_TIME "@1000000000"

static void on_folder_hashed(struct source *s)
{
    if (source_keep(s)) {
        source_finish(s);
    }
}

static void on_folder(struct source *s, const struct proc_output *o)
{
    char text[32];
    if (source_child_too_long(s, o)) {
        source_fail(s, ERR_LIMIT, "the archive is longer than %s",
                    num_size_text(text, sizeof(text), s->spec.size_max));
    } else if (!source_child_ok(o)) {
        source_fail_child(s, o, "tar cannot pack it");
    } else {
        source_hash(s, s->archive, on_folder_hashed);
    }
}

static void begin_folder(struct source *s)
{
    char inside[FILE_PATH_MAX];
    struct file_stat st;
    if (file_path(inside, sizeof(inside), s->spec.path, ".") < 0 || file_stat(inside, &st) < 0 ||
        st.type != FILE_T_DIR) {
        source_fail(s, ERR_NOTFOUND, "there is no such folder");
        return;
    }
    const char *argv[] = {"tar",
                          "-c",
                          "-f",
                          "-",
                          "--format=gnu",
                          "--sort=name",
                          "--numeric-owner",
                          "--owner=0",
                          "--group=0",
                          "--mtime=" FOLDER_TIME,
                          "--mode=a+rX,u+w,go-w,a-st",
                          "--hard-dereference",
                          "--exclude=.git",
                          "--warning=no-file-ignored",
                          "-C",
                          s->spec.path,
                          ".",
                          NULL};
    source_run(s, argv, NULL, 0, on_folder);
}

static void on_file_hashed(struct source *s)
{
    s->revs[0].has_archive = true;
    s->revs[0].path = s->spec.path;
    source_finish(s);
}

/* Whether the first bytes are those of a tar archive, or of one that is packed. */
static bool is_archive(const uint8_t *head, size_t n)
{
    static const struct {
        size_t at;
        const char *bytes;
        size_t n;
    } kinds[] = {{257, "ustar", 5},
                 {0, "\x1f\x8b", 2},
                 {0, "BZh", 3},
                 {0,
                  "\xfd"
                  "7zXZ\0",
                  6},
                 {0, "\x28\xb5\x2f\xfd", 4}};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (n >= kinds[i].at + kinds[i].n &&
            memcmp(head + kinds[i].at, kinds[i].bytes, kinds[i].n) == 0) {
            return true;
        }
    }
    return false;
}

static void begin_file(struct source *s)
{
    uint8_t head[512];
    size_t got = 0;
    struct file_stat st;
    struct file *file = NULL;
    int rc = file_stat(s->spec.path, &st);
    if (rc == 0 && st.type != FILE_T_FILE && st.type != FILE_T_LINK) {
        source_fail(s, ERR_INVAL, "it is no file");
        return;
    }
    if (rc == 0) {
        rc = file_open(s->spec.path, FILE_READ, 0, &file);
    }
    if (rc == 0) {
        rc = file_read_at(file, 0, head, sizeof(head), &got);
    }
    file_close(&file);
    if (rc < 0) {
        source_fail(s, rc, "it cannot be read: %s", err_text(rc));
    } else if (!is_archive(head, got)) {
        source_fail(s, ERR_INVAL,
                    "it is no tar archive, nor one packed by gzip, bzip2, xz or zstd");
    } else {
        source_hash(s, s->spec.path, on_file_hashed);
    }
}

void source_files_begin(struct source *s)
{
    s->revs = mem_xarray(1, sizeof(s->revs[0]));
    s->revs[0].exact = true;
    s->count = 1;
    if (s->spec.kind == SOURCE_DIR) {
        begin_folder(s);
    } else {
        begin_file(s);
    }
}

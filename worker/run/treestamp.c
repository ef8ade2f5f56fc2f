/* treestamp.c: the stamp of a prepared tree: lines of a word and a value. */
#include "worker/run/treestamp.h"

#include "common/buf.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/num.h"
#include "common/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FIRST_LINE "makespan-tree 1\n"
#define LAST_LINE "end\n"
#define STAMP_MAX 4096

static bool stamp_path(char dst[FILE_PATH_MAX], const char *folder)
{
    return file_path(dst, FILE_PATH_MAX, folder, "stamp") == 0;
}

/* The value of a line "word value" is copied; false when the line is not there or its value too
 * long. */
static bool value_of(const char *text, const char *word, char *dst, size_t room)
{
    size_t n = strlen(word);

    for (const char *p = text; p != NULL && *p != '\0';
         p = strchr(p, '\n') == NULL ? NULL : strchr(p, '\n') + 1) {
        size_t len;

        if (strncmp(p, word, n) != 0 || p[n] != ' ')
            continue;
        p += n + 1;
        len = strcspn(p, "\n");
        if (len >= room || p[len] != '\n')
            return false;
        memcpy(dst, p, len);
        dst[len] = '\0';
        return true;
    }
    return false;
}

static bool number_of(const char *text, const char *word, uint64_t *out)
{
    char value[32];

    return value_of(text, word, value, sizeof(value)) && num_parse_u64(value, out) == 0;
}

bool treestamp_read(const char *folder, struct treestamp *out)
{
    struct buf file = BUF_INIT;
    char path[FILE_PATH_MAX], state[16];
    const char *text;
    bool ok;

    memset(out, 0, sizeof(*out));
    if (!stamp_path(path, folder) || file_read_all(path, STAMP_MAX, &file) != 0) {
        buf_fini(&file);
        return false;
    }
    text = buf_str(&file);
    ok = str_starts(text, FIRST_LINE) && file.len >= sizeof(LAST_LINE) &&
         strlen(text) == file.len &&
         strcmp(text + file.len - strlen("\n" LAST_LINE), "\n" LAST_LINE) == 0 &&
         value_of(text, "key", out->key, sizeof(out->key)) && strlen(out->key) == 64 &&
         value_of(text, "state", state, sizeof(state)) &&
         value_of(text, "boot", out->boot, sizeof(out->boot)) &&
         number_of(text, "used", &out->used) && number_of(text, "bytes", &out->bytes) &&
         value_of(text, "blob", out->blob, sizeof(out->blob)) &&
         value_of(text, "tree", out->tree, sizeof(out->tree));
    if (ok) {
        out->synced = strcmp(state, "synced") == 0;
        out->ready = out->synced || strcmp(state, "ready") == 0;
    }
    buf_fini(&file);
    return ok;
}

int treestamp_write(const char *folder, const struct treestamp *stamp)
{
    struct buf text = BUF_INIT;
    char path[FILE_PATH_MAX];
    int r = -ERR_LIMIT;

    buf_printf(&text,
               FIRST_LINE "key %s\nstate %s\nboot %s\nused %" PRIu64 "\nbytes %" PRIu64
                          "\nblob %s\ntree %s\n" LAST_LINE,
               stamp->key,
               stamp->synced  ? "synced"
               : stamp->ready ? "ready"
                              : "made",
               stamp->boot, stamp->used, stamp->bytes, stamp->blob, stamp->tree);
    if (stamp_path(path, folder))
        r = text.err != 0 ? text.err : file_write_atomic(path, text.data, text.len, 0644);
    buf_fini(&text);
    return r;
}

bool treestamp_usable(const struct treestamp *stamp, const char *boot)
{
    return stamp->ready && (stamp->synced || (boot[0] != '\0' && strcmp(stamp->boot, boot) == 0));
}

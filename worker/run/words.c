/* words.c: cutting, cleaning and searching. */
#include "worker/run/words.h"

#include "common/buf.h"
#include "common/str.h"
#include "worker/run/output.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const char *copy(char *dst, size_t room, const char *text, bool lines)
{
    size_t n = 0;
    bool cut;

    while (text[n] != '\0' && n + 1 < room) {
        unsigned char c = (unsigned char)text[n];

        dst[n] = text[n];
        if ((c < 0x20 && !(lines && (c == '\n' || c == '\t'))) || c == 0x7f)
            dst[n] = '?';
        n++;
    }
    cut = text[n] != '\0';
    dst[n] = '\0';
    for (size_t bad; (bad = str_utf8_bad(dst, n)) < n;) {
        /* The start of a character whose end was cut off goes; other such bytes are replaced. */
        if (cut && n - bad < 4 && ((unsigned char)dst[bad] & 0xc0) == 0xc0) {
            n = bad;
            dst[n] = '\0';
        } else {
            dst[bad] = '?';
        }
    }
    return dst;
}

const char *words_copy(char *dst, size_t room, const char *text)
{
    return copy(dst, room, text, false);
}

const char *words_copy_lines(char *dst, size_t room, const char *text)
{
    return copy(dst, room, text, true);
}

void words_tail(struct buf *out, struct output *output, size_t most)
{
    struct buf last = BUF_INIT;
    const uint8_t *bytes;
    uint64_t cursor = 0, offset;
    size_t n, skip;

    while (output_piece(output, &cursor, &offset, &bytes, &n) == 1) {
        buf_add(&last, bytes, n);
        if (last.len > most)
            buf_consume(&last, last.len - most);
    }
    n = last.err != 0 ? 0 : last.len;
    while (n > 0 && (last.data[n - 1] == '\n' || last.data[n - 1] == '\r'))
        n--;
    skip = 0;
    if (output_total(output) > most) {
        const uint8_t *line = n == 0 ? NULL : memchr(last.data, '\n', n);

        if (line != NULL)
            skip = (size_t)(line - last.data) + 1;
        while (skip < n && (last.data[skip] & 0xc0) == 0x80)
            skip++;
    }
    str_show(out, last.data == NULL ? NULL : last.data + skip, n - skip);
    buf_fini(&last);
}

static const char *find_in(const uint8_t *bytes, size_t n, const char *const *needles, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memmem(bytes, n, needles[i], strlen(needles[i])) != NULL)
            return needles[i];
    return NULL;
}

const char *words_find(struct output *output, const char *const *needles, size_t n)
{
    uint8_t seam[512]; /* the end of one piece and the start of the next */
    size_t kept = 0;
    const uint8_t *bytes;
    uint64_t cursor = 0, offset;
    size_t len;
    const char *found = NULL;

    while (found == NULL && output_piece(output, &cursor, &offset, &bytes, &len) == 1) {
        size_t head = len < sizeof seam - kept ? len : sizeof seam - kept;

        memcpy(seam + kept, bytes, head);
        found = find_in(seam, kept + head, needles, n);
        if (found == NULL)
            found = find_in(bytes, len, needles, n);
        kept = len < sizeof seam / 2 ? len : sizeof seam / 2;
        memcpy(seam, bytes + len - kept, kept);
    }
    return found;
}

/* output.c: the output file of a command: head and tail kept, the middle given back while it
 * grows. */
#include "worker/run/output.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/diag.h"
#include "common/err.h"
#include "common/fileio.h"
#include "common/mem.h"
#include "common/str.h"
#include "worker/os/os.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MARK "\177makespan.output" /* a control character and 15 letters */
#define MARK_LEN 16
#define BLOCK UINT64_C(4096)      /* holes begin and end at multiples of it */
#define CUT_AT_LEAST (512 * 1024) /* less is not worth a system call */
#define CHECK_FAST (50 * CLOCK_MS)
#define CHECK_SLOW CLOCK_SEC
#define GROWTH (4 * 1024 * 1024) /* wanted between two looks */
#define LINE_LOOK 4096

struct output {
    struct file *child; /* append only: the command's */
    struct file *own;
    char *path;
    uint64_t head;
    uint64_t tail;
    bool holes;
    bool exact;
    bool truncated;
    bool finished;
    uint64_t last_size; /* of the file at the last look */
    int64_t last_look_ns;
    uint64_t punched_to; /* place in the file up to which the middle is a hole */
    uint8_t *kept;       /* without holes: the last bytes that were cut off, up to `tail` */
    size_t kept_len;
    uint64_t dropped; /* bytes cut off behind the head */
    uint64_t base;    /* after the end: place in the file of the first byte of output */
    uint64_t total;   /* after the end */
    uint8_t *piece;
};

int output_new(const struct output_opts *opts, struct output **out, struct diag *diag)
{
    struct output *o = mem_xzalloc(sizeof(*o));
    int r;

    *out = NULL;
    o->path = mem_xstrdup(opts->path);
    o->head = opts->head > 0 ? opts->head : OUTPUT_HEAD;
    o->tail = opts->tail > 0 ? opts->tail : OUTPUT_TAIL;
    o->exact = true;
    r = file_remove(opts->path);
    if (r == -ERR_NOTFOUND)
        r = 0;
    if (r == 0)
        r = file_open(opts->path, FILE_APPEND | FILE_CREATE | FILE_EXCL | FILE_NOFOLLOW, 0600,
                      &o->child);
    if (r == 0)
        r = file_open(opts->path, FILE_READ | FILE_WRITE | FILE_NOFOLLOW, 0600, &o->own);
    if (r == 0 && opts->set_user)
        r = os_fd_chown(file_fd(o->own), opts->uid, opts->gid);
    if (r == 0)
        r = file_append(o->child, MARK, MARK_LEN);
    if (r != 0) {
        output_free(&o);
        return diag_error(diag, r, "the output file %s cannot be made: %s", opts->path,
                          err_text(r));
    }
    o->last_size = MARK_LEN;
    o->last_look_ns = clock_mono_ns();
    o->holes = !opts->no_holes && os_punch(file_fd(o->own), BLOCK, BLOCK) == 0;
    if (!o->holes)
        o->kept = mem_xzalloc((size_t)o->tail);
    *out = o;
    return 0;
}

void output_free(struct output **output)
{
    struct output *o = *output;

    if (o == NULL)
        return;
    file_close(&o->child);
    file_close(&o->own);
    free(o->path);
    free(o->kept);
    free(o->piece);
    free(o);
    *output = NULL;
}

void output_remove(struct output **output)
{
    if (*output == NULL)
        return;
    /* One that cannot be removed is replaced by the next of its name. */
    (void)!file_remove((*output)->path);
    output_free(output);
}

int output_fd(const struct output *output)
{
    return file_fd(output->child);
}

/* Reads up to n bytes at a place of the file; less at its end. */
static size_t read_file(struct output *o, uint64_t at, uint8_t *dst, size_t n)
{
    size_t got = 0;

    return file_read_at(o->own, at, dst, n, &got) == 0 ? got : 0;
}

/* Adds the last bytes of the file behind `from` to what is kept of the cut part. */
static void keep_tail(struct output *o, uint64_t from, uint64_t size)
{
    uint64_t n = size > from ? size - from : 0;
    size_t old;

    if (n > o->tail)
        n = o->tail;
    old = o->kept_len;
    if (old > o->tail - n)
        old = (size_t)(o->tail - n);
    memmove(o->kept, o->kept + (o->kept_len - old), old);
    o->kept_len = old + read_file(o, size - n, o->kept + old, (size_t)n);
}

/* Without holes: the file is cut behind its head. What is written between the last look at the
 * size and the cut is lost, so that gap is kept short. */
static void cut_file(struct output *o, uint64_t size)
{
    uint64_t end = MARK_LEN + o->head, now = size;

    keep_tail(o, end, size);
    if (file_size(o->own, &now) == 0 && now > size)
        keep_tail(o, size, now);
    else
        now = size;
    if (file_truncate(o->own, end) != 0)
        return; /* the next look tries again; the kept bytes are read again then */
    o->exact = false;
    o->dropped += now - end;
    o->last_size = end;
}

static void cut(struct output *o, uint64_t size)
{
    uint64_t from = MARK_LEN + o->head, to;

    if (size < from + o->tail + CUT_AT_LEAST)
        return;
    if (!o->holes) {
        cut_file(o, size);
        return;
    }
    from = (from + BLOCK - 1) / BLOCK * BLOCK;
    to = (size - o->tail) / BLOCK * BLOCK;
    if (o->punched_to > from)
        from = o->punched_to;
    if (to >= from + CUT_AT_LEAST && os_punch(file_fd(o->own), from, to - from) == 0)
        o->punched_to = to;
}

/* Takes note of the size; a smaller one means that the command cut the file. */
static bool look(struct output *o, uint64_t *size)
{
    if (file_size(o->own, size) != 0)
        return false;
    if (*size < o->last_size) {
        o->truncated = true;
        o->punched_to = 0;
        o->kept_len = 0;
        o->dropped = 0;
    }
    return true;
}

int64_t output_check(struct output *output)
{
    uint64_t size, before = output->last_size, growth;
    int64_t now = clock_mono_ns(), passed = now - output->last_look_ns, delay;

    if (!look(output, &size))
        return CHECK_SLOW;
    growth = size > before ? size - before : 0;
    output->last_size = size;
    output->last_look_ns = now;
    cut(output, size);
    if (growth == 0 || passed <= 0)
        return CHECK_SLOW;
    if (growth / GROWTH >= (uint64_t)(passed / CHECK_FAST + 1))
        return CHECK_FAST;
    delay = (int64_t)((double)GROWTH / (double)growth * (double)passed);
    return delay < CHECK_FAST ? CHECK_FAST : delay > CHECK_SLOW ? CHECK_SLOW : delay;
}

uint64_t output_seen(const struct output *output)
{
    return output->last_size > MARK_LEN ? output->last_size - MARK_LEN + output->dropped : 0;
}

int output_finish(struct output *output, struct diag *diag)
{
    struct output *o = output;
    uint8_t mark[MARK_LEN];
    uint64_t size;
    size_t got = 0;
    int r;

    if (!look(o, &size))
        return diag_error(diag, ERR_IO, "the size of the output file %s cannot be read", o->path);
    r = file_read_at(o->own, 0, mark, MARK_LEN, &got);
    if (r != 0)
        return diag_error(diag, r, "the output file %s cannot be read: %s", o->path, err_text(r));
    o->base = MARK_LEN;
    if (got < MARK_LEN || memcmp(mark, MARK, MARK_LEN) != 0) {
        o->truncated = true;
        o->base = 0;
        o->dropped = 0;
    }
    if (o->dropped > 0)
        keep_tail(o, o->base + o->head, size);
    o->last_size = size;
    o->total = size - o->base + o->dropped;
    o->finished = true;
    return 0;
}

uint64_t output_total(const struct output *output)
{
    return output->total;
}

bool output_was_cut(const struct output *output)
{
    return output->total > output->head + output->tail;
}

bool output_was_truncated(const struct output *output)
{
    return output->truncated;
}

bool output_is_exact(const struct output *output)
{
    return output->exact;
}

/* Reads n bytes at a place of the output that is kept. */
static size_t read_output(struct output *o, uint64_t offset, uint8_t *dst, size_t n)
{
    uint64_t kept_from = o->total - o->kept_len;

    if (o->dropped == 0)
        return read_file(o, o->base + offset, dst, n);
    if (offset >= kept_from) {
        if (n > o->total - offset)
            n = (size_t)(o->total - offset);
        memcpy(dst, o->kept + (offset - kept_from), n);
        return n;
    }
    if (offset >= o->head)
        return 0;
    if (n > o->head - offset)
        n = (size_t)(o->head - offset);
    return read_file(o, o->base + offset, dst, n);
}

int output_piece(struct output *output, uint64_t *cursor, uint64_t *offset, const uint8_t **bytes,
                 size_t *n)
{
    struct output *o = output;
    bool gap = output_was_cut(o);
    uint64_t head = gap ? o->head : o->total, tail = gap ? o->tail : 0, left;
    size_t got;

    assert(o->finished);
    if (o->dropped > 0 && gap && tail > o->kept_len)
        tail = o->kept_len;
    if (*cursor >= head + tail)
        return 0;
    if (*cursor < head) {
        *offset = *cursor;
        left = head - *cursor;
    } else {
        *offset = o->total - tail + (*cursor - head);
        left = head + tail - *cursor;
    }
    if (left > OUTPUT_PIECE)
        left = OUTPUT_PIECE;
    if (o->piece == NULL)
        o->piece = mem_xzalloc(OUTPUT_PIECE);
    got = read_output(o, *offset, o->piece, (size_t)left);
    if (got == 0)
        return -ERR_IO;
    *cursor += got;
    *bytes = o->piece;
    *n = got;
    return 1;
}

void output_last_line(struct output *output, char *dst, size_t room)
{
    struct output *o = output;
    struct buf text = BUF_INIT;
    uint8_t look_at[LINE_LOOK];
    uint64_t from = o->total > LINE_LOOK ? o->total - LINE_LOOK : 0;
    size_t n = read_output(o, from, look_at, (size_t)(o->total - from)), start;

    dst[0] = '\0';
    while (n > 0 && (look_at[n - 1] == '\n' || look_at[n - 1] == '\r' || look_at[n - 1] == ' ' ||
                     look_at[n - 1] == '\t'))
        n--;
    start = n;
    while (start > 0 && look_at[start - 1] != '\n')
        start--;
    /* Its end: a question stands there. An escape takes four bytes at most. */
    if (n - start > room / 4)
        start = n - room / 4;
    while (start < n && (look_at[start] & 0xc0) == 0x80 && start > 0 && n - start > 4)
        start++; /* not within a character */
    str_show(&text, look_at + start, n - start);
    (void)str_copy(dst, room, buf_str(&text));
    buf_fini(&text);
}

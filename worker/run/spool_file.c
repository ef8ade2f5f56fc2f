/* spool_file.c: makes and reads the bytes of one file of the spool. Names, folders and what counts
 * are spool.c's. */
#include "worker/run/spool_file.h"

#include "common/buf.h"
#include "common/crc.h"
#include "common/cur.h"
#include "common/err.h"
#include "common/fileio.h"
#include "proto/msg.h"

#include <string.h>

#define MAGIC "MKSPOOL1"
#define FRAME_LIMIT (1024 * 1024) /* the largest length that a frame states */

static void put_u32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

void spool_head_make(struct buf *out, uint64_t run, uint32_t attempt)
{
    size_t at = out->len;

    buf_add(out, MAGIC, 8);
    buf_add_u64be(out, run);
    buf_add_u32be(out, attempt);
    if (out->err == 0)
        buf_add_u32be(out, crc32c(0, out->data + at, SPOOL_HEAD - 4));
}

int spool_record_make(struct buf *out, const struct msg *msg)
{
    size_t at = out->len;
    int err;

    buf_add_u32be(out, 0);
    err = out->err != 0 ? out->err : msg_encode(msg, out);
    if (err != 0)
        return err;
    put_u32(out->data + at, crc32c(0, out->data + at + 4, out->len - at - 4));
    return 0;
}

/* Exactly n bytes. -ERR_END: the file ends here; -ERR_CORRUPT: within. */
static int read_exactly(struct file *file, uint64_t offset, void *dst, size_t n)
{
    size_t got = 0;
    int err = file_read_at(file, offset, dst, n, &got);

    if (err != 0)
        return err;
    return got == n ? 0 : got == 0 ? -ERR_END : -ERR_CORRUPT;
}

int spool_head_read(struct file *file, uint64_t *run, uint32_t *attempt)
{
    uint8_t head[SPOOL_HEAD];
    struct cur c;
    int err = read_exactly(file, 0, head, sizeof head);

    if (err != 0)
        return err == -ERR_END ? -ERR_CORRUPT : err;
    cur_init(&c, head + 8, sizeof head - 8);
    *run = cur_u64be(&c);
    *attempt = cur_u32be(&c);
    if (memcmp(head, MAGIC, 8) != 0 || cur_u32be(&c) != crc32c(0, head, SPOOL_HEAD - 4))
        return -ERR_CORRUPT;
    return 0;
}

/* The checksum and length of the record at the offset. */
static int record_head(struct file *file, uint64_t offset, uint32_t *crc, uint32_t *length)
{
    uint8_t head[SPOOL_RECORD_HEAD];
    struct cur c;
    int err = read_exactly(file, offset, head, sizeof head);

    if (err != 0)
        return err;
    cur_init(&c, head, sizeof head);
    *crc = cur_u32be(&c);
    *length = cur_u32be(&c);
    return *length == 0 || *length > FRAME_LIMIT ? -ERR_CORRUPT : 0;
}

int spool_record_read(struct file *file, uint64_t *offset, struct buf *bytes, uint8_t *type,
                      const uint8_t **body, size_t *n)
{
    uint32_t crc, length;
    uint8_t *to;
    int err = record_head(file, *offset, &crc, &length);

    if (err != 0)
        return err;
    buf_reset(bytes);
    buf_add_u32be(bytes, length);
    to = buf_reserve(bytes, length);
    if (to == NULL)
        return -ERR_NOMEM;
    err = read_exactly(file, *offset + SPOOL_RECORD_HEAD, to, length);
    if (err != 0)
        return err == -ERR_END ? -ERR_CORRUPT : err;
    buf_grew(bytes, length);
    if (crc32c(0, bytes->data, bytes->len) != crc)
        return -ERR_CORRUPT;
    *type = bytes->data[4];
    *body = bytes->data + 5;
    *n = length - 1;
    *offset += SPOOL_RECORD_HEAD + length;
    return 0;
}

int spool_record_skip(struct file *file, uint64_t *offset)
{
    uint32_t crc, length;
    int err = record_head(file, *offset, &crc, &length);

    if (err == 0)
        *offset += SPOOL_RECORD_HEAD + length;
    return err;
}

/* Whether this END belongs to that attempt and counts that many records. */
static bool fits(const uint8_t *body, size_t n, uint64_t run, uint32_t attempt, uint32_t count)
{
    struct msg *m = NULL;
    bool ok = msg_decode(MSG_END, body, n, &m, NULL) == 0 && m->u.end.run == run &&
              m->u.end.attempt == attempt && m->u.end.count == count && m->u.end.seq == count - 1;

    msg_free(&m);
    return ok;
}

int spool_check(struct file *file, uint64_t *run, uint32_t *attempt, uint32_t *count,
                uint64_t *size)
{
    struct buf bytes = BUF_INIT;
    uint64_t offset = SPOOL_HEAD;
    bool ended = false;
    int err = spool_head_read(file, run, attempt);

    for (*count = 0; err == 0; (*count)++) {
        const uint8_t *body;
        uint8_t type;
        size_t n;

        err = spool_record_read(file, &offset, &bytes, &type, &body, &n);
        if (err == 0 && (ended || !msg_is_durable(type)))
            err = -ERR_CORRUPT;
        if (err == 0 && type == MSG_END) {
            ended = true;
            if (!fits(body, n, *run, *attempt, *count + 1))
                err = -ERR_CORRUPT;
        }
        if (err != 0)
            break;
    }
    buf_fini(&bytes);
    *size = offset;
    return err != -ERR_END ? err : ended ? 0 : -ERR_CORRUPT;
}

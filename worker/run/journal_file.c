/* journal_file.c: turns what the journal says into bytes, and bytes into what it says. Opens no
 * file. */
#include "worker/run/journal_file.h"

#include "common/buf.h"
#include "common/crc.h"
#include "common/cur.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/str.h"
#include "proto/msg.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC "MKJOURN1"
enum { HEAD = 24, CRC_AT = 20 };

enum tag { TAG_VISIT = 1, TAG_HEARD = 2, TAG_RUNNING = 3, TAG_RUNNING_ASSIGN = 4, TAG_QUEUED = 5 };

void journal_state_fini(struct journal_state *state)
{
    msg_free(&state->running_msg);
    for (size_t i = 0; i < state->count; i++)
        msg_free(&state->queue[i]);
    free(state->queue);
    *state = (struct journal_state){0};
}

static void put_u32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

/* Begins an item and returns where its length stands. */
static size_t begin_item(struct buf *out, enum tag tag)
{
    buf_add_char(out, (char)tag);
    buf_add_u32be(out, 0);
    return out->len - 4;
}

static void end_item(struct buf *out, size_t at)
{
    if (out->err == 0)
        put_u32(out->data + at, (uint32_t)(out->len - at - 4));
}

static void add_u64(struct buf *out, enum tag tag, uint64_t v)
{
    size_t at = begin_item(out, tag);

    buf_add_u64be(out, v);
    end_item(out, at);
}

static int add_assign(struct buf *out, enum tag tag, const struct msg *m)
{
    size_t at = begin_item(out, tag);
    int err = msg_encode(m, out);

    end_item(out, at);
    return err;
}

static int add_running(struct buf *out, const struct journal_state *s)
{
    size_t at = begin_item(out, TAG_RUNNING);

    buf_add_u32be(out, (uint32_t)s->running.phase);
    buf_add_char(out, s->running.fresh_tree ? 1 : 0);
    buf_add_u64be(out, (uint64_t)s->running.begin_wall_ns);
    buf_add_u64be(out, s->running.visit);
    buf_add_str(out, s->boot_id);
    end_item(out, at);
    return add_assign(out, TAG_RUNNING_ASSIGN, s->running_msg);
}

void journal_state_seal(struct buf *bytes)
{
    size_t n = bytes->len - HEAD;

    put_u32(bytes->data + 16, (uint32_t)n);
    put_u32(bytes->data + CRC_AT, crc32c(crc32c(0, bytes->data, CRC_AT), bytes->data + HEAD, n));
}

int journal_state_make(const struct journal_state *state, uint64_t number, struct buf *out)
{
    int err = 0;

    buf_add(out, MAGIC, 8);
    buf_add_u64be(out, number);
    buf_add_u32be(out, 0);
    buf_add_u32be(out, 0);
    add_u64(out, TAG_VISIT, state->visit);
    add_u64(out, TAG_HEARD, (uint64_t)state->heard_s);
    if (state->running_msg != NULL)
        err = add_running(out, state);
    for (size_t i = 0; err == 0 && i < state->count; i++)
        err = add_assign(out, TAG_QUEUED, state->queue[i]);
    if (err == 0)
        err = out->err;
    if (err != 0)
        return err;
    journal_state_seal(out);
    return 0;
}

static int read_assign(struct cur *c, struct msg **out)
{
    uint32_t length = cur_u32be(c);
    uint8_t type = cur_u8(c);
    int err;

    *out = NULL;
    if (c->err != 0 || type != MSG_ASSIGN || length != c->left + 1)
        return -ERR_CORRUPT;
    err = msg_decode(type, c->p, c->left, out, NULL);
    return err == 0 || err == -ERR_NOMEM ? err : -ERR_CORRUPT;
}

static int read_running(struct cur *c, struct journal_state *s)
{
    s->running.phase = (enum phase)cur_u32be(c);
    s->running.fresh_tree = cur_u8(c) != 0;
    s->running.begin_wall_ns = (int64_t)cur_u64be(c);
    s->running.visit = cur_u64be(c);
    if (c->err != 0 || c->left > JOURNAL_BOOT_MAX || !str_is_utf8(c->p, c->left) ||
        vocab_phase((int)s->running.phase) == NULL)
        return -ERR_CORRUPT;
    memcpy(s->boot_id, c->p, c->left);
    s->boot_id[c->left] = '\0';
    return 0;
}

static int read_queued(struct cur *c, struct journal_state *s)
{
    if (s->count == JOURNAL_QUEUE_MAX)
        return -ERR_CORRUPT;
    if (s->count == s->room) {
        s->room = s->room == 0 ? 4 : 2 * s->room;
        s->queue = mem_xrealloc(s->queue, s->room, sizeof *s->queue);
    }
    int err = read_assign(c, &s->queue[s->count]);
    if (err == 0)
        s->count++;
    return err;
}

static int read_item(uint8_t tag, struct cur *c, struct journal_state *s)
{
    switch (tag) {
    case TAG_VISIT:
        s->visit = cur_u64be(c);
        return cur_end(c) == 0 ? 0 : -ERR_CORRUPT;
    case TAG_HEARD:
        s->heard_s = (int64_t)cur_u64be(c);
        return cur_end(c) == 0 ? 0 : -ERR_CORRUPT;
    case TAG_RUNNING:
        return read_running(c, s);
    case TAG_RUNNING_ASSIGN:
        return s->running_msg != NULL ? -ERR_CORRUPT : read_assign(c, &s->running_msg);
    case TAG_QUEUED:
        return read_queued(c, s);
    default:
        return -ERR_VERSION;
    }
}

static int read_items(struct cur *c, struct journal_state *s)
{
    int err = 0;

    while (err == 0 && c->left > 0) {
        struct cur item;
        uint8_t tag = cur_u8(c);
        uint32_t length = cur_u32be(c);
        const uint8_t *bytes = cur_bytes(c, length);

        if (bytes == NULL && length > 0)
            return -ERR_CORRUPT;
        cur_init(&item, bytes, length);
        err = c->err != 0 ? -ERR_CORRUPT : read_item(tag, &item, s);
    }
    return err;
}

int journal_state_read(const void *data, size_t n, uint64_t *number, struct journal_state *state)
{
    const uint8_t *p = data;
    struct cur c;
    uint32_t length, crc;
    int err;

    *state = (struct journal_state){0};
    if (n < HEAD || memcmp(p, MAGIC, 8) != 0)
        return -ERR_CORRUPT;
    cur_init(&c, p + 8, n - 8);
    *number = cur_u64be(&c);
    length = cur_u32be(&c);
    crc = cur_u32be(&c);
    if (length > c.left || crc != crc32c(crc32c(0, p, CRC_AT), p + HEAD, length))
        return -ERR_CORRUPT;
    cur_init(&c, p + HEAD, length);
    err = read_items(&c, state);
    if (err == 0 && state->running_msg != NULL) {
        state->running.assign = &state->running_msg->u.assign;
        state->running.boot_id = NULL; /* journal.c points it at its own copy */
    }
    if (err != 0)
        journal_state_fini(state);
    return err;
}

/* msg_gen.c: messages and damaged bodies made from the schema. Owns them until gen_free(). */
#include "tests/unit/proto/msg_gen.h"

#include "common/mem.h"
#include "proto/frame.h"
#include "proto/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gen {
    struct mem_arena *arena;
};

struct gen *gen_new(void)
{
    struct gen *gen = mem_xzalloc(sizeof(*gen));
    gen->arena = mem_arena_new(0);
    return gen;
}

void gen_free(struct gen **gen)
{
    mem_arena_free(&(*gen)->arena);
    free(*gen);
    *gen = NULL;
}

static void *take(struct gen *gen, size_t n)
{
    void *p = mem_arena_alloc(gen->arena, n);
    if (p == NULL) {
        abort();
    }
    return p;
}

static char *make_text(struct gen *gen, size_t n)
{
    char *s = take(gen, n + 1);
    memset(s, 'x', n);
    if (n >= 4) {
        memcpy(s + n - 4, "\xf0\x9f\x8c\x8d", 4); /* a character of four bytes */
    }
    return s;
}

static const char *text_of(struct gen *gen, const struct msg_field *f, enum gen_mode mode)
{
    if (mode == GEN_LEAST || mode == GEN_LOWEST) {
        return "";
    }
    if (mode == GEN_ORDINARY) {
        size_t room = f->limit + 1;
        room = room < 64 ? room : 64;
        char *s = take(gen, room);
        if (snprintf(s, room, "%s \xc3\xa9", f->name) >= (int)room) {
            abort();
        }
        return s;
    }
    return make_text(gen, f->limit);
}

static struct msg_bytes bytes_of(struct gen *gen, const struct msg_field *f, enum gen_mode mode)
{
    size_t n = 0;
    if (mode == GEN_ORDINARY) {
        n = f->limit < 32 ? f->limit : 32;
    } else if (mode == GEN_MOST || mode == GEN_WIDE) {
        n = f->limit;
    }
    uint8_t *p = take(gen, n + 1);
    for (size_t i = 0; i < n; i++) {
        p[i] = (uint8_t)(f->key * 37 + i * 11);
    }
    return (struct msg_bytes){p, n};
}

static uint64_t unsigned_of(const struct msg_field *f, enum gen_mode mode, uint64_t most)
{
    switch (mode) {
    case GEN_LEAST:
    case GEN_LOWEST:
        return 0;
    case GEN_ORDINARY:
        /* Over the fields, integers of each width. */
        return (UINT64_C(1) << (f->key * 7 % (most > UINT32_MAX ? 60 : 31))) + f->key;
    default:
        return most;
    }
}

static int64_t signed_of(const struct msg_field *f, enum gen_mode mode)
{
    switch (mode) {
    case GEN_LEAST:
        return 0;
    case GEN_LOWEST:
        return INT64_MIN;
    case GEN_ORDINARY:
        return (f->key % 2 != 0 ? -1 : 1) * ((INT64_C(1) << (f->key * 11 % 61)) + f->key);
    default:
        return INT64_MAX;
    }
}

static size_t items_of(const struct msg_field *f, enum gen_mode mode)
{
    switch (mode) {
    case GEN_LEAST:
    case GEN_LOWEST:
        return 0;
    case GEN_ORDINARY:
        return 2;
    case GEN_MOST:
        return f->limit;
    default:
        return 1;
    }
}

static void set_list(struct gen *gen, const struct msg_field *f, void *base, enum gen_mode mode)
{
    size_t count = items_of(f, mode);
    size_t size = f->kind == MSG_KIND_STRS ? sizeof(const char *) : f->rec->size;
    char *items = take(gen, count * size + 1);
    for (size_t i = 0; i < count; i++) {
        /* One rich item, the others poor. */
        enum gen_mode inner = mode == GEN_WIDE                 ? GEN_MOST
                              : mode == GEN_ORDINARY && i == 0 ? GEN_ORDINARY
                                                               : GEN_LEAST;
        if (f->kind == MSG_KIND_STRS) {
            struct msg_field item = *f;
            item.limit = MSG_STRS_ITEM_MAX;
            ((const char **)(void *)items)[i] = text_of(gen, &item, inner);
            continue;
        }
        for (size_t k = 0; k < f->rec->count; k++) {
            const struct msg_field *g = &f->rec->fields[k];
            if (g->required || inner != GEN_LEAST) {
                gen_set(gen, g, items + i * size, inner);
            }
        }
    }
    *(const void **)msg_member_out(base, f->value) = items;
    *(size_t *)msg_member_out(base, f->count) = count;
}

void gen_set(struct gen *gen, const struct msg_field *f, void *base, enum gen_mode mode)
{
    void *value = msg_member_out(base, f->value);
    if (f->kind != MSG_KIND_STR) {
        *(bool *)msg_member_out(base, f->has) = true;
    }
    switch ((enum msg_kind)f->kind) {
    case MSG_KIND_U32:
        *(uint32_t *)value = (uint32_t)unsigned_of(f, mode, UINT32_MAX);
        break;
    case MSG_KIND_U64:
        *(uint64_t *)value = unsigned_of(f, mode, UINT64_MAX);
        break;
    case MSG_KIND_I64:
        *(int64_t *)value = signed_of(f, mode);
        break;
    case MSG_KIND_BOOL:
        *(bool *)value =
            mode == GEN_MOST || mode == GEN_WIDE || (mode == GEN_ORDINARY && f->key % 2 == 0);
        break;
    case MSG_KIND_STR:
        *(const char **)value = text_of(gen, f, mode);
        break;
    case MSG_KIND_BIN:
        *(struct msg_bytes *)value = bytes_of(gen, f, mode);
        break;
    case MSG_KIND_STRS:
    case MSG_KIND_RECS:
        set_list(gen, f, base, mode);
        break;
    }
}

void gen_least(struct gen *gen, const struct msg_row *row, struct msg *out)
{
    memset(out, 0, sizeof(*out));
    out->type = (enum msg_type)row->number;
    for (size_t i = 0; i < row->shape->count; i++) {
        if (row->shape->fields[i].required) {
            gen_set(gen, &row->shape->fields[i], &out->u, GEN_LEAST);
        }
    }
}

void gen_all(struct gen *gen, const struct msg_row *row, struct msg *out)
{
    memset(out, 0, sizeof(*out));
    out->type = (enum msg_type)row->number;
    for (size_t i = 0; i < row->shape->count; i++) {
        gen_set(gen, &row->shape->fields[i], &out->u, GEN_ORDINARY);
    }
}

/* --- bodies in parts --- */

static struct guard_head head_at(const uint8_t *p, size_t left)
{
    struct guard_head head;
    const char *why = NULL;
    if (guard_read_head(p, left, &head, &why) < 0) {
        abort();
    }
    return head;
}

void parts_split(const uint8_t *p, size_t n, struct parts *out)
{
    struct guard_head map = head_at(p, n);
    if (map.kind != GUARD_MAP || map.count > PARTS_MAX) {
        abort();
    }
    size_t at = map.size;
    for (out->count = 0; out->count < map.count; out->count++) {
        struct guard_head key = head_at(p + at, n - at);
        at += key.size;
        size_t size = 0;
        if (guard_measure(p + at, n - at, &size) < 0) {
            abort();
        }
        out->part[out->count] = (struct part){(uint32_t)key.value, p + at, size};
        at += size;
    }
    if (at != n) {
        abort();
    }
}

void parts_least(struct gen *gen, const struct msg_row *row, struct parts *out)
{
    struct msg m;
    gen_least(gen, row, &m);
    struct buf b = BUF_INIT;
    if (msg_encode(&m, &b) < 0) {
        abort();
    }
    uint8_t *copy = take(gen, b.len);
    memcpy(copy, b.data, b.len);
    parts_split(copy + FRAME_HEAD, b.len - FRAME_HEAD, out);
    buf_fini(&b);
}

void parts_least_record(struct gen *gen, const struct msg_shape *shape, struct parts *out)
{
    (void)gen;
    static const uint8_t zero[] = {0x00};
    static const uint8_t no[] = {0xc2};
    static const uint8_t text[] = {0xa0};
    static const uint8_t bin[] = {0xc4, 0x00};
    out->count = 0;
    for (size_t i = 0; i < shape->count; i++) {
        const struct msg_field *f = &shape->fields[i];
        if (!f->required) {
            continue;
        }
        switch ((enum msg_kind)f->kind) {
        case MSG_KIND_BOOL:
            parts_add(out, f->key, no, sizeof(no));
            break;
        case MSG_KIND_STR:
            parts_add(out, f->key, text, sizeof(text));
            break;
        case MSG_KIND_BIN:
            parts_add(out, f->key, bin, sizeof(bin));
            break;
        default:
            parts_add(out, f->key, zero, sizeof(zero));
            break;
        }
    }
}

void parts_remove(struct parts *parts, uint32_t key)
{
    for (size_t i = 0; i < parts->count; i++) {
        if (parts->part[i].key == key) {
            memmove(&parts->part[i], &parts->part[i + 1],
                    (parts->count - i - 1) * sizeof(parts->part[0]));
            parts->count--;
            return;
        }
    }
}

void parts_add(struct parts *parts, uint32_t key, const void *value, size_t n)
{
    if (parts->count == PARTS_MAX) {
        abort();
    }
    parts->part[parts->count++] = (struct part){key, value, n};
}

void parts_set(struct parts *parts, uint32_t key, const void *value, size_t n)
{
    parts_remove(parts, key);
    parts_add(parts, key, value, n);
}

void parts_join(const struct parts *parts, struct buf *out)
{
    buf_add_char(out, (char)0xde);
    buf_add_char(out, 0);
    buf_add_char(out, (char)parts->count);
    for (size_t i = 0; i < parts->count; i++) {
        buf_add_char(out, (char)0xce);
        buf_add_u32be(out, parts->part[i].key);
        buf_add(out, parts->part[i].value, parts->part[i].n);
    }
}

/* decode_test.c: bodies that are damaged in one place, made from the schema: each is refused with
 * the message and the field named. Also what a later version may add, which is skipped. */
#include "common/diag.h"
#include "common/err.h"
#include "proto/frame.h"
#include "proto/msg.h"
#include "tests/unit/proto/msg_gen.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Decodes a copy in a block of exactly its size; *text gets the first sentence. */
static int decode(uint32_t type, const struct buf *body, struct msg **m, char text[256])
{
    struct diag *diag = diag_new(4);
    uint8_t *copy = malloc(body->len > 0 ? body->len : 1);
    if (body->len > 0) {
        memcpy(copy, body->data, body->len);
    }
    struct msg *local = NULL;
    int rc = msg_decode(type, copy, body->len, &local, diag);
    free(copy);
    snprintf(text, 256, "%s", diag_first(diag));
    cr_assert_eq(rc == 0, local != NULL);
    cr_assert_eq(diag_count(diag), rc == 0 ? 0 : 1);
    diag_free(&diag);
    if (m != NULL) {
        *m = local;
    } else {
        msg_free(&local);
    }
    return rc;
}

/* A message or a record within one: how damaged parts of it become a body. */
struct subject {
    const struct msg_row *row;
    const struct msg_field *list; /* NULL: the message itself */
    const struct msg_shape *shape;
    struct gen *gen;
};

static void least(const struct subject *s, struct parts *out)
{
    if (s->list == NULL) {
        parts_least(s->gen, s->row, out);
    } else {
        parts_least_record(s->gen, s->shape, out);
    }
}

/* The body whose message, or the second record of whose list, consists of the parts. */
static void make_body(const struct subject *s, const struct parts *parts, struct buf *body)
{
    if (s->list == NULL) {
        parts_join(parts, body);
        return;
    }
    struct parts good;
    parts_least_record(s->gen, s->shape, &good);
    struct buf list = BUF_INIT;
    buf_add_char(&list, (char)0x92);
    parts_join(&good, &list);
    parts_join(parts, &list);
    struct parts outer;
    parts_least(s->gen, s->row, &outer);
    parts_set(&outer, s->list->key, list.data, list.len);
    parts_join(&outer, body);
    buf_fini(&list);
}

static void expect_rc(const struct subject *s, const struct parts *parts, const struct msg_field *f,
                      int code, const char *says)
{
    struct buf body = BUF_INIT;
    make_body(s, parts, &body);
    char text[256];
    char start[128];
    int rc = decode(s->row->number, &body, NULL, text);
    if (code == 0) {
        cr_expect_eq(rc, 0, "%s.%s %s: %d %s", s->row->name, f->name, says, rc, text);
    } else {
        if (s->list != NULL) {
            snprintf(start, sizeof(start), "%s: %s[1].%s %s", s->row->name, s->list->name, f->name,
                     says);
        } else {
            snprintf(start, sizeof(start), "%s: %s %s", s->row->name, f->name, says);
        }
        cr_expect_eq(rc, code, "%s gave %d %s", start, rc, text);
        cr_expect_eq(strncmp(text, start, strlen(start)), 0, "wanted: %s, it says: %s", start,
                     text);
    }
    buf_fini(&body);
}

typedef void subject_f(const struct subject *s, const struct msg_field *f);

/* Calls f for every field of every message and of every record where it stands in a message. */
static void each_field(subject_f *f)
{
    size_t count = 0;
    const struct msg_row *rows = msg_table(&count);
    for (size_t i = 0; i < count; i++) {
        struct subject s = {&rows[i], NULL, rows[i].shape, gen_new()};
        for (size_t k = 0; k < s.shape->count; k++) {
            const struct msg_field *field = &s.shape->fields[k];
            f(&s, field);
            if (field->kind == MSG_KIND_RECS) {
                struct subject inner = {s.row, field, field->rec, s.gen};
                for (size_t j = 0; j < inner.shape->count; j++) {
                    f(&inner, &inner.shape->fields[j]);
                }
            }
        }
        gen_free(&s.gen);
    }
}

static void without_field(const struct subject *s, const struct msg_field *f)
{
    struct parts parts;
    least(s, &parts);
    parts_remove(&parts, f->key);
    expect_rc(s, &parts, f, f->required ? -ERR_PROTO : 0, "is missing");
}

Test(decode, a_required_field_must_be_there)
{
    each_field(without_field);
}

struct sample {
    const char *bytes;
    size_t n;
    unsigned kinds; /* bits of enum msg_kind that accept it */
};

#define BIT(kind) (1U << MSG_KIND_##kind)
#define NUMBERS (BIT(U32) | BIT(U64) | BIT(I64))
#define BYTES(s) s, sizeof(s) - 1

static const struct sample samples[] = {
    {BYTES("\xc0"), 0},
    {BYTES("\xc2"), BIT(BOOL)},
    {BYTES("\xc3"), BIT(BOOL)},
    {BYTES("\x00"), NUMBERS},
    {BYTES("\x7f"), NUMBERS},
    {BYTES("\xd0\x05"), NUMBERS}, /* a signed encoding of a positive number */
    {BYTES("\xcf\0\0\0\0\0\0\0\x05"), NUMBERS},
    {BYTES("\xce\xff\xff\xff\xff"), NUMBERS},
    {BYTES("\xcf\0\0\0\x01\0\0\0\0"), BIT(U64) | BIT(I64)},
    {BYTES("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"), BIT(U64) | BIT(I64)},
    {BYTES("\xcf\x80\0\0\0\0\0\0\0"), BIT(U64)},
    {BYTES("\xff"), BIT(I64)},
    {BYTES("\xd3\x80\0\0\0\0\0\0\0"), BIT(I64)},
    {BYTES("\xa0"), BIT(STR)},
    {BYTES("\xdb\0\0\0\x01"
           "a"),
     BIT(STR)},
    {BYTES("\xc4\x00"), BIT(BIN)},
    {BYTES("\xc6\0\0\0\x01\xff"), BIT(BIN)},
    {BYTES("\x90"), BIT(STRS) | BIT(RECS)},
    {BYTES("\xdd\0\0\0\0"), BIT(STRS) | BIT(RECS)},
    {BYTES("\x91\xa1"
           "a"),
     BIT(STRS)},
    {BYTES("\x80"), 0},
    {BYTES("\x81\x01\x01"), 0},
};

static void with_samples(const struct subject *s, const struct msg_field *f)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        if (f->kind == MSG_KIND_RECS && samples[i].n > 1 && samples[i].bytes[0] == '\x91') {
            continue; /* a list of texts: its own test */
        }
        struct parts parts;
        least(s, &parts);
        parts_set(&parts, f->key, samples[i].bytes, samples[i].n);
        bool good = (samples[i].kinds >> f->kind & 1) != 0;
        expect_rc(s, &parts, f, good ? 0 : -ERR_PROTO, "should be ");
    }
}

Test(decode, a_value_must_have_its_type)
{
    each_field(with_samples);
}

static void with_bad_items(const struct subject *s, const struct msg_field *f)
{
    static const struct sample items[] = {
        {BYTES("\x91\x05"), 0},     {BYTES("\x92\xa0\xc0"), 0}, {BYTES("\x91\x90"), 0},
        {BYTES("\x91\x91\xa0"), 0}, {BYTES("\x91\x80"), 0},     {BYTES("\x91\xdc\0\0"), 0},
        {BYTES("\x91\xde\0\0"), 0}, {BYTES("\x91\xc4\0"), 0},
    };
    if (f->kind != MSG_KIND_STRS) {
        return;
    }
    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        struct parts parts;
        least(s, &parts);
        parts_set(&parts, f->key, items[i].bytes, items[i].n);
        expect_rc(s, &parts, f, -ERR_PROTO, "should be a list of texts");
    }
}

Test(decode, items_of_a_list_of_texts_must_be_texts)
{
    each_field(with_bad_items);
}

static void twice(const struct subject *s, const struct msg_field *f)
{
    if (!f->required) {
        return;
    }
    struct parts parts;
    least(s, &parts);
    for (size_t i = 0; i < parts.count; i++) {
        if (parts.part[i].key == f->key) {
            parts_add(&parts, f->key, parts.part[i].value, parts.part[i].n);
            break;
        }
    }
    expect_rc(s, &parts, f, -ERR_PROTO, "occurs twice");
}

Test(decode, a_known_field_must_not_occur_twice)
{
    each_field(twice);
}

static void over_limit(const struct subject *s, const struct msg_field *f)
{
    struct buf value = BUF_INIT;
    size_t n = f->limit + 1;
    if (f->kind == MSG_KIND_STR || f->kind == MSG_KIND_BIN) {
        buf_add_char(&value, f->kind == MSG_KIND_STR ? (char)0xdb : (char)0xc6);
        buf_add_u32be(&value, (uint32_t)n);
        for (size_t i = 0; i < n; i++) {
            buf_add_char(&value, 'x');
        }
    } else if (f->kind == MSG_KIND_STRS || f->kind == MSG_KIND_RECS) {
        buf_add_char(&value, (char)0xdd);
        buf_add_u32be(&value, (uint32_t)n);
        for (size_t i = 0; i < n; i++) {
            if (f->kind == MSG_KIND_STRS) {
                buf_add_char(&value, (char)0xa0);
            } else {
                struct parts record;
                parts_least_record(s->gen, f->rec, &record);
                parts_join(&record, &value);
            }
        }
    } else {
        return;
    }
    struct parts parts;
    least(s, &parts);
    parts_set(&parts, f->key, value.data, value.len);
    expect_rc(s, &parts, f, -ERR_LIMIT, "has ");
    buf_fini(&value);
    if (f->kind == MSG_KIND_STRS) {
        buf_add_str(&value, "\x91\xda");
        buf_add_char(&value, 0x10);
        buf_add_char(&value, 0x01);
        for (size_t i = 0; i < 4097; i++) {
            buf_add_char(&value, 'x');
        }
        least(s, &parts);
        parts_set(&parts, f->key, value.data, value.len);
        expect_rc(s, &parts, f, -ERR_LIMIT, "has 4097 bytes, at most 4096 are allowed");
        buf_fini(&value);
    }
}

Test(decode, limits_hold)
{
    each_field(over_limit);
}

static void with_bad_text(const struct subject *s, const struct msg_field *f)
{
    static const struct {
        struct sample value;
        const char *says;
    } texts[] = {
        {{BYTES("\xa3"
                "a\0b"),
          0},
         "has a NUL byte"},
        {{BYTES("\xa1\0"), 0}, "has a NUL byte"},
        {{BYTES("\xa1\xff"), 0}, "is not UTF-8"},
        {{BYTES("\xa2\xc0\x80"), 0}, "is not UTF-8"},     /* an overlong NUL */
        {{BYTES("\xa3\xed\xa0\x80"), 0}, "is not UTF-8"}, /* a surrogate */
        {{BYTES("\xa1\xc3"), 0}, "is not UTF-8"},         /* the beginning of a character */
    };
    if (f->kind != MSG_KIND_STR) {
        return;
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct parts parts;
        least(s, &parts);
        parts_set(&parts, f->key, texts[i].value.bytes, texts[i].value.n);
        expect_rc(s, &parts, f, -ERR_PROTO, texts[i].says);
    }
}

Test(decode, text_is_utf8_without_nul)
{
    each_field(with_bad_text);
}

static void with_unknown(const struct subject *s, const struct msg_field *f)
{
    static const uint8_t odd[] = {0x92, 0xc0, 0x81, 0x05, 0xc4, 0x01, 0x00};
    struct parts parts;
    least(s, &parts);
    parts_add(&parts, 60000, odd, sizeof(odd));
    parts_add(&parts, UINT32_MAX, odd, sizeof(odd));
    parts_add(&parts, 60000, odd, sizeof(odd)); /* of unknown ones nothing is known */
    expect_rc(s, &parts, f, 0, "beside unknown fields");
}

Test(decode, unknown_fields_are_skipped)
{
    each_field(with_unknown);
}

Test(decode, unknown_fields_leave_the_others_alone)
{
    size_t count = 0;
    const struct msg_row *rows = msg_table(&count);
    for (size_t i = 0; i < count; i++) {
        struct gen *gen = gen_new();
        struct msg m;
        gen_all(gen, &rows[i], &m);
        struct buf b = BUF_INIT;
        cr_assert_eq(msg_encode(&m, &b), 0);
        struct parts parts;
        parts_split(b.data + FRAME_HEAD, b.len - FRAME_HEAD, &parts);
        /* From the last key to the first, an unknown one in the middle. */
        struct parts turned = {.count = 0};
        for (size_t k = parts.count; k-- > 0;) {
            if (k == parts.count / 2) {
                parts_add(&turned, 1000, "\xc0", 1);
            }
            parts_add(&turned, parts.part[k].key, parts.part[k].value, parts.part[k].n);
        }
        struct buf body = BUF_INIT;
        parts_join(&turned, &body);
        char text[256];
        struct msg *back = NULL;
        cr_assert_eq(decode(rows[i].number, &body, &back, text), 0, "%s", text);
        cr_assert(msg_equal(&m, back), "%s", rows[i].name);
        msg_free(&back);
        buf_fini(&body);
        buf_fini(&b);
        gen_free(&gen);
    }
}

Test(decode, numbers_without_a_message_are_told_apart)
{
    struct buf body = BUF_INIT;
    buf_add_char(&body, (char)0x80);
    char text[256];
    cr_assert_eq(decode(99, &body, NULL, text), -ERR_UNSUP);
    cr_assert_str_eq(text, "no message has the number 99");
    cr_assert_eq(decode(0, &body, NULL, text), -ERR_UNSUP);
    cr_assert_eq(decode(UINT32_MAX, &body, NULL, text), -ERR_UNSUP);
    cr_assert_eq(decode(MSG_READY, &body, NULL, text), -ERR_PROTO);
    buf_fini(&body);
}

Test(decode, what_the_guard_finds_is_told_with_the_message)
{
    struct buf body = BUF_INIT;
    buf_add(&body, "\x81\x01\xca\0\0\0\0", 7);
    char text[256];
    cr_assert_eq(decode(MSG_READY, &body, NULL, text), -ERR_PROTO);
    cr_assert_str_eq(text, "READY: byte 2: a floating-point number, which no message has");
    buf_fini(&body);
    cr_assert_eq(decode(MSG_READY, &body, NULL, text), -ERR_PROTO);
    struct msg *m = NULL;
    cr_assert_eq(msg_decode(MSG_READY, (const uint8_t *)"\x91", 1, &m, NULL), -ERR_PROTO);
}

/* A record list whose items are empty maps: a byte each, but a struct each if they were trusted. */
Test(decode, records_without_fields_take_no_memory)
{
    struct buf list = BUF_INIT;
    buf_add_char(&list, (char)0xdd);
    buf_add_u32be(&list, 100000);
    for (int i = 0; i < 100000; i++) {
        buf_add_char(&list, (char)0x80);
    }
    struct parts parts = {.count = 0};
    parts_add(&parts, 1, list.data, list.len);
    struct buf body = BUF_INIT;
    parts_join(&parts, &body);
    char text[256];
    cr_assert_eq(decode(MSG_ACK, &body, NULL, text), -ERR_PROTO);
    cr_assert_str_eq(text, "ACK: acked has records without their required fields");
    buf_fini(&list);
    buf_fini(&body);
    /* One such among few. */
    buf_add(&body, "\x81\x01\x91\x89\x7e\x01\x7e\x01\x7e\x01\x7e\x01\x7e\x01", 14);
    buf_add(&body, "\x7e\x01\x7e\x01\x7e\x01\x7e\x01", 8);
    cr_assert_eq(decode(MSG_ACK, &body, NULL, text), -ERR_PROTO);
    cr_assert_str_eq(text, "ACK: acked[0].run is missing");
    buf_fini(&body);
    buf_add(&body, "\x81\x01\x91\xa9xxxxxxxxx", 13);
    cr_assert_eq(decode(MSG_ACK, &body, NULL, text), -ERR_PROTO);
    cr_assert_str_eq(text, "ACK: acked[0] should be a record");
    buf_fini(&body);
}

/* An unknown field may be large, but not without end. */
Test(decode, unknown_fields_are_bounded)
{
    for (uint32_t n = 60000; n <= 70000; n += 10000) {
        struct buf body = BUF_INIT;
        buf_add(&body, "\x82\x01\x05\x7f\xdd", 5);
        buf_add_u32be(&body, n);
        for (uint32_t i = 0; i < n; i++) {
            buf_add_char(&body, (char)0xc0);
        }
        char text[256];
        cr_expect_eq(decode(MSG_READY, &body, NULL, text), n == 60000 ? 0 : -ERR_LIMIT, "%s", text);
        buf_fini(&body);
    }
}

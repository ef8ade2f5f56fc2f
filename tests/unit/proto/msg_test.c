/* msg_test.c: every message of the schema goes out and comes back; the encoder's limits; the
 * table's own rules; printing, comparing, kinds. */
#include "proto/msg.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"
#include "proto/frame.h"
#include "tests/unit/proto/msg_gen.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Out and back; what comes back must be the same, and go out as the same bytes again. */
static void round_trip(const struct msg *m, const char *what)
{
    struct buf b = BUF_INIT;
    struct diag *diag = diag_new(4);
    int rc = msg_encode(m, &b);
    cr_assert_eq(rc, 0, "%s: encoding gave %d", what, rc);
    struct frame_in in;
    frame_in_init(&in, FRAME_MAX);
    const uint8_t *p = b.data;
    size_t n = b.len;
    struct frame f;
    cr_assert_eq(frame_next(&in, &p, &n, &f), 1);
    cr_assert_eq(n, 0);
    struct msg *back = NULL;
    rc = msg_decode(f.type, f.body, f.n, &back, diag);
    cr_assert_eq(rc, 0, "%s: decoding gave %d: %s", what, rc, diag_first(diag));
    cr_assert(msg_equal(m, back), "%s came back different", what);
    cr_assert(msg_equal(back, m));
    cr_assert_leq(msg_memory(back), MSG_MEMORY_MAX(f.n));
    cr_assert_gt(msg_memory(back), 0);
    struct buf again = BUF_INIT;
    cr_assert_eq(msg_encode(back, &again), 0);
    cr_assert_eq(again.len, b.len);
    cr_assert_eq(memcmp(again.data, b.data, b.len), 0, "%s: other bytes the second time", what);
    msg_free(&back);
    cr_assert_null(back);
    frame_in_fini(&in);
    diag_free(&diag);
    buf_fini(&again);
    buf_fini(&b);
}

Test(msg, required_fields_alone_come_back)
{
    size_t count = 0;
    const struct msg_row *rows = msg_table(&count);
    cr_assert_gt(count, 30);
    for (size_t i = 0; i < count; i++) {
        struct gen *gen = gen_new();
        struct msg m;
        gen_least(gen, &rows[i], &m);
        round_trip(&m, rows[i].name);
        gen_free(&gen);
    }
}

Test(msg, all_fields_come_back)
{
    size_t count = 0;
    const struct msg_row *rows = msg_table(&count);
    for (size_t i = 0; i < count; i++) {
        struct gen *gen = gen_new();
        struct msg m;
        gen_all(gen, &rows[i], &m);
        round_trip(&m, rows[i].name);
        gen_free(&gen);
    }
}

/* Every field at both of its ends, one at a time: all at once would not fit a frame. */
Test(msg, each_field_at_its_limits_comes_back)
{
    static const enum gen_mode modes[] = {GEN_LEAST, GEN_LOWEST, GEN_MOST, GEN_WIDE};
    size_t count = 0;
    const struct msg_row *rows = msg_table(&count);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < rows[i].shape->count; k++) {
            for (size_t j = 0; j < sizeof(modes) / sizeof(modes[0]); j++) {
                struct gen *gen = gen_new();
                struct msg m;
                char what[128];
                const struct msg_field *f = &rows[i].shape->fields[k];
                snprintf(what, sizeof(what), "%s.%s in mode %zu", rows[i].name, f->name, j);
                gen_least(gen, &rows[i], &m);
                gen_set(gen, f, &m.u, modes[j]);
                round_trip(&m, what);
                gen_free(&gen);
            }
        }
    }
}

Test(msg, absent_and_empty_are_told_apart)
{
    struct msg a = {.type = MSG_HELLO};
    a.u.hello.program = a.u.hello.version = "x";
    struct msg b = a;
    b.u.hello.has_facts = true;
    b.u.hello.boot_id = "";
    b.u.hello.has_room = true;
    cr_assert_not(msg_equal(&a, &b));
    round_trip(&a, "without");
    round_trip(&b, "empty");

    struct buf out = BUF_INIT;
    cr_assert_eq(msg_encode(&a, &out), 0);
    struct msg *back = NULL;
    cr_assert_eq(msg_decode(MSG_HELLO, out.data + FRAME_HEAD, out.len - FRAME_HEAD, &back, NULL),
                 0);
    cr_assert_not(back->u.hello.has_facts);
    cr_assert_not(back->u.hello.has_room);
    cr_assert_null(back->u.hello.boot_id);
    cr_assert(back->u.hello.has_caps);
    cr_assert(back->u.hello.has_proto_min);
    msg_free(&back);
    buf_fini(&out);
}

/* --- the encoder refuses --- */

static void expect_refused(struct msg *m, int code, const char *text)
{
    struct buf b = BUF_INIT;
    buf_add_str(&b, "before");
    struct diag *diag = diag_new(4);
    cr_expect_eq(msg_encode(m, &b), code, "%s", text);
    cr_expect_str_eq(buf_str(&b), "before", "%s: something was appended", text);
    cr_expect_eq(b.err, 0);
    cr_expect_eq(msg_check(m, diag), code);
    cr_expect_str_eq(diag_first(diag), text, "it says: %s", diag_first(diag));
    diag_free(&diag);
    buf_fini(&b);
}

Test(msg, what_breaks_a_rule_is_not_encoded)
{
    char long_text[70000];
    memset(long_text, 'x', sizeof(long_text));
    long_text[sizeof(long_text) - 1] = '\0';

    struct msg m = {.type = MSG_GOODBYE};
    expect_refused(&m, -ERR_INVAL, "GOODBYE: text is missing");
    m.u.goodbye.text = long_text;
    expect_refused(&m, -ERR_LIMIT, "GOODBYE: text is too long");
    m.u.goodbye.text = "caf\xe9";
    expect_refused(&m, -ERR_INVAL, "GOODBYE: text is not UTF-8");

    m = (struct msg){.type = MSG_JOIN};
    m.u.join.name = "n";
    m.u.join.token_id = (struct msg_bytes){(const uint8_t *)long_text, 9};
    expect_refused(&m, -ERR_LIMIT, "JOIN: token_id is too long");
    m.u.join.token_id = (struct msg_bytes){NULL, 8};
    expect_refused(&m, -ERR_INVAL, "JOIN: token_id has no bytes");

    m = (struct msg){.type = MSG_SAMPLES};
    m.u.samples.points_count = 8193;
    expect_refused(&m, -ERR_LIMIT, "SAMPLES: points has too many items");
    m.u.samples.points_count = 1;
    expect_refused(&m, -ERR_INVAL, "SAMPLES: points has no items");

    const struct rec_fact facts[] = {{"a", "b"}, {"a", NULL}};
    m = (struct msg){.type = MSG_HELLO};
    m.u.hello.program = m.u.hello.version = "x";
    m.u.hello.facts = facts;
    m.u.hello.facts_count = 2;
    expect_refused(&m, -ERR_INVAL, "HELLO: facts[1].value is missing");
    const char *const caps[] = {"a", long_text};
    m.u.hello.facts_count = 0;
    m.u.hello.caps = caps;
    m.u.hello.caps_count = 2;
    expect_refused(&m, -ERR_LIMIT, "HELLO: caps is too long");

    m = (struct msg){.type = (enum msg_type)99};
    expect_refused(&m, -ERR_INVAL, "no message has the number 99");
    m.type = (enum msg_type)0;
    expect_refused(&m, -ERR_INVAL, "no message has the number 0");
}

Test(msg, a_frame_that_would_be_too_long_is_not_encoded)
{
    struct gen *gen = gen_new();
    struct msg m;
    gen_least(gen, msg_table_find(MSG_ASSIGN), &m);
    char *text = NULL;
    struct buf b = BUF_INIT;
    /* Five commands of 64 KiB fit; each keeps its own limit, and 256 variables of 4 KiB do not. */
    struct buf filler = BUF_INIT;
    for (int i = 0; i < MSG_STRS_ITEM_MAX; i++) {
        buf_add_char(&filler, 'e');
    }
    text = buf_take(&filler);
    const char *env[256];
    for (int i = 0; i < 256; i++) {
        env[i] = text;
    }
    m.u.assign.env = env;
    m.u.assign.env_count = 200;
    cr_assert_eq(msg_encode(&m, &b), 0);
    size_t one = b.len;
    m.u.assign.env_count = 256;
    cr_assert_eq(msg_check(&m, NULL), 0);
    cr_assert_eq(msg_encode(&m, &b), -ERR_LIMIT);
    cr_assert_eq(b.len, one, "half a frame was left");
    cr_assert_eq(b.err, 0);
    free(text);
    buf_fini(&b);
    gen_free(&gen);
}

Test(msg, a_full_buffer_keeps_only_whole_frames)
{
    struct msg m = {.type = MSG_GOODBYE};
    m.u.goodbye.text = "0123456789";
    struct buf b;
    buf_init(&b, 39);
    cr_assert_eq(msg_encode(&m, &b), 0);
    size_t one = b.len;
    cr_assert_eq(msg_encode(&m, &b), -ERR_LIMIT);
    cr_assert_eq(b.len, one);
    cr_assert_eq(b.err, -ERR_LIMIT);
    buf_fini(&b);
}

/* --- the table's own rules --- */

static void check_shape_rules(const struct msg_shape *shape, bool is_record)
{
    cr_assert_leq(shape->count, 64, "%s has more fields than the decoder's set of bits",
                  shape->name);
    cr_assert_gt(shape->count, 0);
    unsigned last = 0;
    for (size_t i = 0; i < shape->count; i++) {
        const struct msg_field *f = &shape->fields[i];
        cr_assert_gt(f->key, last, "%s.%s: keys do not rise", shape->name, f->name);
        last = f->key;
        bool sized = f->kind >= MSG_KIND_STR;
        cr_assert_eq(f->limit > 0, sized, "%s.%s: its limit", shape->name, f->name);
        if (f->kind == MSG_KIND_RECS) {
            cr_assert_not(is_record, "%s.%s: a record within a record", shape->name, f->name);
            check_shape_rules(f->rec, true);
            /* So that MSG_MEMORY_MAX holds: text takes its bytes once, records six times. */
            cr_assert_leq(f->rec->size, 6 * msg_shape_least(f->rec), "%s is larger than its bytes",
                          f->rec->name);
        }
        if (f->kind == MSG_KIND_STRS) {
            cr_assert_not(is_record);
            cr_assert_leq(f->limit, 256);
        }
    }
}

Test(msg, the_schema_keeps_the_rules_that_the_code_relies_on)
{
    size_t count = 0;
    const struct msg_row *rows = msg_table(&count);
    for (size_t i = 0; i < count; i++) {
        check_shape_rules(rows[i].shape, false);
        cr_assert_eq(msg_table_find(rows[i].number), &rows[i], "%s: its number is not its own",
                     rows[i].name);
        cr_assert_str_eq(msg_name(rows[i].number), rows[i].name);
        cr_assert_neq(rows[i].from, 0);
    }
    cr_assert_null(msg_name(0));
    cr_assert_null(msg_name(99));
    cr_assert_null(msg_name(256));
    cr_assert_eq(MSG_BLOB_NEXT, 64);
}

/* --- printing --- */

static void expect_print(const struct msg *m, const char *text)
{
    struct buf b = BUF_INIT;
    msg_print(m, &b);
    cr_expect_str_eq(buf_str(&b), text, "printed: %s", buf_str(&b));
    buf_fini(&b);
}

Test(msg, prints_one_line)
{
    struct msg m = {.type = MSG_BEAT};
    m.u.beat.n = 4;
    m.u.beat.run = 17;
    m.u.beat.has_run = true;
    m.u.beat.elapsed_ns = -5;
    m.u.beat.has_elapsed_ns = true;
    expect_print(&m, "BEAT n=4 run=17 elapsed_ns=-5");

    m = (struct msg){.type = MSG_GOODBYE};
    m.u.goodbye.reason = 2;
    m.u.goodbye.text = "a\n\"b\"\x1b[31m";
    struct buf b = BUF_INIT;
    msg_print(&m, &b);
    cr_assert_null(strchr(buf_str(&b), '\n'));
    cr_assert_null(strchr(buf_str(&b), '\x1b'));
    cr_assert_not_null(strstr(buf_str(&b), "\\n"));
    buf_fini(&b);

    const struct rec_fact facts[] = {{"cpus", "4"}, {"os", "Linux"}, {"a", "b"}, {"c", "d"}};
    const char *const caps[] = {"sweep", "output"};
    m = (struct msg){.type = MSG_HELLO};
    m.u.hello.proto_min = m.u.hello.proto_max = 1;
    m.u.hello.program = "makespan-worker";
    m.u.hello.version = "0.1.0";
    m.u.hello.caps = caps;
    m.u.hello.caps_count = 2;
    m.u.hello.facts = facts;
    m.u.hello.facts_count = 4;
    expect_print(&m, "HELLO proto_min=1 proto_max=1 caps=[\"sweep\" \"output\"] "
                     "program=\"makespan-worker\" version=\"0.1.0\" wall_ns=0 "
                     "facts=[{key=\"cpus\" value=\"4\"} {key=\"os\" value=\"Linux\"} "
                     "{key=\"a\" value=\"b\"} ...(4 items)]");

    m = (struct msg){.type = (enum msg_type)99};
    expect_print(&m, "message 99");
}

Test(msg, shortens_what_is_long_and_hides_secrets)
{
    static const uint8_t bytes[16] = {0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct msg m = {.type = MSG_JOIN};
    m.u.join.token_id = (struct msg_bytes){bytes, 8};
    m.u.join.secret = (struct msg_bytes){bytes, 16};
    m.u.join.csr = (struct msg_bytes){bytes, 16};
    m.u.join.name = "0123456789012345678901234567890123456789012345678901234567890123456789\xc3\xa9"
                    "12345";
    expect_print(&m,
                 "JOIN token_id=(8 bytes deadbeef01020304) secret=(16 bytes) "
                 "csr=(16 bytes deadbeef01020304...) name=\""
                 "0123456789012345678901234567890123456789012345678901234567890123456789\xc3\xa9"
                 "\"...(77 bytes) wall_ns=0 role=0");
    /* Cut one byte earlier, within the character: it is left out whole. */
    m.u.join.name++;
    struct msg n = m;
    n.u.join.name =
        "01234567890123456789012345678901234567890123456789012345678901234567890\xc3\xa9"
        "123";
    struct buf b = BUF_INIT;
    msg_print(&n, &b);
    cr_assert_not_null(strstr(buf_str(&b), "67890\"...(76 bytes)"));
    buf_fini(&b);
}

/* --- comparing --- */

/* Whatever single field changes, the message is another. */
Test(msg, a_change_of_any_field_is_seen)
{
    size_t count = 0;
    const struct msg_row *rows = msg_table(&count);
    for (size_t i = 0; i < count; i++) {
        struct gen *gen = gen_new();
        struct msg a;
        gen_all(gen, &rows[i], &a);
        for (size_t k = 0; k < rows[i].shape->count; k++) {
            const struct msg_field *f = &rows[i].shape->fields[k];
            struct msg b = a;
            cr_assert(msg_equal(&a, &b));
            gen_set(gen, f, &b.u, f->kind == MSG_KIND_BIN ? GEN_LEAST : GEN_WIDE);
            if (f->kind == MSG_KIND_BOOL) {
                bool *value = msg_member_out(&b.u, f->value);
                *value = !*(const bool *)msg_member(&a.u, f->value);
            }
            cr_expect_not(msg_equal(&a, &b), "%s.%s is not compared", rows[i].name, f->name);
        }
        gen_free(&gen);
    }
    struct msg a = {.type = MSG_TAKEN};
    struct msg b = {.type = MSG_AWAY_OK};
    cr_assert_not(msg_equal(&a, &b));
}

/* --- kinds --- */

Test(msg, kinds)
{
    static const uint32_t durable[] = {MSG_RESULT, MSG_SAMPLES, MSG_OUTPUT, MSG_MARK, MSG_END};
    unsigned n = 0;
    for (uint32_t type = 0; type <= 300; type++) {
        n += msg_is_durable(type);
    }
    cr_assert_eq(n, 5);
    for (size_t i = 0; i < 5; i++) {
        cr_assert(msg_is_durable(durable[i]), "%s", msg_name(durable[i]));
        cr_assert_not(msg_is_lossy(durable[i]));
    }
    cr_assert(msg_is_lossy(MSG_BEAT));
    cr_assert(msg_is_lossy(MSG_STATE));
    cr_assert_not(msg_is_lossy(MSG_ASSIGN));
    cr_assert(msg_is_request(MSG_SWEEP_PUT));
    cr_assert(msg_is_request(MSG_BLOB_WANT));
    cr_assert(msg_is_request(MSG_WATCH_END));
    cr_assert_not(msg_is_request(MSG_REPLY));
    cr_assert_not(msg_is_request(MSG_BLOB_DATA));
    cr_assert_not(msg_is_request(MSG_HELLO));
}

Test(msg, numbers_of_records_and_calls)
{
    struct msg m = {.type = MSG_MARK};
    m.u.mark.run = UINT64_C(1) << 40;
    m.u.mark.attempt = 3;
    m.u.mark.seq = 9;
    struct msg_record_id id = {0, 0, 0};
    cr_assert(msg_record_id(&m, &id));
    cr_assert_eq(id.run, UINT64_C(1) << 40);
    cr_assert_eq(id.attempt, 3);
    cr_assert_eq(id.seq, 9);
    uint32_t call = 77;
    cr_assert_not(msg_call(&m, &call));
    cr_assert_eq(call, 77);
    m = (struct msg){.type = MSG_REPLY};
    m.u.reply.call = 5;
    cr_assert_not(msg_record_id(&m, &id));
    cr_assert(msg_call(&m, &call));
    cr_assert_eq(call, 5);
}

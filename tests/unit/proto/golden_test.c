/* golden_test.c: the stored wire bytes of every message still mean the same and are still written
 * the same. They stand in tests/golden/wire/v1/: NAME.hex has all fields, NAME-min.hex the required
 * ones; fields that came later have further files, NAME-COUNT.hex.
 *
 * Files are never rewritten. With MAKESPAN_WRITE_GOLDEN=1 in the environment, missing ones are
 * made: of a new message, or of a message with new fields. */
#include "common/diag.h"
#include "common/str.h"
#include "proto/frame.h"
#include "proto/msg.h"
#include "tests/unit/proto/msg_gen.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "tests/golden/wire/v1"

/* Lines of 32 bytes in hex. */
static void write_file(const char *name, const struct msg *m)
{
    char path[256];
    snprintf(path, sizeof(path), FOLDER "/%s.hex", name);
    struct buf b = BUF_INIT;
    cr_assert_eq(msg_encode(m, &b), 0);
    FILE *file = fopen(path, "wx");
    cr_assert_not_null(file, "%s cannot be made", path);
    for (size_t i = 0; i < b.len; i++) {
        fprintf(file, "%02x%s", b.data[i], i % 32 == 31 || i + 1 == b.len ? "\n" : "");
    }
    cr_assert_eq(fclose(file), 0);
    buf_fini(&b);
}

static bool read_file(const char *name, struct buf *out)
{
    char path[512];
    snprintf(path, sizeof(path), FOLDER "/%s", name);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return false;
    }
    char line[128];
    while (fgets(line, sizeof(line), file) != NULL) {
        size_t n = strcspn(line, "\n");
        line[n] = '\0';
        uint8_t bytes[sizeof(line) / 2];
        cr_assert_eq(n % 2, 0, "%s: half a byte", path);
        cr_assert_eq(str_unhex(bytes, n / 2, line), 0, "%s: not hex", path);
        buf_add(out, bytes, n / 2);
    }
    fclose(file);
    return true;
}

/* The stored message; its frame must be whole, and written again be the same bytes. */
static struct msg *decode_stored(const char *name, const struct buf *b)
{
    struct frame_in in;
    frame_in_init(&in, FRAME_MAX);
    const uint8_t *p = b->data;
    size_t n = b->len;
    struct frame f;
    cr_assert_eq(frame_next(&in, &p, &n, &f), 1, "%s is no frame", name);
    cr_assert_eq(n, 0, "%s has bytes behind its frame", name);
    struct diag *diag = diag_new(2);
    struct msg *m = NULL;
    int rc = msg_decode(f.type, f.body, f.n, &m, diag);
    cr_assert_eq(rc, 0, "%s is not read any more: %s", name, diag_first(diag));
    struct buf again = BUF_INIT;
    cr_assert_eq(msg_encode(m, &again), 0);
    cr_assert(again.len == b->len && memcmp(again.data, b->data, b->len) == 0,
              "%s is written with other bytes", name);
    buf_fini(&again);
    diag_free(&diag);
    frame_in_fini(&in);
    return m;
}

static bool writing(void)
{
    const char *s = getenv("MAKESPAN_WRITE_GOLDEN");
    return s != NULL && strcmp(s, "1") == 0;
}

/* Whether the file is one of the message: NAME.hex or NAME-anything.hex. */
static bool is_of(const char *file, const char *name)
{
    size_t n = strlen(name);
    return strncmp(file, name, n) == 0 && (file[n] == '.' || file[n] == '-') &&
           strcmp(file + strlen(file) - 4, ".hex") == 0;
}

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

/* Every field of the row must occur in some file of the message. */
static void check_row(const struct msg_row *row, struct dirent **files, int count)
{
    bool covered[64] = {false};
    bool any_least = false;
    for (int i = 0; i < count; i++) {
        struct buf b = BUF_INIT;
        if (!is_of(files[i]->d_name, row->name) || !read_file(files[i]->d_name, &b)) {
            continue;
        }
        struct msg *m = decode_stored(files[i]->d_name, &b);
        cr_assert_eq((uint32_t)m->type, row->number, "%s is another message", files[i]->d_name);
        bool least = strstr(files[i]->d_name, "-min.hex") != NULL;
        any_least = any_least || least;
        for (size_t k = 0; k < row->shape->count; k++) {
            const struct msg_field *f = &row->shape->fields[k];
            bool has = msg_field_present(f, &m->u);
            covered[k] = covered[k] || has;
            cr_expect(!least || has == f->required, "%s: %s", files[i]->d_name, f->name);
        }
        msg_free(&m);
        buf_fini(&b);
    }
    cr_expect(any_least, "%s-min.hex is missing", row->name);
    for (size_t k = 0; k < row->shape->count; k++) {
        cr_expect(covered[k], "%s.%s occurs in no file of " FOLDER, row->name,
                  row->shape->fields[k].name);
    }
}

static void write_missing(const struct msg_row *row)
{
    struct gen *gen = gen_new();
    struct msg m;
    char name[128];
    char path[256];
    gen_least(gen, row, &m);
    snprintf(path, sizeof(path), FOLDER "/%s-min.hex", row->name);
    if (access(path, F_OK) != 0) {
        snprintf(name, sizeof(name), "%s-min", row->name);
        write_file(name, &m);
    }
    gen_all(gen, row, &m);
    snprintf(path, sizeof(path), FOLDER "/%s.hex", row->name);
    if (access(path, F_OK) != 0) {
        write_file(row->name, &m);
    } else {
        struct buf b = BUF_INIT;
        snprintf(name, sizeof(name), "%s.hex", row->name);
        cr_assert(read_file(name, &b));
        struct msg *old = decode_stored(name, &b);
        bool lacks = false;
        for (size_t k = 0; k < row->shape->count; k++) {
            lacks = lacks || !msg_field_present(&row->shape->fields[k], &old->u);
        }
        snprintf(name, sizeof(name), "%s-%zu", row->name, row->shape->count);
        snprintf(path, sizeof(path), FOLDER "/%s.hex", name);
        if (lacks && access(path, F_OK) != 0) {
            write_file(name, &m);
        }
        msg_free(&old);
        buf_fini(&b);
    }
    gen_free(&gen);
}

Test(golden, stored_bytes_of_every_message_are_read_and_written_the_same)
{
    size_t rows_count = 0;
    const struct msg_row *rows = msg_table(&rows_count);
    for (size_t i = 0; writing() && i < rows_count; i++) {
        write_missing(&rows[i]);
    }
    struct dirent **files = NULL;
    int count = scandir(FOLDER, &files, visible, alphasort);
    cr_assert_geq(count, 0, FOLDER " is not there: tests run at the root of the tree");
    for (size_t i = 0; i < rows_count; i++) {
        check_row(&rows[i], files, count);
    }
    /* A file of no message is one that was removed or renamed: neither may happen. */
    for (int i = 0; i < count; i++) {
        bool known = false;
        for (size_t k = 0; k < rows_count; k++) {
            known = known || is_of(files[i]->d_name, rows[k].name);
        }
        cr_expect(known, "%s belongs to no message", files[i]->d_name);
        free(files[i]);
    }
    free(files);
}

static msgpack_object_type object_type(enum msg_kind kind)
{
    switch (kind) {
    case MSG_KIND_BOOL:
        return MSGPACK_OBJECT_BOOLEAN;
    case MSG_KIND_STR:
        return MSGPACK_OBJECT_STR;
    case MSG_KIND_BIN:
        return MSGPACK_OBJECT_BIN;
    case MSG_KIND_STRS:
    case MSG_KIND_RECS:
        return MSGPACK_OBJECT_ARRAY;
    default:
        return MSGPACK_OBJECT_POSITIVE_INTEGER;
    }
}

/* The records that stand in messages, each with the most of its fields that a file has. */
struct seen {
    const struct msg_shape *shape[128];
    uint32_t most[128];
    size_t count;
};

static void see(struct seen *seen, const struct msg_shape *shape, uint32_t fields)
{
    size_t i = 0;
    while (i < seen->count && seen->shape[i] != shape) {
        i++;
    }
    if (i == seen->count) {
        cr_assert_lt(i, sizeof(seen->shape) / sizeof(seen->shape[0]));
        seen->shape[seen->count++] = shape;
    }
    seen->most[i] = fields > seen->most[i] ? fields : seen->most[i];
}

/* Fields that came later are not in the file. */
static void check_objects(const struct msg_shape *shape, const msgpack_object *map,
                          const char *file, struct seen *seen)
{
    cr_assert_eq(map->type, MSGPACK_OBJECT_MAP);
    cr_assert_leq(map->via.map.size, shape->count, "%s", file);
    see(seen, shape, map->via.map.size);
    for (uint32_t i = 0; i < map->via.map.size; i++) {
        const struct msg_field *f = &shape->fields[i];
        const msgpack_object_kv *kv = &map->via.map.ptr[i];
        cr_assert_eq(kv->key.type, MSGPACK_OBJECT_POSITIVE_INTEGER);
        cr_assert_eq(kv->key.via.u64, f->key, "%s: %s", file, f->name);
        msgpack_object_type type = kv->val.type;
        if (type == MSGPACK_OBJECT_NEGATIVE_INTEGER) {
            cr_assert_eq(f->kind, MSG_KIND_I64);
            type = MSGPACK_OBJECT_POSITIVE_INTEGER;
        }
        cr_assert_eq(type, object_type((enum msg_kind)f->kind), "%s: %s", file, f->name);
        if (f->kind == MSG_KIND_RECS) {
            cr_assert_geq(kv->val.via.array.size, 1);
            check_objects(f->rec, &kv->val.via.array.ptr[0], file, seen);
        }
    }
}

/* The bytes as a reader sees them that knows msgpack and the schema, but none of our code. */
Test(golden, stored_bytes_are_what_the_schema_says)
{
    size_t count = 0;
    const struct msg_row *rows = msg_table(&count);
    struct seen seen = {.count = 0};
    struct dirent **files = NULL;
    int file_count = scandir(FOLDER, &files, visible, alphasort);
    cr_assert_geq(file_count, 0);
    for (int k = 0; k < file_count; k++) {
        const char *name = files[k]->d_name;
        struct buf b = BUF_INIT;
        size_t i = 0;
        while (i < count && !is_of(name, rows[i].name)) {
            i++;
        }
        if (strstr(name, "-min.hex") != NULL) {
            free(files[k]);
            continue;
        }
        cr_assert_lt(i, count, "%s", name);
        cr_assert(read_file(name, &b), "%s is missing", name);
        uint32_t length = (uint32_t)b.data[0] << 24 | (uint32_t)b.data[1] << 16 |
                          (uint32_t)b.data[2] << 8 | b.data[3];
        cr_assert_eq(length, b.len - 4);
        cr_assert_eq(b.data[4], rows[i].number);
        msgpack_unpacked u;
        msgpack_unpacked_init(&u);
        size_t used = 0;
        cr_assert_eq(msgpack_unpack_next(&u, (const char *)b.data + 5, b.len - 5, &used),
                     MSGPACK_UNPACK_SUCCESS);
        cr_assert_eq(used, b.len - 5);
        check_objects(rows[i].shape, &u.data, name, &seen);
        msgpack_unpacked_destroy(&u);
        buf_fini(&b);
        free(files[k]);
    }
    free(files);
    cr_assert_geq(seen.count, count);
    for (size_t i = 0; i < seen.count; i++) {
        cr_expect_eq(seen.most[i], seen.shape[i]->count,
                     "a shape whose first field is %s has a field that is in no file",
                     seen.shape[i]->fields[0].name);
    }
}

/* One message by hand, byte for byte: against a mistake that reader and writer share. */
Test(golden, one_message_by_hand)
{
    static const uint8_t bytes[] = {
        0x00, 0x00, 0x00, 0x1c,                                     /* 28 bytes follow */
        0x04,                                                       /* BEAT */
        0x84,                                                       /* four fields */
        0x01, 0xcd, 0x01, 0x2c,                                     /* n: 300 */
        0x02, 0xcf, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x05, /* run: 2^33 + 5 */
        0x03, 0x08,                                                 /* phase: run */
        0x04, 0xd3, 0xff, 0xff, 0xff, 0xfd, 0xab, 0xf4, 0x1c, 0x00, /* elapsed: -10 s */
    };
    struct msg m = {.type = MSG_BEAT};
    m.u.beat.n = 300;
    m.u.beat.run = (UINT64_C(1) << 33) + 5;
    m.u.beat.has_run = true;
    m.u.beat.phase = PHASE_MEASURE;
    m.u.beat.has_phase = true;
    m.u.beat.elapsed_ns = -INT64_C(10000000000);
    m.u.beat.has_elapsed_ns = true;
    struct buf b = BUF_INIT;
    cr_assert_eq(msg_encode(&m, &b), 0);
    cr_assert_eq(b.len, sizeof(bytes));
    cr_assert_eq(memcmp(b.data, bytes, sizeof(bytes)), 0);
    struct msg *back = decode_stored("by hand", &b);
    cr_assert(msg_equal(&m, back));
    msg_free(&back);
    buf_fini(&b);
}

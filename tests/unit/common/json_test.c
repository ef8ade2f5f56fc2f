/* json_test.c: places of mistakes, order of keys, look-ups with defaults. */
#include "common/json.h"

#include "common/buf.h"
#include "common/diag.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static json_t *parse(const char *text, struct diag *diag)
{
    return json_parse("file.json", text, strlen(text), diag);
}

Test(json, prints_what_it_read_in_the_order_given)
{
    static const char text[] =
        "{\"z\":1,\"a\":[true,null,\"\xc3\xa9\\n\"],\"m\":{\"b\":-2,\"a\":1.5}}";
    struct diag *diag = diag_new(8);
    struct buf out = BUF_INIT;
    json_t *doc = parse(text, diag);
    cr_assert_not_null(doc, "%s", diag_first(diag));
    cr_expect(json_print(doc, 0, &out) == 0);
    cr_expect_str_eq(buf_str(&out), text);
    buf_reset(&out);
    cr_expect(json_print(json_object_get(doc, "m"), 2, &out) == 0);
    cr_expect_str_eq(buf_str(&out), "{\n  \"b\": -2,\n  \"a\": 1.5\n}");
    buf_fini(&out);
    json_decref(doc);
    diag_free(&diag);
}

Test(json, says_where_a_mistake_is)
{
    static const struct {
        const char *text;
        unsigned line;
    } table[] = {{"", 1},        {"{\n \"a\": 1,\n \"a\": 2}", 3}, {"{\n\"a\": tru}", 2},
                 {"[1] [2]", 1}, {"{\"a\": \"\\u0000\"}", 1},      {"[1,\n2", 2}};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct diag *diag = diag_new(8);
        json_t *doc = parse(table[i].text, diag);
        cr_expect_null(doc, "%s was read", table[i].text);
        cr_assert(diag_count(diag) == 1, "%s", table[i].text);
        cr_expect_str_eq(diag_get(diag, 0)->file, "file.json");
        cr_expect(diag_get(diag, 0)->line == table[i].line, "%s: line %u", table[i].text,
                  diag_get(diag, 0)->line);
        cr_expect(diag_get(diag, 0)->column >= 1);
        json_decref(doc);
        diag_free(&diag);
    }
}

Test(json, refuses_more_than_the_limit)
{
    size_t n = (size_t)JSON_MAX_BYTES + 1;
    char *text = malloc(n);
    struct diag *diag = diag_new(8);
    cr_assert_not_null(text);
    memset(text, ' ', n);
    text[0] = '[';
    text[1] = ']';
    cr_expect_null(json_parse("big", text, n, diag));
    cr_expect(diag_errors(diag) == 1);
    json_t *doc = json_parse("big", text, n - 1, diag);
    cr_expect_not_null(doc);
    json_decref(doc);
    free(text);
    diag_free(&diag);
}

Test(json, looks_up_with_defaults)
{
    struct diag *diag = diag_new(8);
    json_t *doc = parse("{\"s\": \"x\", \"n\": 9007199254740993, \"r\": 1.5}", diag);
    cr_assert_not_null(doc);
    cr_expect_str_eq(json_str(doc, "s", "d"), "x");
    cr_expect_str_eq(json_str(doc, "n", "d"), "d");
    cr_expect_null(json_str(doc, "missing", NULL));
    cr_expect(json_int(doc, "n", 7) == 9007199254740993);
    cr_expect(json_int(doc, "r", 7) == 7);
    cr_expect(json_int(doc, "s", 7) == 7);
    cr_expect(json_int(NULL, "s", 7) == 7);
    json_set(doc, "s", json_integer(3));
    cr_expect(json_int(doc, "s", 7) == 3);
    json_decref(doc);
    diag_free(&diag);
}

Test(json, a_full_buffer_is_an_error)
{
    struct buf out;
    buf_init(&out, 4);
    json_t *doc = json_pack("[s]", "longer than four bytes");
    cr_expect(json_print(doc, 0, &out) < 0);
    json_decref(doc);
    buf_fini(&out);
}

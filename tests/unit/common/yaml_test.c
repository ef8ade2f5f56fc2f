/* yaml_test.c: the tree and its places, what is refused and where, the limits. */
#include "common/yaml.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The one message that a text gives, as "line:column: text"; "" when it is read. */
static const char *refusal(const void *text, size_t n, char *dst, size_t room)
{
    struct diag *diag = diag_new(8);
    struct yaml_doc *doc = yaml_parse("f.yaml", text, n, diag);
    dst[0] = '\0';
    if (doc == NULL) {
        cr_assert(diag_count(diag) == 1, "%zu messages", diag_count(diag));
        const struct diag_item *item = diag_get(diag, 0);
        cr_expect_str_eq(item->file, "f.yaml");
        snprintf(dst, room, "%u:%u: %s", item->line, item->column, item->text);
    } else {
        cr_expect(diag_count(diag) == 0);
    }
    yaml_doc_free(&doc);
    diag_free(&diag);
    return dst;
}

Test(yaml, gives_the_tree_with_places)
{
    static const char text[] = "# comment\n"
                               "sweep: vm-locking\n"
                               "hosts: [\"class:quad\", p6]\n"
                               "empty:\n"
                               "\xc3\xa9t\xc3\xa9: {a: 1, b: 'x'}\n"
                               "run: |\n"
                               "  make\n"
                               "  test\n";
    struct diag *diag = diag_new(8);
    struct yaml_doc *doc = yaml_parse("f.yaml", text, strlen(text), diag);
    cr_assert_not_null(doc, "%s", diag_first(diag));
    cr_expect_str_eq(yaml_file(doc), "f.yaml");
    const struct yaml_node *root = yaml_root(doc);
    cr_assert(root->kind == YAML_MAP && root->count == 5);
    cr_expect_str_eq(root->keys[0]->text, "sweep");
    cr_expect(root->keys[0]->line == 2 && root->keys[0]->column == 1);
    cr_expect(root->items[0]->line == 2 && root->items[0]->column == 8);
    const struct yaml_node *hosts = yaml_get(root, "hosts");
    cr_assert(hosts != NULL && hosts->kind == YAML_LIST && hosts->count == 2);
    cr_expect_str_eq(hosts->items[0]->text, "class:quad");
    cr_expect(!hosts->items[0]->plain && hosts->items[1]->plain);
    cr_expect(hosts->items[1]->line == 3 && hosts->items[1]->column == 23);
    const struct yaml_node *empty = yaml_get(root, "empty");
    cr_assert(empty != NULL && empty->kind == YAML_SCALAR);
    cr_expect_str_eq(empty->text, "");
    const struct yaml_node *map = yaml_get(root, "\xc3\xa9t\xc3\xa9");
    cr_assert(map != NULL && map->kind == YAML_MAP && map->count == 2);
    cr_expect(map->items[1]->column == 16, "columns count characters: %u", map->items[1]->column);
    cr_expect_str_eq(yaml_get(root, "run")->text, "make\ntest\n");
    cr_expect_null(yaml_get(root, "missing"));
    cr_expect_null(yaml_get(hosts, "sweep"));
    yaml_doc_free(&doc);
    cr_expect_null(doc);
    diag_free(&diag);
}

Test(yaml, scalars_stay_text)
{
    static const char text[] = "[0123, 1e3, ~, null, true, 2001-01-01, 0x1F, \"\"]";
    static const char *const words[] = {"0123", "1e3",        "~",    "null",
                                        "true", "2001-01-01", "0x1F", ""};
    struct diag *diag = diag_new(8);
    struct yaml_doc *doc = yaml_parse("f", text, strlen(text), diag);
    cr_assert_not_null(doc);
    cr_assert(yaml_root(doc)->count == ARRAY_LEN(words));
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        cr_expect_str_eq(yaml_root(doc)->items[i]->text, words[i]);
    }
    yaml_doc_free(&doc);
    diag_free(&diag);
}

Test(yaml, refuses_with_one_place)
{
    static const struct {
        const char *text;
        const char *starts;
    } table[] = {
        {"", "1:1: the file is empty"},
        {"# nothing\n", "1:1: the file is empty"},
        {"---\n", "1:1: the file is empty"},
        {"a: 1\nb: [1, 2\nc: 3\n", "3:2: syntax error: "},
        {"a: b: c\n", "1:5: syntax error: "},
        {"a: \"x\n", "2:1: syntax error: "},
        {"a:\n\t- b\n", "2:1: syntax error: "},
        {"a: &x 1\nb: *x\n", "1:4: anchors and aliases are not allowed"},
        {"a: *x\n", "1:4: anchors and aliases are not allowed"},
        {"a: &x [1]\n", "1:4: anchors and aliases are not allowed"},
        {"a: &x {b: 1}\n", "1:4: anchors and aliases are not allowed"},
        {"a: 1\nb: !!str 2\n", "2:4: tags are not allowed"},
        {"b: !x {a: 1}\n", "1:4: tags are not allowed"},
        {"a: 1\n---\nb: 2\n", "2:1: a second document (`---`) is not allowed"},
        {"a: 1\nb: 2\na: 3\nb: 4\n", "3:1: the key `a` was given before, in line 1"},
        {"x: {b: 1, c: 2, \"b\": 3}\n", "1:17: the key `b` was given before, in line 1"},
        {"{\"a\\nb\\x9b\\e\": 1, \"a\\nb\\x9b\\e\": 2}\n",
         "1:19: the key `a\\nb\\xc2\\x9b\\x1b` was given before, in line 1"},
        {"[a, b]: 1\n", "1:1: a key must be plain text, not a list or a map"},
        {"? {a: 1}\n: 1\n", "1:3: a key must be plain text, not a list or a map"},
        {"a: \"x\\0y\"\n", "1:4: a NUL character is not allowed"},
        {"a: \x01\n", "1:4: control characters are not allowed"},
        {"a: 1\nb: \x7f\n", "2:4: control characters are not allowed"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char text[512];
        refusal(table[i].text, strlen(table[i].text), text, sizeof(text));
        cr_expect(strncmp(text, table[i].starts, strlen(table[i].starts)) == 0, "`%s` gave `%s`",
                  table[i].text, text);
    }
}

/* libyaml compares each with all before it. */
Test(yaml, refuses_many_directives_of_tags)
{
    static const char *const begins[] = {"", "\xef\xbb\xbf", "# words\n\n", "a: 1\n...\n", "a: 1\n", "a:\n"};
    static const char *const ends[] = {"\n", "\r\n", "\r", "\xc2\x85", "\xe2\x80\xa8"};
    for (size_t i = 0; i < ARRAY_LEN(begins); i++) {
        for (size_t k = 0; k < ARRAY_LEN(ends); k++) {
            struct buf text = BUF_INIT;
            char message[200];
            buf_add_str(&text, begins[i]);
            for (int tag = 0; tag <= 100; tag++) {
                buf_printf(&text, "%%TAG !t%d! x%s", tag, ends[k]);
            }
            refusal(text.data, text.len, message, sizeof(message));
            cr_expect_not_null(strstr(message, ": more than 100 directives"), "%zu %zu: %s", i, k, message);
            buf_fini(&text);
        }
    }
}

Test(yaml, a_few_directives_and_what_looks_like_them_are_fine)
{
    static const char *const texts[] = {
        "%YAML 1.1\n%TAG ! tag:x,2000:\n---\na: 1\n",
        "a: |\n  x\n\n  %TAG ! y\n  ...\n  %TAG ! y\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        char text[512];
        cr_expect_str_eq(refusal(texts[i], strlen(texts[i]), text, sizeof(text)), "", "`%s` gave `%s`", texts[i], text);
    }
}

Test(yaml, refuses_nul_and_bad_utf8_with_their_place)
{
    static const struct {
        const char *text;
        size_t n;
        const char *message;
    } table[] = {
        {"a: 1\nb: \0x\n", 11, "2:4: a NUL byte is not allowed"},
        {"\0", 1, "1:1: a NUL byte is not allowed"},
        {"a: 1\r\nb: \xff\n", 10, "2:4: the file is not UTF-8"},
        {"a: \xc3\xa9\xc3", 6, "1:5: the file is not UTF-8"},
        {"a: \xed\xa0\x80", 6, "1:4: the file is not UTF-8"},
        {"\xff\xfe"
         "a\0",
         4, "1:1: the file is not UTF-8"},
        {"a\rb\r\0", 5, "3:1: a NUL byte is not allowed"},
        {"a: \xff\0", 5, "1:4: the file is not UTF-8"},
        {"a: \0\xff", 5, "1:4: a NUL byte is not allowed"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char text[512];
        cr_expect_str_eq(refusal(table[i].text, table[i].n, text, sizeof(text)), table[i].message,
                         "row %zu: %s", i, text);
    }
}

Test(yaml, holds_its_limits)
{
    struct buf b = BUF_INIT;
    char text[512];
    for (int i = 0; i < 32; i++) {
        buf_add_char(&b, '[');
    }
    for (int i = 0; i < 32; i++) {
        buf_add_char(&b, ']');
    }
    cr_expect_str_eq(refusal(b.data, b.len, text, sizeof(text)), "");
    buf_reset(&b);
    for (int i = 0; i < 33; i++) {
        buf_add_char(&b, '[');
    }
    cr_expect_str_eq(refusal(b.data, b.len, text, sizeof(text)),
                     "1:33: lists and maps are nested more than 32 deep");

    buf_reset(&b);
    for (int i = 0; i < 99999; i++) {
        buf_add_str(&b, "- a\n");
    }
    cr_expect_str_eq(refusal(b.data, b.len, text, sizeof(text)), "");
    buf_add_str(&b, "- a\n");
    cr_expect_str_eq(refusal(b.data, b.len, text, sizeof(text)),
                     "100000:3: more than 100000 values");

    buf_reset(&b);
    buf_add_str(&b, "a: ");
    while (b.len < YAML_MAX_BYTES) {
        buf_add_char(&b, 'x');
    }
    cr_expect_str_eq(refusal(b.data, b.len, text, sizeof(text)), "");
    buf_add_char(&b, 'x');
    cr_expect_str_eq(refusal(b.data, b.len, text, sizeof(text)),
                     "1:1: the file is larger than 1 MiB (1048577 bytes)");
    buf_fini(&b);
}

Test(yaml, a_byte_order_mark_is_read)
{
    char text[512];
    cr_expect_str_eq(refusal("\xef\xbb\xbf"
                             "a: 1\n",
                             8, text, sizeof(text)),
                     "");
}

Test(yaml, an_empty_file_may_come_without_a_pointer)
{
    char text[512];
    cr_expect_str_eq(refusal(NULL, 0, text, sizeof(text)), "1:1: the file is empty");
}

Test(yaml, works_without_a_list_of_messages)
{
    cr_expect_null(yaml_parse("f", "a: [", 4, NULL));
    struct yaml_doc *none = NULL;
    yaml_doc_free(&none);
}

/* A message may travel, and what travels is UTF-8. */
Test(yaml, a_long_key_is_cut_between_characters)
{
    char key[103];
    char text[400];
    char message[400];
    char expected[400];
    memset(key, 'k', 99);
    memcpy(key + 99, "\xc3\xa9\xc3", 4);
    snprintf(text, sizeof(text), "%s\xa9: 1\n%s\xa9: 2\n", key, key);
    refusal(text, strlen(text), message, sizeof(message));
    key[99] = '\0';
    snprintf(expected, sizeof(expected), "2:1: the key `%s` was given before, in line 1", key);
    cr_expect_str_eq(message, expected);
}

/* told.c: reads "key=value" lines out of a stream of bytes. */
#include "worker/run/told.h"

#include "common/mem.h"
#include "common/str.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '+' || c == '-';
}

/* UTF-8 without control characters, C1 included (which are 0xc2 0x80 to 0xc2 0x9f). */
static bool is_plain(const char *s, size_t n)
{
    if (!str_is_utf8(s, n))
        return false;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];

        if (c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)s[i + 1] < 0xa0))
            return false;
    }
    return true;
}

static void take(struct told *t, const char *key, size_t n_key, const char *value, size_t n_value)
{
    struct told_fact *f;

    for (size_t i = 0; i < t->count; i++) {
        f = &t->list[i];
        if (strlen(f->key) == n_key && memcmp(f->key, key, n_key) == 0) {
            free(f->value);
            f->value = mem_xstrndup(value, n_value);
            return;
        }
    }
    if (t->count == TOLD_MAX) {
        t->left_out++;
        return;
    }
    f = &t->list[t->count++];
    f->key = mem_xstrndup(key, n_key);
    f->value = mem_xstrndup(value, n_value);
}

static void end_line(struct told *t)
{
    size_t n = t->line_len;
    size_t key = 0;
    bool whole = t->line_too_long == 0;

    t->line_len = 0;
    t->line_too_long = 0;
    if (!whole)
        return;
    while (key < n && is_key_char(t->line[key]))
        key++;
    if (key == 0 || key > TOLD_KEY_MAX || key == n || t->line[key] != '=')
        return;
    if (n - key - 1 == 0 || n - key - 1 > TOLD_VALUE_MAX ||
        !is_plain(t->line + key + 1, n - key - 1))
        return;
    take(t, t->line, key, t->line + key + 1, n - key - 1);
}

void told_add(struct told *told, const void *data, size_t n)
{
    const char *p = data;

    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\n')
            end_line(told);
        else if (told->line_len < sizeof told->line - 1)
            told->line[told->line_len++] = p[i];
        else
            told->line_too_long = 1;
    }
}

void told_gap(struct told *told)
{
    told->line_len = 0;
    told->line_too_long = 1;
}

void told_end(struct told *told)
{
    end_line(told);
}

void told_free(struct told *told)
{
    for (size_t i = 0; i < told->count; i++) {
        free(told->list[i].key);
        free(told->list[i].value);
    }
    memset(told, 0, sizeof *told);
}

/* json.c: a thin layer over jansson: limits, places in messages, one way to print. */
#include "common/json.h"

#include "common/buf.h"
#include "common/diag.h"
#include "common/err.h"

#include <stdio.h>
#include <stdlib.h>

json_t *json_parse(const char *name, const char *text, size_t n, struct diag *diag)
{
    if (n > JSON_MAX_BYTES) {
        diag_error_at(diag, ERR_LIMIT, name, 1, 1, "larger than 64 MiB");
        return NULL;
    }
    json_error_t error;
    json_t *doc = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
    if (doc == NULL) {
        unsigned line = error.line > 0 ? (unsigned)error.line : 1;
        unsigned column = error.column > 0 ? (unsigned)error.column : 1;
        diag_error_at(diag, ERR_SYNTAX, name, line, column, "not valid JSON: %s", error.text);
    }
    return doc;
}

static int add_to_buf(const char *data, size_t n, void *arg)
{
    struct buf *out = arg;
    buf_add(out, data, n);
    return out->err < 0 ? -1 : 0;
}

int json_print(const json_t *doc, int indent, struct buf *out)
{
    size_t flags =
        JSON_ENCODE_ANY |
        JSON_REAL_PRECISION(12); /* the same text whatever the width of the floating-point unit */
    flags |= indent > 0 ? JSON_INDENT((size_t)indent) : JSON_COMPACT;
    if (json_dump_callback(doc, add_to_buf, out, flags) != 0) {
        if (out->err == 0) {
            out->err = -ERR_INVAL;
        }
        return out->err;
    }
    return 0;
}

const char *json_str(const json_t *obj, const char *key, const char *dflt)
{
    const char *s = json_string_value(json_object_get(obj, key));
    return s != NULL ? s : dflt;
}

long long json_int(const json_t *obj, const char *key, long long dflt)
{
    const json_t *v = json_object_get(obj, key);
    return json_is_integer(v) ? json_integer_value(v) : dflt;
}

void json_set(json_t *obj, const char *key, json_t *value)
{
    if (value == NULL || json_object_set_new(obj, key, value) != 0) {
        fprintf(stderr, "json_set: out of memory or not UTF-8\n");
        abort();
    }
}

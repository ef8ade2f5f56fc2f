/* json.h: JSON text by jansson: parse with a place on errors, print compactly or indented, keys in the order given. */
#ifndef MAKESPAN_COMMON_JSON_H
#define MAKESPAN_COMMON_JSON_H

#include "common/attr.h"

#include <jansson.h>
#include <stddef.h>

struct buf;
struct diag;

#define JSON_MAX_BYTES (64 * 1024 * 1024)

/* Parses one document, an object or a list, of at most JSON_MAX_BYTES (duplicate keys are refused). `name` is the file's name in
 * messages. The caller owns the result (json_decref). NULL with text in diag on failure. */
json_t *json_parse(const char *name, const char *text, size_t n, struct diag *diag) MUST_CHECK;
/* Appends the document or any value; indent 0 (to 31): one line. 0 or a negative code, which `out` holds too. */
int json_print(const json_t *doc, int indent, struct buf *out) MUST_CHECK;
/* Typed look-ups in an object; a missing or wrongly typed member gives the default. Borrowed. */
const char *json_str(const json_t *obj, const char *key, const char *dflt);
long long json_int(const json_t *obj, const char *key, long long dflt);
/* Sets a member; aborts when memory is out. `value` is taken. */
void json_set(json_t *obj, const char *key, json_t *value);

#endif

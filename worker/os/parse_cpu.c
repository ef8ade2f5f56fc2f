/* parse_cpu.c: reads what Linux says of its processors. Owns no file and asks nothing. */
#include "worker/os/parse_cpu.h"

#include "common/num.h"
#include "common/str.h"

#include <stdbool.h>
#include <string.h>

#define PLACES_MAX 4096

/* A line "key\t: value": sets where the value begins and how long it is. */
static bool split(const char *line, size_t n, size_t *key, const char **value, size_t *value_len)
{
    const char *colon = memchr(line, ':', n);
    size_t k;

    if (colon == NULL)
        return false;
    k = (size_t)(colon - line);
    while (k > 0 && (line[k - 1] == ' ' || line[k - 1] == '\t'))
        k--;
    *key = k;
    *value = colon + 1;
    *value_len = n - (size_t)(colon + 1 - line);
    while (*value_len > 0 && (**value == ' ' || **value == '\t')) {
        (*value)++;
        (*value_len)--;
    }
    return k > 0;
}

static bool is(const char *line, size_t key, const char *name)
{
    return strlen(name) == key && memcmp(line, name, key) == 0;
}

static int64_t number(const char *s, size_t n)
{
    uint64_t v;

    if (n == 0 || num_parse_digits(s, n, &v) != 0 || v > INT32_MAX)
        return -1;
    return (int64_t)v;
}

static bool seen(const struct parse_cpu_place *places, size_t n, const struct parse_cpu_place *p,
                 bool with_core)
{
    for (size_t i = 0; i < n; i++)
        if (places[i].package == p->package && (!with_core || places[i].core == p->core))
            return true;
    return false;
}

void parse_cpu_places(const struct parse_cpu_place *places, size_t n, int32_t *sockets,
                      int32_t *cores)
{
    *sockets = 0;
    *cores = 0;
    for (size_t i = 0; i < n; i++) {
        if (places[i].package < 0 || places[i].core < 0) {
            *sockets = -1;
            *cores = -1;
            return;
        }
        *sockets += seen(places, i, &places[i], false) ? 0 : 1;
        *cores += seen(places, i, &places[i], true) ? 0 : 1;
    }
    if (n == 0) {
        *sockets = -1;
        *cores = -1;
    }
}

void parse_cpu_info(const char *text, struct parse_cpu *out)
{
    struct parse_cpu_place places[PLACES_MAX];
    size_t n = 0; /* places begun */
    bool x86 = false, any_package = false;
    const char *line = text;

    memset(out, 0, sizeof(*out));
    while (*line != '\0') {
        const char *end = strchr(line, '\n'), *value;
        size_t len = end == NULL ? strlen(line) : (size_t)(end - line), key, value_len;

        if (split(line, len, &key, &value, &value_len)) {
            if (is(line, key, "processor") && number(value, value_len) >= 0) {
                out->processors++;
                if (n < PLACES_MAX)
                    places[n++] = (struct parse_cpu_place){-1, -1};
            } else if (is(line, key, "vendor_id") && out->processors > 0) {
                x86 = true;
            } else if (is(line, key, "physical id") && n > 0) {
                places[n - 1].package = number(value, value_len);
                any_package = true;
            } else if (is(line, key, "core id") && n > 0) {
                places[n - 1].core = number(value, value_len);
            } else if ((is(line, key, "model name") || is(line, key, "Processor") ||
                        is(line, key, "cpu model")) &&
                       out->model[0] == '\0') {
                if (value_len >= sizeof(out->model))
                    value_len = sizeof(out->model) - 1;
                memcpy(out->model, value, value_len);
            }
        }
        line = end == NULL ? line + len : end + 1;
    }
    out->sockets = -1;
    out->cores = -1;
    if (out->processors == 0)
        out->processors = -1;
    else if (any_package)
        parse_cpu_places(places, n, &out->sockets, &out->cores);
    else if (x86)
        out->sockets = out->cores = out->processors;
}

int32_t parse_cpu_list(const char *text)
{
    const char *p = text;
    int64_t count = 0;

    for (;;) {
        size_t n = strspn(p, "0123456789");
        int64_t from = number(p, n), to;

        p += n;
        to = from;
        if (*p == '-') {
            n = strspn(p + 1, "0123456789");
            to = number(p + 1, n);
            p += 1 + n;
        }
        if (from < 0 || to < from)
            return -1;
        count += to - from + 1;
        if (*p != ',')
            break;
        p++;
    }
    if ((*p != '\0' && *p != '\n') || count > INT32_MAX)
        return -1;
    return (int32_t)count;
}

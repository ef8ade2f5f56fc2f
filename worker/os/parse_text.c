/* parse_text.c: reads small text files of a system. Owns no file and asks nothing. */
#include "worker/os/parse_text.h"

#include "common/num.h"
#include "worker/os/os.h"

#include <string.h>

static const char *next_line(const char *p)
{
    const char *end = strchr(p, '\n');

    return end == NULL ? p + strlen(p) : end + 1;
}

bool parse_release(const char *text, const char *key, char *dst, size_t room)
{
    size_t n = strlen(key);

    for (const char *p = text; *p != '\0'; p = next_line(p)) {
        size_t used = 0;
        char quote = '\0';

        if (strncmp(p, key, n) != 0 || p[n] != '=')
            continue;
        p += n + 1;
        if (*p == '"' || *p == '\'')
            quote = *p++;
        while (*p != '\0' && *p != '\n' && *p != quote) {
            if (*p == '\\' && quote != '\'' && p[1] != '\0' && p[1] != '\n')
                p++;
            if (used + 1 < room)
                dst[used++] = *p;
            p++;
        }
        dst[used] = '\0';
        return used > 0;
    }
    return false;
}

/* Field `index` of a line with colons: its start, and its length. */
static bool field(const char *line, int index, const char **start, size_t *n)
{
    const char *end = line + strcspn(line, "\n");

    for (; index > 0; index--) {
        line = memchr(line, ':', (size_t)(end - line));
        if (line == NULL)
            return false;
        line++;
    }
    *start = line;
    *n = strcspn(line, ":\n");
    return true;
}

static bool number(const char *line, int index, uint32_t *out)
{
    const char *s;
    size_t n;
    uint64_t v;

    if (!field(line, index, &s, &n) || n == 0 || num_parse_digits(s, n, &v) != 0 || v >= UINT32_MAX)
        return false;
    *out = (uint32_t)v;
    return true;
}

bool parse_passwd(const char *text, const char *name, struct os_user *out)
{
    size_t len = strlen(name), n;
    const char *s;

    if (len == 0)
        return false;
    for (const char *p = text; *p != '\0'; p = next_line(p))
        if (field(p, 0, &s, &n) && n == len && memcmp(s, name, len) == 0)
            return number(p, 2, &out->uid) && number(p, 3, &out->gid);
    return false;
}

bool parse_passwd_gid(const char *text, uint32_t uid, uint32_t *gid)
{
    uint32_t seen;

    for (const char *p = text; *p != '\0'; p = next_line(p))
        if (number(p, 2, &seen) && seen == uid)
            return number(p, 3, gid);
    return false;
}

size_t parse_line(const char *text, char *dst, size_t room)
{
    size_t n;

    text += strspn(text, " \t");
    n = strcspn(text, "\n");
    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t' || text[n - 1] == '\r'))
        n--;
    if (n >= room)
        n = room - 1;
    memcpy(dst, text, n);
    dst[n] = '\0';
    return n;
}

/* tarname.c: which names and links of an archive stay within the folder it is unpacked into. */
#include "worker/run/tarname.h"

#include <string.h>

/* The next part of a path: its start and length; 0 at the end. Empty parts are passed over. */
static size_t next_part(const char **p, const char *end, const char **part)
{
    const char *s = *p;

    while (s < end && *s == '/')
        s++;
    *part = s;
    while (s < end && *s != '/')
        s++;
    *p = s;
    return (size_t)(s - *part);
}

static bool is_dot(const char *part, size_t n)
{
    return n == 1 && part[0] == '.';
}

static bool is_up(const char *part, size_t n)
{
    return n == 2 && part[0] == '.' && part[1] == '.';
}

const char *tarname_clean(const char *name, size_t n, char *dst)
{
    const char *p = name, *end = name + n, *part;
    size_t len, used = 0;

    dst[0] = '\0';
    if (n == 0)
        return "is empty";
    if (n >= TARNAME_MAX)
        return "is too long";
    if (memchr(name, '\0', n) != NULL)
        return "holds a NUL byte";
    if (name[0] == '/')
        return "is absolute";
    while ((len = next_part(&p, end, &part)) > 0) {
        if (is_dot(part, len))
            continue;
        if (is_up(part, len))
            return "leads upwards by \"..\"";
        if (len > TARNAME_PART_MAX)
            return "has a part that is too long";
        if (used > 0)
            dst[used++] = '/';
        memcpy(dst + used, part, len);
        used += len;
        dst[used] = '\0';
    }
    return NULL;
}

/* How many folders lie above the last part of a plain path. */
static size_t depth_of(const char *path)
{
    size_t depth = 0;

    for (; *path != '\0'; path++)
        depth += *path == '/';
    return depth;
}

const char *tarname_link(const char *path, const char *target, size_t n, bool *later)
{
    const char *p = target, *end = target + n, *part;
    size_t len, up = 0;
    bool down = false;

    *later = false;
    if (n == 0)
        return "leads nowhere";
    if (n >= TARNAME_MAX)
        return "leads to a name that is too long";
    if (memchr(target, '\0', n) != NULL)
        return "leads to a name with a NUL byte";
    if (target[0] == '/')
        return "leads to an absolute name";
    while ((len = next_part(&p, end, &part)) > 0) {
        if (is_dot(part, len))
            continue;
        if (!is_up(part, len))
            down = true;
        else if (down)
            *later = true;
        else
            up++;
    }
    return up > depth_of(path) ? "leads out of the archive" : NULL;
}

const char *tarname_walk(const char *path, const char *target, tarname_is_link_f *is_link,
                         void *arg)
{
    const char *p = target, *end = target + strlen(target), *part, *slash = strrchr(path, '/');
    char at[2 * TARNAME_MAX];
    size_t len, used = slash == NULL ? 0 : (size_t)(slash - path);
    bool down = false;

    memcpy(at, path, used);
    at[used] = '\0';
    while ((len = next_part(&p, end, &part)) > 0) {
        if (is_dot(part, len))
            continue;
        if (is_up(part, len)) {
            char *last = strrchr(at, '/');

            if (used == 0)
                return "leads out of the archive";
            if (down && is_link(at, arg))
                return "leads upwards through another link";
            used = last == NULL ? 0 : (size_t)(last - at);
            at[used] = '\0';
            continue;
        }
        down = true;
        if (used + 1 + len >= sizeof(at))
            return "leads to a name that is too long";
        /* A link on the way, not only the last part before the "..": what lies behind it is
         * elsewhere. */
        if (used > 0 && is_link(at, arg))
            return "leads upwards through another link";
        if (used > 0)
            at[used++] = '/';
        memcpy(at + used, part, len);
        used += len;
        at[used] = '\0';
    }
    return NULL;
}

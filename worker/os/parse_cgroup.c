/* parse_cgroup.c: reads where Linux's control groups are and what they allow. Owns no file and
 * asks nothing. */
#include "worker/os/parse_cgroup.h"

#include "common/clock.h"
#include "common/err.h"
#include "common/num.h"
#include "common/str.h"
#include "worker/os/os.h"
#include "worker/os/parse_proc.h"

#include <string.h>

/* One line of mountinfo. */
struct mount {
    char device[32];
    char root[1024];
    char point[1024];
    char type[64];
    char options[1024]; /* of the super block */
};

/* Copies a word of the line with its \040 escapes undone; false when it does not fit. Moves
 * behind it. */
static bool take_word(const char **p, char *dst, size_t room)
{
    size_t n = 0;

    while (**p == ' ')
        (*p)++;
    while (**p != '\0' && **p != '\n' && **p != ' ') {
        char c = **p;

        if (c == '\\' && (*p)[1] >= '0' && (*p)[1] <= '3' && (*p)[2] >= '0' && (*p)[2] <= '7' &&
            (*p)[3] >= '0' && (*p)[3] <= '7') {
            c = (char)(((*p)[1] - '0') * 64 + ((*p)[2] - '0') * 8 + ((*p)[3] - '0'));
            *p += 3;
        }
        (*p)++;
        if (n + 1 >= room)
            return false;
        dst[n++] = c;
    }
    dst[n] = '\0';
    return n > 0;
}

static bool skip_word(const char **p)
{
    while (**p == ' ')
        (*p)++;
    if (**p == '\0' || **p == '\n')
        return false;
    while (**p != '\0' && **p != '\n' && **p != ' ')
        (*p)++;
    return true;
}

/* "36 35 98:0 /root /point rw,noatime shared:1 - type source options" */
static bool take_mount(const char *line, struct mount *m)
{
    const char *p = line;

    if (!skip_word(&p) || !skip_word(&p) || !take_word(&p, m->device, sizeof(m->device)) ||
        !take_word(&p, m->root, sizeof(m->root)) || !take_word(&p, m->point, sizeof(m->point)) ||
        !skip_word(&p))
        return false;
    for (;;) { /* optional fields, up to the lone hyphen */
        while (*p == ' ')
            p++;
        if (p[0] == '-' && p[1] == ' ')
            break;
        if (!skip_word(&p))
            return false;
    }
    p++;
    return take_word(&p, m->type, sizeof(m->type)) && skip_word(&p) &&
           take_word(&p, m->options, sizeof(m->options));
}

static const char *next_line(const char *p)
{
    const char *end = strchr(p, '\n');

    return end == NULL ? p + strlen(p) : end + 1;
}

/* Whether a list "a,b,c" of n bytes has the word. */
static bool list_has(const char *list, size_t n, const char *word)
{
    size_t len = strlen(word), at = 0;

    while (at <= n) {
        const char *comma = memchr(list + at, ',', n - at);
        size_t size = comma == NULL ? n - at : (size_t)(comma - (list + at));

        if (size == len && memcmp(list + at, word, len) == 0)
            return true;
        at += size + 1;
    }
    return false;
}

/* The path of a line of /proc/self/cgroup for a controller, NULL for v2. */
static bool own_path(const char *self, const char *controller, char *dst, size_t room)
{
    for (const char *p = self; *p != '\0'; p = next_line(p)) {
        const char *list = strchr(p, ':'), *path, *end = next_line(p);
        size_t n;

        if (list == NULL || list >= end)
            continue;
        list++;
        path = strchr(list, ':');
        if (path == NULL || path >= end)
            continue;
        n = (size_t)(path - list);
        if (controller == NULL ? n != 0 : !list_has(list, n, controller))
            continue;
        path++;
        n = (size_t)(end - path);
        if (n > 0 && path[n - 1] == '\n')
            n--;
        if (n == 0 || n >= room || path[0] != '/')
            return false;
        memcpy(dst, path, n);
        dst[n] = '\0';
        return strstr(dst, "/..") == NULL;
    }
    return false;
}

/* What lies behind the folder `prefix` in path: "" or "/…"; NULL when path is not below it. */
static const char *below(const char *path, const char *prefix)
{
    size_t n = strlen(prefix);

    if (n == 1 && prefix[0] == '/')
        return path[1] == '\0' ? "" : path;
    if (strncmp(path, prefix, n) != 0 || (path[n] != '\0' && path[n] != '/'))
        return NULL;
    return path + n;
}

static void find_folder(const char *self, const char *mountinfo, const char *controller, char *dst,
                        size_t room)
{
    char path[1024];
    struct mount m;

    dst[0] = '\0';
    if (!own_path(self, controller, path, sizeof(path)))
        return;
    for (const char *p = mountinfo; *p != '\0'; p = next_line(p)) {
        const char *rest;
        size_t point;

        if (!take_mount(p, &m) || strcmp(m.type, controller == NULL ? "cgroup2" : "cgroup") != 0)
            continue;
        if (controller != NULL && !list_has(m.options, strlen(m.options), controller))
            continue;
        rest = below(path, m.root);
        point = strlen(m.point);
        if (rest == NULL || point + strlen(rest) >= room)
            continue;
        memcpy(dst, m.point, point);
        memcpy(dst + point, rest, strlen(rest) + 1);
        return;
    }
}

void parse_cgroup_folders(const char *self, const char *mountinfo, struct os_cgroups *out)
{
    find_folder(self, mountinfo, NULL, out->v2, sizeof(out->v2));
    find_folder(self, mountinfo, "cpuacct", out->cpuacct, sizeof(out->cpuacct));
    find_folder(self, mountinfo, "memory", out->memory, sizeof(out->memory));
    find_folder(self, mountinfo, "freezer", out->freezer, sizeof(out->freezer));
    find_folder(self, mountinfo, "pids", out->pids, sizeof(out->pids));
    find_folder(self, mountinfo, "cpu", out->cpu, sizeof(out->cpu));
}

/* A number at *p with its end moved; false when there is none. */
static bool take_i64(const char **p, int64_t *v)
{
    size_t n;
    uint64_t u;

    while (**p == ' ')
        (*p)++;
    n = strspn(*p, "0123456789");
    if (n == 0 || num_parse_digits(*p, n, &u) != 0 || u > INT64_MAX)
        return false;
    *p += n;
    *v = (int64_t)u;
    return true;
}

static int quota(int64_t used, int64_t period, int64_t *milli)
{
    int64_t scaled;

    if (used <= 0 || period <= 0 || num_mul_i64(used, 1000, &scaled) != 0)
        return -ERR_SYNTAX;
    *milli = scaled / period > 0 ? scaled / period : 1;
    return 0;
}

int parse_cgroup_cpu_max(const char *text, int64_t *milli)
{
    int64_t used, period;

    if (strncmp(text, "max", 3) == 0) {
        *milli = -1;
        return 0;
    }
    if (!take_i64(&text, &used) || !take_i64(&text, &period))
        return -ERR_SYNTAX;
    return quota(used, period, milli);
}

int parse_cgroup_cfs(const char *quota_text, const char *period_text, int64_t *milli)
{
    int64_t used, period;

    if (quota_text[0] == '-') {
        *milli = -1;
        return 0;
    }
    if (!take_i64(&quota_text, &used) || !take_i64(&period_text, &period))
        return -ERR_SYNTAX;
    return quota(used, period, milli);
}

int parse_cgroup_max(const char *text, int64_t *value)
{
    size_t n;
    uint64_t u;

    if (strncmp(text, "max", 3) == 0) {
        *value = OS_NO_LIMIT;
        return 0;
    }
    n = strspn(text, "0123456789");
    if (n == 0 || num_parse_digits(text, n, &u) != 0)
        return -ERR_SYNTAX;
    /* v1 rounds its largest value down to a page. */
    *value = u >= UINT64_C(0x7fffffffff000000) ? OS_NO_LIMIT : (int64_t)u;
    return 0;
}

int parse_cgroup_cpu_stat(const char *text, int64_t *user_ns, int64_t *sys_ns)
{
    int64_t user, sys;

    if (!parse_proc_number(text, "user_usec", &user) ||
        !parse_proc_number(text, "system_usec", &sys) || num_mul_i64(user, 1000, user_ns) != 0 ||
        num_mul_i64(sys, 1000, sys_ns) != 0)
        return -ERR_SYNTAX;
    return 0;
}

int parse_cgroup_cpuacct(const char *usage, const char *stat, int64_t *user_ns, int64_t *sys_ns)
{
    int64_t total, user, sys;

    if (!take_i64(&usage, &total) || !parse_proc_number(stat, "user", &user) ||
        !parse_proc_number(stat, "system", &sys))
        return -ERR_SYNTAX;
    if (user == 0 && sys == 0)
        user = 1; /* less than a tick: what there is counts as the program's */
    /* total * sys / (user + sys), without overflow: a share in parts of 2^20 is finer than the
     * ticks. */
    while (user > (INT64_C(1) << 40) || sys > (INT64_C(1) << 40)) {
        user /= 2;
        sys /= 2;
    }
    {
        int64_t share = (sys << 20) / (user + sys);

        *sys_ns = (total >> 20) * share + (((total & ((1 << 20) - 1)) * share) >> 20);
        *user_ns = total - *sys_ns;
    }
    return 0;
}

int parse_cgroup_populated(const char *text, bool *populated)
{
    int64_t v;

    if (!parse_proc_number(text, "populated", &v))
        return -ERR_SYNTAX;
    *populated = v != 0;
    return 0;
}

bool parse_mount_kind(const char *mountinfo, const char *path, const char *device, char *dst,
                      size_t room)
{
    size_t best = 0;
    bool best_device = false, found = false;
    struct mount m;

    for (const char *p = mountinfo; *p != '\0'; p = next_line(p)) {
        bool same;
        size_t n;

        if (!take_mount(p, &m) || below(path, m.point) == NULL)
            continue;
        same = device != NULL && strcmp(m.device, device) == 0;
        n = strlen(m.point);
        /* Later lines lie above earlier ones on the same point. */
        if (found && (best_device != same ? best_device : n < best))
            continue;
        found = true;
        best = n;
        best_device = same;
        (void)str_copy(dst, room, m.type);
    }
    return found;
}

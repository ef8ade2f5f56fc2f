/* tarlinks.c: the symbolic links of an archive: a hash table of their paths in one arena. */
#include "worker/run/tarlinks.h"

#include "common/err.h"
#include "common/mem.h"
#include "common/rand.h"
#include "worker/run/tarname.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct link {
    struct link *next;   /* with the same hash */
    struct link *before; /* made before this one */
    const char *path;
    const char *target; /* NULL: judged already */
};

#define TABLE_SIZE 4096 /* 2^12: the top bits of a hash */

struct tarlinks {
    struct mem_arena *arena;
    struct link *table[TABLE_SIZE];
    struct link *last;
    uint64_t seed[2];
};

struct tarlinks *tarlinks_new(void)
{
    struct tarlinks *l = mem_xzalloc(sizeof(*l));

    l->arena = mem_arena_new(TARLINKS_BYTES);
    rand_bytes(l->seed, sizeof(l->seed));
    l->seed[1] |= 1;
    return l;
}

void tarlinks_free(struct tarlinks **links)
{
    if (*links == NULL)
        return;
    mem_arena_free(&(*links)->arena);
    free(*links);
    *links = NULL;
}

/* A polynomial of the bytes at a secret point: whoever makes archives cannot make its paths meet
 * in one place. */
static size_t hash(const struct tarlinks *links, const char *s, size_t n)
{
    uint64_t h = links->seed[0];

    for (size_t i = 0; i < n; i++)
        h = (h ^ (uint8_t)s[i]) * links->seed[1];
    return (size_t)(h >> 52);
}

static bool has(const struct tarlinks *links, const char *path, size_t n)
{
    for (const struct link *l = links->table[hash(links, path, n)]; l != NULL; l = l->next)
        if (strncmp(l->path, path, n) == 0 && l->path[n] == '\0')
            return true;
    return false;
}

int tarlinks_add(struct tarlinks *links, const char *path, const char *target)
{
    struct link *l = mem_arena_alloc(links->arena, sizeof(*l));
    struct link **slot = &links->table[hash(links, path, strlen(path))];

    if (l == NULL || (l->path = mem_arena_strdup(links->arena, path)) == NULL ||
        (target != NULL && (l->target = mem_arena_strdup(links->arena, target)) == NULL))
        return -ERR_LIMIT;
    l->next = *slot;
    *slot = l;
    l->before = links->last;
    links->last = l;
    return 0;
}

bool tarlinks_has(const struct tarlinks *links, const char *path)
{
    return has(links, path, strlen(path));
}

bool tarlinks_above(const struct tarlinks *links, const char *path)
{
    for (const char *p = strchr(path, '/'); p != NULL; p = strchr(p + 1, '/'))
        if (has(links, path, (size_t)(p - path)))
            return true;
    return false;
}

static bool is_link(const char *path, void *arg)
{
    return tarlinks_has(arg, path);
}

const char *tarlinks_judge(const struct tarlinks *links, const char **path)
{
    for (const struct link *l = links->last; l != NULL; l = l->before) {
        const char *why = l->target == NULL
                              ? NULL
                              : tarname_walk(l->path, l->target, is_link, (void *)(uintptr_t)links);

        if (why != NULL) {
            *path = l->path;
            return why;
        }
    }
    return NULL;
}

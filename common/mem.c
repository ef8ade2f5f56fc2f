/* mem.c: allocation that aborts, allocation that may fail, and arenas. Owns no state beyond the arenas it hands out. */
#include "common/mem.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_MIN ((size_t)1024)
#define CHUNK_MAX ((size_t)64 * 1024)
#define ALIGNMENT (_Alignof(max_align_t))

NORETURN static void die(void)
{
    static const char text[] = "out of memory\n";
    ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)n; /* the process ends here in any case */
    abort();
}

static bool mul_overflows(size_t a, size_t b)
{
    return b != 0 && a > SIZE_MAX / b;
}

void *mem_xzalloc(size_t size)
{
    void *p = calloc(1, size != 0 ? size : 1);
    if (p == NULL) {
        die();
    }
    return p;
}

void *mem_xarray(size_t count, size_t size)
{
    if (mul_overflows(count, size)) {
        die();
    }
    return mem_xzalloc(count * size);
}

void *mem_xrealloc(void *p, size_t count, size_t size)
{
    if (mul_overflows(count, size)) {
        die();
    }
    size_t n = count * size;
    void *q = realloc(p, n != 0 ? n : 1);
    if (q == NULL) {
        die();
    }
    return q;
}

char *mem_xstrdup(const char *s)
{
    return mem_xstrndup(s, strlen(s));
}

char *mem_xstrndup(const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *copy = mem_xzalloc(len + 1);
    memcpy(copy, s, len);
    return copy;
}

char *mem_xasprintf(const char *fmt, ...)
{
    va_list ap;
    va_list again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) {
        die();
    }
    char *text = mem_xzalloc((size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return text;
}

void *mem_try_zalloc(size_t size, size_t cap)
{
    if (size > cap) {
        return NULL;
    }
    return calloc(1, size != 0 ? size : 1);
}

void *mem_try_array(size_t count, size_t size, size_t cap)
{
    if (mul_overflows(count, size)) {
        return NULL;
    }
    return mem_try_zalloc(count * size, cap);
}

/* A chunk is one block of memory: this header, padded to the alignment, then `room` bytes. */
struct chunk {
    struct chunk *next;
    size_t room;
    size_t used;
};

#define HEADER ((sizeof(struct chunk) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)

struct mem_arena {
    struct chunk *chunks; /* the one that is being filled first */
    size_t cap;
    size_t used; /* bytes handed out, padding included */
    size_t next_room;
};

struct mem_arena *mem_arena_new(size_t cap)
{
    struct mem_arena *arena = mem_xzalloc(sizeof(*arena));
    arena->cap = cap != 0 ? cap : SIZE_MAX;
    arena->next_room = CHUNK_MIN;
    return arena;
}

void mem_arena_free(struct mem_arena **arena)
{
    if (*arena == NULL) {
        return;
    }
    struct chunk *c = (*arena)->chunks;
    while (c != NULL) {
        struct chunk *next = c->next;
        free(c);
        c = next;
    }
    free(*arena);
    *arena = NULL;
}

/* A chunk with at least n bytes of room, first in the list unless it was made for one big object alone. */
static struct chunk *add_chunk(struct mem_arena *arena, size_t n)
{
    bool alone = n > CHUNK_MAX / 2;
    size_t room = arena->next_room;
    if (alone) {
        room = n;
    } else {
        while (room < n) {
            room *= 2;
        }
    }
    if (room > SIZE_MAX - HEADER) {
        return NULL;
    }
    struct chunk *c = calloc(1, HEADER + room);
    if (c == NULL) {
        return NULL;
    }
    c->room = room;
    if (alone && arena->chunks != NULL) {
        c->next = arena->chunks->next;
        arena->chunks->next = c;
    } else {
        c->next = arena->chunks;
        arena->chunks = c;
    }
    if (!alone) {
        arena->next_room = room < CHUNK_MAX ? room * 2 : CHUNK_MAX;
    }
    return c;
}

void *mem_arena_alloc(struct mem_arena *arena, size_t size)
{
    if (size == 0) {
        size = 1;
    }
    if (size > SIZE_MAX - ALIGNMENT) {
        return NULL;
    }
    size_t n = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (size > arena->cap - arena->used) {
        return NULL;
    }
    struct chunk *c = arena->chunks;
    if (c == NULL || c->room - c->used < n) {
        c = add_chunk(arena, n);
        if (c == NULL) {
            return NULL;
        }
    }
    void *p = (char *)c + HEADER + c->used;
    c->used += n;
    arena->used += n < arena->cap - arena->used ? n : arena->cap - arena->used;
    return p;
}

void *mem_arena_array(struct mem_arena *arena, size_t count, size_t size)
{
    if (mul_overflows(count, size)) {
        return NULL;
    }
    return mem_arena_alloc(arena, count * size);
}

char *mem_arena_strndup(struct mem_arena *arena, const char *s, size_t n)
{
    if (n == SIZE_MAX) {
        return NULL;
    }
    char *copy = mem_arena_alloc(arena, n + 1);
    if (copy != NULL && n != 0) {
        memcpy(copy, s, n);
    }
    return copy;
}

char *mem_arena_strdup(struct mem_arena *arena, const char *s)
{
    return mem_arena_strndup(arena, s, strlen(s));
}

char *mem_arena_printf(struct mem_arena *arena, const char *fmt, ...)
{
    va_list ap;
    va_list again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = n < 0 ? NULL : mem_arena_alloc(arena, (size_t)n + 1);
    if (text != NULL) {
        vsnprintf(text, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    return text;
}

size_t mem_arena_used(const struct mem_arena *arena)
{
    return arena->used;
}

/* mem.h: the two regimes of allocation, and arenas.
 *
 * mem_x*: abort when memory is out; for start-up and for objects of fixed size. mem_try_*: may fail, and refuse more than a cap; for
 * everything whose size or number a peer, a file or a child chooses. */
#ifndef MAKESPAN_COMMON_MEM_H
#define MAKESPAN_COMMON_MEM_H

#include "common/attr.h"

#include <stddef.h>

/* Zeroed memory; never NULL. */
void *mem_xzalloc(size_t size) MUST_CHECK;
void *mem_xarray(size_t count, size_t size) MUST_CHECK;
/* Resizes; new bytes are not zeroed; never NULL. */
void *mem_xrealloc(void *p, size_t count, size_t size) MUST_CHECK;
char *mem_xstrdup(const char *s) MUST_CHECK;
char *mem_xstrndup(const char *s, size_t n) MUST_CHECK;
char *mem_xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2) MUST_CHECK;

/* Zeroed memory of at most `cap` bytes, or NULL when size > cap, on overflow, or when memory is out. */
void *mem_try_zalloc(size_t size, size_t cap) MUST_CHECK;
void *mem_try_array(size_t count, size_t size, size_t cap) MUST_CHECK;

/* An arena: many small allocations that are freed together. */
struct mem_arena;
/* `cap`: the most bytes it will ever hand out; 0: no cap. */
struct mem_arena *mem_arena_new(size_t cap) MUST_CHECK;
void mem_arena_free(struct mem_arena **arena);
/* Zeroed, aligned for any type; NULL beyond the cap or when memory is out. */
void *mem_arena_alloc(struct mem_arena *arena, size_t size) MUST_CHECK;
void *mem_arena_array(struct mem_arena *arena, size_t count, size_t size) MUST_CHECK;
/* Copies n bytes and adds a NUL; NULL beyond the cap. */
char *mem_arena_strndup(struct mem_arena *arena, const char *s, size_t n) MUST_CHECK;
char *mem_arena_strdup(struct mem_arena *arena, const char *s) MUST_CHECK;
char *mem_arena_printf(struct mem_arena *arena, const char *fmt, ...) PRINTF_LIKE(2, 3) MUST_CHECK;
size_t mem_arena_used(const struct mem_arena *arena);

#endif

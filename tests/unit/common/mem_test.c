/* mem_test.c: caps, overflow and arenas. */
#include "common/mem.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool is_zero(const void *p, size_t n)
{
    const unsigned char *b = p;
    for (size_t i = 0; i < n; i++) {
        if (b[i] != 0) {
            return false;
        }
    }
    return true;
}

Test(mem, zeroed_and_never_null)
{
    char *p = mem_xzalloc(1000);
    cr_assert(is_zero(p, 1000));
    free(p);
    p = mem_xzalloc(0);
    cr_assert_not_null(p);
    free(p);
    int64_t *a = mem_xarray(100, sizeof(*a));
    cr_assert(is_zero(a, 100 * sizeof(*a)));
    a = mem_xrealloc(a, 200, sizeof(*a));
    cr_assert(is_zero(a, 100 * sizeof(*a)));
    free(a);
}

Test(mem, array_overflow_aborts, .signal = SIGABRT)
{
    void *p = mem_xarray(SIZE_MAX / 2, 3);
    free(p);
}

Test(mem, realloc_overflow_aborts, .signal = SIGABRT)
{
    void *p = mem_xrealloc(NULL, SIZE_MAX / 2, 3);
    free(p);
}

Test(mem, strings)
{
    char *s = mem_xstrdup("worker");
    cr_assert_str_eq(s, "worker");
    free(s);
    s = mem_xstrndup("worker", 3);
    cr_assert_str_eq(s, "wor");
    free(s);
    s = mem_xstrndup("worker", 300);
    cr_assert_str_eq(s, "worker");
    free(s);
    s = mem_xasprintf("%s-%d", "host", 7);
    cr_assert_str_eq(s, "host-7");
    free(s);
}

Test(mem, try_refuses_above_the_cap)
{
    char *p = mem_try_zalloc(100, 100);
    cr_assert_not_null(p);
    cr_assert(is_zero(p, 100));
    free(p);
    cr_assert_null(mem_try_zalloc(101, 100));
    cr_assert_null(mem_try_zalloc(SIZE_MAX, 100));
    cr_assert_null(mem_try_array(51, 2, 100));
    cr_assert_null(mem_try_array(SIZE_MAX / 2 + 2, 2, 100), "the product wraps to 2");
    p = mem_try_array(50, 2, 100);
    cr_assert_not_null(p);
    free(p);
    p = mem_try_array(0, 8, 0);
    cr_assert_not_null(p);
    free(p);
}

Test(mem, arena_gives_distinct_aligned_zeroed_memory)
{
    struct mem_arena *arena = mem_arena_new(0);
    unsigned char *parts[600];
    for (size_t i = 0; i < 600; i++) {
        parts[i] = mem_arena_alloc(arena, i + 1);
        cr_assert_not_null(parts[i]);
        cr_assert_eq((uintptr_t)parts[i] % _Alignof(max_align_t), 0, "part %zu", i);
        cr_assert(is_zero(parts[i], i + 1));
        memset(parts[i], (int)(i % 255 + 1), i + 1);
    }
    for (size_t i = 0; i < 600; i++) {
        for (size_t j = 0; j <= i; j++) {
            cr_assert_eq(parts[i][j], i % 255 + 1, "part %zu was overwritten", i);
        }
    }
    mem_arena_free(&arena);
    cr_assert_null(arena);
    mem_arena_free(&arena);
}

Test(mem, arena_big_and_small_parts_mix)
{
    struct mem_arena *arena = mem_arena_new(0);
    char *small = mem_arena_strdup(arena, "small");
    char *big = mem_arena_alloc(arena, 1000000);
    char *after = mem_arena_strdup(arena, "after");
    cr_assert(is_zero(big, 1000000));
    memset(big, 'x', 1000000);
    cr_assert_str_eq(small, "small");
    cr_assert_str_eq(after, "after");
    cr_assert_geq(mem_arena_used(arena), 1000012);
    mem_arena_free(&arena);
}

Test(mem, arena_cap)
{
    struct mem_arena *arena = mem_arena_new(100);
    cr_assert_null(mem_arena_alloc(arena, 101));
    cr_assert_not_null(mem_arena_alloc(arena, 60));
    cr_assert_null(mem_arena_alloc(arena, 60));
    cr_assert_not_null(mem_arena_alloc(arena, 30));
    cr_assert_leq(mem_arena_used(arena), 100);
    cr_assert_null(mem_arena_alloc(arena, SIZE_MAX));
    cr_assert_null(mem_arena_array(arena, SIZE_MAX / 2 + 2, 2));
    cr_assert_null(mem_arena_strndup(arena, "", SIZE_MAX));
    mem_arena_free(&arena);

    arena = mem_arena_new(10);
    cr_assert_not_null(mem_arena_alloc(arena, 10), "a cap that is no multiple of the alignment can be used up");
    cr_assert_null(mem_arena_alloc(arena, 1));
    mem_arena_free(&arena);
}

Test(mem, arena_strings)
{
    struct mem_arena *arena = mem_arena_new(0);
    cr_assert_str_eq(mem_arena_strndup(arena, "abcdef", 3), "abc");
    cr_assert_str_eq(mem_arena_strndup(arena, NULL, 0), "");
    cr_assert_str_eq(mem_arena_printf(arena, "%s:%u", "file", 12U), "file:12");
    char *with_nul = mem_arena_strndup(arena, "a\0b", 3);
    cr_assert(memcmp(with_nul, "a\0b", 4) == 0);
    mem_arena_free(&arena);

    arena = mem_arena_new(4);
    cr_assert_null(mem_arena_printf(arena, "%s", "12345"));
    cr_assert_str_eq(mem_arena_printf(arena, "%s", "123"), "123");
    mem_arena_free(&arena);
}

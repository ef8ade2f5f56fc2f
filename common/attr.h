/* attr.h: names for compiler attributes, and the magic-number check for objects that travel as void *. */
#ifndef MAKESPAN_COMMON_ATTR_H
#define MAKESPAN_COMMON_ATTR_H

#include <assert.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))
#define NORETURN __attribute__((noreturn))

/* Sets `to` from the void pointer `from` and checks that it is a live object of the type whose magic is `m`. */
#define CAST_OBJ(to, from, m)                                                                      \
    do {                                                                                           \
        (to) = (from);                                                                             \
        assert((to) != NULL && (to)->magic == (m));                                                \
    } while (0)

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif

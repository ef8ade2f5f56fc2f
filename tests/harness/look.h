/* look.h: for tests that wait for a condition of the world outside: the pause between two looks, and a number out of a file that somebody else wrote. */
#ifndef MAKESPAN_TESTS_HARNESS_LOOK_H
#define MAKESPAN_TESTS_HARNESS_LOOK_H

#include <stdint.h>

/* Two milliseconds. The caller's loop ends by its condition, and fails by its deadline. */
void look_again(void);
/* The decimal number that text begins with; 0 when it begins with none, or with one that is too large. */
int64_t look_number(const char *text);

#endif

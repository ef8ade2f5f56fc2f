/* look.c: the pause between two looks at a condition. Owns nothing. */
#include "tests/harness/look.h"

#include "common/num.h"

#include <string.h>
#include <time.h>

void look_again(void)
{
    struct timespec pause = {0, 2000000};

    (void)nanosleep(&pause, NULL);
}

int64_t look_number(const char *text)
{
    uint64_t v;

    if (num_parse_digits(text, strspn(text, "0123456789"), &v) != 0 || v > INT64_MAX)
        return 0;
    return (int64_t)v;
}

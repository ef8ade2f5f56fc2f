/* told.h: what a check tells about what was built: lines "key=value" in its output. Pure.
 *
 * A line counts when it is KEY=VALUE from its first byte to its last, with KEY of letters, digits
 * and ". _ + -" (1 to 64) and VALUE UTF-8 without control characters (1 to 1024 bytes). Other
 * lines are ordinary output. Of a key that comes again the last value holds. The first TOLD_MAX
 * keys are taken; how many were left out is counted. */
#ifndef MAKESPAN_WORKER_RUN_TOLD_H
#define MAKESPAN_WORKER_RUN_TOLD_H

#include <stddef.h>

enum { TOLD_MAX = 256, TOLD_KEY_MAX = 64, TOLD_VALUE_MAX = 1024 };

struct told {
    struct told_fact {
        char *key;
        char *value;
    } list[TOLD_MAX];
    size_t count;
    size_t left_out; /* keys beyond TOLD_MAX */
    /* the line that is not ended yet */
    char line[TOLD_KEY_MAX + 1 + TOLD_VALUE_MAX + 1];
    size_t line_len;
    int line_too_long;
};

/* `told` is zeroed before. Bytes come piece by piece. */
void told_add(struct told *told, const void *data, size_t n);
/* Something is missing between what came and what will come: the line in progress is dropped, and
 * so is the rest of the one that is cut. */
void told_gap(struct told *told);
/* No more comes: the last line counts without a newline too. */
void told_end(struct told *told);
void told_free(struct told *told); /* leaves it zeroed */

#endif
